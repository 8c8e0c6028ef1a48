//! Ways to send and wait that have to be asked for: they carry the same, and the capabilities say what they became.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use wraith_drivers::{Driver, Limit, Mode, Park, Unpark, Wake};
use wraith_drivers_uring::{BindError, Options, Step, UringDriver, ZeroCopy};
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PATIENCE: Duration = Duration::from_secs(10);

/// A driver, or none if the system refuses `step`.
fn bind(options: &Options, step: Option<Step>) -> Option<UringDriver> {
    match UringDriver::bind(SocketAddr::new(V4, 0), options) {
        Ok(driver) => Some(driver),
        Err(BindError::Refused(refusal)) if step == Some(refusal.step) => {
            println!("not run: {refusal}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Sends 2,000 datagrams of changing length from one driver to the other and looks at each.
fn exchange(left: &mut UringDriver, right: &mut UringDriver) {
    let meta = TxMeta { to: right.local_addr(), from: None, via: Via(0), ecn: Ecn::Ect1 };
    let len = |index: u32| 4 + (index as usize / 7 * 131) % 3000;
    let (mut committed, mut settled, mut expected) = (0, 0, 0);
    while expected < 2000 {
        // No more on the way than the socket holds.
        while committed < 2000 && committed < expected + 300 {
            let Some(room) = left.tx().reserve(&meta, len(committed)) else { break };
            room.fill(committed as u8);
            room[..4].copy_from_slice(&committed.to_be_bytes());
            left.tx().commit(len(committed));
            committed += 1;
        }
        let report = left.flush().unwrap();
        assert_eq!(report.dropped, 0);
        settled += report.sent;
        assert_eq!(settled + report.in_flight, committed as usize);
        let report = right
            .recv(64, |meta, data| {
                assert_eq!((data.len(), meta.ecn), (len(expected), Ecn::Ect1), "datagram {expected}");
                assert_eq!(data[..4], expected.to_be_bytes());
                assert!(data[4..].iter().all(|byte| *byte == expected as u8));
                expected += 1;
            })
            .unwrap();
        if report.datagrams == 0 && expected < committed {
            let until = right.now().saturating_add(PATIENCE);
            assert_eq!(right.park(Some(until)).unwrap(), Wake::Traffic, "{expected} came");
        }
    }
    while settled < 2000 {
        let until = left.now().saturating_add(PATIENCE);
        assert_eq!(left.park(Some(until)).unwrap(), Wake::Traffic);
        settled += left.flush().unwrap().sent;
    }
}

#[test]
fn zero_copy_ends_where_the_system_copies_and_nothing_is_lost() {
    // A buffer that every system grants.
    let options =
        Options { zero_copy: ZeroCopy::UntilCopied, send_buffer_bytes: 128 << 10, ..Options::default() };
    let mut left = bind(&options, None).unwrap();
    let mut right = bind(&Options::default(), None).unwrap();
    assert_eq!((left.caps().mode, left.caps().limited_by), (Mode::UringZeroCopy, None));
    exchange(&mut left, &mut right);
    // Loopback copies what it delivers.
    assert_eq!((left.caps().mode, left.caps().limited_by), (Mode::Uring, Some(Limit::Device)));
    exchange(&mut left, &mut right);
}

#[test]
fn zero_copy_goes_on_if_it_must_and_a_slot_waits_for_the_network() {
    let options = Options { zero_copy: ZeroCopy::Always, slots: 2, ..Options::default() };
    let mut left = bind(&options, None).unwrap();
    let mut right = bind(&Options::default(), None).unwrap();
    exchange(&mut left, &mut right);
    assert_eq!(left.caps().mode, Mode::UringZeroCopy);
    exchange(&mut right, &mut left);
}

#[test]
fn a_thread_of_the_kernel_submits_and_the_driver_may_change_threads() {
    let options = Options { poll_thread: Some(Duration::from_millis(5)), ..Options::default() };
    let Some(mut left) = bind(&options, Some(Step::Setup)) else { return };
    let mut right = bind(&options, None).unwrap();
    exchange(&mut left, &mut right);
    // It goes to sleep meanwhile and is woken.
    let until = left.now().saturating_add(Duration::from_millis(20));
    assert_eq!(left.park(Some(until)).unwrap(), Wake::Deadline);
    left.unparker().unpark().unwrap();
    assert_eq!(left.park(None).unwrap(), Wake::Unparked);
    let thread = std::thread::spawn(move || exchange(&mut left, &mut right));
    thread.join().unwrap();
}

#[test]
fn busy_polling_changes_no_result() {
    let options = Options { busy_poll: Some(Duration::from_micros(50)), ..Options::default() };
    let Some(mut left) = bind(&options, Some(Step::BusyPoll)) else { return };
    let mut right = bind(&options, None).unwrap();
    exchange(&mut left, &mut right);
    let until = left.now().saturating_add(Duration::from_millis(1));
    assert_eq!(left.park(Some(until)).unwrap(), Wake::Deadline);
    assert!(left.now() >= until);
}

#[test]
fn the_port_is_free_at_once_whatever_was_asked_for() {
    let mut addr = SocketAddr::new(V4, 0);
    let sink = std::net::UdpSocket::bind((V4, 0)).unwrap();
    for round in 0..30 {
        let options = Options {
            zero_copy: if round % 2 == 0 { ZeroCopy::Always } else { ZeroCopy::Never },
            poll_thread: (round % 3 == 0).then_some(Duration::from_millis(1)),
            ..Options::default()
        };
        let mut driver = UringDriver::bind(addr, &options).unwrap();
        addr = driver.local_addr();
        let meta = TxMeta { to: sink.local_addr().unwrap(), from: None, via: Via(0), ecn: Ecn::NotEct };
        driver.tx().reserve(&meta, 60_000).unwrap().fill(1);
        driver.tx().commit(60_000);
        driver.flush().unwrap();
    }
}
