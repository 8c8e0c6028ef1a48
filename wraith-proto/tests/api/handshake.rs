//! How the handshake repeats itself, proves addresses and starts a session.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use wraith_proto::wire::{CookieRepr, FinishPacket, HandshakeKind, InitPacket, VERSION};
use wraith_proto::{
    CloseReason, DropReason, Endpoint, Event, Instant, Outcome, Payload, SessionHandle, Source, StreamId,
};
use wraith_sim::{Host, LEFT, Pair, RIGHT, Recorder, Side, Verdict};

use crate::common::{ONE_WAY, SECOND, assert_carries, events, millis, of_kind, pair_with, small, watch};

/// Milliseconds from the first to each datagram of one type.
fn times(seen: &crate::common::Seen, kind: HandshakeKind) -> Vec<u128> {
    let seen = seen.borrow();
    let at: Vec<_> = seen.iter().filter(|sent| sent.kind() == Some(kind)).map(|sent| sent.at).collect();
    at.iter().map(|time| time.saturating_since(at[0]).as_millis()).collect()
}

/// `PROTO §4.10`
#[test]
fn an_unanswered_init_is_repeated_byte_for_byte_until_the_dial_gives_up() {
    let mut pair = Pair::new(small(1));
    let seen = watch(&mut pair, |_| true);
    let session = pair.dial().expect("a free session");
    let start = pair.now();
    assert!(pair.run_until(|pair| pair.left.closed() == 1, 60 * SECOND));
    assert_eq!(pair.now().saturating_since(start), 10 * SECOND);
    assert_eq!(events(&pair.left, session), [Event::Closed(CloseReason::HandshakeTimeout)]);
    assert_eq!(
        times(&seen, HandshakeKind::Init),
        [0, 250, 750, 1750, 2750, 3750, 4750, 5750, 6750, 7750, 8750, 9750]
    );
    let messages = of_kind(&seen, HandshakeKind::Init);
    assert!(messages.iter().all(|message| *message == messages[0]));
    assert_eq!(messages[0].len(), 1200);
    assert!(pair.left.endpoint.session(session).is_none());
    assert_eq!(pair.left.endpoint.sessions(), 0);
    assert_eq!(pair.left.endpoint.poll_timeout(), None);
}

/// `PROTO §4.10, §4.11`: three answers to one INIT, and not a byte more, however long nothing comes back.
#[test]
fn a_responder_sends_three_times_what_it_received_and_then_waits() {
    let mut pair = Pair::new(small(2));
    let mut inits = 0;
    let seen = watch(&mut pair, move |sent| {
        inits += u32::from(sent.sender == 0);
        sent.sender == 1 || inits > 1
    });
    pair.dial().expect("a free session");
    pair.run_for(30 * SECOND);
    assert_eq!(times(&seen, HandshakeKind::Response), [0, 250, 750]);
    let answers = of_kind(&seen, HandshakeKind::Response);
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    let stats = pair.right.endpoint.stats();
    assert_eq!((stats.bytes_received, stats.bytes_sent), (1200, 3600));
    assert_eq!(pair.right.endpoint.poll_timeout(), None, "the handshake is forgotten");
}

/// `PROTO §4.11, §4.12`: each address has a handshake and an allowance of its own.
#[test]
fn the_same_init_from_two_addresses_is_two_handshakes() {
    let mut pair = Pair::new(small(3));
    let seen = watch(&mut pair, |_| true);
    pair.dial().expect("a free session");
    pair.run_for(ONE_WAY);
    let init = of_kind(&seen, HandshakeKind::Init).remove(0);
    let answers = Rc::new(RefCell::new(Vec::new()));
    let keep = Rc::clone(&answers);
    pair.intercept(move |passing| {
        if passing.sender == 1 {
            keep.borrow_mut().push((passing.to, passing.bytes.clone()));
        }
        Verdict::Drop
    });
    assert_eq!(pair.inject(Side::Right, LEFT, &init), Outcome::Handshaking);
    assert_eq!(pair.inject(Side::Right, elsewhere(), &init), Outcome::Handshaking);
    pair.run_for(30 * SECOND);
    let answers = answers.borrow();
    let to = |to| answers.iter().filter(move |(at, _)| *at == to).map(|(_, answer)| answer);
    assert_eq!((to(LEFT).count(), to(elsewhere()).count()), (3, 3));
    assert!(
        to(LEFT).all(|answer| !to(elsewhere()).any(|other| other == answer)),
        "no answer goes to two addresses"
    );
}

fn elsewhere() -> SocketAddr {
    "203.0.113.7:999".parse().expect("an address")
}

/// `PROTO §4.11`: a FINISH from a forged address aims no session at it.
#[test]
fn the_session_begins_where_response_went_wherever_finish_comes_from() {
    let mut pair = Pair::new(small(14));
    let seen = watch(&mut pair, |sent| sent.kind() == Some(HandshakeKind::Finish));
    let left = pair.dial().expect("a free session");
    pair.run_for(3 * ONE_WAY);
    let finish = of_kind(&seen, HandshakeKind::Finish).remove(0);
    let most = 3 * finish.len();
    let mut strayed = 0;
    pair.intercept(move |passing| {
        if passing.to == elsewhere() {
            strayed += passing.bytes.len();
            assert!(strayed <= most, "more than challenges that are never answered");
        } else {
            assert!(passing.sender == 0 || passing.to == LEFT, "sent to {}", passing.to);
        }
        Verdict::Pass
    });
    assert!(matches!(pair.inject(Side::Right, elsewhere(), &finish), Outcome::Authenticated(_)));
    let right = pair.right.last_connected().expect("it connected");
    assert_eq!(pair.right.endpoint.session(right).expect("open").remote(), LEFT);
    assert_carries(&mut pair, left, right);
}

/// `PROTO §4.11`: a copy of RESPONSE from a forged address leads no dial astray.
#[test]
fn an_initiator_stays_with_the_address_that_it_dialled() {
    let mut pair = Pair::new(small(15));
    let seen = watch(&mut pair, |sent| sent.kind() == Some(HandshakeKind::Response));
    let left = pair.dial().expect("a free session");
    pair.run_for(2 * ONE_WAY);
    let response = of_kind(&seen, HandshakeKind::Response).remove(0);
    pair.intercept(|passing| {
        assert!(passing.sender == 1 || passing.to == RIGHT, "sent to {}", passing.to);
        Verdict::Pass
    });
    assert_eq!(pair.inject(Side::Left, elsewhere(), &response), Outcome::Handshaking);
    assert!(pair.run_until(|pair| pair.right.connected() == 1, SECOND));
    let right = pair.right.last_connected().expect("it connected");
    assert_carries(&mut pair, left, right);
}

/// `PROTO §4.10`
#[test]
fn finish_is_repeated_byte_for_byte_until_a_packet_of_the_responder_authenticates() {
    let mut pair = Pair::new(small(4));
    // The responder's packets get through from one second on.
    let start = pair.now();
    let seen = watch(&mut pair, move |sent| {
        sent.sender == 1 && sent.kind().is_none() && sent.at.saturating_since(start) < SECOND
    });
    let left = pair.dial().expect("a free session");
    pair.run_for(8 * SECOND);
    let repeated = times(&seen, HandshakeKind::Finish);
    assert_eq!(repeated[..3], [0, 250, 750]);
    assert!(repeated.len() < 6, "{repeated:?}");
    let all = of_kind(&seen, HandshakeKind::Finish);
    let alone = FinishPacket::parse(&all[0]).expect("a FINISH").len();
    assert!(all.iter().all(|finish| finish[..alone] == all[0][..alone]));
    let right = pair.right.last_connected().expect("it connected");
    assert_eq!((pair.left.connected(), pair.right.connected()), (1, 1));
    assert_carries(&mut pair, left, right);
}

/// `PROTO §4.10`
#[test]
fn a_lost_finish_comes_again_and_opens_the_session() {
    let mut pair = Pair::new(small(5));
    let mut lost = 0;
    watch(&mut pair, move |sent| {
        let finish = sent.kind() == Some(HandshakeKind::Finish);
        lost += u32::from(finish);
        finish && lost <= 2
    });
    let start = pair.now();
    let (left, right) = pair.connect();
    // RESPONSE after two ways, FINISH a third time 750 ms later, one way more.
    assert_eq!(pair.now().saturating_since(start), 3 * ONE_WAY + millis(750));
    pair.stop_intercepting();
    assert_carries(&mut pair, left, right);
}

/// `PROTO §4.18`
#[test]
fn application_data_travel_in_the_datagram_of_finish() {
    let mut pair = Pair::with_hosts(small(6), Eager, Recorder::new());
    pair.intercept(|passing| {
        let lost = passing.sender == 0 && HandshakeKind::of(passing.bytes).is_none();
        if lost { Verdict::Drop } else { Verdict::Pass }
    });
    pair.dial().expect("a free session");
    assert!(pair.run_until(|pair| !pair.right.host.datagrams.is_empty(), SECOND));
    assert_eq!(pair.right.host.datagrams[0].1, b"early");
    assert_eq!(pair.right.endpoint.stats().datagrams_received, 2, "INIT and FINISH");
}

/// Sends a datagram as soon as it is connected.
#[derive(Debug, Default)]
struct Eager;

impl Source for Eager {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl Host for Eager {
    fn on_payload(&mut self, _: Instant, _: Payload<'_>) {}

    fn on_event(&mut self, _: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        if event == Event::Connected {
            let mut session = endpoint.session(session).expect("open");
            session.send_datagram(Bytes::from_static(b"early")).expect("room");
        }
    }
}

/// `PROTO §4.13, §4.10`: a cookie changes its own 16 bytes of INIT and nothing else.
#[test]
fn init_is_repeated_at_once_with_a_cookie() {
    let mut pair = Pair::new(small(7));
    let seen = watch(&mut pair, |_| true);
    pair.dial().expect("a free session");
    pair.run_for(ONE_WAY);
    let first = of_kind(&seen, HandshakeKind::Init).remove(0);
    let destination = InitPacket::parse(&first).expect("an INIT").source();
    let mut cookie = [0; 64];
    let len =
        CookieRepr { version: VERSION, destination, cookie: [0xc0; 16] }.emit(&mut cookie).expect("room");
    assert_eq!(pair.inject(Side::Left, RIGHT, &cookie[..len]), Outcome::Handshaking);
    let again = of_kind(&seen, HandshakeKind::Init).remove(1);
    assert_eq!(again[21..37], [0xc0; 16]);
    assert_eq!((&again[..21], &again[37..]), (&first[..21], &first[37..]));
    assert_eq!(pair.inject(Side::Left, RIGHT, &cookie[..len]), Outcome::Dropped(DropReason::Replayed));
}

/// `PROTO §4.13`: once RESPONSE has come, a cookie is too late.
#[test]
fn a_cookie_after_response_is_dropped() {
    let mut pair = Pair::new(small(8));
    let seen = watch(&mut pair, |sent| sent.kind() == Some(HandshakeKind::Finish));
    pair.dial().expect("a free session");
    pair.run_for(3 * ONE_WAY);
    let init = of_kind(&seen, HandshakeKind::Init).remove(0);
    let destination = InitPacket::parse(&init).expect("an INIT").source();
    let mut cookie = [0; 37];
    CookieRepr { version: VERSION, destination, cookie: [0xc0; 16] }.emit(&mut cookie).expect("room");
    assert_eq!(pair.inject(Side::Left, RIGHT, &cookie), Outcome::Dropped(DropReason::Replayed));
    assert_eq!(of_kind(&seen, HandshakeKind::Init).len(), 1);
}

/// `PROTO §2.1`
#[test]
fn no_datagram_is_larger_than_the_peer_receives() {
    let mut config = small(10);
    config.left.transport = config.left.transport.with_min_datagram(1400).with_max_datagram(1500);
    config.right.transport = config.right.transport.with_max_datagram(1300);
    let mut pair = Pair::new(config);
    let seen = watch(&mut pair, |_| false);
    let (left, right) = pair.connect();
    let room = |size: usize| size - 34;
    let max = pair.left.endpoint.session(left).expect("open").max_datagram();
    assert_eq!(max, room(1300));
    assert_eq!(pair.right.endpoint.session(right).expect("open").max_datagram(), room(1200));
    for _ in 0..10 {
        let mut session = pair.left.endpoint.session(left).expect("open");
        session.send_datagram(vec![7; max].into()).expect("room");
        assert!(session.send_datagram(vec![7; max + 1].into()).is_err());
        pair.run_for(ONE_WAY);
    }
    pair.run_for(SECOND);
    assert_eq!(pair.right.host.datagrams.len(), 10);
    assert_eq!(
        seen.borrow().iter().filter(|sent| sent.sender == 0).map(|sent| sent.bytes.len()).max(),
        Some(1300)
    );
}

#[test]
fn a_handshake_takes_one_and_a_half_round_trips_and_measures_one() {
    let mut pair = Pair::new(small(11));
    let start = pair.now();
    let (left, right) = pair.connect();
    assert_eq!(pair.now().saturating_since(start), 3 * ONE_WAY);
    for (node, session) in [(&mut pair.left, left), (&mut pair.right, right)] {
        assert_eq!(node.endpoint.session(session).expect("open").stats().rtt, 2 * ONE_WAY);
    }
    assert_eq!(pair.left.endpoint.stats().dh_operations, 4);
    assert_eq!(pair.right.endpoint.stats().dh_operations, 4);
    assert_eq!(pair.left.endpoint.stats().dropped() + pair.right.endpoint.stats().dropped(), 0);
}

#[test]
fn a_full_endpoint_answers_no_one_and_recovers() {
    let mut pair = pair_with(12, |config| config.limits.sessions = 1);
    let (left, right) = pair.connect();
    assert!(pair.dial().is_err(), "the left end is full");
    assert_carries(&mut pair, left, right);
    let now = pair.now();
    pair.left.endpoint.session(left).expect("open").close(now, 0);
    pair.run_for(SECOND);
    let second = pair.dial().expect("the session was freed");
    assert!(pair.run_until(|pair| pair.left.last_connected() == Some(second), SECOND));
}

#[test]
fn many_handshakes_at_once_all_connect() {
    let mut pair = pair_with(13, |config| config.limits.sessions = 16);
    let dialled: Vec<_> = (0..3).map(|_| pair.dial().expect("a free session")).collect();
    assert!(pair.run_until(|pair| pair.left.connected() == 3 && pair.right.connected() == 3, SECOND));
    assert!(dialled.iter().all(|session| pair.left.host.saw(*session, Event::Connected)));
}
