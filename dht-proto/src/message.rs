//! Messages: requests and answers, each sealed in one datagram behind its [header](crate::Header).
//!
//! ```text
//! request   1 ping        nothing
//!           2 find-node   target 32
//!           3 find-value  target 32 | record kind u8
//!           4 store       write token 8 | condition | record
//! answer    address token 16, and
//!           1 pong        nothing
//!           2 found       write token 8 | record | nodes
//!           4 stored      result u8 | sequence number u64
//!
//! condition 0 | 1, sequence number u64
//! record    0 (none) | 1, value | 2, peer 32, salt u64, sequence number u64, signature 64, value
//!           | 3, key 32 (request: the sender provides what it names) | 3, nodes (answer)
//! value     length u16, bytes
//! nodes     count u8, each: 4 | 6, address 4 | 16, port u16, key 32
//! ```
//!
//! Numbers have their most significant byte first. A token of zeros is none. Behind a message are zeros only: a datagram
//! that asks without an address token is as long as the longest that answers, so that a forged sender gains nothing.
//! The key of a record is not sent, since it follows from it.

use wraith_proto::wire::{Malformed, Reader};

use crate::id::Id;
use crate::record::{Kind, MAX_VALUE, Record, Signed};
use crate::token::{Token, WriteToken};

mod nodes;
mod write;

pub(crate) use nodes::{MAX_NODE, nodes, write_node, write_nodes};
pub use nodes::{MAX_NODES, Nodes};
pub use write::write_ask;
pub(crate) use write::{write_found, write_pong, write_record, write_stored};

/// Bytes of a record as messages and stores hold it at most.
pub(crate) const MAX_RECORD: usize = 1 + 32 + 8 + 8 + 64 + 2 + crate::record::MAX_SIGNED_VALUE;

const _: () = assert!(MAX_RECORD >= 1 + 2 + MAX_VALUE, "the longest record is a signed one");

const PING: u8 = 1;
const FIND_NODE: u8 = 2;
const FIND_VALUE: u8 = 3;
const STORE: u8 = 4;

/// What a request asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask<'a> {
    /// For an answer.
    Ping,
    /// For the nodes near an id.
    FindNode(Id),
    /// For a record, and the nodes near its key.
    FindValue(Id, Kind),
    /// That something is kept.
    Store {
        /// From an answer to [`Ask::FindNode`] or [`Ask::FindValue`] for its key.
        write_token: WriteToken,
        /// Only if this is the sequence number of the record that is there.
        expected: Option<u64>,
        /// What.
        offer: Offer<'a>,
    },
}

/// What is to be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer<'a> {
    /// A record, under its own key.
    Record(Record<'a>),
    /// That the sender provides what this key names.
    Provider(Id),
}

/// What an answer says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply<'a> {
    /// I am here.
    Pong,
    /// These nodes are nearer, and that is the record.
    Found {
        /// Lets the asking node store under the key that it asked for.
        write_token: WriteToken,
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
    /// Its signature is wrong.
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

impl<'a> Ask<'a> {
    /// Reads what a request asks.
    ///
    /// # Errors
    /// [`Malformed`] if it is cut off, or has a byte without meaning.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let ask = match reader.u8()? {
            PING => Self::Ping,
            FIND_NODE => Self::FindNode(read_id(&mut reader)?),
            FIND_VALUE => Self::FindValue(read_id(&mut reader)?, read_kind(reader.u8()?)?),
            STORE => read_store(&mut reader)?,
            _ => return Err(Malformed),
        };
        zeros_only(&reader)?;
        Ok(ask)
    }
}

impl<'a> Reply<'a> {
    /// Reads an answer, and the address token for the next request to who gave it.
    ///
    /// # Errors
    /// [`Malformed`] if it is cut off, or has a byte without meaning.
    pub fn parse(bytes: &'a [u8]) -> Result<(Token, Self), Malformed> {
        let mut reader = Reader::new(bytes);
        let token = *reader.array()?;
        let reply = match reader.u8()? {
            PING => Self::Pong,
            FIND_NODE => read_found(&mut reader)?,
            STORE => read_stored(&mut reader)?,
            _ => return Err(Malformed),
        };
        zeros_only(&reader)?;
        Ok((token, reply))
    }
}

fn zeros_only(reader: &Reader<'_>) -> Result<(), Malformed> {
    if reader.rest().iter().any(|&byte| byte != 0) { Err(Malformed) } else { Ok(()) }
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
        Kind::Value => Some(Record::Value(read_value(reader, kind)?)),
        Kind::Signed => Some(Record::Signed(Signed {
            peer: reader.array()?,
            salt: read_u64(reader)?,
            seq: read_u64(reader)?,
            signature: reader.array()?,
            value: read_value(reader, kind)?,
        })),
    })
}

fn read_value<'a>(reader: &mut Reader<'a>, kind: Kind) -> Result<&'a [u8], Malformed> {
    let len = usize::from(reader.u16()?);
    if len > kind.max_value() {
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
    let write_token = *reader.array()?;
    let expected = match reader.u8()? {
        0 => None,
        1 => Some(read_u64(reader)?),
        _ => return Err(Malformed),
    };
    let kind = read_kind(reader.u8()?)?;
    let offer = match read_body(reader, kind)? {
        Some(record) => Offer::Record(record),
        None => Offer::Provider(read_id(reader)?),
    };
    Ok(Ask::Store { write_token, expected, offer })
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
