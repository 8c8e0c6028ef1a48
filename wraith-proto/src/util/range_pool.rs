//! Received byte ranges of all streams, out of one shared pool.

use alloc::vec::Vec;

use super::Full;

/// End of a list of nodes.
const END: u32 = u32::MAX;

/// At most `capacity` ranges that lie beyond the front of their stream (`PROTO §7.6`).
#[derive(Debug)]
pub(crate) struct RangePool {
    /// Grows up to the reserved capacity as nodes are used for the first time.
    nodes: Vec<Node>,
    capacity: u32,
    free: u32,
}

/// What one stream has received: all below the front, and ranges beyond it that lie in a [`RangePool`].
///
/// A set is used with one pool, and cleared before it is dropped.
#[derive(Debug)]
pub(crate) struct RangeSet {
    front: u64,
    head: u32,
    tail: u32,
}

/// A range beyond the front. Ranges of a set ascend and do not touch.
#[derive(Clone, Copy, Debug)]
struct Node {
    start: u64,
    end: u64,
    next: u32,
}

impl RangePool {
    /// A pool of `capacity` free ranges.
    pub(crate) fn new(capacity: u32) -> Self {
        Self { nodes: Vec::with_capacity(capacity as usize), capacity, free: END }
    }

    /// Bytes that a pool of `capacity` ranges takes.
    pub(crate) const fn memory(capacity: usize) -> usize {
        capacity * size_of::<Node>()
    }

    /// Adds the bytes `start..end`.
    ///
    /// What starts at or below the front, or extends or closes a range, always succeeds, so a stream
    /// makes progress however full the pool is (`PROTO §7.6`). At the front and at the highest range
    /// this takes constant time, between ranges a walk over those of this stream.
    ///
    /// # Errors
    ///
    /// [`Full`] if a new range is needed and none is free.
    pub(crate) fn insert(&mut self, set: &mut RangeSet, start: u64, end: u64) -> Result<(), Full> {
        if start >= end || end <= set.front {
            return Ok(());
        }
        if start <= set.front {
            set.front = end;
            self.absorb_into_front(set);
            return Ok(());
        }
        let prev = self.last_before(set, start);
        let next = match prev {
            END => set.head,
            prev => self.nodes[prev as usize].next,
        };
        if next != END && self.nodes[next as usize].start <= end {
            self.widen(set, next, start, end);
            return Ok(());
        }
        let node = self.allocate(Node { start, end, next })?;
        match prev {
            END => set.head = node,
            prev => self.nodes[prev as usize].next = node,
        }
        if next == END {
            set.tail = node;
        }
        Ok(())
    }

    /// Forgets all that `set` received and returns its ranges, in constant time.
    pub(crate) fn clear(&mut self, set: &mut RangeSet) {
        if set.tail != END {
            self.nodes[set.tail as usize].next = self.free;
            self.free = set.head;
        }
        *set = RangeSet::default();
    }

    /// The first stretch within `from..limit` that was not received, as long as it goes.
    pub(crate) fn next_gap(&self, set: &RangeSet, from: u64, limit: u64) -> Option<(u64, u64)> {
        let mut start = from.max(set.front);
        let mut end = limit;
        if start < self.end(set) {
            for node in self.nodes_of(set) {
                if start < node.start {
                    end = limit.min(node.start);
                    break;
                }
                start = start.max(node.end);
            }
        }
        (start < end).then_some((start, end))
    }

    /// Whether all of `start..end` was received.
    pub(crate) fn covered(&self, set: &RangeSet, start: u64, end: u64) -> bool {
        self.next_gap(set, start, end).is_none()
    }

    /// The end of the highest byte received.
    pub(crate) fn end(&self, set: &RangeSet) -> u64 {
        self.nodes.get(set.tail as usize).map_or(set.front, |node| node.end)
    }

    /// Ranges that streams hold.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u32 {
        let node = |at: u32| self.nodes.get(at as usize);
        let free = core::iter::successors(node(self.free), |free| node(free.next)).count();
        (self.nodes.len() - free) as u32
    }

    /// The ranges beyond the front, ascending.
    #[cfg(test)]
    pub(crate) fn ranges(&self, set: &RangeSet) -> impl Iterator<Item = (u64, u64)> {
        self.nodes_of(set).map(|node| (node.start, node.end))
    }

    /// The last range of `set` that ends below `start` without touching it, or `END`.
    fn last_before(&self, set: &RangeSet, start: u64) -> u32 {
        if self.end(set) < start {
            return set.tail;
        }
        let (mut prev, mut at) = (END, set.head);
        while at != END && self.nodes[at as usize].end < start {
            prev = at;
            at = self.nodes[at as usize].next;
        }
        prev
    }

    /// Moves the front over the ranges that it now reaches.
    fn absorb_into_front(&mut self, set: &mut RangeSet) {
        while set.head != END {
            let node = self.nodes[set.head as usize];
            if node.start > set.front {
                return;
            }
            set.front = set.front.max(node.end);
            self.release(set.head);
            set.head = node.next;
        }
        set.tail = END;
    }

    /// Makes the range `at` cover `start..end` too, and swallow the ranges that it then reaches.
    fn widen(&mut self, set: &mut RangeSet, at: u32, start: u64, end: u64) {
        let mut node = self.nodes[at as usize];
        node.start = node.start.min(start);
        node.end = node.end.max(end);
        while node.next != END {
            let next = self.nodes[node.next as usize];
            if next.start > node.end {
                break;
            }
            self.release(node.next);
            node.end = node.end.max(next.end);
            node.next = next.next;
        }
        if node.next == END {
            set.tail = at;
        }
        self.nodes[at as usize] = node;
    }

    fn allocate(&mut self, node: Node) -> Result<u32, Full> {
        let index = self.free;
        if let Some(slot) = self.nodes.get_mut(index as usize) {
            self.free = slot.next;
            *slot = node;
            return Ok(index);
        }
        let index = self.nodes.len() as u32;
        if index == self.capacity {
            return Err(Full);
        }
        self.nodes.push(node);
        Ok(index)
    }

    fn release(&mut self, index: u32) {
        self.nodes[index as usize].next = self.free;
        self.free = index;
    }

    fn nodes_of(&self, set: &RangeSet) -> impl Iterator<Item = Node> {
        let node = |index: u32| self.nodes.get(index as usize).copied();
        core::iter::successors(node(set.head), move |at| node(at.next))
    }
}

impl RangeSet {
    /// All bytes below this offset were received.
    #[cfg(test)]
    pub(crate) const fn front(&self) -> u64 {
        self.front
    }
}

impl Default for RangeSet {
    fn default() -> Self {
        Self { front: 0, head: END, tail: END }
    }
}

#[cfg(test)]
mod tests;
