//! Prints how much of a line one stream uses with CUBIC: a table of loss by round trip and buffer, in virtual time.
//!
//! `cargo run --release -p wraith-sim --example goodput`

use std::time::Duration;

use wraith_proto::{Congestion, Dir, Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId};
use wraith_sim::{Host, LinkConfig, Pair, PairConfig, Transparent};

const RATE: u64 = 100_000_000;
const SECONDS: u64 = 20;

/// Sends zeros without end and counts what arrives.
#[derive(Debug, Default)]
struct Count(u64);

impl Source for Count {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, buf: &mut [u8]) -> usize {
        buf.fill(0);
        buf.len()
    }
}

impl Host for Count {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        if let Payload::Stream { data, .. } = payload {
            self.0 += data.len() as u64;
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, _: SessionHandle, _: Event) {}
}

/// Bits of stream data per second over the second half of the time.
fn goodput(rtt: u64, loss: u32, buffer_percent: u64) -> u64 {
    let bdp = RATE / 8 * rtt / 1000;
    let link = LinkConfig::perfect().with_latency(Duration::from_micros(rtt * 500));
    let queue = (bdp * buffer_percent / 100).max(3_000) as usize;
    let mut config = PairConfig::new(1).with_both(|config| {
        config.crypto = Transparent::CHECKED;
        config.transport = config.transport.with_congestion(Congestion::Cubic);
    });
    config.to_right = link.with_rate(Some(RATE)).with_queue_bytes(queue).with_loss(loss);
    config.to_left = link.with_loss(loss);
    let mut pair = Pair::with_hosts(config, Count::default(), Count::default());
    let (left, _) = pair.connect();
    let mut session = pair.left.endpoint.session(left).expect("it is connected");
    let stream = session.open(Dir::Uni).expect("the first stream");
    session.attach(stream, 1 << 40).expect("the stream is new");
    pair.run_for(Duration::from_secs(SECONDS / 2));
    let before = pair.right.host.0;
    pair.run_for(Duration::from_secs(SECONDS / 2));
    (pair.right.host.0 - before) * 8 / (SECONDS / 2)
}

fn main() {
    println!("Mbit/s of stream data on a line of {} Mbit/s in seconds 10 to 20.\n", RATE / 1_000_000);
    println!("| round trip | buffer | no loss | 0.1 % | 1 % | 5 % | 15 % |");
    println!("|---|---|---|---|---|---|---|");
    for rtt in [5, 20, 50, 100, 200] {
        for buffer in [10, 100, 400] {
            let cells = [0, 1_000, 10_000, 50_000, 150_000]
                .map(|loss| format!("{:.1}", goodput(rtt, loss, buffer) as f64 / 1e6));
            println!("| {rtt} ms | {} × BDP | {} |", f64::from(buffer as u32) / 100.0, cells.join(" | "));
        }
    }
}
