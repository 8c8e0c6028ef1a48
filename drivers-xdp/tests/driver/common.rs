//! What several tests need: hosts, drivers on them, and datagrams between them.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use wraith_drivers::{Driver, Park, Wake};
use wraith_drivers_xdp::veth::{self, Side, Veth};
use wraith_drivers_xdp::{BindError, Options, XdpDriver};
use wraith_proto::{Ecn, RxMeta, TxMeta, TxQueue, Via};

/// Far more than a line inside a machine takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Two hosts, or `None` if this user may not make them, which is said aloud.
pub(crate) fn hosts(change: impl FnOnce(&mut veth::Options)) -> Option<Veth> {
    let mut options = veth::Options::default();
    change(&mut options);
    match Veth::new(&options) {
        Ok(veth) => Some(veth),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            wraith_conformance::not_tested(format_args!("hosts of its own take root: {error}"));
            None
        }
        Err(error) => panic!("no hosts: {error}"),
    }
}

/// Opens a driver on a host.
pub(crate) fn try_bind(
    side: &Side,
    ip: impl Into<IpAddr>,
    port: u16,
    change: impl FnOnce(&mut Options),
) -> Result<XdpDriver, BindError> {
    let mut options = Options::new(side.interface());
    change(&mut options);
    let addr = SocketAddr::new(ip.into(), port);
    side.run(move || XdpDriver::bind(addr, &options))
}

/// Opens a driver on a host, which must succeed.
pub(crate) fn bind(side: &Side, ip: impl Into<IpAddr>) -> XdpDriver {
    try_bind(side, ip, 0, |_| {}).unwrap()
}

/// Runs a command on a host.
pub(crate) fn command(side: &Side, line: &str) {
    let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
    let status = side.run(move || Command::new(&words[0]).args(&words[1..]).status().unwrap());
    assert!(status.success(), "{line}");
}

/// A socket of the system on a host.
pub(crate) fn socket(side: &Side, ip: impl Into<IpAddr>) -> UdpSocket {
    let addr = SocketAddr::new(ip.into(), 0);
    let socket = side.run(move || UdpSocket::bind(addr).unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Meta of a plain datagram.
pub(crate) fn to(addr: SocketAddr) -> TxMeta {
    TxMeta { to: addr, from: None, via: Via(0), ecn: Ecn::NotEct }
}

/// Commits a datagram, which must find room.
pub(crate) fn commit(driver: &mut XdpDriver, meta: &TxMeta, data: &[u8]) {
    driver.tx().reserve(meta, data.len()).expect("room")[..data.len()].copy_from_slice(data);
    driver.tx().commit(data.len());
}

/// Sends a datagram, which must leave at once.
pub(crate) fn send(driver: &mut XdpDriver, meta: &TxMeta, data: &[u8]) {
    commit(driver, meta, data);
    let report = driver.flush().unwrap();
    assert_eq!((report.sent, report.dropped, report.in_flight), (1, 0, 0));
}

/// The next `count` datagrams, and no more than these.
pub(crate) fn receive<D: Park>(driver: &mut D, count: usize) -> Vec<(RxMeta, Vec<u8>)> {
    let mut arrivals = Vec::new();
    let until = driver.now().saturating_add(PATIENCE);
    loop {
        driver.recv(64, |meta, data| arrivals.push((*meta, data.to_vec()))).unwrap();
        if arrivals.len() >= count {
            assert_eq!(arrivals.len(), count);
            return arrivals;
        }
        assert_ne!(driver.park(Some(until)).unwrap(), Wake::Deadline, "{} of {count} came", arrivals.len());
    }
}

/// Datagrams that the system's sockets of a host have sent and received (`/proc/net/snmp`, `Udp:` and `Udp6`).
pub(crate) fn kernel_counts(side: &Side) -> (u64, u64) {
    side.run(|| {
        let table = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let mut lines = table.lines().filter(|line| line.starts_with("Udp:"));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let value = |wanted: &str| {
            let at = names.split(' ').position(|name| name == wanted).unwrap();
            values.split(' ').nth(at).unwrap().parse().unwrap()
        };
        (value("OutDatagrams"), value("InDatagrams"))
    })
}
