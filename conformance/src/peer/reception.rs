//! The responder's half of the handshake (`PROTO §4`).

use wraith_proto::wire::{
    ConnectionId, FinishPacket, HandshakeKind, InitPacket, RESPONSE_MESSAGE_OFFSET, ResponseRepr, VERSION,
    parameter_id as id,
};

use super::channel::Channel;
use super::dial::PADDED;
use super::identity::KeyPair;
use super::keys::{finish_mac, finish_mac_key};
use super::noise::{Noise, Role};
use super::parameters::{Introduction, Lists, Parameters, Profile, common_suite, first_common};
use super::{Refused, prologue};

/// A responder that has read INIT.
#[derive(Clone, Debug)]
pub struct Reception {
    profile: Profile,
    initiator: ConnectionId,
    message: Vec<u8>,
    offered: Parameters,
}

impl Reception {
    /// Reads INIT.
    ///
    /// # Errors
    /// [`Refused`] with the rule that it breaks.
    pub fn new(profile: &Profile, init: &[u8]) -> Result<Self, Refused> {
        let packet = InitPacket::parse(init).map_err(|_| Refused("§2.3: a malformed INIT"))?;
        if init.len() < PADDED {
            return Err(Refused("§2.5: an INIT of less than 1,200 bytes"));
        }
        if packet.version() != VERSION {
            return Err(Refused("§2.7: an INIT of another version"));
        }
        // The first payload is not encrypted: any key will do to read it.
        let mut noise =
            Noise::new(Role::Responder, &prologue(VERSION), profile.identity.keys, KeyPair::new([1; 32]));
        let offered = Parameters::parse(&noise.read(packet.message())?)?;
        offered.check(HandshakeKind::Init)?;
        if offered.get(id::INITIATOR_ID) != Some(&packet.source().0[..]) {
            return Err(Refused("§4.6: a connection id differs from that of the outer header"));
        }
        let (profile, message) = (profile.clone(), packet.message().to_vec());
        Ok(Self { profile, initiator: packet.source(), message, offered })
    }

    /// The same INIT, answered by another end.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// The initiator's connection id.
    pub fn initiator(&self) -> ConnectionId {
        self.initiator
    }

    /// The parameters of INIT.
    pub fn offered(&self) -> &Parameters {
        &self.offered
    }

    /// The first suite and protocol in the initiator's lists that this end offers, or the code of the refusal
    /// (`PROTO §4.5`).
    ///
    /// # Errors
    /// The code.
    pub fn choice(&self) -> Result<(u16, Vec<u8>), u64> {
        choice(&self.profile, &self.offered)
    }

    /// The parameters that RESPONSE should have.
    pub fn parameters(&self, responder: ConnectionId) -> Parameters {
        match self.choice() {
            Ok((suite, protocol)) => self.profile.response(self.initiator, responder, suite, &protocol),
            Err(code) => self.profile.refusal(self.initiator, responder, code),
        }
    }

    /// Writes RESPONSE as it should be.
    ///
    /// # Errors
    /// [`Refused`] if a shared secret is zero.
    pub fn respond(&self, responder: ConnectionId, ephemeral: KeyPair) -> Result<Response, Refused> {
        self.respond_with(responder, ephemeral, &self.parameters(responder))
    }

    /// Writes RESPONSE with these parameters.
    ///
    /// # Errors
    /// [`Refused`] if a shared secret is zero.
    pub fn respond_with(
        &self,
        responder: ConnectionId,
        ephemeral: KeyPair,
        parameters: &Parameters,
    ) -> Result<Response, Refused> {
        let payload = parameters.to_bytes(PADDED - RESPONSE_MESSAGE_OFFSET - 96);
        self.respond_with_payload(responder, ephemeral, &payload)
    }

    /// Writes RESPONSE with this payload.
    ///
    /// # Errors
    /// [`Refused`] if a shared secret is zero.
    ///
    /// # Panics
    /// If the message is longer than 65,535 bytes.
    pub fn respond_with_payload(
        &self,
        responder: ConnectionId,
        ephemeral: KeyPair,
        payload: &[u8],
    ) -> Result<Response, Refused> {
        let keys = self.profile.identity.keys;
        let mut noise = Noise::new(Role::Responder, &prologue(VERSION), keys, ephemeral);
        noise.read(&self.message)?;
        let message = noise.write(payload)?;
        let message_len = u16::try_from(message.len()).expect("a Noise message has at most 65,535 bytes");
        let (destination, source) = (self.initiator, responder);
        let repr = ResponseRepr { version: VERSION, destination, source, message_len };
        let mut datagram = vec![0; repr.buffer_len()];
        let at = repr.emit(&mut datagram).expect("the buffer has the length that the datagram says it has");
        datagram[at..].copy_from_slice(&message);
        Ok(Response {
            profile: self.profile.clone(),
            initiator: self.initiator,
            responder,
            noise,
            offered: self.offered.clone(),
            datagram,
        })
    }
}

/// A responder that has written RESPONSE.
#[derive(Clone, Debug)]
pub struct Response {
    profile: Profile,
    initiator: ConnectionId,
    responder: ConnectionId,
    noise: Noise,
    offered: Parameters,
    datagram: Vec<u8>,
}

impl Response {
    /// The datagram.
    pub fn datagram(&self) -> &[u8] {
        &self.datagram
    }

    /// The outer MAC key of FINISH.
    pub fn finish_key(&self) -> [u8; 32] {
        finish_mac_key(&self.noise)
    }

    /// Reads FINISH; the session begins. Also returns what stands behind FINISH in the datagram.
    ///
    /// # Errors
    /// [`Refused`] with the rule that it breaks.
    pub fn read<'a>(&self, finish: &'a [u8]) -> Result<(Channel, &'a [u8]), Refused> {
        let packet = FinishPacket::parse(finish).map_err(|_| Refused("§2.3: a malformed FINISH"))?;
        if finish_mac(&self.finish_key(), packet.authenticated()) != *packet.mac() {
            return Err(Refused("§4.2: the outer MAC of FINISH is wrong"));
        }
        if (packet.source(), packet.destination()) != (self.initiator, self.responder) {
            return Err(Refused("§4.1: a FINISH for another connection id"));
        }
        let mut noise = self.noise.clone();
        let parameters = Parameters::parse(&noise.read(packet.message())?)?;
        for id in [id::VERSIONS, id::FIRST_VERSION, id::SUITES, id::PROTOCOLS] {
            if parameters.get(id) != self.offered.get(id) {
                return Err(Refused("§4.6: FINISH repeats other lists than those of INIT"));
            }
        }
        let theirs = Introduction::read(
            &parameters,
            HandshakeKind::Finish,
            self.initiator,
            self.responder,
            noise.remote_static(),
        )?;
        if choice(&self.profile, &parameters) != Ok((theirs.suite, theirs.protocol.clone())) {
            return Err(Refused("§4.6: FINISH names another choice"));
        }
        let channel = Channel::new(Role::Responder, noise, self.responder, self.initiator, theirs)?;
        Ok((channel, &finish[packet.len()..]))
    }
}

fn choice(profile: &Profile, parameters: &Parameters) -> Result<(u16, Vec<u8>), u64> {
    let lists = Lists::of(parameters);
    first_common(&lists.versions, &profile.versions).ok_or(1u64)?;
    let suite = common_suite(&lists.suites, &profile.suites).ok_or(2u64)?;
    let protocol = first_common(&lists.protocols, &profile.protocols).ok_or(3u64)?;
    Ok((suite, protocol))
}
