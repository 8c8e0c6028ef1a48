//! Hosts and links that several modules use.

use std::time::Duration;

use wraith_proto::{Dir, Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId};
use wraith_sim::{Host, LinkConfig, Pair, PairConfig, Transparent};

pub(crate) const MS: fn(u64) -> Duration = Duration::from_millis;

/// True when the long matrix is asked for.
pub(crate) fn full() -> bool {
    std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full")
}

/// The byte of every stream at `offset`: a pattern that no shift maps to itself.
pub(crate) fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Sends and checks streams of the pattern without keeping them.
#[derive(Debug, Default)]
pub(crate) struct Bulk {
    /// Bytes that arrived.
    pub(crate) received: u64,
    /// Streams that ended, by `fin`.
    pub(crate) ended: u64,
    pub(crate) delivered: u64,
    pub(crate) lends: u64,
    pub(crate) fills: u64,
    /// Answers `Source::lend`.
    pub(crate) lending: bool,
    room: Vec<u8>,
    pub(crate) events: Vec<(SessionHandle, Event)>,
}

impl Bulk {
    pub(crate) fn new() -> Self {
        Self::default()
    }
}

impl Source for Bulk {
    fn fill(&mut self, _: SessionHandle, _: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        self.fills += 1;
        for (at, byte) in (offset..).zip(&mut *buf) {
            *byte = byte_at(at);
        }
        buf.len()
    }

    fn lend(&mut self, _: SessionHandle, _: StreamId, offset: u64, len: usize) -> Option<&[u8]> {
        if !self.lending {
            return None;
        }
        self.lends += 1;
        self.room.clear();
        self.room.extend((offset..).take(len).map(byte_at));
        Some(&self.room)
    }
}

impl Host for Bulk {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        if let Payload::Stream { offset, data, fin, .. } = payload {
            self.received += data.len() as u64;
            self.ended += u64::from(fin);
            assert!((offset..).zip(&*data).all(|(at, &byte)| byte == byte_at(at)), "wrong bytes at {offset}");
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, session: SessionHandle, event: Event) {
        self.delivered += u64::from(matches!(event, Event::Delivered(_)));
        self.events.push((session, event));
    }
}

pub(crate) type BulkPair = Pair<Bulk, Bulk>;

/// A connected pair on `link` both ways, without encryption.
pub(crate) fn bulk(seed: u64, link: LinkConfig) -> (BulkPair, SessionHandle, SessionHandle) {
    connected(PairConfig::new(seed).with_link(link))
}

pub(crate) fn connected(config: PairConfig) -> (BulkPair, SessionHandle, SessionHandle) {
    let config = config.with_both(|config| config.crypto = Transparent::CHECKED);
    let mut pair = Pair::with_hosts(config, Bulk::new(), Bulk::new());
    let (left, right) = pair.connect();
    (pair, left, right)
}

/// Opens a stream at the left end and attaches `len` bytes to it.
pub(crate) fn send(pair: &mut BulkPair, session: SessionHandle, len: u64) -> StreamId {
    let mut session = pair.left.endpoint.session(session).expect("the session lives");
    let stream = session.open(Dir::Uni).expect("the peer allows it");
    session.attach(stream, len).expect("the stream is new");
    stream
}

/// Sends `len` bytes and returns the virtual time until all were delivered, at most `limit`.
pub(crate) fn transfer(pair: &mut BulkPair, session: SessionHandle, len: u64, limit: Duration) -> Duration {
    let start = pair.now();
    let (received, delivered) = (pair.right.host.received, pair.left.host.delivered);
    send(pair, session, len);
    let done = pair.run_until(|pair| pair.left.host.delivered > delivered, limit);
    assert!(done, "{} of {len} bytes after {limit:?}", pair.right.host.received - received);
    assert_eq!(pair.right.host.received - received, len, "each byte once");
    pair.now().saturating_since(start)
}
