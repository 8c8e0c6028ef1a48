//! The reference model accepts what an ideal session may deliver, and nothing else.

use wraith_proto::{Dir, Payload, SessionHandle, StreamId};
use wraith_sim::{Divergence, Host, Model, Pair, PairConfig, Recorder};

/// A session and two of its streams, as only a live endpoint gives them out.
fn ids() -> (SessionHandle, StreamId, StreamId) {
    let mut pair = Pair::new(PairConfig::new(1));
    let (session, _) = pair.connect();
    let mut view = pair.left.endpoint.session(session).unwrap();
    let (first, second) = (view.open(Dir::Uni).unwrap(), view.open(Dir::Uni).unwrap());
    (session, first, second)
}

struct Received {
    record: Recorder,
    session: SessionHandle,
}

impl Received {
    fn stream(&mut self, stream: StreamId, offset: u64, data: &[u8], fin: bool) {
        let mut data = data.to_vec();
        let payload = Payload::Stream { session: self.session, stream, offset, data: &mut data, fin };
        self.record.on_payload(wraith_sim::Clock::new().now(), payload);
    }

    fn datagram(&mut self, data: &[u8]) {
        let mut data = data.to_vec();
        let payload = Payload::Datagram { session: self.session, data: &mut data };
        self.record.on_payload(wraith_sim::Clock::new().now(), payload);
    }
}

fn finished(stream: StreamId, data: &[u8]) -> Model {
    let mut model = Model::new();
    model.write(stream, data);
    model.finish(stream);
    model
}

#[test]
fn a_partial_delivery_passes_until_the_session_rests() {
    let (session, stream, other) = ids();
    let mut model = finished(stream, b"abcdef");
    let mut received = Received { record: Recorder::new(), session };
    assert_eq!(model.check(&received.record, session), Ok(()));
    assert_eq!(model.check_all(&received.record, session), Err(Divergence::Missing(stream, 0)));

    received.stream(stream, 4, b"ef", true);
    assert_eq!(model.check(&received.record, session), Ok(()));
    assert_eq!(model.check_all(&received.record, session), Err(Divergence::Missing(stream, 0)));

    received.stream(stream, 0, b"abcd", false);
    assert_eq!(model.check_all(&received.record, session), Ok(()));

    model.write(other, b"x");
    assert_eq!(model.check_all(&received.record, session), Err(Divergence::Missing(other, 0)));
    model.reset(other);
    assert_eq!(model.check_all(&received.record, session), Ok(()));
}

#[test]
fn a_missing_end_is_noticed() {
    let (session, stream, _) = ids();
    let mut received = Received { record: Recorder::new(), session };
    received.stream(stream, 0, b"abc", false);
    let model = finished(stream, b"abc");
    assert_eq!(model.check_all(&received.record, session), Err(Divergence::Missing(stream, 3)));
}

#[test]
fn every_kind_of_wrong_stream_data_is_noticed() {
    let (session, stream, other) = ids();
    let mut received = Received { record: Recorder::new(), session };
    received.stream(stream, 0, b"abc", true);
    let check = |model: &Model| model.check(&received.record, session);

    assert_eq!(check(&finished(stream, b"abc")), Ok(()));
    assert_eq!(check(&finished(stream, b"abX")), Err(Divergence::WrongByte(stream, 2)));
    assert_eq!(check(&finished(stream, b"ab")), Err(Divergence::BeyondEnd(stream)));
    assert_eq!(check(&finished(stream, b"abcd")), Err(Divergence::WrongEnd(stream, 3)));
    assert_eq!(check(&finished(other, b"abc")), Err(Divergence::UnknownStream(stream)));
    let mut unfinished = Model::new();
    unfinished.write(stream, b"abc");
    assert_eq!(check(&unfinished), Err(Divergence::WrongEnd(stream, 3)));

    received.stream(stream, 1, b"b", false);
    let repeated = finished(stream, b"abc").check(&received.record, session);
    assert_eq!(repeated, Err(Divergence::Repeated(stream, 1)));
}

#[test]
fn a_datagram_may_be_lost_but_neither_invented_nor_repeated() {
    let (session, ..) = ids();
    let mut model = Model::new();
    model.datagram(b"twice");
    model.datagram(b"twice");
    model.datagram(b"lost");
    let mut received = Received { record: Recorder::new(), session };
    received.datagram(b"twice");
    received.datagram(b"twice");
    assert_eq!(model.check_all(&received.record, session), Ok(()));
    received.datagram(b"twice");
    let repeated = Divergence::UnknownDatagram(b"twice".to_vec());
    assert_eq!(model.check(&received.record, session), Err(repeated));
}
