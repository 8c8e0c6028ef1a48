//! A table of fixed size that forgets what is oldest.

use std::hash::{BuildHasher, Hash, RandomState};

use wraith_proto::Instant;

/// Slots that one key can be in.
const WAYS: usize = 4;

/// Keys and values, in sets of four slots that a keyed hash chooses: a sender of many keys cannot tell whose slot it takes,
/// and each look-up touches one set, however large the table is.
#[derive(Debug)]
pub(super) struct Cache<K, V> {
    slots: Box<[Slot<K, V>]>,
    hasher: RandomState,
    /// The slot found last: packets come in runs.
    last: usize,
}

#[derive(Debug)]
pub(super) struct Slot<K, V> {
    pub(super) entry: Option<(K, V)>,
    /// When it was written.
    pub(super) at: Instant,
    /// Other keys that it held before, and a random number on top.
    pub(super) generation: u32,
}

impl<K: Hash + Eq, V> Cache<K, V> {
    /// Takes all its memory now. `slots` is a power of two, four at least.
    pub(super) fn new(slots: usize) -> Self {
        let hasher = RandomState::new();
        let slot = |index: usize| Slot {
            entry: None,
            at: Instant::from_nanos(0),
            generation: hasher.hash_one(index) as u32,
        };
        Self { slots: (0..slots).map(slot).collect(), hasher, last: 0 }
    }

    /// The index of the slot that holds a key.
    pub(super) fn find(&mut self, key: &K) -> Option<usize> {
        if !self.holds(self.last, key) {
            let first = self.set(key);
            self.last = (first..first + WAYS).find(|index| self.holds(*index, key))?;
        }
        Some(self.last)
    }

    /// Writes a value, over the key's former one or else over the oldest entry of its set; gives the slot's index.
    pub(super) fn put(&mut self, now: Instant, key: K, value: V) -> usize {
        let index = self.find(&key).unwrap_or_else(|| self.oldest(&key));
        let slot = &mut self.slots[index];
        if slot.entry.as_ref().is_none_or(|(held, _)| *held != key) {
            slot.generation = slot.generation.wrapping_add(1);
        }
        slot.entry = Some((key, value));
        slot.at = now;
        index
    }

    pub(super) fn slot(&self, index: usize) -> Option<&Slot<K, V>> {
        self.slots.get(index)
    }

    fn oldest(&self, key: &K) -> usize {
        let first = self.set(key);
        // An empty slot is older than any entry.
        let age = |index: &usize| (self.slots[*index].entry.is_some(), self.slots[*index].at);
        (first..first + WAYS).min_by_key(age).unwrap_or(first)
    }

    fn holds(&self, index: usize, key: &K) -> bool {
        self.slots[index].entry.as_ref().is_some_and(|(held, _)| held == key)
    }

    /// The first slot of a key's set.
    fn set(&self, key: &K) -> usize {
        self.hasher.hash_one(key) as usize % (self.slots.len() / WAYS) * WAYS
    }
}
