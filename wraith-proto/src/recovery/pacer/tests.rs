use proptest::prelude::*;

use super::*;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(1_000_000_000 + nanos)
}

/// In congestion avoidance, with more to send than any burst.
fn input(window: u64, rtt: Duration, mtu: u16) -> PaceInput {
    PaceInput { window, rate: None, rtt: Some(rtt), mtu, pending: u64::MAX }
}

/// 1.25 MB/s: 1,250 bytes per millisecond.
fn slow() -> PaceInput {
    input(100_000, Duration::from_millis(100), 1_200)
}

/// 125 MB/s, 125,000 bytes per millisecond.
fn fast() -> PaceInput {
    input(10_000_000, Duration::from_millis(100), 1_472)
}

/// Sends full datagrams until the pacer says no; returns the bytes.
fn drain(pacer: &mut Pacer, now: Instant, input: &PaceInput) -> u64 {
    let mut sent = 0;
    while pacer.budget(now, input) >= u64::from(input.mtu) {
        pacer.on_sent(input.mtu);
        sent += u64::from(input.mtu);
    }
    sent
}

fn burst(input: &PaceInput) -> u64 {
    Rate::new(input).expect("there is a round-trip time").burst
}

#[test]
fn the_initial_window_leaves_unpaced() {
    let mut pacer = Pacer::new(at(0));
    let unknown = PaceInput { rtt: None, ..slow() };
    for _ in 0..10 {
        assert_eq!(pacer.budget(at(0), &unknown), u64::MAX);
        pacer.on_sent(1_200);
    }
    assert_eq!(pacer.next_send(at(0), &unknown), at(0));
    // With the first sample the bucket is full: nothing is owed for the window that left.
    assert_eq!(pacer.next_send(at(5), &slow()), at(5));
    assert_eq!(pacer.budget(at(5), &slow()), 2_400);
}

#[test]
fn a_path_without_samples_has_no_rate() {
    let mut rtt = Rtt::new();
    assert_eq!(PaceInput::new(12_000, &rtt, 1_200, 1).rtt, None);
    rtt.sample(Duration::from_millis(40), Duration::ZERO, Duration::ZERO, true);
    assert_eq!(PaceInput::new(12_000, &rtt, 1_200, 1).rtt, Some(Duration::from_millis(40)));
}

#[test]
fn a_burst_is_a_millisecond_of_the_rate_between_two_packets_and_64_kib() {
    let rtt = Duration::from_millis(100);
    // 1.25 windows per 100 ms: 80 bytes of window are one byte of burst.
    let cases = [
        (1, 1_200, 2_400),
        (2_400 * 80, 1_200, 2_400),
        (2_401 * 80, 1_200, 2_401),
        (65_535 * 80, 1_200, 65_535),
        (65_536 * 80, 1_200, 65_536),
        (u64::MAX, 1_200, 65_536),
        (0, 1_200, 2_400),
    ];
    for (window, mtu, expected) in cases {
        assert_eq!(burst(&input(window, rtt, mtu)), expected, "window {window}, datagrams of {mtu}");
    }
    assert_eq!(burst(&input(1_000_000, Duration::ZERO, 1_200)), 65_536);
}

#[test]
fn datagrams_above_16_kib_leave_in_bursts_of_two() {
    let rtt = Duration::from_millis(1);
    for (mtu, expected) in [(16_384, 65_536), (16_385, 32_770), (65_507, 131_014)] {
        let mut pacer = Pacer::new(at(0));
        let input = input(1 << 30, rtt, mtu);
        let sent = drain(&mut pacer, at(0), &input);
        assert_eq!(burst(&input), expected);
        assert_eq!(sent, expected / u64::from(mtu) * u64::from(mtu));
        pacer.restart_empty(at(0));
        // However late the caller is.
        assert_eq!(drain(&mut pacer, at(1_000_000_000), &input), sent);
    }
}

#[test]
fn an_empty_bucket_opens_when_half_a_burst_is_there() {
    let (mut pacer, fast) = (Pacer::new(at(0)), fast());
    // 44 datagrams of 1,472 bytes and a rest of 768.
    assert_eq!(drain(&mut pacer, at(0), &fast), 64_768);
    assert_eq!(pacer.budget(at(0), &fast), 0);
    // Half a burst is 32,768 bytes; at 125 bytes per microsecond 32,000 take 256 us.
    let wake = pacer.next_send(at(0), &fast);
    assert_eq!(wake, at(256_000));
    // Acknowledgements in between do not let single packets through.
    for micros in [20, 100, 255] {
        assert_eq!(pacer.budget(at(micros * 1_000), &fast), 0);
        assert_eq!(pacer.next_send(at(micros * 1_000), &fast), wake);
    }
    assert_eq!(pacer.budget(wake, &fast), 32_768);
    assert_eq!(pacer.next_send(wake, &fast), wake);
    assert_eq!(drain(&mut pacer, wake, &fast), 22 * 1_472);
}

#[test]
fn what_waits_does_not_wait_for_more_than_itself() {
    let (mut pacer, fast) = (Pacer::new(at(0)), fast());
    drain(&mut pacer, at(0), &fast);
    let little = PaceInput { pending: 1_268, ..fast };
    // 768 bytes are left, 500 more take 4 us.
    assert_eq!(pacer.next_send(at(0), &little), at(4_000));
    assert_eq!(pacer.budget(at(3_999), &little), 0);
    assert_eq!(pacer.budget(at(4_000), &little), 1_268);
    let nothing = PaceInput { pending: 0, ..fast };
    assert_eq!(pacer.next_send(at(4_000), &nothing), at(4_000));
}

#[test]
fn a_round_trip_carries_a_window_and_a_quarter() {
    let mut pacer = Pacer::new(at(0));
    pacer.restart_empty(at(0));
    let sent = (0..10_000).map(|step| drain(&mut pacer, at(step * 100_000), &slow())).sum::<u64>();
    // Ten round trips of 100,000 bytes, less what the bucket still holds.
    assert!((1_247_600..=1_250_000).contains(&sent), "{sent}");
}

#[test]
fn a_late_caller_gets_one_burst() {
    let (mut pacer, slow) = (Pacer::new(at(0)), slow());
    assert_eq!(drain(&mut pacer, at(0), &slow), 2_400);
    assert_eq!(drain(&mut pacer, at(3_600_000_000_000), &slow), 2_400);
}

#[test]
fn after_a_jump_the_bucket_is_empty() {
    let (mut pacer, slow) = (Pacer::new(at(0)), slow());
    let later = at(10_000_000_000);
    pacer.restart_empty(later);
    assert_eq!(pacer.budget(later, &slow), 0);
    assert_eq!(pacer.next_send(later, &slow), at(10_000_960_000));
}

#[test]
fn packets_that_do_not_wait_are_paid_for_afterwards() {
    let (mut pacer, slow) = (Pacer::new(at(0)), slow());
    drain(&mut pacer, at(0), &slow);
    for _ in 0..10 {
        pacer.on_sent(1_250);
    }
    // A debt of 12,500 bytes takes 10 ms, the packet after it 0.96 ms.
    assert_eq!(pacer.next_send(at(0), &slow), at(10_960_000));
}

#[test]
fn a_clock_that_runs_backwards_gives_nothing() {
    let (mut pacer, slow) = (Pacer::new(at(5_000_000)), slow());
    drain(&mut pacer, at(5_000_000), &slow);
    assert_eq!(pacer.budget(at(0), &slow), 0);
    assert_eq!(pacer.budget(at(5_000_000), &slow), 0);
    assert_eq!(pacer.next_send(at(0), &slow), at(5_960_000));
}

#[test]
fn rounding_does_not_add_up() {
    // 5 bytes per 12 ns, asked every 7 ns a million times.
    let (mut pacer, input) = (Pacer::new(at(0)), input(1_000, Duration::from_micros(3), 1_200));
    pacer.restart_empty(at(0));
    let mut sent = 0;
    for step in 0..1_000_000 {
        sent += drain(&mut pacer, at(step * 7), &input);
    }
    let exact = 7 * 999_999 * 5 / 12;
    let rest = (pacer.tokens as u128 / TOKENS) as u64;
    assert!((exact - 1..=exact).contains(&(sent + rest)), "{} for {exact}", sent + rest);
}

proptest! {
    #[test]
    fn no_stretch_of_time_carries_more_than_its_rate_and_one_burst(
        window in 2_400_u64..100_000_000,
        rtt in 10_000_u64..1_000_000_000,
        mtu in 1_200_u16..=65_507,
        steps in proptest::collection::vec((0_u64..5_000_000, any::<bool>()), 1..200),
    ) {
        let input = input(window, Duration::from_nanos(rtt), mtu);
        let mut pacer = Pacer::new(at(0));
        let (mut now, mut sent) = (0, 0_u64);
        // What was sent less what was due, at its lowest: every stretch is bounded by the one that begins there.
        let mut lowest = 0_i128;
        for (wait, follow_timer) in steps {
            now += wait;
            if follow_timer {
                let wake = pacer.next_send(at(now), &input);
                prop_assert!(wake >= at(now));
                now = wake.as_nanos() - 1_000_000_000;
                prop_assert!(pacer.budget(wake, &input) > 0, "woken for nothing");
            }
            let due = u128::from(now) * u128::from(window) * 5 / (u128::from(rtt) * 4);
            lowest = lowest.min(i128::from(sent) - due.cast_signed());
            sent += drain(&mut pacer, at(now), &input);
            prop_assert!(i128::from(sent) - due.cast_signed() - lowest <= i128::from(burst(&input)) + 1);
        }
    }

    #[test]
    fn a_sender_that_follows_the_timer_reaches_the_rate(
        window in 2_400_u64..10_000_000,
        rtt in 1_000_000_u64..300_000_000,
    ) {
        let input = input(window, Duration::from_nanos(rtt), 1_200);
        let (mut pacer, mut now, mut sent) = (Pacer::new(at(0)), at(0), 0_u64);
        pacer.restart_empty(now);
        for _ in 0..200 {
            now = pacer.next_send(now, &input);
            sent += drain(&mut pacer, now, &input);
        }
        let elapsed = u128::from(now.as_nanos() - 1_000_000_000);
        let due = (elapsed * u128::from(window) * 5 / (u128::from(rtt) * 4)) as u64;
        prop_assert!(sent + u64::from(input.mtu) + 1 >= due && sent <= due, "{sent} for {due}");
    }

    #[test]
    fn no_input_panics(
        window: u64, rtt: u64, mtu: u16, pending: u64,
        steps in proptest::collection::vec((any::<u64>(), any::<u16>()), 1..50),
    ) {
        let input = PaceInput { window, rate: None, rtt: Some(Duration::from_nanos(rtt)), mtu, pending };
        let mut pacer = Pacer::new(Instant::MIN);
        for (now, bytes) in steps {
            let now = Instant::from_nanos(now);
            prop_assert!(pacer.budget(now, &input) <= burst(&input));
            pacer.on_sent(bytes);
            prop_assert!(pacer.next_send(now, &input) >= now);
        }
    }
}
