//! Who goes first, and who shares with whom.

use std::collections::BTreeMap;
use std::time::Duration;

use wraith_proto::{Dir, Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId};
use wraith_sim::{Host, LinkConfig, Pair, PairConfig, Transparent};

use crate::support::MS;

const SECOND: Duration = Duration::from_secs(1);

/// Serves zeros and counts what arrives per stream.
#[derive(Debug, Default)]
struct Counter {
    streams: BTreeMap<StreamId, u64>,
}

impl Source for Counter {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, buf: &mut [u8]) -> usize {
        buf.fill(0);
        buf.len()
    }
}

impl Host for Counter {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        if let Payload::Stream { stream, data, .. } = payload {
            *self.streams.entry(stream).or_default() += data.len() as u64;
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, _: SessionHandle, _: Event) {}
}

fn pair(link: LinkConfig) -> (Pair<Counter, Counter>, SessionHandle) {
    let config = PairConfig::new(1).with_link(link).with_both(|config| {
        config.crypto = Transparent::CHECKED;
        config.transport = config.transport.with_peer_streams(1000);
    });
    let mut pair = Pair::with_hosts(config, Counter::default(), Counter::default());
    let (left, _) = pair.connect();
    (pair, left)
}

fn open(pair: &mut Pair<Counter, Counter>, session: SessionHandle, count: usize, level: u8) -> Vec<StreamId> {
    let mut session = pair.left.endpoint.session(session).unwrap();
    let mut streams = Vec::new();
    for _ in 0..count {
        let stream = session.open(Dir::Uni).unwrap();
        session.set_priority(stream, level).unwrap();
        session.attach(stream, 1 << 40).unwrap();
        streams.push(stream);
    }
    streams
}

#[test]
fn a_thousand_streams_share_evenly_even_under_loss() {
    for loss in [0, 10_000] {
        let link =
            LinkConfig::perfect().with_latency(MS(10)).with_rate(Some(200_000_000)).with_queue_bytes(500_000);
        let (mut pair, left) = pair(link.with_loss(loss));
        open(&mut pair, left, 1000, 3);
        pair.run_for(8 * SECOND);
        let progress = &pair.right.host.streams;
        let mean = progress.values().sum::<u64>() / 1000;
        assert_eq!(progress.len(), 1000);
        assert!(mean > 40_000, "{mean}");
        for (stream, &bytes) in progress {
            assert!(bytes.abs_diff(mean) * 10 <= mean, "{stream:?}: {bytes} of {mean} at {loss} ppm");
        }
    }
}

#[test]
fn a_higher_level_goes_first() {
    let link =
        LinkConfig::perfect().with_latency(MS(10)).with_rate(Some(50_000_000)).with_queue_bytes(100_000);
    let (mut pair, left) = pair(link);
    let low = open(&mut pair, left, 3, 5);
    pair.run_for(SECOND);
    let before: u64 = low.iter().map(|stream| pair.right.host.streams[stream]).sum();
    assert!(before > 1_000_000);
    let high = open(&mut pair, left, 2, 0);
    pair.run_for(MS(100));
    let low_bytes = |pair: &Pair<Counter, Counter>| -> u64 {
        low.iter().map(|stream| pair.right.host.streams[stream]).sum()
    };
    let at_switch = low_bytes(&pair);
    pair.run_for(SECOND);
    let during = low_bytes(&pair) - at_switch;
    let high_bytes: Vec<u64> = high.iter().map(|stream| pair.right.host.streams[stream]).collect();
    // The low level fills the time in which the high one waits for credit, no more.
    assert!(high_bytes.iter().sum::<u64>() > 20 * during, "{high_bytes:?} against {during}");
    assert!(high_bytes[0].abs_diff(high_bytes[1]) * 10 <= high_bytes[0], "{high_bytes:?}");
}

#[test]
fn a_stream_that_changes_its_level_changes_its_place() {
    let (mut pair, left) =
        pair(LinkConfig::perfect().with_latency(MS(10)).with_rate(Some(20_000_000)).with_queue_bytes(50_000));
    let streams = open(&mut pair, left, 2, 3);
    pair.run_for(SECOND);
    pair.left.endpoint.session(left).unwrap().set_priority(streams[1], 200).unwrap();
    pair.run_for(MS(200));
    let before = pair.right.host.streams.clone();
    pair.run_for(SECOND);
    let progress = |stream: &StreamId| pair.right.host.streams[stream] - before[stream];
    assert!(progress(&streams[0]) > 10 * progress(&streams[1]));
}
