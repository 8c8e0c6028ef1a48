//! Streams: reliable, ordered by offset, lent and pulled instead of buffered.
//!
//! A stream has up to two halves, [`SendHalf`] and [`RecvHalf`]. Both live in one slot of a pool that
//! all sessions share; a keyed table finds the slot of (session, stream id).

mod assembler;
mod datagram;
mod missing;
mod pool;
mod recv;
mod send;

pub use assembler::Assembler;
pub(crate) use datagram::{DatagramPool, DatagramQueue};
pub(crate) use pool::{Bits, SessionStreams, Stream, StreamPool};
pub(crate) use recv::{Arrival, RecvHalf};
pub(crate) use send::{Piece, SendHalf};

use crate::crypto::Role;

/// Priority levels of streams; level 0 is sent first.
pub(crate) const LEVELS: usize = 8;

/// Priority level of a new stream.
pub(crate) const DEFAULT_LEVEL: u8 = 3;

/// A stream of one session (`PROTO §6.5`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StreamId(pub(crate) u32);

impl StreamId {
    pub(crate) const fn new(opener: Role, dir: Dir, sequence: u32) -> Self {
        Self(sequence << 2 | (dir as u32) << 1 | matches!(opener, Role::Responder) as u32)
    }

    /// Whether both ends may send.
    pub const fn dir(self) -> Dir {
        if self.0 & 2 == 0 { Dir::Bi } else { Dir::Uni }
    }

    /// Place among the streams of its opener and direction, from 0.
    pub const fn sequence(self) -> u32 {
        self.0 >> 2
    }

    /// The number on the wire.
    pub const fn as_u32(self) -> u32 {
        self.0
    }

    pub(crate) const fn opener(self) -> Role {
        if self.0 & 1 == 0 { Role::Initiator } else { Role::Responder }
    }
}

/// Who may send on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dir {
    /// Both ends.
    Bi = 0,
    /// The end that opened it.
    Uni = 1,
}

/// Streams of one session in one direction: how many were opened by each end, and how many may be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamCount {
    /// Streams that this end opened.
    pub(crate) opened: u32,
    /// Streams that the peer lets this end open, in all.
    pub(crate) limit: u32,
    /// Streams that the peer opened, those opened by implication counted.
    pub(crate) accepted: u32,
    /// Streams of the peer that are over.
    pub(crate) finished: u32,
    /// Streams that this end lets the peer open, in all; the last value announced.
    pub(crate) allowed: u32,
}
