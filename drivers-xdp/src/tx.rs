//! The queue that lends slots of the shared memory, and what is committed in it.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use wraith_proto::{TxMeta, TxQueue};

use crate::ring::{Kicked, Slot, Transmit};
use crate::wire::{self, Flow};

/// Where a datagram begins in its slot: behind the longest headers, on a cache line of its own.
pub(crate) const PAYLOAD_AT: usize = 64;

/// Datagrams in slots of the shared memory.
#[derive(Debug)]
pub struct Tx {
    transmit: Transmit,
    /// Datagrams wait here until a flush, and longer if the system's socket is full.
    committed: VecDeque<Committed>,
    free: Vec<Slot>,
    /// What was reserved last, in the slot that `free` ends with.
    reserved: Option<(TxMeta, usize)>,
    /// Longest IP packet, in bytes.
    mtu: usize,
}

#[derive(Debug)]
struct Committed {
    slot: Slot,
    meta: TxMeta,
    len: usize,
}

impl Tx {
    pub(crate) fn new(mut transmit: Transmit, mtu: usize) -> Self {
        let free = transmit.take_slots();
        Self { committed: VecDeque::with_capacity(free.len()), free, transmit, reserved: None, mtu }
    }

    /// Where the oldest committed datagram is to go. Ends a reservation.
    pub(crate) fn front(&mut self) -> Option<TxMeta> {
        self.reserved = None;
        self.committed.front().map(|front| front.meta)
    }

    /// Whether the oldest committed datagram is no longer than the device carries: over IPv6 that is less than over IPv4.
    pub(crate) fn front_fits(&self) -> bool {
        self.committed.front().is_some_and(|front| front.len <= self.longest(front.meta.to.ip()))
    }

    /// The oldest committed datagram.
    pub(crate) fn front_bytes(&mut self) -> &[u8] {
        let Some(front) = self.committed.front_mut() else { return &[] };
        &self.transmit.bytes(&mut front.slot)[PAYLOAD_AT..PAYLOAD_AT + front.len]
    }

    /// Puts the oldest committed datagram into the ring, behind its headers.
    pub(crate) fn push_front(&mut self, flow: &Flow) {
        let Some(Committed { mut slot, len, .. }) = self.committed.pop_front() else { return };
        let (start, end) = (PAYLOAD_AT - wire::header_bytes(flow.to.ip()), PAYLOAD_AT + len);
        let (headers, payload) = self.transmit.bytes(&mut slot)[start..end].split_at_mut(PAYLOAD_AT - start);
        wire::write(flow, headers, payload);
        self.transmit.push(slot, start..end);
    }

    /// Takes out the oldest committed datagram: it has left otherwise, or never will.
    pub(crate) fn take_front(&mut self) {
        self.free.extend(self.committed.pop_front().map(|front| front.slot));
    }

    /// Has the kernel take what stands in the ring.
    ///
    /// # Errors
    /// The device is gone.
    pub(crate) fn kick(&mut self, zero_copy: bool) -> io::Result<Kicked> {
        let kicked = self.transmit.kick(zero_copy)?;
        // The slots that come back are used again first, while caches still have them.
        self.reclaim();
        Ok(kicked)
    }

    fn reclaim(&mut self) {
        while let Some(slot) = self.transmit.reclaim() {
            self.free.push(slot);
        }
    }

    /// Datagrams that are committed and that nobody has taken.
    pub(crate) fn in_flight(&self) -> usize {
        self.committed.len() + self.transmit.waiting()
    }

    /// The other half's counters are read through this one.
    pub(crate) fn transmit(&self) -> &Transmit {
        &self.transmit
    }

    fn longest(&self, to: IpAddr) -> usize {
        self.mtu.saturating_sub(wire::header_bytes(to) - wire::ETHERNET_HEADER)
    }
}

impl TxQueue for Tx {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        self.reserved = None;
        if len > self.longest(IpAddr::V4(Ipv4Addr::UNSPECIFIED)) {
            return None;
        }
        if self.free.is_empty() {
            self.reclaim();
        }
        let slot = self.free.last_mut()?;
        self.reserved = Some((*meta, len));
        self.transmit.bytes(slot).get_mut(PAYLOAD_AT..PAYLOAD_AT + len)
    }

    fn commit(&mut self, len: usize) {
        if let Some((meta, reserved)) = self.reserved.take()
            && let Some(slot) = self.free.pop()
        {
            self.committed.push_back(Committed { slot, meta, len: len.min(reserved) });
        }
    }
}
