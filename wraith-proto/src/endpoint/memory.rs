//! What an endpoint takes of memory, known before it is made.

use super::admit::Admission;
use super::handshake::Handshakes;
use super::paths::Paths;
use super::redial::Redials;
use super::{Endpoint, IDS_PER_SESSION};
use crate::config::Limits;
use crate::recovery::SentPool;
use crate::session::{KeyPool, Keys, SessionState};
use crate::stream::{DatagramPool, StreamPool};
use crate::util::{KeyTable, Links, Slab, Wheel};

/// The parts of [`Limits::memory`], in bytes.
///
/// All but `keys` and `expanded_keys`, the heap of `handshakes` and what is queued is taken when the endpoint is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Memory {
    /// State of the sessions: path, replay window, acknowledgements, recovery, congestion control.
    pub sessions: usize,
    /// Their keys and the secrets that these are derived from, which live on the heap from the handshake on, in the middle of
    /// an exchange.
    pub keys: usize,
    /// Expanded keys of those that have traffic, from their handshakes on, at the size of AES-256-GCM's with the default
    /// provider. Those of others may be larger, and may lie on another heap.
    pub expanded_keys: usize,
    /// Where sessions are found: by connection id, by peer, by deadline, by what they have to say.
    pub tables: usize,
    /// Records of packets on their way.
    pub records: usize,
    /// Streams, and gaps in what was received of them.
    pub streams: usize,
    /// Places of unreliable datagrams.
    pub datagrams: usize,
    /// Handshakes that are not over.
    pub handshakes: usize,
    /// Checks of addresses that peers may have moved to.
    pub checks: usize,
    /// What does not depend on any limit.
    pub fixed: usize,
}

impl Memory {
    pub(crate) const fn of(limits: &Limits) -> Self {
        let sessions = limits.sessions as usize;
        Self {
            sessions: Slab::<SessionState>::memory(sessions),
            keys: sessions * Keys::memory(),
            expanded_keys: KeyPool::memory(limits),
            tables: KeyTable::memory(routes(limits) as usize)
                + KeyTable::memory(sessions)
                + Wheel::memory(timers(limits) as usize)
                + 3 * Links::memory(sessions),
            records: SentPool::memory(limits.sent_packets, limits.sessions),
            streams: StreamPool::memory(limits.streams, limits.holes),
            datagrams: DatagramPool::memory(limits.datagrams),
            handshakes: Handshakes::memory(limits.handshakes) + Redials::memory(limits.handshakes),
            checks: Paths::memory(limits),
            fixed: size_of::<Endpoint>() + Admission::MEMORY,
        }
    }

    /// The sum of the parts.
    pub const fn total(&self) -> usize {
        self.sessions
            + self.keys
            + self.expanded_keys
            + self.tables
            + self.records
            + self.streams
            + self.datagrams
            + self.handshakes
            + self.checks
            + self.fixed
    }
}

/// Connection ids that an endpoint may have in its table.
pub(super) const fn routes(limits: &Limits) -> u32 {
    limits.sessions.saturating_mul(IDS_PER_SESSION).saturating_add(limits.handshakes)
}

/// Deadlines that an endpoint may have: one for each session, handshake and check, in this order.
pub(super) const fn timers(limits: &Limits) -> u32 {
    limits.sessions + limits.handshakes + Paths::capacity(limits)
}
