//! Level 0: sealed messages, both ends.

use std::hint::black_box;

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use wraith_benches::providers;
use wraith_proto::Identity;
use wraith_proto::crypto::CryptoProvider;
use wraith_proto::sealed::{DATAGRAM_OVERHEAD, Letter, Mailbox, MessageId, SIGNATURE_LEN};

/// Bytes of the body, as in the published figure.
const BODY: &[u8; 11] = b"hello world";

/// Bytes of a long message.
const LONG: usize = 1 << 20;

pub(crate) fn benches(criterion: &mut Criterion) {
    for (name, crypto) in providers() {
        let mut group = criterion.benchmark_group(format!("level0/sealed/{name}"));
        // Mailboxes that remember nobody meet everybody for the first time.
        pair(&mut group, "pair_11_fresh", crypto, 0, false);
        pair(&mut group, "pair_11_warm", crypto, 1, false);
        pair(&mut group, "pair_11_fresh_signed", crypto, 0, true);
        pair(&mut group, "pair_11_warm_signed", crypto, 1, true);
        long(&mut group, crypto);
    }
}

/// Sealing and opening a datagram.
fn pair(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    crypto: &'static dyn CryptoProvider,
    peers: u32,
    sign: bool,
) {
    let [mut from, mut to] = mailboxes(crypto, peers);
    let mut datagram = [0; BODY.len() + DATAGRAM_OVERHEAD + SIGNATURE_LEN];
    group.throughput(Throughput::Elements(1));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let letter = letter(&to, sign);
            let sealed = from.seal_datagram(&letter, &rand::random(), black_box(BODY), &mut datagram);
            let len = sealed.expect("there is room");
            to.open_datagram(&mut datagram[..len]).expect("it is genuine").1.len()
        });
    });
}

/// Sealing and opening a message of many segments.
fn long(group: &mut BenchmarkGroup<'_, WallTime>, crypto: &'static dyn CryptoProvider) {
    let [mut from, mut to] = mailboxes(crypto, 1);
    let body = vec![0xa5; LONG];
    let (mut message, mut opened) = (Vec::new(), Vec::new());
    group.throughput(Throughput::Bytes(LONG as u64));
    group.bench_function("message_1048576", |bencher| {
        bencher.iter(|| {
            message.clear();
            opened.clear();
            from.seal(&letter(&to, false), &rand::random(), &body, &mut message).expect("a good peer");
            to.open(&message, &mut opened).expect("it is genuine")
        });
    });
}

fn mailboxes(crypto: &'static dyn CryptoProvider, peers: u32) -> [Mailbox; 2] {
    [1, 2].map(|seed| Mailbox::new(Identity::from_seed([seed; 32]), crypto, peers))
}

fn letter(to: &Mailbox, sign: bool) -> Letter {
    Letter { to: to.peer_id(), id: MessageId(rand::random()), time: 0, sign }
}
