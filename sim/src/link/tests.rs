use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use wraith_proto::Via;

use super::*;

const META: RxMeta = RxMeta {
    from: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9),
    to: None,
    via: Via(3),
    ecn: Ecn::NotEct,
};

const START: Instant = Instant::from_nanos(1_000_000_000);

fn after(nanos: u64) -> Instant {
    Instant::from_nanos(START.as_nanos() + nanos)
}

/// Pushes `count` numbered datagrams of `len` bytes, `gap` apart, and lists (arrival, number).
fn run(
    config: LinkConfig,
    seed: u64,
    count: u32,
    len: usize,
    gap: Duration,
) -> (Vec<(u64, u32)>, LinkCounters) {
    let mut link = Link::new(config, seed);
    let mut datagram = vec![0; len];
    let mut now = START;
    for number in 0..count {
        datagram[..4].copy_from_slice(&number.to_be_bytes());
        link.push(now, &META, &datagram);
        now = now.saturating_add(gap);
    }
    let mut trace = Vec::new();
    while let Some(at) = link.next_arrival() {
        let (meta, bytes) = link.pop(at).unwrap();
        assert_eq!((meta, bytes.len()), (META, len));
        let number = u32::from_be_bytes(bytes[..4].try_into().unwrap());
        trace.push((at.as_nanos() - START.as_nanos(), number));
    }
    assert_eq!(link.in_flight(), 0);
    (trace, *link.counters())
}

#[test]
fn a_datagram_arrives_after_the_latency_and_not_earlier() {
    let mut link = Link::new(LinkConfig::perfect().with_latency(Duration::from_nanos(50)), 1);
    assert_eq!(link.push(START, &META, b"abc"), Fate::Sent);
    assert_eq!(link.next_arrival(), Some(after(50)));
    assert!(link.pop(after(49)).is_none());
    assert_eq!(link.peek(after(49)), None);
    assert_eq!(link.peek(after(50)), Some((&META, 3)));
    let (meta, bytes) = link.pop(after(50)).unwrap();
    assert_eq!((meta, &*bytes), (META, &b"abc"[..]));
    assert_eq!(link.next_arrival(), None);
}

#[test]
fn the_rate_spaces_arrivals_by_the_bits_of_each_datagram() {
    let config = LinkConfig::perfect().with_rate(Some(1_000_000_000)).with_latency(Duration::from_micros(1));
    let (trace, _) = run(config, 1, 1000, 1250, Duration::ZERO);
    let expected: Vec<_> = (0..1000).map(|n| (1000 + 10_000 * (u64::from(n) + 1), n)).collect();
    assert_eq!(trace, expected);
}

#[test]
fn the_tail_of_a_full_queue_is_dropped() {
    let config = LinkConfig::perfect().with_rate(Some(8_000_000_000)).with_queue_bytes(10_000);
    let mut link = Link::new(config, 1);
    let datagram = [0; 1000];
    let fates: Vec<_> = (0..12).map(|_| link.push(START, &META, &datagram)).collect();
    assert_eq!(fates[..10], [Fate::Sent; 10]);
    assert_eq!(fates[10..], [Fate::QueueFull; 2]);
    // One byte short of the room that the next datagram needs, then exactly enough.
    assert_eq!(link.push(after(999), &META, &datagram), Fate::QueueFull);
    assert_eq!(link.push(after(1000), &META, &datagram), Fate::Sent);
    assert_eq!(link.counters().queue_dropped, 3);
}

#[test]
fn an_idle_link_takes_a_datagram_larger_than_its_queue() {
    let config = LinkConfig::perfect().with_rate(Some(8_000_000_000)).with_queue_bytes(10);
    let mut link = Link::new(config, 1);
    assert_eq!(link.push(START, &META, &[0; 1000]), Fate::Sent);
    assert_eq!(link.push(START, &META, &[0; 1]), Fate::QueueFull);
}

#[test]
fn a_datagram_above_the_mtu_vanishes() {
    let mut link = Link::new(LinkConfig::perfect().with_mtu(1200), 1);
    assert_eq!(link.push(START, &META, &[0; 1200]), Fate::Sent);
    assert_eq!(link.push(START, &META, &[0; 1201]), Fate::TooLarge);
    assert_eq!(link.counters().too_large, 1);
    link.set_config(LinkConfig::perfect().with_mtu(1199));
    assert_eq!(link.push(START, &META, &[0; 1200]), Fate::TooLarge);
    assert_eq!(link.in_flight(), 1);
}

#[test]
fn independent_loss_has_the_configured_frequency() {
    let (trace, counters) =
        run(LinkConfig::perfect().with_loss(20_000), 7, 100_000, 4, Duration::from_nanos(1));
    // 2,000 expected, standard deviation 44.
    assert!((1800..2200).contains(&counters.lost), "{}", counters.lost);
    assert_eq!(counters.delivered + counters.lost, 100_000);
    assert_eq!(counters.delivered, trace.len() as u64);
}

#[test]
fn burst_loss_comes_in_runs_of_the_configured_length() {
    let model = GilbertElliott { to_bad: 10_000, to_good: 200_000, loss_good: 0, loss_bad: 1_000_000 };
    let config = LinkConfig::perfect().with_burst_loss(model);
    let (trace, counters) = run(config, 7, 200_000, 4, Duration::from_nanos(1));
    // Share of the bad state: 1 / (1 + 20).
    assert!((9000..10_100).contains(&counters.lost), "{}", counters.lost);
    let bursts = trace.windows(2).filter(|pair| pair[1].1 - pair[0].1 > 1).count();
    let mean = counters.lost as f64 / bursts as f64;
    assert!((4.6..5.4).contains(&mean), "{mean}");
}

#[test]
fn jitter_alone_keeps_the_order() {
    let config =
        LinkConfig::perfect().with_latency(Duration::from_millis(1)).with_jitter(Duration::from_millis(1));
    let (trace, counters) = run(config, 3, 10_000, 4, Duration::from_micros(10));
    assert!(trace.iter().map(|&(_, number)| number).eq(0..10_000));
    assert!(trace.iter().all(|&(at, number)| at >= 1_000_000 + 10_000 * u64::from(number)));
    assert!(trace.iter().any(|&(at, number)| at > 1_500_000 + 10_000 * u64::from(number)));
    assert_eq!(counters.reordered, 0);
}

#[test]
fn a_datagram_held_back_is_overtaken() {
    let config = LinkConfig::perfect().with_reorder(100_000, Duration::from_nanos(25));
    let (trace, counters) = run(config, 5, 10_000, 4, Duration::from_nanos(10));
    let late = trace.iter().filter(|&&(at, number)| at == 10 * u64::from(number) + 25).count();
    assert_eq!(late as u64, counters.reordered);
    assert!((850..1150).contains(&late), "{late}");
    assert!(trace.is_sorted_by_key(|&(at, _)| at));
    assert!(!trace.is_sorted_by_key(|&(_, number)| number));
}

#[test]
fn a_duplicate_follows_its_original() {
    let (trace, counters) =
        run(LinkConfig::perfect().with_duplicate(1_000_000), 5, 3, 4, Duration::from_nanos(1));
    assert_eq!(trace, [(0, 0), (0, 0), (1, 1), (1, 1), (2, 2), (2, 2)]);
    assert_eq!((counters.offered, counters.duplicated, counters.delivered), (3, 3, 6));
    assert_eq!(counters.delivered_bytes, 24);
}

#[test]
fn only_ecn_capable_datagrams_are_marked_and_only_behind_the_threshold() {
    let config = LinkConfig::perfect().with_rate(Some(8_000_000_000)).with_ecn_mark_threshold(Some(2000));
    let mut link = Link::new(config, 1);
    for ecn in [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::NotEct, Ecn::Ce] {
        link.push(START, &RxMeta { ecn, ..META }, &[0; 1000]);
    }
    let marks: Vec<_> = std::iter::from_fn(|| link.pop(after(6000)).map(|(meta, _)| meta.ecn)).collect();
    assert_eq!(marks, [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::NotEct, Ecn::Ce]);
    assert_eq!(link.counters().marked, 2);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let config = LinkConfig::hostile();
    let gap = Duration::from_micros(100);
    assert_eq!(run(config, 42, 5000, 100, gap), run(config, 42, 5000, 100, gap));
    assert_ne!(run(config, 42, 5000, 100, gap).0, run(config, 43, 5000, 100, gap).0);
}

#[test]
fn switching_one_effect_on_leaves_the_losses_as_they_were() {
    let gap = Duration::from_micros(100);
    let plain = LinkConfig::perfect().with_loss(50_000);
    let busy = plain.with_jitter(Duration::from_millis(1)).with_duplicate(0).with_reorder(10_000, gap);
    let numbers = |config| {
        let mut numbers: Vec<_> =
            run(config, 4, 2000, 4, gap).0.into_iter().map(|(_, number)| number).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers(plain), numbers(busy));
}

#[test]
fn time_that_goes_back_counts_as_the_latest() {
    let mut link = Link::new(LinkConfig::perfect(), 1);
    link.push(after(100), &META, b"a");
    link.push(after(50), &META, b"b");
    assert_eq!(link.pop(after(100)).unwrap().1, b"a");
    assert_eq!(link.next_arrival(), Some(after(100)));
    assert!(link.pop(after(99)).is_none());
}
