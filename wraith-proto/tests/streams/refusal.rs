//! Receivers that do not take what arrives.

use std::time::Duration;

use bytes::Bytes;
use wraith_proto::{Dir, Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId};
use wraith_sim::{Host, LinkConfig, Pair, PairConfig, Transparent};

use crate::support::{Bulk, MS, byte_at};

const SECOND: Duration = Duration::from_secs(1);
const WINDOW: u64 = 128 << 10;

/// A consumer of so many bytes per millisecond that refuses what it has no room for, and grants when it has.
#[derive(Debug)]
struct Picky {
    rate: u64,
    /// Bytes that it would take now.
    room: u64,
    full: u64,
    refused: bool,
    filled_at: Option<Instant>,
    taken: u64,
    ended: bool,
    stream: Option<(SessionHandle, StreamId)>,
}

impl Picky {
    fn new(rate: u64, full: u64) -> Self {
        Self { rate, room: full, full, refused: false, filled_at: None, taken: 0, ended: false, stream: None }
    }
}

impl Source for Picky {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl Host for Picky {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        if let Payload::Stream { session, stream, offset, data, fin } = payload {
            assert!((offset..).zip(&*data).all(|(at, &byte)| byte == byte_at(at)));
            self.taken += data.len() as u64;
            self.room = self.room.saturating_sub(data.len() as u64);
            self.ended |= fin;
            self.stream = Some((session, stream));
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, session: SessionHandle, event: Event) {
        if let Event::StreamOpened(stream) = event {
            self.stream = Some((session, stream));
        }
    }

    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let since = self.filled_at.get_or_insert(now);
        let millis = now.saturating_since(*since).as_millis() as u64;
        if millis > 0 {
            *since = since.saturating_add(MS(millis));
            self.room = (self.room + millis * self.rate).min(self.full);
        }
        if self.refused
            && self.room >= self.full / 2
            && let Some((session, stream)) = self.stream
            && let Some(mut session) = endpoint.session(session)
        {
            self.refused = false;
            // No news beyond what the core granted already: the call only ends the wait.
            let _ = session.grant(stream, 0);
        }
    }

    fn refuses(&mut self) -> bool {
        let refuses = self.room < 1200;
        self.refused |= refuses;
        refuses
    }
}

fn picky(seed: u64, link: LinkConfig, host: Picky) -> (Pair<Bulk, Picky>, SessionHandle) {
    let config = PairConfig::new(seed).with_link(link).with_both(|config| {
        config.crypto = Transparent::CHECKED;
        config.transport = config.transport.with_stream_window(WINDOW).with_max_window(WINDOW);
    });
    let mut pair = Pair::with_hosts(config, Bulk::new(), host);
    let (left, _) = pair.connect();
    (pair, left)
}

/// `PROTO §7.5`: everything arrives, and refusal is no congestion.
#[test]
fn a_receiver_that_refuses_what_it_cannot_take_gets_everything_in_the_end() {
    let link = LinkConfig::perfect().with_latency(MS(10));
    let (mut pair, left) = picky(1, link, Picky::new(1000, 64_000));
    let mut session = pair.left.endpoint.session(left).unwrap();
    let stream = session.open(Dir::Uni).unwrap();
    session.attach(stream, 5_000_000).unwrap();
    // Reading alone takes 5 seconds.
    for _ in 0..40 {
        let before = pair.right.host.taken;
        // The application looks every 10 ms whether it can take more: with nothing on the way nobody else wakes it.
        for _ in 0..50 {
            pair.run_for(MS(10));
        }
        let delivered = pair.left.host.delivered == 1;
        assert!(delivered || pair.right.host.taken > before, "no progress at {before}");
        if delivered {
            break;
        }
    }
    assert_eq!((pair.right.host.taken, pair.right.host.ended), (5_000_000, true));
    assert_eq!(pair.left.host.delivered, 1);
    let stats = pair.left.endpoint.session(left).unwrap().stats();
    assert_eq!((stats.packets_lost, stats.congestion_events), (0, 0));
    assert!(pair.right.endpoint.stats().bytes_refused > 0);
    // Each byte was sent a few times at most.
    assert!(pair.left.endpoint.stats().bytes_sent < 25_000_000, "{:?}", pair.left.endpoint.stats());
}

/// `PROTO §7.5`: a report is repeated until it is acknowledged, and what it covers is not acknowledged before.
#[test]
fn refused_bytes_arrive_over_a_lossy_link() {
    for seed in 0..20 {
        let (mut pair, left) = picky(seed, LinkConfig::hostile(), Picky::new(400, 20_000));
        let mut session = pair.left.endpoint.session(left).unwrap();
        let stream = session.open(Dir::Uni).unwrap();
        let data: Vec<u8> = (0..300_000).map(byte_at).collect();
        let mut chunks = data.chunks(700).map(Bytes::copy_from_slice).peekable();
        let mut left_to_run = 2_000;
        while pair.left.host.delivered == 0 {
            let mut session = pair.left.endpoint.session(left).unwrap();
            while let Some(chunk) = chunks.peek() {
                if session.write(stream, chunk.clone()).is_err() {
                    break;
                }
                chunks.next();
                if chunks.peek().is_none() {
                    session.finish(stream).unwrap();
                }
            }
            pair.run_for(MS(20));
            left_to_run -= 1;
            assert!(left_to_run > 0, "seed {seed}: {:?}", pair.right.host);
        }
        assert_eq!((pair.right.host.taken, pair.right.host.ended), (300_000, true), "seed {seed}");
    }
}

/// `PROTO §7.5`: a length of 0 stands for the end of the stream alone.
#[test]
fn a_refused_end_comes_again() {
    let (mut pair, left) = picky(3, LinkConfig::perfect().with_latency(MS(10)), Picky::new(0, 1_200));
    pair.right.host.room = 0;
    let mut session = pair.left.endpoint.session(left).unwrap();
    let stream = session.open(Dir::Uni).unwrap();
    session.finish(stream).unwrap();
    pair.run_for(SECOND);
    assert!(!pair.right.host.ended && pair.left.host.delivered == 0);
    pair.right.host.room = 1_200;
    assert!(pair.run_until(|pair| pair.left.host.delivered == 1, SECOND));
    assert!(pair.right.host.ended);
}

/// `PROTO §7.5`: a stream that waits for a grant does not hold up others.
#[test]
fn a_held_stream_does_not_stop_another() {
    let (mut pair, left) = picky(4, LinkConfig::perfect().with_latency(MS(10)), Picky::new(0, 1 << 40));
    pair.right.host.room = 0;
    let mut session = pair.left.endpoint.session(left).unwrap();
    let held = session.open(Dir::Uni).unwrap();
    session.attach(held, 500_000).unwrap();
    pair.run_for(SECOND);
    assert!(pair.right.endpoint.stats().bytes_refused > 0);
    pair.right.host.room = 1 << 40;
    pair.right.host.refused = false;
    let mut session = pair.left.endpoint.session(left).unwrap();
    let other = session.open(Dir::Uni).unwrap();
    session.attach(other, 500_000).unwrap();
    assert!(pair.run_until(|pair| pair.left.host.delivered == 1, 5 * SECOND));
    assert_eq!(pair.right.host.taken, 500_000);
    let (right, _) = pair.right.host.stream.unwrap();
    pair.right.endpoint.session(right).unwrap().grant(held, 0).unwrap();
    assert!(pair.run_until(|pair| pair.left.host.delivered == 2, 5 * SECOND));
    assert_eq!(pair.right.host.taken, 1_000_000);
}
