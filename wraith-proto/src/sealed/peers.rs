//! The memory of a mailbox: peers that it has met, the oldest meeting first to be forgotten (`PROTO §12.12`).

use alloc::vec::Vec;

use zeroize::{Zeroize, Zeroizing};

use crate::crypto::{Identity, PeerId};
use crate::util::{KeyTable, Links, List};

const MAX_CAPACITY: u32 = 1 << 24;

/// Up to a fixed number of peers. Allocates when it is made.
pub(super) struct Peers {
    entries: Vec<Entry>,
    capacity: u32,
    /// By the first 8 bytes of the name and of the static key: entries whose first 8 bytes are equal hide each other.
    by_name: KeyTable,
    by_static: KeyTable,
    links: Links,
    order: List,
}

struct Entry {
    name: PeerId,
    known: Known,
}

/// What is known of a peer.
#[derive(Clone)]
pub(super) struct Known {
    /// Its static key, the X25519 form of its name.
    pub(super) public: [u8; 32],
    /// X25519 of the own static key and this one, which is not zero.
    pub(super) shared: Zeroizing<[u8; 32]>,
}

impl Peers {
    /// Room for `capacity` peers of the holder of `identity`.
    pub(super) fn new(capacity: u32, identity: &Identity) -> Self {
        let capacity = capacity.min(MAX_CAPACITY);
        let secret = Zeroizing::new(blake3::derive_key("WRAITH v1 sealed peers", identity.seed()));
        let mut hash_key = [0; 16];
        hash_key.copy_from_slice(&secret[..16]);
        let table = || KeyTable::new(capacity, &hash_key);
        Self {
            entries: Vec::with_capacity(capacity as usize),
            capacity,
            by_name: table(),
            by_static: table(),
            links: Links::new(capacity),
            order: List::EMPTY,
        }
    }

    /// Bytes that the memory of `capacity` peers takes.
    pub(super) const fn memory(capacity: u32) -> usize {
        let capacity = if capacity > MAX_CAPACITY { MAX_CAPACITY } else { capacity } as usize;
        capacity * size_of::<Entry>() + 2 * KeyTable::memory(capacity) + Links::memory(capacity)
    }

    /// Takes note that `name` was met, and of what is known of it.
    pub(super) fn remember(&mut self, name: &PeerId, known: Known) {
        if self.capacity == 0 {
            return;
        }
        if let Some(index) = self.find(name) {
            self.links.remove(&mut self.order, index);
            self.links.push_back(&mut self.order, index);
            return;
        }
        let entry = Entry { name: *name, known };
        let index = if self.entries.len() < self.capacity as usize {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            let Some(index) = self.links.pop_front(&mut self.order) else { return };
            let former = core::mem::replace(&mut self.entries[index as usize], entry);
            forget(&mut self.by_name, former.name.as_bytes(), index);
            forget(&mut self.by_static, &former.known.public, index);
            index
        };
        let entry = &self.entries[index as usize];
        // Each table has room for a key of every entry.
        let _ = self.by_name.insert(key(entry.name.as_bytes()), index);
        let _ = self.by_static.insert(key(&entry.known.public), index);
        self.links.push_back(&mut self.order, index);
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        while let Some(index) = self.links.pop_front(&mut self.order) {
            let entry = &self.entries[index as usize];
            forget(&mut self.by_name, entry.name.as_bytes(), index);
            forget(&mut self.by_static, &entry.known.public, index);
        }
        self.entries.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn of_peer(&self, name: &PeerId) -> Option<Known> {
        self.find(name).map(|index| self.entries[index as usize].known.clone())
    }

    /// What is known of the holder of a static key, and its name. Two names have one static key; the other one is the
    /// caller's to notice.
    pub(super) fn of_static(&self, public: &[u8; 32]) -> Option<(Known, PeerId)> {
        let entry = &self.entries[self.by_static.get(key(public))? as usize];
        (entry.known.public == *public).then(|| (entry.known.clone(), entry.name))
    }

    /// The name with these bytes, if it is remembered.
    pub(super) fn name(&self, bytes: &[u8; 32]) -> Option<PeerId> {
        let name = self.entries[self.by_name.get(key(bytes))? as usize].name;
        (name.as_bytes() == bytes).then_some(name)
    }

    fn find(&self, name: &PeerId) -> Option<u32> {
        let index = self.by_name.get(key(name.as_bytes()))?;
        (self.entries[index as usize].name == *name).then_some(index)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.known.shared.zeroize();
    }
}

/// Both are points of a curve that nobody can choose 64 bits of without as much work.
fn key(bytes: &[u8; 32]) -> u64 {
    bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// Takes the key of a former entry out of a table, unless it is another entry's by now.
fn forget(table: &mut KeyTable, bytes: &[u8; 32], index: u32) {
    if table.get(key(bytes)) == Some(index) {
        table.remove(key(bytes));
    }
}

#[cfg(test)]
mod tests;
