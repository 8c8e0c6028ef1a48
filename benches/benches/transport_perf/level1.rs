//! Level 1: the protocol in memory, from one endpoint to the other and back.

use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, Throughput};
use wraith_benches::{Arena, BATCH, Lane, Step, providers, slug};
use wraith_proto::crypto::{CryptoProvider, Suite};
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};
use wraith_sim::Transparent;

/// Bytes of a datagram.
const PACKET: u16 = 1364;

pub(crate) fn benches(criterion: &mut Criterion) {
    packets(criterion, "none", Transparent::ACCEPT_ANY, &[]);
    for (name, provider) in providers() {
        for suites in provider.suites().chunks(1) {
            packets(criterion, &format!("{}/{name}", slug(suites[0])), provider, suites);
        }
    }
    hand_over(criterion);
}

/// Datagrams, whole and step by step, and streams. Without a cipher what is left is the protocol.
fn packets(
    criterion: &mut Criterion,
    name: &str,
    crypto: &'static dyn CryptoProvider,
    suites: &'static [Suite],
) {
    let mut lane = Lane::datagrams(crypto, suites, PACKET);
    let mut group = criterion.benchmark_group(format!("level1/datagram_{PACKET}/{name}"));
    group.throughput(Throughput::Bytes(PACKET.into()));
    group.bench_function("whole", |bencher| bencher.iter_custom(|packets| lane.whole(packets)));
    for step in Step::ALL {
        group.bench_function(step.name(), |bencher| bencher.iter_custom(|packets| lane.only(step, packets)));
    }
    group.finish();
    let mut group = criterion.benchmark_group(format!("level1/stream_{PACKET}/{name}"));
    group.throughput(Throughput::Bytes(PACKET.into()));
    for (name, lends) in [("fill", false), ("lend", true)] {
        let mut lane = Lane::stream(crypto, suites, PACKET, lends);
        group.bench_function(name, |bencher| bencher.iter_custom(|packets| lane.whole(packets)));
    }
}

/// From the protocol to whoever sends: memory of a queue, against a channel to another thread.
fn hand_over(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("level1/hand_over");
    group.throughput(Throughput::Elements(1));
    let meta =
        TxMeta { to: ([192, 0, 2, 1], 40_000).into(), from: None, via: Via::default(), ecn: Ecn::NotEct };
    let mut arena = Arena::new(BATCH, PACKET.into());
    group.bench_function("queue", |bencher| {
        bencher.iter(|| {
            if arena.reserve(black_box(&meta), PACKET.into()).is_none() {
                arena.clear();
            }
            arena.commit(black_box(PACKET.into()));
        });
    });
    for places in [1, 100] {
        group.bench_function(format!("channel_{places}"), |bencher| {
            bencher.iter_custom(|elements| through_channel(places, elements));
        });
    }
}

/// The time of `elements` packets through a channel, until the last has arrived.
fn through_channel(places: usize, elements: u64) -> Duration {
    let packet = Bytes::from(vec![0; PACKET.into()]);
    let (sender, receiver) = sync_channel(places);
    let taker = thread::spawn(move || receiver.iter().map(|packet: Bytes| packet.len() as u64).sum::<u64>());
    let start = Instant::now();
    for _ in 0..elements {
        sender.send(packet.clone()).expect("the other thread takes them");
    }
    drop(sender);
    let bytes = taker.join().expect("the other thread did not panic");
    let time = start.elapsed();
    assert_eq!(bytes, elements * u64::from(PACKET));
    time
}
