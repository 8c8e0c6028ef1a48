//! RESPONSE: the second Noise message.

use super::{HandshakeHeader, HandshakeKind, LENGTHS_LEN, message_to_the_end, write_lengths};
use crate::wire::{ConnectionId, Full, HANDSHAKE_HEADER_LEN, Malformed, Reader, Writer};

/// Where the Noise message of RESPONSE begins.
pub const RESPONSE_MESSAGE_OFFSET: usize = HANDSHAKE_HEADER_LEN + LENGTHS_LEN;

/// A checked RESPONSE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResponsePacket<'a> {
    header: HandshakeHeader,
    message: &'a [u8],
}

impl<'a> ResponsePacket<'a> {
    /// Checks a datagram. The smallest datagram (`PROTO §2.5`) is the caller's to check.
    ///
    /// # Errors
    /// [`Malformed`] if it is no RESPONSE of [`VERSION`](crate::wire::VERSION), is cut off, or its lengths are not those of
    /// one whole message (`PROTO §2.4`).
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(datagram);
        let header = HandshakeHeader::read_as(HandshakeKind::Response, &mut reader)?;
        let message = message_to_the_end(&mut reader)?;
        Ok(Self { header, message })
    }

    /// The initiator's connection id.
    pub const fn destination(&self) -> ConnectionId {
        self.header.destination
    }

    /// The responder's connection id.
    pub const fn source(&self) -> ConnectionId {
        self.header.source
    }

    /// The second Noise message.
    pub const fn message(&self) -> &'a [u8] {
        self.message
    }
}

/// A RESPONSE to be written, all but its Noise message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResponseRepr {
    /// The version spoken.
    pub version: u32,
    /// The initiator's connection id.
    pub destination: ConnectionId,
    /// The responder's connection id.
    pub source: ConnectionId,
    /// Bytes of the second Noise message.
    pub message_len: u16,
}

impl ResponseRepr {
    /// Bytes of the whole datagram.
    pub const fn buffer_len(&self) -> usize {
        RESPONSE_MESSAGE_OFFSET + self.message_len as usize
    }

    /// Writes everything before the Noise message; returns [`RESPONSE_MESSAGE_OFFSET`], where the
    /// caller then writes `message_len` bytes to the end of the datagram.
    ///
    /// # Errors
    /// [`Full`] if the buffer is shorter than [`ResponseRepr::buffer_len`]; then nothing is written.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut w = Writer::new(out.get_mut(..self.buffer_len()).ok_or(Full)?);
        let &Self { version, destination, source, message_len } = self;
        HandshakeHeader { kind: HandshakeKind::Response, version, destination, source }.write(&mut w)?;
        write_lengths(message_len, &mut w)?;
        Ok(w.len())
    }
}
