//! What one node of the DHT does for others: `cargo bench --bench dht`.

use std::net::SocketAddr;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput};
use wraith_benches::Machine;
use wraith_dht_proto::{
    Ask, Dht, Header, Limits, MAX_UNSEALED, MAX_VALUE, NodeRef, Offer, RateLimits, Record, Reply,
    StoreResult, Token, value_key, write_ask,
};
use wraith_proto::wire::Writer;
use wraith_proto::{Identity, Instant};

/// Values of one round: less than what the nodes of one prefix may store.
const VALUES: u32 = 1_000;

/// Room for the form of a record, and for its last block.
const FORM: usize = 50;

const NOW: Instant = Instant::from_nanos(3_600_000_000_000);

fn main() {
    eprintln!("{}", Machine::detect());
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let mut group = criterion.benchmark_group("dht_put");
    group.throughput(Throughput::Elements(u64::from(VALUES)));
    for size in [256, 1_024, 10_240] {
        // Room for 10,000 of this size.
        let rate = RateLimits { all: u16::MAX, per_prefix: u16::MAX };
        let parts = parts(size);
        let limits = Limits {
            rate,
            strangers: rate,
            records: 10_000 * parts as u32,
            record_bytes: 10_000 * (size + parts * FORM) as u32,
            ..Limits::default()
        };
        println!(
            "{size}_bytes: {parts} records a value, {} bytes per node for 10,000",
            limits.memory() + limits.record_memory()
        );
        group.bench_function(format!("{size}_bytes"), |bencher| {
            bencher.iter_batched_ref(|| Puts::new(&limits, size), Puts::run, BatchSize::PerIteration);
        });
    }
    group.finish();
    criterion.final_summary();
}

/// A node, and requests of another to store values on it.
struct Puts {
    node: Dht,
    from: NodeRef,
    requests: Vec<Vec<u8>>,
}

impl Puts {
    fn new(limits: &Limits, size: usize) -> Self {
        let [peer, other] = [1, 2].map(|at| Identity::from_seed([at; 32]).peer_id());
        let from = NodeRef::new(&other, SocketAddr::from(([9, 8, 7, 6], 5)));
        let mut puts = Self { node: Dht::new(limits, &peer, &[3; 32], NOW), from, requests: Vec::new() };
        let parts = parts(size);
        for at in 0..VALUES * parts as u32 {
            let mut value = vec![7; size.div_ceil(parts)];
            value[..4].copy_from_slice(&at.to_be_bytes());
            let request = puts.request(&value);
            puts.requests.push(request);
        }
        puts
    }

    /// Asks for the key first, which gives the tokens.
    fn request(&mut self, value: &[u8]) -> Vec<u8> {
        let key = value_key(value);
        let answer = self.exchange(&write([0; 16], &Ask::FindNode(key)));
        match read(&answer) {
            Some((token, Reply::Found { write_token, .. })) => {
                let offer = Offer::Record(Record::Value(value));
                write(token, &Ask::Store { write_token, expected: None, offer })
            }
            other => panic!("{other:?}"),
        }
    }

    /// The answer to a request; pings among it are not of interest.
    fn exchange(&mut self, request: &[u8]) -> Vec<u8> {
        let mut buffer = [0; MAX_UNSEALED];
        self.node.handle_unsealed(NOW, self.from, request).expect("it is admitted");
        let transmit = self.node.poll_transmit(NOW, &mut buffer).expect("it is answered");
        buffer[..transmit.len].to_vec()
    }

    fn run(&mut self) {
        let mut buffer = [0; MAX_UNSEALED];
        for request in &self.requests {
            self.node.handle_unsealed(NOW, self.from, request).expect("it is admitted");
            let transmit = self.node.poll_transmit(NOW, &mut buffer).expect("it is answered");
            let stored = Reply::Stored { result: StoreResult::Stored, seq: 0 };
            assert!(matches!(read(&buffer[..transmit.len]), Some((_, reply)) if reply == stored));
        }
    }
}

/// Records that a value of `size` bytes takes: each fits into one datagram.
fn parts(size: usize) -> usize {
    size.div_ceil(MAX_VALUE)
}

fn read(answer: &[u8]) -> Option<(Token, Reply<'_>)> {
    let (_, len) = Header::parse(answer).ok()?;
    Reply::parse(&answer[len..]).ok()
}

/// A request, as long as if it had no token.
fn write(token: Token, ask: &Ask<'_>) -> Vec<u8> {
    let mut buffer = [0; MAX_UNSEALED];
    let mut w = Writer::new(&mut buffer);
    Header::Request { transaction: [1; 8], token }.write(&mut w).expect("it fits");
    write_ask(&mut w, ask).expect("it fits");
    let len = if token == [0; 16] { MAX_UNSEALED } else { w.len() };
    buffer[..len].to_vec()
}
