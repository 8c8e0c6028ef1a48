//! The answering side of the handshake.

use alloc::vec;
use core::net::{IpAddr, SocketAddr};

use super::admit::Verdict;
use super::dial::NOISE_OVERHEAD;
use super::egress::Answer;
use super::handshake::{Handshake, Stage};
use super::hello::{self, Choice, Ids, Introduction};
use super::lifecycle::{End, Established};
use super::{Endpoint, Route, canonical};
use crate::config::{MIN_DATAGRAM, Policy};
use crate::crypto::{Noise, PeerId, Role, verify_finish_mac};
use crate::error::{CloseReason, DropReason};
use crate::event::Outcome;
use crate::meta::{Ecn, RxMeta};
use crate::session::{Control, EventBits, Path, Phase};
use crate::wire::{
    FinishPacket, HandshakeHeader, HandshakeKind, InitPacket, Params, RESPONSE_MESSAGE_OFFSET, ResponseRepr,
    VERSION,
};

/// What FINISH did, and where the protected packet behind it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Finished {
    /// It ended the handshake.
    Now(Option<usize>),
    /// The handshake had ended before.
    Before(usize),
}

impl Endpoint {
    /// INIT arrived.
    pub(super) fn on_init(&mut self, meta: &RxMeta, datagram: &[u8]) -> Result<Outcome, DropReason> {
        if datagram.len() < usize::from(MIN_DATAGRAM) {
            return Err(DropReason::Malformed);
        }
        let header = HandshakeHeader::parse(datagram).map_err(|_| DropReason::Malformed)?;
        let path = Path { remote: canonical(meta.from), local: meta.to, via: meta.via };
        if header.version != VERSION {
            let reserved = hello::reserved_version(self.rng.next_u64());
            if self.answer(Answer::versions(path.meta(Ecn::NotEct), header.source, reserved)) {
                self.stats.version_answers_sent += 1;
            }
            return Err(DropReason::UnknownVersion);
        }
        let packet = InitPacket::parse(datagram).map_err(|_| DropReason::Malformed)?;
        if self.is_own_init(&packet) {
            return Err(DropReason::Replayed);
        }
        let first = fingerprint(&packet, path.remote);
        if let Some(slot) = self.handshakes.find(&first) {
            return self.on_repeated_init(slot, path, &packet, datagram.len());
        }
        let (now, id) = (self.now, packet.source());
        let proven = self.admission.accepts(now, path.remote, id, packet.cookie());
        let crowded = self.handshakes.is_crowded();
        match self.admission.judge(now, &self.config.limits, path.remote, proven, crowded) {
            Verdict::Cookie => {
                let cookie = self.admission.cookie(now, path.remote, id);
                if self.answer(Answer::cookie(path.meta(Ecn::NotEct), id, cookie)) {
                    self.stats.cookies_sent += 1;
                }
                return Err(DropReason::RateLimited);
            }
            Verdict::Limited => return Err(DropReason::RateLimited),
            Verdict::Proceed => {}
        }
        if !self.make_room() {
            return Err(DropReason::TableFull);
        }
        self.begin_answer(path, &packet, first, datagram.len())
    }

    /// FINISH arrived.
    pub(super) fn on_finish(&mut self, meta: &RxMeta, datagram: &[u8]) -> Result<Finished, DropReason> {
        let packet = FinishPacket::parse(datagram).map_err(|_| DropReason::Malformed)?;
        let rest = (packet.len() < datagram.len()).then_some(packet.len());
        let slot = match self.route(packet.destination())? {
            Route::Handshake(slot) => slot,
            // Repeated, since our first packet was lost or is on its way: what follows it may still be new.
            Route::Session(_) => {
                return rest.map(Finished::Before).ok_or(DropReason::Replayed);
            }
        };
        let handshake = self.handshakes.get_mut(slot).ok_or(DropReason::UnknownSession)?;
        let key = handshake.secrets.finish_key.as_ref().filter(|_| handshake.stage == Stage::Finish);
        let key = key.ok_or(DropReason::Refused)?;
        if !verify_finish_mac(key, packet.authenticated(), packet.mac()) {
            return Err(DropReason::BadTag);
        }
        if self.sessions.is_full() {
            return Err(DropReason::TableFull);
        }
        // FINISH proves the address that RESPONSE went to; a copy of it may come from anywhere (`PROTO §4.11`).
        let mut path = handshake.path;
        if canonical(meta.from) == path.remote {
            path = Path { remote: path.remote, local: meta.to, via: meta.via };
        }
        let (ids, rtt) = (handshake.ids, handshake.round_trip(self.now));
        let established = self.take_finish(slot, &packet);
        self.free_handshake(slot);
        let mut established = established.ok_or(DropReason::Refused)?;
        established.rtt = rtt;
        self.begin_session(path, ids, established)?;
        Ok(Finished::Now(rest))
    }

    /// Reads INIT and answers it: a keygen and two Diffie-Hellman operations.
    fn begin_answer(
        &mut self,
        path: Path,
        packet: &InitPacket<'_>,
        first: [u8; 32],
        received: usize,
    ) -> Result<Outcome, DropReason> {
        let seed = self.rng.secret();
        let mut noise = Noise::new(Role::Responder, &self.static_key, VERSION, &seed);
        let mut payload = [0; MIN_DATAGRAM as usize];
        let len = packet.message().len().checked_sub(NOISE_OVERHEAD[0]).ok_or(DropReason::Malformed)?;
        let payload = payload.get_mut(..len).ok_or(DropReason::Malformed)?;
        noise.read(packet.message(), payload).map_err(|_| DropReason::Malformed)?;
        let params = Params::parse(payload).map_err(|_| DropReason::Malformed)?;
        params.require(HandshakeKind::Init).map_err(|_| DropReason::Malformed)?;
        let first_version = params.first_version.ok_or(DropReason::Malformed)?;
        if params.initiator_id != Some(packet.source())
            || !hello::came_down_fairly(first_version, packet.version())
        {
            return Err(DropReason::Malformed);
        }
        let choice = hello::choose(&self.config, &params);
        let ids = Ids { initiator: packet.source(), responder: crate::wire::ConnectionId::ZERO };
        let timeout = self.config.transport.handshake_timeout;
        let mut handshake = Handshake::new(Role::Responder, noise, path, ids, self.now, timeout);
        handshake.first = first;
        handshake.lists = hello::lists(&params);
        handshake.received = received as u32;
        handshake.grease = self.rng.next_u64();
        handshake.stage = if choice.is_ok() { Stage::Finish } else { Stage::Refused };
        let slot = self.handshakes.insert(handshake).ok_or(DropReason::TableFull)?;
        if self.write_response(slot, first_version, choice).is_none() {
            self.free_handshake(slot);
            return Err(DropReason::Malformed);
        }
        self.stats.handshakes_answered += 1;
        self.send_handshake(slot);
        Ok(Outcome::Handshaking)
    }

    fn write_response(&mut self, slot: u32, first_version: u32, choice: Result<Choice, u32>) -> Option<()> {
        let responder = self.new_id(Route::Handshake(slot))?;
        let handshake = self.handshakes.get_mut(slot)?;
        handshake.ids.responder = responder;
        let mut message = vec![0; usize::from(MIN_DATAGRAM)];
        let message_len = message.len() - RESPONSE_MESSAGE_OFFSET;
        let mut payload = [0; MIN_DATAGRAM as usize];
        let payload = &mut payload[..message_len - NOISE_OVERHEAD[1]];
        let (ids, grease) = (handshake.ids, handshake.grease);
        hello::write_response(&self.config, &self.instance, ids, first_version, choice, grease, payload)
            .ok()?;
        let (destination, source) = (ids.initiator, responder);
        let message_len = message_len as u16;
        let repr = ResponseRepr { version: VERSION, destination, source, message_len };
        let at = repr.emit(&mut message).ok()?;
        self.stats.dh_operations += 3;
        handshake.noise.write(payload, &mut message[at..]).ok()?;
        handshake.secrets.finish_key = handshake.noise.finish_mac_key();
        handshake.say(message, self.now);
        Some(())
    }

    /// The same INIT from the same address again: the same answer (`PROTO §4.12`).
    fn on_repeated_init(
        &mut self,
        slot: u32,
        path: Path,
        packet: &InitPacket<'_>,
        received: usize,
    ) -> Result<Outcome, DropReason> {
        let handshake = self.handshakes.get_mut(slot).ok_or(DropReason::UnknownSession)?;
        if handshake.ids.initiator != packet.source() {
            return Err(DropReason::Malformed);
        }
        handshake.path = path;
        handshake.received = handshake.received.saturating_add(received as u32);
        handshake.repeated = true;
        self.send_handshake(slot);
        Ok(Outcome::Handshaking)
    }

    /// Opens FINISH, whose outer MAC was good, and checks who sent it.
    fn take_finish(&mut self, slot: u32, packet: &FinishPacket<'_>) -> Option<Established> {
        self.stats.dh_operations += 1;
        let handshake = self.handshakes.get_mut(slot)?;
        let mut payload = [0; 2048];
        let len = handshake.noise.read(packet.message(), &mut payload).ok()?;
        let params = Params::parse(&payload[..len]).ok()?;
        let static_key = handshake.noise.remote_static();
        if packet.source() != handshake.ids.initiator || hello::lists(&params) != handshake.lists {
            return None;
        }
        let introduction = hello::introduction(
            &self.config,
            &params,
            HandshakeKind::Finish,
            handshake.ids,
            static_key,
            None,
        )?;
        let Introduction { peer, instance, parameters, choice } = introduction;
        if hello::choose(&self.config, &params) != Ok(choice) {
            return None;
        }
        let root = handshake.noise.root()?;
        let (protocol, suite) = (choice.protocol, choice.suite);
        Some(Established { peer, instance, parameters, protocol, suite, root, rtt: None })
    }

    /// Makes the session of a finished handshake.
    fn begin_session(&mut self, path: Path, ids: Ids, established: Established) -> Result<(), DropReason> {
        let index = self.new_session(Role::Responder, path).ok_or(DropReason::TableFull)?;
        let session = &mut self.sessions[index];
        session.cids.set_remote(ids.initiator);
        session.cids.issue(ids.responder);
        let welcome = self.welcomes(established.peer);
        if self.routes.insert(ids.responder.as_u64(), Route::Session(index).pack()).is_err() {
            self.free(index);
            return Err(DropReason::TableFull);
        }
        self.establish(index, established);
        if !welcome {
            // Still in phase Handshaking: the application never hears of it (`PROTO §4.17`).
            if self.sessions.len() * 2 > self.sessions.capacity() {
                // Whoever is not welcome gets no room where room is scarce, not even to be told so.
                self.trace_closed(index, CloseReason::Refused);
                self.free(index);
            } else {
                self.end(index, End::refused());
            }
            return Err(DropReason::Refused);
        }
        if self.resolve_crossing(index) {
            self.free(index);
            return Ok(());
        }
        let ask = matches!(self.config.policy, Policy::Ask);
        let session = &mut self.sessions[index];
        session.phase = if ask { Phase::Pending } else { Phase::Live };
        session.control.0 |= Control::PING;
        self.notify(index, if ask { EventBits::AUTHORIZE } else { EventBits::CONNECTED });
        self.settle(index);
        Ok(())
    }

    /// Whether an INIT is one of this endpoint's own, sent back to it (`PROTO §4.12`): nobody else names an id that this
    /// endpoint drew as one of theirs.
    fn is_own_init(&self, packet: &InitPacket<'_>) -> bool {
        matches!(self.route(packet.source()), Ok(Route::Session(_)))
    }

    fn welcomes(&self, peer: PeerId) -> bool {
        match &self.config.policy {
            Policy::Set(peers) => peers.contains(&peer),
            Policy::All | Policy::Ask => true,
        }
    }
}

/// What makes an INIT the same as another: its Noise message and where it came from (`PROTO §4.12`). The
/// transcript of an answer proves one address only because no other got that answer.
fn fingerprint(packet: &InitPacket<'_>, from: SocketAddr) -> [u8; 32] {
    let address = match from.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(packet.message()).update(&address).update(&from.port().to_be_bytes());
    hasher.finalize().into()
}
