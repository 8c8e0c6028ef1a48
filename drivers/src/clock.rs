//! The one place that reads a clock, and a clock that stands still.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use wraith_proto::Instant;

/// The system's monotonic clock, as the core counts it.
///
/// Two clocks have different origins: their instants do not compare.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock whose origin is now.
    pub fn new() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// The present instant.
    pub fn now(&self) -> Instant {
        self.at(std::time::Instant::now())
    }

    /// A standard library instant on this clock; those before the origin become [`Instant::MIN`].
    pub fn at(&self, instant: std::time::Instant) -> Instant {
        Instant::MIN.saturating_add(instant.saturating_duration_since(self.origin))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// A clock that moves only when it is told to, shared by its clones.
#[derive(Clone, Debug)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    nanos: AtomicU64,
    watchers: Mutex<Vec<Weak<dyn Watcher>>>,
}

/// Somebody who waits for an instant of a [`ManualClock`].
pub(crate) trait Watcher: std::fmt::Debug + Send + Sync {
    /// The clock has moved.
    fn clock_moved(&self);
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Instant) -> Self {
        let nanos = AtomicU64::new(now.as_nanos());
        Self { shared: Arc::new(Shared { nanos, watchers: Mutex::new(Vec::new()) }) }
    }

    /// Moves the clock to `now`, never backwards, and wakes who waits for it.
    pub fn set(&self, now: Instant) {
        self.shared.nanos.fetch_max(now.as_nanos(), Ordering::SeqCst);
        let watchers = self.shared.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        for watcher in watchers.iter().filter_map(Weak::upgrade) {
            watcher.clock_moved();
        }
    }

    /// Moves the clock forward by `by`.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().saturating_add(by));
    }

    /// Where the clock stands.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.shared.nanos.load(Ordering::SeqCst))
    }

    /// Tells `watcher` of every move, as long as it lives.
    pub(crate) fn watch(&self, watcher: Weak<dyn Watcher>) {
        let mut watchers = self.shared.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|other| other.strong_count() > 0);
        watchers.push(watcher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_never_goes_backwards() {
        let clock = Clock::new();
        let first = clock.now();
        assert!(clock.now() >= first);
        assert_eq!(clock.at(clock.origin), Instant::MIN);
        let later = clock.origin + Duration::from_nanos(41);
        assert_eq!(clock.at(later).as_nanos(), 42);
    }

    #[test]
    fn a_manual_clock_moves_only_forward_and_with_its_clones() {
        let clock = ManualClock::new(Instant::from_nanos(10));
        let clone = clock.clone();
        clone.advance(Duration::from_nanos(5));
        clock.set(Instant::from_nanos(3));
        assert_eq!(clock.now(), Instant::from_nanos(15));
    }
}
