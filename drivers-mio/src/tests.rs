//! What a socket does only under pressure, brought about by hand.

use std::net::{Ipv4Addr, UdpSocket};

use wraith_proto::{Ecn, TxMeta, TxQueue, Via};

use super::*;

fn bind() -> MioDriver {
    MioDriver::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &Options::default()).unwrap()
}

fn commit(driver: &mut MioDriver, to: SocketAddr, bytes: &[u8]) {
    let meta = TxMeta { to, from: None, via: Via(0), ecn: Ecn::NotEct };
    driver.tx().reserve(&meta, bytes.len()).unwrap().copy_from_slice(bytes);
    driver.tx().commit(bytes.len());
}

/// Flushes against a socket that fails with `code`.
fn flush_failing(driver: &mut MioDriver, code: i32) {
    let report = driver.tx.flush(driver.socket.family(), |_| Err(io::Error::from_raw_os_error(code)));
    assert_eq!((report.sent, report.in_flight), (0, 1));
    driver.note_flush().unwrap();
}

/// `DRV §6.9, §7.3`
#[test]
fn room_in_the_socket_ends_the_park_of_a_driver_that_keeps_a_tail() {
    let mut left = bind();
    let right = bind();
    for _ in 0..3 {
        commit(&mut left, right.local_addr(), b"tail");
        assert!(!left.interest().writable);
        flush_failing(&mut left, libc::EAGAIN);
        assert_eq!(left.interest(), Interest { readable: true, writable: true });
        assert_eq!(left.park(None).unwrap(), Wake::Traffic);
        assert_eq!(left.flush().unwrap().sent, 1);
        assert!(!left.interest().writable);
        let now = left.now();
        assert_eq!(left.park(Some(now)).unwrap(), Wake::Deadline, "room is not watched any more");
    }
}

/// `DRV §6.9, §7.3`
#[test]
fn missing_memory_ends_a_park_after_a_moment_and_no_sooner() {
    let mut left = bind();
    let right = bind();
    commit(&mut left, right.local_addr(), b"tail");
    let before = left.now();
    flush_failing(&mut left, libc::ENOBUFS);
    assert!(!left.interest().writable, "a socket that is writable all the time would spin the loop");
    assert_eq!(left.park(None).unwrap(), Wake::Traffic);
    assert!(left.now() >= before.saturating_add(RETRY));
    assert_eq!(left.flush().unwrap().sent, 1);
    assert_eq!(left.retry_at, None);
}

#[test]
fn an_early_deadline_comes_before_the_moment_of_a_retry() {
    let mut left = bind();
    let right = bind();
    commit(&mut left, right.local_addr(), b"tail");
    flush_failing(&mut left, libc::ENOBUFS);
    let now = left.now();
    assert_eq!(left.park(Some(now)).unwrap(), Wake::Deadline);
}

/// `DRV §1.2`
#[test]
fn a_device_that_refuses_segmentation_is_noted_in_the_caps() {
    let mut left = bind();
    let right = bind();
    assert_eq!(left.caps().mode, Mode::SyscallGso);
    let mut first = true;
    commit(&mut left, right.local_addr(), b"one");
    commit(&mut left, right.local_addr(), b"two");
    let socket = &left.socket;
    let report = left.tx.flush(socket.family(), |transmit| {
        if std::mem::take(&mut first) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        socket.send(transmit)
    });
    assert_eq!((report.sent, report.dropped, report.syscalls), (2, 0, 3));
    left.note_flush().unwrap();
    let caps = left.caps();
    assert_eq!((caps.mode, caps.tx_segments, caps.limited_by), (Mode::Syscall, 1, Some(Limit::Device)));
}

/// `DRV §2.11`
#[test]
#[cfg(target_os = "linux")]
fn a_port_that_refuses_is_no_error_even_where_the_system_reports_it() {
    let mut left = bind();
    left.socket.report_refusals().unwrap();
    let mut right = bind();
    let closed = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();

    // Loopback answers within the send, so that the next call meets the refusal: here a send, …
    commit(&mut left, closed, b"nobody");
    assert_eq!(left.flush().unwrap().sent, 1);
    commit(&mut left, right.local_addr(), b"somebody");
    let report = left.flush().unwrap();
    assert_eq!((report.sent, report.dropped, report.syscalls), (1, 0, 2));
    // … there a receive.
    commit(&mut left, closed, b"nobody");
    assert_eq!(left.flush().unwrap().sent, 1);
    assert_eq!(left.recv(9, |_, _| {}).unwrap(), RxReport::default());

    assert_eq!(right.park(None).unwrap(), Wake::Traffic);
    let mut received = Vec::new();
    right.recv(9, |_, data| received.push(data.to_vec())).unwrap();
    assert_eq!(received, [b"somebody"]);
}

#[test]
fn sockets_that_both_ask_for_it_share_a_port_and_others_do_not() {
    let shared = Options { reuse_port: true, ..Options::default() };
    let first = MioDriver::bind((Ipv4Addr::LOCALHOST, 0).into(), &shared).unwrap();
    let second = MioDriver::bind(first.local_addr(), &shared).unwrap();
    assert_eq!(second.local_addr(), first.local_addr());
    let refused = MioDriver::bind(first.local_addr(), &Options::default()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    let alone = bind();
    let refused = MioDriver::bind(alone.local_addr(), &shared).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
}
