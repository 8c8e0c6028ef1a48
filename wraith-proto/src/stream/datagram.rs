//! Unreliable datagrams that wait to be sent.

use bytes::Bytes;

use crate::util::{Links, List, Slab};

/// Datagrams of all sessions that wait to be sent.
#[derive(Debug)]
pub(crate) struct DatagramPool {
    slab: Slab<Bytes>,
    links: Links,
    per_session: u32,
}

/// The waiting datagrams of one session.
#[derive(Debug, Default)]
pub(crate) struct DatagramQueue {
    list: List,
    /// A datagram was refused because others wait; an event tells when there is room again.
    blocked: bool,
}

impl DatagramPool {
    /// A pool of `capacity` datagrams, of which one session takes at most a quarter.
    pub(crate) fn new(capacity: u32) -> Self {
        Self { slab: Slab::new(capacity), links: Links::new(capacity), per_session: (capacity / 4).max(1) }
    }

    pub(crate) const fn memory(capacity: u32) -> usize {
        Slab::<Bytes>::memory(capacity as usize) + Links::memory(capacity as usize)
    }

    /// Queues a datagram; `false` if there is no room. With an empty queue, that is the fault of other sessions.
    pub(crate) fn push(&mut self, queue: &mut DatagramQueue, data: Bytes) -> bool {
        let slot = if queue.list.len() < self.per_session { self.slab.insert(data).ok() } else { None };
        if let Some(slot) = slot {
            self.links.push_back(&mut queue.list, slot)
        } else {
            queue.blocked = !queue.list.is_empty();
            false
        }
    }

    /// The next datagram to send.
    pub(crate) fn front(&self, queue: &DatagramQueue) -> Option<&Bytes> {
        self.slab.get(queue.list.front()?)
    }

    /// Removes the next datagram; returns whether a refused sender may try again.
    pub(crate) fn pop(&mut self, queue: &mut DatagramQueue) -> bool {
        if let Some(slot) = self.links.pop_front(&mut queue.list) {
            self.slab.remove(slot);
        }
        let unblocked = queue.blocked && queue.list.len() * 2 <= self.per_session;
        queue.blocked &= !unblocked;
        unblocked
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> u32 {
        self.slab.len()
    }

    pub(crate) fn clear(&mut self, queue: &mut DatagramQueue) {
        while let Some(slot) = self.links.pop_front(&mut queue.list) {
            self.slab.remove(slot);
        }
    }

    /// Datagrams that can still be queued, by all sessions together.
    pub(crate) fn free_slots(&self) -> u32 {
        self.slab.capacity() - self.slab.len()
    }
}

impl DatagramQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
