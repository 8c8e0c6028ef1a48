//! Writes the trace of the sender of 200 kB over a line that loses 2 % of the packets, in virtual time.
//!
//! `cargo run --package wraith-drivers --features trace --example lossy_trace > lossy.sqlog`

use std::io::{self, BufWriter};
use std::time::Duration;

use wraith_drivers::trace::Qlog;
use wraith_proto::Dir;
use wraith_sim::{LinkConfig, Pair, PairConfig};

const BYTES: usize = 200_000;

fn main() {
    let line = LinkConfig::perfect().with_latency(Duration::from_millis(10)).with_rate(Some(20_000_000));
    let mut config = PairConfig::new(1).with_link(line);
    config.to_right = line.with_loss(20_000);
    let mut pair = Pair::new(config);
    pair.left.endpoint.set_tracer(Box::new(Qlog::new(BufWriter::new(io::stdout()))));

    let (left, right) = pair.connect();
    let mut session = pair.left.endpoint.session(left).expect("it is connected");
    let stream = session.open(Dir::Uni).expect("the first stream");
    session.attach(stream, BYTES as u64).expect("the stream is new");
    pair.left.host.serve(left, stream, vec![0; BYTES]);
    let arrived =
        |pair: &Pair| pair.right.host.stream(right, stream).is_some_and(|stream| stream.complete().is_some());
    assert!(pair.run_until(arrived, Duration::from_mins(1)), "the stream arrives");
    let now = pair.now();
    pair.left.endpoint.session(left).expect("it lives").close(now, 0);
    pair.run_for(Duration::from_secs(1));
}
