//! The transmit queue of a broken driver: datagrams wait in it for the flush that hands them on, rightly or not.

use std::io;

use wraith_drivers::{Driver, TxReport};
use wraith_proto::{TxMeta, TxQueue};

/// Committed datagrams in order, each in its own memory.
#[derive(Debug)]
pub struct Stage {
    pub(super) slots: Vec<Slot>,
    /// The first ones of `slots` are committed, the others free.
    pub(super) committed: usize,
    pub(super) capacity: usize,
    longest: usize,
    reserved: Option<(TxMeta, usize)>,
    quirk: Quirk,
}

/// One datagram.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    pub(super) meta: Option<TxMeta>,
    pub(super) data: Vec<u8>,
    pub(super) len: usize,
}

/// How a [`Stage`] misbehaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quirk {
    /// Not at all.
    None,
    /// A reservation takes its slot even if it is not committed.
    Leaks,
    /// The memory of the datagram before is lent again.
    LendsCommitted,
    /// A datagram is as long as its reservation.
    CommitsAll,
    /// A reservation outlives its commit.
    Recommits,
    /// There is always room.
    NeverFull,
    /// Long datagrams have no room.
    RefusesLong,
    /// What is too long is cut.
    Clips,
}

impl Stage {
    pub(super) fn new(capacity: usize, longest: usize, quirk: Quirk) -> Self {
        Self { slots: Vec::new(), committed: 0, capacity, longest, reserved: None, quirk }
    }

    /// Hands everything to `inner`, in order, as far as that has room; the rest stays.
    pub(super) fn pass_on<D: Driver>(&mut self, inner: &mut D) -> io::Result<TxReport> {
        let mut total = TxReport::default();
        loop {
            let done = self.fill(inner);
            self.retire(done);
            let report = inner.flush()?;
            total.sent += report.sent;
            total.dropped += report.dropped;
            total.syscalls += report.syscalls;
            total.join_too_long(&report);
            total.in_flight = report.in_flight + self.committed;
            if self.committed == 0 || report.sent + report.dropped == 0 {
                return Ok(total);
            }
        }
    }

    /// Commits to `inner` as many as it has room for, and says how many.
    fn fill<D: Driver>(&self, inner: &mut D) -> usize {
        for (index, slot) in self.committed().iter().enumerate() {
            let Some(meta) = &slot.meta else { continue };
            let Some(room) = inner.tx().reserve(meta, slot.len) else { return index };
            room[..slot.len].copy_from_slice(&slot.data[..slot.len]);
            inner.tx().commit(slot.len);
        }
        self.committed
    }

    /// Forgets the oldest `count` datagrams.
    pub(super) fn retire(&mut self, count: usize) {
        self.slots[..self.committed].rotate_left(count);
        self.committed -= count;
    }

    /// Adds a datagram, whether there is room or not.
    pub(super) fn add(&mut self, meta: &TxMeta, data: &[u8]) {
        let slot = self.free();
        slot.data.clear();
        slot.data.extend_from_slice(data);
        (slot.meta, slot.len) = (Some(*meta), data.len());
        self.committed += 1;
    }

    pub(super) fn committed(&self) -> &[Slot] {
        &self.slots[..self.committed]
    }

    pub(super) fn committed_mut(&mut self) -> &mut [Slot] {
        &mut self.slots[..self.committed]
    }

    pub(super) fn end_reservation(&mut self) {
        self.reserved = None;
    }

    fn free(&mut self) -> &mut Slot {
        if self.slots.len() == self.committed {
            self.slots.push(Slot::default());
        }
        &mut self.slots[self.committed]
    }

    /// Whether there is room for a datagram of `len` bytes.
    fn has_room(&self, len: usize) -> bool {
        let slots = self.committed < self.capacity || self.quirk == Quirk::NeverFull;
        let longest = match self.quirk {
            Quirk::RefusesLong => self.longest / 2,
            Quirk::Clips => self.longest + 100,
            _ => self.longest,
        };
        slots && len <= longest
    }
}

impl TxQueue for Stage {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        self.reserved = None;
        if !self.has_room(len) {
            return None;
        }
        if self.quirk == Quirk::Leaks {
            self.capacity -= 1;
        }
        self.reserved = Some((*meta, len));
        let slot = self.free();
        slot.data.resize(slot.data.len().max(len), 0);
        let lent = match self.quirk {
            Quirk::LendsCommitted => self.committed.saturating_sub(1),
            _ => self.committed,
        };
        let slot = &mut self.slots[lent];
        slot.data.resize(slot.data.len().max(len), 0);
        Some(&mut slot.data[..len])
    }

    fn commit(&mut self, len: usize) {
        let Some((meta, reserved)) = self.reserved else { return };
        if self.quirk != Quirk::Recommits {
            self.reserved = None;
        }
        let mut len = if self.quirk == Quirk::CommitsAll { reserved } else { len.min(reserved) };
        len = len.min(self.longest);
        if self.quirk == Quirk::LendsCommitted && self.committed > 0 {
            let lent = self.slots[self.committed - 1].data[..len].to_vec();
            self.free().data = lent;
        }
        if self.quirk == Quirk::Leaks {
            self.capacity += 1;
        }
        let slot = self.free();
        slot.data.resize(slot.data.len().max(len), 0);
        (slot.meta, slot.len) = (Some(meta), len);
        self.committed += 1;
    }
}
