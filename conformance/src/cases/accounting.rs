//! What reports and caps say.

use std::iter::repeat_n;

use wraith_drivers::{Driver, TooLong, TxReport};
use wraith_proto::TxMeta;

use crate::case::{Claim, Outcome, Verdict, ensure, ensure_eq};
use crate::context::Context;
use crate::harness::Link;
use crate::wire::{End, Tally, same};

pub(super) fn caps_are_sane<D: Driver>(context: &mut Context<D>) -> Outcome {
    let wire = context.wire(Link::default())?;
    for end in [&wire.left, &wire.right] {
        let caps = end.driver.caps();
        ensure!(caps.max_datagram >= 1200, "max_datagram is {}, paths carry 1200", caps.max_datagram);
        ensure!(caps.max_datagram <= 65_527, "max_datagram is {}, UDP carries 65527", caps.max_datagram);
        ensure!(caps.tx_slots >= 1, "there are no slots");
        ensure!(
            caps.tx_segments >= 1 && caps.rx_segments >= 1,
            "a datagram has a segment at least: {caps:?}"
        );
    }
    Ok(())
}

pub(super) fn caps_and_address_stay<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let (caps, addr) = (wire.left.driver.caps(), wire.left.driver.local_addr());
    ensure!(addr.port() != 0 && addr != wire.right.driver.local_addr(), "{addr} is not an end's own address");
    for _ in 0..5 {
        wire.cross(&context.datagrams([1, 1200, 1200, 60]))?;
        wire.swap();
        wire.cross(&context.datagrams([1, 1200, 1200, 60]))?;
        wire.swap();
        ensure_eq!(wire.left.driver.caps(), caps, "caps after use");
        ensure_eq!(wire.left.driver.local_addr(), addr, "address after use");
    }
    Ok(())
}

pub(super) fn committed_is_sent_dropped_or_in_flight<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link { tx_slots: 8, ..Link::default() })?;
    let to_right = wire.to_right();
    let to_self = TxMeta { to: wire.left.driver.local_addr(), ..to_right };
    let longest = wire.left.driver.caps().max_datagram;
    for round in 0..context.options.budget.pick(100, 1000) {
        for _ in 0..context.rng.below(12) {
            let dice = context.rng.below(20);
            let meta = if dice == 0 { to_self } else { to_right };
            let len = if dice == 1 { longest + 1 } else { context.len(1400) };
            wire.left.commit(&meta, &context.datagram(len));
        }
        wire.left.flush()?;
        let Tally { committed, sent, dropped, in_flight, .. } = wire.left.tally;
        ensure!(
            committed == sent + dropped + in_flight,
            "flush {round}: {committed} committed, but {sent} sent + {dropped} dropped + {in_flight} in flight"
        );
        // Sometimes nobody receives, so that some wires let datagrams wait.
        if context.rng.chance(400_000) {
            wire.right.recv(Link::WINDOW, &mut Vec::new())?;
            wire.left.recv(Link::WINDOW, &mut Vec::new())?;
        }
    }
    Ok(())
}

pub(super) fn what_is_reported_as_sent_arrives<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link { tx_slots: 16, ..Link::default() })?;
    let meta = wire.to_right();
    let mut sent = Vec::new();
    while sent.len() < Link::WINDOW - 1 {
        let len = context.len(1400);
        let data = context.datagram(len);
        if !wire.left.commit(&meta, &data) {
            break;
        }
        sent.push(data);
        wire.left.flush()?;
        ensure!(wire.left.tally.sent <= sent.len(), "more sent than committed");
    }
    let mut arrivals = Vec::new();
    wire.receive(sent.len(), &mut arrivals)?;
    same(&arrivals, sent.iter().map(Vec::as_slice))?;
    ensure_eq!(wire.left.tally.sent, sent.len(), "datagrams reported as sent");
    ensure_eq!(wire.left.tally.dropped, 0, "datagrams reported as dropped");
    Ok(())
}

pub(super) fn an_idle_flush_reports_nothing<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    for _ in 0..3 {
        for _ in 0..3 {
            let report = wire.left.flush()?;
            ensure_eq!(
                report,
                TxReport { syscalls: report.syscalls, ..TxReport::default() },
                "an idle flush"
            );
        }
        wire.cross(&context.datagrams([100, 50]))?;
    }
    Ok(())
}

pub(super) fn an_idle_flush_makes_no_system_call<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    wire.cross(&context.datagrams([100, 50]))?;
    wire.left.settle()?;
    ensure_eq!(wire.left.flush()?.syscalls, 0, "system calls of an idle flush");
    Ok(())
}

pub(super) fn a_batch_takes_fewer_system_calls<D: Driver>(context: &mut Context<D>) -> Outcome {
    const COUNT: usize = 32;
    let mut wire = context.claiming(Claim::Segmentation, Link::default())?;
    wire.batch(&context.datagrams(repeat_n(1000, COUNT)))?;
    let segments = wire.left.driver.caps().tx_segments;
    // One more for the last datagram of `batch`.
    let most = COUNT.div_ceil(segments) + 1;
    let calls = wire.left.tally.syscalls;
    ensure!(calls <= most, "{COUNT} equal datagrams took {calls} system calls, {segments} fit in one");
    Ok(())
}

pub(super) fn what_is_too_long_is_told<D: Driver>(context: &mut Context<D>) -> Outcome {
    // Over IPv6 the headers are longer, so that a queue lends room for more than the wire carries.
    let link = Link { ipv6: true, ..Link::default() };
    let mut wire = context.claiming(Claim::DontFragment, link)?;
    let meta = wire.to_right();
    let longest = wire.left.driver.caps().max_datagram;
    let limit = context.path_limit(&link).unwrap_or(longest).min(longest);
    let elsewhere = TxMeta { to: "192.0.2.9:9".parse().expect("an address"), ..meta };
    wire.left.must_commit(&elsewhere, b"of the other family")?;
    ensure_eq!(too_long(&mut wire.left)?, None, "what is told of a datagram without a way");
    for len in [limit + 1, 100] {
        let committed = wire.left.commit(&meta, &context.datagram(len));
        if len > limit && !committed {
            return Err(Verdict::NotClaimed("its queue has no room for what is too long".into()));
        }
        let expected = (len > limit).then_some(TooLong { to: meta.to, len });
        ensure_eq!(too_long(&mut wire.left)?, expected, "what is told of {len} bytes where {limit} pass");
    }
    Ok(())
}

/// Flushes until nothing is in flight, and gives the shortest datagram that was reported as too long.
fn too_long<D: Driver>(end: &mut End<D>) -> Outcome<Option<TooLong>> {
    end.settle()?;
    Ok(end.tally.too_long.take())
}
