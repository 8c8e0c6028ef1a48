//! Credit: who may send how much, and who says so.

use std::time::Duration;

use bytes::Bytes;
use wraith_proto::{Dir, Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId};
use wraith_sim::{Host, LinkConfig, Pair, PairConfig, Transparent};

use crate::support::{Bulk, MS, byte_at, connected, send};

const SECOND: Duration = Duration::from_secs(1);
const WINDOW: u64 = 256 << 10;

/// Buffers what arrives, reads a fixed number of bytes per millisecond in order, and grants what it has read.
#[derive(Debug, Default)]
struct SlowReader {
    buffered: u64,
    most: u64,
    read: u64,
    received: u64,
    since: Option<Instant>,
    stream: Option<(SessionHandle, StreamId)>,
}

const PER_MILLISECOND: u64 = 1000;

impl Source for SlowReader {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl Host for SlowReader {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        if let Payload::Stream { session, stream, offset, data, .. } = payload {
            assert!((offset..).zip(&*data).all(|(at, &byte)| byte == byte_at(at)));
            self.stream = Some((session, stream));
            self.received += data.len() as u64;
            self.buffered += data.len() as u64;
            self.most = self.most.max(self.buffered);
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, _: SessionHandle, _: Event) {}

    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let since = self.since.get_or_insert(now);
        let millis = now.saturating_since(*since).as_millis() as u64;
        *since = since.saturating_add(MS(millis));
        let some = (millis * PER_MILLISECOND).min(self.buffered);
        if some == 0 {
            return;
        }
        self.buffered -= some;
        self.read += some;
        if let Some((session, stream)) = self.stream
            && let Some(mut session) = endpoint.session(session)
        {
            let _ = session.grant(stream, self.read + WINDOW);
        }
    }
}

/// `PROTO §7.2`: the sender never exceeds the credit, so the reader needs memory for one window.
#[test]
fn a_slow_reader_bounds_a_fast_sender_by_credit_alone() {
    let link = LinkConfig::perfect().with_latency(MS(5)).with_rate(Some(8_000_000_000));
    let mut config = PairConfig::new(1).with_link(link);
    config.right.transport = config.right.transport.with_manual_credit(true).with_stream_window(WINDOW);
    let config = config.with_both(|config| config.crypto = Transparent::CHECKED);
    let mut pair = Pair::with_hosts(config, Bulk::new(), SlowReader::default());
    let (left, _) = pair.connect();
    let mut session = pair.left.endpoint.session(left).unwrap();
    let stream = session.open(Dir::Uni).unwrap();
    session.attach(stream, 10_000_000).unwrap();
    assert!(pair.run_until(|pair| pair.left.host.delivered == 1, 12 * SECOND));
    assert_eq!(pair.right.host.received, 10_000_000);
    assert!(pair.right.host.most <= WINDOW, "{} bytes buffered", pair.right.host.most);
    let (left, right) = (pair.left.endpoint.stats(), pair.right.endpoint.stats());
    assert_eq!((left.packets_lost, right.bytes_refused), (0, 0));
    assert!(left.bytes_sent < 11_000_000, "nothing is sent twice: {}", left.bytes_sent);
}

/// `PROTO §7.8`: `STREAM_BLOCKED` is sent once for each value of the credit.
#[test]
fn a_blocked_sender_says_so_once() {
    let mut config = PairConfig::new(2);
    config.right.transport = config.right.transport.with_manual_credit(true).with_stream_window(5_000);
    let (mut pair, left, right) = connected(config);
    let stream = send(&mut pair, left, 20_000);
    pair.run_for(2 * SECOND);
    assert_eq!(pair.right.host.received, 5_000);
    let sent = pair.left.endpoint.stats().datagrams_sent;
    pair.run_for(2 * SECOND);
    assert_eq!(pair.left.endpoint.stats().datagrams_sent, sent, "silence while blocked");
    // A smaller value than before changes nothing (`PROTO §7.2`).
    pair.right.endpoint.session(right).unwrap().grant(stream, 4_000).unwrap();
    pair.run_for(SECOND);
    assert_eq!(pair.right.host.received, 5_000);
    pair.right.endpoint.session(right).unwrap().grant(stream, 20_000).unwrap();
    assert!(pair.run_until(|pair| pair.left.host.delivered == 1, SECOND));
    assert_eq!(pair.right.host.received, 20_000);
}

#[test]
fn credit_grows_with_the_path_until_its_limit() {
    // 200 ms × 400 Mbit/s are 10 MB: ten times the credit that a stream starts with.
    let link =
        LinkConfig::perfect().with_latency(MS(100)).with_rate(Some(400_000_000)).with_queue_bytes(10 << 20);
    let (mut pair, left, _) = crate::support::bulk(3, link);
    send(&mut pair, left, 1 << 40);
    pair.run_for(6 * SECOND);
    let before = pair.right.host.received;
    pair.run_for(SECOND);
    let share = (pair.right.host.received - before) * 800 / 400_000_000;
    assert!(share >= 80, "{share} %");
}

#[test]
fn a_credit_limit_bounds_the_rate() {
    let link = LinkConfig::perfect().with_latency(MS(50));
    let mut config = PairConfig::new(4).with_link(link);
    config.right.transport = config.right.transport.with_stream_window(100_000).with_max_window(100_000);
    let (mut pair, left, _) = connected(config);
    send(&mut pair, left, 1 << 40);
    pair.run_for(SECOND);
    let before = pair.right.host.received;
    pair.run_for(SECOND);
    let bytes = pair.right.host.received - before;
    // A new grant comes with each half of the window.
    assert!(
        (450_000..=1_000_000).contains(&bytes),
        "50,000 to 100,000 bytes each 100 ms, not {bytes} per second"
    );
}

#[test]
fn a_stream_queues_sixteen_chunks_and_says_when_there_is_room() {
    let (mut pair, left, _) = connected(PairConfig::new(5));
    let mut session = pair.left.endpoint.session(left).unwrap();
    let stream = session.open(Dir::Uni).unwrap();
    let chunk = |at: u64| Bytes::from((at * 10..at * 10 + 10).map(byte_at).collect::<Vec<u8>>());
    for at in 0..16 {
        session.write(stream, chunk(at)).unwrap();
    }
    assert_eq!(session.write(stream, chunk(16)), Err(wraith_proto::WriteError::Blocked));
    let writable = (left, Event::Writable(stream));
    assert!(!pair.left.host.events.contains(&writable));
    assert!(pair.run_until(|pair| pair.left.host.events.contains(&writable), SECOND));
    let mut session = pair.left.endpoint.session(left).unwrap();
    session.write(stream, chunk(16)).unwrap();
    session.finish(stream).unwrap();
    assert!(pair.run_until(|pair| pair.left.host.delivered == 1, SECOND));
    assert_eq!(pair.right.host.received, 170);
}
