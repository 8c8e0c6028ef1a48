//! Peers that move: packets from another address, the check whether the peer is there, and what follows
//! (`PROTO §13.1` to `§13.9`).

use alloc::boxed::Box;
use core::net::{IpAddr, SocketAddr};

use heapless::Deque;

use super::scope::Scope;
use super::{Endpoint, TxStatus, canonical, is_peer_address};
use crate::config::{Limits, MIN_DATAGRAM};
use crate::error::SessionError;
use crate::meta::{Ecn, RxMeta, Via};
use crate::queue::TxQueue;
use crate::recovery::{NewPath, PathMtu};
use crate::session::{
    Ask, CHALLENGE_LEN, Check, CheckSlot, Control, EventBits, MAX_CHECKS, Path, SessionHandle, SessionState,
    Stage,
};
use crate::time::Instant;
use crate::util::Slab;
use crate::wire::{ConnectionId, Frame, Frames};

/// Answers to challenges that wait to be sent; one too many is dropped, and the challenge comes again.
const ANSWERS: usize = 32;

/// Checks of all sessions, and answers to those of their peers.
pub(super) struct Paths {
    checks: Slab<Check>,
    answers: Box<Deque<PathAnswer, ANSWERS>>,
}

/// What an authentic packet says of where the peer is.
pub(super) struct Origin {
    /// Bytes of the datagram.
    pub(super) bytes: usize,
    /// The id of this end that it went to.
    pub(super) id: ConnectionId,
    /// No packet before had a higher number.
    pub(super) newest: bool,
}

/// A `PATH_RESPONSE` to be sent.
struct PathAnswer {
    session: SessionHandle,
    path: Path,
    token: [u8; 8],
    padded: bool,
}

impl Paths {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { checks: Slab::new(Self::capacity(limits)), answers: Box::default() }
    }

    /// Checks at the same time: as many as handshakes, but no more than sessions.
    pub(super) const fn capacity(limits: &Limits) -> u32 {
        let least = if limits.handshakes < limits.sessions { limits.handshakes } else { limits.sessions };
        if least < MAX_CHECKS { least } else { MAX_CHECKS }
    }

    pub(super) const fn memory(limits: &Limits) -> usize {
        Slab::<Check>::memory(Self::capacity(limits) as usize) + size_of::<Deque<PathAnswer, ANSWERS>>()
    }

    fn of(&self, session: &SessionState) -> Option<(u32, &Check)> {
        let slot = session.check?.index();
        self.checks.get(slot).map(|check| (slot, check))
    }

    fn of_mut(&mut self, session: &SessionState) -> Option<(u32, &mut Check)> {
        let slot = session.check?.index();
        self.checks.get_mut(slot).map(|check| (slot, check))
    }
}

impl Endpoint {
    /// Notes where an authentic packet came from. Answers go the way that the newest packet from the peer's address
    /// came: a copy of an older one changes nothing. A newest one from elsewhere begins a check.
    pub(super) fn note_origin(&mut self, index: u32, meta: &RxMeta, origin: &Origin) {
        let from = canonical(meta.from);
        let session = &mut self.sessions[index];
        if from == session.path.remote {
            if origin.newest {
                session.path.via = meta.via;
                if let Some(slot) = session.cids.local_slot(origin.id) {
                    session.used_id = slot as u8;
                }
                self.on_former_path(index);
            }
            return;
        }
        let pending = self.paths.of_mut(session).map(|(_, check)| check);
        match pending.filter(|check| check.stage == Stage::Address && check.path.remote == from) {
            Some(check) => {
                check.on_received(origin.bytes);
                if origin.newest {
                    (check.path.local, check.path.via) = (meta.to, meta.via);
                }
                session.asks_path = check.due().is_some();
            }
            None if origin.newest => self.begin_check(index, meta, from, origin),
            None => {}
        }
    }

    /// Lets `PATH_CHALLENGE` and `PATH_RESPONSE` of an authentic packet of `bytes` take effect.
    pub(super) fn apply_path_frames(&mut self, index: u32, meta: &RxMeta, bytes: usize, frames: &[u8]) {
        let from = canonical(meta.from);
        let mut answers = false;
        for frame in Frames::new(frames).flatten() {
            if !self.sessions[index].is_open() {
                return;
            }
            match frame {
                // A packet brings its bytes once: one answer is what it pays for.
                Frame::PathChallenge { .. } if answers => {}
                Frame::PathChallenge { token } => {
                    answers = true;
                    let mut path = self.sessions[index].path;
                    if path.remote != from {
                        path = Path { remote: from, local: meta.to, via: meta.via };
                    }
                    let padded = bytes >= usize::from(MIN_DATAGRAM);
                    let session = self.handle_of(index);
                    if is_peer_address(from) {
                        let _ = self.paths.answers.push_back(PathAnswer { session, path, token, padded });
                    }
                }
                Frame::PathResponse { token } => self.on_path_response(index, from, token),
                _ => {}
            }
        }
    }

    /// The session's own address changes, and this end knows.
    pub(crate) fn migrate(
        &mut self,
        index: u32,
        now: Instant,
        local: Option<IpAddr>,
        via: Via,
    ) -> Result<(), SessionError> {
        self.advance(now);
        let session = &mut self.sessions[index];
        if !session.is_open() {
            return Err(SessionError::Closed);
        }
        let fresh = session.cids.fresh().ok_or(SessionError::NoConnectionId)?;
        let bits = session.cids.move_to(fresh).ok_or(SessionError::NoConnectionId)?;
        session.control.0 |= Control::PING | (u32::from(bits) * Control::RETIRE_ID);
        (session.path.local, session.path.via) = (local, via);
        let mut lost = false;
        if let Some((_, check)) = self.paths.of_mut(session) {
            (check.path.local, check.path.via) = (local, via);
            // The id of the check was seen beside the former address of this end, and goes with the move. Without another
            // one the address is checked again when the next packet comes from there.
            if check.id.take().is_some() {
                check.id = session.cids.take_fresh();
                lost = check.id.is_none();
            }
        }
        let handle = self.handle_of(index);
        for answer in self.paths.answers.iter_mut().filter(|answer| answer.session == handle) {
            (answer.path.local, answer.path.via) = (local, via);
        }
        if lost {
            self.end_check(index);
        }
        self.leave_path(index);
        self.begin_path(index, None, self.config.transport.mtu_search);
        self.settle(index);
        Ok(())
    }

    /// The timer of a check fired.
    pub(super) fn on_check_timer(&mut self, slot: u32) {
        let Some(check) = self.paths.checks.get_mut(slot) else { return };
        let index = check.session;
        if check.stage == Stage::Over {
            self.drop_check(index);
        } else if check.ask_again() {
            self.arm_check(slot);
        } else {
            self.end_check(index);
        }
        self.settle(index);
    }

    /// Forgets everything about other addresses of a session.
    pub(super) fn drop_check(&mut self, index: u32) {
        let session = &mut self.sessions[index];
        session.asks_path = false;
        let Some(slot) = session.check.take().map(CheckSlot::index) else { return };
        let check = self.paths.checks.remove(slot);
        self.stats.path_checks_given_up +=
            u64::from(check.is_some_and(|check| check.stage == Stage::Address));
        self.wheel.cancel(self.check_timer(slot));
    }

    /// Sends the challenges of a session that are due; `Some` if everything has to stop.
    pub(super) fn transmit_challenges<Q: TxQueue>(
        &mut self,
        index: u32,
        tx: &mut Q,
        left: &mut u32,
    ) -> Option<TxStatus> {
        while let Some((slot, ask, path)) = self.due_challenge(index) {
            if *left == 0 {
                return Some(TxStatus::Budget);
            }
            let size = usize::from(ask.len());
            let Some(buffer) = tx.reserve(&path.meta(Ecn::NotEct), size) else {
                return Some(TxStatus::QueueFull);
            };
            let (token, id) = match ask {
                Ask::Former => (self.rng.array(), None),
                Ask::Plain | Ask::Padded => {
                    let check = &self.paths.checks[slot];
                    let id = check.id.and_then(|id| self.sessions[index].cids.by_number(id));
                    (check.token(ask), id)
                }
            };
            let frame = Frame::PathChallenge { token };
            let Some(len) = self.build_alone(index, &mut buffer[..size], &frame, id) else { break };
            tx.commit(len);
            self.count_sent(len);
            *left -= 1;
            self.paths.checks[slot].on_asked(ask, self.now);
        }
        self.sessions[index].asks_path = false;
        None
    }

    /// Sends the answers to challenges; `Some` if everything has to stop.
    pub(super) fn transmit_path_answers<Q: TxQueue>(
        &mut self,
        tx: &mut Q,
        left: &mut u32,
    ) -> Option<TxStatus> {
        while let Some(&PathAnswer { session, path, token, padded }) = self.paths.answers.front() {
            let index = session.index;
            let open = self.sessions.lookup(index, session.generation).is_some_and(SessionState::is_open);
            if open {
                if *left == 0 {
                    return Some(TxStatus::Budget);
                }
                let size = usize::from(if padded { MIN_DATAGRAM } else { CHALLENGE_LEN });
                let Some(buffer) = tx.reserve(&path.meta(Ecn::NotEct), size) else {
                    return Some(TxStatus::QueueFull);
                };
                let state = &mut self.sessions[index];
                let check = self.paths.of_mut(state).map(|(_, check)| check);
                let check =
                    check.filter(|check| check.stage == Stage::Address && check.path.remote == path.remote);
                let id = check.as_ref().and_then(|check| state.cids.by_number(check.id?));
                // Never more than the challenge itself brought (`PROTO §13.4`).
                if let Some(check) = check {
                    check.on_sent(size);
                }
                let frame = Frame::PathResponse { token };
                if let Some(len) = self.build_alone(index, &mut buffer[..size], &frame, id) {
                    tx.commit(len);
                    self.count_sent(len);
                    *left -= 1;
                }
                self.settle(index);
            }
            self.paths.answers.pop_front();
        }
        None
    }

    fn begin_check(&mut self, index: u32, meta: &RxMeta, from: SocketAddr, origin: &Origin) {
        if !self.sessions[index].is_open() || !is_peer_address(from) {
            return;
        }
        if self.paths.of(&self.sessions[index]).is_some_and(|(_, check)| !check.yields(self.now)) {
            self.stats.path_checks_refused += 1;
            return;
        }
        self.end_check(index);
        let path = Path { remote: from, local: meta.to, via: meta.via };
        let Some(slot) = self.check_slot(index, path) else {
            self.stats.path_checks_refused += 1;
            return;
        };
        let tokens = [self.rng.array(), self.rng.array()];
        let session = &mut self.sessions[index];
        let Some(check) = self.paths.checks.get_mut(slot) else { return };
        check.begin(path, tokens, session.recovery.pto_base());
        check.on_received(origin.bytes);
        check.events = session.recovery.set_unsure(true);
        check.used_id = session.cids.local_slot(origin.id).map_or(session.used_id, |slot| slot as u8);
        // Who goes by another id does not want to be recognised: nor does this end betray it (`PROTO §13.9`).
        check.id = if check.used_id == session.used_id { None } else { session.cids.take_fresh() };
        self.stats.path_checks_begun += 1;
        self.arm_check(slot);
    }

    /// The session's place among the checks, made if there is none.
    fn check_slot(&mut self, index: u32, path: Path) -> Option<u32> {
        if let Some(slot) = self.sessions[index].check {
            return Some(slot.index());
        }
        let slot = self.paths.checks.insert(Check::new(index, path)).ok()?;
        self.sessions[index].check = CheckSlot::new(slot);
        Some(slot)
    }

    /// A newer packet came from where the peer was: it is still there (`PROTO §13.3`).
    fn on_former_path(&mut self, index: u32) {
        let pending = self.paths.of(&self.sessions[index]);
        if pending.is_some_and(|(_, check)| check.stage == Stage::Address) {
            self.end_check(index);
        }
    }

    fn on_path_response(&mut self, index: u32, from: SocketAddr, token: [u8; 8]) {
        let Some((slot, check)) = self.paths.of(&self.sessions[index]) else { return };
        let answered = check.answered(token).filter(|_| check.path.remote == from);
        match (check.stage, answered) {
            (Stage::Address, Some(ask)) => {
                self.move_peer(index, slot);
                if ask == Ask::Padded {
                    self.end_check(index);
                }
            }
            (Stage::Size, Some(Ask::Padded)) => self.end_check(index),
            _ => {}
        }
    }

    /// The peer proved to be at the checked address: everything goes there.
    fn move_peer(&mut self, index: u32, slot: u32) {
        let now = self.now;
        let session = &mut self.sessions[index];
        let Some(check) = self.paths.checks.get_mut(slot) else { return };
        let former = core::mem::replace(&mut session.path, check.path);
        session.used_id = check.used_id;
        if let Some(bits) = check.id.take().and_then(|id| session.cids.follow_to(id)) {
            session.control.0 |= u32::from(bits) * Control::RETIRE_ID;
        }
        // What the window lost on a way that was in use is not undone.
        let events = if session.recovery.is_unsure() { check.events } else { u64::MAX };
        let rtt = check.round_trip(now);
        check.on_moved(now);
        // What was acknowledged since the peer moved did not reach it.
        session.acks.hurry();
        self.stats.paths_validated += 1;
        let same_host = former.remote.ip() == session.path.remote.ip();
        self.leave_path(index);
        if same_host {
            self.sessions[index].recovery.keep_path(events);
        } else {
            self.begin_path(index, rtt, false);
        }
        self.arm_check(slot);
        self.notify(index, EventBits::PATH);
    }

    /// What was in flight on the former path is sent again.
    fn leave_path(&mut self, index: u32) {
        let (recovery, scope) = Scope::split(index, &mut self.sessions[index], &mut self.streams);
        let mut scope = self.hook.watch(self.now, index, scope);
        recovery.leave_path(&mut self.sent, &mut scope);
        self.trace_metrics(index);
    }

    /// Begins anew with round trip, window and datagram size.
    fn begin_path(&mut self, index: u32, rtt: Option<core::time::Duration>, search: bool) {
        let before = self.sessions[index].mtu();
        let mtu = self.new_mtu(index, search);
        let path = NewPath { now: self.now, transport: &self.config.transport, mtu, rtt };
        self.sessions[index].recovery.begin_path(path);
        if self.sessions[index].mtu() != before {
            self.notify(index, EventBits::MAX_DATAGRAM);
        }
    }

    /// The datagram size of a path of which nothing is known.
    pub(super) fn new_mtu(&self, index: u32, search: bool) -> PathMtu {
        let (session, transport) = (&self.sessions[index], &self.config.transport);
        let most = transport.max_datagram.min(session.peer_parameters.max_datagram);
        PathMtu::new(transport.min_datagram.min(most), most, session.path.remote.is_ipv6(), search)
    }

    /// The check is over, be it for want of an answer. Its memory stays as long as it is of use.
    fn end_check(&mut self, index: u32) {
        let session = &mut self.sessions[index];
        let Some((slot, check)) = self.paths.of_mut(session) else { return };
        match check.stage {
            Stage::Address => {
                self.stats.path_checks_given_up += 1;
                session.recovery.set_unsure(false);
                if let Some(bits) = check.id.take().and_then(|id| session.cids.abandon(id)) {
                    session.control.0 |= u32::from(bits) * Control::RETIRE_ID;
                }
            }
            Stage::Size => session.recovery.path_mtu.search(self.config.transport.mtu_search),
            Stage::Over => return,
        }
        check.finish();
        if check.deadline(self.now).is_some() {
            self.arm_check(slot);
        } else {
            self.drop_check(index);
        }
    }

    /// Sets the timer of a check, and lets its challenges leave.
    fn arm_check(&mut self, slot: u32) {
        let Some(check) = self.paths.checks.get(slot) else { return };
        self.sessions[check.session].asks_path = check.due().is_some();
        if let Some(at) = check.deadline(self.now) {
            self.wheel.arm(self.check_timer(slot), at);
        }
    }

    /// The next challenge to send, and its way.
    fn due_challenge(&self, index: u32) -> Option<(u32, Ask, Path)> {
        let session = &self.sessions[index];
        let (slot, check) = self.paths.of(session).filter(|_| session.asks_path && session.is_open())?;
        let ask = check.due()?;
        Some((slot, ask, if ask == Ask::Former { session.path } else { check.path }))
    }

    /// The place of a check in the wheel.
    fn check_timer(&self, slot: u32) -> u32 {
        self.config.limits.sessions + self.config.limits.handshakes + slot
    }
}
