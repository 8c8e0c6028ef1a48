//! What the two ends share: one queue of buffers each way, behind one lock.

use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wraith_proto::{RxMeta, TxMeta, Via};

use crate::clock::Watcher;

/// A buffer and how much of it is a datagram.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) data: Box<[u8]>,
    pub(super) len: usize,
}

impl Buffer {
    pub(super) fn new(bytes: usize) -> Self {
        Self { data: vec![0; bytes].into(), len: 0 }
    }
}

/// Datagrams that wait for one end: a ring of fixed size.
#[derive(Debug)]
pub(super) struct Inbox {
    slots: Box<[Buffer]>,
    metas: Box<[Option<RxMeta>]>,
    head: usize,
    len: usize,
    /// An unparker was used, and no park has reported it.
    pub(super) unparked: bool,
}

impl Inbox {
    fn new(slots: usize, bytes: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| Buffer::new(bytes)).collect(),
            metas: vec![None; slots].into(),
            head: 0,
            len: 0,
            unparked: false,
        }
    }

    /// Takes the datagram of `len` bytes in `data` and leaves a free buffer there. The ring must not be full.
    pub(super) fn push(&mut self, meta: RxMeta, data: &mut Box<[u8]>, len: usize) {
        let tail = (self.head + self.len) % self.slots.len();
        std::mem::swap(&mut self.slots[tail].data, data);
        self.slots[tail].len = len;
        self.metas[tail] = Some(meta);
        self.len += 1;
    }

    /// Puts the oldest datagram in `slot` and keeps the buffer that was there.
    fn pop(&mut self, slot: &mut Buffer) -> Option<RxMeta> {
        if self.is_empty() {
            return None;
        }
        std::mem::swap(&mut self.slots[self.head], slot);
        let meta = self.metas[self.head].take();
        self.head = (self.head + 1) % self.slots.len();
        self.len -= 1;
        meta
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == self.slots.len()
    }
}

/// The wire between two ends.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) addrs: [SocketAddr; 2],
    inboxes: Mutex<[Inbox; 2]>,
    change: Condvar,
}

impl Link {
    pub(super) fn new(addrs: [SocketAddr; 2], slots: usize, bytes: usize) -> Self {
        let inboxes = Mutex::new([Inbox::new(slots, bytes), Inbox::new(slots, bytes)]);
        Self { addrs, inboxes, change: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, [Inbox; 2]> {
        // Nothing panics while the lock is held, so a poisoned one is as good as another.
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a datagram of the end `end` has anywhere to go, and how the other end will see it.
    pub(super) fn route(&self, end: usize, meta: &TxMeta) -> Option<RxMeta> {
        let local = self.addrs[end];
        let from_here = meta.from.is_none_or(|from| from == local.ip());
        (meta.to == self.addrs[1 - end] && from_here).then(|| RxMeta {
            from: local,
            to: Some(meta.to.ip()),
            via: Via::default(),
            ecn: meta.ecn,
        })
    }

    /// Takes the oldest datagram for `end` into `slot`.
    pub(super) fn receive(&self, end: usize, slot: &mut Buffer) -> Option<RxMeta> {
        let mut inboxes = self.lock();
        let was_full = inboxes[end].is_full();
        let meta = inboxes[end].pop(slot);
        drop(inboxes);
        if was_full {
            self.changed();
        }
        meta
    }

    /// Wakes whoever is parked at either end, to look again.
    pub(super) fn changed(&self) {
        self.change.notify_all();
    }

    /// Waits for a change, at most for `limit`.
    pub(super) fn wait<'a>(
        &self,
        inboxes: MutexGuard<'a, [Inbox; 2]>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, [Inbox; 2]> {
        match limit {
            None => self.change.wait(inboxes).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => self.change.wait_timeout(inboxes, limit).unwrap_or_else(PoisonError::into_inner).0,
        }
    }
}

impl Watcher for Link {
    fn clock_moved(&self) {
        // Under the lock, so that a park between its look at the clock and its wait is not missed.
        let _inboxes = self.lock();
        self.changed();
    }
}
