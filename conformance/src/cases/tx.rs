//! Sending.

use std::iter::repeat_n;
use std::time::{Duration, Instant as Std};

use wraith_drivers::{Driver, TxReport};
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};

use crate::case::{Claim, Outcome, Verdict, ensure, ensure_eq};
use crate::context::Context;
use crate::harness::Link;
use crate::wire::{Arrival, Wire, rest, same};

pub(super) fn an_idle_queue_lends_every_size<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let (meta, max) = (wire.to_right(), wire.left.driver.caps().max_datagram);
    let random = (0..200).map(|_| context.rng.below(max as u64 + 1) as usize).collect::<Vec<_>>();
    for len in (1..=max.min(2048)).chain(random).chain([max - 1, max]) {
        let Some(room) = wire.left.driver.tx().reserve(&meta, len) else {
            return Err(Verdict::Fail(format!("reserve lends no room for {len} bytes on an idle queue")));
        };
        ensure!(room.len() >= len, "reserve lends {} bytes of {len}", room.len());
        room[..len].fill(0x5a);
    }
    Ok(())
}

pub(super) fn a_commit_may_be_shorter_than_its_reservation<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let meta = wire.to_right();
    // Some reserve the same, some commit the same: only what is committed counts.
    for (reserved, committed) in [([1200; 4], [1200, 1200, 1, 1200]), ([1200, 900, 800, 1000], [700; 4])] {
        let datagrams = context.datagrams(committed);
        for (data, len) in datagrams.iter().zip(reserved) {
            let tx = wire.left.driver.tx();
            let Some(room) = tx.reserve(&meta, len) else {
                return Err(Verdict::Fail(format!("no room for {len} bytes")));
            };
            room[..len].fill(0xee);
            room[..data.len()].copy_from_slice(data);
            tx.commit(data.len());
            wire.left.tally.committed += 1;
        }
        let mut arrivals = Vec::new();
        wire.receive(datagrams.len(), &mut arrivals)?;
        same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
    }
    wire.nothing_more()
}

pub(super) fn a_reservation_without_a_commit_costs_nothing<D: Driver>(context: &mut Context<D>) -> Outcome {
    const RESERVATIONS: u32 = 1_000_000;
    let mut wire = context.wire(Link { tx_slots: 4, ..Link::default() })?;
    let (meta, other) = (wire.to_right(), TxMeta { to: wire.left.driver.local_addr(), ..wire.to_right() });
    for count in 0..RESERVATIONS {
        let (meta, len) = if count % 3 == 0 { (&other, 1200) } else { (&meta, 1 + count as usize % 1400) };
        let Some(room) = wire.left.driver.tx().reserve(meta, len) else {
            return Err(Verdict::Fail(format!("no room after {count} reservations and no commit")));
        };
        room[0] = 0xee;
    }
    let report = wire.left.flush()?;
    let nothing = TxReport { syscalls: report.syscalls, ..TxReport::default() };
    ensure_eq!(report, nothing, "report of a flush without a commit");
    wire.cross(&context.datagrams([10, 1400]))
}

pub(super) fn a_commit_without_a_reservation_does_nothing<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let (meta, max) = (wire.to_right(), wire.left.driver.caps().max_datagram);
    let nothing_happened = |wire: &mut Wire<D>, what: &str| {
        let report = wire.left.flush()?;
        let nothing = TxReport { syscalls: report.syscalls, ..TxReport::default() };
        ensure_eq!(report, nothing, "report of a flush after {what}");
        Ok(())
    };
    wire.left.driver.tx().commit(100);
    nothing_happened(&mut wire, "a commit without a reservation")?;

    ensure!(wire.left.driver.tx().reserve(&meta, 100).is_some(), "no room for 100 bytes");
    wire.left.flush()?;
    wire.left.driver.tx().commit(100);
    nothing_happened(&mut wire, "a commit of what was reserved before another flush")?;

    ensure!(wire.left.driver.tx().reserve(&meta, 100).is_some(), "no room for 100 bytes");
    ensure!(wire.left.driver.tx().reserve(&meta, max.saturating_mul(1000)).is_none(), "room without end");
    wire.left.driver.tx().commit(100);
    nothing_happened(&mut wire, "a commit of a reservation that was refused")?;

    wire.left.must_commit(&meta, b"once")?;
    wire.left.driver.tx().commit(4);
    let mut arrivals = Vec::new();
    wire.receive(1, &mut arrivals)?;
    same(&arrivals, [b"once".as_slice()].into_iter())?;
    wire.nothing_more()
}

pub(super) fn the_promised_slots_are_there<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link { tx_slots: 16, ..Link::default() })?;
    let slots = wire.left.driver.caps().tx_slots;
    let meta = wire.to_right();
    for round in 0..3 {
        for slot in 0..slots {
            // Few of them are equal to their neighbours, so that batches do not help.
            let data = vec![round; 15 + slot % 2];
            ensure!(wire.left.commit(&meta, &data), "{slot} datagrams found room, caps promise {slots}");
        }
        // How many of so many arrive is the wire's affair.
        wire.drain()?;
    }
    Ok(())
}

pub(super) fn a_full_queue_lends_nothing_and_recovers<D: Driver>(context: &mut Context<D>) -> Outcome {
    const ENDLESS: usize = 100_000;
    let link = Link { tx_slots: 4, ..Link::default() };
    let mut wire = context.wire(link)?;
    let meta = wire.to_right();
    let longest = context.longest(&link);
    let mut room = 0;
    for round in 0..3 {
        let mut datagrams = Vec::new();
        while datagrams.len() < ENDLESS {
            let data = context.datagram(longest);
            if !wire.left.commit(&meta, &data) {
                break;
            }
            datagrams.push(data);
        }
        let count = datagrams.len();
        ensure!((link.tx_slots..ENDLESS).contains(&count), "{count} datagrams found room before a flush");
        ensure!(round == 0 || count == room, "{count} datagrams find room where there was room for {room}");
        ensure!(wire.left.driver.tx().reserve(&meta, longest).is_none(), "room in a full queue");
        room = count;
        if count <= Link::WINDOW {
            let mut arrivals = Vec::new();
            wire.receive(count, &mut arrivals)?;
            same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
        } else {
            wire.drain()?;
        }
    }
    wire.nothing_more()
}

pub(super) fn nothing_leaves_before_a_flush<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let datagrams = context.datagrams([100, 100, 7, 1200]);
    wire.commit_all(&datagrams)?;
    let meta = wire.to_right();
    ensure!(wire.left.driver.tx().reserve(&meta, 9).is_some(), "no room for a fifth datagram");
    rest();
    let mut early = Vec::new();
    wire.right.recv(9, &mut early)?;
    ensure!(early.is_empty(), "{} datagrams arrived before a flush", early.len());
    wire.receive(datagrams.len(), &mut early)?;
    same(&early, datagrams.iter().map(Vec::as_slice))
}

pub(super) fn order_is_kept<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    for _ in 0..2 {
        let lens = (0..500).map(|_| context.len(1400)).collect::<Vec<_>>();
        wire.cross(&context.datagrams(lens))?;
        wire.cross(&context.datagrams(repeat_n(333, 500)))?;
        wire.swap();
    }
    Ok(())
}

pub(super) fn unequal_sizes_stay_apart<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let longest = context.longest(&Link::default());
    let patterns: [&[usize]; 8] = [
        &[100, 101, 100],
        &[60, 100],
        &[100, 60, 100],
        &[100, 100, 60, 60, 100],
        &[1, 2, 3, 4, 5, 6],
        &[6, 5, 4, 3, 2, 1],
        &[1200, 1200, 1200, 1, 1200, 1200, 2],
        &[1, longest, 1, longest],
    ];
    for pattern in patterns {
        wire.batch(&context.datagrams(pattern.iter().copied()))?;
    }
    for _ in 0..20 {
        // Two sizes at random make runs of every length.
        let lens = (0..30).map(|_| 50 + context.rng.below(2) as usize).collect::<Vec<_>>();
        wire.batch(&context.datagrams(lens))?;
    }
    Ok(())
}

pub(super) fn changing_destinations_stay_apart<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let to_right = wire.to_right();
    // Whether that one arrives is up to the wire.
    let to_self = TxMeta { to: wire.left.driver.local_addr(), ..to_right };
    for _ in 0..10 {
        let datagrams = context.datagrams(repeat_n(80, 30));
        let mut expected = Vec::new();
        for data in &datagrams {
            let meta = if context.rng.chance(500_000) { to_right } else { to_self };
            wire.left.must_commit(&meta, data)?;
            if meta == to_right {
                expected.push(data.as_slice());
            }
        }
        let mut arrivals = Vec::new();
        wire.receive(expected.len(), &mut arrivals)?;
        same(&arrivals, expected.into_iter())?;
        wire.nothing_more()?;
        wire.left.recv(Link::WINDOW, &mut Vec::new())?;
    }
    Ok(())
}

pub(super) fn changing_marks_stay_apart<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.claiming(Claim::Ecn, Link::default())?;
    for _ in 0..10 {
        let datagrams = context.datagrams(repeat_n(80, 30));
        let mut marks = Vec::new();
        for data in &datagrams {
            let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][context.rng.below(4) as usize];
            wire.left.must_commit(&TxMeta { ecn, ..wire.to_right() }, data)?;
            marks.push(ecn);
        }
        let mut arrivals = Vec::new();
        wire.receive(datagrams.len(), &mut arrivals)?;
        same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
        let arrived = arrivals.iter().map(|arrival| arrival.meta.ecn).collect::<Vec<_>>();
        ensure_eq!(arrived, marks, "marks");
    }
    Ok(())
}

pub(super) fn more_than_a_batch_crosses<D: Driver>(context: &mut Context<D>) -> Outcome {
    const LEN: usize = 100;
    let mut wire = context.wire(Link { tx_slots: 256, ..Link::default() })?;
    let count = (2 * wire.left.driver.caps().tx_segments + 1).clamp(65, 600);
    let datagrams = context.datagrams(repeat_n(LEN, count));
    let meta = wire.to_right();
    let mut waiting = datagrams.iter().peekable();
    let mut arrivals = Vec::new();
    let mut offered = 0;
    while waiting.peek().is_some() {
        while waiting.next_if(|data| wire.left.commit(&meta, data)).is_some() {
            offered += 1;
        }
        wire.receive(offered, &mut arrivals)?;
    }
    same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
    wire.nothing_more()
}

pub(super) fn committed_bytes_do_not_change<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link { tx_slots: 8, ..Link::default() })?;
    let meta = wire.to_right();
    let mut sent: Vec<Vec<u8>> = Vec::new();
    for _ in 0..12 {
        for _ in 0..5 {
            let data = context.datagram(700);
            if wire.left.commit(&meta, &data) {
                sent.push(data);
            }
            scribble(&mut wire.left.driver, &meta);
        }
        // Nobody receives, so that some wires let datagrams wait.
        wire.left.flush()?;
        scribble(&mut wire.left.driver, &meta);
    }
    let mut arrivals = Vec::new();
    wire.receive(sent.len(), &mut arrivals)?;
    same(&arrivals, sent.iter().map(Vec::as_slice))?;
    wire.nothing_more()
}

pub(super) fn an_unsendable_datagram_goes_alone<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let good = wire.to_right();
    let elsewhere = if good.to.is_ipv4() { "[2001:db8::9]:9" } else { "192.0.2.9:9" };
    let bad = TxMeta { to: elsewhere.parse().expect("an address"), ..good };
    for _ in 0..3 {
        let datagrams = context.datagrams(repeat_n(90, 5));
        for data in &datagrams {
            wire.left.must_commit(&bad, b"of the other family")?;
            wire.left.must_commit(&good, data)?;
        }
        wire.left.must_commit(&bad, b"last")?;
        let mut arrivals = Vec::new();
        wire.receive(datagrams.len(), &mut arrivals)?;
        same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
    }
    wire.nothing_more()
}

pub(super) fn a_datagram_that_is_too_long_is_dropped<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let longest = wire.left.driver.caps().max_datagram;
    refused_or_dropped(context, &mut wire, longest + 1)
}

pub(super) fn a_datagram_longer_than_the_path_is_dropped<D: Driver>(context: &mut Context<D>) -> Outcome {
    let link = Link { ipv6: true, ..Link::default() };
    let mut wire = context.claiming(Claim::DontFragment, link)?;
    let longest = wire.left.driver.caps().max_datagram;
    match context.path_limit(&link).filter(|&limit| limit < longest) {
        Some(limit) => refused_or_dropped(context, &mut wire, limit + 1),
        None => Err(Verdict::NotClaimed(
            "its wire carries everything that the driver does, so far as is known".into(),
        )),
    }
}

pub(super) fn a_full_network_holds_datagrams_back<D: Driver>(context: &mut Context<D>) -> Outcome {
    let link = Link { tx_slots: 16, ..Link::default() };
    let mut wire = context.wire(link)?;
    let meta = wire.to_right();
    let mut sent = Vec::new();
    let started = Std::now();
    while sent.len() < Link::WINDOW - 1 {
        let data = context.datagram(1000);
        if !wire.left.commit(&meta, &data) {
            let waiting = wire.left.tally.in_flight;
            ensure!(waiting >= link.tx_slots, "no room with {waiting} of {} slots in flight", link.tx_slots);
            break;
        }
        sent.push(data);
        wire.left.flush()?;
    }
    let took = started.elapsed();
    ensure!(took < Duration::from_secs(1), "{} flushes took {took:?}: flush blocks", sent.len());
    let mut arrivals = Vec::new();
    wire.receive(sent.len(), &mut arrivals)?;
    same(&arrivals, sent.iter().map(Vec::as_slice))?;
    wire.nothing_more()
}

pub(super) fn a_chosen_source_is_used<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.claiming(Claim::LocalIp, Link::default())?;
    for _ in 0..2 {
        let local = wire.left.driver.local_addr();
        let meta = TxMeta { from: Some(local.ip()), ..wire.to_right() };
        let datagrams = context.datagrams([100, 100, 50]);
        let arrivals = wire.carry(datagrams.iter().map(|data| (meta, data.as_slice())))?;
        same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
        ensure!(
            arrivals.iter().all(|arrival| arrival.meta.from == local),
            "another source than the chosen one"
        );
        wire.swap();
    }
    Ok(())
}

pub(super) fn a_foreign_source_is_never_replaced<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.claiming(Claim::LocalIp, Link::default())?;
    let good = wire.to_right();
    let foreign = if good.to.is_ipv4() { "192.0.2.9" } else { "2001:db8::9" };
    let bad = TxMeta { from: Some(foreign.parse().expect("an address")), ..good };
    let data = context.datagram(100);
    for meta in [bad, bad, good, bad] {
        wire.left.must_commit(&meta, &data)?;
    }
    let mut arrivals = Vec::new();
    wire.receive(1, &mut arrivals)?;
    ensure_eq!(wire.left.tally.dropped, 3, "datagrams with a foreign source that were dropped");
    same(&arrivals, [data.as_slice()].into_iter())?;
    wire.nothing_more()
}

pub(super) fn an_answer_takes_the_way_back<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    for via in [0, 7, u32::MAX] {
        let data = context.datagram(100);
        let meta = TxMeta { via: Via(via), ..wire.to_right() };
        let there = wire.carry([(meta, data.as_slice())])?;
        same(&there, [data.as_slice()].into_iter())?;
        wire.swap();
        let Arrival { meta, .. } = there[0];
        let answer = TxMeta { to: meta.from, from: meta.to, via: meta.via, ecn: Ecn::NotEct };
        let back = wire.carry([(answer, data.as_slice()), (answer, data.as_slice())])?;
        same(&back, [data.as_slice(); 2].into_iter())?;
        wire.swap();
    }
    Ok(())
}

/// Writes all over what the queue lends, without committing it.
fn scribble<D: Driver>(driver: &mut D, meta: &TxMeta) {
    for len in [700, 1400] {
        if let Some(room) = driver.tx().reserve(meta, len) {
            room.fill(0xee);
        }
    }
}

/// Checks that a datagram of `len` bytes does not leave, and that others do.
fn refused_or_dropped<D: Driver>(context: &mut Context<D>, wire: &mut Wire<D>, len: usize) -> Outcome {
    let meta = wire.to_right();
    wire.left.must_commit(&meta, b"before")?;
    let committed = wire.left.commit(&meta, &context.datagram(len));
    let mut arrivals = Vec::new();
    wire.receive(1, &mut arrivals)?;
    same(&arrivals, [b"before".as_slice()].into_iter())?;
    wire.nothing_more()?;
    ensure_eq!(
        wire.left.tally.dropped,
        usize::from(committed),
        "datagrams of {len} bytes reported as dropped"
    );
    Ok(())
}
