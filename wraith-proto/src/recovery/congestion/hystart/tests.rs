use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A path whose rounds have `per_round` packets, one ACK frame per `per_ack` of them.
struct Path {
    hystart: HyStart,
    acked: u64,
    per_round: u64,
    per_ack: u64,
}

impl Path {
    fn new(per_round: u64, per_ack: u64) -> Self {
        Self { hystart: HyStart::new(), acked: 0, per_round, per_ack }
    }

    /// One frame; the sender is always one round ahead.
    fn frame(&mut self, rtt: Duration) -> bool {
        self.acked += self.per_ack;
        self.hystart.on_ack_frame(self.acked, self.acked + self.per_round, rtt)
    }

    fn round(&mut self, rtt: Duration) -> bool {
        (0..self.per_round / self.per_ack).fold(false, |over, _| self.frame(rtt) || over)
    }

    fn conservative(&self) -> bool {
        self.hystart.growth_divisor() == 4
    }
}

#[test]
fn a_steady_delay_never_ends_slow_start() {
    let mut path = Path::new(64, 2);
    for _ in 0..50 {
        assert!(!path.round(ms(50)));
        assert_eq!(path.hystart.growth_divisor(), 1);
    }
}

#[test]
fn an_increase_slows_growth_at_the_eighth_sample_and_ends_it_after_five_rounds() {
    let mut path = Path::new(64, 2);
    // The first round is one frame longer; from here on a round begins with each 32nd frame.
    path.frame(ms(50));
    path.round(ms(50));
    path.round(ms(50));
    for _ in 0..8 {
        assert!(!path.conservative());
        path.frame(ms(60));
    }
    assert!(path.conservative());
    // The part of this round that is left counts as the first.
    for _ in 8..32 {
        assert!(!path.frame(ms(60)));
    }
    let over = [0; 4].map(|_| path.round(ms(60)));
    assert_eq!(over, [false, false, false, true]);
}

#[test]
fn growth_resumes_when_the_delay_vanishes() {
    let mut path = Path::new(64, 2);
    path.round(ms(50));
    path.round(ms(50));
    path.round(ms(60));
    path.round(ms(60));
    assert!(path.conservative());
    path.round(ms(52));
    path.frame(ms(52));
    assert!(!path.conservative());
    for _ in 0..20 {
        assert!(!path.round(ms(52)));
    }
}

#[test]
fn the_threshold_is_an_eighth_within_4_and_16_ms() {
    for (base, threshold) in [(1, 4), (32, 4), (64, 8), (128, 16), (400, 16)] {
        let risen = |by: Duration| {
            let mut path = Path::new(64, 2);
            for _ in 0..2 {
                path.round(ms(base));
            }
            path.round(ms(base) + by);
            path.round(ms(base) + by);
            path.conservative()
        };
        assert!(!risen(Duration::from_nanos(threshold * 1_000_000 - 1)), "below the threshold of {base} ms");
        assert!(risen(ms(threshold)), "at the threshold of {base} ms");
    }
}

#[test]
fn one_fast_sample_among_eight_is_enough_against_an_increase() {
    let mut path = Path::new(64, 2);
    path.round(ms(50));
    for round in 0..10 {
        for frame in 0..32 {
            path.frame(if frame % 8 == 3 { ms(50) } else { ms(90) });
        }
        assert!(!path.conservative(), "round {round}");
    }
}

#[test]
fn rounds_with_few_acks_still_lead_to_a_verdict() {
    // 64, 128 and 256 packets per round in ACKs of 64: one, two and four samples.
    for per_round in [64, 128, 256] {
        let mut path = Path::new(per_round, 64);
        for _ in 0..4 {
            assert!(!path.round(ms(50)));
        }
        path.round(ms(70));
        path.round(ms(70));
        assert!(path.conservative(), "{per_round} packets per round");
        let rounds = (1..10).find(|_| path.round(ms(70)));
        assert!(rounds.is_some_and(|rounds| (4..=5).contains(&rounds)), "{rounds:?}");
    }
}

#[test]
fn a_frame_without_a_new_largest_packet_is_no_sample() {
    let mut path = Path::new(64, 2);
    path.round(ms(50));
    path.round(ms(50));
    let before = (path.hystart.samples, path.hystart.current_min);
    assert!(!path.hystart.on_ack_frame(path.acked, path.acked + 64, ms(1)));
    assert_eq!((path.hystart.samples, path.hystart.current_min), before);
}
