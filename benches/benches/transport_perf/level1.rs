//! Level 1: the protocol in memory, from one endpoint to the other and back.

use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, Throughput};
use wraith_benches::{Arena, Duo, providers, slug};
use wraith_proto::crypto::CryptoProvider;
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};
use wraith_sim::Transparent;

/// Bytes of a datagram.
const PACKET: u16 = 1364;

/// Packets that leave in one turn and are acknowledged together.
const BATCH: usize = 32;

/// What happens to a packet, in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The application queues a datagram. Nothing for streams.
    Queue,
    /// The sender makes packets of it, and seals them.
    Build,
    /// The receiver opens the packets and lends what they carry.
    Receive,
    /// The receiver builds its acknowledgement.
    BuildAck,
    /// The sender takes the acknowledgement.
    TakeAck,
}

impl Step {
    const ALL: [(Self, &str); 5] = [
        (Self::Queue, "1_queue"),
        (Self::Build, "2_build"),
        (Self::Receive, "3_receive"),
        (Self::BuildAck, "4_build_ack"),
        (Self::TakeAck, "5_take_ack"),
    ];
}

pub(crate) fn benches(criterion: &mut Criterion) {
    packets(criterion, "none", Transparent::ACCEPT_ANY);
    for (name, provider) in providers() {
        packets(criterion, name, provider);
    }
    hand_over(criterion);
}

/// Datagrams, whole and step by step, and streams; with the suite that two such ends agree on. Without a cipher
/// what is left is the protocol.
fn packets(criterion: &mut Criterion, name: &str, crypto: &'static dyn CryptoProvider) {
    let mut lane = Lane::new(crypto);
    let suite = lane.duo.left.session.and_then(|session| lane.duo.left.endpoint.session(session)?.suite());
    let name = match suite {
        Some(suite) if name != "none" => format!("{}/{name}", slug(suite)),
        _ => name.to_owned(),
    };
    let mut group = criterion.benchmark_group(format!("level1/datagram_{PACKET}/{name}"));
    group.throughput(Throughput::Bytes(PACKET.into()));
    group.bench_function("whole", |bencher| bencher.iter_custom(|packets| lane.whole(packets)));
    for (step, name) in Step::ALL {
        group.bench_function(name, |bencher| bencher.iter_custom(|packets| lane.only(step, packets)));
    }
    group.finish();
    let mut group = criterion.benchmark_group(format!("level1/stream_{PACKET}/{name}"));
    group.throughput(Throughput::Bytes(PACKET.into()));
    for (name, lends) in [("fill", false), ("lend", true)] {
        let mut lane = Lane::new(crypto);
        lane.duo.left.open_endless_stream(lends);
        lane.streams = true;
        group.bench_function(name, |bencher| bencher.iter_custom(|packets| lane.whole(packets)));
    }
}

/// A session with data to the right and acknowledgements to the left.
struct Lane {
    duo: Duo,
    streams: bool,
}

impl Lane {
    fn new(crypto: &'static dyn CryptoProvider) -> Self {
        let mut duo = Duo::new(
            |config| {
                config.crypto = crypto;
                config.transport = config.transport.with_min_datagram(PACKET).with_max_datagram(PACKET);
            },
            BATCH,
        );
        duo.connect();
        let mut lane = Self { duo, streams: false };
        // The congestion window starts with less than a batch.
        while lane.round(|_| {}) < BATCH {}
        lane
    }

    /// Sends as many packets as leave in one turn, and has them acknowledged; calls `done` behind each step.
    /// Returns how many there were.
    fn round(&mut self, mut done: impl FnMut(Step)) -> usize {
        self.duo.pass(Duration::from_micros(500));
        let now = self.duo.now();
        let Duo { left, right, .. } = &mut self.duo;
        if !self.streams {
            left.queue_datagrams(BATCH);
        }
        done(Step::Queue);
        left.turn(now);
        done(Step::Build);
        let packets = right.take_all(now, left);
        done(Step::Receive);
        right.turn(now);
        done(Step::BuildAck);
        left.take_all(now, right);
        done(Step::TakeAck);
        packets
    }

    /// The time of `packets` packets, all steps.
    fn whole(&mut self, packets: u64) -> Duration {
        let mut sent = 0;
        let start = Instant::now();
        while sent < packets {
            sent += self.full_round(|_| {});
        }
        start.elapsed().mul_f64(packets as f64 / sent as f64)
    }

    /// The time of one step of `packets` packets.
    fn only(&mut self, step: Step, packets: u64) -> Duration {
        let (mut time, mut sent) = (Duration::ZERO, 0);
        while sent < packets {
            let mut last = Instant::now();
            sent += self.full_round(|done| {
                let now = Instant::now();
                if done == step {
                    time += now - last;
                }
                last = now;
            });
        }
        time.mul_f64(packets as f64 / sent as f64)
    }

    fn full_round(&mut self, done: impl FnMut(Step)) -> u64 {
        let packets = self.round(done);
        assert_eq!(packets, BATCH, "nothing but the queue limits a turn");
        packets as u64
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
