//! Which suite a session gets, and that nobody between the ends has a say in it.

use std::time::Duration;

use wraith_proto::crypto::Suite;
use wraith_proto::wire::{HandshakeKind, INIT_MESSAGE_OFFSET};
use wraith_proto::{CloseReason, DropReason, Event, Outcome, SessionHandle};
use wraith_sim::{LEFT, Pair, RIGHT, Side, Verdict};

use crate::common::{SECOND, assert_carries, events, of_kind, small, watch};

const X: Suite = Suite::XChaCha20Poly1305;
const A: Suite = Suite::Aes256Gcm;

/// A pair whose ends offer these suites, best first.
fn offering(seed: u64, left: &'static [Suite], right: &'static [Suite]) -> Pair {
    let mut config = small(seed);
    config.left.transport = config.left.transport.with_suites(left);
    config.right.transport = config.right.transport.with_suites(right);
    Pair::new(config)
}

/// The suite that both ends report of a session.
fn suite_of(pair: &mut Pair, left: SessionHandle, right: SessionHandle) -> Suite {
    let suite = pair.left.endpoint.session(left).expect("open").suite();
    assert_eq!(pair.right.endpoint.session(right).expect("open").suite(), suite);
    suite.expect("connected")
}

/// `PROTO §3.7`: nothing was configured, so each end offers all that its provider has.
#[test]
fn both_ends_offer_both_suites_and_use_what_this_processor_is_best_at() {
    let mut pair = Pair::new(small(1));
    let expected = pair.left.endpoint.config().crypto.suites()[0];
    let (left, right) = pair.connect();
    assert_eq!(suite_of(&mut pair, left, right), expected);
}

/// `PROTO §3.7, §4.5`: every pair of capabilities, whoever dials.
#[test]
fn aes_is_used_where_both_ends_prefer_it() {
    for (seed, left, right, expected) in
        [(2, [A, X], [A, X], A), (3, [A, X], [X, A], X), (4, [X, A], [A, X], X), (5, [X, A], [X, A], X)]
    {
        let mut pair = offering(seed, Box::leak(Box::new(left)), Box::leak(Box::new(right)));
        let (left, right) = pair.connect();
        assert_eq!(suite_of(&mut pair, left, right), expected, "seed {seed}");
        assert_carries(&mut pair, left, right);
    }
}

#[test]
fn an_end_that_offers_one_suite_gets_it_or_no_session() {
    for (seed, only) in [(6, &[A]), (7, &[X])] {
        let mut pair = offering(seed, only, &[]);
        let (left, right) = pair.connect();
        assert_eq!(suite_of(&mut pair, left, right), only[0]);
    }
}

/// `PROTO §4.5`
#[test]
fn without_a_common_suite_the_dial_is_refused() {
    let mut pair = offering(8, &[A], &[X]);
    let left = pair.dial().expect("a free session");
    assert!(pair.run_until(|pair| pair.left.closed() == 1, SECOND));
    assert_eq!(events(&pair.left, left), [Event::Closed(CloseReason::Refused)]);
    assert_eq!(pair.right.endpoint.sessions(), 0);
}

/// Where the list of suites `[A, X]` stands in an INIT: the payload of its Noise message is not encrypted.
fn list_at(init: &[u8]) -> usize {
    let parameter = [3, 4, 0, 2, 0, 1];
    let payload = INIT_MESSAGE_OFFSET + 32;
    let at = init[payload..].windows(6).position(|bytes| bytes == parameter).expect("the list of suites");
    payload + at + 2
}

/// `PROTO §4.3, §4.5`: the responder believes the altered list, and nobody believes the responder.
#[test]
fn lists_altered_on_the_way_lead_to_no_session() {
    for (seed, list) in [(9, [0, 1, 0, 2]), (10, [0, 1, 0, 1]), (11, [0, 2, 0, 2]), (12, [0, 1, 0xaa, 0xaa])]
    {
        let mut pair = offering(seed, &[A, X], &[A, X]);
        pair.intercept(move |passing| {
            if HandshakeKind::of(passing.bytes) == Some(HandshakeKind::Init) {
                let at = list_at(passing.bytes);
                passing.bytes[at..at + 4].copy_from_slice(&list);
            }
            Verdict::Pass
        });
        let left = pair.dial().expect("a free session");
        pair.run_for(20 * SECOND);
        assert!(pair.right.endpoint.stats().handshakes_answered > 0, "the altered INIT was answered");
        assert!(pair.left.endpoint.stats().drops(DropReason::BadTag) > 0, "its answers do not authenticate");
        assert_eq!(events(&pair.left, left), [Event::Closed(CloseReason::HandshakeTimeout)]);
        assert_eq!((pair.left.connected(), pair.right.connected()), (0, 0));
    }
}

/// `PROTO §4.3`: a forged first message does not spoil what the genuine one achieves.
#[test]
fn the_genuine_lists_count_when_an_altered_copy_comes_first() {
    let mut pair = offering(13, &[A, X], &[A, X]);
    let seen = watch(&mut pair, |sent| sent.kind() == Some(HandshakeKind::Init));
    pair.dial().expect("a free session");
    pair.run_for(Duration::from_millis(1));
    let init = of_kind(&seen, HandshakeKind::Init).remove(0);
    let mut altered = init.clone();
    let at = list_at(&init);
    altered[at..at + 4].copy_from_slice(&[0, 1, 0, 2]);
    for message in [altered, init] {
        assert_eq!(pair.inject(Side::Right, LEFT, &message), Outcome::Handshaking);
    }
    let connected = |pair: &Pair| pair.left.connected() == 1 && pair.right.connected() == 1;
    assert!(pair.run_until(connected, SECOND));
    let left = pair.left.last_connected().expect("connected");
    let right = pair.right.last_connected().expect("connected");
    assert_eq!(suite_of(&mut pair, left, right), A);
    assert_eq!(pair.left.endpoint.session(left).expect("open").remote(), RIGHT);
}
