//! Packet keys through the provider seam, in place, and header protection.

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use wraith_benches::{default_provider, providers, slug};
use wraith_proto::crypto::{PacketKey, Suite, TAG_LEN};

use crate::support::{HEADER, material, open, seal};

pub(crate) fn benches(criterion: &mut Criterion) {
    published(criterion);
    seam(criterion);
}

/// The published sizes and names, with the default provider.
fn published(criterion: &mut Criterion) {
    let (_, provider) = default_provider();
    let suite = Suite::XChaCha20Poly1305;
    let mut group = criterion.benchmark_group(slug(suite));
    for len in [1 << 10, 64 << 10, 1 << 20] {
        let key = provider.key(suite, &material());
        seal(&mut group, &format!("encrypt_{len}"), &*key, len);
        open(&mut group, &format!("decrypt_{len}"), &*key, len);
    }
}

/// Every provider with each of its suites at datagram sizes: the smallest of a path, Ethernet's, a jumbo frame's
/// and the largest.
fn seam(criterion: &mut Criterion) {
    for (name, provider) in providers() {
        for &suite in provider.suites() {
            let mut group = criterion.benchmark_group(format!("{}/{name}", slug(suite)));
            for len in [1200, 1472, 8192, 65_507] {
                let key = provider.key(suite, &material());
                // The tag is part of the datagram.
                seal(&mut group, &format!("seal_{len}"), &*key, len - TAG_LEN);
                seal_from(&mut group, format!("seal_from_{len}"), &*key, len - TAG_LEN);
                open(&mut group, &format!("open_{len}"), &*key, len - TAG_LEN);
            }
            group.throughput(Throughput::Elements(1));
            group.bench_function("new_key", |bencher| bencher.iter(|| provider.key(suite, &material())));
            let key = provider.header_key(suite, &[7; 32]);
            group.bench_function("mask", |bencher| bencher.iter(|| key.mask(black_box(&[9; 16]))));
        }
    }
}

/// Sealing a payload from where it lies.
fn seal_from(group: &mut BenchmarkGroup<'_, WallTime>, name: String, key: &dyn PacketKey, len: usize) {
    let payload = vec![0xa5; len];
    let mut packet = vec![0; len + TAG_LEN];
    let mut number = 0;
    group.throughput(Throughput::Bytes(len as u64));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            number += 1;
            key.seal_from(number, &HEADER, black_box(&payload), black_box(&mut packet));
        });
    });
}
