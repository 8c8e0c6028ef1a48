use alloc::vec;
use alloc::vec::Vec;

use super::*;

fn name(seed: u8) -> PeerId {
    Identity::from_seed([seed; 32]).peer_id()
}

fn known(name: &PeerId) -> Known {
    Known { public: name.static_public(), shared: Zeroizing::new(*name.as_bytes()) }
}

fn peers(capacity: u32) -> Peers {
    Peers::new(capacity, &Identity::from_seed([0; 32]))
}

fn remembered(peers: &Peers, seeds: impl IntoIterator<Item = u8>) -> Vec<u8> {
    seeds.into_iter().filter(|seed| peers.of_peer(&name(*seed)).is_some()).collect()
}

#[test]
fn who_was_not_met_for_the_longest_time_is_forgotten_first() {
    let mut peers = peers(3);
    for seed in [1, 2, 3, 1, 4] {
        peers.remember(&name(seed), known(&name(seed)));
    }
    assert_eq!(remembered(&peers, 1..=4), [1, 3, 4]);
    peers.remember(&name(5), known(&name(5)));
    assert_eq!(remembered(&peers, 1..=5), [1, 4, 5]);
    assert_eq!(peers.len(), 3);
    let one = name(1);
    let (found, found_name) = peers.of_static(&one.static_public()).unwrap();
    assert_eq!((*found.shared, found_name), (*one.as_bytes(), one));
    assert!(peers.of_static(&name(3).static_public()).is_none());
    peers.clear();
    assert_eq!((peers.len(), remembered(&peers, 1..=5)), (0, vec![]));
    peers.remember(&name(6), known(&name(6)));
    assert_eq!(remembered(&peers, 1..=6), [6]);
}

#[test]
fn a_memory_for_nobody_remembers_nobody() {
    let mut peers = peers(0);
    peers.remember(&name(1), known(&name(1)));
    assert_eq!((peers.len(), peers.of_peer(&name(1)).is_none()), (0, true));
    assert!(peers.of_static(&name(1).static_public()).is_none());
}

/// Names of one static key, and keys with equal beginnings, take each other's place in a table and nothing else.
#[test]
fn names_that_share_a_place_do_not_take_each_other_along() {
    let mut peers = peers(2);
    let mut other = *name(1).as_bytes();
    other[31] ^= 0x80;
    let (one, other) = (name(1), PeerId::from_bytes(other).unwrap());
    assert_eq!(one.static_public(), other.static_public());
    peers.remember(&one, known(&one));
    peers.remember(&other, known(&other));
    assert_eq!(peers.of_static(&one.static_public()).unwrap().1, other);
    // They begin with the same bytes, so the second hides the first.
    assert!(peers.of_peer(&one).is_none());
    assert_eq!(*peers.of_peer(&other).unwrap().shared, *other.as_bytes());
    peers.remember(&name(2), known(&name(2)));
    assert_eq!(peers.of_static(&one.static_public()).unwrap().1, other, "the first has gone, not the second");
    peers.remember(&name(3), known(&name(3)));
    assert!(peers.of_static(&one.static_public()).is_none());
    assert_eq!(remembered(&peers, 1..=3), [2, 3]);
}

#[test]
fn the_memory_is_what_is_announced_and_no_message_adds_to_it() {
    let mut peers = peers(8);
    let room = peers.entries.capacity();
    for seed in 0..=50 {
        peers.remember(&name(seed), known(&name(seed)));
    }
    assert_eq!((peers.entries.capacity(), peers.len()), (room, 8));
    assert_eq!(Peers::memory(8), 8 * size_of::<Entry>() + 2 * KeyTable::memory(8) + Links::memory(8));
    assert!(Peers::memory(1) < 400, "{}", Peers::memory(1));
}
