//! Pacing: spreads a window over a round trip (RFC 9002 §7.7), in bursts that a driver can send as one batch.
//!
//! A bucket fills at the pacing rate and holds one burst, so that a late caller never catches up with more than that.
//! Once empty it opens again only when half a burst is there: acknowledgements wake the sender more often than the
//! pacer does, and would otherwise let single packets through where a batch costs little more.

use core::time::Duration;

use crate::recovery::Recovery;
use crate::recovery::congestion::CongestionController;
use crate::recovery::rtt::Rtt;
use crate::time::{Instant, nanos};

/// Tokens per byte: so small that rounding down loses less than a byte per second at a million calls.
const TOKENS: u128 = 1 << 20;
/// A burst is what the rate yields in this time, in nanoseconds.
const BURST_TIME: u128 = 1_000_000;
/// A second, in nanoseconds.
const SECOND: u128 = 1_000_000_000;
/// The largest burst, in bytes: one batch.
const MAX_BURST: u64 = 65_536;
/// Datagrams of more bytes than this leave in bursts of two: a default receive buffer holds only a handful.
const LARGE_DATAGRAM: u64 = 16_384;
/// No burst is smaller, in datagrams.
const MIN_BURST: u64 = 2;

/// What the pacing rate follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PaceInput {
    /// Congestion window, in bytes.
    pub(crate) window: u64,
    /// Bytes per second, if the congestion controller has an opinion; else a window per round trip, and a quarter more.
    pub(crate) rate: Option<u64>,
    /// Smoothed round-trip time, or `None` before the first sample: the initial window leaves unpaced.
    pub(crate) rtt: Option<Duration>,
    /// Size of a full datagram, in bytes of UDP payload.
    pub(crate) mtu: u16,
    /// Bytes that the window still admits; `u64::MAX` if unknown.
    pub(crate) pending: u64,
}

impl PaceInput {
    /// The input for a path.
    pub(crate) fn new(window: u64, rtt: &Rtt, mtu: u16, pending: u64) -> Self {
        Self { window, rate: None, rtt: rtt.has_sample().then(|| rtt.smoothed()), mtu, pending }
    }
}

/// The token bucket of one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    /// In units of 1/`TOKENS` byte; negative if packets left that do not wait for the pacer.
    tokens: i64,
    /// When `tokens` was right.
    updated: Instant,
    /// Whether there is a rate yet.
    paced: bool,
    /// Whether the bucket ran dry and has not filled to half a burst since.
    dry: bool,
}

impl Pacer {
    /// A pacer that knows no rate yet.
    pub(crate) const fn new(now: Instant) -> Self {
        Self { tokens: 0, updated: now, paced: false, dry: false }
    }

    /// Bytes that may be sent now; 0 until a burst that is worth it is there.
    pub(crate) fn budget(&mut self, now: Instant, input: &PaceInput) -> u64 {
        let Some(rate) = Rate::new(input) else {
            self.paced = false;
            return u64::MAX;
        };
        self.refill(now, &rate);
        if self.tokens >= rate.wanted(self.dry, input) {
            self.dry = false;
            (self.tokens.max(0) as u128 / TOKENS) as u64
        } else {
            self.dry = true;
            0
        }
    }

    /// Bytes left, whether the budget allowed them or they do not wait for it.
    pub(crate) fn on_sent(&mut self, bytes: u16) {
        self.tokens = self.tokens.saturating_sub(to_tokens(bytes.into()));
    }

    /// Empties the bucket, after time passed without the core being called.
    pub(crate) fn restart_empty(&mut self, now: Instant) {
        *self = Self { tokens: 0, updated: now, paced: true, dry: true };
    }

    /// When `budget` is to be asked again: `now` if it allows something already.
    pub(crate) fn next_send(&self, now: Instant, input: &PaceInput) -> Instant {
        let Some(rate) = Rate::new(input) else { return now };
        if !self.paced {
            return now;
        }
        let missing = rate.wanted(self.dry, input).saturating_sub(self.tokens);
        let wait = rate.time_for(missing.max(0) as u64);
        self.updated.saturating_add(Duration::from_nanos(wait)).max(now)
    }

    fn refill(&mut self, now: Instant, rate: &Rate) {
        let full = to_tokens(rate.burst);
        if self.paced {
            let new = rate.tokens_in(nanos(now.saturating_since(self.updated)));
            self.tokens = self.tokens.saturating_add(new).min(full);
        } else {
            // What left unpaced is not owed, and a round trip has passed since.
            (self.tokens, self.paced, self.dry) = (full, true, false);
        }
        self.updated = self.updated.max(now);
    }
}

/// What the pacing rate of a session follows from now.
pub(crate) fn pace_input(recovery: &Recovery, mtu: u16) -> PaceInput {
    let controller = &recovery.controller;
    let pending = controller.window().saturating_sub(recovery.in_flight);
    PaceInput {
        rate: controller.pacing_rate(&recovery.rtt),
        ..PaceInput::new(controller.window(), &recovery.rtt, mtu, pending)
    }
}

/// `bytes` per `time` nanoseconds, in bursts of `burst` bytes.
struct Rate {
    bytes: u128,
    time: u128,
    burst: u64,
}

impl Rate {
    /// 1.25 windows per round trip, in slow start too: the window still grows by nine tenths each time, while twice the
    /// window would leave in half of the round, and the queue that it makes would be gone before `HyStart++` looks.
    fn new(input: &PaceInput) -> Option<Self> {
        let (bytes, time) = match input.rate {
            Some(rate) => (u128::from(rate.max(1)), SECOND),
            None => (u128::from(input.window.max(1)) * 5, u128::from(nanos(input.rtt?).max(1)) * 4),
        };
        let mtu = u64::from(input.mtu);
        let burst = if mtu > LARGE_DATAGRAM {
            MIN_BURST * mtu
        } else {
            (bytes * BURST_TIME / time).clamp((MIN_BURST * mtu).into(), MAX_BURST.into()) as u64
        };
        Some(Self { bytes, time, burst })
    }

    /// Tokens that let the next packet go: a full one's, or half a burst's after the bucket ran dry, or all that the
    /// window admits.
    fn wanted(&self, dry: bool, input: &PaceInput) -> i64 {
        let enough = if dry { self.burst / 2 } else { input.mtu.into() };
        to_tokens(enough.min(input.pending))
    }

    fn tokens_in(&self, time: u64) -> i64 {
        let tokens = (self.bytes * TOKENS).saturating_mul(time.into()) / self.time;
        i64::try_from(tokens).unwrap_or(i64::MAX)
    }

    /// Nanoseconds until `tokens` more are there, rounded up.
    fn time_for(&self, tokens: u64) -> u64 {
        let time = u128::from(tokens).saturating_mul(self.time).div_ceil(self.bytes * TOKENS);
        u64::try_from(time).unwrap_or(u64::MAX)
    }
}

const fn to_tokens(bytes: u64) -> i64 {
    // At most a burst or a datagram: far below the sign bit.
    bytes.cast_signed() << TOKENS.trailing_zeros()
}

#[cfg(test)]
mod tests;
