//! `BBRv3` (draft-ietf-ccwg-bbr-05): sends at the rate that the path delivers, and keeps about a bandwidth-delay product
//! in flight.
//!
//! The model is the largest recent delivery rate and the shortest recent round trip. Loss bounds it from above for as
//! long as a probe for bandwidth has not shown otherwise, and from below for the rest of the cycle; a rate of loss up to
//! 2 % is no signal. Rates are bytes per second, times nanoseconds, gains percent.
//!
//! What the draft leaves out: a mark (RFC 3168) counts as a round with loss, and ends a probe. Waits between probes are
//! drawn from the state itself: no two flows share it, and equal runs stay equal.

use super::queue_watch;
use super::rate::{Delivery, RateMeter, Sample};
use super::{Acked, CongestionController, Lost, LostPacket, MAXIMUM_WINDOW, initial_window};
use crate::recovery::rtt::Rtt;
use crate::time::{Instant, nanos};

mod cycle;
mod limits;

use limits::Bounds;

/// Lets the rate double each round (4 ln 2, §5.6.1).
const STARTUP_GAIN: u64 = 277;
/// Empties in a round what Startup queued (§2.4).
const DRAIN_GAIN: u64 = 50;
/// Rounds that Drain takes at most (§5.3.2).
const DRAIN_ROUNDS: u8 = 3;
/// Bandwidth-delay products in flight (§2.5, `BBR.DefaultCwndGain`).
const WINDOW_GAIN: u64 = 200;
/// Share of the bandwidth that is used, so that queues drain (§2.5, `BBR.PacingMarginPercent`).
const MARGIN: u64 = 99;
/// Growth of the rate that says that the pipe is not full yet (§5.3.1.2).
const FULL_GROWTH: u64 = 125;
/// Rounds without it that say that it is.
const FULL_ROUNDS: u8 = 3;
/// Packets in flight that keep acknowledgements coming (§2.7, `BBR.MinPipeCwnd`).
const MIN_PACKETS: u64 = 4;
/// Rounds that a measure of aggregation holds at least; it holds twice as long at most (§2.11).
const AGGREGATION_ROUNDS: u8 = 5;
/// The minimum of round trips is measured anew after this time (§2.14, `BBR.MinRTTFilterLen`).
const MIN_RTT_LIFE: u64 = 10_000_000_000;

/// What the sender is doing (§3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// The rate doubles until it meets a limit.
    Startup,
    /// The queue that Startup left empties.
    Drain,
    /// Less than the rate, so that queues empty.
    Down,
    /// The rate.
    Cruise,
    /// The rate, without short-term bounds, to fill the pipe.
    Refill,
    /// More than the rate, to find out whether there is more.
    Up,
    /// Little in flight, to see the path's own round trip.
    ProbeRtt,
}

/// The BBR controller of a path.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the names are the draft's, and each is independent of the others"
)]
pub(crate) struct Bbr {
    phase: Phase,
    mtu: u16,
    window: u64,
    /// Bytes per second; 0 before the first sample.
    pacing_rate: u64,
    rate: RateMeter,
    in_flight: u64,
    bounds: Bounds,
    /// Phase and bounds before the latest losses, as long as those may prove spurious.
    saved: Option<(Phase, Bounds)>,

    /// Largest rates of the previous cycle of probing and of this one.
    rates: [u64; 2],
    /// Shortest round trip, `u64::MAX` if there is none, and when it was measured.
    min_rtt: u64,
    min_rtt_at: Instant,
    /// Shortest round trip since `ProbeRtt` was last due.
    probe_min: u64,
    probe_min_at: Instant,

    /// Rounds so far, modulo 256; one ends when a packet is acknowledged that left after `round_end` bytes, modulo
    /// 2^32, were delivered.
    rounds: u8,
    round_end: u32,
    round_start: bool,
    /// Shortest round trips of the latest whole round and of this one, in units of 64 ns.
    shortest: [u32; 2],
    /// The window was full in this round and in the one before.
    filled: [bool; 2],

    /// Rate at the last growth, and rounds since.
    full_rate: u64,
    full_rounds: u8,
    /// The pipe is full, seen since the search began, and ever.
    full_now: bool,
    full_ever: bool,

    /// There was loss in this round of losses, which ends like a round.
    loss_in_round: bool,
    mark_in_round: bool,
    loss_round_end: u32,
    /// Gaps in that round.
    gaps: u8,
    latest_rate: u64,
    latest_delivered: u32,

    /// Since when `burst_bytes` were acknowledged at more than the rate.
    burst_since: Instant,
    burst_bytes: u32,
    /// The largest such excess of the former rounds and of the latest, and when the latest began.
    excess: [u32; 2],
    excess_since: u8,

    /// Round in which Drain began; in Down and Cruise, rounds that a due probe was put off by.
    phase_rounds: u8,
    /// When Down began.
    cycle_at: Instant,
    /// Milliseconds from there until the next probe.
    probe_wait: u16,
    rounds_since_probe: u8,
    /// Samples tell of a probe: loss bounds what is in flight.
    probing: bool,
    /// They will until this round is over: then a cycle's rates are complete.
    stopping: bool,
    up_rounds: u8,
    up_acked: u32,
    /// Bytes to be acknowledged for one more in flight.
    up_cost: u32,
    /// When `ProbeRtt` is over, once little is in flight.
    probe_rtt_done: Option<Instant>,
    probe_rtt_round: bool,
    idle_restart: bool,

    next_packet: u64,
    /// Losses below this number belong to the latest event.
    event_end: u64,
    new_event: bool,
    /// Lower bits of the latest lost packet's number.
    last_lost: u32,
    events: u32,
}

impl Bbr {
    /// A controller in Startup, at the initial window.
    pub(crate) const fn new(mtu: u16) -> Self {
        Self {
            phase: Phase::Startup,
            mtu,
            window: initial_window(mtu),
            pacing_rate: 0,
            rate: RateMeter::new(),
            in_flight: 0,
            bounds: Bounds::NONE,
            saved: None,
            rates: [0; 2],
            min_rtt: u64::MAX,
            min_rtt_at: Instant::MIN,
            probe_min: u64::MAX,
            probe_min_at: Instant::MIN,
            rounds: 0,
            round_end: 0,
            round_start: false,
            shortest: [u32::MAX; 2],
            filled: [false; 2],
            full_rate: 0,
            full_rounds: 0,
            full_now: false,
            full_ever: false,
            loss_in_round: false,
            mark_in_round: false,
            loss_round_end: 0,
            gaps: 0,
            latest_rate: 0,
            latest_delivered: 0,
            burst_since: Instant::MIN,
            burst_bytes: 0,
            excess: [0; 2],
            excess_since: 0,
            phase_rounds: 0,
            cycle_at: Instant::MIN,
            probe_wait: 0,
            rounds_since_probe: 0,
            probing: false,
            stopping: false,
            up_rounds: 0,
            up_acked: 0,
            up_cost: u32::MAX,
            probe_rtt_done: None,
            probe_rtt_round: false,
            idle_restart: false,
            next_packet: 0,
            event_end: 0,
            new_event: false,
            last_lost: 0,
            events: 0,
        }
    }

    fn on_sample(&mut self, now: Instant, sample: &Sample) {
        self.update_round(sample);
        let loss_round_over = self.update_latest(sample);
        self.update_rate(sample);
        if loss_round_over {
            self.end_loss_round(sample);
        }
        self.update_aggregation(now, sample);
        self.check_full(sample);
        if self.phase == Phase::Startup && self.full_ever {
            self.phase_rounds = self.rounds;
            self.phase = Phase::Drain;
        }
        let drained =
            self.in_flight <= self.target(100) || self.rounds.wrapping_sub(self.phase_rounds) > DRAIN_ROUNDS;
        if self.phase == Phase::Drain && drained {
            self.start_down(now);
        }
        self.update_cycle(now, sample);
        let due = self.update_min_rtt(now, sample);
        self.check_probe_rtt(now, due);
        if loss_round_over {
            (self.latest_rate, self.latest_delivered) = (sample.rate, sample.delivered as u32);
        }
        self.set_pacing_rate(self.pacing_gain());
        self.set_window(sample.acked);
    }

    fn update_round(&mut self, sample: &Sample) {
        self.round_start = reached(sample.prior_delivered, self.round_end);
        self.shortest[1] = self.shortest[1].min(u32::try_from(sample.rtt >> 6).unwrap_or(u32::MAX));
        if self.round_start {
            self.shortest = [self.shortest[1], u32::MAX];
            self.start_round();
            self.rounds = self.rounds.wrapping_add(1);
            self.rounds_since_probe = self.rounds_since_probe.saturating_add(1);
        }
    }

    fn start_round(&mut self) {
        self.round_end = self.rate.delivered as u32;
        self.filled = [false, self.filled[0]];
    }

    /// Largest rate and volume of this round of losses; returns whether that is over (§5.5.10.3).
    fn update_latest(&mut self, sample: &Sample) -> bool {
        self.latest_rate = self.latest_rate.max(sample.rate);
        self.latest_delivered = self.latest_delivered.max(sample.delivered as u32);
        let over = reached(sample.prior_delivered, self.loss_round_end);
        if over {
            self.loss_round_end = self.rate.delivered as u32;
        }
        over
    }

    /// A sample that the sender limits may only raise the maximum (§5.5.5).
    fn update_rate(&mut self, sample: &Sample) {
        if sample.rate >= self.max_rate() || !sample.limited {
            self.rates[1] = self.rates[1].max(sample.rate);
        }
    }

    /// How much more than the rate would have delivered comes at once (§5.5.9).
    fn update_aggregation(&mut self, now: Instant, sample: &Sample) {
        let time = nanos(now.saturating_since(self.burst_since));
        let mut expected = product(self.rate(), time);
        if u64::from(self.burst_bytes) <= expected {
            (self.burst_since, self.burst_bytes, expected) = (now, 0, 0);
        }
        self.burst_bytes = self.burst_bytes.saturating_add(sample.acked as u32);
        let excess = u64::from(self.burst_bytes).saturating_sub(expected).min(self.window);
        let life = if self.full_ever { AGGREGATION_ROUNDS } else { 1 };
        if self.rounds.wrapping_sub(self.excess_since) >= life {
            self.excess = [self.excess[1], 0];
            self.excess_since = self.rounds;
        }
        self.excess[1] = self.excess[1].max(u32::try_from(excess).unwrap_or(u32::MAX));
    }

    /// Whether the rate still grows (§5.3.1.2).
    fn check_full(&mut self, sample: &Sample) {
        if self.full_now || sample.limited {
            return;
        }
        if sample.rate >= percent(self.full_rate, FULL_GROWTH) {
            self.reset_full(sample.rate);
        } else if self.round_start {
            self.full_rounds += 1;
            self.full_now = self.full_rounds >= FULL_ROUNDS;
            self.full_ever |= self.full_now;
        }
    }

    fn reset_full(&mut self, rate: u64) {
        (self.full_rate, self.full_rounds, self.full_now) = (rate, 0, false);
    }

    /// In Startup the rate only grows, from the initial window per round trip (§5.6.2).
    fn set_pacing_rate(&mut self, gain: u64) {
        let rate = percent(percent(self.rate(), gain), MARGIN).max(1);
        self.pacing_rate =
            if self.full_ever { rate } else { rate.max(self.pacing_rate).max(self.first_rate(self.min_rtt)) };
    }

    /// The rate before any sample, on a path with a round trip of so many nanoseconds.
    fn first_rate(&self, rtt: u64) -> u64 {
        let rate = u128::from(initial_window(self.mtu)) * 1_000_000_000 / u128::from(rtt.max(1));
        percent(u64::try_from(rate).unwrap_or(u64::MAX), STARTUP_GAIN)
    }

    /// The window stays what it was while `ProbeRtt` uses less of it (§5.6.4.6).
    fn set_window(&mut self, acked: u64) {
        if self.phase == Phase::ProbeRtt {
            return;
        }
        let most = self.quantised(self.bdp(self.window_gain()) + self.aggregation());
        let grown = self.window + acked;
        if self.full_ever {
            self.window = grown.min(most);
        } else if self.window < most || self.rate.delivered < initial_window(self.mtu) {
            self.window = grown;
        }
        self.window = self.window.min(self.window_bound()).clamp(self.min_window(), MAXIMUM_WINDOW);
    }

    /// Bytes that no bound of the model reduces the window below.
    pub(super) fn min_window(&self) -> u64 {
        MIN_PACKETS * u64::from(self.mtu)
    }

    fn max_rate(&self) -> u64 {
        self.rates[0].max(self.rates[1])
    }

    /// The rate that the model holds for safe.
    fn rate(&self) -> u64 {
        self.max_rate().min(self.bounds.short_rate)
    }

    /// Whether something waited in a queue all through the latest round, as far as is known.
    fn is_queue_there(&self) -> bool {
        queue_watch::is_queue(self.min_rtt, u64::from(self.shortest[0]) << 6)
    }

    /// Bytes of so many packets.
    pub(super) fn bytes(&self, packets: u64) -> u64 {
        packets * u64::from(self.mtu)
    }

    /// So many percent of the bandwidth-delay product; the initial window before the first sample.
    fn bdp(&self, gain: u64) -> u64 {
        if self.min_rtt == u64::MAX {
            return initial_window(self.mtu);
        }
        percent(product(self.max_rate(), self.min_rtt), gain)
    }

    /// Bytes that come acknowledged at once, beyond the rate.
    fn aggregation(&self) -> u64 {
        self.excess[0].max(self.excess[1]).into()
    }

    /// What `gain` wants in flight.
    fn target(&self, gain: u64) -> u64 {
        self.quantised(self.bdp(gain))
    }

    /// Room for three bursts of the pacer, and in Up for growth (§5.5.8, §5.6.4.2).
    fn quantised(&self, bytes: u64) -> u64 {
        let mtu = u64::from(self.mtu);
        let burst = (self.pacing_rate / 1_000).clamp(2 * mtu, (2 * mtu).max(65_536));
        let bytes = bytes.max(3 * burst).max(self.min_window());
        if self.phase == Phase::Up { bytes + 2 * mtu } else { bytes }
    }
}

impl CongestionController for Bbr {
    fn on_sent(&mut self, now: Instant, bytes: u16, packet_number: u64, in_flight: u64) -> Delivery {
        self.next_packet = packet_number.saturating_add(1);
        if in_flight <= u64::from(bytes) && self.rate.is_limited() {
            self.restart_from_idle(now);
        }
        self.in_flight = in_flight;
        self.filled[0] |= in_flight + u64::from(self.mtu) > self.window;
        self.rate.on_sent(now, bytes, in_flight)
    }

    fn on_ack(&mut self, ack: &Acked) {
        self.rate.on_ack(ack);
    }

    fn on_ack_frame_end(&mut self, now: Instant, _: u64, in_flight: u64, _: bool, rtt: &Rtt) {
        self.in_flight = in_flight;
        if let Some(sample) = self.rate.end_frame(now, rtt) {
            self.on_sample(now, &sample);
        }
    }

    fn on_loss(&mut self, now: Instant, lost: &Lost) {
        if lost.ecn {
            self.on_mark(now, lost.largest);
        }
        self.events = self.events.saturating_add(core::mem::take(&mut self.new_event).into());
        if lost.persistent {
            self.window = self.min_window();
            self.saved = None;
        }
    }

    fn on_packet_lost(&mut self, now: Instant, lost: &LostPacket) {
        self.rate.on_lost();
        if lost.packet_number >= self.event_end {
            self.saved = Some((self.phase, self.bounds));
            self.event_end = self.next_packet;
            self.new_event = true;
        }
        let number = lost.packet_number as u32;
        if number != self.last_lost.wrapping_add(1) {
            self.gaps = self.gaps.saturating_add(1);
        }
        self.last_lost = number;
        self.note_loss();
        if !self.probing {
            return;
        }
        let (in_flight, lost_bytes) =
            (lost.delivery.in_flight(), self.bytes(self.rate.lost_since(&lost.delivery)));
        if limits::too_much_lost(lost_bytes, in_flight) {
            let at_loss = limits::in_flight_at_loss(in_flight, lost_bytes, lost.bytes);
            self.on_too_much_in_flight(now, at_loss, lost.delivery.is_limited());
        }
    }

    fn on_app_limited(&mut self) {
        if self.in_flight + u64::from(self.mtu) <= self.window {
            self.rate.on_limited(self.in_flight);
        }
    }

    fn on_spurious(&mut self) {
        let Some((phase, bounds)) = self.saved.take() else { return };
        self.loss_in_round = false;
        self.reset_full(0);
        self.bounds.raise_to(&bounds);
        self.return_to(phase);
    }

    fn on_mtu(&mut self, mtu: u16) {
        // Before it has measured anything it begins as if the size had been known (RFC 9002 §7.2).
        let least = if self.min_rtt == u64::MAX { initial_window(mtu) } else { MIN_PACKETS * u64::from(mtu) };
        self.window = self.window.max(least);
        self.mtu = mtu;
    }

    fn window(&self) -> u64 {
        self.window.min(if self.phase == Phase::ProbeRtt { self.probe_rtt_window() } else { u64::MAX })
    }

    /// Before the first sample it follows from the handshake's round trip, if there is one.
    fn pacing_rate(&self, rtt: &Rtt) -> Option<u64> {
        if self.pacing_rate > 0 {
            return Some(self.pacing_rate);
        }
        rtt.has_sample().then(|| self.first_rate(nanos(rtt.smoothed())))
    }

    fn ssthresh(&self) -> u64 {
        if self.full_ever { self.window } else { u64::MAX }
    }

    fn events(&self) -> u64 {
        self.events.into()
    }
}

/// `value` · `share` / 100.
fn percent(value: u64, share: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(share) / 100).unwrap_or(u64::MAX)
}

/// Whether so many bytes delivered are the end of a round, modulo 2^32, or more.
const fn reached(delivered: u64, end: u32) -> bool {
    (delivered as u32).wrapping_sub(end) < 1 << 31
}

/// Bytes that a rate yields in nanoseconds.
fn product(rate: u64, time: u64) -> u64 {
    u64::try_from(u128::from(rate) * u128::from(time) / 1_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
