//! Reading ahead.

use std::collections::VecDeque;
use std::fs::File;
use std::io;

use super::ring::{Ring, Way};
use crate::refusal::Refusal;

/// Reads a file in blocks of one size, and the next ones before they are asked for.
#[derive(Debug)]
pub struct Reader {
    ring: Ring,
    /// Bytes of the file, and of a block.
    len: u64,
    block: usize,
    /// Blocks that are on their way or there, in the order of the file, without gaps: where they begin, and their places.
    ahead: VecDeque<(u64, usize)>,
    /// The end of the last block that was not ahead, and how many before it were neither, in a row.
    missed: (u64, usize),
    depth: usize,
    /// Buffers for blocks to come.
    spare: Vec<Vec<u8>>,
}

impl Reader {
    /// Reads the first `len` bytes of `file` in blocks of `block` bytes, up to `depth` of them ahead.
    ///
    /// # Errors
    /// What the system refused of `io_uring`, and why.
    pub fn new(file: &File, len: u64, block: usize, depth: u16) -> Result<Self, Refusal> {
        let depth = depth.max(1);
        // One place more, for a block that is not ahead.
        let ring = Ring::new(file, depth.saturating_add(1))?;
        let spare = (0..depth).map(|_| Vec::new()).collect();
        let depth = depth.into();
        Ok(Self { ring, len, block, ahead: VecDeque::with_capacity(depth), missed: (0, 0), depth, spare })
    }

    /// The block that begins at `offset`, a multiple of the block's size, whole or up to the end of the file. Takes a buffer
    /// and gives another one, which has the block's length.
    ///
    /// # Errors
    /// The block cannot be read: [`io::ErrorKind::UnexpectedEof`] if the file has become shorter. The buffer is gone.
    pub fn read(&mut self, buffer: Vec<u8>, offset: u64) -> io::Result<Vec<u8>> {
        let filled = if self.ahead.iter().any(|(start, _)| *start == offset) {
            self.spare.push(buffer);
            self.take_ahead(offset)
        } else {
            self.read_apart(buffer, offset)
        };
        self.go_ahead()?;
        filled
    }

    /// Takes a block that is ahead; those before it are passed over.
    fn take_ahead(&mut self, offset: u64) -> io::Result<Vec<u8>> {
        while let Some((start, place)) = self.ahead.pop_front() {
            let filled = self.end(place);
            if start == offset {
                return filled;
            }
            self.keep(filled);
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Reads a block that is not ahead. What is ahead stays: the network asks again for what it has lost. Many blocks in a
    /// row are no loss, and what is ahead moves behind them.
    fn read_apart(&mut self, buffer: Vec<u8>, offset: u64) -> io::Result<Vec<u8>> {
        let end = offset.saturating_add(self.block as u64);
        let row = if self.missed.0 == offset { self.missed.1 + 1 } else { 0 };
        self.missed = (end, row);
        if row >= self.depth {
            while let Some((_, place)) = self.ahead.pop_front() {
                let filled = self.end(place);
                self.keep(filled);
            }
        }
        let place = self.begin(buffer, offset);
        if self.ahead.is_empty() {
            self.begin_ahead(end);
        }
        place.map_or(Err(io::ErrorKind::NotFound.into()), |place| self.end(place))
    }

    /// Begins to read what follows the blocks that are ahead.
    fn go_ahead(&mut self) -> io::Result<()> {
        if let Some((last, _)) = self.ahead.back() {
            self.begin_ahead(last + self.block as u64);
        }
        self.ring.submit()
    }

    /// Begins to read the blocks from `start` on, as many as there are buffers.
    fn begin_ahead(&mut self, mut start: u64) {
        while start < self.len
            && let Some(buffer) = self.spare.pop()
        {
            let Some(place) = self.begin(buffer, start) else { return };
            self.ahead.push_back((start, place));
            start += self.block as u64;
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

    /// Keeps the buffer of a block that nobody wants.
    fn keep(&mut self, filled: io::Result<Vec<u8>>) {
        self.spare.push(filled.unwrap_or_default());
    }
}
