//! Doubly linked lists of indices whose links lie in one arena.

use alloc::boxed::Box;
use alloc::vec;

/// Marks the end of a list.
const END: u32 = u32::MAX;
/// In `prev`: the index is in no list.
const UNLINKED: u32 = u32::MAX - 1;

/// The links of the indices `0..capacity`; any number of [`List`]s share them.
///
/// An index is in at most one of these lists. A list is used with the arena it was filled from.
#[derive(Debug)]
pub(crate) struct Links {
    links: Box<[Link]>,
}

/// The ends of one list in a [`Links`] arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

impl Links {
    /// An arena in which no index is linked. The two highest `u32` values are no indices.
    pub(crate) fn new(capacity: u32) -> Self {
        let capacity = capacity.min(UNLINKED) as usize;
        Self { links: vec![Link { prev: UNLINKED, next: END }; capacity].into_boxed_slice() }
    }

    /// Bytes that an arena of `capacity` indices takes.
    pub(crate) const fn memory(capacity: usize) -> usize {
        capacity * size_of::<Link>()
    }

    /// Appends `index`; false, and no change, if it is in a list already or out of range.
    pub(crate) fn push_back(&mut self, list: &mut List, index: u32) -> bool {
        self.link(list, list.tail, END, index)
    }

    /// Puts `index` in front; false, and no change, if it is in a list already or out of range.
    pub(crate) fn push_front(&mut self, list: &mut List, index: u32) -> bool {
        self.link(list, END, list.head, index)
    }

    /// Takes the first index off `list`.
    pub(crate) fn pop_front(&mut self, list: &mut List) -> Option<u32> {
        let index = list.front()?;
        self.remove(list, index);
        Some(index)
    }

    /// Takes `index` out of `list`, the list that it is in; false if it is in none.
    pub(crate) fn remove(&mut self, list: &mut List, index: u32) -> bool {
        if !self.contains(index) {
            return false;
        }
        let Link { prev, next } = self.links[index as usize];
        debug_assert!(prev != END || list.head == index, "{index} is in another list");
        debug_assert!(next != END || list.tail == index, "{index} is in another list");
        self.join(list, prev, next);
        self.links[index as usize] = Link { prev: UNLINKED, next: END };
        list.len -= 1;
        true
    }

    /// Whether `index` is in a list.
    pub(crate) fn contains(&self, index: u32) -> bool {
        self.links.get(index as usize).is_some_and(|link| link.prev != UNLINKED)
    }

    /// The index behind `index` in its list.
    pub(crate) fn next(&self, index: u32) -> Option<u32> {
        self.links.get(index as usize).and_then(|link| some(link.next))
    }

    /// The index in front of `index` in its list.
    #[cfg(test)]
    pub(crate) fn prev(&self, index: u32) -> Option<u32> {
        self.links.get(index as usize).and_then(|link| some(link.prev))
    }

    /// Links a free `index` between two neighbours of `list`.
    fn link(&mut self, list: &mut List, prev: u32, next: u32, index: u32) -> bool {
        match self.links.get_mut(index as usize) {
            Some(link) if link.prev == UNLINKED => *link = Link { prev, next },
            _ => return false,
        }
        self.join(list, prev, index);
        self.join(list, index, next);
        list.len += 1;
        true
    }

    /// Makes `prev` and `next` neighbours; `END` stands for the list's own end.
    fn join(&mut self, list: &mut List, prev: u32, next: u32) {
        match prev {
            END => list.head = next,
            _ => self.links[prev as usize].next = next,
        }
        match next {
            END => list.tail = prev,
            _ => self.links[next as usize].prev = prev,
        }
    }
}

impl List {
    /// A list of nothing.
    pub(crate) const EMPTY: Self = Self { head: END, tail: END, len: 0 };

    /// The first index.
    pub(crate) const fn front(&self) -> Option<u32> {
        some(self.head)
    }

    /// The last index.
    #[cfg(test)]
    pub(crate) const fn back(&self) -> Option<u32> {
        some(self.tail)
    }

    /// Number of indices.
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no index.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Default for List {
    fn default() -> Self {
        Self::EMPTY
    }
}

const fn some(index: u32) -> Option<u32> {
    if index < UNLINKED { Some(index) } else { None }
}

#[cfg(test)]
mod tests;
