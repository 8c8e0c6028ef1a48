use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn marked(numbers: impl IntoIterator<Item = u64>) -> ReceivedWindow {
    let mut window = ReceivedWindow::new();
    numbers.into_iter().for_each(|pn| window.mark(pn));
    window
}

fn ranges(window: &ReceivedWindow, floor: u64, most: usize) -> Vec<(u64, u64)> {
    let mut out = std::vec![(0, 0); most];
    let count = window.ranges(floor, &mut out);
    out.truncate(count);
    out
}

#[test]
fn packet_number_zero_is_received_once() {
    let mut window = ReceivedWindow::new();
    assert_eq!((window.largest(), window.expected()), (None, 0));
    assert!(ranges(&window, 0, 4).is_empty());
    assert_eq!(window.check(0), Ok(()));
    assert_eq!(window.check(0), Ok(()), "checking marks nothing");
    window.mark(0);
    assert_eq!(window.check(0), Err(Seen::Replayed));
    assert_eq!((window.largest(), window.expected()), (Some(0), 1));
    assert_eq!(ranges(&window, 0, 4), [(0, 0)]);
    assert_eq!(size_of::<ReceivedWindow>(), 1032);
}

/// `PROTO §5.9`: the window is 8,192 wide, and what lies behind it is dropped.
#[test]
fn the_window_ends_exactly_8191_below_the_largest() {
    for largest in [8191, 8192, 10_000, 16_384, 20_000, (1 << 62) - 1] {
        let mut window = marked([largest]);
        let edge = largest - 8191;
        assert_eq!(window.check(edge), Ok(()), "largest {largest}");
        if let Some(behind) = edge.checked_sub(1) {
            assert_eq!(window.check(behind), Err(Seen::TooOld), "largest {largest}");
            window.mark(behind);
            assert_eq!(ranges(&window, 0, 4), [(largest, largest)], "too old marks nothing");
        }
        window.mark(edge);
        assert_eq!(window.check(edge), Err(Seen::Replayed));
        assert_eq!(ranges(&window, 0, 4), [(largest, largest), (edge, edge)]);
    }
}

/// `PROTO §5.9`: a number that was received before is dropped, however far the window moved since.
#[test]
fn a_jump_clears_what_it_passes_and_nothing_else() {
    for start in [0, 1, 63, 64, 100] {
        for jump in [1, 2, 63, 64, 65, 8127, 8128, 8190, 8191, 8192, 8193, 20_000, 1 << 40] {
            let first = start + 200;
            let mut window = marked(start..=first);
            let largest = first + jump;
            window.mark(largest);
            for pn in (first + 1).max(largest.saturating_sub(8191))..largest {
                assert_eq!(window.check(pn), Ok(()), "{pn} after a jump of {jump} from {first}");
            }
            let kept = if jump < 8192 { Err(Seen::Replayed) } else { Err(Seen::TooOld) };
            assert_eq!(window.check(first), kept, "jump of {jump} from {first}");
            assert_eq!(window.check(largest), Err(Seen::Replayed));
        }
    }
}

#[test]
fn the_last_packet_numbers_are_ordinary() {
    let last = (1 << 62) - 1;
    let window = marked([last - 1, last]);
    assert_eq!(window.expected(), 1 << 62);
    assert_eq!(ranges(&window, 0, 4), [(last - 1, last)]);
    assert_eq!(window.check(last), Err(Seen::Replayed));
    let mut window = marked([u64::MAX]);
    window.mark(u64::MAX);
    assert_eq!(window.expected(), u64::MAX, "outside the protocol, but no overflow");
}

#[test]
fn ranges_stop_at_the_floor_and_at_the_room_for_them() {
    let window = marked((0..10).chain(20..30).chain(40..50));
    assert_eq!(ranges(&window, 0, 8), [(40, 49), (20, 29), (0, 9)]);
    assert_eq!(ranges(&window, 0, 2), [(40, 49), (20, 29)]);
    assert_eq!(ranges(&window, 25, 8), [(40, 49), (25, 29)]);
    assert_eq!(ranges(&window, 30, 8), [(40, 49)]);
    assert_eq!(ranges(&window, 49, 8), [(49, 49)]);
    assert!(ranges(&window, 50, 8).is_empty());
    assert!(ranges(&window, u64::MAX, 8).is_empty());
    assert!(ranges(&window, 0, 0).is_empty());
}

#[test]
fn a_window_without_a_gap_is_one_range() {
    let window = marked(0..20_000);
    assert_eq!(ranges(&window, 0, 8), [(20_000 - 8192, 19_999)]);
    let window = marked((0..20_001).step_by(2));
    let all = ranges(&window, 0, 8192);
    assert_eq!((all.len(), all[0], all[4095]), (4096, (20_000, 20_000), (11_810, 11_810)));
}

proptest! {
    #[test]
    fn a_window_behaves_like_a_set(
        start in prop_oneof![Just(0), 0..20_000u64, Just((1 << 62) - 40_000)],
        steps in prop::collection::vec(
            prop_oneof![4 => -70..70i64, 2 => -8300..8300i64, 1 => 8100..8300i64, 1 => -8300..-8100i64], 1..150),
        floor in 0..9000u64,
        most in 0..70usize,
    ) {
        let mut window = ReceivedWindow::new();
        let mut model = BTreeSet::new();
        for step in steps {
            let pn = model.last().copied().unwrap_or(start).saturating_add_signed(step);
            let oldest = model.last().map_or(0, |&largest: &u64| largest.saturating_sub(8191));
            let expected = match model.contains(&pn) {
                _ if pn < oldest => Err(Seen::TooOld),
                true => Err(Seen::Replayed),
                false => Ok(()),
            };
            prop_assert_eq!(window.check(pn), expected);
            window.mark(pn);
            if expected.is_ok() {
                model.insert(pn);
            }
            prop_assert_eq!(window.largest(), model.last().copied());
        }
        let largest = *model.last().unwrap();
        let floor = largest.saturating_sub(floor);
        let mut expected: Vec<(u64, u64)> = Vec::new();
        for &pn in model.range(floor.max(largest.saturating_sub(8191))..).rev() {
            match expected.last_mut() {
                Some(range) if range.0 == pn + 1 => range.0 = pn,
                _ => expected.push((pn, pn)),
            }
        }
        expected.truncate(most);
        prop_assert_eq!(ranges(&window, floor, most), expected);
    }
}
