//! Versions that are not spoken, asked for and offered.

use wraith_proto::wire::{
    HandshakeHeader, HandshakeKind, InitPacket, VERSION, VersionsPacket, VersionsRepr, is_reserved_version,
};
use wraith_proto::{CloseReason, DropReason, Event, Outcome, SessionHandle};
use wraith_sim::{LEFT, Pair, RIGHT, Side};

use crate::common::{ONE_WAY, SECOND, Seen, both_connected, events, millis, of_kind, small, watch};

/// A dial whose INIT was lost, and that INIT.
fn dialling(seed: u64) -> (Pair, SessionHandle, Vec<u8>, Seen) {
    let mut pair = Pair::new(small(seed));
    let mut lost = false;
    let seen = watch(&mut pair, move |_| !std::mem::replace(&mut lost, true));
    let session = pair.dial().expect("a free session");
    pair.run_for(ONE_WAY);
    let init = of_kind(&seen, HandshakeKind::Init).remove(0);
    (pair, session, init, seen)
}

fn versions(init: &[u8], versions: &[u32]) -> Vec<u8> {
    let destination = HandshakeHeader::parse(init).expect("an INIT").source;
    let repr = VersionsRepr { destination, versions };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out).expect("room");
    out
}

/// `PROTO §4.16`
#[test]
fn an_unknown_version_is_answered_with_a_list_that_is_smaller_than_what_caused_it() {
    for version in [0, 2, 0xffff_ffff, 0x1a2a_3a4a] {
        let (mut pair, _, mut init, seen) = dialling(1);
        init[1..5].copy_from_slice(&u32::to_be_bytes(version));
        let source = HandshakeHeader::parse(&init).expect("an INIT").source;
        assert_eq!(pair.inject(Side::Right, LEFT, &init), Outcome::Dropped(DropReason::UnknownVersion));
        let answer = of_kind(&seen, HandshakeKind::Versions).remove(0);
        assert!(answer.len() <= init.len());
        let answer = VersionsPacket::parse(&answer).expect("a VERSIONS");
        assert_eq!(answer.destination(), source);
        assert!(answer.versions().any(|version| version == VERSION));
        assert!(answer.versions().any(is_reserved_version), "unknown entries stay usual");
        let stats = pair.right.endpoint.stats();
        assert_eq!(
            (stats.version_answers_sent, stats.dh_operations, pair.right.endpoint.sessions()),
            (1, 0, 0)
        );
    }
}

/// `PROTO §4.16`
#[test]
fn a_short_datagram_of_an_unknown_version_is_not_answered() {
    let (mut pair, _, mut init, seen) = dialling(2);
    init[1..5].copy_from_slice(&u32::to_be_bytes(2));
    assert_eq!(pair.inject(Side::Right, LEFT, &init[..1199]), Outcome::Dropped(DropReason::Malformed));
    assert!(of_kind(&seen, HandshakeKind::Versions).is_empty());
}

/// `PROTO §4.16`
#[test]
fn a_list_with_the_version_that_was_tried_is_ignored() {
    let (mut pair, session, init, _) = dialling(3);
    let list = versions(&init, &[7, VERSION]);
    assert_eq!(pair.inject(Side::Left, RIGHT, &list), Outcome::Dropped(DropReason::Refused));
    assert!(events(&pair.left, session).is_empty());
    assert!(pair.run_until(both_connected, SECOND));
}

/// `PROTO §4.16`: a second after the first one.
#[test]
fn a_list_without_a_version_that_is_spoken_ends_the_dial_if_nobody_else_answers() {
    let (mut pair, session, init, seen) = dialling(4);
    pair.intercept(|_| wraith_sim::Verdict::Drop);
    let (start, list) = (pair.now(), versions(&init, &[7, 0x0a0a_0a0a]));
    for _ in 0..3 {
        assert_eq!(pair.inject(Side::Left, RIGHT, &list), Outcome::Handshaking);
        assert!(events(&pair.left, session).is_empty());
        pair.run_for(millis(300));
    }
    assert!(pair.run_until(|pair| pair.left.closed() == 1, SECOND));
    assert_eq!(pair.now().saturating_since(start), SECOND);
    assert_eq!(events(&pair.left, session), [Event::Closed(CloseReason::Refused)]);
    assert_eq!(pair.left.endpoint.sessions(), 0);
    pair.run_for(SECOND);
    assert_eq!(of_kind(&seen, HandshakeKind::Finish).len(), 0);
}

/// `PROTO §4.16`: whoever saw INIT can have sent it.
#[test]
fn a_list_without_a_version_that_is_spoken_does_not_stop_the_peer_that_answers() {
    let (mut pair, session, init, _) = dialling(6);
    let list = versions(&init, &[7, 0x0a0a_0a0a]);
    assert_eq!(pair.inject(Side::Left, RIGHT, &list), Outcome::Handshaking);
    assert!(pair.run_until(both_connected, SECOND));
    pair.run_for(15 * SECOND);
    assert_eq!(events(&pair.left, session), [Event::Connected]);
}

/// `PROTO §4.16`
#[test]
fn a_list_after_response_is_ignored() {
    let mut pair = Pair::new(small(5));
    let seen = watch(&mut pair, |sent| sent.kind() == Some(HandshakeKind::Finish));
    let session = pair.dial().expect("a free session");
    assert!(pair.run_until(|pair| pair.left.connected() == 1, SECOND));
    let init = of_kind(&seen, HandshakeKind::Init).remove(0);
    assert!(InitPacket::parse(&init).is_ok());
    let list = versions(&init, &[7]);
    assert_eq!(pair.inject(Side::Left, RIGHT, &list), Outcome::Dropped(DropReason::Refused));
    assert_eq!(events(&pair.left, session), [Event::Connected]);
    pair.stop_intercepting();
    assert!(pair.run_until(both_connected, SECOND));
}
