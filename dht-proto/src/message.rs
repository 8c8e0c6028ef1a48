//! Messages: requests and answers, each in one datagram.
//!
//! ```text
//! message   kind u8 | transaction 8 | address token 16 | body | zeros
//!
//! request   0x01 ping        body: nothing
//!           0x02 find-node   body: target 32
//!           0x03 find-value  body: target 32 | record kind u8
//!           0x04 store       body: key 32 | write token 16 | condition | record
//! answer    0x81 pong        body: nothing
//!           0x82 found       body: write token 16 | record | nodes
//!           0x84 stored      body: result u8 | sequence number u64
//!
//! condition 0 | 1, sequence number u64
//! record    0 (none) | 1, value | 2, peer 32, salt u64, sequence number u64, signature 64, value | 3 (request: the
//!           sender; answer: nodes)
//! value     length u16, bytes
//! nodes     count u8, each: 4 | 6, address 4 | 16, port u16, key 32
//! ```
//!
//! Numbers have their most significant byte first. A token of zeros is none. Behind the body are zeros only: a request
//! without an address token is as long as the longest answer, so that a forged sender gains nothing.

use wraith_proto::wire::{Full, Malformed, Reader, Writer};

use crate::id::Id;
use crate::node::{Address, Node, NodeRef};
use crate::record::{Kind, MAX_VALUE, Record, Signed};
use crate::token::Token;

/// Bytes of a message at most, and of a request without an address token.
pub const MAX_MESSAGE: usize = 1_200;

/// Nodes that an answer lists at most.
pub const MAX_NODES: usize = 20;

/// Bytes of a record as messages and stores hold it at most.
pub(crate) const MAX_RECORD: usize = 1 + 32 + 8 + 8 + 64 + 2 + MAX_VALUE;

/// Bytes before the body.
const HEADER: usize = 1 + 8 + 16;

/// Bytes of an answer that does not depend on anything.
pub(crate) const SHORTEST_ANSWER: usize = HEADER;

/// What an answer repeats of its request, so that who has not seen that cannot answer.
pub type Transaction = [u8; 8];

/// A message as it was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// It wants an answer.
    Request {
        /// To be repeated in the answer.
        transaction: Transaction,
        /// The address token, or zeros.
        token: Token,
        /// What is asked.
        ask: Ask<'a>,
    },
    /// It answers a request.
    Answer {
        /// Of the request.
        transaction: Transaction,
        /// The address token for the next request.
        token: Token,
        /// The answer.
        reply: Reply<'a>,
    },
}

/// What a request asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask<'a> {
    /// For an answer.
    Ping,
    /// For the nodes near an id.
    FindNode(Id),
    /// For a record, and the nodes near its key.
    FindValue(Id, Kind),
    /// That a record is kept.
    Store {
        /// Its key.
        key: Id,
        /// From an answer to [`Ask::FindNode`] or [`Ask::FindValue`] for this key.
        write_token: Token,
        /// Only if this is the sequence number of the record that is there.
        expected: Option<u64>,
        /// The record; `None` announces the sender as a provider.
        record: Option<Record<'a>>,
    },
}

/// What an answer says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply<'a> {
    /// I am here.
    Pong,
    /// These nodes are nearer, and that is the record.
    Found {
        /// Lets the asking node store under the key that it asked for.
        write_token: Token,
        /// The record, if it was asked for and is there.
        record: Held<'a>,
        /// Nodes near the target.
        nodes: Nodes<'a>,
    },
    /// What became of a record.
    Stored {
        /// Whether it is kept.
        result: StoreResult,
        /// The sequence number of the record that is there now; 0 without one.
        seq: u64,
    },
}

/// The record in an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held<'a> {
    /// None.
    Nothing,
    /// One value, not yet checked.
    Record(Record<'a>),
    /// Nodes that provide the content.
    Providers(Nodes<'a>),
}

/// What became of a record that was to be stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StoreResult {
    /// It is kept.
    Stored = 0,
    /// The write token is not of this node, address and key, or too old.
    BadToken = 1,
    /// Signature or key are wrong.
    NotGenuine = 2,
    /// There is a record with a higher sequence number, or another one with the same.
    Outdated = 3,
    /// The record that is there does not have the expected sequence number.
    Conflict = 4,
    /// There is no room, for anybody or for this sender.
    Full = 5,
}

impl StoreResult {
    const ALL: [Self; 6] =
        [Self::Stored, Self::BadToken, Self::NotGenuine, Self::Outdated, Self::Conflict, Self::Full];
}

/// A list of nodes whose form was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nodes<'a> {
    bytes: &'a [u8],
    count: u8,
}

impl<'a> Nodes<'a> {
    /// How many.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The nodes, with keys and addresses as they stand there.
    pub fn iter(&self) -> impl Iterator<Item = NodeRef> + use<'a> {
        self.compact().map(NodeRef::from)
    }

    pub(crate) fn compact(&self) -> impl Iterator<Item = Node> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        // The form was checked.
        (0..self.count).map_while(move |_| read_node(&mut reader).ok())
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let count = reader.u8()?;
        if usize::from(count) > MAX_NODES {
            return Err(Malformed);
        }
        let start = *reader;
        for _ in 0..count {
            read_node(reader)?;
        }
        let len = reader.position() - start.position();
        Ok(Self { bytes: &start.rest()[..len], count })
    }
}

impl<'a> Message<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// [`Malformed`] if it is longer than [`MAX_MESSAGE`], is cut off, or has a byte without meaning.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() > MAX_MESSAGE {
            return Err(Malformed);
        }
        let mut reader = Reader::new(bytes);
        let reader = &mut reader;
        let (kind, transaction, token) = (reader.u8()?, *reader.array()?, *reader.array()?);
        let message = match kind {
            0x01 => Self::Request { transaction, token, ask: Ask::Ping },
            0x02 => Self::Request { transaction, token, ask: Ask::FindNode(read_id(reader)?) },
            0x03 => {
                let ask = Ask::FindValue(read_id(reader)?, read_kind(reader.u8()?)?);
                Self::Request { transaction, token, ask }
            }
            0x04 => Self::Request { transaction, token, ask: read_store(reader)? },
            0x81 => Self::Answer { transaction, token, reply: Reply::Pong },
            0x82 => Self::Answer { transaction, token, reply: read_found(reader)? },
            0x84 => Self::Answer { transaction, token, reply: read_stored(reader)? },
            _ => return Err(Malformed),
        };
        if reader.rest().iter().any(|&byte| byte != 0) {
            return Err(Malformed);
        }
        Ok(message)
    }
}

/// Writes the part of a message that all have.
fn write_header(w: &mut Writer<'_>, kind: u8, transaction: Transaction, token: &Token) -> Result<(), Full> {
    w.u8(kind)?;
    w.array(&transaction)?;
    w.array(token)
}

/// Writes a request; one without a token is filled up to [`MAX_MESSAGE`].
///
/// # Errors
/// [`Full`] if `w` has less than [`MAX_MESSAGE`] bytes, or the value is longer than [`MAX_VALUE`].
pub fn write_request(
    w: &mut Writer<'_>,
    transaction: Transaction,
    token: &Token,
    ask: &Ask<'_>,
) -> Result<(), Full> {
    match ask {
        Ask::Ping => write_header(w, 0x01, transaction, token)?,
        Ask::FindNode(target) => {
            write_header(w, 0x02, transaction, token)?;
            w.array(target.as_bytes())?;
        }
        Ask::FindValue(target, kind) => {
            write_header(w, 0x03, transaction, token)?;
            w.array(target.as_bytes())?;
            w.u8(*kind as u8)?;
        }
        Ask::Store { key, write_token, expected, record } => {
            write_header(w, 0x04, transaction, token)?;
            w.array(key.as_bytes())?;
            w.array(write_token)?;
            match expected {
                Some(seq) => {
                    w.u8(1)?;
                    w.array(&seq.to_be_bytes())?;
                }
                None => w.u8(0)?,
            }
            match record {
                Some(record) => write_record(w, record)?,
                None => w.u8(Kind::Providers as u8)?,
            }
        }
    }
    if *token == Token::default() {
        w.zeros(MAX_MESSAGE.saturating_sub(w.len()))?;
    }
    Ok(())
}

/// Writes the answer to a ping.
pub(crate) fn write_pong(w: &mut Writer<'_>, transaction: Transaction, token: &Token) -> Result<(), Full> {
    write_header(w, 0x81, transaction, token)
}

/// Writes the beginning of an answer to a search; record and nodes follow.
pub(crate) fn write_found(
    w: &mut Writer<'_>,
    transaction: Transaction,
    token: &Token,
    write_token: &Token,
) -> Result<(), Full> {
    write_header(w, 0x82, transaction, token)?;
    w.array(write_token)
}

/// Writes the answer to a store request.
pub(crate) fn write_stored(
    w: &mut Writer<'_>,
    transaction: Transaction,
    token: &Token,
    result: StoreResult,
    seq: u64,
) -> Result<(), Full> {
    write_header(w, 0x84, transaction, token)?;
    w.u8(result as u8)?;
    w.array(&seq.to_be_bytes())
}

/// Writes a record with its kind.
pub(crate) fn write_record(w: &mut Writer<'_>, record: &Record<'_>) -> Result<(), Full> {
    w.u8(record.kind() as u8)?;
    if let Record::Signed(signed) = record {
        w.array(signed.peer)?;
        w.array(&signed.salt.to_be_bytes())?;
        w.array(&signed.seq.to_be_bytes())?;
        w.array(signed.signature)?;
    }
    let value = record.value();
    if value.len() > MAX_VALUE {
        return Err(Full);
    }
    w.u16(value.len() as u16)?;
    w.bytes(value)
}

/// Writes as many of `nodes` as fit, [`MAX_NODES`] at most, behind their number.
pub(crate) fn write_nodes(w: &mut Writer<'_>, nodes: impl Iterator<Item = Node>) -> Result<(), Full> {
    let mut list = [0; MAX_NODES * 51];
    let room = w.remaining().saturating_sub(1).min(list.len());
    let mut entries = Writer::new(&mut list[..room]);
    let mut count = 0;
    for node in nodes.take(MAX_NODES) {
        if entries.remaining() < node_len(&node) {
            break;
        }
        write_node(&mut entries, &node)?;
        count += 1;
    }
    w.u8(count)?;
    w.bytes(entries.written())
}

pub(crate) fn write_node(w: &mut Writer<'_>, node: &Node) -> Result<(), Full> {
    match node.address.ip() {
        core::net::IpAddr::V4(ip) => {
            w.u8(4)?;
            w.array(&ip.octets())?;
        }
        core::net::IpAddr::V6(ip) => {
            w.u8(6)?;
            w.array(&ip.octets())?;
        }
    }
    w.array(&node.address.port())?;
    w.array(&node.key)
}

fn node_len(node: &Node) -> usize {
    if node.address.ip().is_ipv4() { 39 } else { 51 }
}

fn read_node(reader: &mut Reader<'_>) -> Result<Node, Malformed> {
    let address = match reader.u8()? {
        4 => Address::v4(*reader.array()?, *reader.array()?),
        6 => Address::v6(*reader.array()?, *reader.array()?),
        _ => return Err(Malformed),
    };
    Ok(Node { key: *reader.array()?, address })
}

/// Nodes without their number, of which there are `count`.
pub(crate) fn nodes(bytes: &[u8], count: u8) -> impl Iterator<Item = Node> {
    Nodes { bytes, count }.compact()
}

fn read_id(reader: &mut Reader<'_>) -> Result<Id, Malformed> {
    reader.array().map(|bytes| Id::from_bytes(*bytes))
}

fn read_u64(reader: &mut Reader<'_>) -> Result<u64, Malformed> {
    reader.array().map(|bytes| u64::from_be_bytes(*bytes))
}

const fn read_kind(kind: u8) -> Result<Kind, Malformed> {
    match kind {
        1 => Ok(Kind::Value),
        2 => Ok(Kind::Signed),
        3 => Ok(Kind::Providers),
        _ => Err(Malformed),
    }
}

/// Reads the record behind its kind; providers have no value.
fn read_body<'a>(reader: &mut Reader<'a>, kind: Kind) -> Result<Option<Record<'a>>, Malformed> {
    Ok(match kind {
        Kind::Providers => None,
        Kind::Value => Some(Record::Value(read_value(reader)?)),
        Kind::Signed => Some(Record::Signed(Signed {
            peer: reader.array()?,
            salt: read_u64(reader)?,
            seq: read_u64(reader)?,
            signature: reader.array()?,
            value: read_value(reader)?,
        })),
    })
}

fn read_value<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let len = usize::from(reader.u16()?);
    if len > MAX_VALUE {
        return Err(Malformed);
    }
    reader.take(len)
}

/// Reads a record as [`write_record`] writes it.
pub(crate) fn read_record(bytes: &[u8]) -> Option<Record<'_>> {
    let mut reader = Reader::new(bytes);
    let kind = read_kind(reader.u8().ok()?).ok()?;
    read_body(&mut reader, kind).ok()?
}

fn read_store<'a>(reader: &mut Reader<'a>) -> Result<Ask<'a>, Malformed> {
    let (key, write_token) = (read_id(reader)?, *reader.array()?);
    let expected = match reader.u8()? {
        0 => None,
        1 => Some(read_u64(reader)?),
        _ => return Err(Malformed),
    };
    let kind = read_kind(reader.u8()?)?;
    Ok(Ask::Store { key, write_token, expected, record: read_body(reader, kind)? })
}

fn read_found<'a>(reader: &mut Reader<'a>) -> Result<Reply<'a>, Malformed> {
    let write_token = *reader.array()?;
    let record = match reader.u8()? {
        0 => Held::Nothing,
        kind => match read_body(reader, read_kind(kind)?)? {
            Some(record) => Held::Record(record),
            None => Held::Providers(Nodes::read(reader)?),
        },
    };
    Ok(Reply::Found { write_token, record, nodes: Nodes::read(reader)? })
}

fn read_stored<'a>(reader: &mut Reader<'a>) -> Result<Reply<'a>, Malformed> {
    let result = *StoreResult::ALL.get(usize::from(reader.u8()?)).ok_or(Malformed)?;
    Ok(Reply::Stored { result, seq: read_u64(reader)? })
}

#[cfg(test)]
mod tests;
