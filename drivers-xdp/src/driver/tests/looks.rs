//! What a park has seen, and what a receive may leave out because of it.

use std::net::UdpSocket;
use std::time::Duration;

use crate::driver::*;
use crate::testing::hosts;
use crate::veth::Veth;

const PATIENCE: Duration = Duration::from_secs(20);

/// A driver, and a socket on the same host: what it sends goes through the driver's socket, never through its rings.
fn neighbours(veth: &Veth) -> (XdpDriver, UdpSocket) {
    let (name, ip) = (veth.left().interface().to_owned(), veth.left().ipv4());
    veth.left().run(move || {
        let addr = SocketAddr::new(ip.into(), 0);
        let driver = XdpDriver::bind(addr, &Options::new(&name)).unwrap();
        (driver, UdpSocket::bind(addr).unwrap())
    })
}

/// Datagrams of one receive, and whether it says that there may be more.
fn receive(driver: &mut XdpDriver) -> (usize, bool) {
    let report = driver.recv(16, |_, _| {}).unwrap();
    (report.datagrams, report.budget_hit)
}

#[test]
fn what_comes_to_the_socket_behind_a_park_ends_the_next_park() {
    let Some(veth) = hosts(&crate::veth::Options::default()) else { return };
    let (mut driver, socket) = neighbours(&veth);
    let to = driver.local_addr();
    for _ in 0..3 {
        let now = driver.now();
        assert_eq!(driver.park(Some(now)).unwrap(), Wake::Deadline);
        socket.send_to(b"late", to).unwrap();
        assert_eq!(receive(&mut driver), (0, false));
        let late = driver.now().saturating_add(PATIENCE);
        assert_eq!(driver.park(Some(late)).unwrap(), Wake::Traffic);
        assert_eq!(receive(&mut driver), (1, false));
        assert_eq!(receive(&mut driver), (0, false));
    }
}

#[test]
fn a_receive_without_a_park_before_it_asks_the_socket() {
    let Some(veth) = hosts(&crate::veth::Options::default()) else { return };
    let (mut driver, socket) = neighbours(&veth);
    let now = driver.now();
    assert_eq!(driver.park(Some(now)).unwrap(), Wake::Deadline);
    assert_eq!(receive(&mut driver), (0, false));
    socket.send_to(b"late", driver.local_addr()).unwrap();
    assert_eq!(receive(&mut driver), (1, false));
}

#[test]
fn whoever_watches_the_descriptor_is_not_told_of_nothing_while_there_is_something() {
    let Some(veth) = hosts(&crate::veth::Options::default()) else { return };
    let (mut driver, socket) = neighbours(&veth);
    let _ = driver.poll_fd();
    let now = driver.now();
    assert_eq!(driver.park(Some(now)).unwrap(), Wake::Deadline);
    socket.send_to(b"late", driver.local_addr()).unwrap();
    assert_eq!(receive(&mut driver), (1, false));
}
