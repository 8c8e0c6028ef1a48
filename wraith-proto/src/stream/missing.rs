//! Bytes of a sending stream that were sent and have to be sent again after the peer's next grant.

use heapless::Vec;

/// Ranges kept apart; a further one is joined with its neighbour, bytes between them included.
const MAX_RANGES: usize = 4;

/// Ranges that ascend and do not touch.
#[derive(Debug, Default)]
pub(super) struct Missing {
    ranges: Vec<(u64, u64), MAX_RANGES>,
}

impl Missing {
    /// Adds `start..end`, not empty. `adjust` is told the range that is now in the set as `true`, then each that it
    /// swallowed as `false`: no byte of these ever seems to be out of the set.
    pub(super) fn insert(&mut self, start: u64, end: u64, mut adjust: impl FnMut(u64, u64, bool)) {
        let (mut start, mut end) = (start, end);
        let touches = |&(low, high): &(u64, u64), start: u64, end: u64| low <= end && start <= high;
        if self.ranges.is_full() && !self.ranges.iter().any(|range| touches(range, start, end)) {
            let gap = |&(low, high): &(u64, u64)| low.saturating_sub(end).max(start.saturating_sub(high));
            if let Some(&(low, high)) = self.ranges.iter().min_by_key(|range| gap(range)) {
                (start, end) = (start.min(low), end.max(high));
            }
        }
        let mut swallowed: Vec<(u64, u64), MAX_RANGES> = Vec::new();
        let mut at = 0;
        while let Some(&range) = self.ranges.get(at) {
            if touches(&range, start, end) {
                let _ = swallowed.push(range);
                (start, end) = (start.min(range.0), end.max(range.1));
                self.ranges.remove(at);
            } else if range.0 < start {
                at += 1;
            } else {
                break;
            }
        }
        adjust(start, end, true);
        swallowed.iter().for_each(|&(low, high)| adjust(low, high, false));
        // There is room: a full set has given up at least one range.
        let _ = self.ranges.insert(at, (start, end));
    }

    /// The first range.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.first().copied()
    }

    /// Forgets what lies below `offset`.
    pub(super) fn cut(&mut self, offset: u64) {
        while let Some(first) = self.ranges.first_mut() {
            if first.1 > offset {
                first.0 = first.0.max(offset);
                return;
            }
            self.ranges.remove(0);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fifth_range_joins_the_nearest() {
        let mut missing = Missing::default();
        for start in [10, 40, 70, 100] {
            missing.insert(start, start + 5, |_, _, _| ());
        }
        missing.insert(80, 82, |_, _, _| ());
        assert_eq!(missing.ranges, [(10, 15), (40, 45), (70, 82), (100, 105)]);
        missing.cut(42);
        assert_eq!(missing.first(), Some((42, 45)));
        missing.cut(105);
        assert!(missing.is_empty());
    }

    proptest! {
        #[test]
        fn every_inserted_byte_is_in_the_set_and_counted_once(
            inserts in prop::collection::vec((0usize..200, 1usize..30), 1..30)
        ) {
            let mut missing = Missing::default();
            let mut counts = [0i32; 256];
            for &(start, len) in &inserts {
                missing.insert(start as u64, (start + len) as u64, |low, high, is_in| {
                    for count in &mut counts[low as usize..high as usize] {
                        *count += if is_in { 1 } else { -1 };
                    }
                });
            }
            let is_in = |at: usize| missing.ranges.iter().any(|&(l, h)| l <= at as u64 && (at as u64) < h);
            for (at, &count) in counts.iter().enumerate() {
                prop_assert_eq!(count, i32::from(is_in(at)), "at {}", at);
                let wanted = inserts.iter().any(|&(start, len)| (start..start + len).contains(&at));
                prop_assert!(!wanted || is_in(at));
            }
            prop_assert!(missing.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
