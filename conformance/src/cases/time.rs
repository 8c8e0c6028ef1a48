//! The clock.

use std::time::{Duration, Instant as Std};

use wraith_drivers::Driver;

use crate::case::{Outcome, ensure};
use crate::context::Context;
use crate::harness::Link;

pub(super) fn the_clock_never_goes_back<D: Driver>(context: &mut Context<D>) -> Outcome {
    let wire = context.wire(Link::default())?;
    let (mut left, mut right) = (wire.left.driver.now(), wire.right.driver.now());
    for _ in 0..context.options.budget.pick(100_000, 1_000_000) {
        let (left_now, right_now) = (wire.left.driver.now(), wire.right.driver.now());
        ensure!(left_now >= left, "the clock went from {left:?} to {left_now:?}");
        ensure!(right_now >= right, "the clock went from {right:?} to {right_now:?}");
        (left, right) = (left_now, right_now);
    }
    Ok(())
}

pub(super) fn the_clock_keeps_real_time<D: Driver>(context: &mut Context<D>) -> Outcome {
    /// What a coarse clock may be behind.
    const TICK: Duration = Duration::from_millis(10);
    let wire = context.wire(Link::default())?;
    let before = Std::now();
    let from = wire.left.driver.now();
    let after = Std::now();
    while after.elapsed() < Duration::from_millis(100) {
        std::thread::yield_now();
    }
    let least = after.elapsed();
    let passed = wire.left.driver.now().saturating_since(from);
    let most = before.elapsed();
    ensure!(passed + TICK >= least, "the clock counted {passed:?} of {least:?}");
    ensure!(passed <= most + TICK, "the clock counted {passed:?} in {most:?}");
    Ok(())
}

pub(super) fn the_clock_is_fine<D: Driver>(context: &mut Context<D>) -> Outcome {
    /// Ten datagrams of 1,200 bytes at 10 Gbit/s: what pacing has to tell apart.
    const FINE: Duration = Duration::from_micros(10);
    let wire = context.wire(Link::default())?;
    let now = || wire.left.driver.now();
    let step = (0..1000).map(|_| {
        let (from, mut to) = (now(), now());
        // A clock that stands still shows in another case.
        for _ in 0..1_000_000 {
            if to > from {
                break;
            }
            to = now();
        }
        to.saturating_since(from)
    });
    let least = step.min().unwrap_or_default();
    ensure!(least <= FINE, "the clock moves by {least:?} at a time");
    Ok(())
}
