//! Handshake datagrams (`PROTO §2.3` to `§2.8`). Noise messages are opaque here.

mod cookie;
mod finish;
mod init;
mod response;
mod versions;

pub use cookie::{CookiePacket, CookieRepr};
pub use finish::{FINISH_MESSAGE_OFFSET, FinishPacket, FinishRepr};
pub use init::{INIT_COOKIE_OFFSET, INIT_MESSAGE_OFFSET, InitPacket, InitRepr};
pub use response::{RESPONSE_MESSAGE_OFFSET, ResponsePacket, ResponseRepr};
pub use versions::{VersionsPacket, VersionsRepr};

use super::{ConnectionId, Full, Malformed, Reader, VERSION, Writer};

const FORM_MASK: u8 = 0b1111_0000;
const FORM: u8 = 0b1000_0000;

/// Bytes of fragment offset and total length.
const LENGTHS_LEN: usize = 4;

/// Whether a datagram is of the handshake form; an empty one is not (`PROTO §2.2`).
#[inline]
pub const fn is_handshake(datagram: &[u8]) -> bool {
    matches!(datagram, [0x80..=0xff, ..])
}

/// Types of handshake datagrams (`PROTO §2.3`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum HandshakeKind {
    /// Carries the first Noise message.
    Init = 1,
    /// Carries the second.
    Response = 2,
    /// Carries the third, and perhaps a protected packet behind it.
    Finish = 3,
    /// Asks for INIT with a cookie.
    Cookie = 4,
    /// Lists the versions that the responder speaks.
    Versions = 5,
}

impl HandshakeKind {
    /// The type of a datagram by its first byte; `None` for a wrong fixed bit or an unknown type (`PROTO §2.8`).
    #[inline]
    pub const fn of(datagram: &[u8]) -> Option<Self> {
        match datagram {
            [first, ..] if *first & FORM_MASK == FORM => match *first & !FORM_MASK {
                1 => Some(Self::Init),
                2 => Some(Self::Response),
                3 => Some(Self::Finish),
                4 => Some(Self::Cookie),
                5 => Some(Self::Versions),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What every handshake datagram of every version begins with (`PROTO §2.6`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeHeader {
    /// The type.
    pub kind: HandshakeKind,
    /// The version; 0 in VERSIONS.
    pub version: u32,
    /// The connection id of the receiver, zero in INIT.
    pub destination: ConnectionId,
    /// The connection id of the sender, zero in COOKIE and VERSIONS.
    pub source: ConnectionId,
}

impl HandshakeHeader {
    /// Reads the header of a datagram of any version. Beyond the fixed bits and the type no value is checked.
    ///
    /// # Errors
    /// [`Malformed`] if it is too short, a fixed bit is wrong or the type unknown (`PROTO §2.8`).
    pub fn parse(datagram: &[u8]) -> Result<Self, Malformed> {
        Self::read(&mut Reader::new(datagram))
    }

    /// Writes the header; returns [`HANDSHAKE_HEADER_LEN`](crate::wire::HANDSHAKE_HEADER_LEN).
    ///
    /// # Errors
    /// [`Full`] if the buffer is shorter.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut w = Writer::new(out);
        self.write(&mut w)?;
        Ok(w.len())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let kind = HandshakeKind::of(reader.rest()).ok_or(Malformed)?;
        reader.u8()?;
        Ok(Self {
            kind,
            version: reader.u32()?,
            destination: ConnectionId(*reader.array()?),
            source: ConnectionId(*reader.array()?),
        })
    }

    /// Reads the header of a datagram that must be of one type and of [`VERSION`](crate::wire::VERSION).
    fn read_as(kind: HandshakeKind, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let header = Self::read(reader)?;
        if header.kind == kind && header.version == VERSION { Ok(header) } else { Err(Malformed) }
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.all_or_nothing(|w| {
            w.u8(FORM | self.kind as u8)?;
            w.u32(self.version)?;
            w.array(&self.destination.0)?;
            w.array(&self.source.0)
        })
    }
}

/// A handshake datagram of any type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handshake<'a> {
    /// See [`InitPacket`].
    Init(InitPacket<'a>),
    /// See [`ResponsePacket`].
    Response(ResponsePacket<'a>),
    /// See [`FinishPacket`].
    Finish(FinishPacket<'a>),
    /// See [`CookiePacket`].
    Cookie(CookiePacket<'a>),
    /// See [`VersionsPacket`].
    Versions(VersionsPacket<'a>),
}

impl<'a> Handshake<'a> {
    /// Checks a datagram by its type.
    ///
    /// # Errors
    /// [`Malformed`] for an unknown type or as the type's own `parse` says.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        match HandshakeKind::of(datagram).ok_or(Malformed)? {
            HandshakeKind::Init => InitPacket::parse(datagram).map(Self::Init),
            HandshakeKind::Response => ResponsePacket::parse(datagram).map(Self::Response),
            HandshakeKind::Finish => FinishPacket::parse(datagram).map(Self::Finish),
            HandshakeKind::Cookie => CookiePacket::parse(datagram).map(Self::Cookie),
            HandshakeKind::Versions => VersionsPacket::parse(datagram).map(Self::Versions),
        }
    }
}

/// Reads fragment offset and total length, and the message that must be all the rest (`PROTO §2.4`).
fn message_to_the_end<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let len = read_lengths(reader)?;
    if len == reader.rest().len() { reader.take(len) } else { Err(Malformed) }
}

/// Reads the fragment offset, which must be 0, and the total length (`PROTO §2.4`).
fn read_lengths(reader: &mut Reader<'_>) -> Result<usize, Malformed> {
    if reader.u16()? == 0 { reader.u16().map(usize::from) } else { Err(Malformed) }
}

fn write_lengths(message_len: u16, w: &mut Writer<'_>) -> Result<(), Full> {
    w.u16(0)?;
    w.u16(message_len)
}

#[cfg(test)]
mod tests;
