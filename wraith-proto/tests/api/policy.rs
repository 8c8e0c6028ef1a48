//! Who may talk to whom: asking the application, sets of peers, protocols in common.

use bytes::Bytes;
use wraith_proto::wire::HandshakeKind;
use wraith_proto::{
    CloseReason, DatagramError, Dir, DropReason, Event, Identity, OpenError, Peer, Policy, SessionError,
    SessionHandle, Via,
};
use wraith_sim::{Pair, PairConfig, RIGHT, Transparent};

use crate::common::{ONE_WAY, SECOND, assert_carries, both_connected, events, of_kind, small, watch};

/// Dials without a pin and leaves the question to the test.
fn dial_unpinned(pair: &mut Pair) -> SessionHandle {
    pair.left.host.ask = true;
    let (now, peer) = (pair.now(), Peer { addr: RIGHT, id: None });
    pair.left.endpoint.connect(now, peer, Via::default()).expect("a free session")
}

/// A responder that asks, and leaves the question to the test.
fn asking(seed: u64) -> PairConfig {
    let mut config = small(seed);
    config.right.policy = Policy::Ask;
    config
}

/// `PROTO §4.8`
#[test]
fn a_dial_without_a_pin_asks_before_it_says_who_it_is() {
    let mut pair = Pair::new(small(1));
    let seen = watch(&mut pair, |_| false);
    let session = dial_unpinned(&mut pair);
    pair.run_for(3 * SECOND);
    assert_eq!(events(&pair.left, session), [Event::Authorize]);
    assert!(of_kind(&seen, HandshakeKind::Finish).is_empty());
    assert_eq!(of_kind(&seen, HandshakeKind::Init).len(), 1, "the answer has come");
    let now = pair.now();
    let mut waiting = pair.left.endpoint.session(session).expect("it waits");
    assert_eq!(waiting.peer(), Some(pair.right.peer_id()));
    assert_eq!(waiting.send_datagram(Bytes::new()), Err(DatagramError::Closed));
    assert_eq!(waiting.open(Dir::Bi), Err(OpenError::Closed));
    assert_eq!(waiting.authorize(now), Ok(()));
    assert_eq!(waiting.authorize(now), Err(SessionError::NotPending));
    assert!(pair.run_until(both_connected, SECOND));
    assert_eq!(events(&pair.left, session), [Event::Authorize, Event::Connected]);
    let right = pair.right.last_connected().expect("it connected");
    assert_eq!(
        pair.left.endpoint.session(session).expect("open").stats().rtt,
        2 * ONE_WAY,
        "the wait is no round trip"
    );
    assert_carries(&mut pair, session, right);
}

/// `PROTO §4.8`
#[test]
fn a_dial_that_is_closed_instead_of_authorised_says_nothing_more() {
    let mut pair = Pair::new(small(2));
    let seen = watch(&mut pair, |_| false);
    let session = dial_unpinned(&mut pair);
    pair.run_for(3 * ONE_WAY);
    let now = pair.now();
    pair.left.endpoint.session(session).expect("it waits").close(now, 9);
    pair.run_for(30 * SECOND);
    assert_eq!(events(&pair.left, session), [Event::Authorize, Event::Closed(CloseReason::Local)]);
    assert!(seen.borrow().iter().all(|sent| sent.sender == 1 || sent.kind() == Some(HandshakeKind::Init)));
    assert!(pair.right.host.events.is_empty());
    assert!(pair.left.endpoint.is_drained());
}

#[test]
fn a_dial_that_is_never_authorised_ends_by_itself() {
    let mut pair = Pair::new(small(3));
    let session = dial_unpinned(&mut pair);
    assert!(pair.run_until(|pair| pair.left.closed() == 1, 11 * SECOND));
    assert_eq!(events(&pair.left, session)[1], Event::Closed(CloseReason::HandshakeTimeout));
}

/// `PROTO §6.7`
#[test]
fn no_application_data_leave_before_the_responder_has_authorised() {
    let mut pair = Pair::new(asking(4).with_both(|config| config.crypto = Transparent::CHECKED));
    pair.right.host.ask = true;
    let seen = watch(&mut pair, |_| false);
    let left = pair.dial().expect("a free session");
    assert!(pair.run_until(|pair| !pair.right.host.events.is_empty(), SECOND));
    let (right, event) = pair.right.host.events[0];
    assert_eq!(event, Event::Authorize);
    pair.run_for(2 * SECOND);
    assert!(events(&pair.left, left).is_empty(), "not yet connected");
    let mut waiting = pair.left.endpoint.session(left).expect("it waits");
    assert_eq!(waiting.send_datagram(Bytes::from_static(b"early")), Err(DatagramError::Closed));
    assert_eq!(waiting.open(Dir::Uni), Err(OpenError::Closed));
    let mut pending = pair.right.endpoint.session(right).expect("it waits");
    assert_eq!(pending.peer(), Some(pair.left.peer_id()));
    assert_eq!(pending.send_datagram(Bytes::from_static(b"early")), Err(DatagramError::Closed));
    let data = seen.borrow().iter().filter(|sent| sent.kind().is_none() && has_data(&sent.bytes)).count();
    assert_eq!(data, 0);

    let now = pair.now();
    pair.right.endpoint.session(right).expect("it waits").authorize(now).expect("it waits");
    assert!(pair.run_until(both_connected, SECOND));
    assert_eq!(pair.now().saturating_since(now), ONE_WAY, "AUTHORIZED takes one way");
    assert_eq!(events(&pair.right, right), [Event::Authorize, Event::Connected]);
    assert_carries(&mut pair, left, right);
}

/// Whether a packet that hides nothing carries bytes of the application.
fn has_data(packet: &[u8]) -> bool {
    let mut body = packet[13..packet.len() - 16].to_vec();
    let (payload, _) = wraith_proto::wire::split_body(&mut body).expect("a body");
    !payload.is_empty()
}

/// `PROTO §6.7`: AUTHORIZED is repeated until it is acknowledged.
#[test]
fn authorised_gets_through_a_loss() {
    let mut pair = Pair::new(asking(5));
    pair.right.host.ask = true;
    pair.dial().expect("a free session");
    assert!(pair.run_until(|pair| !pair.right.host.events.is_empty(), SECOND));
    pair.run_for(SECOND);
    let mut lost = 0;
    watch(&mut pair, move |sent| {
        lost += u32::from(sent.sender == 1);
        sent.sender == 1 && lost <= 3
    });
    let (right, now) = (pair.right.host.events[0].0, pair.now());
    pair.right.endpoint.session(right).expect("it waits").authorize(now).expect("it waits");
    assert!(pair.run_until(both_connected, 10 * SECOND));
}

#[test]
fn a_responder_that_closes_instead_of_authorising_tells_the_initiator() {
    let mut pair = Pair::new(asking(6));
    pair.right.host.ask = true;
    let left = pair.dial().expect("a free session");
    assert!(pair.run_until(|pair| !pair.right.host.events.is_empty(), SECOND));
    let (right, now) = (pair.right.host.events[0].0, pair.now());
    pair.right.endpoint.session(right).expect("it waits").close(now, 77);
    pair.run_for(SECOND);
    assert_eq!(events(&pair.left, left), [Event::Closed(CloseReason::Peer(77))]);
    assert_eq!(events(&pair.right, right), [Event::Authorize, Event::Closed(CloseReason::Local)]);
}

/// `PROTO §4.17`
#[test]
fn a_peer_outside_the_set_is_refused_and_never_reported() {
    let mut config = small(7);
    config.right.policy = Policy::Set(Box::new([Identity::from_seed([9; 32]).peer_id()]));
    let mut pair = Pair::new(config);
    let left = pair.dial().expect("a free session");
    assert!(pair.run_until(|pair| pair.left.closed() == 1, SECOND));
    // Before FINISH it cannot know that it is not welcome.
    assert_eq!(events(&pair.left, left), [Event::Connected, Event::Closed(CloseReason::Refused)]);
    pair.run_for(10 * SECOND);
    assert!(pair.right.host.events.is_empty());
    assert_eq!(pair.right.endpoint.sessions(), 0);
    assert!(pair.right.endpoint.is_drained());
}

/// `PROTO §4.17`
#[test]
fn a_peer_outside_the_set_takes_no_room_where_room_is_scarce() {
    let mut config = small(7);
    config.right.policy = Policy::Set(Box::new([Identity::from_seed([9; 32]).peer_id()]));
    config.right.limits.sessions = 1;
    let mut pair = Pair::new(config);
    pair.dial().expect("a free session");
    let refused = |pair: &Pair| pair.right.endpoint.stats().drops(DropReason::Refused) > 0;
    assert!(pair.run_until(refused, SECOND));
    assert_eq!(pair.right.endpoint.sessions(), 0);
    assert!(pair.right.endpoint.is_drained());
    assert!(pair.right.host.events.is_empty());
}

/// `PROTO §4.17`
#[test]
fn a_peer_of_the_set_is_admitted() {
    let mut config = small(8);
    config.right.policy = Policy::Set(Box::new([config.left.identity.peer_id()]));
    let mut pair = Pair::new(config);
    let (left, right) = pair.connect();
    assert_carries(&mut pair, left, right);
}

/// `PROTO §4.5`
#[test]
fn without_a_common_protocol_the_dial_is_refused_and_no_session_begins() {
    let mut config = small(9);
    config.right.protocols = vec![b"another".as_slice().into()];
    let mut pair = Pair::new(config);
    let seen = watch(&mut pair, |_| false);
    let start = pair.now();
    let left = pair.dial().expect("a free session");
    assert!(pair.run_until(|pair| pair.left.closed() == 1, SECOND));
    assert_eq!(pair.now().saturating_since(start), 2 * ONE_WAY);
    assert_eq!(events(&pair.left, left), [Event::Closed(CloseReason::Refused)]);
    pair.run_for(30 * SECOND);
    assert!(seen.borrow().iter().all(|sent| sent.sender == 1 || sent.kind() == Some(HandshakeKind::Init)));
    assert_eq!((pair.right.endpoint.sessions(), pair.right.host.events.len()), (0, 0));
}

/// `PROTO §4.5`: the first of the initiator's protocols that the responder offers too.
#[test]
fn the_initiators_order_decides_on_the_protocol() {
    let mut config = small(10);
    config.left.protocols = vec![b"x".as_slice().into(), b"a".as_slice().into(), b"b".as_slice().into()];
    config.right.protocols = vec![b"b".as_slice().into(), b"a".as_slice().into()];
    let mut pair = Pair::new(config);
    let (left, right) = pair.connect();
    assert_eq!(pair.left.endpoint.session(left).expect("open").protocol(), Some(&b"a"[..]));
    assert_eq!(pair.right.endpoint.session(right).expect("open").protocol(), Some(&b"a"[..]));
}
