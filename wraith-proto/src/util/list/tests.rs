use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;
use std::collections::VecDeque;

fn forwards(links: &Links, list: &List) -> Vec<u32> {
    core::iter::successors(list.front(), |&index| links.next(index)).collect()
}

fn backwards(links: &Links, list: &List) -> Vec<u32> {
    core::iter::successors(list.back(), |&index| links.prev(index)).collect()
}

#[test]
fn two_lists_share_an_arena() {
    let mut links = Links::new(4);
    let (mut a, mut b) = (List::EMPTY, List::default());
    assert!(links.push_back(&mut a, 0));
    assert!(links.push_back(&mut a, 1));
    assert!(links.push_back(&mut b, 2));
    assert!(links.push_back(&mut a, 3));
    assert_eq!(forwards(&links, &a), [0, 1, 3]);
    assert_eq!(backwards(&links, &a), [3, 1, 0]);
    assert_eq!(forwards(&links, &b), [2]);
    assert!(!links.push_back(&mut a, 2), "2 is in the other list");
    assert_eq!((a.len(), b.len()), (3, 1));
}

#[test]
fn pushing_a_linked_index_or_removing_an_unlinked_one_changes_nothing() {
    let mut links = Links::new(2);
    let (mut a, mut b) = (List::EMPTY, List::EMPTY);
    assert!(!links.remove(&mut a, 0));
    assert!(links.push_back(&mut a, 0));
    assert!(!links.push_back(&mut a, 0));
    assert!(!links.push_back(&mut b, 0));
    assert_eq!((a.len(), b.len()), (1, 0));
    assert!(links.remove(&mut a, 0));
    assert!(!links.remove(&mut a, 0));
    assert!(a.is_empty());
    assert_eq!(links.pop_front(&mut a), None);
}

#[test]
fn an_index_out_of_range_is_in_no_list() {
    let mut links = Links::new(1);
    let mut list = List::EMPTY;
    for index in [1, UNLINKED, END] {
        assert!(!links.push_back(&mut list, index));
        assert!(!links.remove(&mut list, index));
        assert!(!links.contains(index));
        assert_eq!((links.next(index), links.prev(index)), (None, None));
    }
    assert_eq!((links.next(0), links.prev(0)), (None, None));
    assert!(list.is_empty());
    assert_eq!(Links::memory(1000), 8000);
}

#[derive(Clone, Debug)]
enum Step {
    PushBack(usize, u32),
    PopFront(usize),
    Remove(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..2usize, 0..12u32).prop_map(|(list, index)| Step::PushBack(list, index)),
        (0..2usize).prop_map(Step::PopFront),
        (0..12u32).prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn lists_behave_like_deques(steps in steps()) {
        let mut links = Links::new(12);
        let mut lists = [List::EMPTY; 2];
        let mut model: [VecDeque<u32>; 2] = Default::default();
        let home = |model: &[VecDeque<u32>; 2], index| {
            (0..2).find_map(|list| Some((list, model[list].iter().position(|&i| i == index)?)))
        };
        for step in steps {
            match step {
                Step::PushBack(list, index) => {
                    let free = home(&model, index).is_none();
                    prop_assert_eq!(links.push_back(&mut lists[list], index), free);
                    if free {
                        model[list].push_back(index);
                    }
                }
                Step::PopFront(list) => {
                    prop_assert_eq!(links.pop_front(&mut lists[list]), model[list].pop_front());
                }
                Step::Remove(index) => {
                    let found = home(&model, index);
                    prop_assert_eq!(links.remove(&mut lists[found.map_or(0, |f| f.0)], index), found.is_some());
                    if let Some((list, position)) = found {
                        model[list].remove(position);
                    }
                }
            }
            for (list, model) in lists.iter().zip(&model) {
                prop_assert_eq!(list.len() as usize, model.len());
                prop_assert!(forwards(&links, list).iter().eq(model));
                prop_assert!(backwards(&links, list).iter().eq(model.iter().rev()));
            }
        }
    }
}
