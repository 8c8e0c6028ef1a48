//! The receiver's side: nothing is believed that does not hang under the content id.

use super::{
    CHUNK, FAN, ListId, MAX_SIZE, TreeError, as_values, chunk_count, chunk_len, chunk_value, root_hash,
    subtree_value, top_level,
};
use alloc::vec::Vec;

/// Fewest lists kept: the way to the last chunk, to the next one and to one ahead, four levels each.
const MIN_LISTS: usize = 12;

/// Knows a content id and a claimed size, takes lists from the top down and says what a chunk must hash to.
///
/// Lists are kept in a fixed number of places; one that fell out is asked for again.
#[derive(Clone, Debug)]
pub struct TreeVerifier {
    hash: [u8; 32],
    size: u64,
    capacity: usize,
    lists: Vec<Held>,
    /// Counts uses of lists; the one with the smallest stamp goes first.
    clock: u64,
}

#[derive(Clone, Debug)]
struct Held {
    id: ListId,
    values: Vec<[u8; 32]>,
    stamp: u64,
}

impl TreeVerifier {
    /// A verifier for the content `hash` under the claim that it has `size` bytes; keeps up to `lists` lists
    /// (32 KiB each, at least 12).
    ///
    /// # Errors
    ///
    /// `TooLarge` above [`MAX_SIZE`], `WrongSize` if the content is empty and `hash` is not that of nothing.
    pub fn new(hash: [u8; 32], size: u64, lists: usize) -> Result<Self, TreeError> {
        if size > MAX_SIZE {
            return Err(TreeError::TooLarge);
        }
        if size == 0 && hash != *blake3::hash(&[]).as_bytes() {
            return Err(TreeError::WrongSize);
        }
        Ok(Self { hash, size, capacity: lists.max(MIN_LISTS), lists: Vec::new(), clock: 0 })
    }

    /// Takes a list if its parent vouches for it; one that is held already is checked and left.
    ///
    /// # Errors
    ///
    /// `OutOfRange`, `WrongLength` or `WrongList` for a list that does not belong to the content as claimed,
    /// `Missing` if its parent has not been accepted or has fallen out.
    pub fn accept(&mut self, id: ListId, bytes: &[u8]) -> Result<(), TreeError> {
        let len = id.len(self.size);
        if len == 0 {
            return Err(TreeError::OutOfRange);
        }
        let values = as_values(bytes).filter(|values| values.len() == len).ok_or(TreeError::WrongLength)?;
        let good = if id.level == top_level(self.size) {
            root_hash(values) == Some(self.hash)
        } else {
            let (parent, place) = id.parent();
            subtree_value(values) == Some(self.value(parent, place).ok_or(TreeError::Missing)?)
        };
        if !good {
            return Err(TreeError::WrongList);
        }
        self.keep(id, values);
        Ok(())
    }

    /// What chunk `index` must hash to, or the list to ask for next on the way to knowing it.
    ///
    /// # Errors
    ///
    /// The missing list whose parent is there.
    pub fn expected(&mut self, index: u64) -> Result<Expected, ListId> {
        let top = top_level(self.size);
        if top == 0 {
            return Ok(Expected::Root(self.hash));
        }
        let mut id = ListId { level: 1, index: index / FAN as u64 };
        if let Some(value) = self.value(id, (index % FAN as u64) as usize) {
            return Ok(Expected::Value(value));
        }
        while id.level < top {
            let (parent, place) = id.parent();
            if self.value(parent, place).is_some() {
                return Err(id);
            }
            id = parent;
        }
        Err(id)
    }

    /// Checks the bytes of chunk `index`.
    ///
    /// # Errors
    ///
    /// `OutOfRange`, `WrongLength` before anything is hashed, `Missing` without the list above, `WrongChunk`.
    pub fn check(&mut self, index: u64, bytes: &[u8]) -> Result<(), TreeError> {
        if index >= self.chunks() {
            return Err(TreeError::OutOfRange);
        }
        if bytes.len() != self.chunk_len(index) {
            return Err(TreeError::WrongLength);
        }
        let expected = self.expected(index).map_err(|_| TreeError::Missing)?;
        if expected.matches(index, bytes) { Ok(()) } else { Err(TreeError::WrongChunk) }
    }

    /// The content id.
    pub const fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// The claimed size, bytes. The last chunk proves it (`PROTO §10.9`).
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Number of chunks under the claimed size.
    pub const fn chunks(&self) -> u64 {
        chunk_count(self.size)
    }

    /// Length of chunk `index` under the claimed size; 0 if there is none.
    pub const fn chunk_len(&self, index: u64) -> usize {
        chunk_len(index, self.size)
    }

    /// The list under the content id, if the content has one.
    pub const fn top_list(&self) -> Option<ListId> {
        match top_level(self.size) {
            0 => None,
            level => Some(ListId { level, index: 0 }),
        }
    }

    fn value(&mut self, id: ListId, place: usize) -> Option<[u8; 32]> {
        self.clock += 1;
        let held = self.lists.iter_mut().find(|held| held.id == id)?;
        held.stamp = self.clock;
        held.values.get(place).copied()
    }

    fn keep(&mut self, id: ListId, values: &[[u8; 32]]) {
        self.clock += 1;
        let stamp = self.clock;
        if self.lists.iter().any(|held| held.id == id) {
            return;
        }
        if self.lists.len() < self.capacity {
            self.lists.push(Held { id, values: values.to_vec(), stamp });
        } else if let Some(oldest) = self.lists.iter_mut().min_by_key(|held| held.stamp) {
            oldest.id = id;
            oldest.stamp = stamp;
            oldest.values.clear();
            oldest.values.extend_from_slice(values);
        }
    }
}

/// What a chunk must hash to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// The chunk is the whole content.
    Root([u8; 32]),
    /// The chunk's chaining value.
    Value([u8; 32]),
}

impl Expected {
    /// Whether `bytes` are chunk `index`; lengths that no chunk has are never hashed.
    pub fn matches(&self, index: u64, bytes: &[u8]) -> bool {
        match *self {
            Self::Root(hash) => bytes.len() <= CHUNK && *blake3::hash(bytes).as_bytes() == hash,
            Self::Value(value) => chunk_value(index, bytes) == Ok(value),
        }
    }
}
