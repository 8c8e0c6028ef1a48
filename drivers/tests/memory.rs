//! The in-memory pair: what every driver must do, at its simplest.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use wraith_drivers::{
    Driver, ManualClock, MemoryDriver, MemoryOptions, Mode, Park, RxReport, TooLong, TxReport, Unpark, Wake,
};
use wraith_proto::{Ecn, Instant, RxMeta, TxMeta, TxQueue, Via};

fn meta_to(driver: &MemoryDriver) -> TxMeta {
    TxMeta { to: driver.local_addr(), from: None, via: Via(0), ecn: Ecn::NotEct }
}

fn commit(driver: &mut MemoryDriver, meta: &TxMeta, bytes: &[u8]) -> bool {
    let Some(room) = driver.tx().reserve(meta, bytes.len()) else { return false };
    room[..bytes.len()].copy_from_slice(bytes);
    driver.tx().commit(bytes.len());
    true
}

fn receive(driver: &mut MemoryDriver, budget: usize) -> (Vec<(RxMeta, Vec<u8>)>, RxReport) {
    let mut datagrams = Vec::new();
    let report = driver.recv(budget, |meta, data| datagrams.push((*meta, data.to_vec()))).unwrap();
    (datagrams, report)
}

#[test]
fn datagrams_cross_both_ways_in_order_with_their_meta() {
    let (mut left, mut right) = MemoryDriver::pair(&MemoryOptions::default());
    let to_right = TxMeta { ecn: Ecn::Ect0, ..meta_to(&right) };
    assert!(commit(&mut left, &to_right, b"one"));
    assert!(commit(&mut left, &to_right, b""));
    assert!(commit(&mut left, &to_right, b"three"));
    let sent = TxReport { sent: 3, ..TxReport::default() };
    assert_eq!(left.flush().unwrap(), sent);
    let to_left = meta_to(&left);
    assert!(commit(&mut right, &to_left, b"back"));
    assert_eq!(right.flush().unwrap().sent, 1);

    let (datagrams, report) = receive(&mut right, 9);
    assert_eq!(report, RxReport { datagrams: 3, truncated: 0, budget_hit: false });
    let meta =
        RxMeta { from: left.local_addr(), to: Some(right.local_addr().ip()), via: Via(0), ecn: Ecn::Ect0 };
    assert_eq!(datagrams, [(meta, b"one".to_vec()), (meta, vec![]), (meta, b"three".to_vec())]);
    let (datagrams, _) = receive(&mut left, 9);
    assert_eq!(datagrams[0].1, b"back");
    assert_eq!(datagrams[0].0.from, right.local_addr());
}

#[test]
fn every_size_up_to_the_mtu_crosses_and_longer_ones_are_dropped_and_counted() {
    let options = MemoryOptions { mtu: 1300, max_datagram: 1500, ..MemoryOptions::default() };
    let (mut left, mut right) = MemoryDriver::pair(&options);
    assert_eq!(left.caps().max_datagram, 1300);
    assert_eq!(left.caps().mode, Mode::Memory);
    let meta = meta_to(&right);
    for len in 0..=1500 {
        let bytes = vec![len as u8; len];
        assert!(commit(&mut left, &meta, &bytes));
        let report = left.flush().unwrap();
        let (datagrams, _) = receive(&mut right, 2);
        if len <= 1300 {
            assert_eq!(report, TxReport { sent: 1, ..TxReport::default() });
            assert_eq!(datagrams[0].1, bytes);
        } else {
            let too_long = Some(TooLong { to: meta.to, len });
            assert_eq!(report, TxReport { dropped: 1, too_long, ..TxReport::default() });
            assert!(datagrams.is_empty());
        }
    }
    assert!(left.tx().reserve(&meta, 1501).is_none());
}

#[test]
fn a_datagram_longer_than_a_receive_slot_is_counted_and_not_lent() {
    let options = MemoryOptions { slot_bytes: [1472, 1000], ..MemoryOptions::default() };
    let (mut left, mut right) = MemoryDriver::pair(&options);
    assert_eq!((left.caps().max_datagram, right.caps().max_datagram), (1472, 1000));
    let meta = meta_to(&right);
    for len in [1000, 1001, 1472, 1] {
        assert!(commit(&mut left, &meta, &vec![7; len]));
    }
    assert_eq!(left.flush().unwrap().sent, 4);
    let (datagrams, report) = receive(&mut right, 9);
    assert_eq!(report, RxReport { datagrams: 2, truncated: 2, budget_hit: false });
    assert_eq!(datagrams.iter().map(|(_, data)| data.len()).collect::<Vec<_>>(), [1000, 1]);
}

#[test]
fn datagrams_without_a_route_are_dropped_and_counted() {
    let (mut left, mut right) = MemoryDriver::pair(&MemoryOptions::default());
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 77);
    let stranger = Some(IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9)));
    let good = meta_to(&right);
    assert!(commit(&mut left, &TxMeta { to: nowhere, ..good }, b"lost"));
    assert!(commit(&mut left, &TxMeta { from: stranger, ..good }, b"lost"));
    let own = Some(left.local_addr().ip());
    assert!(commit(&mut left, &TxMeta { from: own, ..good }, b"kept"));
    assert_eq!(left.flush().unwrap(), TxReport { sent: 1, dropped: 2, ..TxReport::default() });
    assert_eq!(receive(&mut right, 9).0[0].1, b"kept");
}

#[test]
fn a_full_queue_lends_nothing_until_the_receiver_makes_room() {
    let options = MemoryOptions { tx_slots: 2, rx_slots: 3, ..MemoryOptions::default() };
    let (mut left, mut right) = MemoryDriver::pair(&options);
    let meta = meta_to(&right);
    let (mut committed, mut sent) = (0u8, 0);
    for _ in 0..4 {
        while commit(&mut left, &meta, &[committed]) {
            committed += 1;
        }
        let report = left.flush().unwrap();
        sent += report.sent;
        assert_eq!(usize::from(committed), sent + report.in_flight);
    }
    assert_eq!((committed, sent), (5, 3));
    assert!(left.tx().reserve(&meta, 1).is_none());

    let (datagrams, report) = receive(&mut right, 1);
    assert_eq!((datagrams[0].1[0], report.budget_hit), (0, true));
    assert_eq!(left.flush().unwrap(), TxReport { sent: 1, in_flight: 1, ..TxReport::default() });
    assert!(commit(&mut left, &meta, &[5]));
    let (datagrams, report) = receive(&mut right, 3);
    assert_eq!(datagrams.iter().map(|(_, data)| data[0]).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(!report.budget_hit);
    assert_eq!(left.flush().unwrap().sent, 2);
    let (datagrams, _) = receive(&mut right, 9);
    assert_eq!(datagrams.iter().map(|(_, data)| data[0]).collect::<Vec<_>>(), [4, 5]);
}

#[test]
fn a_reservation_without_commit_is_reused() {
    let (mut left, mut right) = MemoryDriver::pair(&MemoryOptions::default());
    let meta = meta_to(&right);
    let address = left.tx().reserve(&meta, 1200).unwrap().as_ptr();
    for _ in 0..100_000 {
        let room = left.tx().reserve(&meta, 1200).unwrap();
        assert_eq!(room.as_ptr(), address);
        room[0] = 1;
    }
    assert_eq!(left.flush().unwrap(), TxReport::default());
    left.tx().commit(1200);
    assert_eq!(left.flush().unwrap(), TxReport::default(), "a flush ends a reservation");
    assert!(commit(&mut left, &meta, b"x"));
    left.tx().commit(1);
    assert_eq!(left.flush().unwrap().sent, 1, "a commit counts once");
    assert_eq!(receive(&mut right, 9).0.len(), 1);
}

#[test]
fn a_park_ends_at_its_deadline_and_not_before() {
    let (mut left, _right) = MemoryDriver::pair(&MemoryOptions::default());
    let until = left.now().saturating_add(Duration::from_millis(5));
    assert_eq!(left.park(Some(until)).unwrap(), Wake::Deadline);
    assert!(left.now() >= until);
}

#[test]
fn traffic_ends_a_park_before_and_after_it_begins() {
    let (mut left, mut right) = MemoryDriver::pair(&MemoryOptions::default());
    let meta = meta_to(&right);
    assert!(commit(&mut left, &meta, b"early"));
    left.flush().unwrap();
    assert_eq!(right.park(None).unwrap(), Wake::Traffic);
    receive(&mut right, 9);
    let sender = thread::spawn(move || {
        assert!(commit(&mut left, &meta, b"late"));
        left.flush().unwrap()
    });
    assert_eq!(right.park(None).unwrap(), Wake::Traffic);
    assert_eq!(receive(&mut right, 9).0[0].1, b"late");
    assert_eq!(sender.join().unwrap().sent, 1);
}

#[test]
fn room_at_the_receiver_ends_the_park_of_a_sender_that_was_held_back() {
    let options = MemoryOptions { rx_slots: 1, ..MemoryOptions::default() };
    let (mut left, mut right) = MemoryDriver::pair(&options);
    let meta = meta_to(&right);
    assert!(commit(&mut left, &meta, b"1"));
    assert!(commit(&mut left, &meta, b"2"));
    assert_eq!(left.flush().unwrap().in_flight, 1);
    let receiver = thread::spawn(move || receive(&mut right, 1).0.len());
    assert_eq!(left.park(None).unwrap(), Wake::Traffic);
    assert_eq!(left.flush().unwrap(), TxReport { sent: 1, ..TxReport::default() });
    assert_eq!(receiver.join().unwrap(), 1);
}

#[test]
fn an_unpark_ends_the_running_or_the_next_park_once() {
    let (mut left, _right) = MemoryDriver::pair(&MemoryOptions::default());
    let unparker = left.unparker();
    unparker.unpark().unwrap();
    unparker.unpark().unwrap();
    assert_eq!(left.park(None).unwrap(), Wake::Unparked);
    let now = left.now();
    assert_eq!(left.park(Some(now)).unwrap(), Wake::Deadline, "two unparks count once");
    let other = thread::spawn(move || unparker.unpark().unwrap());
    assert_eq!(left.park(None).unwrap(), Wake::Unparked);
    other.join().unwrap();
}

#[test]
fn with_a_manual_clock_time_passes_only_by_its_owner() {
    let clock = ManualClock::new(Instant::from_nanos(1000));
    let options = MemoryOptions { clock: Some(clock.clone()), ..MemoryOptions::default() };
    let (mut left, right) = MemoryDriver::pair(&options);
    assert_eq!(left.now(), Instant::from_nanos(1000));
    clock.advance(Duration::from_nanos(500));
    assert_eq!((left.now(), right.now()), (clock.now(), clock.now()));

    let until = Instant::from_nanos(2000);
    let owner = thread::spawn(move || {
        clock.set(Instant::from_nanos(1999));
        clock.set(until);
    });
    assert_eq!(left.park(Some(until)).unwrap(), Wake::Deadline);
    assert_eq!(left.now(), until);
    owner.join().unwrap();
}
