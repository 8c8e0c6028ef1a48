//! VERSIONS: the answer to an unknown version (`PROTO §4.16`).

use super::{HandshakeHeader, HandshakeKind};
use crate::wire::{ConnectionId, Full, HANDSHAKE_HEADER_LEN, Malformed, Reader, Versions, Writer};

/// A checked VERSIONS, the same in every version (`PROTO §2.6`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionsPacket<'a> {
    header: HandshakeHeader,
    versions: Versions<'a>,
}

impl<'a> VersionsPacket<'a> {
    /// Checks a datagram.
    ///
    /// # Errors
    /// [`Malformed`] if it is no VERSIONS, has a version or a source, or lists none or part of one.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(datagram);
        let header = HandshakeHeader::read(&mut reader)?;
        let fits = header.kind == HandshakeKind::Versions && header.version == 0;
        if !fits || header.source != ConnectionId::ZERO {
            return Err(Malformed);
        }
        Ok(Self { header, versions: Versions::parse(reader.rest())? })
    }

    /// The initiator's connection id.
    pub const fn destination(&self) -> ConnectionId {
        self.header.destination
    }

    /// The versions that the responder speaks, and perhaps reserved ones (`PROTO §2.7`).
    pub fn versions(&self) -> impl ExactSizeIterator<Item = u32> + Clone + 'a {
        self.versions.iter()
    }
}

/// A VERSIONS to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionsRepr<'a> {
    /// The initiator's connection id.
    pub destination: ConnectionId,
    /// What to list, at least one.
    pub versions: &'a [u32],
}

impl VersionsRepr<'_> {
    /// Bytes of the datagram; no more than those of the INIT that is answered (`PROTO §4.16`).
    pub const fn buffer_len(&self) -> usize {
        HANDSHAKE_HEADER_LEN + 4 * self.versions.len()
    }

    /// Writes the datagram; returns its length.
    ///
    /// # Errors
    /// [`Full`] if the buffer is shorter than [`VersionsRepr::buffer_len`] or there is nothing to list;
    /// then nothing is written.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let &Self { destination, versions } = self;
        if versions.is_empty() {
            return Err(Full);
        }
        let mut w = Writer::new(out.get_mut(..self.buffer_len()).ok_or(Full)?);
        let kind = HandshakeKind::Versions;
        HandshakeHeader { kind, version: 0, destination, source: ConnectionId::ZERO }.write(&mut w)?;
        for version in versions {
            w.u32(*version)?;
        }
        Ok(w.len())
    }
}
