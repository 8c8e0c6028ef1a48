//! How messages are written.

use wraith_proto::wire::{Full, Writer};

use super::{Ask, FIND_NODE, FIND_VALUE, Offer, PING, STORE, StoreResult};
use crate::record::{Kind, Record};
use crate::token::{Token, WriteToken};

/// Writes what a request asks.
///
/// # Errors
/// [`Full`] if it does not fit, or a value is longer than [`Kind::max_value`].
pub fn write_ask(w: &mut Writer<'_>, ask: &Ask<'_>) -> Result<(), Full> {
    match ask {
        Ask::Ping => w.u8(PING),
        Ask::FindNode(target) => {
            w.u8(FIND_NODE)?;
            w.array(target.as_bytes())
        }
        Ask::FindValue(target, kind) => {
            w.u8(FIND_VALUE)?;
            w.array(target.as_bytes())?;
            w.u8(*kind as u8)
        }
        Ask::Store { write_token, expected, offer } => {
            w.u8(STORE)?;
            w.array(write_token)?;
            match expected {
                Some(seq) => {
                    w.u8(1)?;
                    w.array(&seq.to_be_bytes())?;
                }
                None => w.u8(0)?,
            }
            match offer {
                Offer::Record(record) => write_record(w, record),
                Offer::Provider(key) => {
                    w.u8(Kind::Providers as u8)?;
                    w.array(key.as_bytes())
                }
            }
        }
    }
}

/// Writes the answer to a ping.
pub(crate) fn write_pong(w: &mut Writer<'_>, token: &Token) -> Result<(), Full> {
    w.array(token)?;
    w.u8(PING)
}

/// Writes the beginning of an answer to a search; record and nodes follow.
pub(crate) fn write_found(w: &mut Writer<'_>, token: &Token, write_token: WriteToken) -> Result<(), Full> {
    w.array(token)?;
    w.u8(FIND_NODE)?;
    w.array(&write_token)
}

/// Writes the answer to a store request.
pub(crate) fn write_stored(
    w: &mut Writer<'_>,
    token: &Token,
    result: StoreResult,
    seq: u64,
) -> Result<(), Full> {
    w.array(token)?;
    w.u8(STORE)?;
    w.u8(result as u8)?;
    w.array(&seq.to_be_bytes())
}

/// Writes a record with its kind.
pub(crate) fn write_record(w: &mut Writer<'_>, record: &Record<'_>) -> Result<(), Full> {
    let value = record.value();
    if value.len() > record.kind().max_value() {
        return Err(Full);
    }
    w.u8(record.kind() as u8)?;
    if let Record::Signed(signed) = record {
        w.array(signed.peer)?;
        w.array(&signed.salt.to_be_bytes())?;
        w.array(&signed.seq.to_be_bytes())?;
        w.array(signed.signature)?;
    }
    w.u16(value.len() as u16)?;
    w.bytes(value)
}
