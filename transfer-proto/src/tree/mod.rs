//! A content as a tree: the plain BLAKE3 hash of its bytes, seen as lists of 1,024 values (`PROTO §10.4`).
//!
//! ```text
//! content id = root over the top list
//! level 3 list: values of subtrees of 1 TiB      (only above 1 TiB)
//! level 2 list: values of subtrees of 1 GiB      (only above 1 GiB)
//! level 1 list: values of chunks of 1 MiB        (only above 1 MiB)
//! ```
//!
//! Every boundary is a power of two, so each list entry is a node of the BLAKE3 tree itself.

mod build;
mod verify;

use blake3::Hasher;
use blake3::hazmat::{HasherExt as _, Mode, merge_subtrees_non_root, merge_subtrees_root};
use core::fmt;

pub use build::{Tree, TreeBuilder};
pub use verify::{Expected, TreeVerifier};

/// Length of every chunk but the last, bytes.
pub const CHUNK: usize = 1 << 20;

/// Most values in one list.
pub const FAN: usize = 1024;

/// Largest content, bytes: four levels of lists.
pub const MAX_SIZE: u64 = 1 << 60;

/// Highest level of a list.
pub(crate) const MAX_LEVEL: u8 = 4;

/// Names one list of a content: the values below node `index` of `level`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ListId {
    /// 1 for values of chunks, one more for each tier above; at most 4.
    pub level: u8,
    /// Number of the list in its level.
    pub index: u64,
}

impl ListId {
    /// How many values the list has in a content of `size` bytes; 0 if it has no such list.
    pub(crate) fn len(self, size: u64) -> usize {
        if self.level == 0 || self.level > top_level(size) {
            return 0;
        }
        let values = values_at(self.level, size);
        let start = self.index.saturating_mul(FAN as u64);
        values.saturating_sub(start).min(FAN as u64) as usize
    }

    /// The list one level up and the place of this list's value in it.
    pub(crate) const fn parent(self) -> (Self, usize) {
        let fan = FAN as u64;
        (Self { level: self.level + 1, index: self.index / fan }, (self.index % fan) as usize)
    }
}

/// Why a tree, a list or a chunk was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TreeError {
    /// Larger than [`MAX_SIZE`].
    TooLarge,
    /// The size cannot be that of this content.
    WrongSize,
    /// The content has no such chunk or list.
    OutOfRange,
    /// Not as many bytes or values as belong there.
    WrongLength,
    /// The values do not match the list's parent.
    WrongList,
    /// The bytes are not those of the chunk.
    WrongChunk,
    /// The parent of the list, or the list over the chunk, has not been accepted yet.
    Missing,
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the content is larger than 2^60 bytes",
            Self::WrongSize => "the size is not that of the content",
            Self::OutOfRange => "no such chunk or list",
            Self::WrongLength => "wrong length",
            Self::WrongList => "the list does not match the content",
            Self::WrongChunk => "the chunk does not match the content",
            Self::Missing => "the list above is not there yet",
        })
    }
}

impl core::error::Error for TreeError {}

/// Number of chunks of a content of `size` bytes; none if it is empty.
pub const fn chunk_count(size: u64) -> u64 {
    size.div_ceil(CHUNK as u64)
}

/// The chaining value of chunk `index`, for contents of more than one chunk.
///
/// # Errors
///
/// `WrongLength` if `bytes` is empty or longer than a chunk, `OutOfRange` if no content has such a chunk.
pub fn chunk_value(index: u64, bytes: &[u8]) -> Result<[u8; 32], TreeError> {
    // BLAKE3 panics on an empty subtree and on one that outgrows its place.
    if bytes.is_empty() || bytes.len() > CHUNK {
        return Err(TreeError::WrongLength);
    }
    if index >= chunk_count(MAX_SIZE) {
        return Err(TreeError::OutOfRange);
    }
    Ok(Hasher::new().set_input_offset(index * CHUNK as u64).update(bytes).finalize_non_root())
}

/// Length of chunk `index` in a content of `size` bytes; 0 if it has no such chunk.
pub(crate) const fn chunk_len(index: u64, size: u64) -> usize {
    if index >= chunk_count(size) {
        return 0;
    }
    let rest = size - index * CHUNK as u64;
    if rest < CHUNK as u64 { rest as usize } else { CHUNK }
}

/// The level of the list that stands right under the content id; 0 if the content has no list.
pub(crate) const fn top_level(size: u64) -> u8 {
    let mut level = 0;
    while level < MAX_LEVEL && size > unit(level + 1) {
        level += 1;
    }
    level
}

/// Number of values in all lists of `level`.
const fn values_at(level: u8, size: u64) -> u64 {
    size.div_ceil(unit(level))
}

/// Bytes under one value of a list of `level`: 1 MiB, 1 GiB, 1 TiB, 1 PiB.
const fn unit(level: u8) -> u64 {
    1 << (10 + 10 * level as u32)
}

/// The value of the subtree over `values`, of which only the last may be short; not the root.
pub(crate) fn subtree_value(values: &[[u8; 32]]) -> Option<[u8; 32]> {
    match halves(values)? {
        (left, None) => Some(left),
        (left, Some(right)) => Some(merge_subtrees_non_root(&left, &right, Mode::Hash)),
    }
}

/// The content id over the top list; `None` below two values, where there is no list.
pub(crate) fn root_hash(values: &[[u8; 32]]) -> Option<[u8; 32]> {
    let (left, right) = halves(values)?;
    Some(*merge_subtrees_root(&left, &right?, Mode::Hash).as_bytes())
}

/// Left and right child of the node over `values`; a single value stands for itself.
fn halves(values: &[[u8; 32]]) -> Option<([u8; 32], Option<[u8; 32]>)> {
    // Finished subtrees from the left, one for each set bit of the number of values taken.
    let mut stack = [[0u8; 32]; 12];
    let mut height = 0usize;
    for (taken, value) in values.iter().enumerate() {
        // Merging waits for the next value: only then is it certain that the node is not the last one.
        while height > taken.count_ones() as usize {
            height -= 1;
            stack[height - 1] = merge_subtrees_non_root(&stack[height - 1], &stack[height], Mode::Hash);
        }
        *stack.get_mut(height)? = *value;
        height += 1;
    }
    while height > 2 {
        height -= 1;
        stack[height - 1] = merge_subtrees_non_root(&stack[height - 1], &stack[height], Mode::Hash);
    }
    match height {
        0 => None,
        1 => Some((stack[0], None)),
        _ => Some((stack[0], Some(stack[1]))),
    }
}

/// The bytes of a list as values, if they are a whole number of them.
pub(crate) fn as_values(bytes: &[u8]) -> Option<&[[u8; 32]]> {
    let (values, rest) = bytes.as_chunks::<32>();
    rest.is_empty().then_some(values)
}

#[cfg(test)]
mod tests;
