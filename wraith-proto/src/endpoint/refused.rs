//! Datagrams that the caller could not send because they are too large, traced back to their sessions.

use core::net::SocketAddr;

use super::Endpoint;
use crate::time::Instant;

/// Sessions remembered: those that can have sent in the batch that a caller has just tried to hand over.
const REMEMBERED: usize = 64;

/// Who sent large datagrams lately, so that a refused one is traced without a search through all sessions.
#[derive(Debug)]
pub(super) struct LargeSenders {
    /// Session indices, in a ring; a session in a row stands there once.
    indices: [u32; REMEMBERED],
    next: usize,
}

impl LargeSenders {
    pub(super) const NONE: Self = Self { indices: [u32::MAX; REMEMBERED], next: 0 };

    /// The session at `index` sent a datagram that not every path carries.
    pub(super) fn note(&mut self, index: u32) {
        if self.indices[self.next] != index {
            self.next = (self.next + 1) % REMEMBERED;
            self.indices[self.next] = index;
        }
    }
}

impl Endpoint {
    /// Says that this host refused a datagram of `len` bytes to `to` as too large (`EMSGSIZE`); it counts as dropped.
    ///
    /// The sessions there that sent large datagrams lately, of the 64 latest to do so, go on with what every path carries
    /// and search below `len`, or if they only asked for that size, below it. Nothing goes below 1,200 bytes, and what a
    /// refusal took away is asked for again after a minute (`PROTO §8.16`). Without `Transport::mtu_search` it changes
    /// nothing.
    pub fn too_large(&mut self, now: Instant, to: SocketAddr, len: usize) {
        self.advance(now);
        self.stats.datagrams_refused += 1;
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        for at in 0..REMEMBERED {
            let index = self.large_senders.indices[at];
            let Some(session) = self.sessions.get_mut(index) else { continue };
            if session.path.remote == to && session.is_open() {
                session.recovery.on_mtu_refused(self.now, len);
                self.report_mtu(index);
                self.settle(index);
            }
        }
    }
}
