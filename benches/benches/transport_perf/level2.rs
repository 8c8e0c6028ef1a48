//! Level 2: system calls on loopback.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use wraith_benches::BATCH;
use wraith_drivers::Driver;
use wraith_drivers_mio::{MioDriver, Options};
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};

/// Bytes of a datagram.
const PACKET: usize = 1364;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Time after which a datagram that has not arrived is lost.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("level2/send_{PACKET}"));
    group.throughput(Throughput::Bytes(PACKET as u64));
    group.bench_function("one_by_one", |bencher| {
        let socket = UdpSocket::bind(ANY_PORT).expect("a socket on loopback");
        let mut receiver = driver();
        let (to, packet) = (receiver.local_addr(), [0; PACKET]);
        bencher.iter_custom(|packets| {
            alternate(packets, &mut receiver, || {
                for _ in 0..BATCH {
                    socket.send_to(&packet, to).expect("loopback takes it");
                }
            })
            .0
        });
    });
    let mut sender = driver();
    let mut receiver = driver();
    let meta = TxMeta { to: receiver.local_addr(), from: None, via: Via::default(), ecn: Ecn::Ect0 };
    let mut send = || {
        for _ in 0..BATCH {
            sender.tx().reserve(&meta, PACKET).expect("room for a batch");
            sender.tx().commit(PACKET);
        }
        sender.flush().expect("loopback takes it");
    };
    group.bench_function("mio", |bencher| {
        bencher.iter_custom(|packets| alternate(packets, &mut receiver, &mut send).0);
    });
    group.finish();
    let mut group = criterion.benchmark_group(format!("level2/receive_{PACKET}"));
    group.throughput(Throughput::Bytes(PACKET as u64));
    group.bench_function("mio", |bencher| {
        bencher.iter_custom(|packets| alternate(packets, &mut receiver, &mut send).1);
    });
}

fn driver() -> MioDriver {
    MioDriver::bind(ANY_PORT, &Options::default()).expect("a socket on loopback")
}

/// Sends batches and receives each before the next; returns the times of both for `packets` packets.
fn alternate(packets: u64, receiver: &mut MioDriver, mut send: impl FnMut()) -> (Duration, Duration) {
    let (mut sending, mut receiving) = (Duration::ZERO, Duration::ZERO);
    let batches = packets.div_ceil(BATCH as u64);
    for _ in 0..batches {
        let start = Instant::now();
        send();
        let sent = Instant::now();
        let mut received = 0;
        while received < BATCH {
            receiver
                .recv(BATCH, |_, datagram| received += datagram.len() / PACKET)
                .expect("the socket works");
            assert!(sent.elapsed() < PATIENCE, "{received} of {BATCH} datagrams arrived");
        }
        sending += sent - start;
        receiving += sent.elapsed();
    }
    let share = packets as f64 / (batches * BATCH as u64) as f64;
    (sending.mul_f64(share), receiving.mul_f64(share))
}
