//! What an end says of itself in the Noise payloads (`PROTO §4.4`).

use wraith_proto::wire::{ConnectionId, HandshakeKind, Reader, VERSION, parameter_id as id, varint};

use super::identity::Identity;
use super::protect::XCHACHA20_POLY1305;
use super::{Refused, x25519_form};

/// A list of parameters in their order. Any can be left out, altered or added twice.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parameters(Vec<(u64, Vec<u8>)>);

impl Parameters {
    /// Reads a Noise payload.
    ///
    /// # Errors
    /// [`Refused`] with the rule that it breaks.
    pub fn parse(payload: &[u8]) -> Result<Self, Refused> {
        let mut parameters = Self::default();
        let mut reader = Reader::new(payload);
        let cut = |_| Refused("§4.4: a parameter that is cut off or has a varint that is too long");
        while !reader.is_empty() {
            let id = reader.varint().map_err(cut)?;
            if id == id::END {
                let zero = reader.rest().iter().all(|byte| *byte == 0);
                return if zero { Ok(parameters) } else { Err(Refused("§4.4: a byte behind id 0")) };
            }
            let len = reader.varint().map_err(cut)?;
            let value = reader.take(usize::try_from(len).unwrap_or(usize::MAX)).map_err(cut)?;
            if parameters.get(id).is_some() {
                return Err(Refused("§4.4: an id that appears twice"));
            }
            if !has_form(id, value) {
                return Err(Refused("§4.4: a value of wrong length"));
            }
            parameters.add(id, value);
        }
        let high = parameters.0.iter().filter(|(id, _)| *id >= 64).count();
        if high > 32 { Err(Refused("§4.4: more than 32 ids of 64 and above")) } else { Ok(parameters) }
    }

    /// Puts a parameter at the end, even if there is one of this id.
    pub fn add(&mut self, id: u64, value: impl Into<Vec<u8>>) {
        self.0.push((id, value.into()));
    }

    /// Gives a parameter another value, or adds it.
    pub fn set(&mut self, id: u64, value: impl Into<Vec<u8>>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == id) {
            Some((_, old)) => *old = value,
            None => self.0.push((id, value)),
        }
    }

    /// Gives a parameter that is a varint another value, or adds it.
    ///
    /// # Panics
    /// If the value is 2^62 or more.
    pub fn set_number(&mut self, id: u64, value: u64) {
        self.set(id, number(value));
    }

    /// Takes a parameter out.
    pub fn remove(&mut self, id: u64) {
        self.0.retain(|(known, _)| *known != id);
    }

    /// The value of a parameter.
    pub fn get(&self, id: u64) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| *known == id).map(|(_, value)| &value[..])
    }

    /// The parameters in their order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.0.iter().map(|(id, value)| (*id, &value[..]))
    }

    /// The payload, with zeros up to `len` bytes.
    ///
    /// # Panics
    /// If an id is 2^62 or more.
    pub fn to_bytes(&self, len: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for (id, value) in &self.0 {
            out.extend(number(*id));
            out.extend(number(value.len() as u64));
            out.extend(value);
        }
        out.resize(out.len().max(len), 0);
        out
    }

    /// Checks that the parameters of a message's column are there and no others that are known.
    ///
    /// # Errors
    /// [`Refused`] if one is missing or out of place.
    pub fn check(&self, message: HandshakeKind) -> Result<(), Refused> {
        let refusal = message == HandshakeKind::Response && self.get(id::REFUSAL).is_some();
        let (needed, optional): (&[u64], &[u64]) = match message {
            HandshakeKind::Init => (&[1, 2, 3, 4, 5], &[]),
            HandshakeKind::Response if refusal => (&[1, 2, 3, 5, 6, 9, 10, 11], &[16, 17, 18, 19, 20, 21]),
            HandshakeKind::Response => (&[1, 2, 3, 5, 6, 7, 8, 9, 10, 16, 17, 18, 19, 20, 21], &[22]),
            _ => (&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 17, 18, 19, 20, 21], &[]),
        };
        let is_known = |id: u64| (1..=11).contains(&id) || (16..=22).contains(&id);
        if !needed.iter().all(|id| self.get(*id).is_some()) {
            return Err(Refused("§4.4: a parameter is missing"));
        }
        let fits = |id: u64| needed.contains(&id) || optional.contains(&id) || !is_known(id);
        if self.iter().all(|(id, _)| fits(id)) {
            Ok(())
        } else {
            Err(Refused("§4.4: a parameter outside its column"))
        }
    }

    /// The value of a parameter of fixed length that was parsed.
    pub(super) fn array<const N: usize>(&self, id: u64) -> Option<[u8; N]> {
        self.get(id)?.try_into().ok()
    }

    fn varint(&self, id: u64) -> Option<u64> {
        Reader::new(self.get(id)?).varint().ok()
    }
}

/// Whether a value has the form of its id; unknown ids may have any.
fn has_form(id: u64, value: &[u8]) -> bool {
    let is_number = || varint::read(value).is_ok_and(|(_, rest)| rest.is_empty());
    match id {
        id::VERSIONS => !value.is_empty() && value.len().is_multiple_of(4),
        id::SUITES => !value.is_empty() && value.len().is_multiple_of(2),
        id::PROTOCOLS => names(value).is_some_and(|names| (1..=8).contains(&names.len())),
        id::FIRST_VERSION => value.len() == 4,
        id::INITIATOR_ID | id::RESPONDER_ID => value.len() == 8,
        id::SUITE => value.len() == 2,
        id::PROTOCOL => (1..=32).contains(&value.len()),
        id::PEER => value.len() == 32,
        id::INSTANCE => value.len() == 16,
        id::MAX_DATAGRAM => varint::read(value).is_ok_and(|(size, rest)| size >= 1200 && rest.is_empty()),
        id::REFUSAL
        | id::IDLE_TIMEOUT
        | id::STREAM_CREDIT
        | id::STREAMS_BI
        | id::STREAMS_UNI
        | id::MAX_ACK_DELAY => is_number(),
        id::ASK => value.is_empty(),
        _ => true,
    }
}

/// The names in a list of application protocols.
fn names(mut value: &[u8]) -> Option<Vec<&[u8]>> {
    let mut names = Vec::new();
    while let Some((&len, rest)) = value.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(len)).filter(|_| (1..=32).contains(&len))?;
        names.push(name);
        value = rest;
    }
    Some(names)
}

fn number(value: u64) -> Vec<u8> {
    let mut out = vec![0; varint::size(value)];
    varint::write(value, &mut out).expect("the number is below 2^62 and the room is its size");
    out
}

/// What this end says of itself and offers.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Who it is.
    pub identity: Identity,
    /// One value per endpoint.
    pub instance: [u8; 16],
    /// Versions, best first.
    pub versions: Vec<u32>,
    /// Suites, best first.
    pub suites: Vec<u16>,
    /// Application protocols, best first.
    pub protocols: Vec<Vec<u8>>,
    /// Milliseconds without anything authentic after which a session ends; 0 for never.
    pub idle_timeout: u64,
    /// The largest datagram that it takes.
    pub max_datagram: u64,
    /// Credit of each new stream.
    pub stream_credit: u64,
    /// How many streams of each direction the other end may open.
    pub streams: u64,
    /// The longest delay of its acknowledgements in milliseconds.
    pub max_ack_delay: u64,
    /// As responder: application data waits for AUTHORIZED.
    pub ask: bool,
}

impl Profile {
    /// Speaks version 1 and XChaCha20-Poly1305, and grants what is usual.
    pub fn new(identity: Identity, protocol: &[u8]) -> Self {
        Self {
            identity,
            instance: *identity.id.first_chunk().unwrap_or(&[0; 16]),
            versions: vec![VERSION],
            suites: vec![XCHACHA20_POLY1305],
            protocols: vec![protocol.to_vec()],
            idle_timeout: 30_000,
            max_datagram: 1_472,
            stream_credit: 1 << 20,
            streams: 16,
            max_ack_delay: 25,
            ask: false,
        }
    }

    /// Parameters of INIT.
    pub fn init(&self, initiator: ConnectionId) -> Parameters {
        let mut parameters = self.lists(true);
        parameters.add(id::INITIATOR_ID, initiator.0);
        parameters
    }

    /// Parameters of RESPONSE with a choice.
    pub fn response(
        &self,
        initiator: ConnectionId,
        responder: ConnectionId,
        suite: u16,
        protocol: &[u8],
    ) -> Parameters {
        let mut parameters = self.lists(false);
        self.add_self(&mut parameters, initiator, responder, suite, protocol);
        if self.ask {
            parameters.add(id::ASK, []);
        }
        parameters
    }

    /// Parameters of RESPONSE that refuses.
    pub fn refusal(&self, initiator: ConnectionId, responder: ConnectionId, code: u64) -> Parameters {
        let mut parameters = self.lists(false);
        parameters.add(id::INITIATOR_ID, initiator.0);
        parameters.add(id::RESPONDER_ID, responder.0);
        parameters.add(id::PEER, self.identity.id);
        parameters.add(id::INSTANCE, self.instance);
        parameters.set_number(id::REFUSAL, code);
        parameters
    }

    /// Parameters of FINISH.
    pub fn finish(
        &self,
        initiator: ConnectionId,
        responder: ConnectionId,
        suite: u16,
        protocol: &[u8],
    ) -> Parameters {
        let mut parameters = self.lists(true);
        self.add_self(&mut parameters, initiator, responder, suite, protocol);
        parameters
    }

    fn lists(&self, protocols: bool) -> Parameters {
        let mut parameters = Parameters::default();
        let versions: Vec<u8> = self.versions.iter().flat_map(|version| version.to_be_bytes()).collect();
        let suites: Vec<u8> = self.suites.iter().flat_map(|suite| suite.to_be_bytes()).collect();
        parameters.add(id::VERSIONS, versions);
        parameters.add(id::FIRST_VERSION, VERSION.to_be_bytes());
        parameters.add(id::SUITES, suites);
        if protocols {
            let name = |name: &Vec<u8>| [&[name.len() as u8][..], name].concat();
            parameters.add(id::PROTOCOLS, self.protocols.iter().flat_map(name).collect::<Vec<u8>>());
        }
        parameters
    }

    fn add_self(
        &self,
        parameters: &mut Parameters,
        initiator: ConnectionId,
        responder: ConnectionId,
        suite: u16,
        protocol: &[u8],
    ) {
        parameters.add(id::INITIATOR_ID, initiator.0);
        parameters.add(id::RESPONDER_ID, responder.0);
        parameters.add(id::SUITE, suite.to_be_bytes());
        parameters.add(id::PROTOCOL, protocol);
        parameters.add(id::PEER, self.identity.id);
        parameters.add(id::INSTANCE, self.instance);
        parameters.set_number(id::IDLE_TIMEOUT, self.idle_timeout);
        parameters.set_number(id::MAX_DATAGRAM, self.max_datagram);
        parameters.set_number(id::STREAM_CREDIT, self.stream_credit);
        parameters.set_number(id::STREAMS_BI, self.streams);
        parameters.set_number(id::STREAMS_UNI, self.streams);
        parameters.set_number(id::MAX_ACK_DELAY, self.max_ack_delay);
    }
}

/// What the other end said of itself in RESPONSE or FINISH, checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Introduction {
    /// Who it is.
    pub peer: [u8; 32],
    /// One value per endpoint.
    pub instance: [u8; 16],
    /// The suite that the responder chose.
    pub suite: u16,
    /// The protocol that the responder chose.
    pub protocol: Vec<u8>,
    /// Milliseconds; 0 for never.
    pub idle_timeout: u64,
    /// The largest datagram that it takes.
    pub max_datagram: u64,
    /// Credit of each new stream.
    pub stream_credit: u64,
    /// How many bidirectional streams it lets this end open.
    pub streams_bi: u64,
    /// How many unidirectional streams it lets this end open.
    pub streams_uni: u64,
    /// Milliseconds.
    pub max_ack_delay: u64,
    /// Application data waits for AUTHORIZED.
    pub ask: bool,
}

impl Introduction {
    /// Reads the introduction out of the parameters of RESPONSE or FINISH.
    ///
    /// # Errors
    /// [`Refused`] if a parameter is missing or out of place, an id is not that of the outer headers (`PROTO §4.6`), or
    /// the static key is not that of the `PeerId` (`PROTO §4.7`).
    pub(super) fn read(
        parameters: &Parameters,
        message: HandshakeKind,
        initiator: ConnectionId,
        responder: ConnectionId,
        static_key: Option<[u8; 32]>,
    ) -> Result<Self, Refused> {
        const MISSING: Refused = Refused("§4.4: a parameter is missing");
        parameters.check(message)?;
        check_ids(parameters, initiator, responder)?;
        let number = |id| parameters.varint(id).ok_or(MISSING);
        let peer = proven_peer(parameters, static_key)?;
        Ok(Self {
            peer,
            instance: parameters.array(id::INSTANCE).ok_or(MISSING)?,
            suite: u16::from_be_bytes(parameters.array(id::SUITE).ok_or(MISSING)?),
            protocol: parameters.get(id::PROTOCOL).ok_or(MISSING)?.to_vec(),
            idle_timeout: number(id::IDLE_TIMEOUT)?,
            max_datagram: number(id::MAX_DATAGRAM)?,
            stream_credit: number(id::STREAM_CREDIT)?,
            streams_bi: number(id::STREAMS_BI)?,
            streams_uni: number(id::STREAMS_UNI)?,
            max_ack_delay: number(id::MAX_ACK_DELAY)?,
            ask: parameters.get(id::ASK).is_some(),
        })
    }
}

/// The code of a RESPONSE that refuses, from the right peer (`PROTO §4.5`).
pub(super) fn refusal(
    parameters: &Parameters,
    initiator: ConnectionId,
    responder: ConnectionId,
    static_key: Option<[u8; 32]>,
) -> Result<Option<u64>, Refused> {
    let Some(code) = parameters.varint(id::REFUSAL) else { return Ok(None) };
    parameters.check(HandshakeKind::Response)?;
    check_ids(parameters, initiator, responder)?;
    proven_peer(parameters, static_key)?;
    Ok(Some(code))
}

/// The inner ids have to be those of the outer headers (`PROTO §4.6`).
fn check_ids(
    parameters: &Parameters,
    initiator: ConnectionId,
    responder: ConnectionId,
) -> Result<(), Refused> {
    let is = |id, expected: ConnectionId| parameters.get(id) == Some(&expected.0[..]);
    if is(id::INITIATOR_ID, initiator) && is(id::RESPONDER_ID, responder) {
        Ok(())
    } else {
        Err(Refused("§4.6: a connection id differs from that of the outer header"))
    }
}

fn proven_peer(parameters: &Parameters, static_key: Option<[u8; 32]>) -> Result<[u8; 32], Refused> {
    let peer = parameters.array(id::PEER).ok_or(Refused("§4.4: a parameter is missing"))?;
    if Some(x25519_form(&peer)?) == static_key {
        Ok(peer)
    } else {
        Err(Refused("§4.7: the static key is not that of the PeerId"))
    }
}

/// The suite in both lists whose worse position among the common ones is best; of equal ones the lowest number
/// (`PROTO §4.5`).
pub(super) fn common_suite(one: &[u16], other: &[u16]) -> Option<u16> {
    let common = |list: &[u16], with: &[u16]| -> Vec<u16> {
        list.iter().copied().filter(|suite| with.contains(suite)).collect()
    };
    let (one, other) = (common(one, other), common(other, one));
    let place = |list: &[u16], suite: u16| list.iter().position(|listed| *listed == suite);
    one.iter().copied().min_by_key(|&suite| (place(&one, suite).max(place(&other, suite)), suite))
}

/// The first of `offers` that is among `own`, if there is one (`PROTO §4.5`).
pub(super) fn first_common<T: PartialEq + Clone>(offers: &[T], own: &[T]) -> Option<T> {
    offers.iter().find(|offer| own.contains(offer)).cloned()
}

/// The lists of INIT, which FINISH repeats.
pub(super) struct Lists {
    pub(super) versions: Vec<u32>,
    pub(super) suites: Vec<u16>,
    pub(super) protocols: Vec<Vec<u8>>,
}

impl Lists {
    pub(super) fn of(parameters: &Parameters) -> Self {
        let bytes = |id| parameters.get(id).unwrap_or_default();
        let version = |four: &[u8; 4]| u32::from_be_bytes(*four);
        let suite = |two: &[u8; 2]| u16::from_be_bytes(*two);
        let protocols = names(bytes(id::PROTOCOLS)).unwrap_or_default();
        Self {
            versions: bytes(id::VERSIONS).as_chunks().0.iter().map(version).collect(),
            suites: bytes(id::SUITES).as_chunks().0.iter().map(suite).collect(),
            protocols: protocols.into_iter().map(<[u8]>::to_vec).collect(),
        }
    }
}
