//! Streams over links that lose, reorder and duplicate.

use std::time::Duration;

use wraith_sim::LinkConfig;

use crate::support::{MS, bulk, full, transfer};

const MEGABYTE: u64 = 1_000_000;

/// 50 ms there and back, with everything that can go wrong.
fn hostile(loss: u32) -> LinkConfig {
    LinkConfig::perfect()
        .with_latency(MS(25))
        .with_jitter(MS(1))
        .with_loss(loss)
        .with_reorder(20_000, MS(5))
        .with_duplicate(10_000)
        .with_mtu(1472)
}

fn arrives(seed: u64, loss: u32, len: u64, limit: Duration) {
    let (mut pair, left, _) = bulk(seed, hostile(loss));
    transfer(&mut pair, left, len, limit);
}

#[test]
fn a_hundred_megabytes_arrive_at_1_percent_loss_within_60_seconds() {
    arrives(1, 10_000, 100 * MEGABYTE, Duration::from_mins(1));
}

#[test]
fn data_arrive_at_5_percent_loss_within_5_minutes() {
    let len = if full() { 100 } else { 10 };
    arrives(2, 50_000, len * MEGABYTE, Duration::from_secs(3) * len as u32);
}

#[test]
fn data_arrive_at_15_percent_loss_within_an_hour() {
    let len = if full() { 100 } else { 10 };
    arrives(3, 150_000, len * MEGABYTE, Duration::from_secs(36) * len as u32);
}
