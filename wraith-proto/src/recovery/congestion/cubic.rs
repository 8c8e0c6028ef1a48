//! CUBIC (RFC 9438): after a loss the window returns to where it was along a cubic curve of time.
//!
//! The curve is computed once per ACK frame. Windows are bytes, times on the curve microseconds; both fit the formulas
//! in 128 bits, so no floating point is needed and nothing is lost but fractions of a byte.
//!
//! A loss while round trips are as short as ever was caused by no queue. CUBIC would halve its rate for it again and
//! again: at 1 % of random loss and 50 ms it sends 2.4 Mbit/s on any line. Such a loss takes half of what was lost from
//! the window instead, like a mark in DCTCP (RFC 8257 §3.3): still an answer in proportion, so that a line with a small
//! buffer is shared, but one that noise does not stop.

use core::time::Duration;

use super::hystart::HyStart;
use super::queue_watch::QueueWatch;
use super::{Acked, CongestionController, Delivery, Lost, MAXIMUM_WINDOW, initial_window, minimum_window};
use crate::recovery::rtt::Rtt;
use crate::time::{Instant, nanos};

/// Fractional bits of the Reno estimate: an ACK may be worth less than a byte of a large window.
const FRACTION: u32 = 16;
/// The curve is flat beyond this distance from its centre, 4.7 hours; the window is at its maximum long before.
const FARTHEST: u64 = 1 << 34;

/// Where on its curve the window is; begins with the first growth in congestion avoidance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Epoch {
    start: Instant,
    /// Microseconds from the start until the curve reaches `w_max` (K, §4.2).
    k: u64,
}

/// What a congestion event changes, and undoing it brings back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    window: u64,
    ssthresh: u64,
    /// Window at the centre of the curve (`W_max`); 0 if it is to be where congestion avoidance begins.
    w_max: u64,
    /// Window before the latest reduction (`cwnd_prior`).
    prior: u64,
    /// What Reno's window would be (`W_est`), with `FRACTION` fractional bits.
    reno: u64,
    epoch: Option<Epoch>,
    /// Packets below this number were sent before the latest reduction: they neither grow nor reduce the window.
    recovery_end: u64,
    /// Losses of packets below this number belong to the latest event.
    event_end: u64,
}

/// The CUBIC controller of a path.
#[derive(Debug)]
pub(crate) struct Cubic {
    state: State,
    /// The state before the latest event, as long as that may prove spurious.
    saved: Option<State>,
    hystart: HyStart,
    queue: QueueWatch,
    mtu: u16,
    /// Bytes of the current ACK frame that count for growth.
    acked: u64,
    next_packet: u64,
    /// Since when the application offers less than the window takes.
    limited_since: Option<Instant>,
    /// Since when nothing is in flight, although the application is not known to be the limit.
    idle_since: Option<Instant>,
    events: u64,
}

impl Cubic {
    /// A controller in slow start, at the initial window.
    pub(crate) const fn new(mtu: u16) -> Self {
        Self {
            state: State {
                window: initial_window(mtu),
                ssthresh: u64::MAX,
                w_max: 0,
                prior: 0,
                reno: 0,
                epoch: None,
                recovery_end: 0,
                event_end: 0,
            },
            saved: None,
            hystart: HyStart::new(),
            queue: QueueWatch::new(),
            mtu,
            acked: 0,
            next_packet: 0,
            limited_since: None,
            idle_since: None,
            events: 0,
        }
    }

    /// Stops the curve's clock while the window is not used: else it jumps when data come again (§5.8).
    fn track_use(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        if app_limited {
            self.limited_since.get_or_insert(now);
            return;
        }
        if let Some(since) = self.limited_since.take() {
            self.shift_epoch(now.saturating_since(since));
        }
        if in_flight == 0 {
            self.idle_since = Some(now);
        }
    }

    fn shift_epoch(&mut self, by: Duration) {
        for state in [Some(&mut self.state), self.saved.as_mut()].into_iter().flatten() {
            if let Some(epoch) = &mut state.epoch {
                epoch.start = epoch.start.saturating_add(by);
            }
        }
    }

    fn slow_start(&mut self, acked: u64) {
        let grown = self.state.window + acked / self.hystart.growth_divisor();
        // One ACK of 64 packets must not carry the window far past the threshold.
        self.state.window = grown.min(self.state.ssthresh).min(MAXIMUM_WINDOW);
    }

    fn avoid_congestion(&mut self, now: Instant, acked: u64, rtt: Duration) {
        let mtu = self.mtu;
        let epoch = match self.state.epoch {
            Some(epoch) => epoch,
            None => self.state.begin_epoch(now, mtu),
        };
        let state = &mut self.state;
        let window = state.window;
        let acked = acked.min(window);
        state.grow_reno(acked, mtu);
        let reno = state.reno >> FRACTION;
        let elapsed = now.saturating_since(epoch.start);
        let grown = if state.curve(epoch.k, elapsed, mtu) < reno {
            window.max(reno)
        } else {
            // At most half as much again per round trip (§4.2).
            let target =
                state.curve(epoch.k, elapsed.saturating_add(rtt), mtu).clamp(window, window + window / 2);
            window + scale(target - window, acked, window)
        };
        state.window = grown.min(MAXIMUM_WINDOW);
    }
}

impl CongestionController for Cubic {
    fn on_sent(&mut self, now: Instant, _: u16, packet_number: u64, _: u64) -> Delivery {
        self.next_packet = packet_number.saturating_add(1);
        if let Some(since) = self.idle_since.take() {
            self.shift_epoch(now.saturating_since(since));
        }
        Delivery::default()
    }

    fn on_ack(&mut self, ack: &Acked) {
        if ack.packet_number >= self.state.recovery_end {
            self.acked += u64::from(ack.bytes);
        }
    }

    fn on_ack_frame_end(
        &mut self,
        now: Instant,
        largest_acked: u64,
        in_flight: u64,
        app_limited: bool,
        rtt: &Rtt,
    ) {
        let acked = core::mem::take(&mut self.acked);
        self.queue.on_ack_frame(largest_acked, self.next_packet, rtt);
        self.track_use(now, in_flight, app_limited);
        // Only the first slow start knows no threshold and has to find where to stop (RFC 9406 §4.3).
        if self.state.ssthresh == u64::MAX {
            let largest_sent = self.next_packet.saturating_sub(1);
            if self.hystart.on_ack_frame(largest_acked, largest_sent, rtt.adjusted()) {
                self.state.ssthresh = self.state.window;
            }
        }
        if acked == 0 || app_limited {
            return;
        }
        if self.in_slow_start() {
            self.slow_start(acked);
        } else {
            self.avoid_congestion(now, acked, rtt.smoothed());
        }
    }

    fn on_loss(&mut self, _now: Instant, lost: &Lost) {
        if lost.largest >= self.state.event_end {
            self.saved = Some(self.state);
            self.state.event_end = self.next_packet;
            self.events += 1;
        }
        if !lost.ecn && !self.queue.is_there() {
            self.state.give_way(lost.bytes, minimum_window(self.mtu));
        } else if lost.largest >= self.state.recovery_end {
            self.state.reduce(minimum_window(self.mtu));
            self.state.recovery_end = self.next_packet;
            self.acked = 0;
        }
        if lost.ecn {
            // A mark is proof of congestion, whatever becomes of the losses.
            self.saved = None;
        }
        if lost.persistent {
            // The recovery period goes on, unlike in RFC 9002 §B.8: an older loss that is found later would reduce
            // the threshold to nothing, and growth resumes with the very next round trip in any case.
            self.state.window = minimum_window(self.mtu);
            self.state.w_max = 0;
            self.state.epoch = None;
            self.state.recovery_end = self.next_packet;
        }
    }

    fn on_spurious(&mut self) {
        // A window that has outgrown the old one by now stays (RFC 9438 §4.9.1).
        if let Some(saved) = self.saved.take()
            && saved.window > self.state.window
        {
            self.state = saved;
        }
    }

    fn on_mtu(&mut self, mtu: u16) {
        // The window counts bytes and stays, but it begins as if the size had been known (RFC 9002 §7.2), and one that
        // admits no datagram would never grow.
        let least = if self.events == 0 { initial_window(mtu) } else { minimum_window(mtu) };
        self.state.window = self.state.window.max(least);
        self.state.epoch = None;
        self.mtu = mtu;
    }

    fn window(&self) -> u64 {
        self.state.window
    }

    fn ssthresh(&self) -> u64 {
        self.state.ssthresh
    }

    fn events(&self) -> u64 {
        self.events
    }
}

impl State {
    /// Multiplies the window by 0.7 and remembers where it was (§4.6, §4.7).
    fn reduce(&mut self, minimum: u64) {
        // Below the last maximum means that someone else came: give way sooner (fast convergence).
        self.w_max = if self.window < self.w_max { scale(self.window, 17, 20) } else { self.window };
        self.prior = self.window;
        self.ssthresh = scale(self.window, 7, 10).max(minimum);
        self.window = self.ssthresh;
        self.epoch = None;
    }

    /// Takes half of what was lost without a queue from the window; slow start ends.
    fn give_way(&mut self, lost: u64, minimum: u64) {
        self.window = self.window.saturating_sub(lost / 2).max(minimum);
        self.ssthresh = self.ssthresh.min(self.window);
        self.epoch = None;
    }

    fn begin_epoch(&mut self, now: Instant, mtu: u16) -> Epoch {
        // Without a loss before, or after a timeout, the curve begins at its centre (§4.8, §4.10).
        if self.window >= self.w_max {
            self.w_max = self.window;
            self.prior = self.window;
        }
        let epoch = Epoch { start: now, k: time_to(self.w_max - self.window, mtu) };
        self.reno = self.window << FRACTION;
        self.epoch = Some(epoch);
        epoch
    }

    /// Adds what Reno would, at a rate that makes up for the gentler reduction (§4.3): 3 (1 − β) / (1 + β) = 9/17.
    fn grow_reno(&mut self, acked: u64, mtu: u16) {
        let packet = u64::from(mtu) << FRACTION;
        let packet = if self.reno >> FRACTION < self.prior { packet / 17 * 9 } else { packet };
        self.reno = (self.reno + scale(packet, acked, self.window)).min(MAXIMUM_WINDOW << FRACTION);
    }

    /// Window on the curve at `elapsed`, in bytes: C (t − K)³ + `W_max` with C = 0.4 packets/s³ (§4.2).
    fn curve(&self, k: u64, elapsed: Duration, mtu: u16) -> u64 {
        let t = nanos(elapsed) / 1_000;
        let distance = u128::from(t.abs_diff(k).min(FARTHEST));
        let bytes = distance * distance * distance * u128::from(mtu) * 2 / (5 * CUBIC_SECOND);
        let bytes = bytes.min(u128::from(MAXIMUM_WINDOW)) as u64;
        if t < k { self.w_max.saturating_sub(bytes) } else { (self.w_max + bytes).min(MAXIMUM_WINDOW) }
    }
}

/// Cubic microseconds in a cubic second.
const CUBIC_SECOND: u128 = 1_000_000_000_000_000_000;

/// Microseconds in which the curve rises by `bytes` to its centre: the cube root of `bytes` / (C · `mtu`) (§4.2).
fn time_to(bytes: u64, mtu: u16) -> u64 {
    cube_root(u128::from(bytes) * 5 * CUBIC_SECOND / (2 * u128::from(mtu.max(1))))
}

/// Largest integer whose cube is at most `n`, up to 2^42 − 1.
fn cube_root(n: u128) -> u64 {
    let mut root = 0_u128;
    for bit in (0..42).rev() {
        let candidate = root | 1 << bit;
        if candidate * candidate * candidate <= n {
            root = candidate;
        }
    }
    root as u64
}

/// `value` · `numerator` / `denominator`, rounded down.
fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
