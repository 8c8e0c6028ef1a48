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
