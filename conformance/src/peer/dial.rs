//! The initiator's half of the handshake (`PROTO §4`).

use wraith_proto::wire::{
    COOKIE_LEN, ConnectionId, FinishRepr, HandshakeKind, INIT_COOKIE_OFFSET, INIT_MESSAGE_OFFSET, InitRepr,
    ResponsePacket, VERSION, parameter_id,
};

use super::channel::Channel;
use super::identity::KeyPair;
use super::keys::{finish_mac, finish_mac_key};
use super::noise::{Noise, Role};
use super::parameters::{Introduction, Lists, Parameters, Profile, common_suite, refusal};
use super::{Refused, prologue};

/// Bytes of INIT and RESPONSE datagrams (`PROTO §2.5`).
pub(super) const PADDED: usize = 1200;

/// An initiator that has written INIT.
#[derive(Clone, Debug)]
pub struct Dial {
    profile: Profile,
    id: ConnectionId,
    noise: Noise,
    init: Vec<u8>,
    first_version: Vec<u8>,
}

impl Dial {
    /// Writes INIT as it should be.
    ///
    /// # Errors
    /// [`Refused`] never for a sound profile.
    pub fn new(profile: &Profile, id: ConnectionId, ephemeral: KeyPair) -> Result<Self, Refused> {
        Self::with(profile, id, ephemeral, &profile.init(id))
    }

    /// Writes INIT with these parameters.
    ///
    /// # Errors
    /// [`Refused`] if the Noise message cannot be written.
    ///
    /// # Panics
    /// If the message is longer than 65,535 bytes.
    pub fn with(
        profile: &Profile,
        id: ConnectionId,
        ephemeral: KeyPair,
        parameters: &Parameters,
    ) -> Result<Self, Refused> {
        Self::with_payload(profile, id, ephemeral, &parameters.to_bytes(PADDED - INIT_MESSAGE_OFFSET - 32))
    }

    /// Writes INIT with this payload.
    ///
    /// # Errors
    /// [`Refused`] if the Noise message cannot be written.
    ///
    /// # Panics
    /// If the message is longer than 65,535 bytes.
    pub fn with_payload(
        profile: &Profile,
        id: ConnectionId,
        ephemeral: KeyPair,
        payload: &[u8],
    ) -> Result<Self, Refused> {
        let mut noise = Noise::new(Role::Initiator, &prologue(VERSION), profile.identity.keys, ephemeral);
        let message = noise.write(payload)?;
        let message_len = u16::try_from(message.len()).expect("a Noise message has at most 65,535 bytes");
        let repr = InitRepr { version: VERSION, source: id, cookie: [0; COOKIE_LEN], message_len };
        let mut init = vec![0; repr.buffer_len()];
        let at = repr.emit(&mut init).expect("the buffer has the length that the datagram says it has");
        init[at..].copy_from_slice(&message);
        let said = Parameters::parse(payload).unwrap_or_default();
        let first_version = said.get(parameter_id::FIRST_VERSION).unwrap_or_default().to_vec();
        Ok(Self { profile: profile.clone(), id, noise, init, first_version })
    }

    /// This end's connection id.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// The datagram without cookie.
    pub fn init(&self) -> &[u8] {
        &self.init
    }

    /// The datagram with a cookie, which is its only change (`PROTO §4.10`).
    pub fn init_with(&self, cookie: &[u8; COOKIE_LEN]) -> Vec<u8> {
        let mut init = self.init.clone();
        init[INIT_COOKIE_OFFSET..][..COOKIE_LEN].copy_from_slice(cookie);
        init
    }

    /// Reads RESPONSE. Nothing changes, so that other copies can be read as well.
    ///
    /// # Errors
    /// [`Refused`] with the rule that it breaks.
    pub fn read(&self, response: &[u8]) -> Result<Answer, Refused> {
        let packet = ResponsePacket::parse(response).map_err(|_| Refused("§2.3: a malformed RESPONSE"))?;
        if response.len() < PADDED {
            return Err(Refused("§2.5: a RESPONSE of less than 1,200 bytes"));
        }
        if packet.destination() != self.id {
            return Err(Refused("§4.1: a RESPONSE for another connection id"));
        }
        let mut noise = self.noise.clone();
        let theirs = Parameters::parse(&noise.read(packet.message())?)?;
        let (responder, static_key) = (packet.source(), noise.remote_static());
        if let Some(code) = refusal(&theirs, self.id, responder, static_key)? {
            return Ok(Answer::Refusal(code));
        }
        let introduction =
            Introduction::read(&theirs, HandshakeKind::Response, self.id, responder, static_key)?;
        if theirs.get(parameter_id::FIRST_VERSION) != Some(&self.first_version[..]) {
            return Err(Refused("§4.6: RESPONSE repeats another version than INIT tried first"));
        }
        let suite = common_suite(&self.profile.suites, &Lists::of(&theirs).suites);
        if suite != Some(introduction.suite) || !self.profile.protocols.contains(&introduction.protocol) {
            return Err(Refused("§4.6: a choice that does not follow from both lists"));
        }
        let (profile, initiator) = (self.profile.clone(), self.id);
        Ok(Answer::Met(Box::new(Met { profile, initiator, responder, noise, theirs: introduction })))
    }
}

/// What a responder said.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It wants a session.
    Met(Box<Met>),
    /// It does not, for this reason (`PROTO §4.5`).
    Refusal(u64),
}

/// An initiator that knows who answered.
#[derive(Clone, Debug)]
pub struct Met {
    profile: Profile,
    initiator: ConnectionId,
    responder: ConnectionId,
    noise: Noise,
    theirs: Introduction,
}

impl Met {
    /// What the responder says of itself.
    pub fn theirs(&self) -> &Introduction {
        &self.theirs
    }

    /// The responder's connection id.
    pub fn responder(&self) -> ConnectionId {
        self.responder
    }

    /// The parameters that FINISH should have.
    pub fn parameters(&self) -> Parameters {
        self.profile.finish(self.initiator, self.responder, self.theirs.suite, &self.theirs.protocol)
    }

    /// Writes FINISH as it should be; the session begins.
    ///
    /// # Errors
    /// [`Refused`] if a shared secret is zero.
    pub fn finish(&self) -> Result<(Vec<u8>, Channel), Refused> {
        self.finish_with(&self.parameters())
    }

    /// Writes FINISH with these parameters; the session begins.
    ///
    /// # Errors
    /// [`Refused`] if a shared secret is zero.
    ///
    /// # Panics
    /// If the message is longer than 65,535 bytes.
    pub fn finish_with(&self, parameters: &Parameters) -> Result<(Vec<u8>, Channel), Refused> {
        self.finish_with_payload(&parameters.to_bytes(0))
    }

    /// Writes FINISH with this payload; the session begins.
    ///
    /// # Errors
    /// [`Refused`] if a shared secret is zero.
    ///
    /// # Panics
    /// If the message is longer than 65,535 bytes.
    pub fn finish_with_payload(&self, payload: &[u8]) -> Result<(Vec<u8>, Channel), Refused> {
        let mut noise = self.noise.clone();
        let key = finish_mac_key(&noise);
        let message = noise.write(payload)?;
        let message_len = u16::try_from(message.len()).expect("a Noise message has at most 65,535 bytes");
        let (destination, source) = (self.responder, self.initiator);
        let repr = FinishRepr { version: VERSION, destination, source, message_len };
        let mut datagram = vec![0; repr.buffer_len()];
        let at = repr.emit(&mut datagram).expect("the buffer has the length that the datagram says it has");
        let end = repr.mac_offset();
        datagram[at..end].copy_from_slice(&message);
        let mac = finish_mac(&key, &datagram[..end]);
        datagram[end..].copy_from_slice(&mac);
        let theirs = self.theirs.clone();
        let channel = Channel::new(Role::Initiator, noise, self.initiator, self.responder, theirs)?;
        Ok((datagram, channel))
    }

    /// The outer MAC key of FINISH.
    pub fn finish_key(&self) -> [u8; 32] {
        finish_mac_key(&self.noise)
    }
}
