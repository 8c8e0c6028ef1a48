use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::time::Instant;

use nix::sched::setns;
use nix::unistd::{Uid, gettid, setuid};

use super::*;
use crate::testing::hosts;

/// Set in the child that a test makes of itself.
const CHILD: &str = "WRAITH_XDP_TEST_CHILD";

fn udp(side: &Side, ip: IpAddr) -> UdpSocket {
    let socket = side.run(move || UdpSocket::bind(SocketAddr::new(ip, 0))).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn exchange(veth: &Veth, left: IpAddr, right: IpAddr, len: usize) {
    let (left, right) = (udp(veth.left(), left), udp(veth.right(), right));
    for (from, to) in [(&left, &right), (&right, &left)] {
        let sent = vec![len as u8; len];
        assert_eq!(from.send_to(&sent, to.local_addr().unwrap()).unwrap(), len);
        let mut received = vec![0; len + 1];
        assert_eq!(to.recv_from(&mut received).unwrap(), (len, from.local_addr().unwrap()));
        assert_eq!(received[..len], sent);
    }
}

fn interfaces() -> Vec<String> {
    let names = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let mut names: Vec<_> =
        names.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect();
    names.sort();
    names
}

#[test]
fn datagrams_go_both_ways_over_both_families_whatever_the_options() {
    for other in [true, false] {
        for mtu in [1500, 9000] {
            let options = Options { mtu, neighbours: !other, threaded_napi: other, ..Options::default() };
            let Some(veth) = hosts(&options) else { return };
            let (left, right) = (veth.left(), veth.right());
            exchange(&veth, left.ipv4().into(), right.ipv4().into(), mtu as usize - 28);
            exchange(&veth, left.ipv6().into(), right.ipv6().into(), mtu as usize - 48);
        }
    }
}

#[test]
fn each_side_has_its_own_devices_and_the_process_none_of_them() {
    let before = interfaces();
    let Some(veth) = hosts(&Options { queues: 2, ..Options::default() }) else { return };
    assert_eq!(veth.left().run(interfaces), ["lo", "wraith0"]);
    assert_eq!(veth.right().run(interfaces), ["lo", "wraith1"]);
    assert_eq!(interfaces(), before);
    // A second pair does not meet the first.
    let other = hosts(&Options::default()).unwrap();
    exchange(&other, other.left().ipv4().into(), other.right().ipv4().into(), 1);
    drop(veth);
    exchange(&other, other.left().ipv4().into(), other.right().ipv4().into(), 1);
}

#[test]
fn nothing_is_left_of_it_but_a_socket_that_somebody_keeps() {
    let before = interfaces();
    let Some(veth) = hosts(&Options::default()) else { return };
    let threads = [veth.left().run(gettid), veth.right().run(gettid)];
    let kept = udp(veth.left(), veth.left().ipv4().into());
    let to = SocketAddr::new(veth.right().ipv4().into(), 9);
    assert_eq!(kept.send_to(b"x", to).unwrap(), 1);
    drop(veth);
    assert_eq!(kept.send_to(b"x", to).unwrap_err().raw_os_error(), Some(libc::ENETUNREACH));
    assert_eq!(interfaces(), before);
    let deadline = Instant::now() + PATIENCE;
    // A thread that was joined is listed a moment longer.
    while threads.iter().any(|thread| Path::new(&format!("/proc/self/task/{thread}")).exists()) {
        assert!(Instant::now() < deadline, "{threads:?}");
        thread::yield_now();
    }
}

#[test]
fn a_child_process_can_join_a_side() {
    let Some(veth) = hosts(&Options::default()) else { return };
    let link = |path: String| fs::read_link(path).unwrap();
    let namespace = link("/proc/thread-self/ns/net".to_owned());
    let mine = veth.right().run(move || link("/proc/thread-self/ns/net".to_owned()));
    assert_ne!(mine, namespace);
    assert_eq!(link(format!("/proc/self/fd/{}", veth.right().namespace().as_raw_fd())), mine);
    let child = veth.right().run(|| Command::new("readlink").arg("/proc/self/ns/net").output()).unwrap();
    assert_eq!(Path::new(String::from_utf8(child.stdout).unwrap().trim()), mine);
}

#[test]
fn a_panic_on_a_host_is_its_callers_and_the_host_goes_on() {
    let Some(veth) = hosts(&Options::default()) else { return };
    let thrown = panic::catch_unwind(AssertUnwindSafe(|| veth.left().run(|| panic::panic_any(7_u8))));
    assert_eq!(thrown.unwrap_err().downcast_ref(), Some(&7_u8));
    assert_eq!(veth.left().run(|| 8), 8);
}

#[test]
fn an_mtu_that_no_device_has_is_refused() {
    let Some(_) = hosts(&Options::default()) else { return };
    let error = Veth::new(&Options { mtu: 65_536, ..Options::default() }).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn without_privileges_it_is_denied() {
    if env::var_os(CHILD).is_some() {
        if Uid::effective().is_root() {
            setuid(Uid::from_raw(65_534)).unwrap();
        }
        assert_eq!(Veth::new(&Options::default()).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        return;
    }
    let output = this_test().output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[test]
fn nothing_is_left_of_it_when_its_process_is_killed() {
    const MARK: &str = "namespace of the right side: ";
    if env::var_os(CHILD).is_some() {
        let veth = Veth::new(&Options::default()).unwrap();
        println!("{MARK}/proc/{}/fd/{}", process::id(), veth.right().namespace().as_raw_fd());
        // Until it is killed.
        io::stdin().read_exact(&mut [0]).unwrap();
        return;
    }
    if hosts(&Options::default()).is_none() {
        return;
    }
    let mut child =
        this_test().arg("--nocapture").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let path = lines.map(Result::unwrap).find_map(|line| Some(line.split_once(MARK)?.1.to_owned())).unwrap();
    // The right namespace is kept; its device goes with the left one, which nobody keeps.
    let namespace = File::open(path).unwrap();
    let names = move |gone: bool| {
        setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
        let deadline = Instant::now() + PATIENCE;
        while gone && interfaces() != ["lo"] && Instant::now() < deadline {
            thread::yield_now();
        }
        interfaces()
    };
    thread::scope(|scope| {
        assert_eq!(scope.spawn(|| names(false)).join().unwrap(), ["lo", "wraith1"]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(scope.spawn(|| names(true)).join().unwrap(), ["lo"]);
    });
}

/// This test again, in a process of its own.
fn this_test() -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", thread::current().name().unwrap()]).env(CHILD, "1");
    command
}
