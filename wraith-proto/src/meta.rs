//! What travels beside a datagram: addresses, the driver's reply token, the ECN mark.

use core::net::{IpAddr, SocketAddr};

/// A driver's opaque reply token (a queue, a neighbour entry).
///
/// The core keeps the latest one of each path and hands it back on replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Via(pub u32);

/// Explicit Congestion Notification field of the IP header (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable, `00`.
    #[default]
    NotEct,
    /// ECN-capable transport 0, `10`.
    Ect0,
    /// ECN-capable transport 1, `01`.
    Ect1,
    /// Congestion experienced, `11`.
    Ce,
}

impl Ecn {
    /// The mark in the low two bits of a byte: of IPv4's type of service, or of IPv6's traffic class.
    pub const fn from_bits(byte: u8) -> Self {
        match byte & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The mark as two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }
}

/// Where a received datagram came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxMeta {
    /// The sender's address.
    pub from: SocketAddr,
    /// The local address it was sent to, if the driver knows it.
    pub to: Option<IpAddr>,
    /// The driver's reply token.
    pub via: Via,
    /// The ECN mark it arrived with.
    pub ecn: Ecn,
}

/// Where a datagram is to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxMeta {
    /// The receiver's address.
    pub to: SocketAddr,
    /// The local address to send from, if the path has one.
    pub from: Option<IpAddr>,
    /// The driver's reply token of this path.
    pub via: Via,
    /// The ECN mark to send with.
    pub ecn: Ecn,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3168 §5, whatever the other six bits are (DSCP, RFC 2474).
    #[test]
    fn a_mark_is_two_bits_of_a_byte() {
        for (bits, mark) in [(0b00, Ecn::NotEct), (0b01, Ecn::Ect1), (0b10, Ecn::Ect0), (0b11, Ecn::Ce)] {
            assert_eq!((mark.bits(), Ecn::from_bits(bits), Ecn::from_bits(0xb8 | bits)), (bits, mark, mark));
        }
    }
}
