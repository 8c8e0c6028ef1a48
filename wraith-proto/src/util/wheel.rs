//! A hierarchical timing wheel: one deadline per id, exact to the nanosecond.

use alloc::boxed::Box;
use alloc::vec;

use super::{Links, List};
use crate::time::Instant;

/// A tick of the lowest level is 2^15 ns, 32.8 µs.
const TICK_BITS: u32 = 15;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// Enough for every tick of the clock, so no deadline is ever beyond the top level.
const LEVELS: usize = (u64::BITS - TICK_BITS).div_ceil(SLOT_BITS) as usize;
/// The slot behind those of the levels: entries of the present tick that were found due.
const DUE: usize = LEVELS * SLOTS;
/// The minimum of a slot that loses it is searched anew only among so few entries.
const MAX_SCAN: u32 = 8;

/// Deadlines of the ids `0..capacity`, armed, cancelled and found in constant time.
///
/// An entry lies at the level of the highest digit (base 64) in which its tick differs from `elapsed`,
/// in the slot of that digit. So all entries of a level come before those of the next, the lowest
/// occupied slot of the lowest occupied level is the earliest, and slots never wrap around.
/// When `elapsed` enters a slot, its entries move to lower levels; each entry moves at most once a level.
#[derive(Debug)]
pub(crate) struct Wheel {
    entries: Box<[Entry]>,
    links: Links,
    slots: Box<[Slot]>,
    /// One bit for each slot of a level that has entries.
    occupied: [u64; LEVELS],
    /// The tick up to which entries were moved down.
    elapsed: u64,
    /// The latest time seen.
    now: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Option<Instant>,
    slot: u16,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    list: List,
    /// An entry of this slot; the one with the deadline `at` unless that is early.
    first: u32,
    /// Never later than the earliest deadline of the slot.
    at: Instant,
}

impl Wheel {
    /// A wheel in which nothing is armed.
    pub(crate) fn new(capacity: u32, now: Instant) -> Self {
        let slot = Slot { list: List::EMPTY, first: 0, at: Instant::MIN };
        Self {
            entries: vec![Entry { at: None, slot: 0 }; capacity as usize].into_boxed_slice(),
            links: Links::new(capacity),
            slots: vec![slot; DUE + 1].into_boxed_slice(),
            occupied: [0; LEVELS],
            elapsed: tick(now),
            now,
        }
    }

    /// Bytes that a wheel of `capacity` ids takes.
    pub(crate) const fn memory(capacity: usize) -> usize {
        capacity * size_of::<Entry>() + Links::memory(capacity) + (DUE + 1) * size_of::<Slot>()
    }

    /// Sets the deadline of `id`, which is below the capacity; what has passed is due at once.
    pub(crate) fn arm(&mut self, id: u32, at: Instant) {
        self.cancel(id);
        self.place(id, at);
    }

    /// Forgets the deadline of `id`.
    pub(crate) fn cancel(&mut self, id: u32) {
        let Some(entry) = self.entries.get_mut(id as usize) else { return };
        if entry.at.take().is_some() {
            let slot = usize::from(entry.slot);
            self.unlink(slot, id);
        }
    }

    /// Takes out one id whose deadline is not after `now`.
    ///
    /// Ids come by tick, within a tick in an order that depends on the calls alone. A `now` before
    /// the latest one counts as that. Amortised over the calls of `arm` this takes constant time;
    /// in addition, a call that finds the tick of `now` itself due sorts the entries of that tick.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        self.now = self.now.max(now);
        loop {
            if !self.slots[DUE].list.is_empty() {
                return Some(self.pop(DUE));
            }
            let present = tick(self.now);
            let Some((level, slot)) = self.earliest() else {
                self.elapsed = present;
                return None;
            };
            let start = self.start(level, slot);
            if start > present {
                self.elapsed = present;
                return None;
            }
            self.elapsed = start;
            if level > 0 {
                self.cascade(slot);
            } else if start < present {
                return Some(self.pop(slot));
            } else if self.slots[slot].at > self.now {
                return None;
            } else {
                self.sort_out(slot);
            }
        }
    }

    /// The earliest deadline and its id.
    ///
    /// Exact, but for one case: where the earliest of more than eight entries that share a slot was
    /// cancelled or re-armed, the time may be early (never late) and the id any of theirs, until
    /// [`Wheel::pop_due`] reaches that time.
    pub(crate) fn next(&self) -> Option<(Instant, u32)> {
        let due = &self.slots[DUE];
        let due = (!due.list.is_empty()).then_some((due.at, due.first));
        let waiting = self.earliest().map(|(_, slot)| (self.slots[slot].at, self.slots[slot].first));
        match (due, waiting) {
            (Some(due), Some(waiting)) => Some(if waiting.0 < due.0 { waiting } else { due }),
            (due, waiting) => due.or(waiting),
        }
    }

    /// The deadline of `id`, if it is armed.
    pub(crate) fn deadline(&self, id: u32) -> Option<Instant> {
        self.entries.get(id as usize)?.at
    }

    /// The lowest occupied slot of the lowest occupied level, and that level.
    fn earliest(&self) -> Option<(usize, usize)> {
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        Some((level, level * SLOTS + self.occupied[level].trailing_zeros() as usize))
    }

    /// The first tick of a slot.
    fn start(&self, level: usize, slot: usize) -> u64 {
        let shift = level as u32 * SLOT_BITS;
        let digit = (slot % SLOTS) as u64;
        ((self.elapsed >> (shift + SLOT_BITS) << SLOT_BITS) | digit) << shift
    }

    /// Puts an entry that is in no slot where it belongs.
    fn place(&mut self, id: u32, at: Instant) {
        let tick = tick(at).max(self.elapsed);
        let level = ((tick ^ self.elapsed) | 1).ilog2() / SLOT_BITS;
        let digit = (tick >> (level * SLOT_BITS)) as usize % SLOTS;
        self.link(level as usize * SLOTS + digit, id, at);
    }

    /// Moves the entries of a slot that `elapsed` has entered to lower levels.
    fn cascade(&mut self, slot: usize) {
        let mut list = self.take(slot);
        while let Some((id, at)) = self.pop_entry(&mut list) {
            self.place(id, at);
        }
    }

    /// Moves what is due in the slot of the present tick to the slot `DUE`.
    fn sort_out(&mut self, slot: usize) {
        let mut list = self.take(slot);
        while let Some((id, at)) = self.pop_entry(&mut list) {
            self.link(if at <= self.now { DUE } else { slot }, id, at);
        }
    }

    /// Empties a slot; its entries stay linked in the list that is returned.
    fn take(&mut self, slot: usize) -> List {
        self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
        core::mem::take(&mut self.slots[slot].list)
    }

    fn pop_entry(&mut self, list: &mut List) -> Option<(u32, Instant)> {
        let id = self.links.pop_front(list)?;
        Some((id, self.entries[id as usize].at?))
    }

    /// Takes one entry out of a slot of which all are due: the earliest last, so that the minimum stays exact.
    fn pop(&mut self, slot: usize) -> u32 {
        let Slot { list, first, .. } = self.slots[slot];
        let id = match list.front() {
            Some(front) if front != first => front,
            _ => self.links.next(first).unwrap_or(first),
        };
        self.cancel(id);
        id
    }

    fn link(&mut self, slot: usize, id: u32, at: Instant) {
        self.entries[id as usize] = Entry { at: Some(at), slot: slot as u16 };
        let Slot { list, first, at: earliest } = &mut self.slots[slot];
        if list.is_empty() || at < *earliest {
            (*first, *earliest) = (id, at);
        }
        self.links.push_back(list, id);
        if let Some(occupied) = self.occupied.get_mut(slot / SLOTS) {
            *occupied |= 1 << (slot % SLOTS);
        }
    }

    fn unlink(&mut self, slot: usize, id: u32) {
        let Slot { list, first, .. } = &mut self.slots[slot];
        self.links.remove(list, id);
        let Some(front) = list.front() else {
            if let Some(occupied) = self.occupied.get_mut(slot / SLOTS) {
                *occupied &= !(1 << (slot % SLOTS));
            }
            return;
        };
        if *first == id {
            *first = front;
            if list.len() <= MAX_SCAN {
                self.find_first(slot, front);
            }
        }
    }

    /// Finds the earliest entry of a slot.
    fn find_first(&mut self, slot: usize, front: u32) {
        let ids = core::iter::successors(Some(front), |&id| self.links.next(id));
        let earliest = ids.filter_map(|id| Some((self.entries[id as usize].at?, id))).min();
        if let Some((at, first)) = earliest {
            (self.slots[slot].at, self.slots[slot].first) = (at, first);
        }
    }
}

const fn tick(at: Instant) -> u64 {
    at.as_nanos() >> TICK_BITS
}

#[cfg(test)]
mod tests;
