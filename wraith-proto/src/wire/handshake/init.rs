//! INIT: the first Noise message, in a datagram that is the same when repeated but for its cookie.

use super::{HandshakeHeader, HandshakeKind, LENGTHS_LEN, message_to_the_end, write_lengths};
use crate::wire::{COOKIE_LEN, ConnectionId, Full, HANDSHAKE_HEADER_LEN, Malformed, Reader, Writer};

/// Where the cookie of INIT stands. It is the only part that a repetition may change (`PROTO §4.10`).
pub const INIT_COOKIE_OFFSET: usize = HANDSHAKE_HEADER_LEN;

/// Where the Noise message of INIT begins.
pub const INIT_MESSAGE_OFFSET: usize = HANDSHAKE_HEADER_LEN + COOKIE_LEN + LENGTHS_LEN;

/// A checked INIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InitPacket<'a> {
    header: HandshakeHeader,
    cookie: &'a [u8; COOKIE_LEN],
    message: &'a [u8],
}

impl<'a> InitPacket<'a> {
    /// Checks a datagram by the layout of version 1; other versions may have another behind the
    /// header, so look at [`HandshakeHeader::version`] before. The smallest datagram (`PROTO §2.5`)
    /// is the caller's to check.
    ///
    /// # Errors
    /// [`Malformed`] if it is no INIT, has a destination, is cut off, or its lengths are not those
    /// of one whole message (`PROTO §2.4`).
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(datagram);
        let header = HandshakeHeader::read(&mut reader)?;
        if header.kind != HandshakeKind::Init || header.destination != ConnectionId::ZERO {
            return Err(Malformed);
        }
        let cookie = reader.array()?;
        let message = message_to_the_end(&mut reader)?;
        Ok(Self { header, cookie, message })
    }

    /// The version that the initiator tries.
    pub const fn version(&self) -> u32 {
        self.header.version
    }

    /// The initiator's connection id.
    pub const fn source(&self) -> ConnectionId {
        self.header.source
    }

    /// The cookie, zero when there is none.
    pub const fn cookie(&self) -> &'a [u8; COOKIE_LEN] {
        self.cookie
    }

    /// The first Noise message.
    pub const fn message(&self) -> &'a [u8] {
        self.message
    }
}

/// An INIT to be written, all but its Noise message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InitRepr {
    /// The version to try.
    pub version: u32,
    /// The initiator's connection id.
    pub source: ConnectionId,
    /// The cookie, zero when there is none.
    pub cookie: [u8; COOKIE_LEN],
    /// Bytes of the first Noise message.
    pub message_len: u16,
}

impl InitRepr {
    /// Bytes of the whole datagram.
    pub const fn buffer_len(&self) -> usize {
        INIT_MESSAGE_OFFSET + self.message_len as usize
    }

    /// Writes everything before the Noise message; returns [`INIT_MESSAGE_OFFSET`], where the caller
    /// then writes `message_len` bytes to the end of the datagram.
    ///
    /// # Errors
    /// [`Full`] if the buffer is shorter than [`InitRepr::buffer_len`]; then nothing is written.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut w = Writer::new(out.get_mut(..self.buffer_len()).ok_or(Full)?);
        let &Self { version, source, .. } = self;
        let kind = HandshakeKind::Init;
        HandshakeHeader { kind, version, destination: ConnectionId::ZERO, source }.write(&mut w)?;
        w.array(&self.cookie)?;
        write_lengths(self.message_len, &mut w)?;
        Ok(w.len())
    }
}
