//! The nodes that one lookup has heard of, nearest first.

use crate::id::Place;
use crate::node::{Address, Node, has_room_for};
use crate::table::K;
use crate::token::{Token, WriteToken};

/// Disjoint paths of a lookup: the α of Kademlia. A node is asked on one of them, so that one liar misleads one path.
pub(crate) const PATHS: usize = 3;

/// Nodes that a lookup keeps in mind.
const CAPACITY: usize = 56;

/// Nodes for which a second address is kept: the nearest of those about which paths differ.
const OTHERS: usize = 4;

/// So many times sparser than expected nodes may lie around a target by chance, or since many have gone.
const SPARSEST: u64 = 4;

/// What is known of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Not asked yet.
    New,
    /// Asked.
    Asked,
    /// It answered, with this write token.
    Answered(WriteToken),
    /// It answered, and was chosen to store.
    Chosen(WriteToken),
    /// It was asked to store, with this write token.
    Offered(WriteToken),
    /// It did not answer. It stays, so that its prefix does not get another place.
    Failed,
}

/// A node of a lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) node: Node,
    pub(crate) distance: u64,
    pub(crate) state: State,
    /// The paths that know it, one bit each.
    pub(crate) paths: u8,
    /// Steps of the chain of queries that leads to its answer.
    pub(crate) depth: u8,
    /// What it gave for the next request; zeros before.
    pub(crate) token: Token,
    /// Whether it wanted to be asked again with a token, which it may once.
    pub(crate) asked_again: bool,
}

/// Nodes by their distance. Two of one distance are taken for one.
#[derive(Debug, Default)]
pub(crate) struct Shortlist {
    entries: heapless::Vec<Entry, CAPACITY>,
    /// The beginning of each entry's key: most nodes of an answer were heard of before, and need not be hashed again.
    keys: heapless::Vec<u32, CAPACITY>,
    /// Where another path says that the node at a distance is.
    others: heapless::Vec<(u64, Address), OTHERS>,
}

impl Shortlist {
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.keys.clear();
        self.others.clear();
    }

    /// [Learns](Self::learn) a node whose distance from `target` is not known yet.
    pub(crate) fn hear(&mut self, node: Node, target: Place, path: u8, depth: u8) {
        let beginning = beginning(&node);
        let alike = self.keys.iter().enumerate().filter(|&(_, &key)| key == beginning);
        let known = alike.map(|(at, _)| at).find(|&at| self.entries[at].node.key == node.key);
        match known {
            Some(at) => self.hear_again(at, &node, path),
            None => self.learn(node, node.id().place().distance(target), path, depth),
        }
    }

    /// Takes `node` in if there is room for its prefix and it is nearer than the last; a path that knows it already
    /// knows it better.
    fn learn(&mut self, node: Node, distance: u64, path: u8, depth: u8) {
        let index = self.entries.partition_point(|entry| entry.distance < distance);
        if self.entries.get(index).is_some_and(|known| known.distance == distance) {
            self.hear_again(index, &node, path);
            return;
        }
        if self.entries.is_full() && index == CAPACITY {
            return;
        }
        if !has_room_for(self.entries.iter().map(|entry| &entry.node.address), &node.address) {
            return;
        }
        if self.entries.is_full() && !self.drop_last(index) {
            return;
        }
        let token = Token::default();
        let entry =
            Entry { node, distance, state: State::New, paths: 1 << path, depth, token, asked_again: false };
        // There is room: one behind was dropped.
        let _ = self.entries.insert(index, entry);
        let _ = self.keys.insert(index, beginning(&entry.node));
    }

    /// Whom `path` asks next: the nearest that it knows and nobody asked, as long as fewer than [`K`] nearer ones
    /// answered or may answer, or it is within `radius`, the distance of the [`K`]th node to be expected; 0 if none is.
    ///
    /// Nodes much farther than that are not the nearest, however many there are: who knew only them was misled, and goes on
    /// with the nodes that it had before.
    pub(crate) fn candidate(&self, path: u8, radius: u64) -> Option<Entry> {
        let near = if radius == 0 { u64::MAX } else { radius.saturating_mul(SPARSEST) };
        let known =
            self.entries.iter().filter(|entry| entry.paths & 1 << path != 0 && entry.state != State::Failed);
        let mut before = 0;
        for entry in known {
            if before >= K && entry.distance > radius {
                return None;
            }
            if entry.state == State::New {
                return Some(*entry);
            }
            before += usize::from(entry.distance <= near);
        }
        None
    }

    /// The node at a distance.
    pub(crate) fn get(&self, distance: u64) -> Option<&Entry> {
        let index = self.entries.binary_search_by_key(&distance, |entry| entry.distance).ok()?;
        self.entries.get(index)
    }

    /// The node at a distance.
    pub(crate) fn at(&mut self, distance: u64) -> Option<&mut Entry> {
        let index = self.entries.binary_search_by_key(&distance, |entry| entry.distance).ok()?;
        self.entries.get_mut(index)
    }

    /// A path that has not named a node yet may say that it is elsewhere.
    fn hear_again(&mut self, at: usize, node: &Node, path: u8) {
        let entry = &mut self.entries[at];
        let is_new = entry.paths & 1 << path == 0;
        entry.paths |= 1 << path;
        let differs = entry.node.key == node.key && entry.node.address != node.address;
        let distance = entry.distance;
        if !is_new || !differs || self.others.iter().any(|&(of, _)| of == distance) {
            return;
        }
        if self.others.is_full() {
            let farthest = self.others.iter_mut().max_by_key(|(of, _)| *of);
            if let Some(farthest) = farthest.filter(|(of, _)| *of > distance) {
                *farthest = (distance, node.address);
            }
        } else {
            // There is room.
            let _ = self.others.push((distance, node.address));
        }
    }

    /// Takes note that the node at a distance did not answer, who it was and where. It is to be asked where another path
    /// says that it is, if there is room for the prefix: else who names it first could hide it.
    pub(crate) fn fail(&mut self, distance: u64) -> Option<Node> {
        let index = self.entries.binary_search_by_key(&distance, |entry| entry.distance).ok()?;
        let others = self.entries.iter().filter(|entry| entry.distance != distance);
        let mut others = others.map(|entry| &entry.node.address);
        let noted = self.others.iter().position(|&(of, _)| of == distance);
        let other = noted.map(|noted| self.others.swap_remove(noted).1);
        let other = other.filter(|other| has_room_for(&mut others, other));
        let entry = self.entries.get_mut(index)?;
        let failed = entry.node;
        match (entry.state, other) {
            (State::Asked, Some(other)) => {
                (entry.node.address, entry.state) = (other, State::New);
                (entry.token, entry.asked_again) = (Token::default(), false);
            }
            _ => entry.state = State::Failed,
        }
        Some(failed)
    }

    /// Chooses whom to store on: the [`K`] nearest that answered, and all that did within `radius`.
    pub(crate) fn choose(&mut self, radius: u64) {
        let mut count = 0;
        for entry in &mut self.entries {
            if let State::Answered(token) = entry.state
                && (count < K || entry.distance <= radius)
            {
                entry.state = State::Chosen(token);
                count += 1;
            }
        }
    }

    /// The nearest that was chosen and not asked since, and its token.
    pub(crate) fn chosen(&self) -> Option<(Entry, WriteToken)> {
        self.entries.iter().find_map(|entry| match entry.state {
            State::Chosen(token) => Some((*entry, token)),
            _ => None,
        })
    }

    /// Those that answered, nearest first.
    pub(crate) fn answered(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| matches!(entry.state, State::Answered(_)))
    }

    /// Whether `node` did not answer.
    pub(crate) fn has_failed(&self, node: &Node) -> bool {
        self.entries.iter().any(|entry| entry.state == State::Failed && entry.node == *node)
    }

    /// Nodes that the lookup began with.
    pub(crate) fn beginnings(&self) -> usize {
        self.entries.iter().filter(|entry| entry.depth == 1).count()
    }

    /// The last that nobody waits for goes, if it is at `from` or behind.
    fn drop_last(&mut self, from: usize) -> bool {
        let last = self.entries.iter().rposition(|entry| entry.state != State::Asked);
        last.filter(|&last| last >= from).is_some_and(|last| {
            self.entries.remove(last);
            self.keys.remove(last);
            true
        })
    }
}

const fn beginning(node: &Node) -> u32 {
    let [a, b, c, d, ..] = node.key;
    u32::from_ne_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;
    use std::vec::Vec;

    use super::*;
    use crate::node::NodeRef;

    fn node(site: u8) -> Node {
        NodeRef { key: [site; 32], address: SocketAddr::from(([9, site, 1, 1], 5)) }.into()
    }

    fn distances(list: &Shortlist) -> Vec<u64> {
        list.entries.iter().map(|entry| entry.distance).collect()
    }

    #[test]
    fn a_path_asks_the_nearest_that_it_knows_until_twenty_are_nearer() {
        let mut list = Shortlist::default();
        for at in 0..30 {
            list.learn(node(at), u64::from(at), at % 2, 1);
        }
        assert_eq!(list.candidate(0, 0).unwrap().distance, 0);
        assert_eq!(list.candidate(1, 0).unwrap().distance, 1);
        assert!(list.candidate(2, u64::MAX).is_none());
        for at in 0..25 {
            list.learn(node(at), u64::from(at), 2, 2);
        }
        for at in 0..20 {
            list.at(at).unwrap().state = State::Asked;
        }
        assert!(list.candidate(2, 19).is_none());
        assert_eq!(list.candidate(2, 20).unwrap().distance, 20, "the radius reaches further");
        list.at(3).unwrap().state = State::Failed;
        assert_eq!(list.candidate(2, 0).unwrap().distance, 20);
    }

    #[test]
    fn twenty_nodes_much_farther_than_expected_do_not_end_a_path() {
        let mut list = Shortlist::default();
        for at in 0..30 {
            list.learn(node(at), 1_000 + u64::from(at), 0, 1);
        }
        for at in 0..20 {
            list.at(1_000 + at).unwrap().state = State::Answered([1; 8]);
        }
        // The twentieth was expected at 250, and lies at up to four times that.
        assert_eq!(list.candidate(0, 253).unwrap().distance, 1_020);
        assert_eq!(list.candidate(0, 254).unwrap().distance, 1_020);
        assert!(list.candidate(0, 255).is_none());
        assert!(list.candidate(0, 0).is_none());
    }

    #[test]
    fn a_prefix_keeps_its_places_though_its_nodes_fail() {
        // PROTO §14.9
        let mut list = Shortlist::default();
        let same = |at: u8| Node { key: [at; 32], ..node(7) };
        list.learn(same(1), 50, 0, 1);
        list.learn(same(2), 40, 0, 1);
        list.learn(same(3), 30, 1, 1);
        list.at(40).unwrap().state = State::Failed;
        list.learn(same(4), 20, 2, 1);
        assert_eq!(distances(&list), [40, 50]);
    }

    #[test]
    fn a_node_that_does_not_answer_is_asked_where_another_path_says_that_it_is() {
        // PROTO §14.9, §14.11
        let mut list = Shortlist::default();
        let at = |site: u8| Node { key: [7; 32], ..node(site) };
        list.learn(at(1), 50, 0, 1);
        // Where another node at that distance is says nothing.
        list.learn(node(6), 50, 1, 1);
        // The path that named it first says no more, and of the others the first.
        for (site, path) in [(2, 0), (1, 1), (3, 1), (4, 2), (5, 2)] {
            list.learn(at(site), 50, path, 1);
        }
        let first = list.at(50).unwrap();
        (first.state, first.token, first.asked_again) = (State::Asked, [5; 16], true);
        assert_eq!(list.fail(50), Some(at(1)));
        let second = list.candidate(2, 0).unwrap();
        // Its token was of the other place.
        assert_eq!((second.node, second.token, second.asked_again), (at(4), [0; 16], false));
        list.at(50).unwrap().state = State::Asked;
        assert_eq!(list.fail(50), Some(at(4)));
        assert!(list.candidate(2, 0).is_none() && list.get(50).unwrap().state == State::Failed);
        // No prefix gets more places that way, and who has answered once is where it is.
        for (distance, full, state) in [(60, true, State::Asked), (70, false, State::Offered([1; 8]))] {
            let key = [distance as u8; 32];
            list.learn(Node { key, ..node(10 + distance as u8) }, distance, 0, 1);
            list.learn(Node { key, ..node(9) }, distance, 1, 1);
            for near in 0..if full { 2 } else { 0 } {
                list.learn(Node { key: [near as u8; 32], ..node(9) }, near, 0, 1);
            }
            list.at(distance).unwrap().state = state;
            list.fail(distance);
            assert_eq!(list.get(distance).unwrap().state, State::Failed);
        }
    }

    #[test]
    fn a_second_address_is_kept_for_the_four_nearest_about_which_paths_differ() {
        let mut list = Shortlist::default();
        for distance in [60, 10, 50, 20, 40, 30] {
            let key = [distance as u8; 32];
            list.learn(Node { key, ..node(distance as u8) }, distance, 0, 1);
            list.learn(Node { key, ..node(100 + distance as u8) }, distance, 1, 1);
        }
        let mut again = Vec::new();
        for distance in [10, 20, 30, 40, 50, 60] {
            list.at(distance).unwrap().state = State::Asked;
            list.fail(distance);
            again.push(list.get(distance).unwrap().state == State::New);
        }
        assert_eq!(again, [true, true, true, true, false, false]);
    }

    #[test]
    fn a_full_list_drops_its_last_but_nobody_who_was_asked() {
        let mut list = Shortlist::default();
        for at in 0..CAPACITY as u8 {
            list.learn(node(at), 1_000 + u64::from(at), 0, 1);
        }
        list.at(1_055).unwrap().state = State::Asked;
        list.learn(node(100), 2_000, 0, 1);
        list.learn(node(101), 5, 0, 1);
        let distances = distances(&list);
        assert_eq!(
            (distances.len(), distances[0], distances[54], distances[55]),
            (CAPACITY, 5, 1_053, 1_055)
        );
    }

    #[test]
    fn a_full_list_stays_sorted_though_its_last_were_asked() {
        let mut list = Shortlist::default();
        for at in 0..CAPACITY as u8 {
            list.learn(node(at), 10 * u64::from(at), 0, 1);
        }
        for at in [530, 540, 550] {
            list.at(at).unwrap().state = State::Asked;
        }
        let before = distances(&list);
        // Nobody behind it may go, and those before it are nearer.
        list.learn(node(100), 545, 0, 1);
        assert_eq!(distances(&list), before);
        list.learn(node(101), 515, 0, 1);
        assert!(distances(&list).is_sorted());
        assert!([515, 530, 540, 550].iter().all(|&at| list.at(at).is_some()) && list.at(520).is_none());
    }

    #[test]
    fn the_store_set_is_the_nearest_twenty_and_the_radius() {
        for (radius, expected) in [(0, 20), (22, 22), (u64::MAX, 29)] {
            let mut list = Shortlist::default();
            for at in 0..30 {
                list.learn(node(at), u64::from(at), 0, 1);
                list.at(u64::from(at)).unwrap().state = State::Answered([at; 8]);
            }
            list.at(5).unwrap().state = State::Failed;
            list.choose(radius);
            let mut count = 0;
            while let Some((entry, token)) = list.chosen() {
                assert_eq!(token, [entry.distance as u8; 8]);
                list.at(entry.distance).unwrap().state = State::Asked;
                count += 1;
            }
            assert_eq!(count, expected);
        }
    }

    #[test]
    fn a_node_that_was_heard_of_is_known_by_its_whole_key() {
        let mut list = Shortlist::default();
        let alike = |last: u8| {
            let mut key = [7; 32];
            key[31] = last;
            Node { key, ..node(last) }
        };
        let target = Place(0);
        list.hear(alike(1), target, 0, 1);
        list.hear(alike(2), target, 1, 2);
        list.hear(alike(1), target, 2, 3);
        let mut expected = [(alike(1), 0b101, 1), (alike(2), 0b010, 2)];
        expected.sort_by_key(|(node, ..)| node.id().place().0);
        let heard: Vec<_> = list.entries.iter().map(|entry| (entry.node, entry.paths, entry.depth)).collect();
        assert_eq!(heard, expected);
        assert!(list.entries.iter().all(|entry| entry.distance == entry.node.id().place().0));
        for at in 0..200 {
            list.hear(node(at), target, 0, 1);
            let same = list.entries.iter().zip(&list.keys).all(|(entry, key)| beginning(&entry.node) == *key);
            assert!(same && list.entries.len() == list.keys.len());
        }
    }
}
