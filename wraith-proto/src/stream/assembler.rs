//! Ordered reading for applications that want it.

use alloc::boxed::Box;
use alloc::vec;

/// Puts the pieces of one stream in order, in a buffer of fixed size that the application owns.
///
/// Stream data is lent in the order of arrival. A reader that wants order keeps an assembler per stream and lets the
/// peer send no further than [`Assembler::limit`]: `Session::grant` with `Transport::manual_credit`, and a
/// `Transport::stream_window` of at most the capacity. What the credit allows always fits.
#[derive(Debug)]
pub struct Assembler {
    buffer: Box<[u8]>,
    /// One bit per byte of the buffer: received and not yet consumed.
    present: Box<[u64]>,
    /// Offset of the first byte not consumed.
    start: u64,
    /// Bytes from `start` on that are all present.
    ready: usize,
}

impl Assembler {
    /// An assembler that holds up to `capacity` bytes, rounded up to a multiple of 64.
    pub fn new(capacity: usize) -> Self {
        let words = capacity.div_ceil(64).max(1);
        Self {
            buffer: vec![0; words * 64].into_boxed_slice(),
            present: vec![0; words].into_boxed_slice(),
            start: 0,
            ready: 0,
        }
    }

    /// Takes the piece at `offset` whole; `false` if a part of it lies beyond [`Assembler::limit`].
    #[must_use = "a piece that was not taken is lost: the credit was larger than the capacity"]
    pub fn insert(&mut self, offset: u64, data: &[u8]) -> bool {
        let Some(end) = offset.checked_add(data.len() as u64) else { return false };
        if end > self.limit() {
            return false;
        }
        let skip = self.start.saturating_sub(offset).min(data.len() as u64) as usize;
        let (mut at, mut data) = (self.position(offset + skip as u64), &data[skip..]);
        while !data.is_empty() {
            let take = data.len().min(self.buffer.len() - at);
            self.buffer[at..at + take].copy_from_slice(&data[..take]);
            self.mark(at, take, true);
            (at, data) = (0, &data[take..]);
        }
        self.advance();
        true
    }

    /// Forgets the first `len` bytes of what [`Assembler::readable`] shows, or all of it if that is less.
    pub fn consume(&mut self, len: usize) {
        let mut left = len.min(self.ready);
        self.ready -= left;
        while left > 0 {
            let at = self.position(self.start);
            let take = left.min(self.buffer.len() - at);
            self.mark(at, take, false);
            self.start += take as u64;
            left -= take;
        }
    }

    /// Bytes in order, as far as they lie in one piece; empty when the next byte is missing.
    pub fn readable(&self) -> &[u8] {
        let at = self.position(self.start);
        &self.buffer[at..at + self.ready.min(self.buffer.len() - at)]
    }

    /// Offset of the first byte of [`Assembler::readable`].
    pub fn offset(&self) -> u64 {
        self.start
    }

    /// Offset up to which pieces fit: what to grant.
    pub fn limit(&self) -> u64 {
        self.start.saturating_add(self.buffer.len() as u64)
    }

    fn position(&self, offset: u64) -> usize {
        (offset % self.buffer.len() as u64) as usize
    }

    fn mark(&mut self, at: usize, len: usize, present: bool) {
        let mut bit = at;
        while bit < at + len {
            let (word, low) = (bit / 64, bit % 64);
            let count = (64 - low).min(at + len - bit);
            let mask = (u64::MAX >> (64 - count)) << low;
            if present {
                self.present[word] |= mask;
            } else {
                self.present[word] &= !mask;
            }
            bit += count;
        }
    }

    /// Extends `ready` over the bytes that are there now.
    fn advance(&mut self) {
        while self.ready < self.buffer.len() {
            let at = self.position(self.start + self.ready as u64);
            let run = (!(self.present[at / 64] >> (at % 64))).trailing_zeros() as usize;
            let run = run.min(64 - at % 64).min(self.buffer.len() - self.ready);
            if run == 0 {
                break;
            }
            self.ready += run;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn pieces_in_any_order_are_read_in_order() {
        let mut assembler = Assembler::new(128);
        assert!(assembler.insert(4, b"efgh"));
        assert_eq!(assembler.readable(), b"");
        assert!(assembler.insert(0, b"abcd"));
        assert_eq!(assembler.readable(), b"abcdefgh");
        assembler.consume(3);
        assert_eq!((assembler.offset(), assembler.readable()), (3, &b"defgh"[..]));
    }

    #[test]
    fn a_piece_beyond_the_limit_is_refused_whole() {
        let mut assembler = Assembler::new(64);
        assert!(!assembler.insert(60, b"12345"));
        assert!(assembler.insert(59, b"12345"));
        assert_eq!(assembler.limit(), 64);
        assert!(!assembler.insert(u64::MAX, b"x"));
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(cuts in prop::collection::vec((1usize..40, any::<u16>()), 1..60)) {
            let total: usize = cuts.iter().map(|cut| cut.0).sum();
            let data: Vec<u8> = (0..total).map(|i| (i * 7 % 251) as u8).collect();
            let mut pieces = Vec::new();
            let mut at = 0;
            for (len, order) in cuts {
                pieces.push((order, at, len));
                at += len;
            }
            pieces.sort_unstable();
            let (mut assembler, mut out) = (Assembler::new(192), Vec::new());
            while out.len() < total {
                let before = out.len();
                for &(_, at, len) in &pieces {
                    let _ = assembler.insert(at as u64, &data[at..at + len]);
                }
                while !assembler.readable().is_empty() {
                    let take = assembler.readable().len().min(17);
                    out.extend_from_slice(&assembler.readable()[..take]);
                    assembler.consume(take);
                }
                prop_assert!(out.len() > before);
            }
            prop_assert_eq!(out, data);
        }
    }
}
