//! Handshakes over a bad link.

use wraith_proto::Event;
use wraith_sim::{LinkConfig, Pair, PairConfig, Side};

use crate::common::{SECOND, both_connected, events, full, millis, small};
use crate::crossing::{assert_one_stays, dial_back, lossy};

/// 200 seeds, or 1,000 on a full budget.
#[test]
fn a_dial_over_a_link_that_loses_a_third_makes_exactly_one_session() {
    let mut lost = 0;
    for seed in 0..if full() { 1000 } else { 200 } {
        let mut pair = Pair::new(lossy(seed));
        let left = pair.dial().expect("a free session");
        assert!(pair.run_until(both_connected, 30 * SECOND), "seed {seed}");
        // Late copies of INIT may begin handshakes that nobody finishes.
        pair.run_for(31 * SECOND);
        assert_eq!(events(&pair.left, left), [Event::Connected], "seed {seed}");
        assert_eq!((pair.left.host.events.len(), pair.right.host.events.len()), (1, 1), "seed {seed}");
        assert_eq!((pair.left.endpoint.sessions(), pair.right.endpoint.sessions()), (1, 1), "seed {seed}");
        lost += pair.link(Side::Right).counters().lost + pair.link(Side::Left).counters().lost;
    }
    assert!(lost > 200, "{lost}");
}

/// A pair with the default transport on a link of 50 ms that loses 15 % of all datagrams, and doubles and reorders others.
fn bad(seed: u64) -> PairConfig {
    let link = LinkConfig::perfect()
        .with_latency(millis(25))
        .with_jitter(millis(3))
        .with_loss(150_000)
        .with_duplicate(50_000)
        .with_reorder(100_000, millis(40));
    small(seed).with_link(link)
}

/// `PROTO §4.10`: 500 seeds, or 10,000 on a full budget.
#[test]
fn no_dial_over_a_link_that_loses_15_percent_times_out() {
    for seed in 0..if full() { 10_000 } else { 500 } {
        let mut pair = Pair::new(bad(seed));
        let left = pair.dial().expect("a free session");
        // As long as INIT and FINISH may take together.
        pair.run_for(21 * SECOND);
        assert_eq!(events(&pair.left, left), [Event::Connected], "seed {seed}");
        assert!(both_connected(&pair), "seed {seed}");
    }
}

/// `PROTO §4.10`: 500 seeds, or 10,000 on a full budget.
#[test]
fn no_crossing_dial_over_a_link_that_loses_15_percent_times_out() {
    for seed in 0..if full() { 10_000 } else { 500 } {
        let mut pair = Pair::new(bad(seed));
        let left = pair.dial().expect("a free session");
        pair.run_for(millis(seed % 120));
        let dials = [left, dial_back(&mut pair)];
        pair.run_for(21 * SECOND);
        assert_one_stays(&mut pair, dials, &format!("seed {seed}"));
    }
}
