//! What a sender keeps when its peer, or it, is somewhere else from now on (RFC 9000 §9.4, `PROTO §13.7` to `§13.8`).

use core::time::Duration;

use super::congestion::{CongestionController, Controller, LostPacket};
use super::{AckSink, EcnPath, PACKET_THRESHOLD, Pacer, PathMtu, Recovery, Rtt, SentPool};
use crate::config::Transport;
use crate::time::Instant;

/// A path of which nothing is known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewPath<'a> {
    pub(crate) now: Instant,
    pub(crate) transport: &'a Transport,
    pub(crate) mtu: PathMtu,
    /// A round trip that its check took.
    pub(crate) rtt: Option<Duration>,
}

/// Whether the peer may have moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doubt {
    /// Nothing says so.
    None,
    /// It may.
    Unsure,
    /// It may, and losses have reduced the window: once, so that it can be undone.
    Reacted,
}

impl Recovery {
    /// The peer may have moved, or not after all. Returns the congestion events so far.
    pub(crate) fn set_unsure(&mut self, unsure: bool) -> u64 {
        self.doubt = if unsure { Doubt::Unsure } else { Doubt::None };
        self.doubted_from = self.next_number;
        self.controller.events()
    }

    /// Whether what gets lost may have gone where the peer is no more.
    pub(crate) fn is_unsure(&self) -> bool {
        self.doubt != Doubt::None
    }

    /// A packet arrived. If it was sent in this check, the way where the peer was is in use, and its losses count.
    pub(super) fn note_arrival(&mut self, number: u64) {
        if number >= self.doubted_from {
            self.doubt = Doubt::None;
        }
    }

    /// A packet was given up; whether that may be for congestion. While the peer may have moved it says nothing of the size.
    pub(super) fn may_be_congestion(&mut self, size: u16, sent_at: Instant) -> bool {
        self.is_unsure() || self.path_mtu.on_lost(size, sent_at)
    }

    /// Tells the controller of a lost packet, unless it has reacted in this check.
    pub(super) fn tell_lost(&mut self, now: Instant, lost: &LostPacket) {
        if self.doubt != Doubt::Reacted {
            self.controller.on_packet_lost(now, lost);
        }
    }

    /// Losses were told; whether they began a congestion event.
    pub(super) fn note_reaction(&mut self, new: bool) {
        if new && self.doubt == Doubt::Unsure {
            self.doubt = Doubt::Reacted;
        }
    }

    /// The former path is left: what was in flight on it is sent again, and says nothing of congestion.
    pub(crate) fn leave_path(&mut self, pool: &mut SentPool, sink: &mut impl AckSink) {
        while let Some(index) = self.sent.in_flight.front() {
            let number = pool.get(index).number();
            self.lost.add(number);
            sink.packet_probed(number, self.largest_acked());
            self.give_up(pool, index, sink);
        }
        self.lost.move_on(self.next_number);
        self.set_unsure(false);
        (self.restarted, self.resumed) = (false, None);
        (self.loss_time, self.pto_count, self.probes) = (None, 0, 0);
    }

    /// The way is the same but for a port: what the former one was known for holds. Undoes what losses since the peer
    /// had moved made of it, when there had been `events` congestion events.
    pub(crate) fn keep_path(&mut self, events: u64) {
        if self.controller.events() > events {
            self.controller.on_spurious();
        }
        self.path_mtu.trust();
    }

    /// Nothing that was learnt of the former path holds.
    pub(crate) fn begin_path(&mut self, path: NewPath<'_>) {
        let NewPath { now, transport, mtu, rtt } = path;
        self.controller = Controller::new(transport.congestion, mtu.size());
        self.path_mtu = mtu;
        self.pacer = Pacer::new(now);
        self.packet_threshold = PACKET_THRESHOLD;
        self.ecn = if transport.ecn { self.ecn.next_path() } else { EcnPath::disabled() };
        self.rtt = Rtt::new();
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt, Duration::ZERO, self.peer_delay.duration(), false);
        }
    }
}
