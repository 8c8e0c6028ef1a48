//! Round-trip time of a path (RFC 9002 §5), in whole nanoseconds.

use core::time::Duration;

use crate::time::nanos;

/// Assumed before the first sample (RFC 9002 §6.2.2).
const INITIAL: u64 = 333_000_000;
/// No timer is set finer than this (RFC 9002 §6.1.2, `kGranularity`).
const GRANULARITY: u64 = 1_000_000;
/// A longer sample counts as this one, 36 years, so that no sum below can overflow.
const LONGEST: u64 = 1 << 60;
/// `min` before the first sample.
const NONE: u64 = u64::MAX;

/// The estimate that loss detection, pacing and congestion control share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    latest: u64,
    adjusted: u64,
    smoothed: u64,
    var: u64,
    min: u64,
    has_sample: bool,
}

impl Rtt {
    /// An estimate of 333 ms, without a sample.
    pub(crate) const fn new() -> Self {
        Self {
            latest: INITIAL,
            adjusted: INITIAL,
            smoothed: INITIAL,
            var: INITIAL / 2,
            min: NONE,
            has_sample: false,
        }
    }

    /// Takes the time from sending the largest newly acknowledged packet until now.
    ///
    /// `ack_delay` is what the peer says it waited, `max_ack_delay` what it promised to wait at most; the promise
    /// binds once the handshake is confirmed (RFC 9002 §5.3).
    pub(crate) fn sample(
        &mut self,
        latest: Duration,
        ack_delay: Duration,
        max_ack_delay: Duration,
        handshake_confirmed: bool,
    ) {
        let latest = nanos(latest).min(LONGEST);
        let delay = nanos(if handshake_confirmed { ack_delay.min(max_ack_delay) } else { ack_delay });
        self.latest = latest;
        // The smallest round trip ignores the delay: a peer that lies must not push it below the path's own.
        self.min = self.min.min(latest);
        let credible = latest >= self.min.saturating_add(delay);
        self.adjusted = if credible { latest - delay } else { latest };
        if !self.has_sample {
            self.has_sample = true;
            self.adjusted = latest;
            self.smoothed = latest;
            self.var = latest / 2;
            return;
        }
        self.var = (3 * self.var + self.smoothed.abs_diff(self.adjusted)) / 4;
        self.smoothed = (7 * self.smoothed + self.adjusted) / 8;
    }

    /// Lets the next sample set the minimum anew, as after persistent congestion (RFC 9002 §5.2).
    pub(crate) fn forget_min(&mut self) {
        self.min = NONE;
    }

    /// Exponentially weighted mean, 333 ms before the first sample.
    pub(crate) const fn smoothed(&self) -> Duration {
        Duration::from_nanos(self.smoothed)
    }

    /// Mean deviation from the mean.
    #[cfg(any(test, feature = "trace"))]
    pub(crate) const fn var(&self) -> Duration {
        Duration::from_nanos(self.var)
    }

    /// Smallest sample, zero if there is none.
    pub(crate) const fn min(&self) -> Duration {
        Duration::from_nanos(if self.min == NONE { 0 } else { self.min })
    }

    /// Latest sample, the peer's delay included; 333 ms before the first.
    pub(crate) const fn latest(&self) -> Duration {
        Duration::from_nanos(self.latest)
    }

    /// Latest sample less the peer's delay where that is credible: what the path itself took.
    pub(crate) const fn adjusted(&self) -> Duration {
        Duration::from_nanos(self.adjusted)
    }

    /// Whether the path was ever measured.
    pub(crate) const fn has_sample(&self) -> bool {
        self.has_sample
    }

    /// Probe timeout before back-off (RFC 9002 §6.2.1).
    pub(crate) const fn pto_base(&self, max_ack_delay: Duration) -> Duration {
        let var = 4 * self.var;
        let var = if var > GRANULARITY { var } else { GRANULARITY };
        Duration::from_nanos((self.smoothed + var).saturating_add(nanos(max_ack_delay)))
    }

    /// How long a packet may be overtaken by a later one before it counts as lost (RFC 9002 §6.1.2).
    pub(crate) const fn loss_delay(&self) -> Duration {
        let longer = if self.smoothed > self.latest { self.smoothed } else { self.latest };
        let delay = 9 * (longer / 8) + 9 * (longer % 8) / 8;
        Duration::from_nanos(if delay > GRANULARITY { delay } else { GRANULARITY })
    }
}

#[cfg(test)]
mod tests;
