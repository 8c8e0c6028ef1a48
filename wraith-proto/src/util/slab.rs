//! A slab whose slots count their tenants, so that a stale handle misses.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// End of the list of free slots.
const END: u32 = u32::MAX;

/// Up to `capacity` values under `u32` indices that stay valid until removal.
///
/// The slot that was freed last is used first: its memory is still warm.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    /// Grows up to the reserved capacity as slots are used for the first time.
    slots: Vec<Slot<T>>,
    capacity: u32,
    free: u32,
    len: u32,
}

#[derive(Debug)]
struct Slot<T> {
    /// Tenants that have left, modulo 2^32.
    generation: u32,
    state: State<T>,
}

#[derive(Debug)]
enum State<T> {
    Free { next: u32 },
    Used(T),
}

impl<T> Slab<T> {
    /// An empty slab with memory for `capacity` values.
    pub(crate) fn new(capacity: u32) -> Self {
        Self { slots: Vec::with_capacity(capacity as usize), capacity, free: END, len: 0 }
    }

    /// Bytes that a slab of `capacity` values takes.
    pub(crate) const fn memory(capacity: usize) -> usize {
        capacity * size_of::<Slot<T>>()
    }

    /// Stores `value` and returns its index.
    ///
    /// # Errors
    ///
    /// Gives `value` back if the slab is full.
    pub(crate) fn insert(&mut self, value: T) -> Result<u32, T> {
        if self.is_full() {
            return Err(value);
        }
        self.len += 1;
        let index = self.free;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            if let State::Free { next } = slot.state {
                self.free = next;
            }
            slot.state = State::Used(value);
            return Ok(index);
        }
        let index = self.slots.len() as u32;
        self.slots.push(Slot { generation: 0, state: State::Used(value) });
        Ok(index)
    }

    /// Takes the value at `index` out; the slot's generation goes up by one.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        if matches!(slot.state, State::Free { .. }) {
            return None;
        }
        let state = core::mem::replace(&mut slot.state, State::Free { next: self.free });
        slot.generation = slot.generation.wrapping_add(1);
        self.free = index;
        self.len -= 1;
        state.into_value()
    }

    /// The value at `index`.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.state.value_mut()
    }

    /// The value at `index`, if it is the tenant of this `generation`.
    pub(crate) fn lookup_mut(&mut self, index: u32, generation: u32) -> Option<&mut T> {
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation == generation { slot.state.value_mut() } else { None }
    }

    /// The value at `index`.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.state.value()
    }

    /// The value at `index`, if it is the tenant of this `generation`.
    pub(crate) fn lookup(&self, index: u32, generation: u32) -> Option<&T> {
        let slot = self.slots.get(index as usize)?;
        if slot.generation == generation { slot.state.value() } else { None }
    }

    /// Generation of the present or next tenant of `index`; the first is 0.
    ///
    /// It comes round after 2^32 tenants of one slot.
    pub(crate) fn generation(&self, index: u32) -> u32 {
        self.slots.get(index as usize).map_or(0, |slot| slot.generation)
    }

    /// Number of values.
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// The most values it takes.
    pub(crate) const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Whether [`Slab::insert`] would refuse.
    pub(crate) const fn is_full(&self) -> bool {
        self.len == self.capacity
    }
}

impl<T> State<T> {
    fn value(&self) -> Option<&T> {
        match self {
            Self::Used(value) => Some(value),
            Self::Free { .. } => None,
        }
    }

    fn value_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Used(value) => Some(value),
            Self::Free { .. } => None,
        }
    }

    fn into_value(self) -> Option<T> {
        match self {
            Self::Used(value) => Some(value),
            Self::Free { .. } => None,
        }
    }
}

/// # Panics
///
/// If nothing is stored there: for indices that the core itself keeps.
impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        self.get(index).expect("a kept index is in use")
    }
}

/// # Panics
///
/// If nothing is stored there: for indices that the core itself keeps.
impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        self.get_mut(index).expect("a kept index is in use")
    }
}

#[cfg(test)]
mod tests;
