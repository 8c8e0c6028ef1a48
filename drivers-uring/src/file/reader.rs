//! Reading ahead.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;

use super::MAX_DEPTH;
use super::ring::{Ring, Way};
use crate::refusal::Refusal;

/// Reads a file in blocks of one size, and the next ones before they are asked for.
pub struct Reader {
    ring: Ring,
    /// Bytes of the file, and of a block.
    len: u64,
    block: usize,
    /// Blocks that are on their way or there, in the order of the file, without gaps: where they begin, and their places.
    ahead: VecDeque<(u64, usize)>,
    /// Where the next one to be ahead begins.
    next: u64,
    /// The end of the last block that was not ahead, and how many before it were neither, in a row.
    missed: (u64, usize),
    depth: usize,
    /// Buffers for blocks to come.
    spare: Vec<Vec<u8>>,
}

impl Reader {
    /// Reads the first `len` bytes of `file` in blocks of `block` bytes, up to `depth` of them (1 to 1,024) ahead.
    ///
    /// # Errors
    /// What the system refused of `io_uring`, and why.
    pub fn new(file: &File, len: u64, block: usize, depth: u16) -> Result<Self, Refusal> {
        let depth = depth.clamp(1, MAX_DEPTH);
        // One place more, for a block that is not ahead.
        let ring = Ring::new(file, depth + 1)?;
        let spare = (0..depth).map(|_| Vec::new()).collect();
        let depth = depth.into();
        Ok(Self {
            ring,
            len,
            block,
            ahead: VecDeque::with_capacity(depth),
            next: 0,
            missed: (0, 0),
            depth,
            spare,
        })
    }

    /// The block that begins at `offset`, a multiple of the block's size, whole or up to the end of the file. Takes a buffer
    /// and gives another one, which has the block's length.
    ///
    /// # Errors
    /// The block cannot be read: [`io::ErrorKind::UnexpectedEof`] if the file has become shorter. The buffer is gone.
    pub fn read(&mut self, buffer: Vec<u8>, offset: u64) -> io::Result<Vec<u8>> {
        let at = self.ahead.iter().position(|(start, _)| *start == offset);
        let place = match at.and_then(|at| self.ahead.remove(at)) {
            Some((_, place)) => {
                self.spare.push(buffer);
                self.pass_over(at.unwrap_or(0));
                place
            }
            None => self.begin_apart(buffer, offset)?,
        };
        self.begin_ahead();
        self.ring.submit()?;
        self.end(place)
    }

    /// Drops the first `count` blocks that are ahead.
    fn pass_over(&mut self, count: usize) {
        for _ in 0..count {
            let Some((_, place)) = self.ahead.pop_front() else { return };
            let buffer = self.end(place).unwrap_or_default();
            self.spare.push(buffer);
        }
    }

    /// Begins to read a block that is not ahead. What is ahead stays: the network asks again for what it has lost. Many
    /// blocks in a row are no loss, and what is ahead moves behind them.
    fn begin_apart(&mut self, buffer: Vec<u8>, offset: u64) -> io::Result<usize> {
        let end = offset.saturating_add(self.block as u64);
        let row = if self.missed.0 == offset { self.missed.1 + 1 } else { 0 };
        self.missed = (end, row);
        if row >= self.depth {
            self.pass_over(self.ahead.len());
        }
        if self.ahead.is_empty() {
            self.next = end;
        }
        // There is a place: one more than blocks can be ahead.
        self.begin(buffer, offset).ok_or_else(|| io::ErrorKind::ResourceBusy.into())
    }

    /// Begins to read what follows, as many blocks as there are buffers.
    fn begin_ahead(&mut self) {
        while self.next < self.len
            && let Some(buffer) = self.spare.pop()
            && let Some(place) = self.begin(buffer, self.next)
        {
            self.ahead.push_back((self.next, place));
            self.next += self.block as u64;
        }
    }

    fn begin(&mut self, mut buffer: Vec<u8>, offset: u64) -> Option<usize> {
        let place = self.ring.free()?;
        let len = self.len.saturating_sub(offset).min(self.block as u64) as usize;
        buffer.resize(len, 0);
        self.ring.begin(place, Way::In, buffer, len, offset);
        Some(place)
    }

    /// Waits for the read at `place`.
    fn end(&mut self, place: usize) -> io::Result<Vec<u8>> {
        loop {
            if let Some(filled) = self.ring.take(place) {
                return filled;
            }
            self.ring.wait()?;
        }
    }
}

/// Without the bytes of the file.
impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Which of the blocks of one byte are ahead.
    fn ahead(reader: &Reader) -> Vec<u64> {
        assert_eq!(reader.ahead.len() + reader.spare.len(), reader.depth, "no buffer is lost");
        reader.ahead.iter().map(|(start, _)| *start).collect()
    }

    #[test]
    fn what_is_ahead_follows_the_caller_over_losses_gaps_and_jumps() {
        let mut file = tempfile();
        let bytes: Vec<u8> = (0..40).collect();
        file.write_all(&bytes).unwrap();
        let mut reader = Reader::new(&file, 40, 1, 3).unwrap();
        let none: &[u64] = &[];
        for (block, expected) in [
            (39, none),
            (0, &[1, 2, 3]),
            (1, &[2, 3, 4]),
            // A gap is passed over.
            (4, &[5, 6, 7]),
            // What was lost is read apart.
            (2, &[5, 6, 7]),
            (3, &[5, 6, 7]),
            (5, &[6, 7, 8]),
            // It goes on elsewhere.
            (20, &[6, 7, 8]),
            (21, &[6, 7, 8]),
            (22, &[6, 7, 8]),
            (23, &[24, 25, 26]),
            (26, &[27, 28, 29]),
            (29, &[30, 31, 32]),
            (32, &[33, 34, 35]),
            (35, &[36, 37, 38]),
            (38, &[39]),
            (39, none),
            (7, &[8, 9, 10]),
        ] {
            assert_eq!(reader.read(Vec::new(), block).unwrap(), [block as u8]);
            assert_eq!(ahead(&reader), expected, "behind {block}");
        }
    }

    /// A file without a name.
    fn tempfile() -> File {
        let path = std::env::temp_dir().join(format!("wraith-reader-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }
}
