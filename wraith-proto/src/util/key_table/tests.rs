use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEY: [u8; 16] = *b"0123456789abcdef";

#[test]
fn a_full_table_replaces_but_takes_no_new_key() {
    let mut table = KeyTable::new(3, &KEY);
    for key in 0..3 {
        assert_eq!(table.insert(key, key as u32), Ok(()));
    }
    assert_eq!(table.insert(3, 3), Err(Full));
    assert_eq!(table.insert(2, 22), Ok(()));
    assert_eq!((table.get(2), table.get(3), table.len()), (Some(22), None, 3));
    assert_eq!(table.remove(0), Some(0));
    assert_eq!(table.insert(3, 3), Ok(()));
}

#[test]
fn a_table_of_nothing_refuses_and_finds_nothing() {
    let mut table = KeyTable::new(0, &KEY);
    assert_eq!(table.insert(1, 1), Err(Full));
    assert_eq!((table.get(1), table.remove(1), table.len()), (None, None, 0));
}

#[test]
fn extreme_keys_and_values_are_ordinary() {
    let mut table = KeyTable::new(2, &KEY);
    table.insert(0, u32::MAX).unwrap();
    table.insert(u64::MAX, 0).unwrap();
    assert_eq!((table.get(0), table.get(u64::MAX)), (Some(u32::MAX), Some(0)));
}

#[test]
fn a_table_is_at_most_five_eighths_full() {
    for (capacity, slots) in [(0, 2), (1, 2), (2, 4), (4, 7), (5, 9), (1000, 1601), (40_000, 64_001)] {
        assert_eq!(KeyTable::memory(capacity), slots * 16);
        assert_eq!(KeyTable::new(capacity as u32, &KEY).slots.len(), slots);
    }
}

#[test]
fn the_place_of_a_key_depends_on_the_hash_key() {
    let homes = |hash_key| {
        let table = KeyTable::new(1 << 10, hash_key);
        [1, 2, 3, 4].map(|key| table.home(key))
    };
    assert_ne!(homes(&KEY), homes(&[0; 16]));
}

proptest! {
    /// Few slots and few keys, so that probe runs collide, wrap and close again.
    #[test]
    fn a_table_behaves_like_a_map(
        hash_key in any::<[u8; 16]>(),
        steps in prop::collection::vec((any::<bool>(), 0..24u64, any::<u32>()), 0..400),
    ) {
        let mut table = KeyTable::new(13, &hash_key);
        let mut model = BTreeMap::new();
        for (insert, key, value) in steps {
            if insert {
                let fits = model.len() < 13 || model.contains_key(&key);
                prop_assert_eq!(table.insert(key, value), if fits { Ok(()) } else { Err(Full) });
                if fits {
                    model.insert(key, value);
                }
            } else {
                prop_assert_eq!(table.remove(key), model.remove(&key));
            }
            prop_assert_eq!(table.len() as usize, model.len());
            for key in 0..24 {
                prop_assert_eq!(table.get(key), model.get(&key).copied());
            }
        }
    }
}
