//! Byte strings of any length in blocks of one size.

use alloc::boxed::Box;
use alloc::vec;

/// No block, no slot.
pub(super) const NONE: u32 = u32::MAX;

/// Bytes in a block.
const BLOCK: usize = 92;

#[derive(Clone, Copy, Debug)]
struct Block {
    next: u32,
    bytes: [u8; BLOCK],
}

/// A fixed pool of blocks, chained.
#[derive(Debug)]
pub(super) struct Blocks {
    pool: Box<[Block]>,
    first_free: u32,
    free: u32,
}

impl Blocks {
    /// Blocks for `bytes` bytes.
    pub(super) fn new(bytes: u32) -> Self {
        let count = Self::needed(bytes as usize);
        let mut pool: Box<[Block]> = vec![Block { next: NONE, bytes: [0; BLOCK] }; count as usize].into();
        for (next, block) in (1..count).zip(&mut pool) {
            block.next = next;
        }
        Self { pool, first_free: if count == 0 { NONE } else { 0 }, free: count }
    }

    /// Bytes on the heap for `bytes` bytes.
    pub(super) const fn memory(bytes: u32) -> usize {
        Self::needed(bytes as usize) as usize * size_of::<Block>()
    }

    /// Blocks that `len` bytes take, at least one.
    pub(super) const fn needed(len: usize) -> u32 {
        let needed = len.div_ceil(BLOCK) as u32;
        if needed == 0 { 1 } else { needed }
    }

    /// Keeps `bytes`, for which there are enough free blocks, and says in which block they begin.
    pub(super) fn write(&mut self, bytes: &[u8]) -> u32 {
        let first = self.first_free;
        let mut at = first;
        let mut rest = bytes;
        for left in (0..Self::needed(bytes.len())).rev() {
            let block = &mut self.pool[at as usize];
            let (now, later) = rest.split_at(rest.len().min(BLOCK));
            block.bytes[..now.len()].copy_from_slice(now);
            rest = later;
            self.free -= 1;
            let next = block.next;
            if left == 0 {
                block.next = NONE;
            }
            at = next;
        }
        self.first_free = at;
        first
    }

    /// Gives back the blocks that begin with `first`.
    pub(super) fn release(&mut self, first: u32) {
        let mut last = first;
        self.free += 1;
        while self.pool[last as usize].next != NONE {
            last = self.pool[last as usize].next;
            self.free += 1;
        }
        self.pool[last as usize].next = self.first_free;
        self.first_free = first;
    }

    /// Fills `out` with the bytes that begin in `first`.
    pub(super) fn read(&self, first: u32, out: &mut [u8]) {
        for (block, out) in self.chain(first).zip(out.chunks_mut(BLOCK)) {
            out.copy_from_slice(&block.bytes[..out.len()]);
        }
    }

    /// Whether `bytes` are what begins in `first`.
    pub(super) fn equal(&self, first: u32, bytes: &[u8]) -> bool {
        self.chain(first).count() == bytes.chunks(BLOCK).len()
            && self
                .chain(first)
                .zip(bytes.chunks(BLOCK))
                .all(|(block, bytes)| block.bytes[..bytes.len()] == *bytes)
    }

    /// Blocks that are free.
    pub(super) const fn free(&self) -> u32 {
        self.free
    }

    /// Blocks in all.
    pub(super) const fn len(&self) -> usize {
        self.pool.len()
    }

    fn chain(&self, first: u32) -> impl Iterator<Item = &Block> {
        let block = |at: u32| self.pool.get(at as usize);
        core::iter::successors(block(first), move |&&Block { next, .. }| block(next))
    }
}
