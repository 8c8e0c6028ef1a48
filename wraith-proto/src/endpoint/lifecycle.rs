//! How sessions begin, end and are forgotten, and the news about them.

use core::time::Duration;

use super::{Endpoint, Route, TimerKind};
use crate::crypto::{PeerId, Role, Root, Suite};
use crate::error::CloseReason;
use crate::event::Event;
use crate::recovery::Recovery;
use crate::session::{Control, Ending, EventBits, Keys, PeerParameters, Phase, SessionState};
use crate::stream::Bits;
use crate::time::Instant;
use crate::wire::{Frame, Frames, split_body};

/// Codes of CLOSE (`PROTO §9.5`).
pub(super) const CODE_VIOLATION: u32 = 1;
pub(super) const CODE_REFUSED: u32 = 2;
pub(super) const CODE_EXHAUSTED: u32 = 3;
pub(super) const CODE_PATH: u32 = 4;
pub(super) const CODE_REPLACED: u32 = 5;

/// Probe timeouts for which a closed session answers late packets (RFC 9000 §10.2).
const CLOSE_TIMEOUTS: u32 = 3;

/// Dials of both sides that end this far apart did not cross (`PROTO §4.9`).
const CROSSING: Duration = Duration::from_secs(10);

/// The peer broke the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Violation;

/// How to end a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    reason: CloseReason,
    frame: Option<(bool, u32)>,
}

impl End {
    /// Without a word to the peer.
    pub(super) const fn silent(reason: CloseReason) -> Self {
        Self { reason, frame: None }
    }

    /// The application closes.
    pub(super) const fn local(code: u32) -> Self {
        Self { reason: CloseReason::Local, frame: Some((true, code)) }
    }

    /// The peer broke the protocol.
    pub(super) const fn violation() -> Self {
        Self { reason: CloseReason::Violation, frame: Some((false, CODE_VIOLATION)) }
    }

    /// The peer is not welcome.
    pub(super) const fn refused() -> Self {
        Self { reason: CloseReason::Refused, frame: Some((false, CODE_REFUSED)) }
    }

    /// Keys or packet numbers are used up.
    pub(super) const fn exhausted() -> Self {
        Self { reason: CloseReason::KeysExhausted, frame: Some((false, CODE_EXHAUSTED)) }
    }

    /// Another session takes its place.
    pub(super) const fn replaced() -> Self {
        Self { reason: CloseReason::Replaced, frame: Some((false, CODE_REPLACED)) }
    }

    /// The path carries less than it has to.
    pub(super) const fn path_too_small() -> Self {
        Self { reason: CloseReason::PathTooSmall, frame: Some((false, CODE_PATH)) }
    }
}

/// What a finished handshake says of the peer.
pub(super) struct Established {
    pub(super) peer: PeerId,
    pub(super) instance: [u8; 16],
    pub(super) parameters: PeerParameters,
    pub(super) protocol: u8,
    pub(super) suite: Suite,
    pub(super) root: Root,
    /// Round trip of the handshake, if no message was repeated.
    pub(super) rtt: Option<Duration>,
}

impl Endpoint {
    /// Gives the session its keys and starts its life; the caller raises events.
    pub(super) fn establish(&mut self, index: u32, established: Established) {
        let now = self.now;
        let (transport, offer) = (self.config.transport, self.config.stream_offer());
        let session = &mut self.sessions[index];
        let parameters = established.parameters;
        session.peer = Some(established.peer);
        session.instance = established.instance;
        session.established = now;
        session.protocol = established.protocol;
        session.peer_parameters = parameters;
        let mtu = self.new_mtu(index, transport.mtu_search);
        let session = &mut self.sessions[index];
        session.recovery = Recovery::new(now, mtu, &transport, parameters.max_ack_delay);
        if let Some(rtt) = established.rtt {
            session.recovery.rtt.sample(rtt, Duration::ZERO, parameters.max_ack_delay.duration(), false);
        }
        let streams = &mut session.streams;
        streams.offer = offer;
        streams.bi.limit = parameters.streams_bi;
        streams.uni.limit = parameters.streams_uni;
        streams.bi.allowed = streams.offer;
        streams.uni.allowed = streams.offer;
        let Established { root, suite, .. } = established;
        let keys = session.keys.insert(Keys::new(suite, session.role, root, now));
        self.expanded.admit(index, keys);
        self.stats.handshakes_completed += 1;
        self.trace_established(index);
        self.issue_ids(index);
        self.postpone_idle(index);
        self.postpone_keep_alive(index);
    }

    /// Gives the peer connection ids until it has four.
    pub(super) fn issue_ids(&mut self, index: u32) {
        loop {
            let Some(id) = self.new_id(Route::Session(index)) else { return };
            let session = &mut self.sessions[index];
            if let Some(slot) = session.cids.issue(id) {
                session.control.0 |= Control::NEW_ID << slot;
            } else {
                self.routes.remove(id.as_u64());
                return;
            }
        }
    }

    /// If both ends dialled each other, ends the session that has to go (`PROTO §4.9`); returns whether that
    /// is `index` itself.
    pub(super) fn resolve_crossing(&mut self, index: u32) -> bool {
        let session = &self.sessions[index];
        let (Some(peer), role, instance) = (session.peer, session.role, session.instance) else {
            return false;
        };
        let other_role = match role {
            Role::Initiator => Role::Responder,
            Role::Responder => Role::Initiator,
        };
        let key = self.peer_key(peer, &instance, role);
        let known = self.peers.get(key);
        // One that is too old to cross anything, or that the peer has left, does not hide this one.
        let stands = known.is_some_and(|known| self.may_cross(known, peer));
        if !stands {
            let _ = self.peers.insert(key, index);
        }
        let Some(other) = self.peers.get(self.peer_key(peer, &instance, other_role)) else { return false };
        let matches = self
            .sessions
            .get(other)
            .is_some_and(|session| session.instance == instance && self.may_cross(other, peer));
        if !matches || self.config.identity.peer_id() == peer {
            return false;
        }
        let own_wins = self.config.identity.peer_id() < peer;
        let (own, theirs) = if role == Role::Initiator { (index, other) } else { (other, index) };
        let loser = if own_wins { theirs } else { own };
        let winner = if loser == own { theirs } else { own };
        self.pass_on_redial(loser, winner);
        self.end(loser, End::silent(CloseReason::Superseded));
        loser == index
    }

    /// Ends a session; a second end changes nothing.
    pub(super) fn end(&mut self, index: u32, end: End) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        if session.ending.is_some() {
            return;
        }
        let known = session.phase != Phase::Handshaking || session.role == Role::Initiator;
        // Of a dial in the place of another session the application hears when it has succeeded.
        let pending = self.redials.is_pending(index);
        let known = known && !pending;
        let frame = end.frame.filter(|_| session.keys.is_some());
        session.ending = Some(Ending { reason: end.reason, frame, due: frame.is_some(), late: 0 });
        session.phase = if frame.is_some() { Phase::Closing } else { Phase::Draining };
        session.timers.clear();
        session.events.0 &= EventBits::CLOSED;
        session.control = Control::default();
        session.acks = crate::recovery::Acks::new(self.now);
        self.streams.free_all(&mut session.streams, index);
        self.datagrams.clear(&mut session.datagrams);
        self.starved_links.remove(&mut self.starved, index);
        self.sent.clear(&mut session.recovery.sent);
        if frame.is_some() {
            self.closes_due += 1;
            let linger = session.recovery.pto() * CLOSE_TIMEOUTS;
            session.timers.set(TimerKind::Close, Some(self.now.saturating_add(linger)));
        } else if pending {
            // Nobody polls its end: it is forgotten by itself.
            session.timers.set(TimerKind::Close, Some(self.now));
        }
        if let Some(slot) = session.handshake.filter(|_| frame.is_none()) {
            self.free_handshake(slot);
        }
        if known {
            self.notify(index, EventBits::CLOSED);
        }
        self.drop_check(index);
        self.feed_starved();
        self.settle(index);
        self.trace_closed(index, end.reason);
        self.end_redial(index, end.reason);
    }

    /// Tells sessions that wait for room for a first datagram, as many as there is room for.
    pub(super) fn feed_starved(&mut self) {
        for _ in 0..self.datagrams.free_slots() {
            let Some(index) = self.starved_links.pop_front(&mut self.starved) else { return };
            self.notify(index, EventBits::DATAGRAMS);
        }
    }

    /// A packet arrived after this end closed.
    pub(super) fn on_late_packet(&mut self, index: u32, body: &mut [u8]) {
        if self.sessions[index].handshake.is_some() {
            self.confirm_dial(index);
        }
        let is_close = |frame| matches!(frame, Ok(Frame::Close { .. } | Frame::CloseApp { .. }));
        if !split_body(body).is_ok_and(|(_, frames)| Frames::new(frames).any(is_close)) {
            self.repeat_close(index);
            return;
        }
        // Both closed at once: who is told so has nothing to answer (`PROTO §9.3`).
        self.forget_close(index);
        let session = &mut self.sessions[index];
        session.phase = Phase::Draining;
        session.timers.clear();
        session.timers.set(TimerKind::Close, Some(self.now));
        self.settle(index);
    }

    /// The CLOSE of a session has left, or never will.
    pub(super) fn forget_close(&mut self, index: u32) {
        if let Some(ending) = &mut self.sessions[index].ending
            && ending.due
        {
            ending.due = false;
            self.closes_due -= 1;
        }
    }

    /// Forgets the session if it is over and the application knows.
    pub(super) fn free_if_over(&mut self, index: u32) {
        let Some(session) = self.sessions.get(index) else { return };
        if session.phase == Phase::Draining && session.events.0 == 0 {
            self.free(index);
        }
    }

    /// Forgets a session at once.
    pub(super) fn free(&mut self, index: u32) {
        self.forget_close(index);
        if self.sessions.get(index).is_none() {
            return;
        }
        self.drop_check(index);
        let session = &mut self.sessions[index];
        self.streams.free_all(&mut session.streams, index);
        self.datagrams.clear(&mut session.datagrams);
        self.sent.clear(&mut session.recovery.sent);
        let handshake = session.handshake.take();
        if let Some(slot) = handshake {
            self.free_handshake(slot);
        }
        self.redials.leave(index);
        self.ready_links.remove(&mut self.ready, index);
        self.event_links.remove(&mut self.news, index);
        self.wheel.cancel(index);
        let Some(session) = self.sessions.remove(index) else { return };
        if let Some(keys) = &session.keys {
            self.expanded.release(index, keys);
        }
        for id in session.cids.locals() {
            self.routes.remove(id.as_u64());
        }
        if let Some(peer) = session.peer {
            let key = self.peer_key(peer, &session.instance, session.role);
            if self.peers.get(key) == Some(index) {
                self.peers.remove(key);
            }
        }
    }

    /// Takes the next event of a session; `None` when it has none left.
    pub(super) fn take_event(&mut self, index: u32) -> Option<Event> {
        let session = self.sessions.get_mut(index)?;
        let mut take = |bit: u8| {
            let had = session.events.0 & bit != 0;
            session.events.0 &= !bit;
            had
        };
        if take(EventBits::AUTHORIZE) {
            return Some(Event::Authorize);
        }
        if take(EventBits::CONNECTED) {
            return Some(Event::Connected);
        }
        if take(EventBits::DATAGRAMS) {
            return Some(Event::DatagramsUnblocked);
        }
        if take(EventBits::MAX_DATAGRAM) {
            return Some(Event::MaxDatagramChanged);
        }
        if take(EventBits::PATH) {
            return Some(Event::PathChanged);
        }
        if take(EventBits::STREAMS) {
            return Some(Event::StreamsUnblocked);
        }
        if let Some(event) = self.take_stream_event(index) {
            return Some(event);
        }
        let session = self.sessions.get_mut(index)?;
        if session.events.0 & EventBits::CLOSED == 0 {
            return None;
        }
        session.events.0 &= !EventBits::CLOSED;
        session.ending.map(|ending| Event::Closed(ending.reason))
    }

    /// Starts a session of the dialling or answering side; `None` if the table is full.
    pub(super) fn new_session(&mut self, role: Role, path: crate::session::Path) -> Option<u32> {
        let session = SessionState::new(self.now, role, path, &self.config.transport);
        self.sessions.insert(session).ok()
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Whether the session is one with `peer` whose dial another one could have crossed.
    fn may_cross(&self, index: u32, peer: PeerId) -> bool {
        self.sessions.get(index).is_some_and(|session| {
            let recent = self.now.saturating_since(session.established) <= CROSSING;
            recent && session.is_open() && session.peer == Some(peer) && !self.redials.is_dialling(index)
        })
    }

    fn take_stream_event(&mut self, index: u32) -> Option<Event> {
        let session = &mut self.sessions[index];
        let slot = session.streams.events.front()?;
        let stream = self.streams.stream(slot);
        let id = stream.id;
        let event = if stream.events.take(Bits::OPENED) {
            Event::StreamOpened(id)
        } else if stream.events.take(Bits::WAS_RESET) {
            let code = stream.recv.as_ref().and_then(|recv| recv.reset).unwrap_or(0);
            Event::Reset { stream: id, code }
        } else if stream.events.take(Bits::STOPPED) {
            let code = stream.send.as_ref().and_then(|send| send.stopped).unwrap_or(0);
            Event::Stopped { stream: id, code }
        } else if stream.events.take(Bits::WRITABLE) {
            Event::Writable(id)
        } else {
            stream.events.take(Bits::DELIVERED);
            Event::Delivered(id)
        };
        self.streams.refresh_events(&mut session.streams, slot);
        let (_, mut scope) = super::scope::Scope::split(index, session, &mut self.streams);
        scope.retire(slot);
        self.settle(index);
        Some(event)
    }

    fn peer_key(&self, peer: PeerId, instance: &[u8; 16], role: Role) -> u64 {
        use core::hash::Hasher;
        let mut hasher = siphasher::sip::SipHasher13::new_with_key(&self.peers_key);
        hasher.write(peer.as_bytes());
        hasher.write(instance);
        hasher.write_u8(u8::from(role == Role::Responder));
        hasher.finish()
    }
}
