//! Virtual time.

use std::fmt::Debug;
use std::time::Duration;

use wraith_proto::Instant;

/// The time of a simulation. It starts at one hour, so that tests may look back.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    now: Instant,
    turns: u32,
}

/// Steps at one instant after which a simulation is taken to be stuck.
const PATIENCE: u32 = 1_000_000;

impl Clock {
    /// A clock at its start.
    pub const fn new() -> Self {
        Self { now: Instant::from_nanos(3_600_000_000_000), turns: 0 }
    }

    /// Moves to `at`, or stays if that is past; `cause` is who asked for it.
    ///
    /// # Panics
    /// If a million calls in a row did not move it: a deadline does not pass by being handled.
    pub fn advance(&mut self, at: Instant, cause: impl Debug) {
        if at > self.now {
            self.now = at;
            self.turns = 0;
        } else {
            self.turns += 1;
            assert!(self.turns < PATIENCE, "time stands still at {:?} for {cause:?}", self.now);
        }
    }

    /// The time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The time `by` later.
    pub const fn after(&self, by: Duration) -> Instant {
        self.now.saturating_add(by)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_forwards_only() {
        let mut clock = Clock::new();
        let start = clock.now();
        clock.advance(clock.after(Duration::from_secs(1)), ());
        clock.advance(start, ());
        assert_eq!(clock.now().saturating_since(start), Duration::from_secs(1));
    }

    #[test]
    #[should_panic(expected = "for \"a test\"")]
    fn a_deadline_that_does_not_pass_is_found() {
        let mut clock = Clock::new();
        for _ in 0..PATIENCE {
            clock.advance(clock.now(), "a test");
        }
    }
}
