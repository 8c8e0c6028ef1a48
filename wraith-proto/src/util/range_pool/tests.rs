use super::*;
use proptest::prelude::*;

fn ranges(pool: &RangePool, set: &RangeSet) -> Vec<(u64, u64)> {
    pool.ranges(set).collect()
}

/// Nodes on the free list or never used.
fn free(pool: &RangePool) -> usize {
    let next = |&index: &u32| pool.nodes.get(index as usize).map(|node| node.next);
    let listed = core::iter::successors(Some(pool.free), next).filter(|&index| index != END).count();
    pool.capacity as usize - pool.nodes.len() + listed
}

#[test]
fn ranges_merge_and_the_front_moves_over_them() {
    let mut pool = RangePool::new(4);
    let mut set = RangeSet::default();
    pool.insert(&mut set, 10, 20).unwrap();
    pool.insert(&mut set, 30, 40).unwrap();
    pool.insert(&mut set, 5, 6).unwrap();
    assert_eq!(ranges(&pool, &set), [(5, 6), (10, 20), (30, 40)]);
    pool.insert(&mut set, 20, 30).unwrap();
    assert_eq!(ranges(&pool, &set), [(5, 6), (10, 40)]);
    assert_eq!((set.front(), pool.end(&set)), (0, 40));
    pool.insert(&mut set, 0, 10).unwrap();
    assert_eq!((set.front(), pool.end(&set), free(&pool)), (40, 40, 4));
    pool.insert(&mut set, 3, 40).unwrap();
    pool.insert(&mut set, 50, 50).unwrap();
    assert_eq!((set.front(), ranges(&pool, &set)), (40, Vec::new()));
}

/// `PROTO §7.6`: with no free range, only what needs one is refused.
#[test]
fn a_full_pool_takes_what_extends_or_closes_a_range_or_starts_at_the_front() {
    let mut pool = RangePool::new(2);
    let mut set = RangeSet::default();
    pool.insert(&mut set, 10, 20).unwrap();
    pool.insert(&mut set, 30, 40).unwrap();
    for (start, end) in [(50, 60), (22, 28), (5, 9)] {
        assert_eq!(pool.insert(&mut set, start, end), Err(Full));
    }
    let mut other = RangeSet::default();
    assert_eq!(pool.insert(&mut other, 1, 2), Err(Full), "the pool is shared");
    assert_eq!(ranges(&pool, &set), [(10, 20), (30, 40)], "a refusal changes nothing");

    assert_eq!(pool.insert(&mut set, 40, 45), Ok(()), "extends upwards");
    assert_eq!(pool.insert(&mut set, 8, 10), Ok(()), "extends downwards");
    assert_eq!(pool.insert(&mut set, 12, 18), Ok(()), "known already");
    assert_eq!(pool.insert(&mut set, 0, 4), Ok(()), "starts at the front");
    assert_eq!((set.front(), ranges(&pool, &set)), (4, Vec::from([(8, 20), (30, 45)])));
    assert_eq!(pool.insert(&mut set, 20, 30), Ok(()), "closes a gap");
    assert_eq!(pool.insert(&mut other, 1, 2), Ok(()), "and frees a range");
    assert_eq!(pool.insert(&mut other, 5, 6), Err(Full));
    assert_eq!(pool.insert(&mut set, 4, 8), Ok(()), "reaches the last range");
    assert_eq!((set.front(), free(&pool)), (45, 1));
}

#[test]
fn a_pool_of_nothing_takes_data_in_order() {
    let mut pool = RangePool::new(0);
    let mut set = RangeSet::default();
    assert_eq!(pool.insert(&mut set, 1, 2), Err(Full));
    assert_eq!(pool.insert(&mut set, 0, 2), Ok(()));
    assert_eq!(pool.insert(&mut set, 2, 9), Ok(()));
    assert_eq!((set.front(), pool.end(&set)), (9, 9));
}

#[test]
fn gaps_are_maximal_within_their_bounds() {
    let mut pool = RangePool::new(4);
    let mut set = RangeSet::default();
    for (start, end) in [(0, 5), (10, 20), (30, 40)] {
        pool.insert(&mut set, start, end).unwrap();
    }
    let gaps = [
        ((0, 100), Some((5, 10))),
        ((7, 9), Some((7, 9))),
        ((10, 100), Some((20, 30))),
        ((10, 20), None),
        ((10, 21), Some((20, 21))),
        ((35, 100), Some((40, 100))),
        ((40, 41), Some((40, 41))),
        ((41, 41), None),
        ((90, 80), None),
    ];
    for ((from, limit), gap) in gaps {
        assert_eq!(pool.next_gap(&set, from, limit), gap, "{from}..{limit}");
    }
    assert!(pool.covered(&set, 31, 40) && !pool.covered(&set, 31, 41));
}

#[test]
fn clearing_returns_every_range() {
    let mut pool = RangePool::new(3);
    let (mut a, mut b) = (RangeSet::default(), RangeSet::default());
    for start in [10, 20] {
        pool.insert(&mut a, start, start + 5).unwrap();
    }
    pool.insert(&mut b, 7, 8).unwrap();
    pool.clear(&mut a);
    pool.clear(&mut a);
    assert_eq!((free(&pool), a.front(), pool.end(&a)), (2, 0, 0));
    assert_eq!(ranges(&pool, &b), [(7, 8)]);
    pool.insert(&mut b, 9, 10).unwrap();
    pool.insert(&mut b, 11, 12).unwrap();
    assert_eq!(pool.insert(&mut b, 13, 14), Err(Full));
}

#[test]
fn offsets_reach_the_end_of_their_type() {
    let mut pool = RangePool::new(1);
    let mut set = RangeSet::default();
    pool.insert(&mut set, u64::MAX - 1, u64::MAX).unwrap();
    assert_eq!(pool.next_gap(&set, 5, u64::MAX), Some((5, u64::MAX - 1)));
    pool.insert(&mut set, 0, u64::MAX - 1).unwrap();
    assert_eq!(set.front(), u64::MAX);
    assert_eq!(RangePool::memory(4096), 4096 * 24);
}

/// Whether a pool with no free node must take `start..end`: it needs no new one.
fn needs_no_node(model: &[bool], front: usize, start: usize, end: usize) -> bool {
    start <= front || model[start - 1..model.len().min(end + 1)].contains(&true)
}

const SPAN: usize = 64;

proptest! {
    #[test]
    fn sets_behave_like_sets_of_bytes(
        capacity in 0..8u32,
        steps in prop::collection::vec((0..2usize, 0..SPAN, 0..12usize, 0..40u8), 0..200),
    ) {
        let mut pool = RangePool::new(capacity);
        let mut sets = [RangeSet::default(), RangeSet::default()];
        let mut models = [[false; SPAN]; 2];
        for (which, start, len, action) in steps {
            let (set, model) = (&mut sets[which], &mut models[which]);
            let front = model.iter().position(|&byte| !byte).unwrap_or(SPAN);
            let end = (start + len).min(SPAN);
            if action == 0 {
                pool.clear(set);
                *model = [false; SPAN];
            } else {
                let fits = start == end || needs_no_node(model, front, start, end) || free(&pool) > 0;
                let expected = if fits { Ok(()) } else { Err(Full) };
                prop_assert_eq!(pool.insert(set, start as u64, end as u64), expected);
                if fits {
                    model[start..end].fill(true);
                }
            }
            check(&pool, set, model)?;
            let used: usize = sets.iter().map(|set| pool.ranges(set).count()).sum();
            prop_assert_eq!(free(&pool) + used, capacity as usize);
        }
    }
}

/// Compares every answer about `set` with the model.
fn check(pool: &RangePool, set: &RangeSet, model: &[bool; SPAN]) -> Result<(), TestCaseError> {
    let front = model.iter().position(|&byte| !byte).unwrap_or(SPAN);
    prop_assert_eq!(set.front(), front as u64);
    prop_assert_eq!(pool.end(set), model.iter().rposition(|&byte| byte).map_or(0, |last| last as u64 + 1));
    let covers =
        |at: usize| at < front || pool.ranges(set).any(|(start, end)| (start..end).contains(&(at as u64)));
    prop_assert!((0..SPAN).all(|at| covers(at) == model[at]));
    let ranges: Vec<_> = pool.ranges(set).collect();
    prop_assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "ranges touch: {:?}", ranges);
    for from in 0..SPAN {
        for limit in [from, from + 1, from + 7, SPAN] {
            let limit = limit.min(SPAN);
            let gap = (from..limit).find(|&at| !model[at]).map(|start| {
                let end = (start..limit).find(|&at| model[at]).unwrap_or(limit);
                (start as u64, end as u64)
            });
            prop_assert_eq!(pool.next_gap(set, from as u64, limit as u64), gap);
            prop_assert_eq!(pool.covered(set, from as u64, limit as u64), gap.is_none());
        }
    }
    Ok(())
}
