//! Fresh keys while data flow (`PROTO §5.13` to `§5.18`).

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use wraith_proto::crypto::TAG_LEN;
use wraith_proto::wire::{Frame, Frames, PACKET_HEADER_LEN, split_body};
use wraith_proto::{DropReason, Event, SessionHandle};
use wraith_sim::{LEFT, LinkConfig, NonceRecorder, Pair, PairConfig, RIGHT, Side, Transparent, Verdict};

use crate::support::{Bulk, BulkPair, MS, full, send, transfer};

const LIMIT: Duration = Duration::from_mins(5);

/// A connected pair that watches its nonces, and takes fresh keys after `packets` or `interval`.
fn watched(
    config: PairConfig,
    packets: u64,
    interval: Duration,
) -> (BulkPair, SessionHandle, SessionHandle, &'static NonceRecorder) {
    let recorder = NonceRecorder::leak(Transparent::CHECKED);
    let config = config.with_both(|config| {
        config.crypto = recorder;
        config.transport = config.transport.with_rekey_packets(packets).with_rekey_interval(interval);
    });
    let mut pair = Pair::with_hosts(config, Bulk::new(), Bulk::new());
    let (left, right) = pair.connect();
    (pair, left, right, recorder)
}

fn epochs(pair: &mut BulkPair, left: SessionHandle, right: SessionHandle) -> (u32, u32) {
    let left = pair.left.endpoint.session(left).expect("it lives").stats().epoch;
    (left, pair.right.endpoint.session(right).expect("it lives").stats().epoch)
}

fn closed(pair: &BulkPair) -> Vec<Event> {
    let both = pair.left.host.events.iter().chain(&pair.right.host.events);
    both.map(|&(_, event)| event).filter(|event| matches!(event, Event::Closed(_))).collect()
}

/// `PROTO §5.13`: a rekey costs no throughput. The line takes 157 ms for 2^12 packets.
#[test]
fn fresh_keys_every_4096_packets_cost_at_most_3_percent_of_the_throughput() {
    let link =
        LinkConfig::perfect().with_latency(MS(5)).with_rate(Some(250_000_000)).with_queue_bytes(400_000);
    let len = if full() { 1 << 30 } else { 100 << 20 };
    let [(without, none), (with, epochs_with)] = [u64::MAX, 1 << 12].map(|packets| {
        let (mut pair, left, right, _) = watched(PairConfig::new(3).with_link(link), packets, Duration::MAX);
        (transfer(&mut pair, left, len, LIMIT), epochs(&mut pair, left, right))
    });
    assert_eq!(none, (0, 0));
    // An exchange takes a round trip more: 10 ms and a full queue of 13 ms, in which 610 packets leave.
    let expected = (len / 1170 / (4096 + 610)) as u32;
    assert!(epochs_with.0 >= expected, "{epochs_with:?} of {expected}");
    assert_eq!(epochs_with.0, epochs_with.1);
    assert!(with.as_micros() * 100 <= without.as_micros() * 103, "{with:?} against {without:?}");
}

/// Crossing starts on a bad link: each end begins as soon as it may, so that most exchanges cross, and each of their
/// messages is lost, doubled, or late in some run. 200 seeds, or 1,000 on a full budget.
#[test]
fn no_loss_reordering_or_duplication_stops_fresh_keys_or_repeats_a_nonce() {
    let (mut epochs_seen, mut lost) = (0, 0);
    for seed in 0..if full() { 1000 } else { 200 } {
        let link = LinkConfig::perfect()
            .with_latency(MS(4))
            .with_jitter(MS(2))
            .with_loss(100_000)
            .with_duplicate(100_000)
            .with_reorder(100_000, MS(25))
            .with_rate(Some(20_000_000));
        let config = PairConfig::new(seed).with_link(link);
        let (mut pair, left, right, recorder) = watched(config, 1, Duration::ZERO);
        for _ in 0..6 {
            transfer(&mut pair, left, 60_000, LIMIT);
        }
        assert_eq!(closed(&pair), [], "seed {seed}");
        let (ours, theirs) = epochs(&mut pair, left, right);
        assert!(ours.abs_diff(theirs) <= 1, "seed {seed}: {ours} and {theirs}");
        assert!(ours >= 1, "seed {seed}: {ours}");
        assert_eq!(recorder.repeated(), 0, "seed {seed}");
        // At the end, an end may have had nothing to send in its newest epoch yet.
        assert!(recorder.keys() as u32 >= ours + theirs, "seed {seed}");
        epochs_seen += u64::from(ours);
        lost += pair.link(Side::Right).counters().lost + pair.link(Side::Left).counters().lost;
    }
    assert!(epochs_seen > 600, "{epochs_seen}");
    assert!(lost > 5000, "{lost}");
}

/// What becomes of one datagram.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mishap {
    Lost,
    Repeated,
    Late,
}

/// `PROTO §5.16`, `PROTO §5.17`: each single datagram of the first exchanges.
#[test]
fn each_message_of_an_exchange_may_be_lost_repeated_or_late() {
    for victim in 0..60 {
        for mishap in [Mishap::Lost, Mishap::Repeated, Mishap::Late] {
            let (ours, theirs) = run_with(victim, mishap);
            assert!(ours >= 2 && ours.abs_diff(theirs) <= 1, "{victim} {mishap:?}: {ours} and {theirs}");
        }
    }
}

/// The epochs after ten short transfers, of which something happens to datagram `victim`.
fn run_with(victim: u32, mishap: Mishap) -> (u32, u32) {
    let config = PairConfig::new(11).with_link(LinkConfig::perfect().with_latency(MS(10)));
    let (mut pair, left, right, recorder) = watched(config, 1, Duration::ZERO);
    let caught = Rc::new(RefCell::new(None));
    let (keep, mut count) = (Rc::clone(&caught), 0);
    pair.intercept(move |passing| {
        count += 1;
        if count - 1 != victim {
            return Verdict::Pass;
        }
        if mishap != Mishap::Lost {
            *keep.borrow_mut() = Some((passing.sender, passing.bytes.clone()));
        }
        if mishap == Mishap::Repeated { Verdict::Pass } else { Verdict::Drop }
    });
    for _ in 0..10 {
        transfer(&mut pair, left, 3000, LIMIT);
        pair.run_for(MS(40));
        if let Some((sender, bytes)) = caught.take() {
            let (to, from) = if sender == 0 { (Side::Right, LEFT) } else { (Side::Left, RIGHT) };
            pair.inject(to, from, &bytes);
        }
    }
    assert_eq!(closed(&pair), [], "{victim} {mishap:?}");
    assert_eq!(recorder.repeated(), 0);
    epochs(&mut pair, left, right)
}

/// `PROTO §5.14`: the first packet after two minutes begins, and silence does not.
#[test]
fn keys_are_renewed_two_minutes_old_with_the_next_packet() {
    let config = PairConfig::new(2).with_both(|config| {
        config.transport = config.transport.with_idle_timeout(Duration::ZERO);
        config.crypto = Transparent::CHECKED;
    });
    let mut pair = Pair::with_hosts(config, Bulk::new(), Bulk::new());
    let (left, right) = pair.connect();
    pair.run_for(Duration::from_secs(119));
    transfer(&mut pair, left, 5000, LIMIT);
    assert_eq!(epochs(&mut pair, left, right), (0, 0));
    pair.run_for(Duration::from_hours(1));
    assert_eq!(epochs(&mut pair, left, right), (0, 0));
    transfer(&mut pair, left, 5000, LIMIT);
    pair.run_for(MS(100));
    assert_eq!(epochs(&mut pair, left, right), (1, 1));
    assert_eq!(pair.left.endpoint.stats().epochs_begun, 1);
}

/// `PROTO §5.16`: neither end sends with keys that the other may not have.
#[test]
fn while_a_share_does_not_arrive_data_flow_on_with_the_old_keys() {
    let config = PairConfig::new(5).with_link(LinkConfig::perfect().with_latency(MS(2)));
    let (mut pair, left, right, _) = watched(config, 1, Duration::MAX);
    pair.intercept(|passing| {
        if passing.sender == 1 && has_share(passing.bytes) { Verdict::Drop } else { Verdict::Pass }
    });
    transfer(&mut pair, left, 4 << 20, LIMIT);
    assert_eq!(epochs(&mut pair, left, right), (0, 0));
    pair.stop_intercepting();
    transfer(&mut pair, left, 4 << 20, LIMIT);
    let (ours, theirs) = epochs(&mut pair, left, right);
    assert!(ours >= 1 && theirs >= 1, "{ours} and {theirs}");
    assert_eq!(closed(&pair), []);
}

/// Whether a packet that is not encrypted carries `KEY_SHARE`.
fn has_share(packet: &[u8]) -> bool {
    let mut body = packet[PACKET_HEADER_LEN..packet.len() - TAG_LEN].to_vec();
    let (_, frames) = split_body(&mut body).expect("a packet");
    Frames::new(frames).any(|frame| matches!(frame, Ok(Frame::KeyShare(_))))
}

/// `PROTO §5.9`, `PROTO §5.10`: the two bits of the phase come round, and old packets with them.
#[test]
fn what_was_recorded_in_former_epochs_changes_nothing() {
    let config = PairConfig::new(7).with_link(LinkConfig::perfect().with_latency(MS(2)));
    let (mut pair, left, right, recorder) = watched(config, 1, Duration::ZERO);
    let recorded = Rc::new(RefCell::new(Vec::new()));
    let keep = Rc::clone(&recorded);
    pair.intercept(move |passing| {
        if passing.sender == 0 {
            keep.borrow_mut().push(passing.bytes.clone());
        }
        Verdict::Pass
    });
    while epochs(&mut pair, left, right).1 < 9 {
        transfer(&mut pair, left, 30_000, LIMIT);
        pair.run_for(MS(200));
    }
    pair.stop_intercepting();
    let (at, before) = (epochs(&mut pair, left, right), *pair.right.endpoint.stats());
    for bytes in recorded.take() {
        pair.inject(Side::Right, LEFT, &bytes);
    }
    pair.run_for(MS(200));
    let after = *pair.right.endpoint.stats();
    assert_eq!((closed(&pair), epochs(&mut pair, left, right)), (vec![], at));
    assert_eq!(after.packets_opened, before.packets_opened);
    let dropped = |reason| after.drops(reason) - before.drops(reason);
    assert!(dropped(DropReason::BadTag) > 9 && dropped(DropReason::Replayed) > 0, "{after:?}");
    for _ in 0..2 {
        transfer(&mut pair, left, 30_000, LIMIT);
        pair.run_for(MS(200));
    }
    assert!(epochs(&mut pair, left, right).0 > at.0);
    assert_eq!(recorder.repeated(), 0);
}

/// `PROTO §5.14`: wherever in an exchange the line goes dead, it goes on with the line.
#[test]
fn an_exchange_outlives_a_line_that_is_dead_for_a_while() {
    for start in 0..40 {
        let config = PairConfig::new(8).with_link(LinkConfig::perfect().with_latency(MS(10)));
        let (mut pair, left, right, recorder) = watched(config, 1, Duration::ZERO);
        let mut count = 0;
        pair.intercept(move |_| {
            count += 1;
            if count > start { Verdict::Drop } else { Verdict::Pass }
        });
        send(&mut pair, left, 60_000);
        pair.run_for(Duration::from_secs(20));
        pair.stop_intercepting();
        pair.run_for(Duration::from_secs(5));
        // Round trips that took 20 s make the first of three probe timeouts long.
        for _ in 0..40 {
            transfer(&mut pair, left, 3000, LIMIT);
            pair.run_for(Duration::from_secs(1));
        }
        let (ours, theirs) = epochs(&mut pair, left, right);
        assert!(ours >= 2 && ours.abs_diff(theirs) <= 1, "{start}: {ours} and {theirs}");
        assert_eq!(closed(&pair), [], "{start}");
        assert_eq!(recorder.repeated(), 0);
    }
}
