//! The wire format, apart from all keys and state.
//!
//! Two kinds of types, after the fashion of smoltcp: a *view* (`InitPacket`, [`Ack`], [`Params`] …) is
//! checked once when it is parsed and has accessors that cannot fail; a *repr* (`InitRepr`, [`AckRepr`] …)
//! is a value that knows how to write itself. [`Frame`] is both. Nothing here allocates, reads a clock,
//! knows a key or keeps state between datagrams, so conformance tools can use it alone.
//!
//! A datagram is read in this order:
//!
//! 1. [`is_handshake`] tells the form (`PROTO §2.2`).
//! 2. A handshake datagram: [`HandshakeHeader::parse`] works in every version, [`Handshake::parse`] in
//!    version 1. The decrypted Noise payload is a [`Params`] list.
//! 3. A protected packet: [`ProtectedPacket::parse`] gives the connection id and the sample,
//!    [`apply_mask`] removes header protection, [`PacketHeader::parse`] and [`expand_number`] give the
//!    packet number. The decrypted body goes through [`split_body`] to [`Frames`].
//!
//! The clauses are those of `docs/PROTOCOL.md`.

mod ack;
mod cursor;
mod frame;
mod handshake;
mod key_share;
mod lists;
mod packet;
mod params;
pub mod varint;

use core::fmt;

pub use ack::{Ack, AckRanges, AckRepr, EcnCounts, MAX_ACK_RANGES};
pub use cursor::{Reader, Writer};
pub use frame::{Frame, FrameError, Frames, kind as frame_kind};
pub use handshake::{
    CookiePacket, CookieRepr, FINISH_MESSAGE_OFFSET, FinishPacket, FinishRepr, Handshake, HandshakeHeader,
    HandshakeKind, INIT_COOKIE_OFFSET, INIT_MESSAGE_OFFSET, InitPacket, InitRepr, RESPONSE_MESSAGE_OFFSET,
    ResponsePacket, ResponseRepr, VersionsPacket, VersionsRepr, is_handshake,
};
pub use key_share::{GROUP_X25519, KeyShare};
pub use lists::{MAX_PROTOCOL_LEN, MAX_PROTOCOLS, ProtocolIter, Protocols, Suites, Versions};
pub use packet::{
    MIN_PACKET_LEN, PacketHeader, ProtectedPacket, SAMPLE_LEN, apply_mask, expand_number, split_body,
    unprotected, visible_destination,
};
pub use params::{MAX_HIGH_IDS, Params, ParamsWriter, id as parameter_id};

/// The version spoken here (`PROTO §2.7`).
pub const VERSION: u32 = 1;

/// Bytes of the header that every handshake datagram of every version begins with (`PROTO §2.3`, `§2.6`).
pub const HANDSHAKE_HEADER_LEN: usize = 21;

/// Bytes of the header of a protected packet (`PROTO §5.1`).
pub const PACKET_HEADER_LEN: usize = 13;

/// Bytes of a cookie (`PROTO §2.3`).
pub const COOKIE_LEN: usize = 16;

/// Bytes of the outer MAC of FINISH (`PROTO §4.2`).
pub const FINISH_MAC_LEN: usize = 16;

/// The 8 bytes by which a receiver finds its session (`PROTO §5.11`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId(pub [u8; 8]);

impl ConnectionId {
    /// "Not known yet" as destination, "no state here" as source (`PROTO §2.3`).
    pub const ZERO: Self = Self([0; 8]);

    /// The id as a big-endian number.
    #[inline]
    pub const fn as_u64(self) -> u64 {
        u64::from_be_bytes(self.0)
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.as_u64())
    }
}

/// Bytes that break a rule of the format: too short, too long, or a value that is not allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed bytes")
    }
}

impl core::error::Error for Malformed {}

/// What was to be written does not fit: the buffer is too short, or a number has no encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("does not fit")
    }
}

impl core::error::Error for Full {}

/// Whether a version is of the form `0x?a?a?a?a`: listed at random, never spoken (`PROTO §2.7`).
pub const fn is_reserved_version(version: u32) -> bool {
    version & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// Whether a parameter id is of the form 31·n + 27: sent at random, always ignored (`PROTO §4.4`).
pub const fn is_reserved_parameter(id: u64) -> bool {
    id % 31 == 27
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn reserved_versions_have_an_a_in_every_low_nibble() {
        for version in [0x0a0a_0a0a, 0xfafa_fafa, 0x1a2a_3a4a] {
            assert!(is_reserved_version(version));
        }
        for version in [0, VERSION, 0x0a0a_0a0b, 0xa0a0_a0a0] {
            assert!(!is_reserved_version(version));
        }
    }

    #[test]
    fn reserved_parameters_are_31_n_plus_27() {
        for id in [27, 58, 31 * 1_000_003 + 27] {
            assert!(is_reserved_parameter(id));
        }
        for known in 0..=22 {
            assert!(!is_reserved_parameter(known));
        }
    }

    #[test]
    fn a_connection_id_prints_as_hex_and_reads_as_big_endian() {
        let id = ConnectionId([0x01, 0, 0, 0, 0, 0, 0xab, 0xcd]);
        assert_eq!(format!("{id:?}"), "010000000000abcd");
        assert_eq!(id.as_u64(), 0x0100_0000_0000_abcd);
        assert_eq!(ConnectionId::ZERO.as_u64(), 0);
    }
}
