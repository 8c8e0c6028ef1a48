//! Datagrams out: whose turn it is, and into whose memory they go.

use super::{Budget, Endpoint, TimerKind, TxStatus};
use crate::config::MIN_DATAGRAM;
use crate::meta::{Ecn, TxMeta};
use crate::queue::{Source, TxQueue};
use crate::recovery::congestion::CongestionController;
use crate::recovery::{PaceInput, SentPool, pace_input};
use crate::session::{Phase, SessionState};
use crate::stats::Stats;
use crate::time::Instant;
use crate::wire::{COOKIE_LEN, ConnectionId, CookieRepr, VERSION, VersionsRepr};

/// An answer to a stranger: it needs no state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    meta: TxMeta,
    destination: ConnectionId,
    says: Says,
}

#[derive(Clone, Copy, Debug)]
enum Says {
    Cookie([u8; COOKIE_LEN]),
    /// VERSIONS with this reserved one.
    Versions(u32),
}

impl Answer {
    pub(super) fn cookie(meta: TxMeta, destination: ConnectionId, cookie: [u8; COOKIE_LEN]) -> Self {
        Self { meta, destination, says: Says::Cookie(cookie) }
    }

    /// `reserved` is listed beside what is spoken (`PROTO §2.7`).
    pub(super) fn versions(meta: TxMeta, destination: ConnectionId, reserved: u32) -> Self {
        Self { meta, destination, says: Says::Versions(reserved) }
    }

    /// Writes the datagram; `None` if the buffer is too small.
    fn emit(&self, out: &mut [u8]) -> Option<usize> {
        let destination = self.destination;
        match self.says {
            Says::Cookie(cookie) => CookieRepr { version: VERSION, destination, cookie }.emit(out).ok(),
            Says::Versions(reserved) => {
                VersionsRepr { destination, versions: &[VERSION, reserved] }.emit(out).ok()
            }
        }
    }
}

/// How a session's turn ended.
enum Turn {
    /// It has nothing to send now.
    Idle,
    /// Others come first; it goes on later.
    Over,
    /// Everything has to stop.
    Stop(TxStatus),
}

/// Largest answer without state.
const MAX_ANSWER: usize = 64;

impl Endpoint {
    /// Writes up to `budget` datagrams into `tx`, pulling data of attached streams from `source`.
    ///
    /// Within one call datagrams of one session are consecutive and of equal size except the last, up to
    /// `Transport::burst` bytes, so that batches (GSO) form by themselves. A probe of what the path carries is larger than
    /// the others and comes last.
    pub fn poll_transmit<Q: TxQueue, S: Source>(
        &mut self,
        now: Instant,
        tx: &mut Q,
        source: &mut S,
        budget: Budget,
    ) -> TxStatus {
        self.advance(now);
        let mut left = budget.0;
        if let Some(stop) = self.transmit_answers(tx, &mut left) {
            return stop;
        }
        if let Some(stop) = self.transmit_path_answers(tx, &mut left) {
            return stop;
        }
        if self.handshakes.has_due()
            && let Some(stop) = self.transmit_handshakes(tx, source, &mut left)
        {
            return stop;
        }
        while let Some(index) = self.ready.front() {
            self.stats.sessions_visited += 1;
            let turn = self.transmit_session(index, tx, source, &mut left);
            if !matches!(turn, Turn::Stop(_)) {
                self.ready_links.remove(&mut self.ready, index);
            }
            self.settle_after_turn(index, &turn);
            match turn {
                Turn::Stop(status) => return status,
                Turn::Over => {
                    self.ready_links.push_back(&mut self.ready, index);
                }
                Turn::Idle => {}
            }
        }
        TxStatus::Idle
    }

    /// Queues an answer to a stranger; `false` if too many wait already.
    pub(super) fn answer(&mut self, answer: Answer) -> bool {
        self.answers.push_back(answer).is_ok()
    }

    /// A packet arrived for a session that was closed here: say so again, ever more seldom.
    pub(super) fn repeat_close(&mut self, index: u32) {
        let Some(ending) = &mut self.sessions[index].ending else { return };
        ending.late += 1;
        if ending.late.is_power_of_two() && !ending.due {
            ending.due = true;
            self.closes_due += 1;
            self.settle(index);
        }
    }

    fn transmit_answers<Q: TxQueue>(&mut self, tx: &mut Q, left: &mut u32) -> Option<TxStatus> {
        while let Some(answer) = self.answers.front() {
            if *left == 0 {
                return Some(TxStatus::Budget);
            }
            let Some(buffer) = tx.reserve(&answer.meta, MAX_ANSWER) else { return Some(TxStatus::QueueFull) };
            if let Some(len) = answer.emit(buffer) {
                self.hook.handshake_sent(self.now, &self.sessions, None, &buffer[..len]);
                tx.commit(len);
                self.count_sent(len);
            }
            self.answers.pop_front();
            *left -= 1;
        }
        None
    }

    /// Sends what one session may send in one turn.
    fn transmit_session<Q: TxQueue, S: Source>(
        &mut self,
        index: u32,
        tx: &mut Q,
        source: &mut S,
        left: &mut u32,
    ) -> Turn {
        if self.sessions[index].asks_path
            && let Some(stop) = self.transmit_challenges(index, tx, left)
        {
            return Turn::Stop(stop);
        }
        // A turn in which nothing fits would never be over.
        let mut burst = self.config.transport.burst.max(self.sessions[index].mtu().into());
        let mut empty = false;
        loop {
            let session = &mut self.sessions[index];
            let Some(asks) = session.next_packet(self.now, &self.sent, &mut self.stats) else {
                return self.transmit_mtu_probe(index, tx, left, Turn::Idle);
            };
            if *left == 0 {
                return Turn::Stop(TxStatus::Budget);
            }
            if burst < u32::from(session.mtu()) {
                return self.transmit_mtu_probe(index, tx, left, Turn::Over);
            }
            let size = usize::from(session.recovery.packet_size());
            let marked = asks && session.recovery.ecn.marks();
            let meta = session.path.meta(if marked { Ecn::Ect0 } else { Ecn::NotEct });
            let Some(buffer) = tx.reserve(&meta, size) else {
                return Turn::Stop(TxStatus::QueueFull);
            };
            let room = &mut buffer[..size];
            let Some(len) = self.build(index, room, asks, marked, source) else {
                // What was to be sent may have turned into something else, such as a reset for want of data.
                if core::mem::replace(&mut empty, true) {
                    return Turn::Idle;
                }
                continue;
            };
            tx.commit(len);
            if len > usize::from(MIN_DATAGRAM) {
                self.large_senders.note(index);
            }
            empty = false;
            self.count_sent(len);
            *left -= 1;
            burst -= len as u32;
        }
    }

    /// Sends a probe of what the path carries if one is due, as the last datagram of a turn that ends with `turn`: it is
    /// larger than the others, and would cut a batch in two.
    fn transmit_mtu_probe<Q: TxQueue>(&mut self, index: u32, tx: &mut Q, left: &mut u32, turn: Turn) -> Turn {
        let session = &mut self.sessions[index];
        let Some(size) = session.due_mtu_probe().map(usize::from) else { return turn };
        if *left == 0 {
            return Turn::Stop(TxStatus::Budget);
        }
        let Some(buffer) = tx.reserve(&session.path.meta(Ecn::NotEct), size) else {
            // Full, or too small for it: data do not wait until that is known.
            session.recovery.on_mtu_probe_refused(self.now);
            return turn;
        };
        if let Some(len) = self.build_mtu_probe(index, &mut buffer[..size]) {
            tx.commit(len);
            self.large_senders.note(index);
            self.count_sent(len);
            *left -= 1;
        }
        turn
    }

    /// Brings the timers of a session up to date after its turn; `settle` would queue it again.
    fn settle_after_turn(&mut self, index: u32, turn: &Turn) {
        self.postpone_keep_alive_if_sent(index);
        self.settle(index);
        if matches!(turn, Turn::Idle) {
            self.ready_links.remove(&mut self.ready, index);
        }
    }

    /// A datagram of `len` bytes was committed.
    pub(super) fn count_sent(&mut self, len: usize) {
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += len as u64;
    }

    fn postpone_keep_alive_if_sent(&mut self, index: u32) {
        let session = &mut self.sessions[index];
        if session.is_open() && core::mem::take(&mut session.sent_since) {
            self.postpone_keep_alive(index);
        }
    }
}

impl SessionState {
    /// Whether a turn to send is worth while.
    pub(crate) fn has_work(&self) -> bool {
        match self.phase {
            Phase::Handshaking | Phase::Draining => false,
            Phase::Closing => self.ending.is_some_and(|ending| ending.due),
            Phase::Pending | Phase::Waiting | Phase::Live => {
                self.asks_path || self.has_news() || self.keys.is_some() && self.due_mtu_probe().is_some()
            }
        }
    }

    /// Whether an open session has anything to say.
    fn has_news(&self) -> bool {
        self.is_open() && (self.acks.is_due() || self.wants_to_ask())
    }

    /// The size of a probe of what the path carries, if one is to leave.
    fn due_mtu_probe(&self) -> Option<u16> {
        self.may_send().then(|| self.recovery.path_mtu.due()).flatten()
    }

    /// Whether something was sent without an answer, or waits to be sent.
    pub(crate) fn owes_data(&self) -> bool {
        !self.recovery.sent.in_flight.is_empty() || self.wants_to_ask()
    }

    /// Whether there is something to send that asks for an acknowledgement.
    fn wants_to_ask(&self) -> bool {
        self.recovery.probes > 0
            || self.control.0 != 0
            || self.acks.is_due() && self.acks.wants_reply()
            || !self.streams.control.is_empty()
            || !self.recovery.sent.lost.is_empty()
            || self.may_send() && (self.streams.has_ready() || !self.datagrams.is_empty())
    }

    /// Whether a packet may leave now, and whether it may carry what asks for an acknowledgement. Sets the
    /// pacing timer when that is what holds it back.
    fn next_packet(&mut self, now: Instant, sent: &SentPool, stats: &mut Stats) -> Option<bool> {
        if self.phase == Phase::Closing {
            return self.ending.is_some_and(|ending| ending.due).then_some(false);
        }
        if !self.has_news() {
            self.recovery.on_app_limited();
            return None;
        }
        let asks = self.wants_to_ask() && self.admits(now, sent, stats);
        (asks || self.acks.is_due()).then_some(asks)
    }

    /// Whether records, congestion window and pacer admit another packet.
    fn admits(&mut self, now: Instant, sent: &SentPool, stats: &mut Stats) -> bool {
        let recovery = &mut self.recovery;
        if !sent.may_send(&recovery.sent) {
            stats.records_exhausted += 1;
            recovery.controller.on_app_limited();
            // A lost packet hands its record on, and a probe can do without.
            if recovery.probes == 0 && recovery.sent.lost.is_empty() {
                return false;
            }
        }
        if recovery.probes > 0 {
            return true;
        }
        recovery.app_limited = false;
        let size = recovery.path_mtu.size();
        if !recovery.window_admits(size) {
            return false;
        }
        let input: PaceInput = pace_input(recovery, size);
        if recovery.pacer.budget(now, &input) >= u64::from(size) {
            return true;
        }
        let at = recovery.pacer.next_send(now, &input);
        self.timers.set(TimerKind::Pacing, Some(at));
        false
    }
}
