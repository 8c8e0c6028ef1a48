//! Loss, delay and absence: what counts as congestion and what does not.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use wraith_proto::SessionHandle;
use wraith_sim::{LinkConfig, Side, Verdict};

use crate::support::{BulkPair, MS, bulk, send, transfer};

const SECOND: Duration = Duration::from_secs(1);

fn steady(rate: u64) -> LinkConfig {
    let bytes = (rate / 8 / 20) as usize;
    LinkConfig::perfect().with_latency(MS(25)).with_rate(Some(rate)).with_queue_bytes(bytes)
}

fn window(pair: &mut BulkPair, session: SessionHandle) -> u64 {
    pair.left.endpoint.session(session).unwrap().stats().congestion_window
}

/// `PROTO §8.1`: a probe fetches what nothing follows.
#[test]
fn loss_of_the_last_packets_costs_a_few_probe_timeouts() {
    for lost in 1..=3 {
        let (mut pair, left, _) = bulk(lost, LinkConfig::perfect().with_latency(MS(25)));
        let undisturbed = transfer(&mut pair, left, 20_000, SECOND);
        let whole = Rc::new(Cell::new(0_u64));
        let seen = Rc::clone(&whole);
        // 20,000 bytes are 18 packets; the last `lost` of them vanish, once.
        pair.intercept(move |passing| {
            if passing.sender == 0 && passing.bytes.len() > 100 {
                seen.set(seen.get() + 1);
                if (19 - lost..=18).contains(&seen.get()) {
                    return Verdict::Drop;
                }
            }
            Verdict::Pass
        });
        let time = transfer(&mut pair, left, 20_000, 5 * SECOND);
        assert!(whole.get() > 18, "{} packets", whole.get());
        // A probe timeout is 50 ms and 4 deviations and 25 ms.
        assert!(time < undisturbed + MS(400), "{time:?} instead of {undisturbed:?}");
    }
}

/// `PROTO §8.6`: packets that were only late bring the window back.
#[test]
fn a_window_reduced_for_packets_that_were_only_late_comes_back() {
    // Real losses before must not be in the way.
    let link = steady(80_000_000);
    let (mut pair, left, _) = bulk(11, link);
    send(&mut pair, left, 1 << 40);
    pair.run_for(4 * SECOND);
    assert!(pair.left.endpoint.stats().packets_lost > 0, "the queue overflowed");
    pair.run_for(2 * SECOND);
    // For 3 ms every packet is held back by 30 ms, so that those behind overtake them.
    let before = (window(&mut pair, left), *pair.left.endpoint.stats());
    pair.set_link(Side::Right, link.with_reorder(1_000_000, MS(30)));
    pair.run_for(MS(3));
    pair.set_link(Side::Right, link);
    pair.run_for(MS(200));
    let after = pair.left.endpoint.stats();
    let lost = after.packets_lost - before.1.packets_lost;
    assert!(lost > 0, "they counted as lost");
    assert_eq!(after.spurious_losses - before.1.spurious_losses, lost);
    assert!(window(&mut pair, left) >= before.0, "{} after {}", window(&mut pair, left), before.0);
}

/// `PROTO §8.1`: reordering raises the packet threshold, so that it is not taken for loss for ever.
#[test]
fn reordering_is_learned() {
    // A packet in fifty arrives 4 ms late, behind about 30 others; an eighth of the round trip would be 6 ms.
    let link = steady(80_000_000).with_reorder(20_000, MS(4)).with_queue_bytes(8 << 20);
    let (mut pair, left, _) = bulk(12, link);
    send(&mut pair, left, 1 << 40);
    pair.run_for(5 * SECOND);
    let before = pair.left.endpoint.stats().packets_lost;
    pair.run_for(2 * SECOND);
    let stats = pair.left.endpoint.stats();
    let rate = (stats.packets_lost - before) * 1000 / 16_000;
    assert!(rate < 5, "{rate} in a thousand packets");
}

#[test]
fn a_path_that_dies_for_seconds_is_persistent_congestion() {
    let link = steady(80_000_000);
    let (mut pair, left, _) = bulk(13, link);
    send(&mut pair, left, 1 << 40);
    pair.run_for(3 * SECOND);
    let before = window(&mut pair, left);
    pair.set_link(Side::Right, link.with_loss(1_000_000));
    pair.run_for(5 * SECOND);
    pair.set_link(Side::Right, link);
    let received = pair.right.host.received;
    assert!(pair.run_until(|pair| pair.right.host.received > received, 10 * SECOND));
    pair.run_for(MS(60));
    let after = window(&mut pair, left);
    assert!(after * 10 < before, "{after} of {before}");
    // And it comes back.
    pair.run_for(3 * SECOND);
    let received = pair.right.host.received;
    pair.run_for(2 * SECOND);
    assert!((pair.right.host.received - received) * 8 / 2 > 60_000_000);
}

/// `PROTO §8.7`: skipping numbers disturbs nothing.
#[test]
fn a_clean_path_shows_no_loss_at_all() {
    let link = LinkConfig::perfect().with_latency(MS(10)).with_rate(Some(100_000_000));
    let (mut pair, left, _) = bulk(14, link);
    let time = transfer(&mut pair, left, 20_000_000, 10 * SECOND);
    let stats = pair.left.endpoint.stats();
    assert_eq!((stats.packets_lost, stats.spurious_losses), (0, 0), "{time:?}");
}

/// `PROTO §8.4`: under load one ACK for 16 to 64 packets.
#[test]
fn acknowledgements_thin_out_at_a_high_rate() {
    let link =
        LinkConfig::perfect().with_latency(MS(25)).with_rate(Some(400_000_000)).with_queue_bytes(16 << 20);
    let (mut pair, left, _) = bulk(15, link);
    send(&mut pair, left, 1 << 40);
    pair.run_for(2 * SECOND);
    let before = *pair.right.endpoint.stats();
    pair.run_for(SECOND);
    let after = pair.right.endpoint.stats();
    let packets = after.packets_opened - before.packets_opened;
    let acks = after.acks_sent - before.acks_sent;
    assert!(packets > 30_000);
    assert!(acks * 16 <= packets && acks * 64 >= packets, "{acks} for {packets}");
}

/// `PROTO §8.8`: marks reduce the window though nothing is lost.
#[test]
fn marks_reduce_the_window_without_loss() {
    let link = steady(80_000_000).with_queue_bytes(8 << 20).with_ecn_mark_threshold(Some(100_000));
    let (mut pair, left, _) = bulk(16, link);
    send(&mut pair, left, 1 << 40);
    pair.run_for(5 * SECOND);
    let stats = pair.left.endpoint.session(left).unwrap().stats();
    assert_eq!(stats.packets_lost, 0);
    assert!(stats.congestion_events > 0);
    assert!(pair.link(Side::Right).counters().marked > 0);
    assert!(stats.congestion_window < 1_500_000, "{}", stats.congestion_window);
    let before = pair.right.host.received;
    pair.run_for(2 * SECOND);
    assert!((pair.right.host.received - before) * 8 / 2 > 68_000_000);
}
