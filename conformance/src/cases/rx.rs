//! Receiving.

use std::time::{Duration, Instant as Std};

use wraith_drivers::{Driver, RxReport};
use wraith_proto::{Ecn, TxMeta};

use crate::case::{Claim, Outcome, Verdict, ensure, ensure_eq};
use crate::context::Context;
use crate::harness::Link;
use crate::wire::{Arrival, Wire, rest, same};

pub(super) fn every_size_crosses<D: Driver>(context: &mut Context<D>) -> Outcome {
    let link = Link::default();
    let mut wire = context.wire(link)?;
    let max = wire.left.driver.caps().max_datagram;
    let longest = context.path_limit(&link).unwrap_or(max).min(max);
    for _ in 0..2 {
        wire.cross(&context.datagrams(1..=longest.min(usize::from(link.mtu))))?;
        for len in [longest - 1, longest] {
            wire.cross(&[context.datagram(len)])?;
        }
        wire.swap();
    }
    Ok(())
}

pub(super) fn datagrams_cross_over_ipv6<D: Driver>(context: &mut Context<D>) -> Outcome {
    let link = Link { ipv6: true, ..Link::default() };
    let mut wire = context.wire(link)?;
    // Ethernet's 1,500 bytes hold 20 bytes less of payload than over IPv4.
    let longest = context.longest(&link);
    for _ in 0..2 {
        let (from, to) = (wire.left.driver.local_addr(), wire.right.driver.local_addr());
        ensure!(from.is_ipv6() && to.is_ipv6(), "the ends are {from} and {to} on a wire that is to be IPv6");
        let datagrams = context.datagrams([1, 100, 100, 100, 60, 1200, longest]);
        let meta = wire.to_right();
        let arrivals = wire.carry(datagrams.iter().map(|data| (meta, data.as_slice())))?;
        same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
        all_from_left(&wire, &arrivals)?;
        wire.swap();
    }
    Ok(())
}

pub(super) fn joined_datagrams_are_cut_where_they_were_joined<D: Driver>(
    context: &mut Context<D>,
) -> Outcome {
    let link = Link::default();
    let mut wire = context.claiming(Claim::Coalescing, link)?;
    for len in [2, 7, 100, 1200, context.longest(&link)] {
        for last in [1, len - 1, len] {
            let datagrams = context.datagrams(std::iter::repeat_n(len, 40).chain([last]));
            wire.batch(&datagrams)?;
        }
    }
    Ok(())
}

pub(super) fn a_lent_slice_is_the_callers<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    for budget in [1, 64] {
        let datagrams = context.datagrams(std::iter::repeat_n(300, 30).chain([20, 1200]));
        let mut arrivals = Vec::new();
        wire.commit_all(&datagrams)?;
        wire.left.settle()?;
        let mut waiting = wire.waiting();
        while arrivals.len() < datagrams.len() {
            wire.right.driver.recv(budget, |meta, data| {
                arrivals.push(Arrival { meta: *meta, data: data.to_vec() });
                data.fill(0xa5);
            })?;
            waiting.check(|| format!("{} of {} datagrams", arrivals.len(), datagrams.len()))?;
        }
        same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
    }
    Ok(())
}

pub(super) fn the_budget_is_respected<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let datagrams = context.datagrams(std::iter::repeat_n(100, 30));
    wire.commit_all(&datagrams)?;
    wire.left.settle()?;
    let (mut arrivals, mut waiting) = (Vec::new(), wire.waiting());
    for budget in [0, 1, 2, 3, 5].into_iter().cycle() {
        let before = arrivals.len();
        wire.right.recv(budget, &mut arrivals)?;
        let lent = arrivals.len() - before;
        ensure!(lent <= budget, "{lent} datagrams were lent with a budget of {budget}");
        if arrivals.len() >= datagrams.len() {
            break;
        }
        waiting.check(|| format!("{} of {} datagrams", arrivals.len(), datagrams.len()))?;
    }
    same(&arrivals, datagrams.iter().map(Vec::as_slice))
}

pub(super) fn what_a_budget_leaves_comes_later<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    for budget in [1, 3, 7] {
        // Of one size, as they are joined; of two sizes, as they are not.
        for other in [200, 201] {
            let datagrams = context.datagrams((0..20).map(|index| if index % 2 == 0 { 200 } else { other }));
            wire.commit_all(&datagrams)?;
            wire.left.settle()?;
            rest();
            let mut arrivals = Vec::new();
            loop {
                let report = wire.right.recv(budget, &mut arrivals)?;
                if report.budget_hit {
                    continue;
                }
                let (got, all) = (arrivals.len(), datagrams.len());
                ensure!(got == all, "budget_hit is unset after {got} of {all} datagrams, {budget} a call");
                break;
            }
            same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
        }
    }
    Ok(())
}

pub(super) fn an_empty_wire_returns_at_once<D: Driver>(context: &mut Context<D>) -> Outcome {
    const CALLS: u32 = 1000;
    let mut wire = context.wire(Link::default())?;
    wire.cross(&[context.datagram(100)])?;
    let started = Std::now();
    for call in 1..=CALLS {
        let report = wire.right.recv(1, &mut Vec::new())?;
        ensure_eq!(report, RxReport::default(), "report of a recv with nothing to lend");
        let took = started.elapsed();
        ensure!(
            took < Duration::from_secs(1),
            "{call} calls with nothing to lend took {took:?}: recv blocks"
        );
    }
    Ok(())
}

pub(super) fn a_truncated_datagram_is_counted_and_not_lent<D: Driver>(context: &mut Context<D>) -> Outcome {
    const SLOT: usize = 600;
    let link = Link { right_slot: Some(SLOT), ..Link::default() };
    let mut wire = context.wire(link)?;
    if wire.right.driver.caps().max_datagram >= context.longest(&link) {
        let reason = "no datagram that reaches it is too long for its buffers";
        return Err(Verdict::NotClaimed(reason.to_owned()));
    }
    let datagrams = context.datagrams([SLOT, SLOT + 1, 1, 1200, 1200, 2, SLOT]);
    wire.commit_all(&datagrams)?;
    wire.left.settle()?;
    let (mut arrivals, mut truncated, mut waiting) = (Vec::new(), 0, wire.waiting());
    while arrivals.len() + truncated < datagrams.len() {
        truncated += wire.right.recv(2, &mut arrivals)?.truncated;
        waiting.check(|| format!("{} datagrams and {truncated} truncated ones", arrivals.len()))?;
    }
    ensure_eq!(truncated, 3, "datagrams counted as truncated");
    let whole = datagrams.iter().filter(|data| data.len() <= SLOT).map(Vec::as_slice);
    same(&arrivals, whole.collect::<Vec<_>>().into_iter())?;
    wire.nothing_more()
}

pub(super) fn the_source_is_the_senders_address<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    for _ in 0..2 {
        let from = wire.left.driver.local_addr();
        let to_canonical = from.ip().to_canonical();
        ensure_eq!(from.ip(), to_canonical, "the local address");
        let datagrams = context.datagrams([100, 100, 7, 1200]);
        let meta = wire.to_right();
        let arrivals = wire.carry(datagrams.iter().map(|data| (meta, data.as_slice())))?;
        all_from_left(&wire, &arrivals)?;
        wire.swap();
    }
    Ok(())
}

pub(super) fn the_destination_is_the_local_address<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.claiming(Claim::LocalIp, Link::default())?;
    for _ in 0..2 {
        let meta = wire.to_right();
        let datagrams = context.datagrams([100, 100, 7, 1200]);
        for arrival in wire.carry(datagrams.iter().map(|data| (meta, data.as_slice())))? {
            ensure_eq!(arrival.meta.to, Some(meta.to.ip()), "destination of an arrival");
        }
        wire.swap();
    }
    Ok(())
}

pub(super) fn marks_arrive<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.claiming(Claim::Ecn, Link::default())?;
    for _ in 0..2 {
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            let meta = TxMeta { ecn, ..wire.to_right() };
            let data = context.datagram(100);
            for arrival in wire.carry([(meta, data.as_slice()), (meta, data.as_slice())])? {
                ensure_eq!(arrival.meta.ecn, ecn, "mark of an arrival");
            }
        }
        wire.swap();
    }
    Ok(())
}

pub(super) fn a_peer_that_is_gone_is_no_error<D: Driver>(context: &mut Context<D>) -> Outcome {
    let wire = context.wire(Link::default())?;
    let meta = wire.to_right();
    let Wire { mut left, right, guard } = wire;
    drop(right);
    for _ in 0..10 {
        left.must_commit(&meta, b"nobody is there")?;
        left.flush()?;
        let report = left.recv(9, &mut Vec::new())?;
        ensure_eq!(report.datagrams, 0, "datagrams from a peer that is gone");
    }
    drop(left);
    drop(guard);
    Ok(())
}

pub(super) fn an_empty_datagram_crosses<D: Driver>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    wire.cross(&context.datagrams([5, 0, 5, 0, 0, 1]))
}

fn all_from_left<D: Driver>(wire: &Wire<D>, arrivals: &[Arrival]) -> Outcome {
    let from = wire.left.driver.local_addr();
    for arrival in arrivals {
        ensure_eq!(arrival.meta.from, from, "source of an arrival");
    }
    Ok(())
}
