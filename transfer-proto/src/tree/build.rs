//! The provider's side: all values of a content, kept.

use super::{CHUNK, FAN, ListId, MAX_SIZE, TreeError, chunk_count, root_hash, subtree_value, top_level};
use alloc::vec::Vec;
use blake3::Hasher;
use blake3::hazmat::HasherExt as _;

/// The content id of a content and every list of it: 32 bytes for each MiB.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    size: u64,
    hash: [u8; 32],
    /// Values of level 1, 2, …; empty for a content of one chunk.
    levels: Vec<Vec<[u8; 32]>>,
}

impl Tree {
    /// The tree of a content in memory.
    ///
    /// # Errors
    ///
    /// `TooLarge` above [`MAX_SIZE`].
    pub fn of(bytes: &[u8]) -> Result<Self, TreeError> {
        let mut builder = TreeBuilder::new();
        builder.push(bytes)?;
        Ok(builder.finish())
    }

    /// The tree of a content of more than one chunk from the values of all its chunks, as
    /// [`chunk_value`](super::chunk_value) gives them (they can be computed on several threads).
    ///
    /// # Errors
    ///
    /// `TooLarge` above [`MAX_SIZE`], `WrongSize` for a size of at most one chunk, `WrongLength` if the
    /// number of values is not that of the chunks.
    pub fn from_values(size: u64, values: Vec<[u8; 32]>) -> Result<Self, TreeError> {
        if size > MAX_SIZE {
            return Err(TreeError::TooLarge);
        }
        if size <= CHUNK as u64 {
            return Err(TreeError::WrongSize);
        }
        if values.len() as u64 != chunk_count(size) {
            return Err(TreeError::WrongLength);
        }
        let mut levels = alloc::vec![values];
        while levels.len() < usize::from(top_level(size)) {
            let below = &levels[levels.len() - 1];
            let above = below.chunks(FAN).filter_map(subtree_value).collect();
            levels.push(above);
        }
        let hash = root_hash(&levels[levels.len() - 1]).ok_or(TreeError::WrongLength)?;
        Ok(Self { size, hash, levels })
    }

    /// Length of the content, bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The content id: what `b3sum` prints.
    pub const fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// The list under the content id, or nothing if the content has no list.
    pub fn top_list(&self) -> &[u8] {
        self.levels.last().map_or(&[], |values| values.as_flattened())
    }

    /// The bytes of a list, 32 for each value; `None` if the content has no such list.
    pub fn list(&self, id: ListId) -> Option<&[u8]> {
        let len = id.len(self.size);
        let values = self.levels.get(usize::from(id.level).checked_sub(1)?)?;
        let start = usize::try_from(id.index).ok()?.checked_mul(FAN)?;
        let list = values.get(start..start.checked_add(len)?)?;
        (!list.is_empty()).then_some(list.as_flattened())
    }
}

/// Builds a [`Tree`] from bytes as they come.
#[derive(Clone, Debug, Default)]
pub struct TreeBuilder {
    size: u64,
    /// The last chunk that has begun.
    open: Hasher,
    values: Vec<[u8; 32]>,
}

impl TreeBuilder {
    /// A builder that has seen no byte.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes, in pieces of any length.
    ///
    /// # Errors
    ///
    /// `TooLarge` above [`MAX_SIZE`]; nothing of `bytes` is taken then.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), TreeError> {
        if self.size + bytes.len() as u64 > MAX_SIZE {
            return Err(TreeError::TooLarge);
        }
        while !bytes.is_empty() {
            let filled = self.open.count() as usize;
            // A full chunk is closed by the first byte behind it: only then is it not the whole content.
            if filled == CHUNK {
                self.close_chunk();
                continue;
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - filled));
            self.open.update(now);
            self.size += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// The tree of all bytes so far.
    pub fn finish(mut self) -> Tree {
        if self.size <= CHUNK as u64 {
            return Tree { size: self.size, hash: *self.open.finalize().as_bytes(), levels: Vec::new() };
        }
        self.close_chunk();
        let Ok(tree) = Tree::from_values(self.size, self.values) else {
            unreachable!("one value for each chunk, and the size was checked");
        };
        tree
    }

    /// Bytes taken so far.
    pub const fn size(&self) -> u64 {
        self.size
    }

    fn close_chunk(&mut self) {
        self.values.push(self.open.finalize_non_root());
        // Not `reset`: it keeps the offset, under which the next one underflows.
        self.open = Hasher::new();
        self.open.set_input_offset(self.values.len() as u64 * CHUNK as u64);
    }
}
