//! The parameters in Noise payloads (`PROTO §4.4`).

mod writer;

pub use writer::ParamsWriter;

use super::{
    ConnectionId, Full, HandshakeKind, Malformed, Protocols, Reader, Suites, Versions, lists::is_protocol,
};

/// Parameter ids (`PROTO §4.4`).
pub mod id {
    /// Ends the list; every byte behind is zero.
    pub const END: u64 = 0;
    /// Versions, best first.
    pub const VERSIONS: u64 = 1;
    /// The version that the initiator tried first.
    pub const FIRST_VERSION: u64 = 2;
    /// Cipher suites, best first.
    pub const SUITES: u64 = 3;
    /// Application protocols, best first.
    pub const PROTOCOLS: u64 = 4;
    /// The initiator's connection id.
    pub const INITIATOR_ID: u64 = 5;
    /// The responder's connection id.
    pub const RESPONDER_ID: u64 = 6;
    /// The suite that the responder chose.
    pub const SUITE: u64 = 7;
    /// The protocol that the responder chose.
    pub const PROTOCOL: u64 = 8;
    /// The sender's `PeerId`.
    pub const PEER: u64 = 9;
    /// One value per endpoint.
    pub const INSTANCE: u64 = 10;
    /// Why the responder refuses.
    pub const REFUSAL: u64 = 11;
    /// Idle timeout in milliseconds.
    pub const IDLE_TIMEOUT: u64 = 16;
    /// The largest datagram that the sender receives.
    pub const MAX_DATAGRAM: u64 = 17;
    /// Credit of each new stream.
    pub const STREAM_CREDIT: u64 = 18;
    /// How many bidirectional streams the peer may open.
    pub const STREAMS_BI: u64 = 19;
    /// How many unidirectional streams the peer may open.
    pub const STREAMS_UNI: u64 = 20;
    /// The longest delay of an acknowledgement in milliseconds.
    pub const MAX_ACK_DELAY: u64 = 21;
    /// Application data waits for AUTHORIZED.
    pub const ASK: u64 = 22;
}

/// Most parameters with ids of 64 and above in one list, so that doubles are found at a bounded cost.
pub const MAX_HIGH_IDS: usize = 32;

const MIN_DATAGRAM: u64 = 1200;

const IN_ALL: u32 = bits(&[id::VERSIONS, id::FIRST_VERSION, id::SUITES, id::INITIATOR_ID]);
const IN_INIT: u32 = IN_ALL | bits(&[id::PROTOCOLS]);
const IN_REFUSAL: u32 = IN_ALL | bits(&[id::RESPONDER_ID, id::PEER, id::INSTANCE, id::REFUSAL]);
const TRANSPORT: u32 = bits(&[
    id::IDLE_TIMEOUT,
    id::MAX_DATAGRAM,
    id::STREAM_CREDIT,
    id::STREAMS_BI,
    id::STREAMS_UNI,
    id::MAX_ACK_DELAY,
]);
const IN_RESPONSE: u32 =
    IN_ALL | bits(&[id::RESPONDER_ID, id::SUITE, id::PROTOCOL, id::PEER, id::INSTANCE]) | TRANSPORT;
const IN_FINISH: u32 = IN_RESPONSE | bits(&[id::PROTOCOLS]);

/// The known parameters of a Noise payload. Lists are checked views of the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Params<'a> {
    /// Versions, best first.
    pub versions: Option<Versions<'a>>,
    /// The version that the initiator tried first.
    pub first_version: Option<u32>,
    /// Cipher suites, best first (`PROTO §3.7`).
    pub suites: Option<Suites<'a>>,
    /// Application protocols, best first.
    pub protocols: Option<Protocols<'a>>,
    /// The initiator's connection id.
    pub initiator_id: Option<ConnectionId>,
    /// The responder's connection id.
    pub responder_id: Option<ConnectionId>,
    /// The suite that the responder chose.
    pub suite: Option<u16>,
    /// The protocol that the responder chose, 1 to 32 bytes.
    pub protocol: Option<&'a [u8]>,
    /// The sender's `PeerId`; only its length was checked.
    pub peer: Option<&'a [u8; 32]>,
    /// One random value per endpoint.
    pub instance: Option<&'a [u8; 16]>,
    /// Why the responder refuses: 1 no version, 2 no suite, 3 no protocol (`PROTO §4.5`).
    pub refusal: Option<u32>,
    /// Idle timeout in milliseconds.
    pub idle_timeout: Option<u64>,
    /// The largest datagram that the sender receives, in bytes, at least 1,200.
    pub max_datagram: Option<u64>,
    /// Credit of each new stream, in bytes.
    pub stream_credit: Option<u64>,
    /// How many bidirectional streams the peer may open.
    pub streams_bi: Option<u64>,
    /// How many unidirectional streams the peer may open.
    pub streams_uni: Option<u64>,
    /// The longest delay of an acknowledgement, in milliseconds.
    pub max_ack_delay: Option<u64>,
    /// Whether application data waits for AUTHORIZED (`PROTO §6.7`).
    pub ask: bool,
}

impl<'a> Params<'a> {
    /// Checks a payload. The list ends at id 0 or with the payload; unknown ids are passed over.
    ///
    /// # Errors
    /// [`Malformed`] if an id appears twice, a value has a wrong length or is out of range, a byte
    /// behind id 0 is not zero, or more than [`MAX_HIGH_IDS`] ids are 64 or above (`PROTO §4.4`).
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut params = Self::default();
        let mut seen = Seen::default();
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let id = reader.varint()?;
            if id == id::END {
                let zero = reader.rest().iter().all(|byte| *byte == 0);
                return if zero { Ok(params) } else { Err(Malformed) };
            }
            let len = usize::try_from(reader.varint()?).map_err(|_| Malformed)?;
            let value = reader.take(len)?;
            seen.insert(id)?;
            params.set(id, value)?;
        }
        Ok(params)
    }

    /// Checks that exactly the parameters are there that the table of `PROTO §4.4` has for a message.
    ///
    /// A RESPONSE with a refusal has neither suite nor protocol and may lack the transport parameters.
    ///
    /// # Errors
    /// [`Malformed`] if one is missing or out of place, or the message has no payload.
    pub fn require(&self, message: HandshakeKind) -> Result<(), Malformed> {
        let (needed, optional) = match message {
            HandshakeKind::Init => (IN_INIT, 0),
            HandshakeKind::Response if self.refusal.is_some() => (IN_REFUSAL, TRANSPORT),
            HandshakeKind::Response => (IN_RESPONSE, bits(&[id::ASK])),
            HandshakeKind::Finish => (IN_FINISH, 0),
            HandshakeKind::Cookie | HandshakeKind::Versions => return Err(Malformed),
        };
        let present = self.present();
        if present & needed == needed && present & !(needed | optional) == 0 {
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    /// Writes every parameter that is there, by ascending id.
    ///
    /// # Errors
    /// [`Full`] if not all fit or a number has no encoding; those before it are written.
    pub fn emit(&self, w: &mut ParamsWriter<'_>) -> Result<(), Full> {
        fn some<T>(value: Option<T>, write: impl FnOnce(T) -> Result<(), Full>) -> Result<(), Full> {
            value.map_or(Ok(()), write)
        }
        some(self.versions, |list| w.versions(list.iter()))?;
        some(self.first_version, |version| w.u32(id::FIRST_VERSION, version))?;
        some(self.suites, |list| w.suites(list.iter()))?;
        some(self.protocols, |list| w.protocols(list.iter()))?;
        some(self.initiator_id, |cid| w.bytes(id::INITIATOR_ID, &cid.0))?;
        some(self.responder_id, |cid| w.bytes(id::RESPONDER_ID, &cid.0))?;
        some(self.suite, |suite| w.u16(id::SUITE, suite))?;
        some(self.protocol, |name| w.bytes(id::PROTOCOL, name))?;
        some(self.peer, |peer| w.bytes(id::PEER, peer))?;
        some(self.instance, |instance| w.bytes(id::INSTANCE, instance))?;
        some(self.refusal, |code| w.varint(id::REFUSAL, u64::from(code)))?;
        some(self.idle_timeout, |millis| w.varint(id::IDLE_TIMEOUT, millis))?;
        some(self.max_datagram, |bytes| w.varint(id::MAX_DATAGRAM, bytes))?;
        some(self.stream_credit, |bytes| w.varint(id::STREAM_CREDIT, bytes))?;
        some(self.streams_bi, |count| w.varint(id::STREAMS_BI, count))?;
        some(self.streams_uni, |count| w.varint(id::STREAMS_UNI, count))?;
        some(self.max_ack_delay, |millis| w.varint(id::MAX_ACK_DELAY, millis))?;
        if self.ask { w.bytes(id::ASK, &[]) } else { Ok(()) }
    }

    fn set(&mut self, id: u64, value: &'a [u8]) -> Result<(), Malformed> {
        match id {
            id::VERSIONS => self.versions = Some(Versions::parse(value)?),
            id::FIRST_VERSION => self.first_version = Some(u32::from_be_bytes(*exactly(value)?)),
            id::SUITES => self.suites = Some(Suites::parse(value)?),
            id::PROTOCOLS => self.protocols = Some(Protocols::parse(value)?),
            id::INITIATOR_ID => self.initiator_id = Some(ConnectionId(*exactly(value)?)),
            id::RESPONDER_ID => self.responder_id = Some(ConnectionId(*exactly(value)?)),
            id::SUITE => self.suite = Some(u16::from_be_bytes(*exactly(value)?)),
            id::PROTOCOL => {
                is_protocol(value)?;
                self.protocol = Some(value);
            }
            id::PEER => self.peer = Some(exactly(value)?),
            id::INSTANCE => self.instance = Some(exactly(value)?),
            id::REFUSAL => self.refusal = Some(u32::try_from(number(value)?).map_err(|_| Malformed)?),
            id::IDLE_TIMEOUT => self.idle_timeout = Some(number(value)?),
            id::MAX_DATAGRAM => match number(value)? {
                0..MIN_DATAGRAM => return Err(Malformed),
                bytes => self.max_datagram = Some(bytes),
            },
            id::STREAM_CREDIT => self.stream_credit = Some(number(value)?),
            id::STREAMS_BI => self.streams_bi = Some(number(value)?),
            id::STREAMS_UNI => self.streams_uni = Some(number(value)?),
            id::MAX_ACK_DELAY => self.max_ack_delay = Some(number(value)?),
            id::ASK => {
                let [] = exactly(value)?;
                self.ask = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// One bit per known id that is there.
    fn present(&self) -> u32 {
        [
            (id::VERSIONS, self.versions.is_some()),
            (id::FIRST_VERSION, self.first_version.is_some()),
            (id::SUITES, self.suites.is_some()),
            (id::PROTOCOLS, self.protocols.is_some()),
            (id::INITIATOR_ID, self.initiator_id.is_some()),
            (id::RESPONDER_ID, self.responder_id.is_some()),
            (id::SUITE, self.suite.is_some()),
            (id::PROTOCOL, self.protocol.is_some()),
            (id::PEER, self.peer.is_some()),
            (id::INSTANCE, self.instance.is_some()),
            (id::REFUSAL, self.refusal.is_some()),
            (id::IDLE_TIMEOUT, self.idle_timeout.is_some()),
            (id::MAX_DATAGRAM, self.max_datagram.is_some()),
            (id::STREAM_CREDIT, self.stream_credit.is_some()),
            (id::STREAMS_BI, self.streams_bi.is_some()),
            (id::STREAMS_UNI, self.streams_uni.is_some()),
            (id::MAX_ACK_DELAY, self.max_ack_delay.is_some()),
            (id::ASK, self.ask),
        ]
        .iter()
        .fold(0, |bits, (id, there)| bits | u32::from(*there) << id)
    }
}

/// Which ids a list had so far.
#[derive(Default)]
struct Seen {
    low: u64,
    high: [u64; MAX_HIGH_IDS],
    high_len: usize,
}

impl Seen {
    fn insert(&mut self, id: u64) -> Result<(), Malformed> {
        if id < 64 {
            let bit = 1 << id;
            let double = self.low & bit != 0;
            self.low |= bit;
            return if double { Err(Malformed) } else { Ok(()) };
        }
        if self.high[..self.high_len].contains(&id) {
            return Err(Malformed);
        }
        *self.high.get_mut(self.high_len).ok_or(Malformed)? = id;
        self.high_len += 1;
        Ok(())
    }
}

/// A varint that is the whole value.
fn number(value: &[u8]) -> Result<u64, Malformed> {
    let mut reader = Reader::new(value);
    let number = reader.varint()?;
    if reader.is_empty() { Ok(number) } else { Err(Malformed) }
}

/// A value of a fixed length.
fn exactly<const N: usize>(value: &[u8]) -> Result<&[u8; N], Malformed> {
    value.try_into().map_err(|_| Malformed)
}

const fn bits(ids: &[u64]) -> u32 {
    let mut bits = 0;
    let mut rest = ids;
    while let [id, more @ ..] = rest {
        bits |= 1 << *id;
        rest = more;
    }
    bits
}

#[cfg(test)]
mod tests;
