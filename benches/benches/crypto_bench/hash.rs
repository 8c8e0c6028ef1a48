//! BLAKE3 of whole buffers, one thread.

use std::hint::black_box;

use criterion::{Criterion, Throughput};

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("blake3");
    for len in [1 << 10, 64 << 10, 1 << 20, 100 << 20] {
        let data = vec![0xa5; len];
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(format!("{len}_bytes"), |bencher| {
            bencher.iter(|| blake3::hash(black_box(&data)));
        });
    }
}
