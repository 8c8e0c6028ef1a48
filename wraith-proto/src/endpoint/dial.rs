//! The dialling side of the handshake.

use alloc::vec;

use super::handshake::{Handshake, Stage};
use super::hello::{self, Ids, Introduction};
use super::lifecycle::{End, Established};
use super::{Endpoint, Route, canonical, is_peer_address};
use crate::config::{Config, MIN_DATAGRAM, Peer};
use crate::crypto::{Noise, PeerId, Role, finish_mac};
use crate::error::{CloseReason, ConnectError, DropReason, SessionError};
use crate::event::Outcome;
use crate::meta::{RxMeta, Via};
use crate::session::{EventBits, Path, Phase, SessionHandle};
use crate::time::Instant;
use crate::wire::{
    ConnectionId, CookiePacket, FinishRepr, HandshakeKind, INIT_COOKIE_OFFSET, INIT_MESSAGE_OFFSET, InitRepr,
    Params, RESPONSE_MESSAGE_OFFSET, ResponsePacket, VERSION, VersionsPacket,
};

/// Bytes that Noise adds to the payloads of the three messages.
pub(super) const NOISE_OVERHEAD: [usize; 3] = [32, 96, 64];

/// Bytes of the first Noise message: it fills the datagram (`PROTO §2.5`).
const INIT_MESSAGE_LEN: usize = MIN_DATAGRAM as usize - INIT_MESSAGE_OFFSET;

/// Cookies for which INIT is repeated at once (`PROTO §4.13`): whoever sees the id can forge them.
const MAX_COOKIES: u8 = 4;

/// Wrong answers to one INIT after which the initiator stops trying others (`PROTO §4.19`).
const MAX_IMPOSTORS: u8 = 4;

/// How long it waits for the right answer after a wrong one, or one that proves nothing (`PROTO §4.16`, `§4.19`).
const IMPOSTOR_PATIENCE: core::time::Duration = core::time::Duration::from_secs(1);

impl Endpoint {
    /// Begins a session with `peer`; `Event::Connected` or `Event::Closed` follows.
    ///
    /// # Errors
    /// [`ConnectError`] if there is no room or the address cannot be a peer.
    pub fn connect(&mut self, now: Instant, peer: Peer, via: Via) -> Result<SessionHandle, ConnectError> {
        self.advance(now);
        let addr = canonical(peer.addr);
        if !is_peer_address(addr) {
            return Err(ConnectError::NoRoute);
        }
        if !self.make_room() {
            return Err(ConnectError::TableFull);
        }
        let path = Path { remote: addr, local: None, via };
        let index = self.new_session(Role::Initiator, path).ok_or(ConnectError::TableFull)?;
        if self.begin_dial(index, path, peer.id).is_none() {
            self.free(index);
            return Err(ConnectError::TableFull);
        }
        self.sessions[index].peer = peer.id;
        self.stats.handshakes_initiated += 1;
        Ok(self.handle_of(index))
    }

    /// RESPONSE arrived.
    pub(super) fn on_response(&mut self, meta: &RxMeta, datagram: &[u8]) -> Result<Outcome, DropReason> {
        let packet = ResponsePacket::parse(datagram).map_err(|_| DropReason::Malformed)?;
        if datagram.len() < usize::from(MIN_DATAGRAM) {
            return Err(DropReason::Malformed);
        }
        let (index, slot) = self.dial_of(packet.destination())?;
        let now = self.now;
        let handshake = self.handshakes.get_mut(slot).ok_or(DropReason::UnknownSession)?;
        if handshake.stage != Stage::Response {
            return Err(DropReason::Replayed);
        }
        if handshake.impostors >= MAX_IMPOSTORS {
            return Err(DropReason::RateLimited);
        }
        self.stats.dh_operations += 2;
        let mut payload = [0; MIN_DATAGRAM as usize];
        let len = packet.message().len().checked_sub(NOISE_OVERHEAD[1]).ok_or(DropReason::Malformed)?;
        if len > payload.len() {
            return Err(DropReason::Malformed);
        }
        let len = handshake.noise.read(packet.message(), &mut payload).map_err(|_| DropReason::BadTag)?;
        let ids = Ids { initiator: packet.destination(), responder: packet.source() };
        let params = Params::parse(&payload[..len]).ok();
        let static_key = handshake.noise.remote_static();
        if params.is_some_and(|params| {
            params.initiator_id != Some(ids.initiator) || params.responder_id != Some(ids.responder)
        }) {
            // The outer header was altered on the way; the genuine copy may still come (`PROTO §4.3`).
            self.rewind(slot);
            return Err(DropReason::Malformed);
        }
        let pin = handshake.pin;
        if params.is_some_and(|params| is_refusal(&self.config, &params, static_key, pin)) {
            self.refuse_redial(index, CloseReason::Refused);
            self.end(index, End::silent(CloseReason::Refused));
            return Ok(Outcome::Handshaking);
        }
        let introduction = params.and_then(|params| {
            hello::introduction(&self.config, &params, HandshakeKind::Response, ids, static_key, pin)
        });
        let Some(introduction) = introduction else {
            self.on_impostor(index, slot);
            return Err(DropReason::Refused);
        };
        let handshake = self.handshakes.get_mut(slot).ok_or(DropReason::UnknownSession)?;
        // A copy may come from anywhere: the peer is where it was dialled.
        if canonical(meta.from) == handshake.path.remote {
            handshake.path = Path { remote: handshake.path.remote, local: meta.to, via: meta.via };
        }
        handshake.ids = ids;
        handshake.rtt = handshake.round_trip(now);
        self.meet(index, slot, introduction, pin.is_some()).map_err(|()| DropReason::Refused)?;
        Ok(Outcome::Handshaking)
    }

    /// The responder is known: goes on, or asks the application first (`PROTO §4.8`).
    fn meet(&mut self, index: u32, slot: u32, introduction: Introduction, expected: bool) -> Result<(), ()> {
        let handshake = self.handshakes.get_mut(slot).ok_or(())?;
        handshake.introduction = Some(introduction);
        let session = &mut self.sessions[index];
        session.path = handshake.path;
        session.cids.set_remote(handshake.ids.responder);
        if expected {
            return self.finish_dial(index, slot);
        }
        handshake.stage = Stage::Authorize;
        handshake.fall_silent();
        session.peer = Some(introduction.peer);
        session.phase = Phase::Pending;
        self.arm_handshake(slot);
        self.notify(index, EventBits::AUTHORIZE);
        Ok(())
    }

    /// COOKIE arrived: repeat INIT with it.
    pub(super) fn on_cookie(&mut self, datagram: &[u8]) -> Result<Outcome, DropReason> {
        let packet = CookiePacket::parse(datagram).map_err(|_| DropReason::Malformed)?;
        let (_, slot) = self.dial_of(packet.destination())?;
        let handshake = self.handshakes.get_mut(slot).ok_or(DropReason::UnknownSession)?;
        if handshake.stage != Stage::Response {
            return Err(DropReason::Replayed);
        }
        let place = &mut handshake.message[INIT_COOKIE_OFFSET..][..packet.cookie().len()];
        if place == packet.cookie() {
            return Err(DropReason::Replayed);
        }
        place.copy_from_slice(packet.cookie());
        if handshake.cookies < MAX_COOKIES {
            handshake.cookies += 1;
            self.send_handshake(slot);
        }
        Ok(Outcome::Handshaking)
    }

    /// VERSIONS arrived. Only version 1 is spoken here, so an honest one ends the dial; but whoever saw INIT can forge one,
    /// so the peer still has its time to answer (`PROTO §4.16`).
    pub(super) fn on_versions(&mut self, datagram: &[u8]) -> Result<Outcome, DropReason> {
        let packet = VersionsPacket::parse(datagram).map_err(|_| DropReason::Malformed)?;
        let now = self.now;
        let (_, slot) = self.dial_of(packet.destination())?;
        let handshake = self.handshakes.get_mut(slot).ok_or(DropReason::UnknownSession)?;
        if handshake.stage != Stage::Response || packet.versions().any(|version| version == VERSION) {
            return Err(DropReason::Refused);
        }
        handshake.contest(now);
        self.arm_handshake(slot);
        Ok(Outcome::Handshaking)
    }

    /// The application admits the responder.
    pub(super) fn authorize_dial(&mut self, index: u32, slot: u32) -> Result<(), SessionError> {
        self.finish_dial(index, slot).map_err(|()| SessionError::Closed)
    }

    /// The first protected packet of the responder authenticated: FINISH has arrived.
    pub(super) fn confirm_dial(&mut self, index: u32) {
        if let Some(slot) = self.sessions[index].handshake {
            self.free_handshake(slot);
        }
    }

    pub(super) fn begin_dial(&mut self, index: u32, path: Path, pin: Option<PeerId>) -> Option<()> {
        let initiator = self.new_id(Route::Session(index))?;
        self.sessions[index].cids.issue(initiator)?;
        let (seed, grease) = (self.rng.secret(), self.rng.next_u64());
        let ids = Ids { initiator, responder: ConnectionId::ZERO };
        let noise = Noise::new(Role::Initiator, &self.static_key, VERSION, &seed);
        let timeout = self.config.transport.handshake_timeout;
        let mut handshake = Handshake::new(Role::Initiator, noise, path, ids, self.now, timeout);
        handshake.secrets.ephemeral_seed = *seed;
        handshake.grease = grease;
        handshake.session = Some(index);
        handshake.pin = pin;
        let message = self.write_init(&mut handshake)?;
        handshake.say(message, self.now);
        let slot = self.handshakes.insert(handshake)?;
        self.sessions[index].handshake = Some(slot);
        self.send_handshake(slot);
        Some(())
    }

    fn write_init(&mut self, handshake: &mut Handshake) -> Option<vec::Vec<u8>> {
        let mut message = vec![0; usize::from(MIN_DATAGRAM)];
        let source = handshake.ids.initiator;
        let mut payload = [0; INIT_MESSAGE_LEN - NOISE_OVERHEAD[0]];
        hello::write_init(&self.config, source, handshake.grease, &mut payload).ok()?;
        let message_len = INIT_MESSAGE_LEN as u16;
        let at =
            InitRepr { version: VERSION, source, cookie: [0; 16], message_len }.emit(&mut message).ok()?;
        handshake.noise.write(&payload, &mut message[at..]).ok()?;
        self.stats.dh_operations += 1;
        Some(message)
    }

    /// An answer authenticated, but not as the peer that was dialled: the right one may still come.
    fn on_impostor(&mut self, index: u32, slot: u32) {
        let now = self.now;
        let Some(handshake) = self.handshakes.get_mut(slot) else { return };
        if handshake.pin.is_none() {
            self.end(index, End::silent(CloseReason::Refused));
            return;
        }
        handshake.impostors += 1;
        handshake.contest(now);
        self.rewind(slot);
        self.arm_handshake(slot);
    }

    /// Takes the Noise state back to where it was after INIT.
    fn rewind(&mut self, slot: u32) {
        let Some(handshake) = self.handshakes.get_mut(slot) else { return };
        let seed = &handshake.secrets.ephemeral_seed;
        handshake.noise = Noise::new(Role::Initiator, &self.static_key, VERSION, seed);
        // The same seed and payload give the same INIT: the transcript begins as the peer has it.
        let (mut message, mut payload) = ([0; INIT_MESSAGE_LEN], [0; INIT_MESSAGE_LEN - NOISE_OVERHEAD[0]]);
        let (source, grease) = (handshake.ids.initiator, handshake.grease);
        if hello::write_init(&self.config, source, grease, &mut payload).is_ok() {
            let _ = handshake.noise.write(&payload, &mut message);
            self.stats.dh_operations += 1;
        }
    }

    /// Writes FINISH and starts the session.
    fn finish_dial(&mut self, index: u32, slot: u32) -> Result<(), ()> {
        let now = self.now;
        let handshake = self.handshakes.get_mut(slot).ok_or(())?;
        let introduction = handshake.introduction.take().ok_or(())?;
        let key = handshake.noise.finish_mac_key().ok_or(())?;
        let Introduction { peer, instance, parameters, choice } = introduction;
        let mut payload = [0; MIN_DATAGRAM as usize];
        let len = hello::write_finish(
            &self.config,
            &self.instance,
            handshake.ids,
            choice,
            handshake.grease,
            &mut payload,
        );
        let len = len.map_err(|_| ())?;
        let message_len = (len + NOISE_OVERHEAD[2]) as u16;
        let Ids { initiator: source, responder: destination } = handshake.ids;
        let repr = FinishRepr { version: VERSION, destination, source, message_len };
        let mut message = vec![0; repr.buffer_len()];
        let at = repr.emit(&mut message).map_err(|_| ())?;
        let end = repr.mac_offset();
        handshake.noise.write(&payload[..len], &mut message[at..end]).map_err(|_| ())?;
        let mac = finish_mac(&key, &message[..end]);
        message[end..].copy_from_slice(&mac);
        let root = handshake.noise.root().ok_or(())?;
        let rtt = handshake.rtt;
        handshake.say(message, now);
        handshake.stage = Stage::Confirm;
        handshake.contested = false;
        handshake.expires = now.saturating_add(self.config.transport.handshake_timeout);
        self.stats.dh_operations += 1;
        let (protocol, suite) = (choice.protocol, choice.suite);
        self.establish(index, Established { peer, instance, parameters, protocol, suite, root, rtt });
        self.sessions[index].phase = if parameters.ask { Phase::Waiting } else { Phase::Live };
        if self.resolve_crossing(index) {
            return Ok(());
        }
        self.send_handshake(slot);
        // A dial in the place of another session is told of when the peer answers in it.
        if !parameters.ask && !self.redials.is_pending(index) {
            self.notify(index, EventBits::CONNECTED);
        }
        self.settle(index);
        Ok(())
    }

    /// The dial that a connection id of ours belongs to.
    fn dial_of(&self, id: ConnectionId) -> Result<(u32, u32), DropReason> {
        let Route::Session(index) = self.route(id)? else { return Err(DropReason::UnknownSession) };
        let session = self.sessions.get(index).ok_or(DropReason::UnknownSession)?;
        let slot = session.handshake.ok_or(DropReason::Replayed)?;
        Ok((index, slot))
    }
}

impl Handshake {
    /// The dial is over unless the right answer comes soon.
    fn contest(&mut self, now: Instant) {
        self.contested = true;
        self.expires = self.expires.min(now.saturating_add(IMPOSTOR_PATIENCE));
    }
}

/// Whether an answer is a refusal by the peer that was dialled, proven like an introduction (`PROTO §4.7`).
fn is_refusal(
    config: &Config,
    params: &Params<'_>,
    static_key: Option<[u8; 32]>,
    pin: Option<PeerId>,
) -> bool {
    params.refusal.is_some()
        && params.require(HandshakeKind::Response).is_ok()
        && params.peer.is_some_and(|peer| hello::proven(config, peer, static_key, pin).is_some())
}

const _: () = assert!(RESPONSE_MESSAGE_OFFSET + NOISE_OVERHEAD[1] < MIN_DATAGRAM as usize);
