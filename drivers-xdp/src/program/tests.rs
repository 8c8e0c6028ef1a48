//! The filter as the kernel runs it, on frames of our making (`BPF_PROG_TEST_RUN`) and on a device of a namespace of our
//! own. Only root can do that.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::{env, thread};

use aya::programs::links::FdLink;
use aya::programs::{TestRun, TestRunOptions};
use aya::sys::SyscallError;
use etherparse::PacketBuilder;
use nix::sched::{CloneFlags, unshare};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use socket2::{Socket, Type};
use wraith_proto::Ecn;

use super::*;
use crate::refusal::Reason;
use crate::wire::{self, Flow, Mac};

const PORT: u16 = 4433;
const LONGEST: u16 = 1_480;
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEERS: [&str; 2] = ["192.0.2.200:9", "[2001:db8::bad]:9"];
/// The only device of a new namespace.
const LOOPBACK: u32 = 1;

fn filter(addresses: &[&str]) -> Filter {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    Filter { mac: Mac(MAC), port: PORT, addresses, longest: LONGEST }
}

fn usual() -> Filter {
    filter(&["192.0.2.1", "203.0.113.254", "2001:db8::1", "fe80::2"])
}

/// Whether the filter can be loaded here; says why not.
fn can_load() -> bool {
    let refused = Program::load(&usual(), 1).err().filter(|refusal| refusal.reason == Reason::Forbidden);
    if let Some(refusal) = refused {
        println!("not run: {refusal}; {}", refusal.remedy());
        let strict = env::var("WRAITH_CONFORMANCE_STRICT").is_ok_and(|value| value == "1");
        assert!(!strict, "strict: nothing may be left out");
    }
    refused.is_none()
}

/// Loads a filter that returns what is for the driver, so that it differs from what passes without a socket.
fn load(filter: &Filter) -> Program {
    Program::load_with(filter, 2, Action::Return).unwrap_or_else(|error| panic!("{error:?}"))
}

fn run(program: &mut Program, frame: &[u8]) -> u32 {
    let options = TestRunOptions { data_in: Some(frame), ..TestRunOptions::default() };
    program.xdp().test_run(options).unwrap().return_value
}

/// A datagram to `to` with `payload` zeros.
fn frame(to: &str, payload: usize) -> Vec<u8> {
    let to = to.parse::<SocketAddr>().unwrap();
    let from = PEERS[usize::from(to.is_ipv6())].parse().unwrap();
    let flow = Flow { source: Mac(MAC), destination: Mac(MAC), from, to, ecn: Ecn::Ce };
    let mut frame = vec![0; wire::header_bytes(to.ip()) + payload];
    let (headers, payload) = frame.split_at_mut(wire::header_bytes(to.ip()));
    wire::write(&flow, headers, payload);
    frame
}

fn altered(frame: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

#[test]
fn what_is_for_the_driver_is_found() {
    if !can_load() {
        return;
    }
    let program = &mut load(&usual());
    for to in ["192.0.2.1:4433", "203.0.113.254:4433", "[2001:db8::1]:4433", "[fe80::2]:4433"] {
        for payload in [0, 1, 18, usize::from(LONGEST) - 8] {
            assert_eq!(run(program, &frame(to, payload)), Action::Return as u32, "{payload} bytes to {to}");
        }
    }
    // The padding of a short frame, a traffic class and a flow label, time to live, checksums that a device completes.
    let (v4, v6) = (frame("192.0.2.1:4433", 0), frame("[fe80::2]:4433", 0));
    let padded = [&v4[..], &[0; 18]].concat();
    for frame in [
        padded,
        altered(&v4, 15, &[0xff]),
        altered(&v6, 14, &[0x6f, 0xff, 0xff, 0xff]),
        altered(&v4, 22, &[1]),
    ] {
        assert_eq!(run(program, &frame), Action::Return as u32, "{frame:02x?}");
    }
}

#[test]
fn what_is_for_others_passes() {
    if !can_load() {
        return;
    }
    let program = &mut load(&usual());
    for to in [
        "192.0.2.1:4434",
        "192.0.2.1:20753", // 4433, bytes exchanged
        "192.0.2.2:4433",
        "1.2.0.192:4433",
        "255.255.255.255:4433",
        "[2001:db8::1]:53",
        "[2001:db8::2]:4433",
        "[2001:db8:0:0:1::1]:4433",
        "[2001:db9::1]:4433",
        "[fe80::1]:4433",
    ] {
        assert_eq!(run(program, &frame(to, 100)), Action::Pass as u32, "{to}");
    }
    let (v4, v6) = (frame("192.0.2.1:4433", 100), frame("[2001:db8::1]:4433", 100));
    let tcp =
        PacketBuilder::ethernet2(MAC, MAC).ipv4([192, 0, 2, 9], [192, 0, 2, 1], 64).tcp(9, PORT, 0, 1_000);
    let mut segment = Vec::new();
    tcp.write(&mut segment, &[0; 100]).unwrap();
    let tag = [0x81, 0x00, 0x00, 0x07];
    for (what, frame) in [
        ("another host's, by the first byte", altered(&v4, 0, &[6])),
        ("another host's, by the last byte", altered(&v6, 5, &[9])),
        ("everybody's", altered(&v4, 0, &[0xff; 6])),
        ("the first fragment", altered(&v4, 20, &[0x20, 0x00])),
        ("a fragment between", altered(&v4, 20, &[0x20, 0x10])),
        ("the last fragment", altered(&v4, 20, &[0x00, 0x01])),
        ("a fragment over IPv6", altered(&v6, 20, &[44])),
        ("an option", altered(&v4, 14, &[0x46])),
        ("a header of IPv4 too short", altered(&v4, 14, &[0x44])),
        ("a version of IP that is not Ethernet's", altered(&v4, 14, &[0x65])),
        ("the same for IPv6", altered(&v6, 14, &[0x40])),
        ("hop-by-hop options", altered(&v6, 20, &[0])),
        ("destination options", altered(&v6, 20, &[60])),
        ("TCP", segment),
        ("TCP over IPv6", altered(&v6, 20, &[6])),
        ("UDP-Lite", altered(&v4, 23, &[136])),
        ("ARP", altered(&v4, 12, &[0x08, 0x06])),
        ("another kind of frame", altered(&v6, 12, &[0x88, 0xcc])),
        ("a VLAN over IPv4", [&v4[..12], &tag, &v4[12..]].concat()),
        ("a VLAN over IPv6", [&v6[..12], &tag, &v6[12..]].concat()),
        ("a batch", altered(&v4, 38, &(LONGEST + 1).to_be_bytes())),
        ("the longest batch", altered(&v4, 38, &[0xff, 0xff])),
        ("a batch over IPv6", altered(&v6, 58, &(LONGEST + 1).to_be_bytes())),
        ("a batch, as long as it says", self::frame("192.0.2.1:4433", usize::from(LONGEST) - 7)),
    ] {
        assert_eq!(run(program, &frame), Action::Pass as u32, "{what}");
    }
    for bit in 0..14 {
        let fragment = altered(&v4, 20, &(1_u16 << bit).to_be_bytes());
        assert_eq!(run(program, &fragment), Action::Pass as u32, "a fragment, bit {bit}");
    }
}

#[test]
fn senders_that_no_line_can_have_are_left_to_the_kernel() {
    if !can_load() {
        return;
    }
    let program = &mut load(&usual());
    for (to, from, expected) in [
        ("192.0.2.1:4433", "1.0.0.0", Action::Return),
        ("192.0.2.1:4433", "126.255.255.255", Action::Return),
        ("192.0.2.1:4433", "128.0.0.1", Action::Return),
        ("192.0.2.1:4433", "223.255.255.255", Action::Return),
        ("192.0.2.1:4433", "0.0.0.0", Action::Pass),
        ("192.0.2.1:4433", "127.0.0.1", Action::Pass),
        ("192.0.2.1:4433", "224.0.0.1", Action::Pass),
        ("192.0.2.1:4433", "255.255.255.255", Action::Pass),
        ("192.0.2.1:4433", "192.0.2.1", Action::Pass),
        ("192.0.2.1:4433", "203.0.113.254", Action::Pass),
        ("[2001:db8::1]:4433", "::1:0:0:0:1", Action::Return),
        ("[2001:db8::1]:4433", "0:1::1", Action::Return),
        ("[2001:db8::1]:4433", "fe80::1", Action::Return),
        ("[2001:db8::1]:4433", "::", Action::Pass),
        ("[2001:db8::1]:4433", "::1", Action::Pass),
        ("[2001:db8::1]:4433", "::ffff:127.0.0.1", Action::Pass),
        ("[2001:db8::1]:4433", "ff02::1", Action::Pass),
    ] {
        let (at, bytes) = match from.parse().unwrap() {
            IpAddr::V4(from) => (26, from.octets().to_vec()),
            IpAddr::V6(from) => (22, from.octets().to_vec()),
        };
        let frame = altered(&frame(to, 100), at, &bytes);
        assert_eq!(run(program, &frame), expected as u32, "from {from}");
    }
}

#[test]
fn short_frames_pass() {
    if !can_load() {
        return;
    }
    let program = &mut load(&usual());
    for (to, whole) in [("192.0.2.1:4433", wire::IPV4_HEADERS), ("[2001:db8::1]:4433", wire::IPV6_HEADERS)] {
        let frame = frame(to, 20);
        for length in 14..=62 {
            let expected = if length < whole { Action::Pass } else { Action::Return };
            assert_eq!(run(program, &frame[..length]), expected as u32, "{length} bytes to {to}");
        }
    }
}

#[test]
fn a_filter_may_have_one_family_or_more_addresses_than_it_knows() {
    if !can_load() {
        return;
    }
    for (address, other) in [("192.0.2.1", "[2001:db8::1]"), ("2001:db8::1", "192.0.2.1")] {
        let program = &mut load(&filter(&[address]));
        let own = SocketAddr::new(address.parse().unwrap(), PORT).to_string();
        assert_eq!(run(program, &frame(&own, 9)), Action::Return as u32, "{own}");
        assert_eq!(run(program, &frame(&format!("{other}:{PORT}"), 9)), Action::Pass as u32, "{other}");
    }
    let many: Vec<String> = (1..=9).flat_map(|n| [format!("2001:db8::{n}"), format!("10.0.0.{n}")]).collect();
    let program = &mut load(&filter(&many.iter().map(String::as_str).collect::<Vec<_>>()));
    for n in 1..=9 {
        let expected = if n <= 8 { Action::Return } else { Action::Pass };
        assert_eq!(run(program, &frame(&format!("10.0.0.{n}:4433"), 9)), expected as u32, "{n}");
        assert_eq!(run(program, &frame(&format!("[2001:db8::{n}]:4433"), 9)), expected as u32, "{n}");
    }
}

#[test]
fn a_queue_without_a_socket_passes_and_one_with_it_redirects() {
    if !can_load() {
        return;
    }
    let program = &mut Program::load(&usual(), 2).unwrap();
    let (own, foreign) = (frame("192.0.2.1:4433", 9), frame("192.0.2.1:4434", 9));
    assert_eq!(run(program, &own), Action::Pass as u32);

    let refused = |reason| Err(Refusal { step: Step::Steer, reason });
    let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    assert_eq!(program.steer(0, other.as_fd()), refused(Reason::Unsupported));
    let socket = Socket::new(libc::AF_XDP.into(), Type::RAW, None).unwrap();
    let steer = |program: &mut Program, queue| program.steer(queue, socket.as_fd());
    assert_eq!(steer(program, 2), refused(Reason::Missing));
    assert_eq!(steer(program, 1), Ok(()));
    assert_eq!(run(program, &own), Action::Pass as u32, "a test's frame is of the queue 0");
    assert_eq!(steer(program, 0), Ok(()));
    assert_eq!(run(program, &own), Action::Redirect as u32);
    assert_eq!(run(program, &foreign), Action::Pass as u32);
}

#[test]
fn each_queue_has_its_own_socket() {
    if !can_load() {
        return;
    }
    apart(|| {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let ip = "link add two index 7 numrxqueues 2 type veth peer name other";
        let made = Command::new("ip").args(ip.split(' ')).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let program = &mut Program::load(&usual(), 2).unwrap();
        let socket = Socket::new(libc::AF_XDP.into(), Type::RAW, None).unwrap();
        program.steer(1, socket.as_fd()).unwrap();
        let frame = frame("192.0.2.1:4433", 9);
        for (queue, action) in [(0, Action::Pass), (1, Action::Redirect)] {
            // `struct xdp_md`: where data begin, end, and are described; device and queue that they came from.
            let context = [0, frame.len() as u32, 0, 7, queue, 0].map(u32::to_ne_bytes).concat();
            let options =
                TestRunOptions { data_in: Some(&frame), ctx_in: Some(&context), ..TestRunOptions::default() };
            assert_eq!(program.xdp().test_run(options).unwrap().return_value, action as u32, "queue {queue}");
        }
    });
}

/// Runs `test` in a thread that leaves its namespace or its rights behind.
fn apart(test: impl FnOnce() + Send + 'static) {
    thread::spawn(test).join().unwrap();
}

#[test]
fn a_filter_is_on_its_device_until_it_is_dropped() {
    if !can_load() {
        return;
    }
    apart(|| {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let load = || Program::load(&usual(), 1).unwrap();
        let refused = |reason| Err(Refusal { step: Step::Attach, reason });
        let (mut first, mut second) = (load(), load());
        assert_eq!(first.attach(LOOPBACK, true), refused(Reason::Unsupported));
        assert_eq!(first.attach(LOOPBACK + 1, false), refused(Reason::Missing));
        assert_eq!(first.attach(LOOPBACK, false), Ok(()));
        assert_eq!(second.attach(LOOPBACK, false), refused(Reason::Busy));
        drop(first);
        assert_eq!(second.attach(LOOPBACK, false), Ok(()));
        drop(second);
        let mut third = load();
        let id = third.xdp().attach_to_if_index(LOOPBACK, XdpMode::Skb).unwrap();
        FdLink::try_from(third.xdp().take_link(id).unwrap()).expect("a link, which ends with its process");
    });
}

/// Answers a system call with `number` in this thread.
fn refuse(call: libc::c_long, number: i32) {
    let rules = [(call, Vec::new())].into();
    let answer = SeccompAction::Errno(number as u32);
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, answer, env::consts::ARCH.try_into().unwrap())
            .unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    apply_filter(&program).unwrap();
}

#[test]
fn the_kernels_refusals_have_their_reasons() {
    // Before any refusal: aya asks once what the kernel can do.
    let _ = Program::load(&usual(), 1);
    for (number, reason) in [
        (libc::EPERM, Reason::Forbidden),
        (libc::ENOSYS, Reason::Absent),
        (libc::ENOMEM, Reason::Memory),
        (libc::EINVAL, Reason::Invalid),
    ] {
        apart(move || {
            refuse(libc::SYS_bpf, number);
            assert_eq!(Program::load(&usual(), 1).err(), Some(Refusal { step: Step::Load, reason }));
        });
    }
    if can_load() {
        apart(|| {
            let mut program = Program::load(&usual(), 1).unwrap();
            refuse(libc::SYS_bpf, libc::EPERM);
            let refused = |step| Err(Refusal { step, reason: Reason::Forbidden });
            assert_eq!(program.attach(LOOPBACK, false), refused(Step::Attach));
            assert_eq!(program.steer(0, std::io::stdin().as_fd()), refused(Step::Steer));
        });
        apart(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let mut program = Program::load(&usual(), 1).unwrap();
            refuse(libc::SYS_socket, libc::ENOMEM);
            // The link is invalid, and there is no socket to ask again through.
            let refused = Err(Refusal { step: Step::Attach, reason: Reason::Memory });
            assert_eq!(program.attach(LOOPBACK + 1, false), refused);
        });
    }
}

#[test]
fn an_error_of_the_loader_is_the_kernels_answer_within() {
    let answer = || io::Error::from_raw_os_error(libc::EBUSY);
    let call = || SyscallError { call: "bpf", io_error: answer() };
    let create = || MapError::CreateError { name: elf::SOCKETS.to_owned(), io_error: answer() };
    let busy = |error: &(dyn Error + 'static)| {
        assert_eq!(
            refusal(Step::Attach, error),
            Refusal { step: Step::Attach, reason: Reason::Busy },
            "{error:?}"
        );
    };
    busy(&answer());
    busy(&ProgramError::SyscallError(call()));
    busy(&ProgramError::IOError(answer()));
    busy(&ProgramError::MapError(MapError::IoError(answer())));
    busy(&EbpfError::MapError(create()));
    busy(&EbpfError::ProgramError(ProgramError::MapError(create())));
    busy(&EbpfError::ProgramError(ProgramError::SyscallError(call())));
    busy(&MapError::SyscallError(call()));
    let beyond = MapError::OutOfBounds { index: 2, max_entries: 2 };
    assert_eq!(refusal(Step::Steer, &beyond).reason, Reason::Missing);
    assert_eq!(refusal(Step::Load, &EbpfError::NoBTF).reason, Reason::Invalid);
}
