//! How streams begin and end.

use std::time::Duration;

use bytes::Bytes;
use wraith_proto::{Dir, Event, OpenError, ReadError, SessionHandle, StreamId, WriteError};
use wraith_sim::{LinkConfig, Pair, PairConfig, Recorder};

use crate::support::{Bulk, MS, bulk, connected, send};

const SECOND: Duration = Duration::from_secs(1);

fn recorders(seed: u64) -> (Pair, SessionHandle, SessionHandle) {
    let mut pair = Pair::new(PairConfig::new(seed));
    let (left, right) = pair.connect();
    (pair, left, right)
}

fn events(recorder: &Recorder, stream: StreamId) -> Vec<Event> {
    let about = |event: &Event| match *event {
        Event::StreamOpened(id)
        | Event::Writable(id)
        | Event::Delivered(id)
        | Event::Reset { stream: id, .. }
        | Event::Stopped { stream: id, .. } => id == stream,
        _ => false,
    };
    recorder.events.iter().map(|&(_, event)| event).filter(about).collect()
}

#[test]
fn a_stream_is_delivered_exactly_once() {
    let (mut pair, left, right) = recorders(1);
    let mut session = pair.left.endpoint.session(left).unwrap();
    let stream = session.open(Dir::Bi).unwrap();
    session.write(stream, Bytes::from_static(b"hello ")).unwrap();
    session.write(stream, Bytes::from_static(b"world")).unwrap();
    session.finish(stream).unwrap();
    pair.run_for(SECOND);
    assert_eq!(pair.right.host.stream(right, stream).unwrap().complete(), Some(&b"hello world"[..]));
    assert_eq!(events(&pair.left.host, stream), [Event::Delivered(stream)]);
    assert_eq!(events(&pair.right.host, stream), [Event::StreamOpened(stream)]);

    let mut session = pair.right.endpoint.session(right).unwrap();
    session.write(stream, Bytes::from_static(b"back")).unwrap();
    session.finish(stream).unwrap();
    pair.run_for(SECOND);
    assert_eq!(pair.left.host.stream(left, stream).unwrap().complete(), Some(&b"back"[..]));
    assert_eq!(events(&pair.right.host, stream), [Event::StreamOpened(stream), Event::Delivered(stream)]);
    // Both halves are over: the stream is forgotten.
    let mut session = pair.left.endpoint.session(left).unwrap();
    assert_eq!(session.finish(stream), Err(WriteError::UnknownStream));
    assert_eq!(session.grant(stream, 9), Err(ReadError::UnknownStream));
}

#[test]
fn an_empty_stream_has_an_end() {
    for attached in [false, true] {
        let (mut pair, left, right) = recorders(2);
        let mut session = pair.left.endpoint.session(left).unwrap();
        let stream = session.open(Dir::Uni).unwrap();
        if attached {
            session.attach(stream, 0).unwrap();
        } else {
            session.write(stream, Bytes::new()).unwrap();
            session.finish(stream).unwrap();
        }
        pair.run_for(SECOND);
        assert_eq!(pair.right.host.stream(right, stream).unwrap().complete(), Some(&b""[..]));
        assert_eq!(events(&pair.left.host, stream), [Event::Delivered(stream)]);
    }
}

#[test]
fn nothing_may_be_written_behind_the_end() {
    let (mut pair, left, _) = recorders(3);
    let mut session = pair.left.endpoint.session(left).unwrap();
    let (written, attached) = (session.open(Dir::Uni).unwrap(), session.open(Dir::Uni).unwrap());
    session.write(written, Bytes::from_static(b"x")).unwrap();
    assert_eq!(session.attach(written, 5), Err(WriteError::Finished));
    session.finish(written).unwrap();
    assert_eq!(session.write(written, Bytes::from_static(b"y")), Err(WriteError::Finished));
    assert_eq!(session.finish(written), Err(WriteError::Finished));
    session.attach(attached, 0).unwrap();
    assert_eq!(session.write(attached, Bytes::from_static(b"y")), Err(WriteError::Finished));
    let peers = StreamId::clone(&written);
    assert_eq!(session.grant(peers, 1), Err(ReadError::UnknownStream), "this end only sends on it");
}

#[test]
fn a_reset_ends_the_stream_at_both_ends() {
    let (mut pair, left, right) = recorders(4);
    let mut session = pair.left.endpoint.session(left).unwrap();
    let stream = session.open(Dir::Uni).unwrap();
    session.write(stream, Bytes::from_static(b"some")).unwrap();
    pair.run_for(SECOND);
    pair.left.endpoint.session(left).unwrap().reset(stream, 77).unwrap();
    pair.run_for(SECOND);
    let reset = Event::Reset { stream, code: 77 };
    assert_eq!(events(&pair.right.host, stream), [Event::StreamOpened(stream), reset]);
    assert_eq!(pair.right.host.stream(right, stream).unwrap().bytes(), b"some");
    assert_eq!(events(&pair.left.host, stream), []);
    let mut session = pair.left.endpoint.session(left).unwrap();
    assert_eq!(session.write(stream, Bytes::from_static(b"x")), Err(WriteError::UnknownStream));
}

/// `PROTO §7.8`: the sender gives up with the receiver's code.
#[test]
fn a_stop_makes_the_sender_give_up_with_the_same_code() {
    let (mut pair, left, right) = recorders(5);
    let mut session = pair.left.endpoint.session(left).unwrap();
    let stream = session.open(Dir::Uni).unwrap();
    session.write(stream, Bytes::from_static(b"some")).unwrap();
    pair.run_for(SECOND);
    pair.right.endpoint.session(right).unwrap().stop(stream, 5).unwrap();
    pair.run_for(SECOND);
    assert_eq!(events(&pair.left.host, stream), [Event::Stopped { stream, code: 5 }]);
    let reset = Event::Reset { stream, code: 5 };
    assert_eq!(events(&pair.right.host, stream), [Event::StreamOpened(stream), reset]);
}

/// Streams that end in every way leave their slots, so that the peer may always open more.
#[test]
fn no_way_to_end_a_stream_keeps_its_slot() {
    let mut config = PairConfig::new(6).with_link(LinkConfig::hostile());
    config = config.with_both(|config| {
        config.transport = config.transport.with_peer_streams(4);
        config.limits.streams = 8;
    });
    let (mut pair, left, right) = connected(config);
    let mut seen = 0;
    for round in 0..200_u64 {
        let mut session = pair.left.endpoint.session(left).unwrap();
        let stream = loop {
            match session.open(if round % 3 == 0 { Dir::Bi } else { Dir::Uni }) {
                Ok(stream) => break stream,
                Err(OpenError::PeerLimit | OpenError::LocalLimit) => {
                    pair.run_for(MS(20));
                    seen += 1;
                    assert!(seen < 2_000, "no slot in round {round}");
                    session = pair.left.endpoint.session(left).unwrap();
                }
                Err(other) => panic!("{other:?}"),
            }
        };
        session.attach(stream, round * 100).unwrap();
        pair.run_for(MS(round % 7 * 5));
        if round % 4 == 1 {
            let _ = pair.right.endpoint.session(right).unwrap().stop(stream, 1);
        }
        if round % 5 == 2 {
            let _ = pair.left.endpoint.session(left).unwrap().reset(stream, 2);
        }
        if stream.dir() == Dir::Bi {
            // The answering half ends too, at once or when the stream is known.
            for _ in 0..100 {
                let mut session = pair.right.endpoint.session(right).unwrap();
                if session.reset(stream, 3).is_ok()
                    || session.reset(stream, 3) != Err(WriteError::UnknownStream)
                {
                    break;
                }
                pair.run_for(MS(10));
            }
        }
    }
}

#[test]
fn an_attached_stream_is_sent_from_where_it_lies_if_the_source_lends_it() {
    let link = LinkConfig::hostile();
    let (mut lent, left, _) = bulk(7, link);
    lent.left.host.lending = true;
    let time = crate::support::transfer(&mut lent, left, 1_000_000, 60 * SECOND);
    let (mut filled, left, _) = bulk(7, link);
    let same = crate::support::transfer(&mut filled, left, 1_000_000, 60 * SECOND);
    assert_eq!(time, same);
    assert_eq!(lent.transcript().hex(), filled.transcript().hex(), "the same bytes on the wire");
    assert!(lent.left.host.lends > 800, "{} of about 860 packets were lent", lent.left.host.lends);
    assert_eq!(filled.left.host.lends, 0);
}

/// Ends after `self.1` bytes, whatever was promised.
#[derive(Debug)]
struct Short(Bulk, u64);

impl wraith_proto::Source for Short {
    fn fill(&mut self, session: SessionHandle, stream: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        let len = buf.len().min(self.1.saturating_sub(offset) as usize);
        self.0.fill(session, stream, offset, &mut buf[..len])
    }
}

impl wraith_sim::Host for Short {
    fn on_payload(&mut self, now: wraith_proto::Instant, payload: wraith_proto::Payload<'_>) {
        self.0.on_payload(now, payload);
    }

    fn on_event(
        &mut self,
        now: wraith_proto::Instant,
        endpoint: &mut wraith_proto::Endpoint,
        session: SessionHandle,
        event: Event,
    ) {
        self.0.on_event(now, endpoint, session, event);
    }
}

#[test]
fn a_source_that_ends_early_resets_the_stream() {
    for len in [0, 100, 5_000] {
        let mut pair = Pair::with_hosts(PairConfig::new(8), Short(Bulk::new(), len), Bulk::new());
        let (left, right) = pair.connect();
        pair.run_for(SECOND);
        let mut session = pair.left.endpoint.session(left).unwrap();
        let stream = session.open(Dir::Uni).unwrap();
        session.attach(stream, 1_000_000).unwrap();
        pair.run_for(MS(200));
        let reset = (right, Event::Reset { stream, code: 0 });
        assert!(pair.right.host.events.contains(&reset), "with {len} bytes: {:?}", pair.right.host.events);
        assert!(pair.right.host.received <= len);
        assert_eq!(pair.left.host.0.delivered, 0);
    }
}

#[test]
fn the_peers_limit_of_streams_holds_until_streams_end() {
    let config = PairConfig::new(9).with_both(|config| {
        config.transport = config.transport.with_peer_streams(3);
    });
    let (mut pair, left, _) = connected(config);
    for _ in 0..3 {
        send(&mut pair, left, 10);
    }
    let mut session = pair.left.endpoint.session(left).unwrap();
    assert_eq!(session.open(Dir::Uni), Err(OpenError::PeerLimit));
    assert!(session.open(Dir::Bi).is_ok(), "each direction counts for itself");
    let unblocked = (left, Event::StreamsUnblocked);
    assert!(pair.run_until(|pair| pair.left.host.events.contains(&unblocked), SECOND));
    assert!(pair.left.endpoint.session(left).unwrap().open(Dir::Uni).is_ok());
}
