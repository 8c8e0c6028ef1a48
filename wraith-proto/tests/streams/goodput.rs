//! How much of a line one stream uses.

use std::time::Duration;

use wraith_sim::LinkConfig;

use crate::support::{MS, bulk, send};

const GIGABIT: u64 = 1_000_000_000;

/// Share of the line, in percent, that arrives as stream data in the last 2 of 10 seconds.
fn share(rtt: Duration, rate: u64) -> u64 {
    let bdp = (rate / 8) as usize * rtt.as_millis() as usize / 1000;
    let link = LinkConfig::perfect().with_latency(rtt / 2).with_rate(Some(rate)).with_queue_bytes(bdp);
    let (mut pair, left, _) = bulk(7, link);
    send(&mut pair, left, 1 << 40);
    pair.run_for(Duration::from_secs(8));
    let before = pair.right.host.received;
    pair.run_for(Duration::from_secs(2));
    (pair.right.host.received - before) * 100 * 8 / (2 * rate)
}

#[test]
fn a_gigabit_over_200_ms_is_used_to_80_percent_without_tuning() {
    let share = share(MS(200), GIGABIT);
    assert!(share >= 80, "{share} %");
}

#[test]
fn a_gigabit_over_100_ms_is_used_to_85_percent() {
    let share = share(MS(100), GIGABIT);
    assert!(share >= 85, "{share} %");
}
