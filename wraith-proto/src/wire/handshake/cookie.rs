//! COOKIE: the answer of a responder under load (`PROTO §4.13`).

use super::{HandshakeHeader, HandshakeKind};
use crate::wire::{COOKIE_LEN, ConnectionId, Full, HANDSHAKE_HEADER_LEN, Malformed, Reader, Writer};

/// A checked COOKIE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CookiePacket<'a> {
    header: HandshakeHeader,
    cookie: &'a [u8; COOKIE_LEN],
}

impl<'a> CookiePacket<'a> {
    /// Checks a datagram.
    ///
    /// # Errors
    /// [`Malformed`] if it is no COOKIE of [`VERSION`](crate::wire::VERSION), has a source, or is not exactly as long as one.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(datagram);
        let header = HandshakeHeader::read_as(HandshakeKind::Cookie, &mut reader)?;
        let cookie = reader.array()?;
        if header.source != ConnectionId::ZERO || !reader.is_empty() {
            return Err(Malformed);
        }
        Ok(Self { header, cookie })
    }

    /// The initiator's connection id.
    pub const fn destination(&self) -> ConnectionId {
        self.header.destination
    }

    /// What the initiator is to repeat in INIT.
    pub const fn cookie(&self) -> &'a [u8; COOKIE_LEN] {
        self.cookie
    }
}

/// A COOKIE to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CookieRepr {
    /// The version of the INIT that is answered.
    pub version: u32,
    /// The initiator's connection id.
    pub destination: ConnectionId,
    /// What the initiator is to repeat in INIT.
    pub cookie: [u8; COOKIE_LEN],
}

impl CookieRepr {
    /// Bytes of the datagram.
    pub const fn buffer_len(&self) -> usize {
        HANDSHAKE_HEADER_LEN + COOKIE_LEN
    }

    /// Writes the datagram; returns its length.
    ///
    /// # Errors
    /// [`Full`] if the buffer is shorter than [`CookieRepr::buffer_len`]; then nothing is written.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut w = Writer::new(out.get_mut(..self.buffer_len()).ok_or(Full)?);
        let &Self { version, destination, .. } = self;
        let kind = HandshakeKind::Cookie;
        HandshakeHeader { kind, version, destination, source: ConnectionId::ZERO }.write(&mut w)?;
        w.array(&self.cookie)?;
        Ok(w.len())
    }
}
