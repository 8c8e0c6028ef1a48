//! The driver inside another loop, by its descriptor.
#![cfg(target_os = "linux")]

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use wraith_drivers::{Driver, Pollable};
use wraith_drivers_uring::{Options, UringDriver};
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};

const PATIENCE: Duration = Duration::from_secs(10);

fn bind() -> UringDriver {
    UringDriver::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &Options::default()).unwrap()
}

fn send(from: &mut UringDriver, to: SocketAddr, count: u8) {
    let meta = TxMeta { to, from: None, via: Via(0), ecn: Ecn::NotEct };
    for index in 0..count {
        from.tx().reserve(&meta, 100).unwrap().fill(index);
        from.tx().commit(100);
    }
    assert_eq!(from.flush().unwrap().sent, usize::from(count));
}

/// Events of `poll` within `limit`.
fn wait(poll: &mut Poll, limit: Duration) -> usize {
    let mut events = Events::with_capacity(8);
    poll.poll(&mut events, Some(limit)).unwrap();
    events.iter().filter(|event| event.is_readable()).count()
}

#[test]
fn an_edge_triggered_loop_that_receives_until_no_budget_is_hit_misses_nothing() {
    let (mut left, mut right) = (bind(), bind());
    let interest = right.interest();
    assert!(interest.readable && !interest.writable);
    let mut outer = Poll::new().unwrap();
    let fd = right.poll_fd().as_raw_fd();
    outer.registry().register(&mut SourceFd(&fd), Token(7), Interest::READABLE).unwrap();

    for round in 1..50u8 {
        send(&mut left, right.local_addr(), round);
        let mut received = 0;
        while received < usize::from(round) {
            assert_eq!(wait(&mut outer, PATIENCE), 1, "round {round}, received {received}");
            loop {
                let report = right.recv(3, |_, _| {}).unwrap();
                received += report.datagrams;
                if !report.budget_hit {
                    break;
                }
            }
        }
        assert_eq!(received, usize::from(round));
        assert_eq!(wait(&mut outer, Duration::ZERO), 0, "an empty driver is quiet");
    }
}

#[test]
fn a_level_triggered_loop_sees_the_driver_until_it_is_empty() {
    let (mut left, mut right) = (bind(), bind());
    let ready = |driver: &UringDriver, timeout: PollTimeout| {
        let mut fds = [PollFd::new(driver.poll_fd(), PollFlags::POLLIN)];
        poll(&mut fds, timeout).unwrap()
    };
    assert_eq!(ready(&right, PollTimeout::ZERO), 0);
    send(&mut left, right.local_addr(), 1);
    let patience = PollTimeout::try_from(PATIENCE).unwrap();
    assert_eq!(ready(&right, patience), 1);
    assert_eq!(ready(&right, patience), 1);
    assert_eq!(right.recv(9, |_, _| {}).unwrap().datagrams, 1);
    assert_eq!(ready(&right, PollTimeout::ZERO), 0);
}

#[test]
fn what_a_flush_or_a_budget_took_from_the_socket_keeps_the_descriptor_readable() {
    let options = Options { gro: false, ..Options::default() };
    let mut left = bind();
    let mut right = UringDriver::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &options).unwrap();
    assert_eq!(right.recv(1, |_, _| {}).unwrap().datagrams, 0);
    let readable = |driver: &UringDriver, patience: Duration| {
        let mut fds = [PollFd::new(driver.poll_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::try_from(patience).unwrap()).unwrap() == 1
    };
    for _ in 0..3 {
        send(&mut left, right.local_addr(), 5);
        // Its submission receives as well.
        send(&mut right, left.local_addr(), 1);
        let mut received = 0;
        while received < 5 {
            assert!(readable(&right, PATIENCE), "received {received}");
            received += right.recv(1, |_, _| {}).unwrap().datagrams;
        }
        assert_eq!(right.recv(1, |_, _| {}).unwrap().datagrams, 0);
        assert!(!readable(&right, Duration::ZERO));
    }
}
