//! FINISH: the third Noise message under an outer MAC, and perhaps a protected packet behind.

use super::{HandshakeHeader, HandshakeKind, LENGTHS_LEN, read_lengths, write_lengths};
use crate::wire::{ConnectionId, FINISH_MAC_LEN, Full, HANDSHAKE_HEADER_LEN, Malformed, Reader, Writer};

/// Where the Noise message of FINISH begins.
pub const FINISH_MESSAGE_OFFSET: usize = HANDSHAKE_HEADER_LEN + LENGTHS_LEN;

/// A checked FINISH. Its MAC is not checked here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FinishPacket<'a> {
    header: HandshakeHeader,
    authenticated: &'a [u8],
    mac: &'a [u8; FINISH_MAC_LEN],
    message: &'a [u8],
}

impl<'a> FinishPacket<'a> {
    /// Checks the FINISH at the front of a datagram; whatever stands behind it is not looked at.
    ///
    /// # Errors
    /// [`Malformed`] if it is no FINISH of [`VERSION`](crate::wire::VERSION), has a fragment offset (`PROTO §2.4`), or
    /// message or MAC are cut off.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(datagram);
        let header = HandshakeHeader::read_as(HandshakeKind::Finish, &mut reader)?;
        let message_len = read_lengths(&mut reader)?;
        let message = reader.take(message_len)?;
        let authenticated = &datagram[..reader.position()];
        Ok(Self { header, authenticated, mac: reader.array()?, message })
    }

    /// The responder's connection id.
    pub const fn destination(&self) -> ConnectionId {
        self.header.destination
    }

    /// The initiator's connection id.
    pub const fn source(&self) -> ConnectionId {
        self.header.source
    }

    /// The third Noise message.
    pub const fn message(&self) -> &'a [u8] {
        self.message
    }

    /// What the outer MAC covers: every byte before it (`PROTO §4.2`).
    pub const fn authenticated(&self) -> &'a [u8] {
        self.authenticated
    }

    /// The outer MAC.
    pub const fn mac(&self) -> &'a [u8; FINISH_MAC_LEN] {
        self.mac
    }

    /// Bytes of FINISH with its MAC. If the datagram has more, the rest is one protected packet (`PROTO §2.3`).
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub const fn len(&self) -> usize {
        self.authenticated.len() + FINISH_MAC_LEN
    }
}

/// A FINISH to be written, all but its Noise message and MAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FinishRepr {
    /// The version spoken.
    pub version: u32,
    /// The responder's connection id.
    pub destination: ConnectionId,
    /// The initiator's connection id.
    pub source: ConnectionId,
    /// Bytes of the third Noise message.
    pub message_len: u16,
}

impl FinishRepr {
    /// Where the outer MAC begins; it covers every byte before (`PROTO §4.2`).
    pub const fn mac_offset(&self) -> usize {
        FINISH_MESSAGE_OFFSET + self.message_len as usize
    }

    /// Bytes with message and MAC. A protected packet may follow in the same datagram (`PROTO §4.18`).
    pub const fn buffer_len(&self) -> usize {
        self.mac_offset() + FINISH_MAC_LEN
    }

    /// Writes everything before the Noise message; returns [`FINISH_MESSAGE_OFFSET`], where the caller
    /// then writes `message_len` bytes, and the MAC at [`FinishRepr::mac_offset`].
    ///
    /// # Errors
    /// [`Full`] if the buffer is shorter than [`FinishRepr::buffer_len`]; then nothing is written.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut w = Writer::new(out.get_mut(..self.buffer_len()).ok_or(Full)?);
        let &Self { version, destination, source, message_len } = self;
        HandshakeHeader { kind: HandshakeKind::Finish, version, destination, source }.write(&mut w)?;
        write_lengths(message_len, &mut w)?;
        Ok(w.len())
    }
}
