//! Pauses between tries: whoever has no luck tries ever more seldom, and not in step with others.

use std::time::Duration;

use crate::identity;

/// Until a network that did not answer, or did not keep something, is tried again: at first, and at most.
pub(crate) const NETWORK: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(1));

/// The pauses after tries that have failed.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
    draw: fn() -> u32,
}

impl Backoff {
    /// Pauses that double from `first` up to `most`, each shortened by up to a quarter, as the operating system's
    /// randomness has it: who failed together does not come back together.
    pub(crate) const fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, next: first, draw }
    }

    /// The pauses between tries of a network.
    pub(crate) const fn of_network() -> Self {
        Self::new(NETWORK.0, NETWORK.1)
    }

    /// The same with chance of the caller's own.
    #[cfg(test)]
    pub(crate) const fn with_draw(first: Duration, most: Duration, draw: fn() -> u32) -> Self {
        Self { first, most, next: first, draw }
    }

    /// How long to wait now.
    pub(crate) fn pause(&mut self) -> Duration {
        let whole = self.next;
        self.next = whole.saturating_mul(2).min(self.most);
        whole.mul_f64(1.0 - f64::from((self.draw)()) / f64::from(u32::MAX) / 4.0)
    }

    /// A try has succeeded: the next failure is the first.
    pub(crate) const fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Without randomness of the system pauses are whole.
fn draw() -> u32 {
    identity::random_seed()
        .map_or(0, |[first, second, third, fourth, ..]| u32::from_le_bytes([first, second, third, fourth]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_success() {
        let mut backoff = Backoff::with_draw(2 * SECOND, 60 * SECOND, || 0);
        let pauses: Vec<_> = (0..7).map(|_| backoff.pause().as_secs()).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60]);
        backoff.reset();
        assert_eq!(backoff.pause(), 2 * SECOND);
    }

    #[test]
    fn chance_shortens_a_pause_by_a_quarter_at_most() {
        let mut shortest = Backoff::with_draw(4 * SECOND, 4 * SECOND, || u32::MAX);
        assert_eq!(shortest.pause(), 3 * SECOND);
        let mut backoff = Backoff::new(4 * SECOND, 4 * SECOND);
        let pauses: Vec<_> = (0..32).map(|_| backoff.pause()).collect();
        assert!(pauses.iter().all(|pause| (3 * SECOND..=4 * SECOND).contains(pause)), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "all the same: {:?}", pauses[0]);
    }
}
