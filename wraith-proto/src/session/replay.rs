//! Which packet numbers were received: the replay window and the source of acknowledgements.

use core::fmt;

/// Packet numbers that the window covers (`PROTO §5.9`).
const WIDTH: u64 = 8192;
const WORD: u64 = u64::BITS as u64;
const WORDS: usize = (WIDTH / WORD) as usize;

/// The received ones among the newest 8,192 packet numbers, one bit each in a ring (`PROTO §5.9`).
///
/// Checking and marking are two steps, since the window is touched only after the tag is good
/// (`PROTO §5.8`).
#[derive(Debug)]
pub(crate) struct ReceivedWindow {
    /// Bit `pn % 64` of word `pn / 64 % 128`; bits outside the window are those of `pn + 8192`.
    words: [u64; WORDS],
    expected: u64,
}

/// Why a packet number is not acceptable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// It was received before.
    Replayed,
    /// It lies behind the window, so nobody knows.
    TooOld,
}

impl ReceivedWindow {
    /// A window in which nothing was received.
    pub(crate) const fn new() -> Self {
        Self { words: [0; WORDS], expected: 0 }
    }

    /// Marks `pn`, below 2^62 (`PROTO §5.3`), as received.
    ///
    /// Behind the window nothing happens.
    pub(crate) fn mark(&mut self, pn: u64) {
        if pn >= self.expected {
            self.advance(pn.saturating_add(1));
        }
        if pn >= self.oldest() {
            self.words[word_of(pn)] |= bit_of(pn);
        }
    }

    /// Whether `pn` may still be accepted. Changes nothing: the tag comes first.
    ///
    /// # Errors
    ///
    /// `pn` was received before or lies behind the window.
    pub(crate) const fn check(&self, pn: u64) -> Result<(), Seen> {
        if pn >= self.expected {
            Ok(())
        } else if pn < self.oldest() {
            Err(Seen::TooOld)
        } else if self.words[word_of(pn)] & bit_of(pn) != 0 {
            Err(Seen::Replayed)
        } else {
            Ok(())
        }
    }

    /// The highest packet number received.
    #[cfg(test)]
    pub(crate) const fn largest(&self) -> Option<u64> {
        self.expected.checked_sub(1)
    }

    /// The packet number after the highest one received; 0 before the first.
    pub(crate) const fn expected(&self) -> u64 {
        self.expected
    }

    /// Writes the received ranges as (lowest, highest), both inclusive, newest first, into `out` and
    /// returns how many there are.
    ///
    /// Nothing below `floor` or behind the window is among them; what `out` cannot hold is left out.
    pub(crate) fn ranges(&self, floor: u64, out: &mut [(u64, u64)]) -> usize {
        let floor = floor.max(self.oldest());
        let mut end = self.expected;
        let mut count = 0;
        for range in out {
            let Some(high) = self.highest(floor, end, 0) else { break };
            let gap = self.highest(floor, high, u64::MAX);
            let low = gap.map_or(floor, |gap| gap + 1);
            *range = (low, high);
            count += 1;
            end = low;
        }
        count
    }

    /// The lowest packet number in the window.
    const fn oldest(&self) -> u64 {
        self.expected.saturating_sub(WIDTH)
    }

    /// Moves the end of the window to `expected` and clears the bits that come in.
    fn advance(&mut self, expected: u64) {
        if expected - self.expected >= WIDTH {
            self.words = [0; WORDS];
        } else {
            let mut at = self.expected;
            while at < expected {
                let next = (at | (WORD - 1)).saturating_add(1);
                let mut fresh = u64::MAX << (at % WORD);
                if next > expected {
                    fresh &= bit_of(expected) - 1;
                }
                self.words[word_of(at)] &= !fresh;
                at = next;
            }
        }
        self.expected = expected;
    }

    /// The highest number in `floor..end` whose bit differs from that of `flip`, word by word.
    fn highest(&self, floor: u64, mut end: u64, flip: u64) -> Option<u64> {
        while end > floor {
            let top = end - 1;
            let first = top - top % WORD;
            let word = (self.words[word_of(top)] ^ flip) & (u64::MAX >> (WORD - 1 - top % WORD));
            if word != 0 {
                // In the oldest word, bits below the floor may be those of newer numbers.
                let pn = first + u64::from(word.ilog2());
                return (pn >= floor).then_some(pn);
            }
            end = first;
        }
        None
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Replayed => "the packet was received before",
            Self::TooOld => "the packet lies behind the replay window",
        })
    }
}

impl core::error::Error for Seen {}

const fn word_of(pn: u64) -> usize {
    (pn / WORD) as usize % WORDS
}

const fn bit_of(pn: u64) -> u64 {
    1 << (pn % WORD)
}

#[cfg(test)]
mod tests;
