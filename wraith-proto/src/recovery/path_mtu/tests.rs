use super::*;

const PTO: Duration = Duration::from_millis(100);

fn raise_at(mtu: &PathMtu) -> Option<Instant> {
    if mtu.step == Step::Rests { mtu.at } else { None }
}

fn at(millis: u64) -> Instant {
    Instant::MIN.saturating_add(Duration::from_millis(millis))
}

/// Searches a path that carries `carries`; returns every size that was asked for, and the time that it took.
fn search(mtu: &mut PathMtu, carries: u16, mut now: Instant) -> (std::vec::Vec<u16>, Instant) {
    let mut asked = std::vec::Vec::new();
    let mut number = 1_000_000;
    while mtu.step != Step::Rests && mtu.candidate().is_some() {
        let Some(size) = mtu.due() else {
            now = mtu.deadline(|| PTO).expect("a search that is not over has a deadline");
            mtu.on_timer(now, PTO);
            continue;
        };
        number += 10;
        asked.push(size);
        mtu.on_probe_sent(now, number, size);
        assert_eq!(mtu.due(), None, "one probe at a time");
        if size <= carries {
            now = now.saturating_add(Duration::from_millis(20));
            assert_eq!(mtu.on_ack(now, &[(number, number)], 3, PTO), Some(number));
        }
    }
    (asked, now)
}

/// `PROTO §8.12`: common sizes by address family, the most, and nothing more where all of them pass.
#[test]
fn the_common_sizes_and_the_most_are_asked_for_in_turn() {
    for (ipv6, most, expected) in [
        (false, 65_527, [1_472, 8_972, 65_507].as_slice()),
        (true, 65_527, &[1_452, 8_952, 65_527]),
        (false, 16_000, &[1_472, 8_972, 16_000]),
        (false, 1_472, &[1_472]),
        (false, 1_300, &[1_300]),
        (true, 1_200, &[]),
    ] {
        let mut mtu = PathMtu::new(1_200, most, ipv6, true);
        let (asked, _) = search(&mut mtu, 65_527, at(0));
        assert_eq!(asked, expected);
        assert_eq!(
            (mtu.size(), mtu.due(), raise_at(&mtu)),
            (most.min(*expected.last().unwrap_or(&1_200)), None, None)
        );
    }
}

/// `PROTO §8.12`: three probes for each size, and halves until less than a sixty-fourth could be won.
#[test]
fn between_sizes_that_pass_and_do_not_the_largest_is_found_to_a_sixty_fourth() {
    for carries in
        [1_200, 1_216, 1_252, 1_300, 1_432, 1_464, 1_472, 2_000, 4_000, 8_972, 16_000, 40_000, 65_506]
    {
        let mut mtu = PathMtu::new(1_200, 65_507, false, true);
        let (asked, end) = search(&mut mtu, carries, at(0));
        let found = mtu.size();
        assert!(found <= carries && carries - found < (found / 64).max(16), "{found} of {carries}");
        let failed: std::vec::Vec<u16> = asked.iter().copied().filter(|&size| size > carries).collect();
        assert!(failed.chunks(3).all(|tries| tries == [tries[0]; 3]), "{failed:?}");
        assert!(asked.len() <= 45, "{carries}: {asked:?}");
        assert_eq!(raise_at(&mtu), Some(end.saturating_add(RAISE)));
    }
}

/// `PROTO §8.13`: what did not pass is asked for again after ten minutes, with the next packet.
#[test]
fn growth_is_looked_for_when_a_packet_is_sent_after_the_rest() {
    let mut mtu = PathMtu::new(1_200, 8_972, false, true);
    let (_, end) = search(&mut mtu, 1_472, at(0));
    mtu.on_packet_sent(end.saturating_add(Duration::from_millis(599_999)));
    assert_eq!((mtu.due(), mtu.deadline(|| PTO)), (None, None), "an idle session has nothing to wait for");
    mtu.on_packet_sent(end.saturating_add(RAISE));
    assert_eq!(mtu.due(), Some(8_972));
}

/// `PROTO §8.9`, `PROTO §8.12`: a probe that a late caller finds undecided is not counted.
#[test]
fn a_late_timer_counts_no_try() {
    let mut mtu = PathMtu::new(1_200, 1_472, false, true);
    for round in 0..10 {
        let now = at(round * 10_000);
        mtu.on_probe_sent(now, round, 1_472);
        mtu.on_timer(now.saturating_add(Duration::from_micros(299_999)), PTO);
        assert_eq!(mtu.due(), None, "the probe is under way");
        mtu.on_timer(now.saturating_add(PTO * 5), PTO);
        assert_eq!((mtu.due(), mtu.tries), (Some(1_472), 0));
    }
}

fn lose(mtu: &mut PathMtu, packets: u32, size: u16, sent_at: Instant) {
    for _ in 0..packets {
        mtu.on_lost(size, sent_at);
    }
}

/// `PROTO §8.14`: each of the conditions is needed.
#[test]
fn a_black_hole_is_eight_large_losses_in_three_timeouts_while_small_packets_arrive() {
    for (lost, size, first, last, hole) in [
        (8, 1_472, 150, 300, true),
        (7, 1_472, 150, 300, false),
        (8, 1_200, 150, 300, false),
        (8, 1_472, 150, 299, false),
        (8, 1_472, 201, 300, false),
    ] {
        let mut mtu = PathMtu::new(1_472, 1_472, false, true);
        lose(&mut mtu, lost, size, at(0));
        mtu.on_small_acked(at(first), PTO);
        mtu.on_small_acked(at(last), PTO);
        assert_eq!(mtu.size() == 1_200, hole, "{lost} of {size}, small ones at {first} and {last}");
        assert_eq!(mtu.take_news().is_some(), hole);
    }
    let mut mtu = PathMtu::new(1_472, 1_472, false, true);
    lose(&mut mtu, 100, 1_472, at(0));
    mtu.on_small_acked(at(150), PTO);
    assert!(mtu.on_acked(1_201));
    mtu.on_small_acked(at(1_000), PTO);
    assert_eq!(mtu.size(), 1_472, "a large one arrived");
}

/// `PROTO §8.14`: behind it the search goes on below what vanished, and tries that again after a minute.
#[test]
fn behind_a_black_hole_the_size_is_found_anew() {
    let mut mtu = PathMtu::new(1_472, 1_472, false, true);
    lose(&mut mtu, 20, 1_472, at(0));
    mtu.on_small_acked(at(200), PTO);
    mtu.on_small_acked(at(400), PTO);
    let (asked, end) = search(&mut mtu, 1_252, at(400));
    assert!((1_237..=1_252).contains(&mtu.size()), "{}", mtu.size());
    assert!(asked.iter().all(|&size| size < 1_472), "{asked:?}");
    mtu.on_packet_sent(end.saturating_add(RAISE_SOON));
    let (asked, end) = search(&mut mtu, 1_252, end.saturating_add(RAISE_SOON));
    assert_eq!(asked[0], 1_472);
    assert_eq!(raise_at(&mtu), Some(end.saturating_add(RAISE)), "the next rest is a long one");
}

/// `PROTO §8.15`: it takes more to end a session than to send smaller packets.
#[test]
fn a_path_below_the_minimum_is_told_by_sixteen_losses_in_ten_timeouts() {
    for (lost, last, expected) in
        [(16, 1_000, Some(MtuNews::NoPath)), (15, 1_000, None), (16, 999, None), (8, 300, None)]
    {
        let mut mtu = PathMtu::new(1_200, 1_200, false, true);
        lose(&mut mtu, lost, 1_200, at(0));
        mtu.on_small_acked(at(100), PTO);
        mtu.on_small_acked(at(last), PTO);
        assert_eq!(mtu.take_news(), expected);
        assert_eq!(mtu.size(), 1_200);
    }
    let mut mtu = PathMtu::new(1_200, 1_200, false, true);
    lose(&mut mtu, 100, 1_472, at(0));
    mtu.on_small_acked(at(100), PTO);
    mtu.on_small_acked(at(5_000), PTO);
    assert_eq!(mtu.take_news(), None, "former large packets do not count");
}

/// `PROTO §8.14`, `PROTO §8.15`
#[test]
fn second_probes_are_small_enough_to_arrive() {
    for (size, searches, sizes) in [
        (1_472, true, [1_200, 1_200, 600, 600]),
        (1_200, true, [1_200, 1_200, 600, 600]),
        (1_472, false, [1_472; 4]),
    ] {
        let mtu = PathMtu::new(size, 8_972, false, searches);
        assert_eq!([1, 2, 3, 16].map(|timeouts| mtu.cautious(timeouts)), sizes);
    }
}

/// `PROTO §8.16`
#[test]
fn no_hint_lowers_the_size_below_the_minimum_or_raises_it() {
    for (hint, size) in
        [(0, 1_200), (68, 1_200), (1_199, 1_200), (1_300, 1_300), (1_472, 1_472), (65_535, 1_472)]
    {
        let mut mtu = PathMtu::new(1_472, 8_972, false, true);
        mtu.on_hint(at(0), hint);
        assert_eq!((mtu.size(), mtu.ceiling), (size, 8_972.min(hint.max(1_200))));
        assert_eq!(mtu.take_news().is_some(), size != 1_472);
    }
    let mut mtu = PathMtu::new(1_472, 8_972, false, false);
    mtu.on_hint(at(0), 1_200);
    assert_eq!(mtu.size(), 1_472, "a fixed size stays");
}

/// `PROTO §8.16`: a probe that the sender's own interface refuses needs no further tries.
#[test]
fn a_hint_ends_the_probe_that_is_too_large() {
    let mut mtu = PathMtu::new(1_200, 8_972, false, true);
    mtu.on_probe_sent(at(0), 5, 1_472);
    mtu.on_hint(at(0), 1_471);
    assert_eq!(mtu.due(), Some(1_336));
    mtu.on_probe_sent(at(0), 6, 1_336);
    mtu.on_hint(at(0), 1_400);
    assert_eq!((mtu.due(), mtu.ceiling), (None, 1_400), "a probe that fits stays under way");
}

/// `PROTO §8.16`: one refusal is enough, for a size below the one that is refused may be refused as well.
#[test]
fn a_size_in_use_that_the_own_host_refuses_falls_to_the_minimum_and_is_searched_below() {
    let mut mtu = PathMtu::new(1_472, 1_472, false, true);
    mtu.on_refused(at(0), 1_472);
    assert_eq!((mtu.size(), mtu.take_news()), (1_200, Some(MtuNews::Changed)));
    mtu.on_refused(at(0), 1_472);
    assert_eq!(
        (mtu.size(), mtu.take_news(), mtu.due()),
        (1_200, None, Some(1_336)),
        "a late word says nothing new"
    );
    let mut asked = std::vec::Vec::new();
    let mut now = at(0);
    while let Some(size) = mtu.due() {
        asked.push(size);
        mtu.on_probe_sent(now, u64::from(size), size);
        if size > 1_252 {
            mtu.on_refused(now, size);
        } else {
            now = now.saturating_add(Duration::from_millis(20));
            mtu.on_ack(now, &[(size.into(), size.into())], 3, PTO);
        }
    }
    assert_eq!((asked, mtu.size()), (std::vec![1_336, 1_268, 1_234, 1_251], 1_251));
    assert_eq!(raise_at(&mtu), Some(at(40 + 60_000)), "asked for again after a minute");
}

/// `PROTO §8.16`
#[test]
fn no_refusal_lowers_the_size_below_the_minimum_or_moves_a_fixed_one() {
    for len in [0, 1, 1_199, 1_200, 1_201] {
        let mut mtu = PathMtu::new(1_472, 1_472, false, true);
        mtu.on_refused(at(0), len);
        assert_eq!((mtu.size(), mtu.ceiling), (1_200, 1_200));
    }
    let mut mtu = PathMtu::new(1_472, 1_472, false, false);
    mtu.on_refused(at(0), 1_472);
    assert_eq!(mtu.size(), 1_472);
}

/// `PROTO §8.18`
#[test]
fn losses_of_large_packets_count_as_congestion_once_until_one_arrives() {
    let mut mtu = PathMtu::new(1_472, 1_472, false, true);
    assert!(mtu.on_lost(1_472, at(0)) && mtu.on_lost(1_472, at(1)), "until somebody has acted on it");
    mtu.on_congestion();
    assert!(!mtu.on_lost(1_472, at(2)));
    assert!(mtu.on_lost(1_200, at(2)), "a small packet fits, and speaks of congestion");
    mtu.on_congestion();
    assert!(!mtu.on_lost(1_201, at(3)));
    mtu.on_acked(1_200);
    assert!(!mtu.on_lost(1_472, at(4)));
    mtu.on_acked(1_472);
    assert!(mtu.on_lost(1_472, at(5)), "large ones pass, so what is lost is lost to something else");

    mtu.on_refused(at(6), 1_472);
    assert!(!mtu.on_lost(1_472, at(5)), "sent before the size was lowered");
    assert!(mtu.on_lost(1_200, at(7)));
}

/// `PROTO §8.18`
#[test]
fn without_a_search_every_loss_counts() {
    let mut mtu = PathMtu::new(1_472, 1_472, false, false);
    for _ in 0..10 {
        assert!(mtu.on_lost(1_472, at(0)));
        mtu.on_congestion();
    }
}

/// `PROTO §8.18`: what every path carries fits.
#[test]
fn losses_at_the_minimum_always_count() {
    let mut mtu = PathMtu::new(1_200, 1_472, false, true);
    for _ in 0..10 {
        assert!(mtu.on_lost(1_200, at(0)) && mtu.on_lost(600, at(0)));
        mtu.on_congestion();
    }
}
