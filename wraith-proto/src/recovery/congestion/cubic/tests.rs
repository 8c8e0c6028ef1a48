use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::config::Congestion;

const MTU: u16 = 1_200;
const PACKET: u64 = MTU as u64;
const RTT: Duration = Duration::from_millis(100);

fn at(time: Duration) -> Instant {
    Instant::from_nanos(1_000_000_000).saturating_add(time)
}

fn acked(packet_number: u64) -> Acked {
    Acked { packet_number, bytes: MTU, sent_at: at(Duration::ZERO), delivery: Delivery::default() }
}

fn lost(largest: u64, persistent: bool, ecn: bool) -> Lost {
    Lost { largest, bytes: PACKET, persistent, ecn }
}

/// A controller with its clock and packet numbers.
struct Path {
    cubic: Cubic,
    rtt: Rtt,
    now: Duration,
    next: u64,
    /// The first packet in flight, if any is.
    first: u64,
}

impl Path {
    fn new(rtt: Duration) -> Self {
        let mut path =
            Self { cubic: Cubic::new(MTU), rtt: Rtt::new(), now: Duration::ZERO, next: 0, first: 0 };
        path.measure(rtt);
        path
    }

    /// In congestion avoidance, `packets` wide, after the first reduction from `before`.
    fn reduced(rtt: Duration, before: u64) -> Self {
        let mut path = Self::new(rtt);
        path.cubic.state.window = before * PACKET;
        path.send(1);
        path.lose();
        path
    }

    fn measure(&mut self, rtt: Duration) {
        self.rtt = Rtt::new();
        self.rtt.sample(rtt, Duration::ZERO, Duration::ZERO, true);
    }

    fn send(&mut self, packets: u64) {
        for _ in 0..packets {
            self.cubic.on_sent(at(self.now), MTU, self.next, PACKET);
            self.next += 1;
        }
    }

    /// The latest `packets` are acknowledged by one frame.
    fn ack(&mut self, packets: u64, app_limited: bool) {
        self.ack_upto(self.next - 1, packets, app_limited);
    }

    fn ack_upto(&mut self, largest: u64, packets: u64, app_limited: bool) {
        for packet_number in largest + 1 - packets..=largest {
            self.cubic.on_ack(&acked(packet_number));
        }
        self.first = largest + 1;
        self.cubic.on_ack_frame_end(at(self.now), largest, PACKET, app_limited, &self.rtt);
    }

    /// A loss while there is a queue, as far as is known.
    fn on_loss(&mut self, lost: &Lost) {
        self.cubic.queue = QueueWatch::new();
        self.cubic.on_loss(at(self.now), lost);
    }

    fn lose(&mut self) {
        self.on_loss(&lost(self.next - 1, false, false));
        self.first = self.next;
    }

    /// All that is in flight, or else a full window, is acknowledged over one round trip, `per_ack` packets at a time;
    /// the sender keeps the window full.
    fn round(&mut self, per_ack: u64) {
        self.fill();
        let end = self.next;
        let packets = end - self.first;
        while self.first < end {
            let some = per_ack.min(end - self.first);
            self.now += self.rtt.smoothed() * some as u32 / packets as u32;
            self.ack_upto(self.first + some - 1, some, false);
            self.fill();
        }
    }

    fn fill(&mut self) {
        let room = self.cubic.window() / PACKET;
        self.send(room.saturating_sub(self.next - self.first));
    }

    fn rounds_until(&mut self, time: Duration) {
        while self.now < time {
            self.round(2);
        }
    }
}

/// RFC 9438 §4.2, figure 1, in packets and seconds.
fn formula(w_max: f64, window: f64, t: f64) -> f64 {
    let k = ((w_max - window) / 0.4).cbrt();
    0.4 * (t - k).powi(3) + w_max
}

#[test]
fn the_initial_window_is_ten_packets_bounded_by_14720_bytes_and_two_packets() {
    let windows: Vec<u64> =
        [1_200, 1_472, 1_473, 7_360, 7_361, 65_507].map(|mtu| Cubic::new(mtu).window()).into();
    assert_eq!(windows, [12_000, 14_720, 14_720, 14_720, 14_722, 131_014]);
}

#[test]
fn another_datagram_size_makes_no_window_smaller_or_too_small_for_two() {
    let mut fresh = Cubic::new(1_200);
    let windows = [1_472, 65_507, 1_200].map(|mtu| {
        fresh.on_mtu(mtu);
        fresh.window()
    });
    assert_eq!(windows, [14_720, 131_014, 131_014]);
    let mut reduced = Cubic::new(1_200);
    reduced.on_loss(Instant::MIN, &Lost { largest: 0, bytes: 1_200, persistent: true, ecn: false });
    let windows = [1_472, 8_972].map(|mtu| {
        reduced.on_mtu(mtu);
        reduced.window()
    });
    assert_eq!(windows, [2_944, 17_944], "after a loss it begins nothing anew");
}

#[test]
fn slow_start_doubles_the_window_each_round_trip_however_thin_the_acks() {
    for per_ack in [1, 2, 64] {
        let mut path = Path::new(RTT);
        for round in 0..6 {
            assert_eq!(path.cubic.window(), 12_000 << round);
            assert!(path.cubic.in_slow_start());
            path.round(per_ack);
        }
    }
}

#[test]
fn the_cube_root_is_the_largest_integer_whose_cube_fits() {
    let cases = [(0, 0), (1, 1), (7, 1), (8, 2), (26, 2), (27, 3), (75 * CUBIC_SECOND, 4_217_163)];
    for (n, root) in cases {
        assert_eq!(cube_root(n), root, "of {n}");
    }
    let largest = (1_u128 << 42) - 1;
    assert_eq!(u128::from(cube_root(largest * largest * largest)), largest);
    assert_eq!(u128::from(cube_root(largest * largest * largest - 1)), largest - 1);
    assert_eq!(u128::from(cube_root(u128::MAX)), largest);
}

#[test]
fn k_matches_the_formula() {
    // K = ((100 - 70) / 0.4)^(1/3) = 75^(1/3) s and so on, in microseconds.
    for (before, k) in [(10, 1_957_433), (100, 4_217_163), (1_000, 9_085_602), (10_000, 19_574_338)] {
        let mut path = Path::reduced(RTT, before);
        path.send(1);
        path.ack(1, false);
        assert_eq!(path.cubic.state.epoch.map(|epoch| epoch.k), Some(k));
    }
    assert_eq!(time_to(0, MTU), 0);
    assert_eq!(time_to(MAXIMUM_WINDOW, 0), time_to(MAXIMUM_WINDOW, 1));
}

#[test]
fn the_curve_matches_the_formula_to_a_byte_in_a_hundred_thousand() {
    let mut path = Path::reduced(RTT, 100);
    path.send(1);
    path.ack(1, false);
    let k = path.cubic.state.epoch.expect("began with the ack").k;
    for millis in [0, 1, 10, 500, 1_000, 4_217, 4_218, 6_000, 10_000, 60_000] {
        let curve = path.cubic.state.curve(k, Duration::from_millis(millis), MTU) as f64;
        let exact = formula(100.0, 70.0, millis as f64 / 1e3) * PACKET as f64;
        assert!((curve - exact).abs() <= 1.0 + exact * 1e-5, "{curve} for {exact} at {millis} ms");
    }
    let end = path.cubic.state.curve(k, Duration::MAX, MTU);
    assert_eq!(end, MAXIMUM_WINDOW);
}

#[test]
fn the_window_follows_the_curve() {
    for per_ack in [2, 16, 64] {
        let mut path = Path::reduced(RTT, 1_000);
        path.round(per_ack);
        let start = path.cubic.state.epoch.expect("congestion avoidance").start;
        for seconds in [1, 2, 4, 6, 8, 9, 10, 12, 15] {
            while at(path.now).saturating_since(start) < Duration::from_secs(seconds) {
                path.round(per_ack);
            }
            let t = at(path.now).saturating_since(start).as_secs_f64();
            let window = path.cubic.window() as f64 / PACKET as f64;
            let exact = formula(1_000.0, 700.0, t);
            assert!((window / exact - 1.0).abs() < 0.02, "{window} for {exact} at {t} s, {per_ack} per ACK");
        }
    }
}

#[test]
fn growth_per_round_trip_is_at_most_half_the_window() {
    let mut path = Path::reduced(RTT, 100);
    path.round(1);
    path.now += Duration::from_mins(10);
    let before = path.cubic.window();
    path.send(before / PACKET);
    path.ack(before / PACKET, false);
    assert_eq!(path.cubic.window(), before + before / PACKET * PACKET * (before / 2) / before);
}

#[test]
fn on_short_round_trips_the_window_grows_like_renos() {
    // 9/17 packet per round trip up to the old window, one packet beyond (RFC 9438 §4.3).
    let mut path = Path::reduced(Duration::from_millis(1), 20);
    assert_eq!(path.cubic.window(), 14 * PACKET);
    for _ in 0..8 {
        path.round(2);
    }
    let expected = 14.0 + 8.0 * 9.0 / 17.0;
    let window = path.cubic.window() as f64 / PACKET as f64;
    assert!((window - expected).abs() < 0.3, "{window} for {expected}");
    while path.cubic.window() < 21 * PACKET {
        path.round(2);
    }
    let before = path.cubic.window();
    path.round(1);
    let grown = path.cubic.window() - before;
    assert!((PACKET * 19 / 20..=PACKET).contains(&grown), "{grown}");
}

#[test]
fn a_tiny_share_of_a_huge_window_still_counts_for_reno() {
    let mut path = Path::reduced(Duration::from_micros(100), 1_000_000);
    path.send(20_000);
    for largest in (path.next - 20_000)..path.next {
        path.ack_upto(largest, 1, false);
    }
    // 20,000 of 700,000 packets are worth 9/17 of 34 bytes.
    let grown = (path.cubic.state.reno >> FRACTION) - 700_000 * PACKET;
    assert!((17..=18).contains(&grown), "{grown}");
}

#[test]
fn a_loss_takes_three_tenths_and_only_once_per_round_trip() {
    let mut path = Path::new(RTT);
    path.send(10);
    path.on_loss(&lost(3, false, false));
    assert_eq!((path.cubic.window(), path.cubic.ssthresh(), path.cubic.events()), (8_400, 8_400, 1));
    path.on_loss(&lost(9, false, false));
    path.on_loss(&lost(9, false, true));
    assert_eq!((path.cubic.window(), path.cubic.events()), (8_400, 1));
    // The next packet leaves at the same instant and yet belongs to the next round trip.
    path.send(1);
    path.on_loss(&lost(10, false, false));
    assert_eq!((path.cubic.window(), path.cubic.events()), (5_880, 2));
}

#[test]
fn acks_of_packets_sent_before_the_loss_do_not_grow_the_window() {
    let mut path = Path::new(RTT);
    path.send(10);
    // The frame that reveals the loss acknowledges others: reported before or after it.
    path.cubic.on_ack(&acked(5));
    path.on_loss(&lost(3, false, false));
    path.ack(4, false);
    assert_eq!((path.cubic.window(), path.cubic.state.epoch), (8_400, None));
    path.send(7);
    path.ack(7, false);
    assert!(path.cubic.state.epoch.is_some());
}

#[test]
fn the_window_never_falls_below_two_packets() {
    let mut path = Path::new(RTT);
    for _ in 0..20 {
        path.send(1);
        path.lose();
    }
    assert_eq!((path.cubic.window(), path.cubic.ssthresh()), (2_400, 2_400));
}

#[test]
fn a_loss_below_the_last_maximum_gives_way_sooner() {
    let mut path = Path::reduced(RTT, 100);
    path.send(1);
    path.lose();
    // Lost again at 70 of 100 packets: W_max is 70 * 0.85, the window 70 * 0.7.
    assert_eq!(path.cubic.state.w_max, 70 * PACKET * 17 / 20);
    assert_eq!(path.cubic.window(), 49 * PACKET);
}

#[test]
fn undo_restores_everything_exactly() {
    let mut path = Path::reduced(RTT, 100);
    path.rounds_until(Duration::from_secs(3));
    let before = path.cubic.state;
    path.send(10);
    path.lose();
    assert_ne!(path.cubic.state, before);
    path.cubic.on_spurious();
    assert_eq!(path.cubic.state, before);
    // Once is enough, and what follows is a new event.
    path.cubic.on_spurious();
    assert_eq!(path.cubic.state, before);
    path.lose();
    assert_eq!(path.cubic.window(), before.window * 7 / 10);
    assert_eq!(path.cubic.events(), 3);
}

#[test]
fn undo_of_the_first_loss_resumes_slow_start() {
    let mut path = Path::new(RTT);
    path.send(10);
    path.lose();
    path.cubic.on_spurious();
    assert_eq!((path.cubic.window(), path.cubic.ssthresh()), (12_000, u64::MAX));
    path.ack(10, false);
    assert_eq!(path.cubic.window(), 24_000);
}

#[test]
fn a_window_that_has_outgrown_the_old_one_stays() {
    let mut path = Path::reduced(RTT, 20);
    path.rounds_until(Duration::from_secs(10));
    let grown = path.cubic.state;
    assert!(grown.window > 20 * PACKET);
    path.cubic.on_spurious();
    assert_eq!(path.cubic.state, grown);
}

#[test]
fn an_ecn_mark_is_not_undone() {
    let mut marked = Path::new(RTT);
    marked.send(10);
    marked.on_loss(&lost(9, false, true));
    marked.cubic.on_spurious();
    assert_eq!(marked.cubic.window(), 8_400);
    let mut both = Path::new(RTT);
    both.send(10);
    both.lose();
    both.on_loss(&lost(9, false, true));
    both.cubic.on_spurious();
    assert_eq!((both.cubic.window(), both.cubic.events()), (8_400, 1));
}

#[test]
fn persistent_congestion_starts_again_from_two_packets() {
    let mut path = Path::new(RTT);
    path.cubic.state.window = 100 * PACKET;
    path.send(100);
    path.on_loss(&lost(99, true, false));
    path.first = path.next;
    assert_eq!((path.cubic.window(), path.cubic.ssthresh()), (2 * PACKET, 70 * PACKET));
    // An older loss that is found afterwards takes nothing more.
    path.on_loss(&lost(50, false, false));
    assert_eq!((path.cubic.window(), path.cubic.ssthresh()), (2 * PACKET, 70 * PACKET));
    for round in 1..6 {
        path.round(1);
        assert_eq!(path.cubic.window(), PACKET << (round + 1));
    }
    path.round(64);
    assert_eq!(path.cubic.window(), 70 * PACKET);
    // Congestion avoidance after a timeout begins at the centre of the curve (RFC 9438 §4.8).
    path.round(1);
    let state = path.cubic.state;
    assert_eq!((state.w_max, state.epoch.map(|epoch| epoch.k)), (70 * PACKET, Some(0)));
}

#[test]
fn one_large_ack_does_not_carry_the_window_past_the_threshold() {
    let mut path = Path::new(RTT);
    path.cubic.state.ssthresh = 15_000;
    path.send(64);
    path.ack(64, false);
    assert_eq!(path.cubic.window(), 15_000);
}

#[test]
fn the_window_does_not_grow_while_the_application_is_the_limit() {
    let mut start = Path::new(RTT);
    start.send(5);
    start.ack(5, true);
    assert_eq!(start.cubic.window(), 12_000);
    let mut avoidance = Path::reduced(RTT, 100);
    avoidance.rounds_until(Duration::from_secs(2));
    let before = avoidance.cubic.window();
    for _ in 0..100 {
        avoidance.send(2);
        avoidance.now += RTT;
        avoidance.ack(2, true);
    }
    assert_eq!(avoidance.cubic.window(), before);
}

#[test]
fn time_spent_limited_or_idle_does_not_move_the_window_along_the_curve() {
    let steady = |pause: fn(&mut Path)| {
        let mut path = Path::reduced(RTT, 1_000);
        path.rounds_until(Duration::from_secs(4));
        pause(&mut path);
        path.round(2);
        path.cubic.window()
    };
    let without = steady(|_| {});
    let limited = steady(|path| {
        path.send(2);
        path.ack(2, true);
        path.now += Duration::from_secs(30);
    });
    let idle = steady(|path| {
        path.ack(path.next - path.first, false);
        path.cubic.on_ack_frame_end(at(path.now), path.next - 1, 0, false, &path.rtt);
        path.now += Duration::from_secs(30);
    });
    // The pause ends with the first ACK that finds the window in use, and with the first packet.
    assert!(without.abs_diff(limited) <= PACKET, "{limited} for {without}");
    assert!(without.abs_diff(idle) <= 2 * PACKET, "{idle} for {without}");
}

#[test]
fn a_delay_that_stays_ends_slow_start_after_five_slower_rounds() {
    let mut path = Path::new(RTT);
    for _ in 0..3 {
        path.round(1);
    }
    assert_eq!(path.cubic.window(), 96_000);
    path.measure(Duration::from_millis(120));
    // The round in which the delay began cannot tell yet; the next one can after eight samples.
    path.round(1);
    let noticed = path.cubic.window();
    assert!(noticed < 2 * 96_000);
    let mut rounds = 0;
    while path.cubic.in_slow_start() {
        let before = path.cubic.window();
        path.round(1);
        rounds += 1;
        assert!(path.cubic.window() <= before * 5 / 4, "{} from {before}", path.cubic.window());
    }
    assert_eq!(rounds, 5);
    assert_eq!((path.cubic.events(), path.cubic.state.w_max), (0, path.cubic.ssthresh()));
    assert!(path.cubic.window() < 3 * noticed);
}

#[test]
fn the_enum_passes_everything_on() {
    let mut controller = super::super::Controller::new(Congestion::Cubic, MTU);
    controller.on_sent(at(Duration::ZERO), MTU, 0, PACKET);
    controller.on_ack(&acked(0));
    controller.on_ack_frame_end(at(RTT), 0, 0, false, &Rtt::new());
    assert_eq!((controller.window(), controller.ssthresh()), (13_200, u64::MAX));
    controller.on_loss(at(RTT), &lost(0, false, false));
    assert_eq!((controller.window(), controller.events(), controller.in_slow_start()), (9_240, 1, false));
    controller.on_spurious();
    assert_eq!((controller.window(), controller.in_slow_start()), (13_200, true));
}

#[test]
fn a_loss_without_a_queue_takes_half_of_what_was_lost() {
    let mut path = Path::new(RTT);
    path.round(2);
    path.round(2);
    let window = path.cubic.window();
    path.cubic.on_loss(at(path.now), &lost(path.next - 1, false, false));
    assert_eq!((path.cubic.window(), path.cubic.events()), (window - PACKET / 2, 1));
    assert!(!path.cubic.in_slow_start());
    // Each loss counts, and the window grows on between them.
    path.cubic.on_loss(at(path.now), &lost(path.next - 1, false, false));
    assert_eq!((path.cubic.window(), path.cubic.events()), (window - PACKET, 1));
    path.round(2);
    assert!(path.cubic.window() > window - PACKET);
    // A mark is congestion all the same.
    let window = path.cubic.window();
    path.cubic.on_loss(at(path.now), &lost(path.next - 1, false, true));
    assert_eq!(path.cubic.window(), scale(window, 7, 10));
}

proptest! {
    #[test]
    fn no_sequence_of_calls_leaves_the_bounds(
        steps in proptest::collection::vec((0_u8..7, any::<u16>(), any::<u64>()), 1..200)
    ) {
        let mut path = Path::new(RTT);
        for (step, mtu, number) in steps {
            path.now = path.now.saturating_add(Duration::from_nanos(number >> (number % 60)));
            match step {
                0 | 1 => path.send(u64::from(mtu % 50)),
                2 | 3 => {
                    let packets = path.next.min(1 + u64::from(mtu % 70));
                    if packets > 0 {
                        path.ack(packets, number % 3 == 0);
                    }
                }
                4 => path.on_loss(&lost(number % (path.next + 1), number % 7 == 0, number % 5 == 0)),
                5 => path.cubic.on_spurious(),
                _ => path.measure(Duration::from_nanos(number)),
            }
            let cubic = &path.cubic;
            prop_assert!(cubic.window() >= minimum_window(cubic.mtu) && cubic.window() <= MAXIMUM_WINDOW);
        }
    }
}
