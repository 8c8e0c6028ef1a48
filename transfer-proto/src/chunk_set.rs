//! Sets of chunk numbers as ranges: a file of any size costs what its holes cost.

use alloc::collections::BTreeMap;
use core::ops::Range;

/// A set of chunk numbers, kept as disjoint ranges that do not touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChunkSet {
    /// Start to end (exclusive).
    ranges: BTreeMap<u64, u64>,
    len: u64,
}

impl ChunkSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: BTreeMap::new(), len: 0 }
    }

    /// Adds every number of `range`.
    pub fn insert(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        while let Some((&from, &to)) = self.ranges.range(..=end).next_back() {
            if to < start {
                break;
            }
            self.ranges.remove(&from);
            self.len -= to - from;
            start = start.min(from);
            end = end.max(to);
        }
        self.ranges.insert(start, end);
        self.len += end - start;
    }

    /// Takes every number of `range` out.
    pub fn remove(&mut self, range: Range<u64>) {
        let Range { start, end } = range;
        if start >= end {
            return;
        }
        while let Some((&from, &to)) = self.ranges.range(..end).next_back() {
            if to <= start {
                break;
            }
            self.ranges.remove(&from);
            self.len -= to - from;
            self.put_back(from..start);
            self.put_back(end..to);
        }
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u64> {
        self.ranges.first_key_value().map(|(&start, _)| start)
    }

    /// Whether `chunk` is in the set.
    pub fn contains(&self, chunk: u64) -> bool {
        self.ranges.range(..=chunk).next_back().is_some_and(|(_, &end)| chunk < end)
    }

    /// How many numbers are in the set.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether no number is in the set.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ranges in ascending order.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }

    fn put_back(&mut self, part: Range<u64>) {
        if part.start < part.end {
            self.len += part.end - part.start;
            self.ranges.insert(part.start, part.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn neighbours_become_one_range_and_a_hole_makes_two() {
        let mut set = ChunkSet::new();
        set.insert(0..3);
        set.insert(5..8);
        set.insert(3..5);
        assert_eq!(set.ranges().next(), Some(0..8));
        assert_eq!(set.ranges().count(), 1);
        set.remove(2..4);
        assert_eq!(set.ranges().collect::<Vec<_>>(), [0..2, 4..8]);
        assert_eq!((set.len(), set.first()), (6, Some(0)));
        assert!(!set.contains(3) && set.contains(4) && !set.contains(8));
    }

    proptest! {
        #[test]
        fn it_holds_what_a_plain_set_holds(
            steps in proptest::collection::vec((any::<bool>(), 0u64..40, 0u64..12), 0..40),
        ) {
            let (mut set, mut model) = (ChunkSet::new(), BTreeSet::new());
            for (insert, start, len) in steps {
                if insert {
                    set.insert(start..start + len);
                    model.extend(start..start + len);
                } else {
                    set.remove(start..start + len);
                    model.retain(|chunk| !(start..start + len).contains(chunk));
                }
                prop_assert_eq!(set.len(), model.len() as u64);
                prop_assert_eq!(set.first(), model.first().copied());
                prop_assert!((0..60).all(|chunk| set.contains(chunk) == model.contains(&chunk)));
                let ranges: Vec<_> = set.ranges().collect();
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
