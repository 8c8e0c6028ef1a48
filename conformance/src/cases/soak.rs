//! Long use: nothing is lost, nothing grows, everything comes back.

use std::fs;
use std::time::{Duration, Instant as Std};

use wraith_drivers::Driver;
use wraith_proto::{TxMeta, TxQueue};
use wraith_sim::alloc;

use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::context::{Context, must_count};
use crate::harness::Link;
use crate::wire::{End, Wire};

/// Bytes of each datagram; the first eight are its number.
const LEN: usize = 1200;
/// When datagrams in plenty may end before all have crossed, and how many each way are plenty: where each hand-over waits
/// for a processor, all of them take longer than a case may.
const ENOUGH: Duration = Duration::from_mins(1);
const PLENTY: u64 = 2_000;
/// Datagrams that are under way at most.
const WINDOW: u64 = Link::WINDOW as u64 / 2;

pub(super) fn many_datagrams_cross_both_ways<D: Driver>(context: &mut Context<D>) -> Outcome {
    let count = context.options.budget.pick(50_000, 1_000_000);
    let mut wire = context.wire(Link { tx_slots: 32, ..Link::default() })?;
    let longest = context.longest(&Link::default());
    let room = room(&mut wire, longest)?;
    let mut flow = Flow::default();
    flow.run(&mut wire, count)?;
    for end in [&wire.left, &wire.right] {
        ensure_eq!(end.tally.dropped, 0, "dropped datagrams of {count}");
    }
    ensure_eq!(self::room(&mut wire, longest)?, room, "datagrams that find room after {count} each way");
    Ok(())
}

pub(super) fn nothing_allocates<D: Driver>(context: &mut Context<D>) -> Outcome {
    must_count()?;
    let count = context.options.budget.pick(10_000, 100_000);
    let mut wire = context.wire(Link::default())?;
    let mut flow = Flow::default();
    flow.run(&mut wire, 2000)?;
    let (outcome, counts) = alloc::measure(|| flow.run(&mut wire, count));
    outcome?;
    ensure_eq!(counts.allocations, 0, "allocations for {count} datagrams each way");
    Ok(())
}

/// No other case runs meanwhile: see [`Suite`](crate::Suite).
pub(super) fn descriptors_come_back<D: Driver>(context: &mut Context<D>) -> Outcome {
    /// Pairs made and dropped, each of which would leave at least one.
    const PAIRS: usize = 20;
    let pair = |context: &mut Context<D>| -> Outcome {
        let mut wire = context.wire(Link { tx_slots: 4, ..Link::default() })?;
        wire.cross(&context.datagrams([100]))
    };
    let open = || fs::read_dir("/dev/fd").map(Iterator::count);
    // What is opened once for all of them.
    pair(context)?;
    let Ok(before) = open() else {
        return Err(Verdict::Unavailable("/dev/fd does not list the open descriptors".to_owned()));
    };
    for _ in 0..PAIRS {
        pair(context)?;
    }
    let after = open()?;
    // What is not the suite's may open some, too.
    ensure!(
        after < before + PAIRS / 2,
        "{before} descriptors were open before {PAIRS} pairs, {after} behind them"
    );
    Ok(())
}

pub(super) fn memory_comes_back<D: Driver>(context: &mut Context<D>) -> Outcome {
    const PAIRS: i64 = 20;
    must_count()?;
    let pair = |context: &mut Context<D>| -> Outcome {
        let mut wire = context.wire(Link { tx_slots: 4, ..Link::default() })?;
        wire.cross(&context.datagrams([100]))
    };
    // What is made once for all of them.
    pair(context)?;
    let before = alloc::live_bytes();
    for _ in 0..PAIRS {
        pair(context)?;
    }
    let kept = alloc::live_bytes() - before;
    ensure!(kept < 64 * PAIRS, "{kept} bytes were kept of {PAIRS} pairs");
    Ok(())
}

pub(super) fn a_driver_is_dropped_with_datagrams_waiting<D: Driver>(context: &mut Context<D>) -> Outcome {
    // What the system itself takes to end a pair: devices of a busy machine take seconds.
    let system = dropped(context.wire(Link { tx_slots: 16, ..Link::default() })?);
    let mut took = Duration::ZERO;
    for flushed in [false, true] {
        let mut wire = context.wire(Link { tx_slots: 16, ..Link::default() })?;
        for _ in 0..3 {
            wire.commit_all(&context.datagrams([1000, 1000, 10]))?;
            if flushed {
                wire.left.flush()?;
            }
        }
        let meta = wire.to_right();
        ensure!(wire.left.driver.tx().reserve(&meta, 10).is_some(), "no room for a tenth datagram");
        took += dropped(wire);
    }
    let patience = context.options.patience;
    ensure!(
        took < patience + system,
        "dropping two pairs took {took:?}, one with nothing waiting {system:?}"
    );
    Ok(())
}

/// How long it takes to drop a pair.
fn dropped<D>(wire: Wire<D>) -> Duration {
    let started = Std::now();
    drop(wire);
    started.elapsed()
}

/// Numbered datagrams both ways, without a look at the allocator.
#[derive(Default)]
struct Flow {
    /// Sent and received, from left to right and from right to left.
    lanes: [(u64, u64); 2],
}

impl Flow {
    /// Exchanges `count` more each way.
    fn run<D: Driver>(&mut self, wire: &mut Wire<D>, count: u64) -> Outcome {
        let to_right = wire.to_right();
        let to_left = TxMeta { to: wire.left.driver.local_addr(), ..to_right };
        let start = self.lanes[0].1;
        let mut goal = start + count;
        let started = Std::now();
        let mut waiting = wire.waiting();
        while self.lanes.iter().any(|&(_, received)| received < goal) {
            let before = self.lanes;
            if started.elapsed() > ENOUGH {
                // Both ways alike, and what was sent has to arrive.
                let sent = before[0].0.max(before[1].0);
                goal = goal.min(sent.max(start + PLENTY));
            }
            for (lane, meta) in [(0, &to_right), (1, &to_left)] {
                let (sender, receiver) = match lane {
                    0 => (&mut wire.left, &mut wire.right),
                    _ => (&mut wire.right, &mut wire.left),
                };
                let (sent, received) = &mut self.lanes[lane];
                send(sender, meta, sent, goal.min(*received + WINDOW))?;
                receive(receiver, received)?;
            }
            if self.lanes == before {
                waiting.check(|| format!("{before:?} sent and received each way"))?;
            } else {
                waiting = wire.waiting();
            }
        }
        Ok(())
    }
}

/// Commits datagrams up to number `end` and flushes.
fn send<D: Driver>(end: &mut End<D>, meta: &TxMeta, sent: &mut u64, until: u64) -> Outcome {
    while *sent < until {
        let tx = end.driver.tx();
        let Some(room) = tx.reserve(meta, LEN) else { break };
        room[8..LEN].fill(*sent as u8);
        room[..8].copy_from_slice(&sent.to_le_bytes());
        tx.commit(LEN);
        end.tally.committed += 1;
        *sent += 1;
    }
    end.flush().map(|_| ())
}

fn receive<D: Driver>(end: &mut End<D>, received: &mut u64) -> Outcome {
    let mut wrong = false;
    end.driver.recv(Link::WINDOW, |_, data| {
        let number = received.to_le_bytes();
        let intact = data.len() == LEN
            && data[..8] == number
            && data[8] == number[0]
            && data[8..LEN - 1] == data[9..LEN];
        wrong |= !intact;
        *received += 1;
    })?;
    ensure!(!wrong, "another datagram than number {received} or one before it");
    Ok(())
}

/// Datagrams of `len` bytes that find room between two flushes.
fn room<D: Driver>(wire: &mut Wire<D>, len: usize) -> Outcome<usize> {
    const ENOUGH: usize = 1000;
    let meta = wire.to_right();
    let before = wire.left.tally.committed;
    let data = vec![0; len];
    while wire.left.tally.committed - before < ENOUGH && wire.left.commit(&meta, &data) {}
    let room = wire.left.tally.committed - before;
    ensure!(room > 0, "no room for a datagram of {len} bytes");
    wire.drain()?;
    Ok(room)
}
