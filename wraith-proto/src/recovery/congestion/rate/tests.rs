use core::time::Duration;

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(1_000_000_000).saturating_add(MS(ms))
}

fn rtt(min: u64) -> Rtt {
    let mut rtt = Rtt::new();
    rtt.sample(MS(min), Duration::ZERO, Duration::ZERO, true);
    rtt
}

fn acked(sent_at: Instant, delivery: Delivery) -> Acked {
    Acked { packet_number: 0, bytes: 1_000, sent_at, delivery }
}

/// Ten packets, one each 10 ms, acknowledged 100 ms after they left: 100 kB/s.
fn ten_packets() -> (RateMeter, Sample) {
    let mut meter = RateMeter::new();
    let sent: [Delivery; 10] =
        core::array::from_fn(|i| meter.on_sent(at(10 * i as u64), 1_000, 1_000 * (i as u64 + 1)));
    let mut last = None;
    for (i, delivery) in (0..).zip(sent) {
        meter.on_ack(&acked(at(10 * i), delivery));
        last = meter.end_frame(at(10 * i + 100), &rtt(100));
    }
    let sample = last.expect("a packet was acknowledged");
    (meter, sample)
}

/// To 0.2 %, as ages are.
fn assert_near(value: u64, expected: u64) {
    assert!(value.abs_diff(expected) * 500 <= expected, "{value} instead of {expected}");
}

#[test]
fn short_numbers_are_right_to_a_fifth_of_a_percent() {
    for value in [0, 1, 1_023, 1_024, 1_025, 65_535, 1_000_000_007, (1 << 41) - 1] {
        let back = lengthen(shorten(value));
        assert!(back <= value && (value - back) * 500 <= value, "{back} instead of {value}");
    }
    assert_eq!(lengthen(shorten(u64::MAX)), 1_023 << 31);
}

#[test]
fn a_sample_is_what_was_delivered_since_a_packet_left_by_the_time_that_took() {
    let (_, sample) = ten_packets();
    // The last packet left at 90 ms, when nothing was delivered and the first was 90 ms old.
    assert_eq!((sample.delivered, sample.prior_delivered), (10_000, 0));
    assert_eq!((sample.acked, sample.in_flight, sample.lost), (1_000, 10_000, 0));
    assert_eq!(sample.rtt, 100_000_000);
    // Acknowledging took from 0 to 190 ms.
    assert_near(sample.rate, 10_000 * 1_000_000_000 / 190_000_000);
    assert!(!sample.limited);
}

#[test]
fn acknowledgements_that_come_at_once_do_not_raise_the_rate_above_that_of_sending() {
    let (mut meter, _) = ten_packets();
    let sent: [Delivery; 4] =
        core::array::from_fn(|i| meter.on_sent(at(200 + 40 * i as u64), 1_000, 1_000 * (i as u64 + 1)));
    for (i, delivery) in (0..).zip(sent) {
        meter.on_ack(&acked(at(200 + 40 * i), delivery));
    }
    let sample = meter.end_frame(at(420), &rtt(100)).expect("packets were acknowledged");
    assert_eq!((sample.acked, sample.delivered), (4_000, 4_000));
    // The pipe was empty at 200 ms: the time of silence before does not count.
    assert_near(sample.rate, 4_000 * 1_000_000_000 / 220_000_000);
}

#[test]
fn an_interval_shorter_than_a_round_trip_gives_no_rate() {
    let mut meter = RateMeter::new();
    let delivery = meter.on_sent(at(0), 1_000, 1_000);
    meter.on_ack(&acked(at(0), delivery));
    let sample = meter.end_frame(at(50), &rtt(100)).expect("a packet was acknowledged");
    assert_eq!((sample.rate, sample.rtt), (0, 50_000_000));
}

#[test]
fn a_frame_without_news_gives_no_sample() {
    let (mut meter, _) = ten_packets();
    assert_eq!(meter.end_frame(at(300), &rtt(100)), None);
}

#[test]
fn samples_are_limited_until_what_was_in_flight_is_delivered() {
    let (mut meter, _) = ten_packets();
    let before = meter.on_sent(at(200), 1_000, 1_000);
    meter.on_limited(1_000);
    let after = meter.on_sent(at(210), 1_000, 2_000);
    assert!(!before.is_limited() && after.is_limited());
    assert_eq!(after.in_flight(), 2_000);
    meter.on_ack(&acked(at(200), before));
    meter.end_frame(at(300), &rtt(100));
    assert!(meter.is_limited(), "what comes after silence is limited, too");
    meter.on_ack(&acked(at(210), after));
    assert!(!meter.is_limited());
    assert!(!meter.on_sent(at(310), 1_000, 2_000).is_limited());
}

#[test]
fn losses_count_from_when_a_packet_left() {
    let (mut meter, _) = ten_packets();
    meter.on_lost();
    let delivery = meter.on_sent(at(200), 1_000, 1_000);
    meter.on_lost();
    meter.on_lost();
    assert_eq!(meter.lost_since(&delivery), 2);
    meter.on_ack(&acked(at(200), delivery));
    assert_eq!(meter.end_frame(at(300), &rtt(100)).map(|sample| sample.lost), Some(2));
}

#[test]
fn counts_may_pass_four_gibibytes() {
    let (mut meter, _) = ten_packets();
    meter.delivered = u64::from(u32::MAX) - 500;
    let delivery = meter.on_sent(at(200), 1_000, 1_000);
    meter.on_ack(&acked(at(200), delivery));
    let sample = meter.end_frame(at(300), &rtt(100)).expect("a packet was acknowledged");
    assert_eq!((sample.delivered, sample.prior_delivered), (1_000, u64::from(u32::MAX) - 500));
}
