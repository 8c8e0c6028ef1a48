//! Faults of clocks and claims.

use std::cell::Cell;

use wraith_drivers::{Caps, Driver};
use wraith_proto::Instant;

use super::Fault;

/// Goes back by a microsecond now and then.
#[derive(Debug, Default)]
pub struct ClockGoesBack {
    calls: Cell<u32>,
}

impl<D: Driver> Fault<D> for ClockGoesBack {
    fn now(&self, now: Instant) -> Instant {
        self.calls.set(self.calls.get().wrapping_add(1));
        let back = if self.calls.get().is_multiple_of(1000) { 1_000_000 } else { 0 };
        Instant::from_nanos(now.as_nanos().saturating_sub(back))
    }
}

/// Runs at half speed.
#[derive(Debug, Default)]
pub struct ClockIsSlow;

impl<D: Driver> Fault<D> for ClockIsSlow {
    fn now(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos() / 2)
    }
}

/// Counts milliseconds.
#[derive(Debug, Default)]
pub struct ClockIsCoarse;

impl<D: Driver> Fault<D> for ClockIsCoarse {
    fn now(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos() / 1_000_000 * 1_000_000)
    }
}

/// Says that it sends no datagram at all.
#[derive(Debug, Default)]
pub struct ClaimsNothing;

impl<D: Driver> Fault<D> for ClaimsNothing {
    fn caps(&self, mut caps: Caps) -> Caps {
        caps.tx_segments = 0;
        caps
    }
}

/// Changes its mind about ECN with every question.
#[derive(Debug, Default)]
pub struct CapsWaver {
    asked: Cell<bool>,
}

impl<D: Driver> Fault<D> for CapsWaver {
    fn caps(&self, mut caps: Caps) -> Caps {
        self.asked.set(!self.asked.get());
        caps.ecn = self.asked.get();
        caps
    }
}
