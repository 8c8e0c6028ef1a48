//! Links around the in-memory driver, in virtual time.

use std::time::Duration;

use wraith_drivers::{
    Driver, ManualClock, MemoryDriver, MemoryOptions, Netem, Park, RxReport, TxReport, Wake,
};
use wraith_proto::{Ecn, Instant, TxMeta, TxQueue, Via};
use wraith_sim::LinkConfig;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn pair(outgoing: LinkConfig, incoming: LinkConfig) -> (ManualClock, Netem<MemoryDriver>, MemoryDriver) {
    let clock = ManualClock::new(Instant::from_nanos(1_000_000_000));
    let options = MemoryOptions { clock: Some(clock.clone()), ..MemoryOptions::default() };
    let (left, right) = MemoryDriver::pair(&options);
    (clock, Netem::new(left, outgoing, incoming, 7), right)
}

fn commit(driver: &mut impl Driver, to: &impl Driver, bytes: &[u8]) -> bool {
    let meta = TxMeta { to: to.local_addr(), from: None, via: Via(0), ecn: Ecn::NotEct };
    let Some(room) = driver.tx().reserve(&meta, bytes.len()) else { return false };
    room[..bytes.len()].copy_from_slice(bytes);
    driver.tx().commit(bytes.len());
    true
}

fn receive(driver: &mut impl Driver, budget: usize) -> (Vec<Vec<u8>>, RxReport) {
    let mut datagrams = Vec::new();
    let report = driver.recv(budget, |_, data| datagrams.push(data.to_vec())).unwrap();
    (datagrams, report)
}

#[test]
fn what_is_sent_arrives_after_the_links_delay() {
    let (clock, mut left, mut right) =
        pair(LinkConfig::perfect().with_latency(MS(20)), LinkConfig::perfect());
    assert!(commit(&mut left, &right, b"one"));
    assert_eq!(left.flush().unwrap(), TxReport { sent: 1, ..TxReport::default() });
    assert!(receive(&mut right, 9).0.is_empty());
    clock.advance(MS(19));
    left.flush().unwrap();
    assert!(receive(&mut right, 9).0.is_empty());
    clock.advance(MS(1));
    left.flush().unwrap();
    assert_eq!(receive(&mut right, 9).0, [b"one"]);
}

#[test]
fn what_comes_in_is_lent_after_the_links_delay_within_the_budget() {
    let (clock, mut left, mut right) = pair(LinkConfig::perfect(), LinkConfig::perfect().with_latency(MS(5)));
    for byte in 0..3 {
        assert!(commit(&mut right, &left, &[byte]));
    }
    right.flush().unwrap();
    assert_eq!(receive(&mut left, 9), (vec![], RxReport::default()));
    clock.advance(MS(5));
    let some = RxReport { datagrams: 2, truncated: 0, budget_hit: true };
    assert_eq!(receive(&mut left, 2), (vec![vec![0], vec![1]], some));
    assert_eq!(receive(&mut left, 2).0, [[2]]);
}

#[test]
fn loss_and_duplication_are_counted_in_each_direction() {
    let lossy = LinkConfig::perfect().with_loss(300_000).with_duplicate(200_000);
    let (_, mut left, mut right) = pair(lossy, lossy);
    let mut arrived = [0; 2];
    for _ in 0..1_000 {
        assert!(commit(&mut left, &right, b"out"));
        assert!(commit(&mut right, &left, b"in"));
        left.flush().unwrap();
        right.flush().unwrap();
        arrived[0] += receive(&mut right, 99).0.len() as u64;
        arrived[1] += receive(&mut left, 99).0.len() as u64;
    }
    let (outgoing, incoming) = left.counters();
    for (counters, arrived) in [(outgoing, arrived[0]), (incoming, arrived[1])] {
        assert_eq!((counters.offered, counters.delivered), (1_000, arrived));
        assert!((250..350).contains(&counters.lost) && counters.duplicated > 100);
    }
}

#[test]
fn a_full_driver_inside_keeps_what_is_due_on_the_link() {
    let (_, mut left, mut right) = pair(LinkConfig::perfect(), LinkConfig::perfect());
    let slots = left.caps().tx_slots;
    let mut sent = 0_u32;
    for _ in 0..4 {
        for _ in 0..slots {
            assert!(commit(&mut left, &right, &sent.to_be_bytes()));
            sent += 1;
        }
        assert_eq!(left.flush().unwrap().sent, slots);
    }
    let mut arrived = 0_u32;
    for _ in 0..20 {
        for datagram in receive(&mut right, 999).0 {
            assert_eq!(datagram, arrived.to_be_bytes(), "in order");
            arrived += 1;
        }
        left.flush().unwrap();
    }
    assert_eq!(arrived, sent);
}

#[test]
fn a_park_ends_when_a_link_has_something() {
    let delayed = LinkConfig::perfect().with_latency(MS(10));
    let (clock, mut left, mut right) = pair(delayed, delayed);
    let start = clock.now();
    assert!(commit(&mut right, &left, b"in"));
    right.flush().unwrap();
    assert!(receive(&mut left, 9).0.is_empty());
    clock.advance(MS(10));
    assert_eq!(left.park(Some(start.saturating_add(MS(50)))).unwrap(), Wake::Traffic);
    assert_eq!(receive(&mut left, 9).0, [b"in"]);

    assert!(commit(&mut left, &right, b"out"));
    left.flush().unwrap();
    clock.advance(MS(10));
    assert_eq!(left.park(Some(start.saturating_add(MS(20)))).unwrap(), Wake::Deadline, "it moved on, too");
    assert_eq!(receive(&mut right, 9).0, [b"out"]);
}

#[test]
fn the_links_can_be_changed_under_way() {
    let (_, mut left, mut right) = pair(LinkConfig::perfect(), LinkConfig::perfect());
    left.set_links(LinkConfig::perfect().with_loss(1_000_000), LinkConfig::perfect());
    assert!(commit(&mut left, &right, b"lost"));
    left.flush().unwrap();
    left.set_links(LinkConfig::perfect(), LinkConfig::perfect());
    assert!(commit(&mut left, &right, b"kept"));
    left.flush().unwrap();
    assert_eq!(receive(&mut right, 9).0, [b"kept"]);
    assert_eq!(receive(&mut left.into_inner(), 9).0, [b""; 0]);
}
