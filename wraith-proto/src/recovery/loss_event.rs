//! Packets that are declared lost together.

use core::time::Duration;

use crate::time::Instant;

/// Losses found in one go.
#[derive(Debug)]
pub(super) struct LossEvent {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Not all of them were too large for the path: some speak of congestion.
    pub(super) congestion: bool,
    /// When the first packet of the unbroken run of losses was sent.
    run_start: Instant,
    /// The longest time between the first and the last packet of an unbroken run.
    pub(super) longest: Duration,
}

impl LossEvent {
    pub(super) fn new(number: u64, sent_at: Instant) -> Self {
        Self {
            first: number,
            last: number,
            packets: 0,
            bytes: 0,
            congestion: false,
            run_start: sent_at,
            longest: Duration::ZERO,
        }
    }

    pub(super) fn add(&mut self, number: u64, size: u16, sent_at: Instant, congestion: bool) {
        // A skipped number does not break the run.
        if number > self.last + 2 {
            self.run_start = sent_at;
        }
        self.last = number;
        self.packets += 1;
        self.congestion |= congestion;
        self.bytes += u64::from(size);
        self.longest = self.longest.max(sent_at.saturating_since(self.run_start));
    }
}
