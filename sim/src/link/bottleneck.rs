//! The transmitter of a link: a rate, and what waits for it.

use wraith_proto::Instant;

/// Bits that take one second at 1 bit/s, times the nanoseconds of a second, per byte.
const UNITS_PER_BYTE: u128 = 8 * 1_000_000_000;

/// Serialises datagrams at a rate, without rounding errors that add up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bottleneck {
    busy_until: Instant,
    /// Part of a nanosecond beyond `busy_until`, in units of 1/rate ns.
    carry: u64,
}

impl Bottleneck {
    pub(super) const fn new() -> Self {
        Self { busy_until: Instant::MIN, carry: 0 }
    }

    /// Sends `bytes` behind everything that waits; returns when the last bit has left.
    pub(super) fn send(&mut self, now: Instant, rate: u64, bytes: usize) -> Instant {
        if self.busy_until < now {
            self.busy_until = now;
            self.carry = 0;
        }
        let rate = u128::from(rate.max(1));
        let units = bytes as u128 * UNITS_PER_BYTE + u128::from(self.carry);
        let nanos = u64::try_from(units / rate).unwrap_or(u64::MAX);
        self.carry = (units % rate) as u64;
        self.busy_until = Instant::from_nanos(self.busy_until.as_nanos().saturating_add(nanos));
        self.busy_until
    }

    /// Bytes that have not left at `now`, a part of a byte counting whole.
    pub(super) fn backlog(&self, now: Instant, rate: u64) -> usize {
        if self.busy_until <= now {
            return 0;
        }
        let nanos = u128::from(self.busy_until.as_nanos() - now.as_nanos());
        let units = nanos * u128::from(rate) + u128::from(self.carry);
        usize::try_from(units.div_ceil(UNITS_PER_BYTE)).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_datagrams_take_exactly_their_bits_at_an_odd_rate() {
        let mut bottleneck = Bottleneck::new();
        let start = Instant::from_nanos(1);
        let rate = 333_333_333;
        let mut last = start;
        for _ in 0..1_000_000 {
            last = bottleneck.send(start, rate, 1201);
        }
        let exact = 1_000_000 * 1201 * UNITS_PER_BYTE / u128::from(rate);
        assert_eq!(u128::from(last.as_nanos() - 1), exact);
    }

    #[test]
    fn the_backlog_is_exact_and_drains_with_time() {
        let mut bottleneck = Bottleneck::new();
        let start = Instant::from_nanos(1);
        for _ in 0..7 {
            bottleneck.send(start, 8_000_000_000, 1000);
        }
        assert_eq!(bottleneck.backlog(start, 8_000_000_000), 7000);
        assert_eq!(bottleneck.backlog(Instant::from_nanos(1 + 6999), 8_000_000_000), 1);
        assert_eq!(bottleneck.backlog(Instant::from_nanos(1 + 7000), 8_000_000_000), 0);
    }
}
