//! Delivery rate of a path, measured at each acknowledgement (draft-ietf-ccwg-bbr §4.1).
//!
//! Each packet's record keeps where delivery stood when it left. Once the packet is acknowledged, what was delivered
//! since is divided by the time that it took to send or to acknowledge it, whichever is longer.

use super::Acked;
use crate::recovery::rtt::Rtt;
use crate::time::{Instant, nanos};

/// Mark in [`Delivery`] that the sender had too little to send.
const LIMITED: u16 = 1 << 15;
/// Significant bits of a number in 15 bits: it is right to 0.2 %.
const SIGNIFICANT: u32 = 10;

/// Where delivery stood when a packet left: 12 bytes in its record, which any alignment will do for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Delivery {
    /// Bytes delivered, modulo 2^32, the lower half first.
    delivered: [u16; 2],
    /// Packets lost, modulo 2^16.
    lost: u16,
    /// Bytes in flight with the packet, shortened, and [`LIMITED`].
    in_flight: u16,
    /// Age of the latest delivery, in nanoseconds, shortened.
    since_delivered: u16,
    /// Time since the packet left that was delivered then, in nanoseconds, shortened.
    since_first: u16,
}

/// What one ACK frame says of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sample {
    /// Bytes per second, 0 if the interval is too short to tell.
    pub(super) rate: u64,
    /// The sender, not the path, was the limit.
    pub(super) limited: bool,
    /// Bytes delivered since the newest acknowledged packet left.
    pub(super) delivered: u64,
    /// Bytes delivered before it left.
    pub(super) prior_delivered: u64,
    /// Bytes in flight when it left, with it.
    pub(super) in_flight: u64,
    /// Packets lost since it left.
    pub(super) lost: u64,
    /// Bytes that the frame newly acknowledged.
    pub(super) acked: u64,
    /// Round trip of the newest packet, in nanoseconds.
    pub(super) rtt: u64,
}

/// Counts what was delivered and lost on a path.
#[derive(Debug)]
pub(super) struct RateMeter {
    pub(super) delivered: u64,
    delivered_at: Instant,
    /// Packets lost, modulo 2^16.
    lost: u16,
    /// When the packet left that was delivered last.
    first_sent: Instant,
    /// Samples are limited until more bytes than these are delivered; 0 if they are not.
    limited_until: u64,
    /// Newest packet that the current frame acknowledges.
    newest: Option<(Instant, Delivery)>,
    /// Bytes that the current frame acknowledges.
    acked: u32,
}

impl RateMeter {
    pub(super) const fn new() -> Self {
        Self {
            delivered: 0,
            delivered_at: Instant::MIN,
            lost: 0,
            first_sent: Instant::MIN,
            limited_until: 0,
            newest: None,
            acked: 0,
        }
    }

    /// A packet left; `in_flight` counts it.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u16, in_flight: u64) -> Delivery {
        if in_flight <= u64::from(bytes) {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let limited = if self.is_limited() { LIMITED } else { 0 };
        Delivery {
            delivered: [self.delivered as u16, (self.delivered >> 16) as u16],
            lost: self.lost,
            in_flight: shorten(in_flight) | limited,
            since_delivered: age(now, self.delivered_at),
            since_first: age(now, self.first_sent),
        }
    }

    /// Packets come in the order of their numbers.
    pub(super) fn on_ack(&mut self, ack: &Acked) {
        let bytes = u64::from(ack.bytes);
        self.delivered += bytes;
        self.acked = self.acked.saturating_add(ack.bytes.into());
        self.first_sent = ack.sent_at;
        self.newest = Some((ack.sent_at, ack.delivery));
    }

    pub(super) fn on_lost(&mut self) {
        self.lost = self.lost.wrapping_add(1);
    }

    /// The sender ran out of data, with `in_flight` bytes on the way.
    pub(super) fn on_limited(&mut self, in_flight: u64) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    pub(super) const fn is_limited(&self) -> bool {
        self.limited_until != 0 && self.limited_until >= self.delivered
    }

    /// What the frame that ends says, or `None` if it acknowledged nothing new.
    pub(super) fn end_frame(&mut self, now: Instant, rtt: &Rtt) -> Option<Sample> {
        let (sent_at, delivery) = self.newest.take()?;
        self.delivered_at = now;
        let round_trip = nanos(now.saturating_since(sent_at));
        let delivered = u64::from((self.delivered as u32).wrapping_sub(delivery.delivered()));
        let (sending, acking) =
            (lengthen(delivery.since_first), round_trip + lengthen(delivery.since_delivered));
        let interval = sending.max(acking);
        // Shorter than a round trip means that ACKs were held up and came at once.
        let rate = if interval == 0 || interval < nanos(rtt.min()) {
            0
        } else {
            (u128::from(delivered) * 1_000_000_000 / u128::from(interval)) as u64
        };
        Some(Sample {
            rate,
            limited: delivery.is_limited(),
            delivered,
            prior_delivered: self.delivered.saturating_sub(delivered),
            in_flight: delivery.in_flight(),
            lost: self.lost_since(&delivery),
            acked: core::mem::take(&mut self.acked).into(),
            rtt: round_trip,
        })
    }

    /// Packets lost since a packet left.
    pub(super) const fn lost_since(&self, delivery: &Delivery) -> u64 {
        self.lost.wrapping_sub(delivery.lost) as u64
    }
}

impl Delivery {
    /// Bytes in flight when the packet left, with it.
    pub(super) const fn in_flight(&self) -> u64 {
        lengthen(self.in_flight)
    }

    const fn delivered(&self) -> u32 {
        self.delivered[0] as u32 | (self.delivered[1] as u32) << 16
    }

    /// Whether the sender had too little to send.
    pub(super) const fn is_limited(&self) -> bool {
        self.in_flight & LIMITED != 0
    }
}

/// The leading bits of a number, and by how much they were shifted: 15 bits for numbers up to 2^41.
fn shorten(value: u64) -> u16 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(SIGNIFICANT);
    if shift > 31 { LIMITED - 1 } else { (shift << SIGNIFICANT) as u16 | (value >> shift) as u16 }
}

/// What [`shorten`] left of a number.
const fn lengthen(short: u16) -> u64 {
    let mask = (1 << SIGNIFICANT) - 1;
    ((short & mask) as u64) << ((short & !LIMITED) >> SIGNIFICANT)
}

fn age(now: Instant, then: Instant) -> u16 {
    shorten(nanos(now.saturating_since(then)))
}

#[cfg(test)]
mod tests;
