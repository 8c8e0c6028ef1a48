//! Paths that come to carry less in mid-transfer, without a word.

use std::time::Duration;

use wraith_proto::{CloseReason, Congestion, Event, Limits};
use wraith_sim::Side;

use crate::support::{BulkPair, MINUTE, SECOND, config, connected, line, link, send, size, transfer, watch};

/// `PROTO §8.14`: 1,500 to 1,280 bytes per packet, without ICMP; what was lost comes again in smaller packets.
#[test]
fn a_path_that_shrinks_in_mid_transfer_is_noticed_and_the_transfer_goes_on() {
    let (mut pair, left, _) = connected(config(1, line(1_472), line(1_472)));
    pair.run_for(5 * SECOND);
    assert_eq!(size(&mut pair, Side::Left, left), 1_472);
    send(&mut pair, left, 20_000_000);
    pair.run_for(SECOND);
    let before = pair.right.host.received;
    assert!((1_000_000..19_000_000).contains(&before), "{before}");
    for side in [Side::Left, Side::Right] {
        pair.set_link(side, line(1_252));
    }
    let noticed = pair.run_until(|pair| pair.left.host.count(Event::MaxDatagramChanged) > 1, 2 * SECOND);
    assert!(noticed, "no change within two seconds");
    let done = pair.run_until(|pair| pair.right.host.received == 20_000_000, 20 * SECOND);
    assert!(done, "{} bytes", pair.right.host.received);
    pair.run_for(5 * SECOND);
    let found = size(&mut pair, Side::Left, left);
    assert!((1_234..=1_252).contains(&found), "{found}");
}

/// `PROTO §8.18`: what was too large for the path costs one reduction, and the speed is back as soon as the size has changed.
#[test]
fn a_transfer_regains_its_speed_within_seven_tenths_of_a_second() {
    for congestion in [Congestion::Bbr, Congestion::Cubic] {
        let (mut pair, left, _) = connected(config(7, line(1_472), line(1_472)).with_both(|config| {
            config.transport = config.transport.with_congestion(congestion);
        }));
        pair.run_for(5 * SECOND);
        send(&mut pair, left, 100_000_000);
        pair.run_for(2 * SECOND);
        let moves = |pair: &mut BulkPair, time: Duration| {
            let before = pair.right.host.received;
            pair.run_for(time);
            pair.right.host.received - before
        };
        let events =
            |pair: &mut BulkPair| pair.left.endpoint.session(left).unwrap().stats().congestion_events;
        let before = (moves(&mut pair, SECOND), events(&mut pair));
        for side in [Side::Left, Side::Right] {
            pair.set_link(side, line(1_252));
        }
        pair.run_for(Duration::from_millis(700));
        let after = (moves(&mut pair, SECOND), events(&mut pair));
        assert!(after.0 >= before.0 * 97 / 100, "{congestion:?}: {before:?} {after:?}");
        assert_eq!(after.1, before.1 + 1, "{congestion:?}");
    }
}

/// `PROTO §8.14`: the size that was lost is asked for again after a minute, and later every ten.
#[test]
fn a_detour_that_ends_is_noticed_soon() {
    let (mut pair, left, _) = connected(config(2, line(1_472), line(1_472)));
    pair.run_for(5 * SECOND);
    pair.set_link(Side::Right, line(1_252));
    transfer(&mut pair, left, 2_000_000, 20 * SECOND);
    assert!(size(&mut pair, Side::Left, left) <= 1_252);
    pair.set_link(Side::Right, line(1_472));
    for _ in 0..80 {
        transfer(&mut pair, left, 10_000, 20 * SECOND);
        pair.run_for(SECOND);
    }
    assert_eq!(size(&mut pair, Side::Left, left), 1_472);
}

/// `PROTO §8.14`: from loopback's size to Ethernet's, where each lost frame becomes more than forty.
#[test]
fn frames_of_the_largest_packets_are_cut_to_what_still_fits() {
    let (mut pair, left, _) = connected(config(3, line(65_527), line(65_527)));
    pair.run_for(5 * SECOND);
    assert_eq!(size(&mut pair, Side::Left, left), 65_507);
    send(&mut pair, left, 30_000_000);
    pair.run_for(SECOND);
    for side in [Side::Left, Side::Right] {
        pair.set_link(side, line(1_472));
    }
    let done = pair.run_until(|pair| pair.right.host.received == 30_000_000, MINUTE);
    assert!(done, "{} bytes", pair.right.host.received);
    pair.run_for(10 * SECOND);
    assert_eq!(size(&mut pair, Side::Left, left), 1_472);
}

/// `PROTO §8.2`, `PROTO §8.14`: when every record is held by a packet that no longer fits, too.
#[test]
fn a_session_without_records_gets_over_a_black_hole() {
    let config = config(4, line(1_472), line(1_472)).with_both(|config| {
        config.limits = Limits { sent_packets: 1, ..Limits::client() };
        config.transport = config.transport.with_min_datagram(1_300).with_max_datagram(1_300);
    });
    let (mut pair, left, _) = connected(config);
    pair.run_for(SECOND);
    for side in [Side::Left, Side::Right] {
        pair.set_link(side, line(1_252));
    }
    transfer(&mut pair, left, 1_000_000, 2 * MINUTE);
    assert!(pair.left.endpoint.stats().records_exhausted > 0);
    assert!((1_234..=1_252).contains(&size(&mut pair, Side::Left, left)));
}

/// `PROTO §8.15`: a path that carries acknowledgements alone ends the session with a reason, at both ends.
#[test]
fn a_path_below_the_minimum_ends_the_session_with_a_reason() {
    let (mut pair, left, _) = connected(config(5, link(1_472), link(1_472)).with_both(|config| {
        config.transport = config.transport.with_keep_alive(Some(SECOND));
    }));
    pair.run_for(5 * SECOND);
    send(&mut pair, left, 50_000_000);
    pair.run_for(Duration::from_millis(100));
    for side in [Side::Left, Side::Right] {
        pair.set_link(side, link(900));
    }
    let closed = Event::Closed(CloseReason::PathTooSmall);
    let done = pair.run_until(|pair| pair.right.host.count(closed) == 1, MINUTE);
    assert!(done, "{:?} {:?}", pair.left.host.events, pair.right.host.events);
    assert_eq!(pair.left.host.count(closed), 1);
}

/// `PROTO §8.14`, `PROTO §8.15`: a path that carries nothing for a while has not become narrower.
#[test]
fn an_outage_changes_no_size() {
    for seed in 0..10 {
        let lossy = line(1_472).with_loss(50_000);
        let (mut pair, left, _) = connected(config(seed, lossy, lossy));
        pair.run_for(10 * SECOND);
        send(&mut pair, left, 20_000_000);
        pair.run_for(SECOND);
        for side in [Side::Left, Side::Right] {
            pair.set_link(side, lossy.with_loss(1_000_000));
        }
        pair.run_for((1 + seed as u32) * SECOND);
        let before = size(&mut pair, Side::Left, left);
        for side in [Side::Left, Side::Right] {
            pair.set_link(side, lossy);
        }
        let done = pair.run_until(|pair| pair.right.host.received == 20_000_000, 2 * MINUTE);
        assert!(done, "seed {seed}: {} bytes", pair.right.host.received);
        assert_eq!((before, size(&mut pair, Side::Left, left)), (1_472, 1_472), "seed {seed}");
    }
}

/// `PROTO §8.16`: whoever forges "packet too big" costs a session speed, for a minute, and never more.
#[test]
fn forged_hints_never_go_below_the_floor_and_wear_off() {
    let (mut pair, left, _) = connected(config(6, line(1_472), line(1_472)));
    pair.run_for(5 * SECOND);
    let sent = watch(&mut pair);
    for hint in [1_300, 68, 0] {
        let now = pair.now();
        pair.left.endpoint.session(left).unwrap().path_mtu_hint(now, hint);
        assert_eq!(size(&mut pair, Side::Left, left), hint.max(1_200));
        transfer(&mut pair, left, 100_000, 10 * SECOND);
        let largest = sent.borrow_mut().drain(..).filter(|sent| sent.0 == 0).map(|sent| sent.2).max();
        assert_eq!(largest, Some(hint.max(1_200).into()));
    }
    for _ in 0..70 {
        transfer(&mut pair, left, 1_000, 10 * SECOND);
        pair.run_for(SECOND);
    }
    assert_eq!(size(&mut pair, Side::Left, left), 1_472);
}
