//! Expanded keys, for as many sessions as have traffic at a time (`docs/decisions/006`).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::epochs::Keys;
use crate::config::Limits;
use crate::crypto::{BadTag, CryptoProvider, EXPANDED_MEMORY, HeaderKey, KeyMaterial, PacketKey, Suite};
use crate::stats::Stats;
use crate::util::{Links, List};

/// The owner of a place that is free.
const NOBODY: u32 = u32::MAX;

/// Which of the places of a session.
const INWARD: usize = 0;
const OUTWARD: usize = 1;

/// Where a session's keys were last seen in the pool: inward, outward. They may have had to leave since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places([u32; 2]);

impl Places {
    /// Nowhere.
    pub(super) const NONE: Self = Self([u32::MAX; 2]);
}

/// Expanded keys of single directions of sessions. Those of the direction that was used least recently make room for others,
/// and are expanded again when it has a packet.
///
/// Places are made at handshakes, up to the limit, and stay: what happens for packets and ends of sessions allocates nothing,
/// as long as the provider's keys can be made anew in place.
pub(crate) struct KeyPool {
    crypto: &'static dyn CryptoProvider,
    places: Vec<Place>,
    capacity: usize,
    links: Links,
    /// Free places, then the others, the least recently used first. Among those that were used since keys last had to make room,
    /// the order is that of their first use.
    order: List,
    /// Times that keys were expanded into a place that was there.
    clock: u32,
}

/// The keys of one direction of a session.
pub(crate) struct Place {
    packet: Box<dyn PacketKey>,
    header: Box<dyn HeaderKey>,
    /// The session's index and the direction.
    owner: u32,
    /// Of the packet key.
    epoch: u32,
    /// The pool's clock at the last use that has moved the place behind the others.
    used: u32,
}

impl KeyPool {
    /// A pool without places, and memory to note them.
    pub(crate) fn new(limits: &Limits, crypto: &'static dyn CryptoProvider) -> Self {
        let capacity = capacity(limits);
        Self {
            crypto,
            places: Vec::with_capacity(capacity),
            capacity,
            links: Links::new(capacity as u32),
            order: List::EMPTY,
            clock: 0,
        }
    }

    /// Bytes that a pool takes at most, with keys of the default provider.
    pub(crate) const fn memory(limits: &Limits) -> usize {
        let capacity = capacity(limits);
        capacity * (size_of::<Place>() + EXPANDED_MEMORY) + Links::memory(capacity)
    }

    /// Expands the keys of a new session. The only place where the pool allocates.
    pub(crate) fn admit(&mut self, session: u32, keys: &mut Keys) {
        for direction in [INWARD, OUTWARD] {
            let vacant = self.order.front().is_some_and(|at| self.places[at as usize].owner == NOBODY);
            let at = if vacant || self.places.len() == self.capacity {
                self.take_front(session, direction, keys)
            } else {
                self.add(session, direction, keys)
            };
            self.touch(at);
        }
    }

    /// The session is over: its expanded keys are wiped.
    pub(crate) fn release(&mut self, session: u32, keys: &Keys) {
        for direction in [INWARD, OUTWARD] {
            let at = keys.places.0[direction];
            let Some(place) = self.places.get_mut(at as usize) else { continue };
            if place.owner != owner(session, direction) {
                continue;
            }
            place.clear(self.crypto, keys.suite);
            self.links.remove(&mut self.order, at);
            self.links.push_front(&mut self.order, at);
        }
    }

    /// The keys to seal a packet with.
    #[inline]
    pub(crate) fn sealing(&mut self, session: u32, keys: &mut Keys, stats: &mut Stats) -> &Place {
        let at = self.find(session, OUTWARD, keys, stats);
        self.touch(at);
        let place = &mut self.places[at as usize];
        if place.epoch != keys.epoch() {
            place.turn(self.crypto, keys.suite, keys.epoch(), keys.sealing());
        }
        place
    }

    /// The place of the keys to open a packet with. What makes use of it comes before anything else is done with the pool.
    #[inline]
    pub(crate) fn opening(&mut self, session: u32, keys: &mut Keys, stats: &mut Stats) -> u32 {
        self.find(session, INWARD, keys, stats)
    }

    /// The mask over the header of a packet that arrived.
    #[inline]
    pub(crate) fn mask(&self, at: u32, sample: &[u8; 16]) -> [u8; 5] {
        self.places[at as usize].header.mask(sample)
    }

    /// Opens a packet of this phase, and returns the length of its body. Only if it is authentic, the keys count as used: what
    /// anybody may send displaces those of one other direction and no more.
    #[inline]
    pub(crate) fn open(
        &mut self,
        at: u32,
        keys: &Keys,
        phase: u8,
        number: u64,
        header: &[u8],
        packet: &mut [u8],
    ) -> Result<usize, BadTag> {
        let (epoch, material) = keys.opening(phase).ok_or(BadTag)?;
        let place = &mut self.places[at as usize];
        if place.epoch != epoch {
            place.turn(self.crypto, keys.suite, epoch, material);
        }
        let len = place.packet.open_in_place(number, header, packet)?;
        self.touch(at);
        Ok(len)
    }

    /// The place of a direction's keys, which are expanded if they had to leave.
    #[inline]
    fn find(&mut self, session: u32, direction: usize, keys: &mut Keys, stats: &mut Stats) -> u32 {
        let at = keys.places.0[direction];
        match self.places.get(at as usize) {
            Some(place) if place.owner == owner(session, direction) => at,
            _ => {
                stats.keys_missed += 1;
                self.take_front(session, direction, keys)
            }
        }
    }

    /// Gives a direction the foremost place, which stays the foremost until it is used.
    #[cold]
    fn take_front(&mut self, session: u32, direction: usize, keys: &mut Keys) -> u32 {
        let at = self.order.front().expect("the handshake of any session has made places");
        let place = &mut self.places[at as usize];
        let (epoch, material) = epoch_and_key(keys, direction);
        place.turn(self.crypto, keys.suite, epoch, material);
        place.turn_header(self.crypto, keys.suite, keys.header(direction == OUTWARD));
        place.owner = owner(session, direction);
        keys.places.0[direction] = at;
        self.clock = self.clock.wrapping_add(1);
        at
    }

    /// Makes a place for a direction.
    fn add(&mut self, session: u32, direction: usize, keys: &mut Keys) -> u32 {
        let at = self.places.len() as u32;
        let (epoch, material) = epoch_and_key(keys, direction);
        self.places.push(Place {
            packet: self.crypto.key(keys.suite, material),
            header: self.crypto.header_key(keys.suite, keys.header(direction == OUTWARD)),
            owner: owner(session, direction),
            epoch,
            used: self.clock,
        });
        self.links.push_back(&mut self.order, at);
        keys.places.0[direction] = at;
        at
    }

    /// A place is used: it is the last to be given to others.
    #[inline]
    fn touch(&mut self, at: u32) {
        let place = &mut self.places[at as usize];
        if place.used != self.clock {
            place.used = self.clock;
            self.move_back(at);
        }
    }

    #[cold]
    fn move_back(&mut self, at: u32) {
        self.links.remove(&mut self.order, at);
        self.links.push_back(&mut self.order, at);
    }
}

impl Place {
    #[inline]
    pub(crate) fn packet(&self) -> &dyn PacketKey {
        &*self.packet
    }

    #[inline]
    pub(crate) fn header(&self) -> &dyn HeaderKey {
        &*self.header
    }

    /// Makes the packet key another one.
    #[cold]
    fn turn(&mut self, crypto: &dyn CryptoProvider, suite: Suite, epoch: u32, material: &KeyMaterial) {
        if !self.packet.rekey(suite, material) {
            self.packet = crypto.key(suite, material);
        }
        self.epoch = epoch;
    }

    /// Makes the header protection key another one.
    fn turn_header(&mut self, crypto: &dyn CryptoProvider, suite: Suite, key: &[u8; 32]) {
        if !self.header.rekey(suite, key) {
            self.header = crypto.header_key(suite, key);
        }
    }

    /// Wipes the keys; those of zeros stand in for them.
    fn clear(&mut self, crypto: &dyn CryptoProvider, suite: Suite) {
        self.turn(crypto, suite, 0, &KeyMaterial { key: [0; 32], prefix: [0; 16] });
        self.turn_header(crypto, suite, &[0; 32]);
        self.owner = NOBODY;
    }
}

/// The packet key of a direction that is probably needed next, and its epoch.
fn epoch_and_key(keys: &Keys, direction: usize) -> (u32, &KeyMaterial) {
    if direction == OUTWARD { (keys.epoch(), keys.sealing()) } else { keys.arriving() }
}

/// Places of a pool: one for each direction.
const fn capacity(limits: &Limits) -> usize {
    2 * limits.expanded_keys as usize
}

const fn owner(session: u32, direction: usize) -> u32 {
    session << 1 | direction as u32
}

#[cfg(test)]
mod tests;
