//! The messages of the control stream (`PROTO §10.3`).

mod bits;

use crate::code::{Code, Violation};
use crate::codec::{Malformed, Reader, end, put_varint};
use crate::tree::{FAN, ListId, MAX_LEVEL, MAX_SIZE};
use crate::{CHUNK, Hash};
use alloc::vec::Vec;

pub use bits::{ChunkBits, WANT_SPAN};

/// Largest message, bytes of type and body (`PROTO §10.3`).
pub const MAX_MESSAGE: usize = 65_536;

/// Most chunks that a receiver may have asked for and that were not yet sent, in one session (`PROTO §10.10`).
pub const MAX_WANTED: usize = 256;

/// Most requests of a receiver without an answer, in one session (`PROTO §10.5`).
pub(crate) const MAX_REQUESTS: usize = 64;

/// The secret that a ticket carries beside the content id.
pub type Token = [u8; 16];

/// Whether the bytes of a content are a file or the manifest of a folder; stated, never guessed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// The content is the file.
    File,
    /// The content is a manifest.
    Folder,
}

impl Kind {
    pub(crate) const fn to_byte(self) -> u8 {
        match self {
            Self::File => 0,
            Self::Folder => 1,
        }
    }

    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::File),
            1 => Some(Self::Folder),
            _ => None,
        }
    }
}

/// One message of the control stream. Every one names the transfer that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Receiver: begins a transfer.
    Get {
        /// Ascends in each session.
        transfer: u32,
        /// File or folder.
        kind: Kind,
        /// Content id.
        hash: Hash,
        /// From the ticket; zero for announced content.
        token: Token,
    },
    /// Provider: the answer to `Get`.
    Offer {
        /// Number from `Get`.
        transfer: u32,
        /// Length of the content, bytes; a claim until the last chunk proves it.
        size: u64,
        /// Whether the provider has every chunk.
        complete: bool,
        /// The list under the content id, 32 bytes for each value; empty for at most one chunk.
        top: &'a [u8],
    },
    /// Receiver: asks for a list.
    GetList {
        /// Number from `Get`.
        transfer: u32,
        /// Which list.
        list: ListId,
    },
    /// Provider: the answer to `GetList`.
    List {
        /// Number from `Get`.
        transfer: u32,
        /// Which list.
        list: ListId,
        /// 32 bytes for each value.
        values: &'a [u8],
    },
    /// Receiver: asks for chunks.
    Want {
        /// Number from `Get`.
        transfer: u32,
        /// Which chunks, in ascending order.
        chunks: ChunkBits,
    },
    /// Receiver: all is verified and stored.
    Done {
        /// Number from `Get`.
        transfer: u32,
        /// Content id, again.
        hash: Hash,
    },
    /// Provider: the answer to `Done`.
    DoneAck {
        /// Number from `Get`.
        transfer: u32,
    },
    /// Provider: the other answer to `Get`.
    Refused {
        /// Number from `Get`.
        transfer: u32,
        /// Why.
        code: Code,
    },
    /// Either: ends the transfer.
    Cancel {
        /// Number from `Get`.
        transfer: u32,
        /// Why.
        code: Code,
    },
}

const GET: u8 = 0x01;
const OFFER: u8 = 0x02;
const GET_LIST: u8 = 0x03;
const LIST: u8 = 0x04;
const WANT: u8 = 0x05;
const DONE: u8 = 0x06;
const DONE_ACK: u8 = 0x07;
const REFUSED: u8 = 0x08;
const CANCEL: u8 = 0x09;
/// Types from here on are extensions: unknown ones are ignored.
const FIRST_EXTENSION: u8 = 0x40;

/// Longest list, bytes.
const MAX_LIST: usize = FAN * 32;

impl<'a> Message<'a> {
    /// Appends the message with its length in front.
    ///
    /// Lists longer than 1,024 values are cut: no tree has them.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.encode_body(out);
        let len = out.len() - start;
        // The length goes in front of a body that is already written: no message is measured twice.
        put_varint(out, len as u64);
        let prefix = out.len() - start - len;
        out[start..].rotate_right(prefix);
    }

    /// Reads type and body, without the length in front; `None` for an extension that is not known here.
    ///
    /// # Errors
    ///
    /// The rule that the bytes break.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<Self>, Violation> {
        if bytes.is_empty() || bytes.len() > MAX_MESSAGE {
            return Err(Violation::MessageLength);
        }
        let (kind, body) = (bytes[0], &bytes[1..]);
        let message = match kind {
            GET => decode_get(body),
            OFFER => decode_offer(body),
            GET_LIST => decode_get_list(body),
            LIST => decode_list(body),
            WANT => decode_want(body),
            DONE => decode_done(body),
            DONE_ACK => decode_done_ack(body),
            REFUSED => decode_code(body).map(|(transfer, code)| Message::Refused { transfer, code }),
            CANCEL => decode_code(body).map(|(transfer, code)| Message::Cancel { transfer, code }),
            FIRST_EXTENSION.. => return Ok(None),
            _ => return Err(Violation::UnknownType),
        };
        message.map(Some).map_err(|Malformed| Violation::Malformed)
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Get { transfer, kind, hash, token } => {
                put_head(out, GET, transfer);
                out.push(kind.to_byte());
                out.extend_from_slice(&hash);
                out.extend_from_slice(&token);
            }
            Self::Offer { transfer, size, complete, top } => {
                put_head(out, OFFER, transfer);
                put_varint(out, size);
                out.push(u8::from(complete));
                out.extend_from_slice(&top[..top.len().min(MAX_LIST)]);
            }
            Self::GetList { transfer, list } => {
                put_head(out, GET_LIST, transfer);
                put_list_id(out, list);
            }
            Self::List { transfer, list, values } => {
                put_head(out, LIST, transfer);
                put_list_id(out, list);
                out.extend_from_slice(&values[..values.len().min(MAX_LIST)]);
            }
            Self::Want { transfer, chunks } => {
                put_head(out, WANT, transfer);
                put_varint(out, chunks.first());
                out.extend_from_slice(chunks.bytes());
            }
            Self::Done { transfer, hash } => {
                put_head(out, DONE, transfer);
                out.extend_from_slice(&hash);
            }
            Self::DoneAck { transfer } => put_head(out, DONE_ACK, transfer),
            Self::Refused { transfer, code } => {
                put_head(out, REFUSED, transfer);
                put_varint(out, u64::from(code.0));
            }
            Self::Cancel { transfer, code } => {
                put_head(out, CANCEL, transfer);
                put_varint(out, u64::from(code.0));
            }
        }
    }
}

fn put_head(out: &mut Vec<u8>, kind: u8, transfer: u32) {
    out.push(kind);
    put_varint(out, u64::from(transfer));
}

fn put_list_id(out: &mut Vec<u8>, list: ListId) {
    out.push(list.level);
    put_varint(out, list.index);
}

fn decode_get(body: &[u8]) -> Result<Message<'_>, Malformed> {
    let mut body = Reader::new(body);
    let transfer = body.varint32()?;
    let kind = Kind::from_byte(body.u8()?).ok_or(Malformed)?;
    let (hash, token) = (*body.array()?, *body.array()?);
    end(body, Message::Get { transfer, kind, hash, token })
}

fn decode_offer(body: &[u8]) -> Result<Message<'_>, Malformed> {
    let mut body = Reader::new(body);
    let transfer = body.varint32()?;
    let size = body.varint()?;
    let complete = match body.u8()? {
        0 => false,
        1 => true,
        _ => return Err(Malformed),
    };
    let top = body.rest();
    // More than one chunk has a list under the content id, anything smaller has none.
    let fits = if size > CHUNK as u64 { is_list(top) } else { top.is_empty() };
    if fits && size <= MAX_SIZE {
        Ok(Message::Offer { transfer, size, complete, top })
    } else {
        Err(Malformed)
    }
}

fn decode_get_list(body: &[u8]) -> Result<Message<'_>, Malformed> {
    let mut body = Reader::new(body);
    let transfer = body.varint32()?;
    let list = decode_list_id(&mut body)?;
    end(body, Message::GetList { transfer, list })
}

fn decode_list(body: &[u8]) -> Result<Message<'_>, Malformed> {
    let mut body = Reader::new(body);
    let transfer = body.varint32()?;
    let list = decode_list_id(&mut body)?;
    let values = body.rest();
    if is_list(values) { Ok(Message::List { transfer, list, values }) } else { Err(Malformed) }
}

fn decode_list_id(body: &mut Reader<'_>) -> Result<ListId, Malformed> {
    let (level, index) = (body.u8()?, body.varint()?);
    if (1..=MAX_LEVEL).contains(&level) { Ok(ListId { level, index }) } else { Err(Malformed) }
}

fn decode_want(body: &[u8]) -> Result<Message<'_>, Malformed> {
    let mut body = Reader::new(body);
    let transfer = body.varint32()?;
    let first = body.varint()?;
    let chunks = ChunkBits::from_bytes(first, body.rest()).ok_or(Malformed)?;
    Ok(Message::Want { transfer, chunks })
}

fn decode_done(body: &[u8]) -> Result<Message<'_>, Malformed> {
    let mut body = Reader::new(body);
    let transfer = body.varint32()?;
    let hash = *body.array()?;
    end(body, Message::Done { transfer, hash })
}

fn decode_done_ack(body: &[u8]) -> Result<Message<'_>, Malformed> {
    let mut body = Reader::new(body);
    let transfer = body.varint32()?;
    end(body, Message::DoneAck { transfer })
}

fn decode_code(body: &[u8]) -> Result<(u32, Code), Malformed> {
    let mut body = Reader::new(body);
    let transfer = body.varint32()?;
    let code = Code(body.varint32()?);
    end(body, (transfer, code))
}

fn is_list(values: &[u8]) -> bool {
    !values.is_empty() && values.len().is_multiple_of(32) && values.len() <= MAX_LIST
}

#[cfg(test)]
mod tests;
