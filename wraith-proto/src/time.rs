//! Time as the core sees it: nanoseconds on a clock that belongs to the caller.

use core::num::NonZeroU64;
use core::time::Duration;

/// Nanoseconds on the caller's monotonic clock.
///
/// The origin is the caller's choice; only differences matter. The value is never zero, so that
/// `Option<Instant>` takes 8 bytes and eight timers share one cache line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(NonZeroU64);

impl Instant {
    /// The earliest instant.
    pub const MIN: Self = Self(NonZeroU64::MIN);

    /// The end of the clock, which stands for never: a deadline there does not come.
    pub(crate) const NEVER: Self = Self(NonZeroU64::MAX);

    /// The instant `nanos` nanoseconds after the clock's origin; 0 is taken as 1.
    pub const fn from_nanos(nanos: u64) -> Self {
        match NonZeroU64::new(nanos) {
            Some(nanos) => Self(nanos),
            None => Self::MIN,
        }
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0.get()
    }

    /// Time from `earlier` to `self`; zero if `earlier` is the later one.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.as_nanos().saturating_sub(earlier.as_nanos()))
    }

    /// `self` moved later by `by`, stopping at the end of the clock (584 years).
    #[must_use]
    pub const fn saturating_add(self, by: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_add(nanos(by)))
    }

    /// `self` moved earlier by `by`, stopping at the beginning of the clock.
    #[must_use]
    pub const fn saturating_sub(self, by: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(nanos(by)))
    }
}

/// Whole nanoseconds of `duration`, saturating at `u64::MAX`.
pub(crate) const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

/// Whole milliseconds, up to seven weeks, in a quarter of the room of a `Duration`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Millis(u32);

impl Millis {
    /// `millis` milliseconds, or as many as there can be.
    pub(crate) const fn new(millis: u64) -> Self {
        Self(if millis > u32::MAX as u64 { u32::MAX } else { millis as u32 })
    }

    pub(crate) const fn duration(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_instant_takes_eight_bytes() {
        assert_eq!(size_of::<Option<Instant>>(), 8);
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let end = Instant::from_nanos(u64::MAX);
        assert_eq!(end.saturating_add(Duration::from_secs(1)), end);
        assert_eq!(Instant::from_nanos(0), Instant::MIN);
        assert_eq!(Instant::MIN.saturating_sub(Duration::MAX), Instant::MIN);
        assert_eq!(Instant::MIN.saturating_since(end), Duration::ZERO);
        let later = Instant::MIN.saturating_add(Duration::from_nanos(41));
        assert_eq!(later.as_nanos(), 42);
        assert_eq!(later.saturating_since(Instant::MIN), Duration::from_nanos(41));
    }
}
