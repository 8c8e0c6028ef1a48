//! What is to come, in the order of time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Nanoseconds of a slice of time, as a power of two: about a millisecond.
const SLICE: u32 = 20;

/// Slices that have a list of their own: two seconds, more than any datagram takes and most timers.
const NEAR: u64 = 2_048;

/// What comes to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Event<T> {
    /// Nanoseconds.
    pub(super) when: u64,
    /// Of two at one time the one that was pushed first comes first.
    order: u64,
    pub(super) what: T,
}

/// Events in slices of time, of which only the present one is sorted: a heap of a hundred thousand nodes' timers misses
/// every cache at each step.
pub(super) struct Queue<T> {
    /// What is left of the present slice, the next event last.
    present: Vec<Event<T>>,
    /// Its number.
    slice: u64,
    near: Box<[Vec<Event<T>>]>,
    far: BTreeMap<u64, Vec<Event<T>>>,
    pushed: u64,
    len: usize,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        Self {
            present: Vec::new(),
            slice: 0,
            near: (0..NEAR).map(|_| Vec::new()).collect(),
            far: BTreeMap::new(),
            pushed: 0,
            len: 0,
        }
    }

    /// Adds what happens at `when`, which is not before what was taken out last.
    pub(super) fn push(&mut self, when: u64, what: T) {
        let event = Event { when, order: self.pushed, what };
        self.pushed += 1;
        self.len += 1;
        let slice = when >> SLICE;
        if slice <= self.slice {
            let at = self.present.partition_point(|other| other.when > when);
            self.present.insert(at, event);
        } else if slice - self.slice < NEAR {
            self.near[(slice % NEAR) as usize].push(event);
        } else {
            self.far.entry(slice).or_default().push(event);
        }
    }

    /// Takes out the next event, if it is not after `until`.
    pub(super) fn pop(&mut self, until: u64) -> Option<Event<T>> {
        while self.present.is_empty() && self.len > 0 && self.slice < until >> SLICE {
            self.slice += 1;
            std::mem::swap(&mut self.present, &mut self.near[(self.slice % NEAR) as usize]);
            if self.far.first_key_value().is_some_and(|(&slice, _)| slice <= self.slice)
                && let Some((_, events)) = self.far.pop_first()
            {
                self.present.extend(events);
            }
            self.present.sort_unstable_by_key(|event| Reverse((event.when, event.order)));
        }
        let event = self.present.pop_if(|event| event.when <= until)?;
        self.len -= 1;
        Some(event)
    }
}

/// Byte strings that are on their way, in buffers that are used again.
#[derive(Default)]
pub(super) struct Messages {
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Messages {
    pub(super) fn keep(&mut self, message: &[u8]) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Vec::new());
            self.buffers.len() as u32 - 1
        });
        let buffer = &mut self.buffers[at as usize];
        buffer.clear();
        buffer.extend_from_slice(message);
        at
    }

    /// Takes a message out; its buffer is to be [given back](Self::give_back).
    pub(super) fn take(&mut self, at: u32) -> Vec<u8> {
        std::mem::take(&mut self.buffers[at as usize])
    }

    pub(super) fn give_back(&mut self, at: u32, buffer: Vec<u8>) {
        self.buffers[at as usize] = buffer;
        self.free.push(at);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BinaryHeap;

    use super::*;
    use crate::Rng;

    #[test]
    fn events_come_in_the_order_of_a_heap() {
        let (mut rng, mut queue, mut heap) = (Rng::new(1), Queue::new(), BinaryHeap::new());
        let (mut now, mut pushed) = (0, 0_u64);
        for _ in 0..2_000 {
            for _ in 0..rng.below(8) {
                let longest = [1, 1 << 18, 1 << 24, 1 << 32, 1 << 36][rng.below(5) as usize];
                let when = now + rng.below(longest);
                queue.push(when, pushed);
                heap.push(Reverse((when, pushed)));
                pushed += 1;
            }
            let until = now + rng.below(1 << 27);
            while let Some(&Reverse((when, number))) = heap.peek().filter(|Reverse((when, _))| *when <= until)
            {
                heap.pop();
                let event = queue.pop(until).unwrap();
                assert_eq!((event.when, event.what), (when, number));
                now = when;
                if rng.chance(300_000) {
                    let when = now + rng.below(1 << 10);
                    queue.push(when, pushed);
                    heap.push(Reverse((when, pushed)));
                    pushed += 1;
                }
            }
            assert_eq!(queue.pop(until), None);
            now = until;
        }
        assert!(pushed > 5_000);
    }

    #[test]
    fn buffers_are_used_again() {
        let mut messages = Messages::default();
        let first = messages.keep(b"first");
        let second = messages.keep(b"second");
        let taken = messages.take(first);
        assert_eq!(taken, b"first");
        messages.give_back(first, taken);
        assert_eq!((messages.keep(b"3"), messages.take(second)), (first, b"second".to_vec()));
        assert_eq!((messages.take(first), messages.buffers.len()), (b"3".to_vec(), 2));
    }
}
