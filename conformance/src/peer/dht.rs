//! Datagrams of the DHT (`PROTO §14`), whole in memory. What is written may break every limit; what is read may not.

use std::net::{IpAddr, SocketAddr};

use super::sealed::{Note, open_note, seal_note, sign, verifies};
use super::{Identity, Refused};

/// Bytes of a datagram at most, and of a request without an address token (`PROTO §14.2`, `§14.5`).
pub const LONGEST: usize = 1_200;

/// Bytes of a note that are not its body (`PROTO §12.14`).
pub const NOTE: usize = 128;

/// What begins a datagram, in the clear (`PROTO §14.3`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// A request follows.
    Request {
        /// What its answer repeats.
        transaction: [u8; 8],
        /// The address token, or zeros.
        token: [u8; 16],
    },
    /// An answer follows.
    Answer {
        /// Of the request.
        transaction: [u8; 8],
    },
    /// Nothing follows.
    Token {
        /// Of the request.
        transaction: [u8; 8],
        /// To ask again with.
        token: [u8; 16],
    },
}

/// Kinds of records, as find-value asks for them (`PROTO §14.4`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Under its hash.
    Value = 1,
    /// Under its owner and salt.
    Signed = 2,
    /// Nodes that provide what the key names.
    Providers = 3,
}

/// A node as messages name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// Where it is.
    pub address: SocketAddr,
    /// Who it is.
    pub peer: [u8; 32],
}

/// A record that its owner signed (`PROTO §14.13`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// Who signed.
    pub peer: [u8; 32],
    /// Which of the owner's records.
    pub salt: u64,
    /// Sequence number.
    pub seq: u64,
    /// The signature.
    pub signature: [u8; 64],
    /// The bytes.
    pub value: Vec<u8>,
}

/// What a request asks (`PROTO §14.4`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Nothing.
    Ping,
    /// For nodes near a target.
    FindNode([u8; 32]),
    /// For a record, and nodes near its key.
    FindValue([u8; 32], Kind),
    /// To keep something.
    Store {
        /// Of an answer for its key.
        write_token: [u8; 8],
        /// The sequence number that the record there must have.
        condition: Option<u64>,
        /// What.
        offer: Offer,
    },
}

/// What is to be kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Offer {
    /// A value.
    Value(Vec<u8>),
    /// A signed record.
    Signed(Signed),
    /// That the sender provides what this key names.
    Provider([u8; 32]),
}

/// What an answer says (`PROTO §14.4`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// To ping.
    Pong,
    /// To find-node and find-value.
    Found {
        /// To store under the target.
        write_token: [u8; 8],
        /// What was asked for.
        held: Held,
        /// Near the target.
        nodes: Vec<Node>,
    },
    /// To store.
    Stored {
        /// 0 to 5.
        result: u8,
        /// Of the record that is there now.
        seq: u64,
    },
}

/// The record in an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Held {
    /// None.
    Nothing,
    /// A value.
    Value(Vec<u8>),
    /// A signed record.
    Signed(Signed),
    /// Nodes.
    Providers(Vec<Node>),
}

/// The id of a node (`PROTO §14.1`).
pub fn node_id(peer: &[u8; 32]) -> [u8; 32] {
    *blake3::hash(peer).as_bytes()
}

/// The key of a value (`PROTO §14.13`).
pub fn value_key(value: &[u8]) -> [u8; 32] {
    blake3::derive_key("WRAITH v1 dht value", value)
}

/// The key of a signed record (`PROTO §14.13`).
pub fn signed_key(peer: &[u8; 32], salt: u64) -> [u8; 32] {
    blake3::derive_key("WRAITH v1 dht signed record", &[&peer[..], &salt.to_be_bytes()].concat())
}

/// What a signature of a record is of (`PROTO §14.13`).
pub fn signed_text(salt: u64, seq: u64, value: &[u8]) -> Vec<u8> {
    [b"WRAITH v1 dht record\0", &salt.to_be_bytes()[..], &seq.to_be_bytes(), value].concat()
}

/// A datagram with a message behind its header, and the ephemeral secret of its note (`PROTO §14.2`).
///
/// # Errors
/// [`Refused`] if the recipient's `PeerId` is not acceptable.
pub fn seal(note: &Note, header: &Header, message: &[u8]) -> Result<(Vec<u8>, [u8; 32]), Refused> {
    let header = header.to_bytes();
    let (sealed, ephemeral) = seal_note(note, &header, message)?;
    Ok(([header, sealed].concat(), ephemeral))
}

/// Opens a datagram: its header, the sender's `PeerId` and the message.
///
/// # Errors
/// [`Refused`], with the rule that is broken.
pub fn open(seed: &[u8; 32], datagram: &[u8]) -> Result<(Header, [u8; 32], Vec<u8>), Refused> {
    let (header, note) = Header::read(datagram)?;
    let prefix = &datagram[..datagram.len() - note.len()];
    let (from, message) = open_note(seed, prefix, note)?;
    Ok((header, from, message))
}

impl Header {
    /// As it travels.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Request { transaction, token } => [&[0x62], &transaction[..], token].concat(),
            Self::Answer { transaction } => [&[0x63], &transaction[..]].concat(),
            Self::Token { transaction, token } => [&[0x64], &transaction[..], token].concat(),
        }
    }

    /// Reads the header of a datagram, and gives what is behind it.
    ///
    /// # Errors
    /// [`Refused`], with the rule that is broken.
    pub fn read(datagram: &[u8]) -> Result<(Self, &[u8]), Refused> {
        if datagram.len() > LONGEST {
            return Err(Refused("§14.2: longer than 1,200 bytes"));
        }
        let mut rest = Rest(datagram);
        let (first, transaction) = (rest.u8()?, rest.array()?);
        let header = match first {
            0x62 => Self::Request { transaction, token: rest.array()? },
            0x63 => Self::Answer { transaction },
            0x64 => Self::Token { transaction, token: rest.array()? },
            _ => return Err(Refused("§14.3: another first byte")),
        };
        match header {
            Self::Token { token, .. } if token == [0; 16] || !rest.0.is_empty() => {
                Err(Refused("§14.3: a token of zeros, or bytes behind one"))
            }
            _ => Ok((header, rest.0)),
        }
    }
}

impl Signed {
    /// Signs for the holder of a seed.
    pub fn new(seed: &[u8; 32], salt: u64, seq: u64, value: &[u8]) -> Self {
        let signature = sign(seed, &signed_text(salt, seq, value));
        Self { peer: Identity::from_seed(seed).id, salt, seq, signature, value: value.to_vec() }
    }

    /// Whether the owner made it.
    pub fn is_genuine(&self) -> bool {
        verifies(&self.peer, &signed_text(self.salt, self.seq, &self.value), &self.signature)
    }

    /// Its key.
    pub fn key(&self) -> [u8; 32] {
        signed_key(&self.peer, self.salt)
    }
}

impl Offer {
    /// The key under which it is to be kept.
    pub fn key(&self) -> [u8; 32] {
        match self {
            Self::Value(value) => value_key(value),
            Self::Signed(signed) => signed.key(),
            Self::Provider(key) => *key,
        }
    }
}

impl Ask {
    /// As it stands in a note.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Ping => vec![1],
            Self::FindNode(target) => [&[2], &target[..]].concat(),
            Self::FindValue(target, kind) => [&[3], &target[..], &[*kind as u8]].concat(),
            Self::Store { write_token, condition, offer } => {
                let condition = condition.map_or(vec![0], |seq| [&[1], &seq.to_be_bytes()[..]].concat());
                let offer = match offer {
                    Offer::Value(value) => [&[1], &value_bytes(value)[..]].concat(),
                    Offer::Signed(signed) => signed_bytes(signed),
                    Offer::Provider(key) => [&[3], &key[..]].concat(),
                };
                [&[4], &write_token[..], &condition, &offer].concat()
            }
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`Refused`], with the rule that is broken.
    pub fn read(message: &[u8]) -> Result<Self, Refused> {
        let mut rest = Rest(message);
        let ask = match rest.u8()? {
            1 => Self::Ping,
            2 => Self::FindNode(rest.array()?),
            3 => Self::FindValue(rest.array()?, rest.kind()?),
            4 => Self::Store {
                write_token: rest.array()?,
                condition: match rest.u8()? {
                    0 => None,
                    1 => Some(rest.u64()?),
                    _ => return Err(Refused("§14.4: an unknown condition")),
                },
                offer: match rest.kind()? {
                    Kind::Value => Offer::Value(rest.value(1_000)?),
                    Kind::Signed => Offer::Signed(rest.signed()?),
                    Kind::Providers => Offer::Provider(rest.array()?),
                },
            },
            _ => return Err(Refused("§14.4: an unknown request")),
        };
        rest.zeros().map(|()| ask)
    }
}

impl Reply {
    /// As it stands in a note, with the address token for the next request.
    pub fn to_bytes(&self, token: &[u8; 16]) -> Vec<u8> {
        let reply = match self {
            Self::Pong => vec![1],
            Self::Found { write_token, held, nodes } => {
                let held = match held {
                    Held::Nothing => vec![0],
                    Held::Value(value) => [&[1], &value_bytes(value)[..]].concat(),
                    Held::Signed(signed) => signed_bytes(signed),
                    Held::Providers(nodes) => [&[3], &nodes_bytes(nodes)[..]].concat(),
                };
                [&[2], &write_token[..], &held, &nodes_bytes(nodes)].concat()
            }
            Self::Stored { result, seq } => [&[4, *result], &seq.to_be_bytes()[..]].concat(),
        };
        [&token[..], &reply].concat()
    }

    /// Reads it, and the address token before it.
    ///
    /// # Errors
    /// [`Refused`], with the rule that is broken.
    pub fn read(message: &[u8]) -> Result<([u8; 16], Self), Refused> {
        let mut rest = Rest(message);
        let token = rest.array()?;
        let reply = match rest.u8()? {
            1 => Self::Pong,
            2 => Self::Found {
                write_token: rest.array()?,
                held: match rest.0.first() {
                    Some(0) => rest.u8().map(|_| Held::Nothing)?,
                    _ => match rest.kind()? {
                        Kind::Value => Held::Value(rest.value(1_000)?),
                        Kind::Signed => Held::Signed(rest.signed()?),
                        Kind::Providers => Held::Providers(rest.nodes()?),
                    },
                },
                nodes: rest.nodes()?,
            },
            4 => match rest.u8()? {
                result @ 0..=5 => Self::Stored { result, seq: rest.u64()? },
                _ => return Err(Refused("§14.4: an unknown result")),
            },
            _ => return Err(Refused("§14.4: an unknown answer")),
        };
        rest.zeros().map(|()| (token, reply))
    }
}

fn value_bytes(value: &[u8]) -> Vec<u8> {
    [&(value.len() as u16).to_be_bytes(), value].concat()
}

fn signed_bytes(signed: &Signed) -> Vec<u8> {
    let Signed { peer, salt, seq, signature, value } = signed;
    let value = value_bytes(value);
    [&[2], &peer[..], &salt.to_be_bytes(), &seq.to_be_bytes(), signature, &value].concat()
}

/// A list of nodes behind their number.
pub fn nodes_bytes(nodes: &[Node]) -> Vec<u8> {
    let mut out = vec![nodes.len() as u8];
    for Node { address, peer } in nodes {
        match address.ip() {
            IpAddr::V4(ip) => out.extend([&[4], &ip.octets()[..]].concat()),
            IpAddr::V6(ip) => out.extend([&[6], &ip.octets()[..]].concat()),
        }
        out.extend(address.port().to_be_bytes());
        out.extend(peer);
    }
    out
}

/// What has not been read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take(&mut self, len: usize) -> Result<&[u8], Refused> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Refused("§14.4: cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Refused> {
        self.take(N).map(|bytes| bytes.try_into().expect("so many were taken"))
    }

    fn u8(&mut self) -> Result<u8, Refused> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, Refused> {
        self.array().map(u16::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Refused> {
        self.array().map(u64::from_be_bytes)
    }

    fn kind(&mut self) -> Result<Kind, Refused> {
        match self.u8()? {
            1 => Ok(Kind::Value),
            2 => Ok(Kind::Signed),
            3 => Ok(Kind::Providers),
            _ => Err(Refused("§14.4: an unknown record")),
        }
    }

    fn value(&mut self, longest: usize) -> Result<Vec<u8>, Refused> {
        let len = usize::from(self.u16()?);
        if len > longest {
            return Err(Refused("§14.4: a value that is too long"));
        }
        self.take(len).map(<[u8]>::to_vec)
    }

    fn signed(&mut self) -> Result<Signed, Refused> {
        Ok(Signed {
            peer: self.array()?,
            salt: self.u64()?,
            seq: self.u64()?,
            signature: self.array()?,
            value: self.value(900)?,
        })
    }

    fn nodes(&mut self) -> Result<Vec<Node>, Refused> {
        let count = self.u8()?;
        if count > 20 {
            return Err(Refused("§14.4: more than 20 nodes"));
        }
        (0..count).map(|_| self.node()).collect()
    }

    fn node(&mut self) -> Result<Node, Refused> {
        let ip = match self.u8()? {
            4 => IpAddr::from(self.array::<4>()?),
            6 => IpAddr::from(self.array::<16>()?),
            _ => return Err(Refused("§14.4: an unknown IP version")),
        };
        Ok(Node { address: SocketAddr::new(ip, self.u16()?), peer: self.array()? })
    }

    fn zeros(&self) -> Result<(), Refused> {
        if self.0.iter().all(|&byte| byte == 0) { Ok(()) } else { Err(Refused("§14.4: bytes behind it")) }
    }
}
