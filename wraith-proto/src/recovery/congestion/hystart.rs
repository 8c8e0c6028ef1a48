//! `HyStart++` (RFC 9406): leaves slow start when the round-trip time rises, before the queue overflows.
//!
//! Rounds are counted by packet number. The RFC wants 8 samples for a verdict and assumes an ACK per two packets; ours
//! cover up to 64, so that the early rounds hold fewer ACKs than that. There the verdict falls after as many samples
//! as the round before had (at least 2), or with the round's last ACK: a minimum of n samples is compared with one
//! of n samples, and a verdict in error only leads to conservative slow start, which ends it if the delay vanishes.

use core::time::Duration;

use crate::time::nanos;

/// Delay increases below it are noise, in nanoseconds (`MIN_RTT_THRESH`).
const MIN_RTT_THRESHOLD: u64 = 4_000_000;
/// Delay increases above it are always a queue, in nanoseconds (`MAX_RTT_THRESH`).
const MAX_RTT_THRESHOLD: u64 = 16_000_000;
/// The share of the round-trip time that counts as an increase (`MIN_RTT_DIVISOR`).
const RTT_DIVISOR: u64 = 8;
/// Samples for a verdict where a round has that many (`N_RTT_SAMPLE`).
const MAX_SAMPLES: u8 = 8;
/// One sample is no minimum, if the round has more.
const MIN_SAMPLES: u8 = 2;
/// How much slower the window grows in conservative slow start (`CSS_GROWTH_DIVISOR`).
const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds of conservative slow start until congestion avoidance (`CSS_ROUNDS`).
const CSS_ROUNDS: u8 = 5;
/// A minimum without samples.
const NONE: u64 = u64::MAX;

/// Conservative slow start: slower growth while it is open whether the delay is a queue.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline: u64,
    rounds: u8,
}

/// The delay watch of one path's first slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    /// Largest packet acknowledged so far.
    largest: Option<u64>,
    /// The round ends when this packet, or a later one, is acknowledged.
    round_end: u64,
    last_min: u64,
    current_min: u64,
    samples: u8,
    needed: u8,
    conservative: Option<Conservative>,
}

impl HyStart {
    pub(super) const fn new() -> Self {
        Self {
            largest: None,
            round_end: 0,
            last_min: NONE,
            current_min: NONE,
            samples: 0,
            needed: MAX_SAMPLES,
            conservative: None,
        }
    }

    /// Takes an ACK frame and the round trip it measured; returns whether slow start is over.
    pub(super) fn on_ack_frame(&mut self, largest_acked: u64, largest_sent: u64, rtt: Duration) -> bool {
        match self.largest {
            None => self.round_end = largest_sent,
            // Without a new largest packet there is no new sample (RFC 9002 §5.1).
            Some(largest) if largest_acked <= largest => return false,
            Some(_) => {}
        }
        self.largest = Some(largest_acked);
        self.current_min = self.current_min.min(nanos(rtt));
        self.samples = self.samples.saturating_add(1);

        let round_over = largest_acked >= self.round_end;
        // A round counts if any of it was spent in conservative slow start.
        let counts = self.conservative.is_some();
        if self.samples >= self.needed || round_over {
            self.judge();
        }
        round_over && self.start_round(largest_sent, counts)
    }

    /// The window grows by the bytes acknowledged, divided by this.
    pub(super) const fn growth_divisor(&self) -> u64 {
        if self.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1 }
    }

    fn judge(&mut self) {
        if let Some(conservative) = self.conservative {
            if self.current_min < conservative.baseline {
                self.conservative = None;
            }
        } else if self.last_min != NONE {
            let threshold = (self.last_min / RTT_DIVISOR).clamp(MIN_RTT_THRESHOLD, MAX_RTT_THRESHOLD);
            if self.current_min >= self.last_min.saturating_add(threshold) {
                self.conservative = Some(Conservative { baseline: self.current_min, rounds: 0 });
            }
        }
    }

    fn start_round(&mut self, largest_sent: u64, counts: bool) -> bool {
        self.round_end = largest_sent;
        self.last_min = self.current_min;
        self.current_min = NONE;
        self.needed = self.samples.clamp(MIN_SAMPLES, MAX_SAMPLES);
        self.samples = 0;
        let Some(conservative) = &mut self.conservative else { return false };
        if counts {
            conservative.rounds += 1;
        }
        conservative.rounds >= CSS_ROUNDS
    }
}

#[cfg(test)]
mod tests;
