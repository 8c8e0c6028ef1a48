//! Numbers of packets that were given up, to notice that they arrived after all.

use heapless::Vec;

use super::Narrow64;

/// Runs of numbers remembered.
const MAX_RUNS: usize = 12;

/// The latest numbers that were given up, and how many of the latest congestion event proved to have arrived.
#[derive(Debug, Default)]
pub(super) struct LostNumbers {
    /// Ascending, not acknowledged: the first number, and how many follow it.
    runs: Vec<(Narrow64, u32), MAX_RUNS>,
    /// First number of the latest congestion event.
    event: u64,
    /// Packets of that event, and those of them that were acknowledged since.
    lost: u32,
    spurious: u32,
    /// First number on the present path: of those before it none tells anything of this one.
    moved: u64,
    /// A part of the event was forgotten: it cannot be undone.
    forgotten: bool,
}

/// What an ACK says of packets that were given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Arrived {
    /// How many it acknowledges.
    pub(super) packets: u64,
    /// The smallest of their numbers on the present path.
    pub(super) first: u64,
    /// With them, all packets of the latest congestion event have arrived.
    pub(super) undo: bool,
}

impl LostNumbers {
    /// A packet is given up; numbers ascend.
    pub(super) fn add(&mut self, number: u64) {
        if let Some(last) = self.runs.last_mut()
            && last.0.value() + u64::from(last.1) + 1 == number
            && last.1 < u32::MAX
        {
            last.1 += 1;
            return;
        }
        if self.runs.is_full() {
            let (_, high) = bounds(self.runs.remove(0));
            self.forgotten |= high >= self.event;
        }
        let _ = self.runs.push((Narrow64::new(number), 0));
    }

    /// Of the packets given up, the latest `packets`, from number `first` on, are called lost. A congestion event
    /// begins with them if `new`, or else they belong to the latest.
    pub(super) fn count(&mut self, first: u64, packets: u64, new: bool) {
        if new {
            let forgotten = self.runs.first().is_none_or(|&(low, _)| low.value() > first);
            (self.event, self.lost, self.spurious, self.forgotten) = (first, 0, 0, forgotten);
        }
        self.lost = self.lost.saturating_add(narrow(packets));
    }

    /// The path changes before the packet `next`: what arrives of those before it undoes no congestion event.
    pub(super) fn move_on(&mut self, next: u64) {
        (self.event, self.lost, self.spurious, self.moved) = (next, 0, 0, next);
    }

    /// Takes out what `ranges`, descending and inclusive, acknowledge; `each` is told the first and the last of
    /// each run of numbers.
    pub(super) fn take(&mut self, ranges: &[(u64, u64)], mut each: impl FnMut(u64, u64)) -> Arrived {
        let mut arrived = Arrived { packets: 0, first: u64::MAX, undo: false };
        if self.runs.is_empty() {
            return arrived;
        }
        let mut left: Vec<(Narrow64, u32), MAX_RUNS> = Vec::new();
        for at in 0..self.runs.len() {
            let (mut low, high) = bounds(self.runs[at]);
            for &(from, to) in ranges.iter().rev() {
                let (from, to) = (from.max(low), to.min(high));
                if from > to {
                    continue;
                }
                if low < from && left.push(run(low, from - 1)).is_err() {
                    self.forgotten = true;
                }
                each(from, to);
                arrived.packets += to - from + 1;
                if from >= self.moved {
                    arrived.first = arrived.first.min(from);
                }
                let spurious = narrow((to + 1).saturating_sub(from.max(self.event)));
                self.spurious = self.spurious.saturating_add(spurious);
                low = to + 1;
            }
            if low <= high && left.push(run(low, high)).is_err() {
                self.forgotten = true;
            }
        }
        self.runs = left;
        arrived.undo = arrived.packets > 0 && self.lost > 0 && self.spurious >= self.lost && !self.forgotten;
        arrived
    }
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// First and last number of a run.
fn bounds((low, more): (Narrow64, u32)) -> (u64, u64) {
    (low.value(), low.value() + u64::from(more))
}

/// The run from `low` to `high`, a part of another.
fn run(low: u64, high: u64) -> (Narrow64, u32) {
    (Narrow64::new(low), (high - low) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lose(lost: &mut LostNumbers, numbers: &[u64], new: bool) {
        for &number in numbers {
            lost.add(number);
        }
        lost.count(numbers[0], numbers.len() as u64, new);
    }

    fn take(lost: &mut LostNumbers, ranges: &[(u64, u64)]) -> Arrived {
        lost.take(ranges, |_, _| {})
    }

    #[test]
    fn an_event_is_undone_when_the_last_of_its_packets_arrives() {
        let mut lost = LostNumbers::default();
        lose(&mut lost, &[10, 11, 12], true);
        lose(&mut lost, &[13], false);
        let some = take(&mut lost, &[(12, 20), (3, 10)]);
        assert_eq!(some, Arrived { packets: 3, first: 10, undo: false });
        assert_eq!(take(&mut lost, &[(3, 20)]), Arrived { packets: 1, first: 11, undo: true });
        assert_eq!(take(&mut lost, &[(3, 20)]).packets, 0);
    }

    /// `PROTO §8.6`
    #[test]
    fn real_losses_before_an_event_do_not_keep_it_from_being_undone() {
        let mut lost = LostNumbers::default();
        (0..40).for_each(|event| lose(&mut lost, &[event * 10], true));
        lose(&mut lost, &[1000, 1001], true);
        assert!(take(&mut lost, &[(1000, 1001)]).undo);
    }

    #[test]
    fn an_event_with_more_gaps_than_remembered_is_not_undone() {
        let mut lost = LostNumbers::default();
        let numbers: std::vec::Vec<u64> = (0..=MAX_RUNS as u64).map(|number| number * 2).collect();
        lose(&mut lost, &numbers, true);
        let arrived = take(&mut lost, &[(0, 100)]);
        assert_eq!((arrived.packets, arrived.undo), (MAX_RUNS as u64, false));
    }
}
