//! What is found, and what the search costs.

use std::time::Duration;

use wraith_proto::Event;
use wraith_sim::Side;

use crate::support::{MINUTE, SECOND, config, connected, link, size, transfer, watch};

/// `PROTO §8.11`, `PROTO §8.12`: up to what UDP over IPv4 carries, within a second of a session that has nothing to say.
#[test]
fn a_path_without_limit_is_used_up_to_65507_bytes() {
    let (mut pair, left, right) = connected(config(1, link(65_527), link(65_527)));
    pair.run_for(SECOND);
    assert_eq!(size(&mut pair, Side::Left, left), 65_507);
    assert_eq!(size(&mut pair, Side::Right, right), 65_507);
    assert_eq!(pair.left.endpoint.stats().mtu_probes_sent, 3);
    assert_eq!(pair.left.host.count(Event::MaxDatagramChanged), 3);
    let max = pair.left.endpoint.session(left).unwrap().max_datagram();
    assert_eq!(max, 65_507 - 34);
    let took = transfer(&mut pair, left, 10_000_000, 10 * SECOND);
    assert!(took < SECOND, "{took:?}");
}

/// `PROTO §8.12`: each end asks for its own direction.
#[test]
fn each_direction_gets_what_it_carries() {
    let (mut pair, left, right) = connected(config(2, link(8_972), link(1_400)));
    pair.run_for(20 * SECOND);
    assert_eq!(size(&mut pair, Side::Left, left), 8_972);
    let found = size(&mut pair, Side::Right, right);
    assert!((1_380..=1_400).contains(&found), "{found}");
}

/// `PROTO §2.1`, `PROTO §8.11`: nothing over the peer's `max_datagram` or the own one leaves, not even a probe.
#[test]
fn what_an_end_does_not_take_is_not_asked_for() {
    let mut config = config(3, link(65_527), link(65_527));
    config.right.transport.max_datagram = 4_000;
    let (mut pair, left, right) = connected(config);
    let sent = watch(&mut pair);
    pair.run_for(20 * SECOND);
    assert_eq!(size(&mut pair, Side::Left, left), 4_000);
    assert_eq!(size(&mut pair, Side::Right, right), 4_000);
    assert_eq!(sent.borrow().iter().map(|&(_, _, len)| len).max(), Some(4_000));
}

/// `PROTO §8.11`: without leave no datagram is larger than `min_datagram`, and no hint makes it smaller.
#[test]
fn an_end_that_may_not_search_keeps_its_size() {
    let config = config(4, link(65_527), link(65_527)).with_both(|config| {
        config.transport = config.transport.with_mtu_search(false).with_min_datagram(1_400);
    });
    let (mut pair, left, _) = connected(config);
    let sent = watch(&mut pair);
    let now = pair.now();
    pair.left.endpoint.session(left).unwrap().path_mtu_hint(now, 1_200);
    transfer(&mut pair, left, 1_000_000, 10 * SECOND);
    pair.run_for(20 * SECOND);
    assert_eq!(sent.borrow().iter().map(|&(_, _, len)| len).max(), Some(1_400));
    assert_eq!(pair.left.endpoint.stats().mtu_probes_sent, 0);
}

/// `PROTO §8.12`: one probe at a time, lost ones at least a probe timeout apart, and in the end silence.
#[test]
fn probes_are_few_and_apart_and_a_found_size_leaves_the_session_idle() {
    let (mut pair, left, _) = connected(config(5, link(1_472), link(1_472)));
    let sent = watch(&mut pair);
    pair.run_for(20 * SECOND);
    assert_eq!(size(&mut pair, Side::Left, left), 1_472);
    let probes: Vec<_> =
        sent.borrow().iter().filter(|sent| sent.0 == 0 && sent.2 > 1_472).map(|sent| sent.1).collect();
    assert!((4..=60).contains(&probes.len()), "{}", probes.len());
    assert!(probes.is_sorted_by(|a, b| b.saturating_since(*a) >= Duration::from_millis(45)), "{probes:?}");
    let before = pair.left.endpoint.stats().datagrams_sent;
    pair.run_for(9 * SECOND);
    assert_eq!(pair.left.endpoint.stats().datagrams_sent, before);
    assert_eq!(
        pair.left.endpoint.session(left).unwrap().stats().packets_lost,
        0,
        "lost probes are no losses"
    );
}

/// `PROTO §8.13`
#[test]
fn lost_probes_are_no_congestion_and_delay_no_data() {
    let time = |searches: bool| {
        // Nothing but probes gets lost on it.
        let line = link(1_200).with_rate(Some(10_000_000)).with_queue_bytes(10_000_000);
        let config = config(6, line, line).with_both(|config| {
            config.transport = config.transport.with_mtu_search(searches);
        });
        let (mut pair, left, _) = connected(config);
        let took = transfer(&mut pair, left, 3_000_000, 20 * SECOND);
        let stats = pair.left.endpoint.session(left).unwrap().stats();
        (took, stats.packets_lost, stats.congestion_events, pair.left.endpoint.stats().mtu_probes_sent)
    };
    let (with, without) = (time(true), time(false));
    assert!(with.3 >= 6, "{with:?}");
    assert_eq!((without.3, with.1, with.2), (0, without.1, without.2));
    assert!(with.0 <= without.0 + without.0 / 50, "{with:?} {without:?}");
}

/// `PROTO §8.14`: at 15 % of loss, for a hundred megabytes.
#[test]
fn random_loss_never_lowers_the_size() {
    for seed in 0..3 {
        let lossy = link(1_472).with_loss(150_000);
        let (mut pair, left, _) = connected(config(seed, lossy, lossy));
        let mut largest = 0;
        for _ in 0..20 {
            transfer(&mut pair, left, 500_000, 5 * MINUTE);
            let now = size(&mut pair, Side::Left, left);
            assert!(now >= largest, "{now} after {largest}");
            largest = now;
        }
        assert_eq!(largest, 1_472);
    }
}

/// `PROTO §8.13`: a path that widens is noticed by a session that is in use, after ten minutes.
#[test]
fn a_path_that_widens_is_found_again() {
    let (mut pair, left, _) = connected(config(7, link(1_472), link(1_472)).with_both(|config| {
        config.transport = config.transport.with_keep_alive(Some(5 * SECOND));
    }));
    pair.run_for(MINUTE);
    assert_eq!(size(&mut pair, Side::Left, left), 1_472);
    for side in [Side::Left, Side::Right] {
        pair.set_link(side, link(8_972));
    }
    pair.run_for(8 * MINUTE);
    assert_eq!(size(&mut pair, Side::Left, left), 1_472);
    pair.run_for(3 * MINUTE);
    assert_eq!(size(&mut pair, Side::Left, left), 8_972);
}

/// `PROTO §8.17`: of the datagrams of one turn only the last has another size, whether it is shorter or a probe.
#[test]
fn a_probe_is_the_last_datagram_of_its_turn() {
    let slow = link(1_472).with_rate(Some(20_000_000)).with_queue_bytes(100_000);
    let (mut pair, left, _) = connected(config(8, slow, slow));
    let sent = watch(&mut pair);
    transfer(&mut pair, left, 2_000_000, 10 * SECOND);
    let sent = sent.borrow();
    let turns: Vec<&[_]> =
        sent.chunk_by(|a, b| a.0 == b.0 && a.1 == b.1).filter(|turn| turn[0].0 == 0).collect();
    let probes = |turn: &&[(u32, _, usize)]| turn.iter().any(|sent| sent.2 > 1_472);
    assert!(turns.iter().filter(|turn| probes(turn)).count() >= 3);
    for turn in turns {
        let last = turn.len() - 1;
        assert!(turn[..last].iter().all(|sent| sent.2 <= 1_472), "{turn:?}");
    }
}
