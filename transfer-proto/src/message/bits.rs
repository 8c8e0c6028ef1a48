//! A first chunk and a bit vector: which chunks a receiver wants.

use super::MAX_WANTED;

/// Most chunks that one `Want` reaches over.
pub const WANT_SPAN: u64 = MAX_WANTED as u64;

const BYTES: usize = MAX_WANTED / 8;

/// A set of at most 256 chunks, the first one and those near behind it. Never empty.
///
/// Bit `i` of byte `j` stands for chunk `first + 8·j + i`, bit 0 being the lowest (`PROTO §10.10`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkBits {
    first: u64,
    bits: [u8; BYTES],
    len: u8,
}

impl ChunkBits {
    /// The set of one chunk.
    pub const fn of(chunk: u64) -> Self {
        let mut bits = [0; BYTES];
        bits[0] = 1;
        Self { first: chunk, bits, len: 1 }
    }

    /// Adds `chunk` and says whether it was within reach: not before the first, less than 256 behind it.
    pub fn insert(&mut self, chunk: u64) -> bool {
        let Some(distance) = chunk.checked_sub(self.first).filter(|distance| *distance < WANT_SPAN) else {
            return false;
        };
        let byte = (distance / 8) as usize;
        self.bits[byte] |= 1 << (distance % 8);
        self.len = self.len.max(byte as u8 + 1);
        true
    }

    /// The first chunk.
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The last chunk.
    pub fn last(&self) -> u64 {
        let highest = u64::from(7 - self.bytes()[self.bytes().len() - 1].leading_zeros() as u8);
        self.first + 8 * (u64::from(self.len) - 1) + highest
    }

    /// How many chunks the set has.
    pub fn count(&self) -> usize {
        self.bytes().iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// The chunks in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let span = 0..8 * u64::from(self.len);
        span.filter(|at| self.bits[(at / 8) as usize] >> (at % 8) & 1 == 1).map(|at| self.first + at)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bits[..usize::from(self.len)]
    }

    /// Reads a vector in its only form: the first bit is set, and one in the last byte.
    pub(crate) fn from_bytes(first: u64, bytes: &[u8]) -> Option<Self> {
        let mut bits = [0; BYTES];
        bits.get_mut(..bytes.len())?.copy_from_slice(bytes);
        if bytes.first()? & 1 == 0 || *bytes.last()? == 0 || first > u64::MAX - WANT_SPAN {
            return None;
        }
        Some(Self { first, bits, len: bytes.len() as u8 })
    }
}
