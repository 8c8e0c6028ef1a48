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

#[test]
fn a_second_thread_is_refused_with_the_reason() {
    let mut driver = bind(SocketAddr::new(V4, 0));
    driver.recv(9, |_, _| {}).unwrap();
    let thread = thread::spawn(move || {
        let now = driver.now();
        driver.park(Some(now)).unwrap_err()
    });
    let error = thread.join().unwrap();
    assert!(error.to_string().contains("the thread that used the driver first"), "{error}");
}
