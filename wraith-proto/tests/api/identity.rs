//! Who the peer is: pins, impostors, and ids that are nobody's.

use wraith_proto::wire::HandshakeKind;
use wraith_proto::{
    Budget, CloseReason, Config, ConnectError, DropReason, Ecn, Endpoint, Event, Identity, Instant, NoSource,
    OneShot, Outcome, Peer, RxMeta, Via,
};
use wraith_sim::{LEFT, Pair, RIGHT, Side};

use crate::common::{ONE_WAY, SECOND, SMALL, Seen, both_connected, events, millis, of_kind, small, watch};

/// An endpoint outside the pair, driven by hand.
struct Impostor(Endpoint);

impl Impostor {
    fn new(seed: u8, protocol: &[u8], now: Instant) -> Self {
        let mut config = Config::new(Identity::from_seed([seed; 32]), protocol);
        config.limits = SMALL;
        Self(Endpoint::new(config, [seed; 32], now).expect("a good configuration"))
    }

    /// Its answer to `datagram`.
    fn answer(&mut self, now: Instant, datagram: &[u8]) -> Vec<u8> {
        let meta = RxMeta { from: LEFT, to: None, via: Via::default(), ecn: Ecn::NotEct };
        assert_eq!(self.0.handle(now, &meta, &mut datagram.to_vec()).outcome(), Outcome::Handshaking);
        let mut buffer = [0; 2048];
        let mut queue = OneShot::new(&mut buffer);
        let _ = self.0.poll_transmit(now, &mut queue, &mut NoSource, Budget::UNLIMITED);
        queue.take().expect("an answer").1.to_vec()
    }
}

/// A pinned dial whose INIT waits for an answer.
fn dialling(seed: u64) -> (Pair, wraith_proto::SessionHandle, Vec<u8>, Seen) {
    let mut pair = Pair::new(small(seed));
    let mut lost = false;
    let seen = watch(&mut pair, move |_| !std::mem::replace(&mut lost, true));
    let session = pair.dial().expect("a free session");
    pair.run_for(ONE_WAY);
    let init = of_kind(&seen, HandshakeKind::Init).remove(0);
    (pair, session, init, seen)
}

/// `PROTO §4.8, §4.19`
#[test]
fn the_initiators_identity_never_leaves_for_another_peer_than_the_pinned_one() {
    let mut pair = Pair::new(small(1));
    let seen = watch(&mut pair, |_| false);
    let other = Identity::from_seed([0x77; 32]).peer_id();
    let (now, peer) = (pair.now(), Peer { addr: RIGHT, id: Some(other) });
    let session = pair.left.endpoint.connect(now, peer, Via::default()).expect("a free session");
    assert!(pair.run_until(|pair| pair.left.closed() == 1, 5 * SECOND));
    let took = pair.now().saturating_since(now);
    assert!(took >= SECOND && took <= SECOND + 5 * ONE_WAY, "{took:?}");
    assert_eq!(events(&pair.left, session), [Event::Closed(CloseReason::Refused)]);
    pair.run_for(30 * SECOND);
    assert!(of_kind(&seen, HandshakeKind::Finish).is_empty());
    assert!(seen.borrow().iter().all(|sent| sent.kind().is_some()));
    assert!(pair.right.host.events.is_empty());
    assert_eq!(pair.right.endpoint.sessions(), 0);
}

/// `PROTO §4.19`
#[test]
fn a_dial_succeeds_when_impostors_answer_before_the_right_peer() {
    for count in 1..=3 {
        let (mut pair, session, init, seen) = dialling(2);
        for seed in 1..=count {
            let answer = Impostor::new(seed, b"wraith-sim", pair.now()).answer(pair.now(), &init);
            assert_eq!(pair.inject(Side::Left, RIGHT, &answer), Outcome::Dropped(DropReason::Refused));
        }
        assert!(of_kind(&seen, HandshakeKind::Finish).is_empty());
        assert!(events(&pair.left, session).is_empty());
        assert_eq!(pair.inject(Side::Right, LEFT, &init), Outcome::Handshaking);
        assert!(pair.run_until(both_connected, 5 * ONE_WAY), "after {count} impostors");
        let peer = pair.left.endpoint.session(session).expect("open").peer();
        assert_eq!(peer, Some(pair.right.peer_id()));
    }
}

/// `PROTO §4.19`: the right peer has one second, and there are four wrong answers at most.
#[test]
fn a_dial_ends_when_only_impostors_answer() {
    let (mut pair, session, init, _) = dialling(3);
    pair.intercept(|_| wraith_sim::Verdict::Drop);
    let start = pair.now();
    for seed in 1..=6 {
        let answer = Impostor::new(seed, b"wraith-sim", pair.now()).answer(pair.now(), &init);
        let reason = if seed <= 4 { DropReason::Refused } else { DropReason::RateLimited };
        assert_eq!(pair.inject(Side::Left, RIGHT, &answer), Outcome::Dropped(reason));
        pair.run_for(millis(1));
    }
    assert!(pair.run_until(|pair| pair.left.closed() == 1, 2 * SECOND));
    assert!(pair.now().saturating_since(start) <= SECOND);
    assert_eq!(events(&pair.left, session), [Event::Closed(CloseReason::Refused)]);
}

/// `PROTO §4.19`: the right answer to the next INIT is read.
#[test]
fn four_impostors_who_answer_one_init_do_not_end_the_dial() {
    let (mut pair, session, init, _) = dialling(8);
    for seed in 1..=5 {
        let answer = Impostor::new(seed, b"wraith-sim", pair.now()).answer(pair.now(), &init);
        let reason = if seed <= 4 { DropReason::Refused } else { DropReason::RateLimited };
        assert_eq!(pair.inject(Side::Left, RIGHT, &answer), Outcome::Dropped(reason));
    }
    assert!(pair.run_until(both_connected, millis(300)));
    pair.run_for(15 * SECOND);
    assert_eq!(events(&pair.left, session), [Event::Connected]);
}

/// `PROTO §4.19`: a refusal by somebody else is no refusal.
#[test]
fn an_impostors_refusal_does_not_end_the_dial() {
    let (mut pair, session, init, _) = dialling(4);
    let refusal = Impostor::new(1, b"another protocol", pair.now()).answer(pair.now(), &init);
    assert_eq!(pair.inject(Side::Left, RIGHT, &refusal), Outcome::Dropped(DropReason::Refused));
    assert!(events(&pair.left, session).is_empty());
    assert!(pair.run_until(both_connected, SECOND));
}

#[test]
fn addresses_that_cannot_be_a_peer_are_not_dialled() {
    let mut pair = Pair::new(small(6));
    for addr in [
        "192.0.2.1:0",
        "0.0.0.0:7",
        "255.255.255.255:7",
        "224.0.0.1:7",
        "[::]:7",
        "[ff02::1]:7",
        "[::ffff:0.0.0.0]:7",
    ] {
        let peer = Peer { addr: addr.parse().expect("an address"), id: None };
        let now = pair.now();
        assert_eq!(
            pair.left.endpoint.connect(now, peer, Via::default()),
            Err(ConnectError::NoRoute),
            "{addr}"
        );
    }
    assert_eq!(pair.left.endpoint.sessions(), 0);
}

#[test]
fn both_ends_know_each_other_by_their_ids() {
    let mut pair = Pair::new(small(7));
    let (left, right) = pair.connect();
    let (left_id, right_id) = (pair.left.peer_id(), pair.right.peer_id());
    assert_eq!(pair.left.endpoint.session(left).expect("open").peer(), Some(right_id));
    assert_eq!(pair.right.endpoint.session(right).expect("open").peer(), Some(left_id));
    assert_eq!(pair.left.endpoint.session(left).expect("open").remote(), RIGHT);
    assert_eq!(pair.right.endpoint.session(right).expect("open").remote(), LEFT);
}

#[test]
fn a_handshake_slot_is_free_again_after_a_refused_dial() {
    let mut pair = Pair::new(small(8));
    let other = Identity::from_seed([0x77; 32]).peer_id();
    for _ in 0..SMALL.sessions {
        let (now, peer) = (pair.now(), Peer { addr: RIGHT, id: Some(other) });
        pair.left.endpoint.connect(now, peer, Via::default()).expect("a free session");
    }
    assert_eq!(pair.dial(), Err(ConnectError::TableFull));
    pair.run_for(2 * SECOND);
    assert_eq!(pair.left.endpoint.sessions(), 0);
    assert!(pair.dial().is_ok());
    assert!(pair.run_until(both_connected, SECOND));
}
