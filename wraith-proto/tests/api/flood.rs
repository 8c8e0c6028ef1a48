//! Strangers in great numbers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use wraith_proto::wire::{CookieRepr, HandshakeKind, INIT_MESSAGE_OFFSET, InitPacket, VERSION};
use wraith_proto::{DropReason, Event, Limits, Outcome, Peer, Via};
use wraith_sim::{LEFT, Pair, RIGHT, Rng, Side, Verdict};

use crate::common::{
    ONE_WAY, SECOND, assert_carries, both_connected, events, millis, of_kind, pair_with, small, watch,
};

/// An INIT as an endpoint makes it, and where its initiator id stands in the payload.
fn template() -> (Vec<u8>, usize) {
    let mut pair = Pair::new(small(99));
    let seen = watch(&mut pair, |_| true);
    pair.dial().expect("a free session");
    pair.run_for(ONE_WAY);
    let init = of_kind(&seen, HandshakeKind::Init).remove(0);
    let id = InitPacket::parse(&init).expect("an INIT").source().0;
    let inside = init[21..].windows(8).position(|bytes| bytes == id).expect("the id is repeated inside");
    (init, 21 + inside)
}

/// The same with another ephemeral key and another id: a first message as good as any.
fn vary(init: &mut [u8], inside: usize, rng: &mut Rng) {
    rng.fill(&mut init[INIT_MESSAGE_OFFSET..INIT_MESSAGE_OFFSET + 32]);
    let mut id = [0; 8];
    rng.fill(&mut id);
    init[13..21].copy_from_slice(&id);
    init[inside..inside + 8].copy_from_slice(&id);
}

fn spoofed(rng: &mut Rng) -> SocketAddr {
    let ip = Ipv4Addr::from(0x0b00_0000 | rng.below(1 << 24) as u32);
    SocketAddr::new(IpAddr::V4(ip), 1024 + rng.below(60_000) as u16)
}

type Bytes = Rc<RefCell<BTreeMap<SocketAddr, u64>>>;

/// 100,000 good first messages from as many addresses in one second. They cost at most the agreements that
/// `Limits` allow: `3 · (burst + rate · 1 s)` with `burst = rate / 8`, of which strangers without a cookie get
/// half, and no more than a quarter of the slots; no session, no growth; and an honest peer connects meanwhile.
///
/// `PROTO §4.11, §4.15`
#[test]
fn a_flood_of_first_messages_costs_a_bounded_amount_and_locks_no_one_out() {
    let limits = Limits { sessions: 8, handshakes: 64, handshake_rate: 1000, ..crate::common::SMALL };
    let mut pair = pair_with(1, |config| config.limits = limits);
    let (mut init, inside) = template();
    let mut rng = Rng::new(2);
    let sent = Bytes::default();
    let counted = Rc::clone(&sent);
    pair.intercept(move |passing| {
        if passing.sender == 1 {
            *counted.borrow_mut().entry(passing.to).or_default() += passing.bytes.len() as u64;
        }
        Verdict::Pass
    });
    let (mut left, mut honest) = (None, 0);
    let start = pair.now();
    for round in 0..1000 {
        for _ in 0..100 {
            vary(&mut init, inside, &mut rng);
            let from = spoofed(&mut rng);
            let outcome = pair.inject(Side::Right, from, &init);
            assert_ne!(outcome, Outcome::Dropped(DropReason::Malformed));
        }
        if round == 500 {
            left = Some(pair.dial().expect("a free session"));
        }
        if left.is_some() && honest == 0 && both_connected(&pair) {
            honest = round;
        }
        pair.run_for(millis(1));
    }
    assert_eq!(pair.now().saturating_since(start), SECOND);
    assert!((500..600).contains(&honest), "the honest peer connected after {honest} ms");

    let stats = pair.right.endpoint.stats();
    let (rate, burst) = (u64::from(limits.handshake_rate), u64::from(limits.handshake_rate / 8));
    assert!(stats.dh_operations <= 3 * (burst + rate), "{stats:?}");
    // What the slots allow is far less: a quarter of them, and the honest peer.
    assert_eq!(stats.handshakes_answered, u64::from(limits.handshakes / 4) + 1);
    assert_eq!(stats.dh_operations, 3 * stats.handshakes_answered + 1);
    assert!(stats.cookies_sent > 99_000, "{stats:?}");
    assert_eq!(pair.right.endpoint.sessions(), 1);
    assert_eq!(pair.right.host.events.len(), 1);

    // Each spoofed address sent one INIT; repetitions of RESPONSE count as well.
    pair.run_for(20 * SECOND);
    let largest = sent.borrow().iter().filter(|(to, _)| **to != LEFT).map(|(_, bytes)| *bytes).max();
    assert!(largest.is_some_and(|bytes| bytes <= 3 * 1200), "{largest:?}");
    assert_eq!(pair.right.endpoint.sessions(), 1);
    let (left, right) = (left.expect("it dialled"), pair.right.last_connected().expect("it connected"));
    assert_carries(&mut pair, left, right);
}

/// `PROTO §4.13`: the answer costs nothing and is smaller than what caused it.
#[test]
fn a_cookie_is_asked_for_before_any_agreement() {
    let mut pair = pair_with(2, |config| config.limits.handshakes = 4);
    let seen = watch(&mut pair, |_| true);
    let (mut init, inside) = template();
    let mut rng = Rng::new(3);
    assert_eq!(pair.inject(Side::Right, spoofed(&mut rng), &init), Outcome::Handshaking);
    let before = pair.right.endpoint.stats().dh_operations;
    for _ in 0..10 {
        vary(&mut init, inside, &mut rng);
        assert!(matches!(pair.inject(Side::Right, spoofed(&mut rng), &init), Outcome::Dropped(_)));
    }
    assert_eq!(pair.right.endpoint.stats().dh_operations, before);
    assert_eq!(pair.right.endpoint.stats().cookies_sent, 10);
    let cookies = of_kind(&seen, HandshakeKind::Cookie);
    assert_eq!(cookies.len(), 10);
    assert!(cookies.iter().all(|cookie| cookie.len() == 37));
}

/// `PROTO §4.13, §4.14`: a cookie is no use to another address, port or id.
#[test]
fn a_dial_through_a_cookie_takes_one_round_trip_more() {
    let mut pair = pair_with(3, |config| config.limits.handshakes = 4);
    let (init, _) = template();
    pair.inject(Side::Right, "203.0.113.1:1".parse().expect("an address"), &init);
    let seen = watch(&mut pair, |_| false);
    let start = pair.now();
    let (left, right) = pair.connect();
    assert_eq!(pair.now().saturating_since(start), 5 * ONE_WAY);
    let with_cookie = of_kind(&seen, HandshakeKind::Init).remove(1);
    assert_eq!(of_kind(&seen, HandshakeKind::Cookie).len(), 1);

    let before = pair.right.endpoint.stats().handshakes_answered;
    pair.inject(Side::Right, "192.0.2.1:40002".parse().expect("an address"), &with_cookie);
    pair.inject(Side::Right, "192.0.2.2:40001".parse().expect("an address"), &with_cookie);
    assert_eq!(pair.right.endpoint.stats().handshakes_answered, before);
    assert_eq!(pair.right.endpoint.stats().cookies_sent, 3);
    assert_carries(&mut pair, left, right);
}

/// `PROTO §4.15`: cookies do not buy more than the share of the prefix.
#[test]
fn one_address_with_cookies_is_limited_too() {
    let mut pair = pair_with(4, |config| {
        config.limits.handshakes = 1000;
        config.limits.handshake_rate = 100;
    });
    let (mut init, inside) = template();
    let mut rng = Rng::new(5);
    for _ in 0..1000 {
        vary(&mut init, inside, &mut rng);
        init[21..37].fill(0);
        let seen = watch(&mut pair, |_| true);
        pair.inject(Side::Right, RIGHT, &init);
        if let Some(cookie) = of_kind(&seen, HandshakeKind::Cookie).pop() {
            init[21..37].copy_from_slice(&cookie[21..]);
            pair.inject(Side::Right, RIGHT, &init);
        }
    }
    // All at one time: the endpoint's burst, rate / 8.
    assert!(pair.right.endpoint.stats().handshakes_answered <= 12, "{:?}", pair.right.endpoint.stats());
    assert!(pair.right.endpoint.stats().dh_operations <= 36);
}

/// `PROTO §4.15`: who answers cookies and never sends FINISH keeps a slot for a second, not for ever.
#[test]
fn one_address_that_fills_all_slots_locks_no_one_out() {
    let mut pair = pair_with(6, |config| config.limits.handshakes = 8);
    let (mut init, inside) = template();
    let mut rng = Rng::new(7);
    let attacker = "203.0.113.1:1".parse().expect("an address");
    let cookie: Rc<RefCell<Vec<u8>>> = Rc::default();
    let keep = Rc::clone(&cookie);
    pair.intercept(move |passing| {
        if HandshakeKind::of(passing.bytes) == Some(HandshakeKind::Cookie) && passing.to != LEFT {
            keep.borrow_mut().clone_from(passing.bytes);
        }
        Verdict::Pass
    });
    let (mut left, mut full) = (None, 0);
    for round in 0..500 {
        vary(&mut init, inside, &mut rng);
        init[21..37].fill(0);
        pair.inject(Side::Right, attacker, &init);
        if let Some(cookie) = cookie.borrow().get(21..37) {
            init[21..37].copy_from_slice(cookie);
        }
        full +=
            u32::from(pair.inject(Side::Right, attacker, &init) == Outcome::Dropped(DropReason::TableFull));
        if round == 100 {
            assert!(full > 50, "the slots are full");
            left = Some(pair.dial().expect("a free session"));
        }
        pair.run_for(millis(10));
    }
    assert!(both_connected(&pair), "within four seconds");
    let (left, right) = (left.expect("it dialled"), pair.right.last_connected().expect("it connected"));
    assert_eq!(events(&pair.left, left), [Event::Connected]);
    let now = pair.now();
    let peer = Peer { addr: LEFT, id: None };
    assert!(pair.right.endpoint.connect(now, peer, Via::default()).is_ok(), "own dials find room as well");
    assert_eq!(pair.right.endpoint.session(right).expect("open").remote(), LEFT);
}

/// `PROTO §4.13`: INIT is repeated at once for four cookies only, so that nobody makes a hose of an initiator.
#[test]
fn false_cookies_neither_end_a_dial_nor_make_it_a_flood() {
    let mut pair = Pair::new(small(5));
    let seen = watch(&mut pair, |_| true);
    let left = pair.dial().expect("a free session");
    pair.run_for(ONE_WAY);
    let init = of_kind(&seen, HandshakeKind::Init).remove(0);
    let destination = InitPacket::parse(&init).expect("an INIT").source();
    for byte in 1..=100 {
        let repr = CookieRepr { version: VERSION, destination, cookie: [byte; 16] };
        let mut cookie = [0; 37];
        repr.emit(&mut cookie).expect("room");
        assert_eq!(pair.inject(Side::Left, RIGHT, &cookie), Outcome::Handshaking);
    }
    assert_eq!(of_kind(&seen, HandshakeKind::Init).len(), 1 + 4);
    pair.stop_intercepting();
    assert!(pair.run_until(both_connected, 5 * SECOND));
    assert_eq!(events(&pair.left, left), [Event::Connected]);
}
