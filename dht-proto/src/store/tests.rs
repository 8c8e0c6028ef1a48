use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use wraith_proto::Identity;

use super::*;
use crate::node::NodeRef;
use crate::record::{MAX_VALUE, Signed, sign, value_key};

fn address(site: u8) -> Address {
    SocketAddr::from(([9, 9, site, 1], 5)).into()
}

fn node(at: u8, site: u8) -> Node {
    NodeRef { key: [at; 32], address: SocketAddr::from(([9, 9, site, 1], 5)) }.into()
}

fn store() -> Store {
    Store::new(64, 64 * 300, [1; 16])
}

fn put(store: &mut Store, value: &[u8], from: u8, now: u32) -> StoreResult {
    store.put(&Keyed::new(Record::Value(value)), None, Some(&address(from)), now).0
}

fn value_of(store: &Store, key: &Id, kind: Kind, now: u32) -> Option<Vec<u8>> {
    let mut bytes = RecordBytes::new();
    store.read(key, kind, now, &mut bytes).then(|| record(&bytes).unwrap().value().to_vec())
}

/// A signed record of one owner under one key.
struct Owner(Identity);

impl Owner {
    fn put(&self, store: &mut Store, seq: u64, value: &[u8], expected: Option<u64>) -> (StoreResult, u64) {
        let (peer, signature) = (self.0.peer_id(), sign(&self.0, 0, seq, value).unwrap());
        let signed = Signed { peer: peer.as_bytes(), salt: 0, seq, signature: &signature, value };
        store.put(&Keyed::new(Record::Signed(signed)), expected, Some(&address(1)), 0)
    }

    fn value(&self, store: &Store) -> Option<Vec<u8>> {
        value_of(store, &crate::signed_key(&self.0.peer_id(), 0), Kind::Signed, 0)
    }
}

#[test]
fn values_of_every_length_come_back() {
    for len in [0, 1, 88, 89, 90, 91, 92, 93, 180, 181, 182, MAX_VALUE] {
        let mut store = store();
        let value = vec![7; len];
        assert_eq!(put(&mut store, &value, 1, 0), StoreResult::Stored);
        assert_eq!(value_of(&store, &value_key(&value), Kind::Value, 0), Some(value));
    }
    assert_eq!(value_of(&store(), &value_key(b"a"), Kind::Value, 0), None);
}

#[test]
fn a_value_is_kept_under_its_own_key_alone() {
    // PROTO §14.13
    let mut store = store();
    assert_eq!(put(&mut store, b"b", 1, 0), StoreResult::Stored);
    let value = |key| value_of(&store, &key, Kind::Value, 0);
    assert_eq!((value(value_key(b"b")), value(value_key(b"a"))), (Some(b"b".to_vec()), None));
    assert!(value(Id::from_bytes(*blake3::hash(b"b").as_bytes())).is_none());
    assert!(value_of(&store, &value_key(b"b"), Kind::Signed, 0).is_none());
}

#[test]
fn the_highest_sequence_number_wins() {
    // PROTO §14.13
    let (mut store, owner) = (store(), Owner(Identity::from_seed([1; 32])));
    assert_eq!(owner.put(&mut store, 5, b"five", None), (StoreResult::Stored, 5));
    assert_eq!(owner.put(&mut store, 4, b"four", None), (StoreResult::Outdated, 5));
    assert_eq!(owner.put(&mut store, 5, b"FIVE", None), (StoreResult::Outdated, 5));
    assert_eq!(owner.put(&mut store, 5, b"five", None), (StoreResult::Stored, 5));
    assert_eq!(owner.value(&store), Some(b"five".to_vec()));
    assert_eq!(owner.put(&mut store, 6, b"six", None), (StoreResult::Stored, 6));
    assert_eq!(owner.value(&store), Some(b"six".to_vec()));
    assert_eq!(store.len(), 1);
}

#[test]
fn a_condition_compares_before_it_swaps() {
    // PROTO §14.13
    let (mut store, owner) = (store(), Owner(Identity::from_seed([1; 32])));
    assert_eq!(owner.put(&mut store, 5, b"five", Some(4)), (StoreResult::Conflict, 0));
    owner.put(&mut store, 5, b"five", None);
    assert_eq!(owner.put(&mut store, 7, b"seven", Some(4)), (StoreResult::Conflict, 5));
    assert_eq!(owner.put(&mut store, 4, b"four", Some(4)), (StoreResult::Conflict, 5), "looked at first");
    assert_eq!(owner.put(&mut store, 7, b"seven", Some(5)), (StoreResult::Stored, 7));
    // Beside a value it says nothing.
    for _ in 0..2 {
        let value = Keyed::new(Record::Value(b"value"));
        assert_eq!(store.put(&value, Some(4), None, 0), (StoreResult::Stored, 0));
    }
}

#[test]
fn a_forged_signature_replaces_nothing() {
    // PROTO §14.13
    let (mut store, owner) = (store(), Owner(Identity::from_seed([1; 32])));
    owner.put(&mut store, 5, b"five", None);
    let peer = owner.0.peer_id();
    let forged = Signed { peer: peer.as_bytes(), salt: 0, seq: 9, signature: &[1; 64], value: b"nine" };
    let result = store.put(&Keyed::new(Record::Signed(forged)), None, None, 0);
    assert_eq!(result.0, StoreResult::NotGenuine);
    assert_eq!(owner.value(&store), Some(b"five".to_vec()));
}

#[test]
fn a_record_expires_unless_it_is_stored_again() {
    // PROTO §14.14
    assert_eq!(LIFE, 7_200);
    let mut store = store();
    put(&mut store, b"a", 1, 0);
    put(&mut store, b"b", 1, 0);
    put(&mut store, b"b", 1, 10);
    let value = |store: &Store, now| value_of(store, &value_key(b"a"), Kind::Value, now);
    assert!(value(&store, LIFE - 1).is_some());
    assert!(value(&store, LIFE).is_none());
    store.expire(LIFE);
    assert_eq!(store.len(), 1);
    store.expire(LIFE + 10);
    assert_eq!(store.len(), 0);
    assert_eq!(store.blocks.free() as usize, store.blocks.len());
}

#[test]
fn own_records_stay_and_are_due_every_hour_and_every_minute_until_others_keep_them() {
    // PROTO §14.14
    assert_eq!(REPUBLISH, 3_600);
    let mut store = store();
    let key = value_key(b"a");
    store.put(&Keyed::new(Record::Value(b"a")), None, None, 0);
    store.publish(&key, Kind::Value, 0);
    for at in [1, 2] {
        assert_eq!(store.due(at * REPEAT - 1), None);
        assert_eq!(store.due(at * REPEAT), Some((key, Kind::Value)));
        assert_eq!(store.due(at * REPEAT), None);
    }
    store.published(&key, Kind::Value, 200);
    assert_eq!(store.due(200 + REPUBLISH - 1), None);
    assert_eq!(store.due(200 + REPUBLISH), Some((key, Kind::Value)));
    // That another node stores it here as well does not let it expire.
    assert_eq!(put(&mut store, b"a", 1, 300), StoreResult::Stored);
    store.expire(2 * LIFE);
    assert_eq!(store.len(), 1);
    store.unpublish(&key, Kind::Value, 2 * LIFE);
    assert_eq!(store.due(4 * LIFE), None);
    store.expire(3 * LIFE);
    assert_eq!(store.len(), 0);
}

#[test]
fn a_full_store_and_a_full_share_refuse() {
    // PROTO §14.14
    let mut store = Store::new(64, 100_000, [1; 16]);
    let results: Vec<_> = (0..9_u8).map(|at| put(&mut store, &[at], 1, 0)).collect();
    assert!(results[..8].iter().all(|&result| result == StoreResult::Stored));
    assert_eq!(results[8], StoreResult::Full);
    // Others have theirs, until all is taken.
    let stored = (9..200_u8).filter(|&at| put(&mut store, &[at], at, 0) == StoreResult::Stored).count();
    assert_eq!((stored, store.len()), (56, 64));
    store.expire(LIFE);
    assert_eq!(put(&mut store, b"new", 1, LIFE), StoreResult::Stored);
}

#[test]
fn a_store_without_bytes_left_refuses() {
    let mut store = Store::new(64, 92 * 16, [1; 16]);
    // An eighth is two blocks; the first record may be larger.
    assert_eq!(put(&mut store, &[1; 200], 1, 0), StoreResult::Stored);
    assert_eq!(put(&mut store, &[2; 10], 1, 0), StoreResult::Full);
    let stored = (2..40_u8).filter(|&at| put(&mut store, &[at; 180], at, 0) == StoreResult::Stored).count();
    assert_eq!((stored, store.blocks.free()), (6, 1));
}

#[test]
fn a_key_has_sixteen_providers_each_at_one_address() {
    // PROTO §14.13, §14.14
    let (mut store, key) = (Store::new(640, 64_000, [1; 16]), Id::from_bytes([5; 32]));
    for at in 0..17 {
        let expected = if at < 16 { StoreResult::Stored } else { StoreResult::Full };
        assert_eq!(store.announce(&key, &node(at, at), 0), expected);
    }
    assert_eq!(store.announce(&key, &node(3, 77), 5), StoreResult::Stored);
    assert_eq!(store.announce(&key, &node(4, 4), 5), StoreResult::Stored, "it goes on");
    let providers: Vec<Node> = store.providers(&key, 6).collect();
    assert_eq!(providers.len(), 16);
    assert!(providers.contains(&node(3, 77)) && !providers.contains(&node(3, 3)));
    assert_eq!(store.providers(&key, LIFE).collect::<Vec<_>>(), [node(3, 77), node(4, 4)]);
    assert_eq!(store.announce(&key, &node(16, 16), LIFE), StoreResult::Full, "not swept yet");
    store.expire(LIFE);
    assert_eq!(store.announce(&key, &node(16, 16), LIFE), StoreResult::Stored);
}

#[test]
fn ten_thousand_values_of_256_bytes_take_less_than_published() {
    assert!(Store::memory(10_000, 10_000 * 276) < 5_100_000, "{}", Store::memory(10_000, 10_000 * 276));
}

proptest! {
    /// The model: values and the time of the last storing.
    #[test]
    fn the_store_holds_what_a_map_holds(calls in proptest::collection::vec((0_u8..40, 0_u16..600, 0_u32..2_000), 1..200)) {
        let mut store = Store::new(4_000, 4_000_000, [1; 16]);
        let mut model = BTreeMap::new();
        let mut now = 0;
        for (at, len, wait) in calls {
            now += wait;
            let value = vec![at; usize::from(len) % (usize::from(at) * 20 + 1)];
            prop_assert_eq!(put(&mut store, &value, at, now), StoreResult::Stored);
            model.insert(value, now);
            if wait % 7 == 0 {
                store.expire(now);
            }
        }
        for (value, at) in &model {
            let expected = (now < at + LIFE).then(|| value.clone());
            prop_assert_eq!(value_of(&store, &value_key(value), Kind::Value, now), expected);
        }
        store.expire(now);
        prop_assert_eq!(store.len(), model.values().filter(|&at| now < at + LIFE).count());
        store.expire(u32::MAX);
        prop_assert_eq!((store.len(), store.blocks.free() as usize), (0, store.blocks.len()));
        prop_assert!(store.cells.iter().all(|&cell| cell == (0, 0)));
    }
}
