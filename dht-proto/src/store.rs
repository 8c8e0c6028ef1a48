//! The records that this node keeps, in memory that was set aside when it was made.

use alloc::boxed::Box;
use alloc::vec;

use siphasher::sip::SipHasher13;
use wraith_proto::wire::{Full, Writer};

use crate::id::Id;
use crate::message::{MAX_RECORD, StoreResult, read_record, write_record};
use crate::node::{Address, Node};
use crate::rate::cell;
use crate::record::{Keyed, Kind, Record};

mod blocks;

use blocks::{Blocks, NONE};

/// Seconds that a record is kept after it was stored.
pub(crate) const LIFE: u32 = 2 * 3_600;

/// Seconds after which a node stores its own records again.
pub(crate) const REPUBLISH: u32 = 3_600;

/// Seconds after which it tries again if nobody took a record.
pub(crate) const REPEAT: u32 = 60;

/// Providers of one key that are kept.
pub(crate) const PROVIDERS: usize = 16;

/// Counters of prefixes. Prefixes that fall on one share its limit.
const CELLS: usize = 128;

/// One part in this many is what the nodes of one prefix may take of the store.
const SHARE: usize = 8;

/// A record as it is copied out.
pub(crate) type RecordBytes = heapless::Vec<u8, MAX_RECORD>;

/// What is kept of a record beside its bytes.
#[derive(Clone, Copy, Debug)]
struct Slot {
    key: Id,
    kind: Kind,
    /// Whose prefix it counts for; `None` for records of this node.
    cell: Option<u8>,
    len: u16,
    /// The first block of its bytes.
    first: u32,
    /// The next slot with the same hash, or the next free one.
    next: u32,
    seq: u64,
    expires: u32,
    /// When this node is to store it again, if it is its own; see [`Store::publish`].
    again: Option<u32>,
}

/// Records by key and kind. Nothing is allocated after it was made.
#[derive(Debug)]
pub(crate) struct Store {
    hash_key: [u8; 16],
    /// First slot of each hash.
    heads: Box<[u32]>,
    slots: Box<[Slot]>,
    /// First of the slots that are not used.
    free: u32,
    used: usize,
    blocks: Blocks,
    /// Records and blocks of each prefix.
    cells: Box<[(u32, u32)]>,
    /// Nothing expires before.
    expiry: u32,
    /// Nothing is due before.
    publication: u32,
}

impl Store {
    /// A store for `records` records of `bytes` bytes in all.
    pub(crate) fn new(records: u32, bytes: u32, hash_key: [u8; 16]) -> Self {
        let blank = Slot {
            key: Id::from_bytes([0; 32]),
            kind: Kind::Value,
            cell: None,
            len: 0,
            first: NONE,
            next: NONE,
            seq: 0,
            expires: 0,
            again: None,
        };
        let mut slots: Box<[Slot]> = vec![blank; records as usize].into();
        for (next, slot) in (1..records).zip(&mut slots) {
            slot.next = next;
        }
        Self {
            hash_key,
            heads: vec![NONE; heads(records)].into(),
            free: if records == 0 { NONE } else { 0 },
            slots,
            used: 0,
            blocks: Blocks::new(bytes),
            cells: vec![(0, 0); CELLS].into(),
            expiry: u32::MAX,
            publication: u32::MAX,
        }
    }

    /// Bytes on the heap.
    pub(crate) const fn memory(records: u32, bytes: u32) -> usize {
        records as usize * size_of::<Slot>() + heads(records) * 4 + Blocks::memory(bytes) + CELLS * 8
    }

    /// Keeps `record`, from a node at `from` or this one, if it is genuine, newer and there is room. Says what became of
    /// it, and the sequence number of the record that is there now.
    pub(crate) fn put(
        &mut self,
        keyed: &Keyed<'_>,
        expected: Option<u64>,
        from: Option<&Address>,
        now: u32,
    ) -> (StoreResult, u64) {
        let (key, record) = (keyed.key(), keyed.record());
        let (kind, seq) = (record.kind(), record.seq());
        let mut bytes = [0; MAX_RECORD];
        let mut w = Writer::new(&mut bytes);
        if write_record(&mut w, record).is_err() {
            return (StoreResult::NotGenuine, 0);
        }
        let old = self.find(key, kind, now);
        if let Some(old) = old.map(|at| &self.slots[at as usize]) {
            if kind == Kind::Signed && expected.is_some_and(|expected| expected != old.seq) {
                return (StoreResult::Conflict, old.seq);
            }
            if seq < old.seq || (seq == old.seq && !self.blocks.equal(old.first, w.written())) {
                return (StoreResult::Outdated, old.seq);
            }
        } else if expected.is_some() && kind == Kind::Signed {
            return (StoreResult::Conflict, 0);
        }
        // Last, since signatures are dear.
        if !keyed.is_genuine() {
            return (StoreResult::NotGenuine, 0);
        }
        if let Some(old) = old.filter(|&at| self.slots[at as usize].seq == seq) {
            let slot = &mut self.slots[old as usize];
            // This node's own do not expire, whoever stores them here as well.
            slot.expires = slot.expires.max(now.saturating_add(LIFE));
            return (StoreResult::Stored, seq);
        }
        let cell = from.map(|from| self.cell(from));
        if !self.has_room(cell, w.len(), old) {
            return (StoreResult::Full, old.map_or(0, |at| self.slots[at as usize].seq));
        }
        if let Some(old) = old {
            self.remove(old);
        }
        self.insert(key, kind, seq, cell, w.written(), now);
        (StoreResult::Stored, seq)
    }

    /// Keeps that `node` provides `key`, or goes on doing so.
    pub(crate) fn announce(&mut self, key: &Id, node: &Node, now: u32) -> StoreResult {
        let bytes = provider_bytes(node);
        let (mut count, mut known) = (0, None);
        for at in self.chain(key, Kind::Providers) {
            count += 1;
            let mut other = [0; 50];
            self.blocks.read(self.slots[at as usize].first, &mut other);
            if other[..32] == node.key {
                known = Some((at, other == bytes));
            }
        }
        match known {
            Some((at, true)) => {
                self.slots[at as usize].expires = now.saturating_add(LIFE);
                return StoreResult::Stored;
            }
            Some((at, false)) => self.remove(at),
            None if count >= PROVIDERS => return StoreResult::Full,
            None => {}
        }
        let cell = Some(self.cell(&node.address));
        if !self.has_room(cell, bytes.len(), None) {
            return StoreResult::Full;
        }
        self.insert(key, Kind::Providers, 0, cell, &bytes, now);
        StoreResult::Stored
    }

    /// Marks a record that is kept as this node's own: it does not expire, and is [`due`](Store::due) soon unless others
    /// [keep it](Store::published).
    pub(crate) fn publish(&mut self, key: &Id, kind: Kind, now: u32) {
        if let Some(at) = self.find(key, kind, now) {
            let slot = &mut self.slots[at as usize];
            slot.again = Some(now.saturating_add(REPEAT));
            slot.expires = u32::MAX;
            self.publication = self.publication.min(now.saturating_add(REPEAT));
        }
    }

    /// Takes note that other nodes keep a record; if it is this node's own it is due in an hour.
    pub(crate) fn published(&mut self, key: &Id, kind: Kind, now: u32) {
        if let Some(at) = self.find(key, kind, now)
            && let Some(again) = &mut self.slots[at as usize].again
        {
            *again = now.saturating_add(REPUBLISH);
        }
    }

    /// Forgets that a record is this node's own. It expires as others do.
    pub(crate) fn unpublish(&mut self, key: &Id, kind: Kind, now: u32) {
        if let Some(at) = self.find(key, kind, now) {
            let slot = &mut self.slots[at as usize];
            if slot.again.take().is_some() {
                slot.expires = now.saturating_add(LIFE);
                self.expiry = self.expiry.min(slot.expires);
            }
        }
    }

    /// Forgets what has expired.
    pub(crate) fn expire(&mut self, now: u32) {
        if now < self.expiry {
            return;
        }
        self.expiry = u32::MAX;
        for at in 0..self.slots.len() {
            let Slot { first, expires, .. } = self.slots[at];
            if first != NONE && expires <= now {
                self.remove(at as u32);
            } else if first != NONE {
                self.expiry = self.expiry.min(expires);
            }
        }
    }

    /// A record of this node that has to be stored again; once more soon unless others [keep it](Store::published).
    pub(crate) fn due(&mut self, now: u32) -> Option<(Id, Kind)> {
        if now < self.publication {
            return None;
        }
        let due = |slot: &&mut Slot| slot.again.is_some_and(|again| again <= now);
        let found = self.slots.iter_mut().find(due).map(|slot| {
            slot.again = Some(now.saturating_add(REPEAT));
            (slot.key, slot.kind)
        });
        let next = self.slots.iter().filter_map(|slot| slot.again).min();
        self.publication = next.unwrap_or(u32::MAX);
        found
    }

    /// Copies a record, as [`write_record`] writes it.
    pub(crate) fn read(&self, key: &Id, kind: Kind, now: u32, out: &mut RecordBytes) -> bool {
        let Some(slot) = self.find(key, kind, now).map(|at| &self.slots[at as usize]) else { return false };
        out.clear();
        let fits = out.resize_default(usize::from(slot.len)).is_ok();
        self.blocks.read(slot.first, out);
        fits
    }

    /// Writes a record into an answer, with its kind; says whether there is one.
    pub(crate) fn write(&self, key: &Id, kind: Kind, now: u32, w: &mut Writer<'_>) -> Result<bool, Full> {
        let mut bytes = RecordBytes::new();
        let found = self.read(key, kind, now, &mut bytes);
        w.bytes(&bytes)?;
        Ok(found)
    }

    /// The providers of `key`.
    pub(crate) fn providers(&self, key: &Id, now: u32) -> impl Iterator<Item = Node> {
        let live = self.chain(key, Kind::Providers).filter(move |&at| self.slots[at as usize].expires > now);
        live.map(|at| {
            let mut bytes = [0; 50];
            self.blocks.read(self.slots[at as usize].first, &mut bytes);
            provider(&bytes)
        })
    }

    /// Whether there is a record.
    pub(crate) fn contains(&self, key: &Id, kind: Kind, now: u32) -> bool {
        self.find(key, kind, now).is_some()
    }

    /// Records that are kept, providers among them.
    pub(crate) const fn len(&self) -> usize {
        self.used
    }

    fn find(&self, key: &Id, kind: Kind, now: u32) -> Option<u32> {
        self.chain(key, kind).find(|&at| self.slots[at as usize].expires > now)
    }

    /// The slots of one key and kind.
    fn chain(&self, key: &Id, kind: Kind) -> impl Iterator<Item = u32> {
        let first = self.heads[self.head(key)];
        let next = |&at: &u32| self.slots.get(at as usize).map(|slot| slot.next);
        let all = core::iter::successors(Some(first), next).take_while(|&at| at != NONE);
        let key = *key;
        all.filter(move |&at| self.slots[at as usize].key == key && self.slots[at as usize].kind == kind)
    }

    fn head(&self, key: &Id) -> usize {
        SipHasher13::new_with_key(&self.hash_key).hash(key.as_bytes()) as usize & (self.heads.len() - 1)
    }

    fn cell(&self, from: &Address) -> u8 {
        cell(&self.hash_key, from, CELLS) as u8
    }

    /// Whether a record of `len` bytes may be kept for `cell` once `old` is gone.
    fn has_room(&self, cell: Option<u8>, len: usize, old: Option<u32>) -> bool {
        let old = old.map(|at| &self.slots[at as usize]);
        let leaves = old.map_or(0, |slot| Blocks::needed(usize::from(slot.len)));
        let needed = Blocks::needed(len);
        let (mut records, mut blocks) = cell.map_or((0, 0), |cell| self.cells[usize::from(cell)]);
        if let Some(old) = old.filter(|old| old.cell.is_some() && old.cell == cell) {
            records -= 1;
            blocks -= Blocks::needed(usize::from(old.len));
        }
        let own_share = cell.is_none()
            || ((records as usize) < (self.slots.len() / SHARE).max(1)
                && (blocks + needed) as usize <= (self.blocks.len() / SHARE).max(needed as usize));
        own_share && needed <= self.blocks.free() + leaves && (self.free != NONE || old.is_some())
    }

    /// Fills a slot; [`Store::has_room`] was asked.
    fn insert(&mut self, key: &Id, kind: Kind, seq: u64, cell: Option<u8>, bytes: &[u8], now: u32) {
        let (at, head) = (self.free, self.head(key));
        let Some(slot) = self.slots.get_mut(at as usize) else { return };
        self.free = slot.next;
        *slot = Slot {
            key: *key,
            kind,
            cell,
            len: bytes.len() as u16,
            first: self.blocks.write(bytes),
            next: self.heads[head],
            seq,
            expires: now.saturating_add(LIFE),
            again: None,
        };
        self.expiry = self.expiry.min(now.saturating_add(LIFE));
        self.heads[head] = at;
        self.used += 1;
        self.count(cell, |(records, blocks)| (records + 1, blocks + Blocks::needed(bytes.len())));
    }

    fn remove(&mut self, at: u32) {
        let Slot { key, cell, len, first, next, .. } = self.slots[at as usize];
        let head = self.head(&key);
        if self.heads[head] == at {
            self.heads[head] = next;
        } else {
            let mut before = self.heads[head];
            while self.slots[before as usize].next != at {
                before = self.slots[before as usize].next;
            }
            self.slots[before as usize].next = next;
        }
        self.blocks.release(first);
        let slot = &mut self.slots[at as usize];
        slot.first = NONE;
        slot.again = None;
        slot.next = self.free;
        self.free = at;
        self.used -= 1;
        self.count(cell, |(records, blocks)| (records - 1, blocks - Blocks::needed(usize::from(len))));
    }

    fn count(&mut self, cell: Option<u8>, change: impl Fn((u32, u32)) -> (u32, u32)) {
        if let Some(cell) = cell {
            let count = &mut self.cells[usize::from(cell)];
            *count = change(*count);
        }
    }
}

/// Heads of `records` records: about one each.
const fn heads(records: u32) -> usize {
    let records = if records == 0 { 1 } else { records };
    records.next_power_of_two() as usize
}

fn provider_bytes(node: &Node) -> [u8; 50] {
    let mut bytes = [0; 50];
    bytes[..32].copy_from_slice(&node.key);
    bytes[32..].copy_from_slice(&node.address.bytes());
    bytes
}

fn provider(bytes: &[u8; 50]) -> Node {
    let (mut key, mut address) = ([0; 32], [0; 18]);
    key.copy_from_slice(&bytes[..32]);
    address.copy_from_slice(&bytes[32..]);
    Node { key, address: Address::from_bytes(address) }
}

/// The record of [`Store::read`].
pub(crate) fn record(bytes: &[u8]) -> Option<Record<'_>> {
    read_record(bytes)
}

#[cfg(test)]
mod tests;
