//! A fixed hash table from 64-bit keys to 32-bit values.

use alloc::boxed::Box;
use alloc::vec;

use siphasher::sip::SipHasher13;

use super::Full;

/// In `home`: the slot is empty. No home is that high, since there are at most 2^31 slots.
const EMPTY: u32 = u32::MAX;
const MAX_CAPACITY: u32 = 1 << 30;

/// Up to `capacity` pairs, found by linear probing in a table that is at most five eighths full: probes stay short.
/// Its size is no power of two, which would be up to twice as much for a server's connection ids.
///
/// SipHash-1-3 under a secret key places the entries: whoever chooses keys cannot make them collide.
/// Removal shifts entries back, so there are no tombstones and the table never degrades.
/// There is no iteration, so no result depends on the order of slots.
pub(crate) struct KeyTable {
    slots: Box<[Slot]>,
    hasher: SipHasher13,
    capacity: u32,
    len: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    key: u64,
    value: u32,
    /// The slot that the key hashes to, kept so that removal need not hash again.
    home: u32,
}

impl KeyTable {
    /// An empty table for `capacity` pairs (at most 2^30), placed by the secret `hash_key`.
    pub(crate) fn new(capacity: u32, hash_key: &[u8; 16]) -> Self {
        let capacity = capacity.min(MAX_CAPACITY);
        let empty = Slot { key: 0, value: 0, home: EMPTY };
        Self {
            slots: vec![empty; slot_count(capacity as usize)].into_boxed_slice(),
            hasher: SipHasher13::new_with_key(hash_key),
            capacity,
            len: 0,
        }
    }

    /// Bytes that a table of `capacity` pairs takes.
    pub(crate) const fn memory(capacity: usize) -> usize {
        slot_count(capacity) * size_of::<Slot>()
    }

    /// Stores `value` under `key`, in place of what was there.
    ///
    /// # Errors
    ///
    /// [`Full`] if the key is new and the table holds `capacity` pairs.
    pub(crate) fn insert(&mut self, key: u64, value: u32) -> Result<(), Full> {
        let home = self.home(key);
        let at = self.probe(home, key);
        if self.slots[at].home == EMPTY {
            if self.len == self.capacity {
                return Err(Full);
            }
            self.len += 1;
        }
        self.slots[at] = Slot { key, value, home: home as u32 };
        Ok(())
    }

    /// Takes out the value under `key`.
    pub(crate) fn remove(&mut self, key: u64) -> Option<u32> {
        let mut hole = self.probe(self.home(key), key);
        if self.slots[hole].home == EMPTY {
            return None;
        }
        let value = self.slots[hole].value;
        let mut at = hole;
        loop {
            at = self.after(at);
            let slot = self.slots[at];
            if slot.home == EMPTY {
                break;
            }
            // An entry may only move to a place that a probe from its home still passes.
            if self.distance(slot.home as usize, at) >= self.distance(hole, at) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole].home = EMPTY;
        self.len -= 1;
        Some(value)
    }

    /// The value under `key`.
    pub(crate) fn get(&self, key: u64) -> Option<u32> {
        let slot = self.slots[self.probe(self.home(key), key)];
        (slot.home != EMPTY).then_some(slot.value)
    }

    /// Number of pairs.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// The slot of `key`, or the empty slot where it would go.
    fn probe(&self, home: usize, key: u64) -> usize {
        let mut at = home;
        // Three eighths of the slots are empty, so this ends.
        while self.slots[at].home != EMPTY && self.slots[at].key != key {
            at = self.after(at);
        }
        at
    }

    /// Where a key belongs: the high half of a product spreads a hash over any number of slots
    /// (Lemire 2019, doi:10.1145/3230636).
    fn home(&self, key: u64) -> usize {
        let hash = self.hasher.hash(&key.to_le_bytes()) >> 32;
        ((hash * self.slots.len() as u64) >> 32) as usize
    }

    /// The slot behind `at`; the first one is behind the last.
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    /// How many slots `to` lies behind `from`.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots.len() - from }
    }
}

/// More than eight fifths of the capacity, and at least 2.
const fn slot_count(capacity: usize) -> usize {
    let capacity = if capacity > MAX_CAPACITY as usize { MAX_CAPACITY as usize } else { capacity };
    if capacity == 0 { 2 } else { capacity * 8 / 5 + 1 }
}

#[cfg(test)]
mod tests;
