//! What a tracer is told: packets and sessions as they live, and secrets for a key log.
//!
//! This module is there with the feature `trace`. An endpoint with a tracer sends the same bytes at the same times as
//! one without, and nothing here allocates per packet.

use core::fmt;
use core::time::Duration;

use crate::crypto::{PeerId, Suite};
use crate::error::{CloseReason, DropReason};
use crate::session::SessionHandle;
use crate::time::Instant;
use crate::wire::{ConnectionId, Frames, HandshakeHeader, HandshakeKind};

/// Told what an endpoint does; set by [`Endpoint::set_tracer`](crate::Endpoint::set_tracer).
pub trait Tracer: Send + Sync {
    /// Takes an event of a session, or of none that is known. Called in the middle of the endpoint's work: what takes
    /// long here holds up the session.
    fn event(&mut self, now: Instant, session: Option<SessionHandle>, event: &TraceEvent<'_>);

    /// Whether it is told secrets, too: [`TraceEvent::PacketKey`] and [`TraceEvent::HeaderKey`]. Asked when there are
    /// any.
    fn wants_secrets(&self) -> bool {
        false
    }
}

/// What an endpoint did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TraceEvent<'a> {
    /// A handshake message was sent.
    HandshakeSent(HandshakeMessage),
    /// A handshake message arrived; what follows says whether it was taken.
    HandshakeReceived(HandshakeMessage),
    /// The handshake is done.
    Established(Established<'a>),
    /// The packet key of one direction in one epoch.
    PacketKey(PacketKey<'a>),
    /// The header protection key of one direction.
    HeaderKey(HeaderKey<'a>),
    /// This end sends with the keys of another epoch.
    EpochBegun {
        /// The epoch.
        epoch: u32,
        /// Number of the first packet in it.
        first: u64,
    },
    /// A packet was sent.
    PacketSent(Packet<'a>),
    /// A packet authenticated, and its frames are about to take effect.
    PacketReceived(Packet<'a>),
    /// A packet in flight was acknowledged.
    PacketAcked {
        /// Its number.
        number: u64,
    },
    /// A packet was given up: what it carried is sent again.
    PacketLost {
        /// Its number.
        number: u64,
        /// Why.
        cause: LossCause,
        /// The largest number that the peer has acknowledged.
        largest_acked: Option<u64>,
    },
    /// Packets that were given up arrived after all.
    SpuriousLoss {
        /// The first of their numbers.
        first: u64,
        /// The last one; all between are meant.
        last: u64,
    },
    /// A datagram had no effect.
    DatagramDropped {
        /// Why.
        reason: DropReason,
        /// Its bytes.
        size: usize,
    },
    /// Recovery metrics changed.
    Metrics(Metrics),
    /// Datagrams of the session have another size.
    MtuUpdated {
        /// Bytes of UDP payload before.
        old: u16,
        /// And from now on.
        new: u16,
        /// Nothing larger is asked for, for the time being (`PROTO §8.13`).
        done: bool,
    },
    /// The session ended.
    Closed {
        /// Why.
        reason: CloseReason,
    },
}

impl TraceEvent<'_> {
    /// Whether it is told only to a tracer that [wants secrets](Tracer::wants_secrets).
    pub const fn is_secret(&self) -> bool {
        matches!(self, Self::PacketKey(_) | Self::HeaderKey(_))
    }
}

/// A handshake datagram (`PROTO §2.3`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeMessage {
    /// What everybody can see of it.
    pub header: HandshakeHeader,
    /// Bytes of the message, without a packet that follows it in its datagram when sent, with it when received.
    pub size: usize,
}

impl HandshakeMessage {
    /// The initiator's connection id: what all messages of one handshake have in common.
    pub const fn initiator(&self) -> ConnectionId {
        match self.header.kind {
            HandshakeKind::Init | HandshakeKind::Finish => self.header.source,
            HandshakeKind::Response | HandshakeKind::Cookie | HandshakeKind::Versions => {
                self.header.destination
            }
        }
    }
}

/// The connection ids of the handshake: both ends name a session by them, and captures show them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionIds {
    /// The id that the initiator gave itself.
    pub initiator: ConnectionId,
    /// The id that the responder gave itself.
    pub responder: ConnectionId,
}

/// Who sent the first handshake message of a session, and who answered (`PROTO §1.3`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Sent the first message.
    Initiator,
    /// Answered it.
    Responder,
}

/// Which way a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the initiator to the responder.
    ToResponder,
    /// From the responder to the initiator.
    ToInitiator,
}

/// A session that begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Established<'a> {
    /// Its ids.
    pub ids: SessionIds,
    /// What this end is in it.
    pub role: Role,
    /// Who the other end is.
    pub peer: PeerId,
    /// What protects its packets.
    pub suite: Suite,
    /// The application protocol.
    pub protocol: &'a [u8],
}

/// A packet key with its nonce prefix (`PROTO §3.6`).
#[derive(Clone, Copy)]
pub struct PacketKey<'a> {
    /// The session.
    pub ids: SessionIds,
    /// What the key is for.
    pub suite: Suite,
    /// Which packets it opens.
    pub direction: Direction,
    /// The epoch of these packets.
    pub epoch: u32,
    /// The key.
    pub key: &'a [u8; 32],
    /// The fixed part of the nonce (`PROTO §5.6`).
    pub prefix: &'a [u8; 16],
}

/// A header protection key (`PROTO §5.7`), which stays for the whole session.
#[derive(Clone, Copy)]
pub struct HeaderKey<'a> {
    /// The session.
    pub ids: SessionIds,
    /// What the key is for.
    pub suite: Suite,
    /// Which packets it uncovers.
    pub direction: Direction,
    /// The key.
    pub key: &'a [u8; 32],
}

/// A protected packet, after it was opened or before it was sealed.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    /// Its number.
    pub number: u64,
    /// The epoch whose keys protect it.
    pub epoch: u32,
    /// Its bytes, header and tag included.
    pub size: usize,
    /// Bytes of stream data and datagrams in it.
    pub payload: usize,
    /// Its frames.
    pub frames: Frames<'a>,
}

/// Why a packet was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LossCause {
    /// Enough later packets were acknowledged (RFC 9002 §6.1.1).
    PacketThreshold,
    /// A later packet was acknowledged, and time enough has passed (RFC 9002 §6.1.2).
    TimeThreshold,
    /// Nothing was acknowledged for so long that a probe carries its frames (RFC 9002 §6.2.4). It does not count as
    /// lost.
    Probe,
}

/// What loss recovery and congestion control know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Latest round-trip sample, zero before the first.
    pub latest_rtt: Duration,
    /// Smoothed round-trip time (RFC 9002 §5.3), zero before the first sample.
    pub smoothed_rtt: Duration,
    /// Mean deviation from it, zero before the first sample.
    pub rtt_variation: Duration,
    /// Smallest round-trip sample, zero before the first.
    pub min_rtt: Duration,
    /// Probe timeouts since the last acknowledgement.
    pub pto_count: u32,
    /// Congestion window, in bytes.
    pub congestion_window: u64,
    /// Window at which slow start ends, none before the first congestion.
    pub ssthresh: Option<u64>,
    /// Bytes sent and neither acknowledged nor given up.
    pub bytes_in_flight: u64,
    /// Packets sent and neither acknowledged nor given up.
    pub packets_in_flight: u32,
    /// Times that the congestion window was reduced.
    pub congestion_events: u64,
}

impl fmt::Debug for PacketKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketKey")
            .field("ids", &self.ids)
            .field("direction", &self.direction)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HeaderKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderKey")
            .field("ids", &self.ids)
            .field("direction", &self.direction)
            .finish_non_exhaustive()
    }
}
