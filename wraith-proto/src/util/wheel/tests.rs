use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

const TICK: u64 = 1 << TICK_BITS;
const HOUR: u64 = 3_600_000_000_000;

fn ns(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn drain(wheel: &mut Wheel, now: u64) -> Vec<u32> {
    core::iter::from_fn(|| wheel.pop_due(ns(now))).collect()
}

#[test]
fn a_deadline_is_due_at_its_nanosecond_and_not_before() {
    for at in [1_000, TICK - 1, TICK, TICK + 1, 64 * TICK, 4097 * TICK + 77, HOUR, 400 * 24 * HOUR] {
        let mut wheel = Wheel::new(1, ns(5));
        wheel.arm(0, ns(at));
        assert_eq!(wheel.next(), Some((ns(at), 0)));
        assert_eq!(wheel.pop_due(ns(at - 1)), None);
        assert_eq!(wheel.next(), Some((ns(at), 0)));
        assert_eq!(wheel.pop_due(ns(at)), Some(0));
        assert_eq!((wheel.next(), wheel.deadline(0)), (None, None));
    }
}

#[test]
fn the_whole_clock_fits() {
    let mut wheel = Wheel::new(3, Instant::MIN);
    wheel.arm(0, ns(u64::MAX));
    wheel.arm(1, ns(u64::MAX - 1));
    wheel.arm(2, ns(1 << 57));
    assert_eq!(wheel.next(), Some((ns(1 << 57), 2)));
    assert_eq!(drain(&mut wheel, 1 << 57), [2]);
    assert_eq!(wheel.next(), Some((ns(u64::MAX - 1), 1)));
    assert_eq!(drain(&mut wheel, u64::MAX - 1), [1]);
    assert_eq!(drain(&mut wheel, u64::MAX), [0]);
}

#[test]
fn what_has_passed_is_due_at_once_and_keeps_its_deadline() {
    let mut wheel = Wheel::new(2, ns(HOUR));
    wheel.arm(0, ns(HOUR + 10));
    wheel.arm(1, ns(3));
    assert_eq!((wheel.next(), wheel.deadline(1)), (Some((ns(3), 1)), Some(ns(3))));
    assert_eq!(drain(&mut wheel, HOUR), [1]);
    assert_eq!(wheel.next(), Some((ns(HOUR + 10), 0)));
}

#[test]
fn arming_again_moves_the_deadline_and_cancelling_forgets_it() {
    let mut wheel = Wheel::new(2, ns(1));
    wheel.arm(0, ns(100));
    wheel.arm(0, ns(HOUR));
    wheel.arm(1, ns(200));
    assert_eq!(drain(&mut wheel, 150), []);
    wheel.cancel(1);
    wheel.cancel(1);
    wheel.cancel(2);
    assert_eq!((wheel.next(), wheel.deadline(2)), (Some((ns(HOUR), 0)), None));
    assert_eq!(drain(&mut wheel, HOUR), [0]);
}

#[test]
fn time_that_goes_backwards_does_not_move() {
    let mut wheel = Wheel::new(1, ns(HOUR));
    assert_eq!(wheel.pop_due(ns(2 * HOUR)), None);
    wheel.arm(0, ns(HOUR + 1));
    assert_eq!(wheel.pop_due(ns(1)), Some(0), "it is two o'clock already");
}

#[test]
fn among_more_than_eight_in_a_slot_the_next_may_be_early_until_its_time() {
    let mut wheel = Wheel::new(10, ns(1));
    for id in 0..10 {
        wheel.arm(id, ns(1000 + u64::from(id)));
    }
    wheel.cancel(0);
    let (at, id) = wheel.next().unwrap();
    assert!(at == ns(1000) && wheel.deadline(id).is_some(), "nine are left: early");
    assert_eq!(wheel.pop_due(ns(1000)), None);
    assert_eq!(wheel.next(), Some((ns(1001), 1)), "its time put it right");
    wheel.cancel(1);
    assert_eq!(wheel.next(), Some((ns(1002), 2)), "eight are left: exact");
}

#[test]
fn the_next_deadline_stays_exact_while_a_crowd_is_taken_out() {
    let mut wheel = Wheel::new(100, ns(1));
    for id in 0..100 {
        wheel.arm(id, ns(500 + u64::from(id)));
    }
    for left in (1..100).rev() {
        assert!(wheel.pop_due(ns(TICK)).is_some());
        let (at, id) = wheel.next().unwrap();
        assert_eq!((at, id), (ns(500), 0), "{left} left");
    }
    assert_eq!(drain(&mut wheel, TICK), [0]);
}

#[test]
fn a_hundred_thousand_ids_come_out_by_tick() {
    let count = 100_000u64;
    let mut wheel = Wheel::new(count as u32, ns(1));
    for id in 0..count {
        wheel.arm(id as u32, ns(1 + id * 48_271 % count * (HOUR / count)));
    }
    let deadlines: Vec<_> = (0..count as u32).map(|id| wheel.deadline(id).unwrap()).collect();
    let mut popped = drain(&mut wheel, HOUR / 2);
    assert_eq!(popped.len() as u64, count / 2);
    popped.extend(drain(&mut wheel, HOUR));
    let ticks: Vec<_> = popped.iter().map(|&id| tick(deadlines[id as usize])).collect();
    assert!(ticks.is_sorted() && ticks.len() as u64 == count);
    assert_eq!(Wheel::memory(1000) - Wheel::memory(0), 24_000);
    assert_eq!(Wheel::memory(0), 577 * 24);
}

#[derive(Clone, Debug)]
enum Step {
    Arm(u32, i64),
    Cancel(u32),
    /// Moves the time and takes out so many.
    Pop(i64, usize),
}

fn distance() -> impl Strategy<Value = i64> {
    prop_oneof![
        -50..50i64,
        -100_000..100_000i64,
        0..200_000_000i64,
        0..60_000_000_000i64,
        0..50 * HOUR.cast_signed(),
        Just(i64::MAX),
    ]
}

fn steps(ids: u32) -> impl Strategy<Value = Vec<Step>> {
    let moves = prop_oneof![
        6 => -60..60i64,
        4 => -40_000..80_000i64,
        4 => 0..50_000_000i64,
        2 => 0..10_000_000_000i64,
        1 => -HOUR.cast_signed()..30 * HOUR.cast_signed(),
    ];
    let step = prop_oneof![
        6 => (0..ids, distance()).prop_map(|(id, distance)| Step::Arm(id, distance)),
        2 => (0..ids).prop_map(Step::Cancel),
        3 => (moves, prop_oneof![Just(1), Just(3), Just(usize::MAX)]).prop_map(|(by, most)| Step::Pop(by, most)),
    ];
    prop::collection::vec(step, 0..250)
}

/// What a wheel should do, with one ordered set.
struct Model {
    armed: BTreeSet<(Instant, u32)>,
    /// The tick at which each id comes out: its own, or the present one if that has passed.
    ticks: Vec<u64>,
    elapsed: u64,
    latest: u64,
}

impl Model {
    fn cancel(&mut self, wheel: &Wheel, id: u32) {
        if let Some(at) = wheel.deadline(id) {
            assert!(self.armed.remove(&(at, id)));
        }
    }

    fn arm(&mut self, id: u32, at: Instant) {
        self.armed.insert((at, id));
        self.ticks[id as usize] = tick(at).max(self.elapsed);
    }

    /// Compares one answer of `pop_due`, whose deadline was `at`; true if there may be more.
    fn popped(&mut self, id: Option<u32>, at: impl Fn(u32) -> Instant) -> Result<bool, TestCaseError> {
        let Some(id) = id else {
            prop_assert!(self.armed.first().is_none_or(|first| first.0 > ns(self.latest)), "one was missed");
            self.elapsed = tick(ns(self.latest));
            return Ok(false);
        };
        prop_assert!(at(id) <= ns(self.latest));
        prop_assert!(self.armed.remove(&(at(id), id)));
        self.elapsed = self.elapsed.max(self.ticks[id as usize]);
        let later = self.armed.iter().all(|left| self.ticks[left.1 as usize] >= self.ticks[id as usize]);
        prop_assert!(later, "{} came before an earlier tick", id);
        Ok(true)
    }
}

fn run(ids: u32, exact: bool, start: u64, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut wheel = Wheel::new(ids, ns(start));
    let ticks = std::vec![0; ids as usize];
    let mut model = Model { armed: BTreeSet::new(), ticks, elapsed: tick(ns(start)), latest: start.max(1) };
    for step in steps {
        match step {
            Step::Arm(id, distance) => {
                let at = ns(model.latest.saturating_add_signed(distance));
                model.cancel(&wheel, id);
                wheel.arm(id, at);
                model.arm(id, at);
                prop_assert_eq!(wheel.deadline(id), Some(at));
            }
            Step::Cancel(id) => {
                model.cancel(&wheel, id);
                wheel.cancel(id);
                prop_assert_eq!(wheel.deadline(id), None);
            }
            Step::Pop(by, most) => {
                let now = model.latest.saturating_add_signed(by);
                model.latest = model.latest.max(now);
                for _ in 0..most {
                    let before: Vec<_> = (0..ids).map(|id| wheel.deadline(id)).collect();
                    let id = wheel.pop_due(ns(now));
                    if !model.popped(id, |id| before[id as usize].unwrap())? {
                        prop_assert!(
                            wheel.next().is_none_or(|next| next.0 > ns(model.latest)),
                            "it would spin"
                        );
                        break;
                    }
                }
            }
        }
        let truth = model.armed.first().map(|first| first.0);
        let next = wheel.next();
        prop_assert_eq!(next.is_some(), truth.is_some());
        if let (Some((at, id)), Some(truth)) = (next, truth) {
            let deadline = wheel.deadline(id);
            prop_assert!(at <= truth && deadline.is_some(), "{:?} is after {:?}", at, truth);
            prop_assert!(!exact || (at == truth && deadline == Some(at)), "{:?} is before {:?}", at, truth);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_wheel_of_few_behaves_like_an_ordered_set(
        start in prop_oneof![Just(0), 0..u64::MAX / 2, Just((1 << 57) - HOUR)], steps in steps(8),
    ) {
        run(8, true, start, steps)?;
    }

    #[test]
    fn a_wheel_of_many_is_never_late(
        start in prop_oneof![Just(0), 0..u64::MAX, Just((1 << 57) - HOUR)], steps in steps(60),
    ) {
        run(60, false, start, steps)?;
    }
}
