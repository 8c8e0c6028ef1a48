//! The end of a driver: its port is free at once, whatever was under way.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;

use wraith_drivers::{Driver, Park, Unpark, Wake};
use wraith_drivers_uring::{Options, UringDriver};
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn bind(addr: SocketAddr) -> UringDriver {
    UringDriver::bind(addr, &Options::default()).unwrap()
}

/// Commits `count` datagrams to `to` and hands them to the network.
fn send(driver: &mut UringDriver, to: SocketAddr, count: usize) {
    let meta = TxMeta { to, from: None, via: Via(0), ecn: Ecn::NotEct };
    for _ in 0..count {
        driver.tx().reserve(&meta, 1200).unwrap().fill(7);
        driver.tx().commit(1200);
    }
    assert_eq!(driver.flush().unwrap().in_flight, 0);
}

#[test]
fn the_port_of_a_dropped_driver_can_be_bound_at_once() {
    for ip in [V4, IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
        let mut addr = SocketAddr::new(ip, 0);
        for _ in 0..100 {
            let mut driver = bind(addr);
            addr = driver.local_addr();
            assert_eq!(driver.recv(9, |_, _| {}).unwrap().datagrams, 0);
        }
    }
}

#[test]
fn the_port_is_free_at_once_although_datagrams_and_wake_ups_are_under_way() {
    let mut addr = SocketAddr::new(V4, 0);
    let mut other = bind(addr);
    for round in 0..50 {
        let mut driver = bind(addr);
        addr = driver.local_addr();
        send(&mut other, addr, 50);
        assert_eq!(driver.park(None).unwrap(), Wake::Traffic);
        assert_eq!(driver.recv(round, |_, _| {}).unwrap().datagrams, round);
        driver.unparker().unpark().unwrap();
        send(&mut driver, other.local_addr(), 50);
        send(&mut other, addr, 50);
    }
}

#[test]
fn a_driver_that_was_never_used_frees_its_port_on_any_thread() {
    let mut addr = SocketAddr::new(V4, 0);
    for _ in 0..20 {
        let driver = bind(addr);
        addr = driver.local_addr();
        thread::spawn(move || drop(driver)).join().unwrap();
    }
}

#[test]
fn a_driver_moves_to_another_thread_before_its_first_use() {
    let driver = bind(SocketAddr::new(V4, 0));
    let mut other = bind(SocketAddr::new(V4, 0));
    let (addr, back) = (driver.local_addr(), other.local_addr());
    let thread = thread::spawn(move || {
        let mut driver = driver;
        assert_eq!(driver.park(None).unwrap(), Wake::Traffic);
        assert_eq!(driver.recv(9, |_, _| {}).unwrap().datagrams, 1);
        send(&mut driver, back, 1);
    });
    send(&mut other, addr, 1);
    assert_eq!(other.park(None).unwrap(), Wake::Traffic);
    thread.join().unwrap();
}

/// Sends ten datagrams there and back; what was left by a budget before comes first.
fn exchange(driver: &mut UringDriver, other: &mut UringDriver, left: usize) {
    send(other, driver.local_addr(), 10);
    let mut received = 0;
    while received < left + 10 {
        let report = driver.recv(64, |_, data| assert_eq!(*data, [7; 1200])).unwrap();
        received += report.datagrams;
        if !report.budget_hit && received < left + 10 {
            assert_eq!(driver.park(None).unwrap(), Wake::Traffic);
        }
    }
    assert_eq!(received, left + 10);
    send(driver, other.local_addr(), 10);
    let mut back = 0;
    while back < 10 {
        assert_eq!(other.park(None).unwrap(), Wake::Traffic);
        back += other.recv(64, |_, _| {}).unwrap().datagrams;
    }
}

#[test]
fn a_driver_that_was_used_goes_on_in_any_thread_and_keeps_what_has_arrived() {
    let mut driver = bind(SocketAddr::new(V4, 0));
    let mut other = bind(SocketAddr::new(V4, 0));
    let mut left = 0;
    for round in 0..6 {
        exchange(&mut driver, &mut other, left);
        // Some that the budget leaves, some that wait in the socket.
        send(&mut other, driver.local_addr(), 5);
        assert_eq!(driver.park(None).unwrap(), Wake::Traffic);
        assert_eq!(driver.recv(2, |_, _| {}).unwrap().datagrams, 2);
        send(&mut other, driver.local_addr(), 5);
        driver.unparker().unpark().unwrap();
        // Back in this thread, which lives on; the other one has ended.
        let thread = thread::spawn(move || {
            if round % 2 == 0 {
                exchange(&mut driver, &mut other, 8);
                assert_eq!(driver.park(None).unwrap(), Wake::Unparked);
            }
            (driver, other)
        });
        (driver, other) = thread.join().unwrap();
        left = 0;
        if round % 2 == 1 {
            exchange(&mut driver, &mut other, 8);
            assert_eq!(driver.park(None).unwrap(), Wake::Unparked);
        }
    }
}

#[test]
fn a_driver_that_was_used_frees_its_port_on_any_thread() {
    let mut addr = SocketAddr::new(V4, 0);
    let mut other = bind(addr);
    for round in 0..20 {
        let mut driver = bind(addr);
        addr = driver.local_addr();
        send(&mut other, addr, 50);
        assert_eq!(driver.park(None).unwrap(), Wake::Traffic);
        send(&mut driver, other.local_addr(), 50);
        if round % 2 == 0 {
            thread::spawn(move || drop(driver)).join().unwrap();
        } else {
            // Its thread has ended.
            let used = thread::spawn(move || {
                driver.recv(3, |_, _| {}).unwrap();
                driver
            });
            drop(used.join().unwrap());
        }
    }
}
