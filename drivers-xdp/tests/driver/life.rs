//! What the driver does when the device is not as it should be, or ceases to be.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wraith_drivers::{Driver, Limit, Mode, Park, Wake};
use wraith_drivers_xdp::veth::Veth;
use wraith_drivers_xdp::{Attach, BindError, Copies, Reason, Refusal, Step, XdpDriver};

use crate::common::{PATIENCE, bind, command, commit, hosts, receive, send, socket, to, try_bind};

/// The refusal that kept a driver from being.
fn refusal(result: Result<XdpDriver, BindError>) -> Refusal {
    match result {
        Err(BindError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn each_thing_that_is_missing_has_its_reason() {
    let Some(veth) = hosts(|_| {}) else { return };
    let (left, ip) = (veth.left(), veth.left().ipv4());
    let missing = try_bind(left, ip, 0, |options| "nothing0".clone_into(&mut options.interface));
    assert_eq!(refusal(missing), Refusal { step: Step::Interface, reason: Reason::Missing });
    let queue = try_bind(left, ip, 0, |options| options.queue = 7);
    assert_eq!(refusal(queue).step, Step::Bind);
    let no_copies = try_bind(left, ip, 0, |options| options.copies = Copies::Never);
    assert_eq!(refusal(no_copies), Refusal { step: Step::Bind, reason: Reason::Unsupported });
    let elsewhere = try_bind(left, Ipv4Addr::LOCALHOST, 0, |_| {});
    assert!(
        matches!(elsewhere, Err(BindError::Socket(error)) if error.kind() == std::io::ErrorKind::AddrNotAvailable)
    );
    let first = bind(left, ip);
    let port = first.local_addr().port();
    let taken = try_bind(left, ip, port, |_| {});
    assert!(matches!(taken, Err(BindError::Socket(error)) if error.kind() == std::io::ErrorKind::AddrInUse));
    let second = refusal(try_bind(left, ip, 0, |_| {}));
    assert_eq!(second, Refusal { step: Step::Attach, reason: Reason::Busy });
    drop(first);
    command(left, "ip link set wraith0 down");
    let down = refusal(try_bind(left, ip, 0, |_| {}));
    assert_eq!(down, Refusal { step: Step::Interface, reason: Reason::Down });
    assert_eq!(down.remedy(), "bring the device up: ip link set DEVICE up");
}

#[test]
fn caps_say_what_was_obtained_and_what_held_it_back() {
    let Some(veth) = hosts(|_| {}) else { return };
    for (attach, copies, native, limit) in [
        (Attach::Best, Copies::Best, true, Limit::Device),
        (Attach::Native, Copies::Always, true, Limit::Options),
        (Attach::Generic, Copies::Best, false, Limit::Options),
    ] {
        let driver = try_bind(veth.left(), veth.left().ipv4(), 0, |options| {
            (options.attach, options.copies, options.slots) = (attach, copies, 100);
        });
        let caps = driver.unwrap().caps();
        assert_eq!((caps.mode, caps.limited_by), (Mode::Xdp { zero_copy: false, native }, Some(limit)));
        assert_eq!((caps.max_datagram, caps.tx_slots, caps.tx_segments), (1472, 128, 1));
        assert!(caps.ecn && caps.local_ip && caps.dont_fragment);
    }
    assert_eq!(bind(veth.left(), veth.left().ipv6()).caps().max_datagram, 1452);
}

#[test]
fn a_device_that_is_down_holds_up_no_other_way() {
    let Some(veth) = hosts(|_| {}) else { return };
    let mut left = try_bind(veth.left(), Ipv4Addr::UNSPECIFIED, 0, |options| options.slots = 16).unwrap();
    let right = socket(veth.right(), veth.right().ipv4());
    let here = socket(veth.left(), Ipv4Addr::LOCALHOST);
    let meta = to(right.local_addr().unwrap());
    send(&mut left, &meta, b"before");
    command(veth.left(), "ip link set wraith0 down");
    let (mut given, mut taken) = (0, 0);
    for _ in 0..100 {
        commit(&mut left, &meta, b"meanwhile");
        let report = left.flush().unwrap();
        (given, taken) = (given + 1, taken + report.sent + report.dropped);
        assert_eq!(given, taken + report.in_flight);
    }
    commit(&mut left, &to(here.local_addr().unwrap()), b"to the host");
    left.flush().unwrap();
    let mut buffer = [0; 100];
    assert_eq!(here.recv(&mut buffer).unwrap(), 11);
}

#[test]
fn a_driver_in_a_log_shows_nothing_that_it_received() {
    let Some(veth) = hosts(|_| {}) else { return };
    let mut left = bind(veth.left(), veth.left().ipv4());
    // In fragments, so that it comes into the buffer of the socket.
    socket(veth.right(), veth.right().ipv4()).send_to(&[0xa5; 4000], left.local_addr()).unwrap();
    assert_eq!(receive(&mut left, 1)[0].1.len(), 4000);
    let shown = format!("{left:?}");
    assert!(!shown.contains("165, 165") && shown.len() < 1000, "{} bytes", shown.len());
}

#[test]
fn a_child_process_keeps_nothing_of_a_driver() {
    let Some(veth) = hosts(|_| {}) else { return };
    let driver = bind(veth.left(), veth.left().ipv4());
    // It ends when nobody writes to it any more.
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    drop(driver);
    let again = try_bind(veth.left(), veth.left().ipv4(), 0, |_| {});
    drop(child.stdin.take());
    child.wait().unwrap();
    again.unwrap();
}

#[test]
fn a_device_too_narrow_for_the_shortest_promise_is_refused() {
    let Some(veth) = hosts(|_| {}) else { return };
    let ip = veth.left().ipv4();
    command(veth.left(), "ip link set wraith0 mtu 1227");
    let narrow = refusal(try_bind(veth.left(), ip, 0, |_| {}));
    assert_eq!(narrow, Refusal { step: Step::Interface, reason: Reason::Invalid });
    command(veth.left(), "ip link set wraith0 mtu 1228");
    assert_eq!(bind(veth.left(), ip).caps().max_datagram, 1200);
}

#[test]
fn sizes_beyond_all_memory_are_refused_or_capped() {
    let Some(veth) = hosts(|_| {}) else { return };
    for (slots, receive_frames) in [(u32::MAX, 1), (1, u32::MAX)] {
        let driver = try_bind(veth.left(), veth.left().ipv4(), 0, |options| {
            (options.slots, options.receive_frames) = (slots, receive_frames);
        });
        match driver {
            Ok(driver) => assert_eq!(driver.caps().tx_slots, (slots as usize).min(65_536)),
            refused => assert_eq!(refusal(refused).reason, Reason::Memory),
        }
    }
}

#[test]
fn a_device_that_goes_down_and_up_goes_on_with_what_was_committed() {
    let Some(veth) = hosts(|_| {}) else { return };
    let mut left = bind(veth.left(), veth.left().ipv4());
    let right = socket(veth.right(), veth.right().ipv4());
    let meta = to(right.local_addr().unwrap());
    send(&mut left, &meta, b"before");
    command(veth.left(), "ip link set wraith0 down");
    commit(&mut left, &meta, b"meanwhile");
    let report = left.flush().unwrap();
    assert_eq!(report.sent + report.dropped + report.in_flight, 1);
    assert_eq!(left.recv(10, |_, _| {}).unwrap().datagrams, 0);
    command(veth.left(), "ip link set wraith0 up");
    // What it knew of its neighbours was forgotten when it went down.
    let (until, mut buffer) = (Instant::now() + PATIENCE, [0; 100]);
    right.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    loop {
        commit(&mut left, &meta, b"after");
        let mut in_flight = left.flush().unwrap().in_flight;
        while in_flight > 0 && Instant::now() < until {
            assert_eq!(left.park(None).unwrap(), Wake::Traffic);
            in_flight = left.flush().unwrap().in_flight;
        }
        let mut heard = std::iter::from_fn(|| right.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec()));
        if heard.any(|data| data == b"after") {
            break;
        }
        assert!(Instant::now() < until, "nothing leaves any more");
    }
}

#[test]
fn a_device_that_is_gone_is_an_error_and_no_loop() {
    let Some(veth) = hosts(|_| {}) else { return };
    let mut left = bind(veth.left(), veth.left().ipv4());
    let meta = to(SocketAddr::new(veth.right().ipv4().into(), 9));
    send(&mut left, &meta, b"before");
    command(veth.left(), "ip link del wraith0");
    let until = Instant::now() + PATIENCE;
    loop {
        commit(&mut left, &meta, b"after");
        // The kernel unbinds the socket a little later.
        match left.flush().and_then(|_| left.recv(10, |_, _| {})) {
            Err(error) => {
                assert!(
                    matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV | libc::ENETDOWN)),
                    "{error}"
                );
                break;
            }
            Ok(_) => assert!(Instant::now() < until, "the driver goes on without its device"),
        }
    }
}

#[test]
fn a_park_tells_that_the_device_is_gone() {
    let Some(veth) = hosts(|_| {}) else { return };
    let mut left = bind(veth.left(), veth.left().ipv4());
    command(veth.left(), "ip link del wraith0");
    let until = Instant::now() + PATIENCE;
    let error = loop {
        let soon = left.now().saturating_add(Duration::from_millis(1));
        match left.park(Some(soon)) {
            Err(error) => break error,
            Ok(wake) => assert!(Instant::now() < until, "{wake:?} for ever"),
        }
    };
    assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN));
}

#[test]
fn the_filter_goes_with_the_driver() {
    let Some(veth) = hosts(|_| {}) else { return };
    let left = bind(veth.left(), veth.left().ipv4());
    let addr = left.local_addr();
    assert!(links(&veth).contains("xdp"), "{}", links(&veth));
    drop(left);
    assert!(!links(&veth).contains("xdp"), "{}", links(&veth));
    let plain = veth.left().run(move || std::net::UdpSocket::bind(addr).unwrap());
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    socket(veth.right(), veth.right().ipv4()).send_to(b"to the system", addr).unwrap();
    assert_eq!(plain.recv(&mut [0; 100]).unwrap(), 13);
}

fn links(veth: &Veth) -> String {
    let output =
        veth.left().run(|| Command::new("ip").args(["-o", "link", "show", "wraith0"]).output().unwrap());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_receiver_that_does_not_look_loses_what_has_no_room_and_counts_it() {
    let Some(veth) = hosts(|_| {}) else { return };
    let mut left =
        try_bind(veth.left(), veth.left().ipv4(), 0, |options| options.receive_frames = 64).unwrap();
    let right = socket(veth.right(), veth.right().ipv4());
    for number in 0..100u8 {
        right.send_to(&[number], left.local_addr()).unwrap();
    }
    let arrivals = receive(&mut left, 64);
    assert!(arrivals.iter().zip(0..).all(|((_, data), number)| *data == [number]));
    assert_eq!(left.drops().no_room, 36);
    // And it goes on.
    right.send_to(b"next", left.local_addr()).unwrap();
    assert_eq!(receive(&mut left, 1)[0].1, b"next");
}
