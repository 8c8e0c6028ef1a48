//! The set-up of every bench target.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{Bencher, BenchmarkGroup, Criterion, Throughput};
use wraith_benches::Machine;
use wraith_proto::crypto::{KeyMaterial, PacketKey, TAG_LEN};
use wraith_proto::wire::PACKET_HEADER_LEN;

/// Additional data of a packet.
pub(crate) const HEADER: [u8; PACKET_HEADER_LEN] = [0x40; PACKET_HEADER_LEN];

/// Most bytes of packets that wait to be opened at a time: they stay in the first cache.
const BATCH_BYTES: usize = 24 << 10;

/// Criterion for the target `name`, after saying on which machine it runs.
///
/// A filter that is the target's name or its first word means all of it, so that `cargo bench crypto` runs
/// `crypto_bench`.
pub(crate) fn criterion(name: &str) -> Criterion {
    eprintln!("{}", Machine::detect());
    let criterion = Criterion::default()
        .sample_size(50)
        .nresamples(10_000)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let word = name.split('_').next();
    if std::env::args().skip(1).any(|arg| arg == name || Some(&*arg) == word) {
        criterion.with_filter("")
    } else {
        criterion
    }
}

/// Secrets of a packet key.
pub(crate) fn material() -> KeyMaterial {
    KeyMaterial { key: [1; 32], prefix: [2; 16] }
}

/// Measures sealing `len` bytes in place.
pub(crate) fn seal(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, key: &dyn PacketKey, len: usize) {
    let mut packet = vec![0; len + TAG_LEN];
    let mut number = 0;
    group.throughput(Throughput::Bytes(len as u64));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            number += 1;
            key.seal_in_place(number, &HEADER, black_box(&mut packet));
        });
    });
}

/// Measures opening `len` bytes in place.
pub(crate) fn open(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, key: &dyn PacketKey, len: usize) {
    let mut sealed = vec![0xa5; len + TAG_LEN];
    key.seal_in_place(1, &HEADER, &mut sealed);
    group.throughput(Throughput::Bytes(len as u64));
    group.bench_function(name, |bencher| open_copies(bencher, key, &sealed));
}

/// Opening destroys its input. So some copies are made, then opened, and only the second is timed, once for all:
/// the clock takes as long as a small packet.
fn open_copies(bencher: &mut Bencher<'_>, key: &dyn PacketKey, sealed: &[u8]) {
    let mut copies = vec![sealed.to_vec(); (BATCH_BYTES / sealed.len()).max(1)];
    bencher.iter_custom(|iterations| {
        let mut time = Duration::ZERO;
        let mut left = iterations as usize;
        while left > 0 {
            let count = left.min(copies.len());
            for copy in &mut copies[..count] {
                copy.copy_from_slice(sealed);
            }
            let start = Instant::now();
            for copy in &mut copies[..count] {
                black_box(key.open_in_place(1, &HEADER, black_box(copy)))
                    .expect("it was sealed with this key");
            }
            time += start.elapsed();
            left -= count;
        }
        time
    });
}
