use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn a_full_slab_gives_the_value_back_and_takes_it_after_a_removal() {
    let mut slab = Slab::new(2);
    assert_eq!(slab.insert('a'), Ok(0));
    assert_eq!(slab.insert('b'), Ok(1));
    assert!(slab.is_full());
    assert_eq!(slab.insert('c'), Err('c'));
    assert_eq!(slab.remove(0), Some('a'));
    assert_eq!(slab.insert('c'), Ok(0));
    assert_eq!((slab.len(), slab.capacity()), (2, 2));
    assert_eq!((slab[0], slab[1]), ('c', 'b'));
}

#[test]
fn a_slab_of_nothing_is_full() {
    let mut slab = Slab::new(0);
    assert!(slab.is_full());
    assert_eq!(slab.insert(1u8), Err(1));
}

#[test]
fn a_stale_handle_misses() {
    let mut slab = Slab::new(1);
    let index = slab.insert("old").unwrap();
    let generation = slab.generation(index);
    assert_eq!(slab.lookup(index, generation), Some(&"old"));
    assert_eq!(slab.remove(index), Some("old"));
    assert_eq!(slab.lookup(index, generation), None);
    assert_eq!(slab.lookup(index, generation + 1), None, "the slot is free");
    assert_eq!(slab.insert("new"), Ok(index));
    assert_eq!(slab.lookup(index, generation), None);
    assert_eq!(slab.lookup_mut(index, generation), None);
    assert_eq!(slab.generation(index), generation + 1);
    *slab.lookup_mut(index, generation + 1).unwrap() = "newer";
    assert_eq!(slab.lookup(index, generation + 1), Some(&"newer"));
}

#[test]
fn the_slot_freed_last_is_used_first() {
    let mut slab = Slab::new(4);
    for value in 0..4 {
        assert_eq!(slab.insert(value), Ok(value));
    }
    for index in [2, 0, 3] {
        slab.remove(index);
    }
    assert_eq!([9, 9, 9].map(|value| slab.insert(value)), [Ok(3), Ok(0), Ok(2)]);
}

#[test]
fn memory_is_reserved_once() {
    let mut slab = Slab::new(100);
    let reserved = slab.slots.capacity();
    for value in 0..100u64 {
        slab.insert(value).unwrap();
    }
    assert_eq!(slab.slots.capacity(), reserved);
    assert_eq!(Slab::<u64>::memory(100), 100 * size_of::<Slot<u64>>());
}

proptest! {
    #[test]
    fn a_slab_behaves_like_a_map(steps in prop::collection::vec((any::<bool>(), 0..10u32), 0..300)) {
        let mut slab = Slab::new(8);
        let mut model = BTreeMap::new();
        for (step, (insert, index)) in steps.into_iter().enumerate() {
            if insert {
                match slab.insert(step) {
                    Ok(index) => prop_assert!(model.insert(index, step).is_none()),
                    Err(value) => prop_assert_eq!((value, model.len()), (step, 8)),
                }
            } else {
                let before = slab.generation(index);
                let removed = slab.remove(index);
                prop_assert_eq!(removed, model.remove(&index));
                prop_assert_eq!(slab.generation(index), before + u32::from(removed.is_some()));
            }
            prop_assert_eq!(slab.len() as usize, model.len());
            for index in 0..10 {
                prop_assert_eq!(slab.get(index), model.get(&index));
                prop_assert_eq!(slab.get_mut(index), model.get_mut(&index));
            }
        }
    }
}
