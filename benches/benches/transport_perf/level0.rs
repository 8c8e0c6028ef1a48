//! Level 0: pure computation on prepared inputs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use wraith_benches::{Duo, providers, slug};
use wraith_proto::crypto::TAG_LEN;
use wraith_proto::wire::{
    AckRepr, ConnectionId, Frame, Frames, MAX_ACK_RANGES, PacketHeader, ProtectedPacket, Writer, apply_mask,
    expand_number, split_body, unprotected,
};
use wraith_proto::{Budget, DropReason, Ecn, Limits, Outcome};
use wraith_sim::Transparent;

use crate::support::{material, open, seal};

/// Bytes of a datagram.
const PACKET: usize = 1364;

const HEADER: PacketHeader =
    PacketHeader { phase: 0, ignored: true, destination: ConnectionId([7; 8]), number: 1_000_000 };
/// Time after which a silent session sends a packet.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

const MASK: [u8; 5] = [0x1f, 1, 2, 3, 4];

pub(crate) fn benches(criterion: &mut Criterion) {
    nonces(criterion);
    headers(criterion);
    frames(criterion);
    acks(criterion);
    aead(criterion);
    refusals(criterion);
    timers(criterion);
}

/// A packet number as nonce (`PROTO §5.6`), against drawing one.
fn nonces(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("level0/nonce");
    let mut number = 0u64;
    group.bench_function("counter", |bencher| {
        bencher.iter(|| {
            number += 1;
            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&black_box(number).to_le_bytes());
            nonce
        });
    });
    group.bench_function("random", |bencher| bencher.iter(rand::random::<[u8; 12]>));
}

/// The header with its protection on, and off again.
fn headers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("level0/header");
    let mut packet = vec![0; PACKET];
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            let written = black_box(HEADER).emit(&mut packet);
            apply_mask(black_box(&mut packet), black_box(MASK));
            written
        });
    });
    group.bench_function("decode", |bencher| {
        let mut header = [0; 29];
        header.copy_from_slice(&packet[..29]);
        bencher.iter(|| {
            let mut packet = black_box(header);
            let destination = ProtectedPacket::parse(&packet).expect("a good packet").destination();
            apply_mask(&mut packet, black_box(MASK));
            let header = PacketHeader::parse(&packet).expect("a good packet");
            (destination, unprotected(packet[0]), expand_number(black_box(1_000_001), header.number))
        });
    });
}

/// The frames of a packet full of stream data, with an acknowledgement.
fn frames(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("level0/frames");
    let data = 1300;
    let mut body = vec![0; PACKET];
    let written = write_frames(&mut body[data..], data as u16);
    group.bench_function("encode", |bencher| {
        bencher.iter(|| write_frames(black_box(&mut body[data..]), black_box(data as u16)));
    });
    body.truncate(data + written);
    group.bench_function("decode", |bencher| {
        bencher.iter(|| {
            let (payload, frames) = split_body(black_box(&mut body)).expect("a good body");
            let lengths = Frames::new(frames).map(|frame| frame.expect("a good frame").data_len());
            assert_eq!(lengths.sum::<usize>(), payload.len());
        });
    });
}

/// Writes an acknowledgement, a piece of a stream and the length of both; returns the bytes written.
fn write_frames(out: &mut [u8], len: u16) -> usize {
    let mut w = Writer::new(out);
    let ack = AckRepr { ranges: [(900_000, 1_000_000)], delay_micros: 25, ecn: None };
    let stream = Frame::Stream { stream: 4, offset: 1 << 30, len, fin: false };
    let written = ack.emit(&mut w).is_ok() && stream.emit(&mut w).is_ok();
    assert!(written && w.u16(w.len() as u16).is_ok(), "there is room");
    w.len()
}

/// Acknowledgements of one range, and of as many as fit.
fn acks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("level0/ack");
    for count in [1, MAX_ACK_RANGES as u64] {
        let ranges = (0..count).map(|range| (1_000_000 - 3 * range, 1_000_001 - 3 * range));
        let mut bytes = [0; 512];
        let mut len = 0;
        group.throughput(Throughput::Elements(count));
        group.bench_function(format!("encode_{count}"), |bencher| {
            bencher.iter(|| {
                let mut w = Writer::new(&mut bytes);
                let ack = AckRepr { ranges: black_box(ranges.clone()), delay_micros: 25, ecn: None };
                assert_eq!(ack.emit(&mut w), Ok(count as usize));
                len = w.len();
            });
        });
        let mut w = Writer::new(&mut bytes);
        AckRepr { ranges, delay_micros: 25, ecn: None }.emit(&mut w).expect("there is room");
        group.bench_function(format!("decode_{count}"), |bencher| {
            bencher.iter(|| {
                let Some(Ok(Frame::Ack(ack))) = Frames::new(black_box(w.written())).next() else {
                    panic!("an acknowledgement was written")
                };
                ack.ranges().map(|(low, high)| high - low).sum::<u64>()
            });
        });
    }
}

/// Every suite of every provider.
fn aead(criterion: &mut Criterion) {
    for (name, provider) in providers() {
        for &suite in provider.suites() {
            let mut group = criterion.benchmark_group(format!("level0/{}/{name}", slug(suite)));
            let key = provider.key(suite, &material());
            seal(&mut group, &format!("seal_{PACKET}"), &*key, PACKET - TAG_LEN);
            open(&mut group, &format!("open_{PACKET}"), &*key, PACKET - TAG_LEN);
        }
    }
}

/// From the datagram to its refusal, with a cipher that costs nothing: finding no session, and the whole way to
/// the replay window.
fn refusals(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("level0/refuse");
    let mut duo = Duo::new(
        |config| {
            config.crypto = Transparent::ACCEPT_ANY;
            config.limits = Limits::embedded();
        },
        16,
    );
    duo.connect();
    let mut seen = Vec::new();
    duo.left.queue_datagrams(1);
    duo.carry_seen(|datagram| {
        seen.extend(seen.is_empty().then(|| datagram.to_vec()));
    });
    let mut replayed = seen.pop().expect("a datagram was sent");
    let mut unknown = replayed.clone();
    unknown[1] ^= 1;
    let cases = [
        ("unknown_session", &mut unknown, DropReason::UnknownSession),
        ("replayed", &mut replayed, DropReason::Replayed),
    ];
    let (now, from) = (duo.now(), duo.left.addr());
    for (name, datagram, reason) in cases {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let outcome = duo.right.take(now, from, Ecn::NotEct, black_box(datagram));
                assert_eq!(outcome, Outcome::Dropped(reason));
            });
        });
    }
}

/// The wheel with few sessions and with many: asking for the next deadline, finding nothing due, and a session's
/// timer that fires and is set anew.
fn timers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("level0/timer");
    for sessions in [10, 1000] {
        let mut duo = Duo::new(
            |config| {
                config.crypto = Transparent::ACCEPT_ANY;
                config.limits = Limits::server(sessions);
                config.transport.keep_alive = Some(KEEP_ALIVE);
            },
            2 * sessions as usize,
        );
        for _ in 0..sessions {
            duo.connect();
            // The responder takes some handshakes a second, no more.
            duo.pass(Duration::from_millis(10));
        }
        group.bench_function(format!("next_of_{sessions}"), |bencher| {
            bencher.iter(|| black_box(&duo.left.endpoint).poll_timeout());
        });
        let now = duo.now();
        duo.left.turn(now);
        group.bench_function(format!("nothing_due_of_{sessions}"), |bencher| {
            bencher.iter(|| duo.left.endpoint.handle_timeout(now, Budget::UNLIMITED));
        });
        group.bench_function(format!("fire_of_{sessions}"), |bencher| {
            bencher.iter_custom(|iterations| fire(&mut duo, iterations));
        });
    }
}

/// The time that the keep-alive timers of `iterations` sessions take.
fn fire(duo: &mut Duo, iterations: u64) -> Duration {
    let (mut time, mut fired) = (Duration::ZERO, 0);
    while fired < iterations {
        duo.pass(KEEP_ALIVE);
        let (now, before) = (duo.now(), duo.left.endpoint.stats().sessions_visited);
        let start = Instant::now();
        let _ = duo.left.endpoint.handle_timeout(now, Budget::UNLIMITED);
        time += start.elapsed();
        fired += duo.left.endpoint.stats().sessions_visited - before;
        // The packets leave, and their acknowledgements return after the longest delay.
        duo.carry();
        duo.pass(Duration::from_millis(25));
        duo.carry();
    }
    time.mul_f64(iterations as f64 / fired as f64)
}
