//! The routing table: nodes that answered, in buckets by the bits that they share with the own id.

use alloc::boxed::Box;
use alloc::vec;

use crate::id::{BUCKETS, Place};
use crate::node::{Address, Family, Node, has_room_for};
use crate::token::Token;

/// Nodes of a bucket, of an answer and of a closest set: the k of Kademlia.
pub(crate) const K: usize = 20;

/// Nodes that wait for a place in a bucket.
const SPARES: usize = 8;

/// Requests in a row without an answer after which a node is forgotten.
const PATIENCE: u8 = 2;

/// Seconds without an answer after which a node has to show that it is still there.
pub(crate) const STALE: u32 = 15 * 60;

/// Seconds for which a node surely takes an address token that it gave.
const FRESH: u32 = 5 * 60;

/// A node that answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contact {
    pub(crate) node: Node,
    /// What it gave us for our next request.
    token: Token,
    /// Seconds since the start, of its last answer.
    pub(crate) seen: u32,
    /// It waits for a place in its bucket.
    spare: bool,
    /// Requests in a row without an answer.
    failures: u8,
}

/// All buckets of both families, which share one pool.
///
/// A contact's bucket follows from its place, so the pool has no lists: a scan over the places, 8 bytes each, is as fast
/// as following links from one cache line to the next.
#[derive(Debug)]
pub(crate) struct Table {
    own: Place,
    len: usize,
    places: Box<[Place]>,
    families: Box<[Family]>,
    contacts: Box<[Contact]>,
    live: [[u8; BUCKETS]; 2],
}

/// The nearest contacts: distance and position in the pool.
pub(crate) type Nearest = heapless::Vec<(u64, u16), K>;

impl Table {
    /// A table for at most `capacity` contacts around `own`.
    pub(crate) fn new(own: Place, capacity: u16) -> Self {
        let blank = Contact {
            node: Node { key: [0; 32], address: Address::v4([0; 4], [0; 2]) },
            token: Token::default(),
            seen: 0,
            spare: false,
            failures: 0,
        };
        let capacity = usize::from(capacity);
        Self {
            own,
            len: 0,
            places: vec![Place::default(); capacity].into(),
            families: vec![Family::V4; capacity].into(),
            contacts: vec![blank; capacity].into(),
            live: [[0; BUCKETS]; 2],
        }
    }

    /// Bytes on the heap for `capacity` contacts.
    pub(crate) const fn memory(capacity: u16) -> usize {
        capacity as usize * (size_of::<Place>() + size_of::<Family>() + size_of::<Contact>())
    }

    /// Takes note that `node` answered. If it has to wait for a place, this is whom to ping: the contact of its bucket
    /// that was silent for longest, if that is too long.
    pub(crate) fn answered(&mut self, node: Node, token: Token, now: u32) -> Option<Node> {
        let place = node.id().place();
        let bucket = self.own.bucket(place)?;
        if let Some(at) = self.find(place, &node.key) {
            self.renew(at, node, token, now);
            return None;
        }
        let family = node.address.family();
        let full = usize::from(self.live[family as usize][bucket]) >= K;
        let oldest = if full { self.oldest(bucket, family, now) } else { None };
        if full && self.spares(bucket, family).count() >= SPARES {
            return oldest;
        }
        let known = self.contacts[..self.len].iter().map(|contact| &contact.node.address);
        if !has_room_for(known, &node.address) || !self.make_room(full) {
            return None;
        }
        let at = self.len;
        self.len += 1;
        self.places[at] = place;
        self.families[at] = family;
        self.contacts[at] = Contact { node, token, seen: now, spare: full, failures: 0 };
        if !full {
            self.live[family as usize][bucket] += 1;
        }
        oldest
    }

    /// Takes note that `node` did not answer. It goes when it did so too often, or when another waits for its place.
    pub(crate) fn failed(&mut self, node: &Node) {
        let place = node.id().place();
        let Some(at) = self.find(place, &node.key) else { return };
        if self.contacts[at].node.address != node.address {
            return;
        }
        let (family, spare) = (self.families[at], self.contacts[at].spare);
        let Some(bucket) = self.own.bucket(place) else { return };
        self.contacts[at].failures += 1;
        let heir = self.spares(bucket, family).max_by_key(|&at| self.contacts[at].seen);
        if self.contacts[at].failures < PATIENCE && !spare && heir.is_none() {
            return;
        }
        if !spare {
            match heir {
                Some(heir) => self.contacts[heir].spare = false,
                None => self.live[family as usize][bucket] -= 1,
            }
        }
        self.remove(at);
    }

    /// The [`K`] contacts nearest to `target`, of one family or of both, without those whose last request failed.
    pub(crate) fn nearest(&self, target: Place, family: Option<Family>) -> Nearest {
        let mut nearest = Nearest::new();
        for (at, (place, own)) in self.places[..self.len].iter().zip(&self.families[..self.len]).enumerate() {
            let distance = place.distance(target);
            if nearest.is_full() && nearest.last().is_some_and(|&(worst, _)| worst <= distance) {
                continue;
            }
            let contact = &self.contacts[at];
            if contact.spare || contact.failures > 0 || family.is_some_and(|family| family != *own) {
                continue;
            }
            if nearest.is_full() {
                nearest.pop();
            }
            let index = nearest.partition_point(|&(other, _)| other < distance);
            // There is room: one was taken out.
            let _ = nearest.insert(index, (distance, at as u16));
        }
        nearest
    }

    /// A contact of [`Table::nearest`].
    pub(crate) fn contact(&self, at: u16) -> &Contact {
        &self.contacts[usize::from(at)]
    }

    /// What `node` gave us for our next request; zeros if nothing, or if it may take it no more.
    pub(crate) fn token(&self, node: &Node, now: u32) -> Token {
        self.find(node.id().place(), &node.key)
            .map(|at| &self.contacts[at])
            .filter(|contact| contact.node.address == node.address)
            .filter(|contact| now.saturating_sub(contact.seen) < FRESH)
            .map_or_else(Token::default, |contact| contact.token)
    }

    /// Whether `node` would be taken in if it answered.
    pub(crate) fn wants(&self, node: &Node) -> bool {
        let place = node.id().place();
        self.own.bucket(place).is_some_and(|bucket| {
            usize::from(self.live[node.address.family() as usize][bucket]) < K
                && self.find(place, &node.key).is_none()
        })
    }

    /// Whether `node` has a place, and does not wait for one.
    pub(crate) fn has_placed(&self, node: &Node) -> bool {
        self.find(node.id().place(), &node.key).is_some_and(|at| !self.contacts[at].spare)
    }

    /// The contact that was silent for longest, spares apart, if that is longer than [`STALE`].
    pub(crate) fn stalest(&self, now: u32) -> Option<Node> {
        let live = (0..self.len).filter(|&at| !self.contacts[at].spare);
        let oldest = live.min_by_key(|&at| self.contacts[at].seen)?;
        self.is_stale(oldest, now).then(|| self.contacts[oldest].node)
    }

    /// The first bucket from `from` on that is less than half full though there are enough nodes for more: beyond the
    /// [`K`] nearest, all of whom the search for the own place has found.
    pub(crate) fn sparse(&self, from: usize) -> Option<usize> {
        let count = |counts: &[u8]| counts.iter().map(|&count| usize::from(count)).sum::<usize>();
        (from..BUCKETS).find(|&bucket| {
            let is_sparse = |live: &[u8; BUCKETS]| count(&live[bucket..]) > K && live[bucket] < K as u8 / 2;
            self.live.iter().any(is_sparse)
        })
    }

    /// How far the [`K`]th contact is from the own place.
    pub(crate) fn reach(&self) -> Option<u64> {
        self.nearest(self.own, None).get(K - 1).map(|&(distance, _)| distance)
    }

    /// Contacts, spares apart.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Contact> {
        self.contacts[..self.len].iter().filter(|contact| !contact.spare)
    }

    /// How many contacts there are, spares apart.
    pub(crate) fn len(&self) -> usize {
        self.live.as_flattened().iter().map(|&count| usize::from(count)).sum()
    }

    fn renew(&mut self, at: usize, node: Node, token: Token, now: u32) {
        let known = self.contacts[at].node.address;
        if known != node.address {
            let others = self.contacts[..self.len].iter().enumerate().filter(|&(other, _)| other != at);
            let mut others = others.map(|(_, contact)| &contact.node.address);
            // It answered from where it was asked, so it has moved; but no prefix fills up that way.
            if known.family() != node.address.family() || !has_room_for(&mut others, &node.address) {
                return;
            }
        }
        let spare = self.contacts[at].spare;
        self.contacts[at] = Contact { node, token, seen: now, spare, failures: 0 };
    }

    fn find(&self, place: Place, key: &[u8; 32]) -> Option<usize> {
        (0..self.len).find(|&at| self.places[at] == place && self.contacts[at].node.key == *key)
    }

    fn is_stale(&self, at: usize, now: u32) -> bool {
        now.saturating_sub(self.contacts[at].seen) > STALE || self.contacts[at].failures > 0
    }

    fn in_bucket(&self, bucket: usize, family: Family) -> impl Iterator<Item = usize> {
        let found = move |at: &usize| self.own.bucket(self.places[*at]) == Some(bucket);
        (0..self.len).filter(found).filter(move |&at| self.families[at] == family)
    }

    fn spares(&self, bucket: usize, family: Family) -> impl Iterator<Item = usize> {
        self.in_bucket(bucket, family).filter(|&at| self.contacts[at].spare)
    }

    /// Who was silent for longest in a bucket, if that is too long.
    fn oldest(&self, bucket: usize, family: Family, now: u32) -> Option<Node> {
        let live = self.in_bucket(bucket, family).filter(|&at| !self.contacts[at].spare);
        let oldest = live.min_by_key(|&at| self.contacts[at].seen)?;
        self.is_stale(oldest, now).then(|| self.contacts[oldest].node)
    }

    /// Whether the pool has a place, which a spare may have to leave to one that does not wait.
    fn make_room(&mut self, for_spare: bool) -> bool {
        if self.len == self.contacts.len() {
            let spares = (0..self.len).filter(|&at| self.contacts[at].spare);
            match spares.min_by_key(|&at| self.contacts[at].seen) {
                Some(spare) if !for_spare => self.remove(spare),
                _ => return false,
            }
        }
        true
    }

    /// Takes a contact out of the pool; whoever calls keeps the count of its bucket.
    fn remove(&mut self, at: usize) {
        self.len -= 1;
        self.places.swap(at, self.len);
        self.families.swap(at, self.len);
        self.contacts.swap(at, self.len);
    }
}

#[cfg(test)]
mod tests;
