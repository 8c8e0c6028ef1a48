//! The cycle of probing: for bandwidth every few seconds (§5.3.3), for the round trip when that is old (§5.3.4).

use core::time::Duration;

use super::super::rate::Sample;
use super::{Bbr, DRAIN_GAIN, MIN_RTT_LIFE, Phase, STARTUP_GAIN, WINDOW_GAIN, limits};
use crate::time::{Instant, nanos};

/// §5.6.1
const DOWN_GAIN: u64 = 90;
/// §5.6.1
const UP_GAIN: u64 = 125;
/// Window of a probe, which makes a queue (§5.6.1).
const UP_WINDOW_GAIN: u64 = 225;
/// Window while the round trip is measured, in percent (§2.14, `BBR.ProbeRTTCwndGain`).
const PROBE_RTT_GAIN: u64 = 50;
/// How long that takes (§2.14, `BBR.ProbeRTTDuration`).
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// The round trip is measured at least this often (§2.14, `BBR.ProbeRTTInterval`).
const PROBE_RTT_INTERVAL: u64 = 5_000_000_000;
/// A round trip that is longer by less than this part of it is as short: it shows that the minimum still holds, and
/// saves a probe that would empty the line. The draft leaves that to chance, which never gives the very same time twice.
const AS_SHORT: u64 = 32;
/// Milliseconds from one probe for bandwidth to the next, and the most that is drawn on top (§5.3.3.5.3).
const PROBE_WAIT: u16 = 2_000;
const PROBE_SPREAD: u64 = 1_000;
/// So many round trips are drawn from where they are longer: a probe takes several, and flows whose probes overlap
/// learn nothing of each other. The draft draws a second everywhere.
const SPREAD_ROUNDS: u64 = 8;
/// No more than this is drawn.
const LONGEST_SPREAD: u64 = 10_000;
/// Rounds that a probe is put off by at most, while a queue says that another flow may be probing. The draft puts off
/// none.
const ROUNDS_PUT_OFF: u8 = 4;
/// Rounds in which a Reno flow beside this one has to grow (§5.3.3.5.1).
const MAX_RENO_ROUNDS: u64 = 63;
/// Doublings of the growth per round.
const MAX_UP_ROUNDS: u8 = 30;

impl Bbr {
    pub(super) const fn pacing_gain(&self) -> u64 {
        match self.phase {
            Phase::Startup => STARTUP_GAIN,
            Phase::Drain => DRAIN_GAIN,
            Phase::Down => DOWN_GAIN,
            Phase::Up => UP_GAIN,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt => 100,
        }
    }

    pub(super) const fn window_gain(&self) -> u64 {
        match self.phase {
            Phase::Up => UP_WINDOW_GAIN,
            Phase::ProbeRtt => PROBE_RTT_GAIN,
            _ => WINDOW_GAIN,
        }
    }

    pub(super) fn start_down(&mut self, now: Instant) {
        self.loss_in_round = false;
        (self.latest_rate, self.latest_delivered) = (0, 0);
        self.up_cost = u32::MAX;
        let drawn = self.draw();
        self.rounds_since_probe = (drawn & 1) as u8;
        let spread = SPREAD_ROUNDS.saturating_mul(self.min_rtt) / 1_000_000;
        let spread = spread.clamp(PROBE_SPREAD, LONGEST_SPREAD) as u32;
        self.probe_wait = PROBE_WAIT + ((drawn >> 1) % spread) as u16;
        self.phase_rounds = 0;
        self.cycle_at = now;
        self.stopping = true;
        self.start_round();
        self.phase = Phase::Down;
    }

    fn start_refill(&mut self) {
        self.bounds.forget_short();
        (self.up_rounds, self.up_acked) = (0, 0);
        self.stopping = false;
        self.start_round();
        self.phase = Phase::Refill;
    }

    fn start_up(&mut self, rate: u64) {
        self.stopping = false;
        self.start_round();
        self.reset_full(rate);
        self.phase = Phase::Up;
        self.steepen();
    }

    /// §5.3.3.6
    pub(super) fn update_cycle(&mut self, now: Instant, sample: &Sample) {
        if !self.full_ever {
            return;
        }
        // Asked before the bound grows, which it does with nearly each sample.
        let bounded = self.is_window_full() && self.window >= self.bounds.long_in_flight;
        self.adapt_long_term(sample, bounded);
        let waits = matches!(self.phase, Phase::Down | Phase::Cruise);
        let probes = waits && self.is_time_to_probe(now) && !self.puts_off();
        match self.phase {
            _ if probes => self.start_refill(),
            Phase::Down if self.in_flight <= self.with_headroom().min(self.target(100)) => {
                self.phase = Phase::Cruise;
            }
            Phase::Refill if self.round_start => {
                self.probing = true;
                self.start_up(sample.rate);
            }
            Phase::Up => {
                if bounded {
                    // The bound, not the path, keeps the rate from growing.
                    self.reset_full(sample.rate);
                } else if self.full_now {
                    self.start_down(now);
                }
            }
            _ => {}
        }
    }

    fn adapt_long_term(&mut self, sample: &Sample, bounded: bool) {
        if self.round_start && self.stopping {
            (self.stopping, self.probing) = (false, false);
            let cycling = !matches!(self.phase, Phase::Startup | Phase::Drain | Phase::ProbeRtt);
            if cycling && !sample.limited {
                self.rates = [self.rates[1], 0];
            }
        }
        if self.bounds.long_in_flight == u64::MAX
            || limits::too_much_lost(self.bytes(sample.lost), sample.in_flight)
        {
            return;
        }
        self.bounds.long_in_flight = self.bounds.long_in_flight.max(sample.in_flight);
        if self.phase == Phase::Up && bounded {
            self.up_acked = self.up_acked.saturating_add(sample.acked as u32);
            self.bounds.long_in_flight += u64::from(self.up_acked / self.up_cost);
            self.up_acked %= self.up_cost;
            if self.round_start {
                self.steepen();
            }
        }
    }

    /// Doubles the growth per round, from one packet.
    fn steepen(&mut self) {
        let growth = u64::from(self.mtu) << self.up_rounds;
        self.up_rounds = (self.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.up_cost = u32::try_from(self.window / growth).unwrap_or(u32::MAX).max(1);
    }

    /// Waits with a due probe while a queue is there, but not for long: it may be one that stays.
    fn puts_off(&mut self) -> bool {
        let puts_off = self.phase_rounds < ROUNDS_PUT_OFF && self.is_queue_there();
        self.phase_rounds += u8::from(puts_off && self.round_start);
        puts_off
    }

    /// Whether a probe for bandwidth is under way, or its samples still come, or it is due.
    fn is_probing(&self) -> bool {
        match self.phase {
            Phase::Refill | Phase::Up => true,
            Phase::Down | Phase::Cruise => self.stopping || self.phase_rounds > 0,
            _ => self.stopping,
        }
    }

    fn is_window_full(&self) -> bool {
        self.filled[0] || self.filled[1]
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        let packets = self.bdp(100).min(self.window) / u64::from(self.mtu).max(1);
        now.saturating_since(self.cycle_at) > Duration::from_millis(self.probe_wait.into())
            || u64::from(self.rounds_since_probe) >= packets.min(MAX_RENO_ROUNDS)
    }

    /// Keeps the shortest round trip; returns whether it is old enough to be measured anew (§5.3.4.3).
    ///
    /// That waits for a probe for bandwidth to end: on a long path it would else cut off each of them, and the maximum
    /// of rates would never be renewed. A minimum stays until there is a new one.
    pub(super) fn update_min_rtt(&mut self, now: Instant, sample: &Sample) -> bool {
        let older = |at, time| nanos(now.saturating_since(at)) > time;
        let due =
            self.probe_min != u64::MAX && !self.is_probing() && older(self.probe_min_at, PROBE_RTT_INTERVAL);
        if sample.rtt < self.probe_min || due {
            (self.probe_min, self.probe_min_at) = (sample.rtt, now);
        } else if sample.rtt - self.probe_min <= self.probe_min / AS_SHORT {
            self.probe_min_at = now;
        }
        let stays = due || self.phase == Phase::ProbeRtt || self.is_probing();
        if self.probe_min < self.min_rtt || !stays && older(self.min_rtt_at, MIN_RTT_LIFE) {
            (self.min_rtt, self.min_rtt_at) = (self.probe_min, self.probe_min_at);
        }
        due
    }

    pub(super) fn check_probe_rtt(&mut self, now: Instant, due: bool) {
        if due && self.phase != Phase::ProbeRtt && !self.idle_restart {
            self.phase = Phase::ProbeRtt;
            self.probe_rtt_done = None;
            self.stopping = true;
            self.start_round();
        }
        if self.phase == Phase::ProbeRtt {
            self.probe_rtt(now);
        }
        self.idle_restart = false;
    }

    fn probe_rtt(&mut self, now: Instant) {
        // So little in flight says nothing about the rate.
        self.rate.on_limited(self.in_flight);
        if self.probe_rtt_done.is_none() {
            if self.in_flight <= self.probe_rtt_window() {
                self.probe_rtt_done = Some(now.saturating_add(PROBE_RTT_TIME));
                self.probe_rtt_round = false;
                self.start_round();
            }
            return;
        }
        self.probe_rtt_round |= self.round_start;
        if self.probe_rtt_round {
            self.end_probe_rtt(now);
        }
    }

    fn end_probe_rtt(&mut self, now: Instant) {
        if self.probe_rtt_done.is_none_or(|done| done > now) {
            return;
        }
        self.probe_min_at = now;
        self.bounds.forget_short();
        if self.full_ever {
            self.start_down(now);
            self.phase = Phase::Cruise;
        } else {
            self.phase = Phase::Startup;
        }
    }

    pub(super) fn probe_rtt_window(&self) -> u64 {
        self.bdp(PROBE_RTT_GAIN).max(self.min_window())
    }

    /// Data come after nothing was in flight: no burst, and no aggregation seen in the silence (§5.4.1).
    pub(super) fn restart_from_idle(&mut self, now: Instant) {
        self.idle_restart = true;
        (self.burst_since, self.burst_bytes) = (now, 0);
        match self.phase {
            Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up => self.set_pacing_rate(100),
            Phase::ProbeRtt => self.end_probe_rtt(now),
            Phase::Startup | Phase::Drain => {}
        }
    }

    /// Goes back to the probe that spurious losses ended (§5.5.11.2).
    pub(super) fn return_to(&mut self, phase: Phase) {
        if self.phase == Phase::ProbeRtt || self.phase == phase {
            return;
        }
        match phase {
            Phase::Startup => {
                self.full_ever = false;
                self.phase = Phase::Startup;
            }
            Phase::Up => self.start_up(self.max_rate()),
            _ => {}
        }
    }

    /// 32 bits that depend on all that was delivered and when (`SplitMix64`).
    fn draw(&self) -> u32 {
        let mut bits = self.probe_min_at.as_nanos() ^ self.rate.delivered.rotate_left(32) ^ self.next_packet;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ bits >> 31) as u32
    }
}
