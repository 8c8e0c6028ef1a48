//! Whether packets wait in a queue on the way: then even the shortest round trip of a round is longer than it need be.

use crate::recovery::rtt::Rtt;
use crate::time::nanos;

/// The share of the shortest round-trip time that counts as a queue, as in `HyStart++` (RFC 9406 §4.2).
const DIVISOR: u64 = 8;
/// Shorter delays are noise, in nanoseconds (`MIN_RTT_THRESH`).
const SHORTEST: u64 = 4_000_000;
/// Longer ones are always a queue, in nanoseconds (`MAX_RTT_THRESH`).
const LONGEST: u64 = 16_000_000;
/// A minimum without samples.
const NONE: u64 = u64::MAX;

/// The shortest round trip of each round of packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueWatch {
    /// The round ends when this packet, or a later one, is acknowledged.
    round_end: u64,
    last: u64,
    current: u64,
    /// The shortest of all.
    base: u64,
}

impl QueueWatch {
    pub(super) const fn new() -> Self {
        Self { round_end: 0, last: NONE, current: NONE, base: NONE }
    }

    /// Takes an ACK frame and the round trip that it measured.
    pub(super) fn on_ack_frame(&mut self, largest_acked: u64, next_packet: u64, rtt: &Rtt) {
        self.base = nanos(rtt.min());
        self.current = self.current.min(nanos(rtt.adjusted()));
        if largest_acked >= self.round_end {
            (self.last, self.current, self.round_end) = (self.current, NONE, next_packet);
        }
    }

    /// Whether there was a queue all through the last round, as far as is known.
    pub(super) const fn is_there(&self) -> bool {
        self.last == NONE || self.base == 0 || is_queue(self.base, self.last)
    }
}

/// Whether a round whose shortest round trip is `shortest` met a queue, where the path has shown `base`; nanoseconds.
pub(super) const fn is_queue(base: u64, shortest: u64) -> bool {
    let mut threshold = base / DIVISOR;
    if threshold < SHORTEST {
        threshold = SHORTEST;
    } else if threshold > LONGEST {
        threshold = LONGEST;
    }
    shortest >= base.saturating_add(threshold)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn watched(samples: &[u64]) -> QueueWatch {
        let (mut watch, mut rtt) = (QueueWatch::new(), Rtt::new());
        for (round, &sample) in (1..).zip(samples) {
            rtt.sample(MS(sample), Duration::ZERO, MS(25), true);
            watch.on_ack_frame(round, round, &rtt);
        }
        watch
    }

    #[test]
    fn a_round_whose_shortest_trip_is_long_has_a_queue() {
        assert!(watched(&[50, 57]).is_there());
        assert!(!watched(&[50, 56]).is_there());
        assert!(!watched(&[50, 80, 50]).is_there());
        // At most 16 ms, at least 4.
        assert!(watched(&[300, 316]).is_there());
        assert!(!watched(&[10, 13]).is_there());
    }

    #[test]
    fn an_unknown_path_is_taken_to_have_one() {
        assert!(watched(&[]).is_there());
    }
}
