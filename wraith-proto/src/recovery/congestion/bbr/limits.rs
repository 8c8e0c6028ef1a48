//! What losses say of the path: how much it carries for long, and how much at present.

use super::{Bbr, Phase, percent};
use crate::recovery::congestion::rate::Sample;
use crate::time::Instant;

/// Loss above it, in percent of what was in flight, is more than a probe may cause (§2.8, `BBR.LossThresh`).
const LOSS_THRESHOLD: u64 = 2;
/// What a round with loss leaves (§2.8, `BBR.Beta`).
const BETA: u64 = 70;
/// What is left to others of the long-term bound (§2.8, `BBR.Headroom`).
const HEADROOM: u64 = 15;
/// Gaps in one round that make losses in Startup a signal (§5.3.1.3, `BBR.StartupFullLossCnt`).
const STARTUP_GAPS: u8 = 6;
/// No bound.
const NONE: u64 = u64::MAX;

/// The bounds of the model; `u64::MAX` is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds {
    /// Bytes in flight above which a probe met too much loss (`BBR.inflight_longterm`).
    pub(super) long_in_flight: u64,
    /// Bytes in flight until the next probe (`BBR.inflight_shortterm`).
    pub(super) short_in_flight: u64,
    /// Bytes per second until the next probe (`BBR.bw_shortterm`).
    pub(super) short_rate: u64,
}

impl Bounds {
    pub(super) const NONE: Self = Self { long_in_flight: NONE, short_in_flight: NONE, short_rate: NONE };

    /// A round had losses: down to seven tenths, but not below what it delivered (§5.5.10.3).
    pub(super) fn lower(&mut self, max_rate: u64, window: u64, rate: u64, delivered: u64) {
        let or = |bound, start| if bound == NONE { start } else { bound };
        self.short_rate = percent(or(self.short_rate, max_rate), BETA).max(rate);
        self.short_in_flight = percent(or(self.short_in_flight, window), BETA).max(delivered);
    }

    /// The next probe is to see the path without what the last round said.
    pub(super) fn forget_short(&mut self) {
        (self.short_rate, self.short_in_flight) = (NONE, NONE);
    }

    /// Undoes what was lowered since `before` (§5.5.11.2).
    pub(super) fn raise_to(&mut self, before: &Self) {
        self.long_in_flight = self.long_in_flight.max(before.long_in_flight);
        self.short_in_flight = self.short_in_flight.max(before.short_in_flight);
        self.short_rate = self.short_rate.max(before.short_rate);
    }
}

/// Whether so many bytes lost mean that too many were in flight.
pub(super) fn too_much_lost(lost: u64, in_flight: u64) -> bool {
    lost > percent(in_flight, LOSS_THRESHOLD)
}

/// How much was in flight when losses, the last of `bytes`, passed the threshold (§5.5.10.2).
pub(super) fn in_flight_at_loss(in_flight: u64, lost: u64, bytes: u16) -> u64 {
    let (before, lost_before) = (in_flight.saturating_sub(bytes.into()), lost.saturating_sub(bytes.into()));
    let room = percent(before, LOSS_THRESHOLD).saturating_sub(lost_before);
    before + room * 100 / (100 - LOSS_THRESHOLD)
}

impl Bbr {
    pub(super) fn end_loss_round(&mut self, sample: &Sample) {
        let lossy = core::mem::take(&mut self.loss_in_round);
        let marked = core::mem::take(&mut self.mark_in_round);
        let gaps = core::mem::take(&mut self.gaps);
        let too_much = too_much_lost(self.bytes(sample.lost), sample.in_flight);
        match self.phase {
            Phase::Startup if gaps >= STARTUP_GAPS && too_much => self.leave_startup(),
            Phase::Startup | Phase::Refill | Phase::Up => {}
            // Little loss while nothing waits in a queue is noise.
            _ if lossy && (self.is_queue_there() || marked || too_much) => {
                let (rate, delivered) = (self.latest_rate, self.latest_delivered.into());
                self.bounds.lower(self.max_rate(), self.window, rate, delivered);
            }
            _ => {}
        }
    }

    /// The queue is full before the rate stopped growing (§5.3.1.3).
    pub(super) fn leave_startup(&mut self) {
        self.full_ever = true;
        self.bounds.long_in_flight = self.bdp(100).max(self.latest_delivered.into());
    }

    pub(super) fn note_loss(&mut self) {
        if !self.loss_in_round {
            self.loss_in_round = true;
            self.loss_round_end = self.rate.delivered as u32;
        }
    }

    /// A probe met too much loss, or marks, with so much in flight (§5.5.10.2).
    pub(super) fn on_too_much_in_flight(&mut self, now: Instant, in_flight: u64, limited: bool) {
        self.probing = false;
        if !limited {
            let target = self.bdp(100).min(self.window);
            self.bounds.long_in_flight = in_flight.max(percent(target, BETA));
        }
        if self.phase == Phase::Up {
            self.start_down(now);
        }
    }

    /// A mark says that there is a queue, whatever the rate of loss.
    pub(super) fn on_mark(&mut self, now: Instant, largest: u64) {
        if largest >= self.event_end {
            self.event_end = self.next_packet;
            self.new_event = true;
        }
        // Nothing that led here will be undone.
        self.saved = None;
        self.note_loss();
        self.mark_in_round = true;
        if self.phase == Phase::Startup {
            self.leave_startup();
        } else if self.probing {
            self.on_too_much_in_flight(now, self.in_flight, self.rate.is_limited());
        }
    }

    /// What the model lets be in flight at most (§5.6.4.7).
    pub(super) fn window_bound(&self) -> u64 {
        let long = match self.phase {
            Phase::Startup | Phase::Drain => NONE,
            Phase::Down | Phase::Refill | Phase::Up => self.bounds.long_in_flight,
            Phase::Cruise | Phase::ProbeRtt => self.with_headroom(),
        };
        // What a round delivers does not count what waited for a common acknowledgement meanwhile.
        long.min(self.bounds.short_in_flight.saturating_add(self.aggregation()))
    }

    /// The long-term bound less what is left to others (§5.3.3.2).
    pub(super) fn with_headroom(&self) -> u64 {
        let bound = self.bounds.long_in_flight;
        if bound == NONE {
            return NONE;
        }
        let headroom = percent(bound, HEADROOM).max(self.mtu.into());
        bound.saturating_sub(headroom).max(self.min_window())
    }
}
