use core::time::Duration;

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn measured(samples: &[(u64, u64)]) -> Rtt {
    let mut rtt = Rtt::new();
    for &(latest, delay) in samples {
        rtt.sample(MS(latest), MS(delay), MS(25), true);
    }
    rtt
}

#[test]
fn before_a_sample_the_probe_timeout_is_one_second() {
    let rtt = Rtt::new();
    assert!(!rtt.has_sample());
    assert_eq!((rtt.smoothed(), rtt.min()), (MS(333), Duration::ZERO));
    assert_eq!(rtt.pto_base(Duration::ZERO), MS(999));
    assert_eq!(rtt.pto_base(MS(25)), MS(1024));
    assert_eq!(rtt.loss_delay(), Duration::from_micros(374_625));
}

#[test]
fn the_first_sample_sets_everything_and_ignores_the_delay() {
    let rtt = measured(&[(100, 20)]);
    assert!(rtt.has_sample());
    assert_eq!((rtt.latest(), rtt.adjusted(), rtt.smoothed()), (MS(100), MS(100), MS(100)));
    assert_eq!((rtt.min(), rtt.var()), (MS(100), MS(50)));
    assert_eq!(rtt.pto_base(MS(25)), MS(325));
}

#[test]
fn later_samples_move_the_mean_by_an_eighth_and_the_deviation_by_a_quarter() {
    let rtt = measured(&[(100, 0), (140, 0)]);
    assert_eq!(rtt.var(), Duration::from_micros(47_500));
    assert_eq!(rtt.smoothed(), MS(105));
    assert_eq!(rtt.loss_delay(), Duration::from_micros(157_500));
}

#[test]
fn the_peers_delay_is_taken_off_but_never_below_the_minimum() {
    let credible = measured(&[(100, 0), (140, 20)]);
    assert_eq!((credible.latest(), credible.adjusted()), (MS(140), MS(120)));
    assert_eq!((credible.smoothed(), credible.min()), (Duration::from_micros(102_500), MS(100)));
    let lie = measured(&[(100, 0), (110, 20)]);
    assert_eq!((lie.adjusted(), lie.min()), (MS(110), MS(100)));
}

#[test]
fn a_delay_beyond_the_promise_is_cut_once_the_handshake_is_confirmed() {
    let confirmed = measured(&[(100, 0), (180, 60)]);
    assert_eq!(confirmed.adjusted(), MS(155));
    let mut early = measured(&[(100, 0)]);
    early.sample(MS(180), MS(60), MS(25), false);
    assert_eq!(early.adjusted(), MS(120));
}

#[test]
fn timers_are_never_finer_than_a_millisecond() {
    let mut rtt = Rtt::new();
    for _ in 0..200 {
        rtt.sample(Duration::from_micros(40), Duration::ZERO, Duration::ZERO, true);
    }
    assert_eq!(rtt.smoothed(), Duration::from_micros(40));
    assert_eq!(rtt.pto_base(Duration::ZERO), Duration::from_micros(1040));
    assert_eq!(rtt.loss_delay(), MS(1));
}

#[test]
fn the_minimum_can_be_forgotten() {
    let mut rtt = measured(&[(10, 0)]);
    rtt.forget_min();
    assert_eq!(rtt.min(), Duration::ZERO);
    rtt.sample(MS(30), Duration::ZERO, MS(25), true);
    assert_eq!(rtt.min(), MS(30));
}

#[test]
fn absurd_times_saturate() {
    let mut rtt = Rtt::new();
    for latest in [Duration::MAX, Duration::ZERO, Duration::MAX] {
        rtt.sample(latest, Duration::MAX, Duration::MAX, false);
    }
    assert_eq!(rtt.latest(), Duration::from_nanos(1 << 60));
    assert_eq!(rtt.min(), Duration::ZERO);
    assert_eq!(rtt.pto_base(Duration::MAX), Duration::from_nanos(u64::MAX));
    assert_eq!(rtt.loss_delay(), Duration::from_nanos(9 << 57));
}
