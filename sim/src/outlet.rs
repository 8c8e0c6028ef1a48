//! The sending queue of a node: what the endpoint commits goes through the tap onto the link.

use std::fmt;
use std::net::SocketAddr;

use wraith_proto::{Instant, TxMeta, TxQueue};

use crate::link::Link;
use crate::node::Flight;
use crate::transcript::Transcript;

/// A datagram that is about to enter a link.
#[derive(Debug)]
pub struct Passing<'a> {
    /// Number of the sender: a node of a network, or 0 for the left and 1 for the right one of a pair.
    pub sender: u32,
    /// When it is sent.
    pub at: Instant,
    /// Where it goes.
    pub to: SocketAddr,
    /// The datagram, to be read or altered.
    pub bytes: &'a mut Vec<u8>,
}

/// What a tap decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The datagram goes on, as altered.
    Pass,
    /// It is lost.
    Drop,
}

type Closure = Box<dyn FnMut(Passing<'_>) -> Verdict>;

/// A listener on the wire, and the room that sending needs.
pub(crate) struct Tap {
    closure: Option<Closure>,
    altered: Vec<u8>,
    room: Vec<u8>,
}

/// The [`TxQueue`] of one node for one turn.
pub(crate) struct Outlet<'a> {
    pub(crate) sender: u32,
    pub(crate) from: SocketAddr,
    pub(crate) now: Instant,
    pub(crate) link: &'a mut Link<Flight>,
    pub(crate) transcript: &'a mut Transcript,
    pub(crate) tap: &'a mut Tap,
    pub(crate) reserved: Option<TxMeta>,
}

impl Tap {
    pub(crate) fn new() -> Self {
        Self { closure: None, altered: Vec::new(), room: vec![0; 65_535] }
    }

    pub(crate) fn set(&mut self, closure: Option<Closure>) {
        self.closure = closure;
    }
}

impl TxQueue for Outlet<'_> {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        let room = self.tap.room.get_mut(..len)?;
        self.reserved = Some(*meta);
        Some(room)
    }

    fn commit(&mut self, len: usize) {
        let Some(meta) = self.reserved.take() else {
            return;
        };
        let datagram = &self.tap.room[..len];
        // The transcript holds what the endpoint made, whatever the tap does to it.
        self.transcript.record(self.sender, self.now, datagram);
        let flight = Flight::new(&meta, self.from);
        let Some(closure) = &mut self.tap.closure else {
            self.link.push(self.now, &flight, datagram);
            return;
        };
        let bytes = &mut self.tap.altered;
        bytes.clear();
        bytes.extend_from_slice(datagram);
        let passing = Passing { sender: self.sender, at: self.now, to: meta.to, bytes };
        if closure(passing) == Verdict::Pass {
            self.link.push(self.now, &flight, &self.tap.altered);
        }
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").field("listening", &self.closure.is_some()).finish_non_exhaustive()
    }
}
