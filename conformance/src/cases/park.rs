//! Parking a thread.

use std::iter::repeat_n;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant as Std};

use wraith_drivers::{Driver, Park, Unpark, Wake};
use wraith_proto::{Instant, TxMeta};
use wraith_sim::alloc;

use super::proto::runners;
use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::context::{Context, must_count};
use crate::harness::{Link, Pair};
use crate::talk::Plan;
use crate::wire::{End, Wire, rest, same};

/// Wakes without a cause that a park may have before it counts as no park.
const SPURIOUS: usize = 8;
/// When rounds may end before all are done: each of them has waited for a processor again and again by then.
const ENOUGH: Duration = Duration::from_secs(20);
/// Long enough for another thread to be parked, in most runs; no verdict hangs on it.
const A_WHILE: Duration = Duration::from_millis(20);

pub(super) fn a_deadline_is_never_early<D: Park>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    for micros in [0, 1, 300, 999, 1000, 1001, 2700, 10_000] {
        let until = wire.left.driver.now().saturating_add(Duration::from_micros(micros));
        let wake = park_until_something(&mut wire.left, until)?;
        let now = wire.left.driver.now();
        ensure_eq!(wake, Wake::Deadline, "end of a park of {micros} us on an idle wire");
        ensure!(now >= until, "a park of {micros} us ended {:?} early", until.saturating_since(now));
    }
    Ok(())
}

pub(super) fn a_deadline_that_has_passed_ends_a_park_at_once<D: Park>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let started = Std::now();
    for _ in 0..100 {
        for until in [Instant::MIN, wire.left.driver.now()] {
            let wake = park_until_something(&mut wire.left, until)?;
            ensure_eq!(wake, Wake::Deadline, "end of a park until an instant that has passed");
        }
    }
    let took = started.elapsed();
    ensure!(took < Duration::from_secs(1), "200 parks until instants that have passed took {took:?}");
    Ok(())
}

pub(super) fn a_deadline_is_met_closely<D: Park>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let mut least = Duration::MAX;
    // The best of many: other programs make a thread late, too.
    for _ in 0..50 {
        let until = wire.left.driver.now().saturating_add(Duration::from_micros(1300));
        park_until_something(&mut wire.left, until)?;
        least = least.min(wire.left.driver.now().saturating_since(until));
    }
    ensure!(least < Duration::from_millis(1), "every park of 1.3 ms ended {least:?} late or later");
    Ok(())
}

pub(super) fn what_has_arrived_ends_a_park<D: Park>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    for len in [1, 1400] {
        let data = context.datagram(len);
        wire.commit_all(std::slice::from_ref(&data))?;
        wire.left.settle()?;
        rest();
        must_wake(&mut wire.right, Wake::Traffic, "a park with a datagram waiting")?;
        let mut arrivals = Vec::new();
        wire.right.recv(9, &mut arrivals)?;
        same(&arrivals, [data.as_slice()].into_iter())?;
    }
    Ok(())
}

pub(super) fn what_arrives_ends_a_park<D: Park + Send>(context: &mut Context<D>) -> Outcome {
    let wire = context.wire(Link::default())?;
    let meta = wire.to_right();
    let Wire { mut left, mut right, guard } = wire;
    for _ in 0..5 {
        thread::scope(|scope| {
            let sending = scope.spawn(|| {
                wait(A_WHILE);
                left.must_commit(&meta, b"at last")?;
                left.settle()
            });
            must_wake(&mut right, Wake::Traffic, "a park that met a datagram")?;
            joined(sending.join())
        })?;
        receive_parked(&mut right, 1)?;
    }
    drop((left, right));
    drop(guard);
    Ok(())
}

pub(super) fn a_spent_budget_ends_the_next_park<D: Park>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    for other in [200, 201] {
        // Of one size, as they are joined; of two sizes, as they are not.
        let datagrams = context.datagrams((0..20).map(|index| if index % 2 == 0 { 200 } else { other }));
        wire.commit_all(&datagrams)?;
        wire.left.settle()?;
        let mut arrivals = Vec::new();
        for budget in [1, 2, 3].into_iter().cycle() {
            must_wake(&mut wire.right, Wake::Traffic, "a park with datagrams left by a budget")?;
            wire.right.recv(budget, &mut arrivals)?;
            if arrivals.len() >= datagrams.len() {
                break;
            }
        }
        same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
    }
    Ok(())
}

pub(super) fn an_unpark_ends_the_running_park<D: Park>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    for _ in 0..5 {
        let unparker = wire.left.driver.unparker();
        let other = thread::spawn(move || {
            wait(A_WHILE);
            unparker.unpark()
        });
        must_wake(&mut wire.left, Wake::Unparked, "a park that another thread ends")?;
        joined(other.join().map(|result| result.map_err(Verdict::from)))?;
    }
    Ok(())
}

pub(super) fn an_unpark_ends_the_next_park_once<D: Park>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let unparker = wire.left.driver.unparker();
    for unparks in [1, 2, 100] {
        for _ in 0..unparks {
            unparker.clone().unpark()?;
        }
        must_wake(&mut wire.left, Wake::Unparked, "the park after an unpark")?;
        let now = wire.left.driver.now();
        let wake = park_until_something(&mut wire.left, now)?;
        ensure_eq!(wake, Wake::Deadline, "the second park after {unparks} unparks");
    }
    // One end's unparker is nothing to the other.
    unparker.unpark()?;
    let now = wire.right.driver.now();
    ensure_eq!(
        park_until_something(&mut wire.right, now)?,
        Wake::Deadline,
        "the peer's park after an unpark"
    );
    Ok(())
}

pub(super) fn an_unpark_beside_traffic_is_reported<D: Park>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    for _ in 0..20 {
        wire.commit_all(&context.datagrams([100]))?;
        wire.left.settle()?;
        rest();
        wire.right.driver.unparker().unpark()?;
        let mut wakes = Vec::new();
        let mut arrivals = Vec::new();
        let until = wire.right.deadline();
        while !wakes.contains(&Wake::Unparked) {
            let wake = wire.right.driver.park(Some(until))?;
            wakes.push(wake);
            ensure!(wake != Wake::Deadline, "an unpark beside traffic was never reported");
            while wire.right.recv(1, &mut arrivals)?.budget_hit {}
        }
        if arrivals.is_empty() {
            must_wake(&mut wire.right, Wake::Traffic, "a park with a datagram waiting, after an unpark")?;
            wire.right.recv(9, &mut arrivals)?;
        }
        ensure_eq!(arrivals.len(), 1, "arrivals");
    }
    Ok(())
}

pub(super) fn an_idle_wire_lets_a_thread_park<D: Park>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    wire.cross(&context.datagrams([100, 100, 50]))?;
    let mut nothing = Vec::new();
    while wire.right.recv(9, &mut nothing)?.budget_hit {}
    for _ in 0..3 {
        let until = wire.right.driver.now().saturating_add(A_WHILE);
        let mut wakes = 0;
        while wire.right.driver.park(Some(until))? != Wake::Deadline {
            wakes += 1;
            ensure!(wakes <= SPURIOUS, "{wakes} parks on an idle wire reported something");
            while wire.right.recv(9, &mut nothing)?.budget_hit {}
        }
    }
    ensure!(nothing.is_empty(), "{} datagrams arrived that nobody sent", nothing.len());
    Ok(())
}

pub(super) fn room_ends_a_park<D: Park + Send>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link { tx_slots: 16, ..Link::default() })?;
    let meta = wire.to_right();
    let mut sent = 0;
    while wire.left.tally.in_flight == 0 {
        if sent == Link::WINDOW - 1 {
            return Err(Verdict::NotClaimed("its network takes everything at once".to_owned()));
        }
        wire.left.must_commit(&meta, &context.datagram(1000))?;
        wire.left.flush()?;
        sent += 1;
    }
    let Wire { mut left, mut right, guard } = wire;
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            wait(A_WHILE);
            receive_parked(&mut right, sent)
        });
        while left.tally.in_flight > 0 {
            must_wake(&mut left, Wake::Traffic, "a park with datagrams held back")?;
            left.flush()?;
        }
        joined(receiving.join())
    })?;
    drop((left, right));
    drop(guard);
    Ok(())
}

pub(super) fn no_wake_up_is_lost<D: Park + Send>(context: &mut Context<D>) -> Outcome {
    let rounds = context.options.budget.pick(2000, 50_000);
    let wire = context.wire(Link::default())?;
    let (to_right, to_left) =
        (wire.to_right(), TxMeta { to: wire.left.driver.local_addr(), ..wire.to_right() });
    let Wire { mut left, mut right, guard } = wire;
    // Two threads that wake each other by datagrams; neither has time to fall asleep, or to be asleep, for certain.
    let (started, over) = (Std::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        let echo = scope.spawn(|| {
            loop {
                receive_parked(&mut right, 1)?;
                // Before the answer, which the next round waits for.
                let last = over.load(Ordering::SeqCst);
                right.must_commit(&to_left, b"pong")?;
                right.flush()?;
                if last {
                    return Ok(());
                }
            }
        });
        for round in 1..=rounds {
            let last = round == rounds || started.elapsed() > ENOUGH;
            over.store(last, Ordering::SeqCst);
            left.must_commit(&to_right, b"ping")?;
            left.flush()?;
            receive_parked(&mut left, 1)?;
            if last {
                break;
            }
        }
        joined(echo.join())
    })?;
    // And by unparks.
    let started = Std::now();
    let (turn, turns) = mpsc::sync_channel::<()>(0);
    let unparker = left.driver.unparker();
    let other = thread::spawn(move || turns.iter().try_for_each(|()| unparker.unpark()));
    for _ in 0..rounds {
        if started.elapsed() > ENOUGH || turn.send(()).is_err() {
            break;
        }
        must_wake(&mut left, Wake::Unparked, "a park that another thread ends")?;
    }
    drop(turn);
    joined(other.join().map(|result| result.map_err(Verdict::from)))?;
    drop((left, right));
    drop(guard);
    Ok(())
}

pub(super) fn sessions_run_on_two_threads<D: Park + Send>(context: &mut Context<D>) -> Outcome {
    let stream = context.options.budget.pick(4 << 20, 64 << 20);
    let Pair { left, right, guard } = context.pair(&Link::default())?;
    let [mut left, mut right] = runners(context, left, right, Plan { stream, datagrams: 0 })?;
    let (stop, unparker) = (right.app_mut().stopper(), right.driver().unparker());
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            right.run()?;
            right.app_mut().verdict()
        });
        let mine = left.run().map_err(Verdict::from).and_then(|()| left.app_mut().verdict());
        if mine.is_err() {
            // The other end may wait for what never comes.
            stop.store(true, Ordering::Relaxed);
            unparker.unpark()?;
        }
        let theirs = joined(other.join());
        mine.and(theirs)
    })?;
    drop((left, right));
    drop(guard);
    Ok(())
}

pub(super) fn parking_allocates_nothing<D: Park>(context: &mut Context<D>) -> Outcome {
    must_count()?;
    let mut wire = context.wire(Link::default())?;
    let datagrams = context.datagrams(repeat_n(100, 4));
    let unparker = wire.right.driver.unparker();
    let mut parks = |rounds: u32| -> Outcome {
        for _ in 0..rounds {
            wire.commit_all(&datagrams)?;
            wire.left.settle()?;
            unparker.unpark()?;
            for micros in [0, 0, 100] {
                let until = wire.right.driver.now().saturating_add(Duration::from_micros(micros));
                wire.right.driver.park(Some(until))?;
                while wire.right.driver.recv(2, |_, _| {})?.budget_hit {}
            }
        }
        Ok(())
    };
    parks(100)?;
    let (outcome, counts) = alloc::measure(|| parks(1000));
    outcome?;
    ensure_eq!(counts.allocations, 0, "allocations in 3000 parks");
    Ok(())
}

impl<D: Driver> End<D> {
    /// When the patience of a wait that begins now is at its end, on the driver's clock.
    fn deadline(&self) -> Instant {
        self.driver.now().saturating_add(self.patience)
    }
}

/// Parks until the deadline or an unpark; traffic without a cause is passed over a few times.
fn park_until_something<D: Park>(end: &mut End<D>, until: Instant) -> Outcome<Wake> {
    for _ in 0..SPURIOUS {
        match end.driver.park(Some(until))? {
            Wake::Traffic => while end.recv(9, &mut Vec::new())?.budget_hit {},
            wake => return Ok(wake),
        }
    }
    Ok(Wake::Traffic)
}

/// Parks with a deadline that is never to come.
fn must_wake<D: Park>(end: &mut End<D>, expected: Wake, what: &str) -> Outcome {
    let until = end.deadline();
    let wake = if expected == Wake::Traffic {
        end.driver.park(Some(until))?
    } else {
        park_until_something(end, until)?
    };
    ensure_eq!(wake, expected, "end of {what}");
    ensure!(end.driver.now() < until, "{what} ended with its deadline, {:?} later", end.patience);
    Ok(())
}

/// Receives `count` datagrams, parked in between.
fn receive_parked<D: Park>(end: &mut End<D>, count: usize) -> Outcome {
    let until = end.deadline();
    let mut got = 0;
    loop {
        let report = end.driver.recv(Link::WINDOW, |_, _| {})?;
        got += report.datagrams;
        if got >= count {
            return Ok(());
        }
        if !report.budget_hit {
            let wake = end.driver.park(Some(until))?;
            let slept = wake == Wake::Deadline || end.driver.now() >= until;
            ensure!(!slept, "a park slept over a datagram: {got} of {count} received");
        }
    }
}

fn wait(time: Duration) {
    let started = Std::now();
    while started.elapsed() < time {
        thread::yield_now();
    }
}

fn joined(result: thread::Result<Outcome>) -> Outcome {
    result.unwrap_or_else(|_| Err(Verdict::Fail("the other thread panicked".to_owned())))
}
