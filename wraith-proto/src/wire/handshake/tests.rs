use super::*;
use crate::wire::{COOKIE_LEN, FINISH_MAC_LEN, HANDSHAKE_HEADER_LEN};
use proptest::prelude::*;
use std::{vec, vec::Vec};

const A: ConnectionId = ConnectionId([0xa1; 8]);
const B: ConnectionId = ConnectionId([0xb2; 8]);

fn init(source: ConnectionId, cookie: [u8; COOKIE_LEN], message: &[u8]) -> Vec<u8> {
    let repr = InitRepr { version: VERSION, source, cookie, message_len: message.len() as u16 };
    let mut out = vec![0; repr.buffer_len()];
    let at = repr.emit(&mut out).unwrap();
    out[at..].copy_from_slice(message);
    out
}

fn response(message: &[u8]) -> Vec<u8> {
    let repr =
        ResponseRepr { version: VERSION, destination: A, source: B, message_len: message.len() as u16 };
    let mut out = vec![0; repr.buffer_len()];
    let at = repr.emit(&mut out).unwrap();
    out[at..].copy_from_slice(message);
    out
}

fn finish(message: &[u8], mac: [u8; FINISH_MAC_LEN]) -> Vec<u8> {
    let repr = FinishRepr { version: VERSION, destination: B, source: A, message_len: message.len() as u16 };
    let mut out = vec![0; repr.buffer_len()];
    let at = repr.emit(&mut out).unwrap();
    out[at..repr.mac_offset()].copy_from_slice(message);
    out[repr.mac_offset()..].copy_from_slice(&mac);
    out
}

fn cookie(destination: ConnectionId, cookie: [u8; COOKIE_LEN]) -> Vec<u8> {
    let repr = CookieRepr { version: VERSION, destination, cookie };
    let mut out = vec![0; repr.buffer_len()];
    assert_eq!(repr.emit(&mut out), Ok(out.len()));
    out
}

fn versions(destination: ConnectionId, versions: &[u32]) -> Vec<u8> {
    let repr = VersionsRepr { destination, versions };
    let mut out = vec![0; repr.buffer_len()];
    assert_eq!(repr.emit(&mut out), Ok(out.len()));
    out
}

fn one_of_each() -> [Vec<u8>; 5] {
    [
        init(A, [7; 16], b"first"),
        response(b"second"),
        finish(b"third", [9; 16]),
        cookie(A, [7; 16]),
        versions(A, &[1, 0x0a0a_0a0a]),
    ]
}

/// `PROTO §2.3`: fields and their places.
#[test]
fn known_datagrams_have_these_bytes() {
    let header = |kind: u8, version: u8, destination: u8, source: u8| {
        [&[0x80 | kind, 0, 0, 0, version][..], &[destination; 8], &[source; 8]].concat()
    };
    let [init, response, finish, cookie, versions] = one_of_each();
    assert_eq!(init, [&header(1, 1, 0, 0xa1)[..], &[7; 16], &[0, 0, 0, 5], b"first"].concat());
    assert_eq!(response, [&header(2, 1, 0xa1, 0xb2)[..], &[0, 0, 0, 6], b"second"].concat());
    assert_eq!(finish, [&header(3, 1, 0xb2, 0xa1)[..], &[0, 0, 0, 5], b"third", &[9; 16]].concat());
    assert_eq!(cookie, [&header(4, 1, 0xa1, 0)[..], &[7; 16]].concat());
    assert_eq!(versions, [&header(5, 0, 0xa1, 0)[..], &[0, 0, 0, 1, 10, 10, 10, 10]].concat());
    assert_eq!(&init[INIT_COOKIE_OFFSET..][..COOKIE_LEN], [7; 16]);
}

/// `PROTO §2.2`, `§2.8`: a datagram of unknown form or type, or with a wrong fixed bit, MUST be dropped.
#[test]
fn only_types_1_to_5_with_three_zero_bits_are_handshake_datagrams() {
    assert!(!is_handshake(&[]));
    assert_eq!(HandshakeKind::of(&[]), None);
    let [init, ..] = one_of_each();
    for first in 0..=255u8 {
        let mut datagram = init.clone();
        datagram[0] = first;
        let known = (0x81..=0x85).contains(&first);
        assert_eq!(is_handshake(&datagram), first >= 0x80);
        assert_eq!(HandshakeKind::of(&datagram).map(|kind| 0x80 | kind as u8), known.then_some(first));
        assert_eq!(HandshakeHeader::parse(&datagram).is_ok(), known);
        assert_eq!(InitPacket::parse(&datagram).is_ok(), first == 0x81);
        assert_eq!(Handshake::parse(&datagram).is_ok(), first == 0x81);
    }
}

/// `PROTO §2.6`: the header is read in every version, so that VERSIONS can answer.
#[test]
fn the_header_of_an_unknown_version_is_read() {
    let mut datagram = init(A, [0; 16], &[]);
    datagram[1..5].copy_from_slice(&0xdead_beef_u32.to_be_bytes());
    let header = HandshakeHeader {
        kind: HandshakeKind::Init,
        version: 0xdead_beef,
        destination: ConnectionId::ZERO,
        source: A,
    };
    assert_eq!(HandshakeHeader::parse(&datagram[..HANDSHAKE_HEADER_LEN]), Ok(header));
    assert_eq!(HandshakeHeader::parse(&datagram[..HANDSHAKE_HEADER_LEN - 1]), Err(Malformed));
    let mut out = [0; HANDSHAKE_HEADER_LEN];
    assert_eq!(header.emit(&mut out), Ok(HANDSHAKE_HEADER_LEN));
    assert_eq!(out, datagram[..HANDSHAKE_HEADER_LEN]);
    assert_eq!(header.emit(&mut out[..20]), Err(Full));
    assert_eq!(InitPacket::parse(&datagram).map(|init| init.version()), Ok(0xdead_beef));
}

#[test]
fn response_finish_and_cookie_of_another_version_are_malformed() {
    for mut datagram in one_of_each() {
        datagram[4] ^= 2;
        let accepted = HandshakeKind::of(&datagram) == Some(HandshakeKind::Init);
        assert_eq!(Handshake::parse(&datagram).is_ok(), accepted);
    }
}

/// `PROTO §2.4`: the fragment offset MUST be 0 and the total length that of the message.
#[test]
fn a_message_in_parts_or_of_another_length_is_malformed() {
    let [init, response, finish, ..] = one_of_each();
    for (datagram, message_at) in
        [(init, INIT_MESSAGE_OFFSET), (response, RESPONSE_MESSAGE_OFFSET), (finish, FINISH_MESSAGE_OFFSET)]
    {
        assert!(Handshake::parse(&datagram).is_ok());
        for (at, change) in [(4, 1), (3, 1), (2, 1), (1, 0x20)] {
            let mut datagram = datagram.clone();
            datagram[message_at - at] ^= change;
            assert_eq!(Handshake::parse(&datagram), Err(Malformed), "byte {at} before the message");
        }
    }
    // One byte less for FINISH moves its MAC and is found by it; the offsets stay within the datagram.
    let mut datagram = finish_with_rest();
    datagram[FINISH_MESSAGE_OFFSET - 1] -= 1;
    assert_eq!(FinishPacket::parse(&datagram).unwrap().message(), b"thir");
}

fn finish_with_rest() -> Vec<u8> {
    [&finish(b"third", [9; 16])[..], b"packet"].concat()
}

/// `PROTO §4.2`: the outer MAC is over every byte before it.
#[test]
fn what_follows_finish_is_no_part_of_it() {
    let datagram = finish_with_rest();
    let view = FinishPacket::parse(&datagram).unwrap();
    assert_eq!(view.len(), datagram.len() - 6);
    assert_eq!(view.authenticated(), &datagram[..view.len() - 16]);
    assert_eq!(view.mac(), &[9; 16]);
    assert_eq!(&datagram[view.len()..], b"packet");
}

/// `PROTO §2.3 and §2.8`: ids that are zero by definition, all their bytes.
#[test]
fn ids_that_must_be_zero_are_checked() {
    let [init, response, finish, cookie, versions] = one_of_each();
    for (datagram, at, accepted) in [
        (init, 5, false),
        (cookie, 13, false),
        (versions, 13, false),
        (response, 13, true),
        (finish, 5, true),
    ] {
        for byte in at..at + 8 {
            let mut datagram = datagram.clone();
            datagram[byte] ^= 1;
            assert_eq!(Handshake::parse(&datagram).is_ok(), accepted, "byte {byte}");
        }
    }
}

#[test]
fn cookie_has_one_length_and_versions_at_least_one_version() {
    let mut datagram = cookie(A, [1; 16]);
    datagram.push(0);
    assert_eq!(CookiePacket::parse(&datagram), Err(Malformed));
    let mut datagram = versions(A, &[1]);
    assert_eq!(VersionsPacket::parse(&datagram[..HANDSHAKE_HEADER_LEN]), Err(Malformed));
    datagram.push(0);
    assert_eq!(VersionsPacket::parse(&datagram), Err(Malformed));
    assert_eq!(VersionsRepr { destination: A, versions: &[] }.emit(&mut [0; 64]), Err(Full));
    datagram.pop();
    datagram[4] = 1;
    assert_eq!(VersionsPacket::parse(&datagram), Err(Malformed));
}

#[test]
fn a_short_buffer_is_left_as_it_was() {
    let init = InitRepr { version: 1, source: A, cookie: [1; 16], message_len: 10 };
    let response = ResponseRepr { version: 1, destination: A, source: B, message_len: 10 };
    let finish = FinishRepr { version: 1, destination: B, source: A, message_len: 10 };
    let cookie = CookieRepr { version: 1, destination: A, cookie: [1; 16] };
    let versions = VersionsRepr { destination: A, versions: &[1, 2] };
    let mut out = [0; 128];
    assert_eq!(init.emit(&mut out[..init.buffer_len() - 1]), Err(Full));
    assert_eq!(response.emit(&mut out[..response.buffer_len() - 1]), Err(Full));
    assert_eq!(finish.emit(&mut out[..finish.buffer_len() - 1]), Err(Full));
    assert_eq!(cookie.emit(&mut out[..cookie.buffer_len() - 1]), Err(Full));
    assert_eq!(versions.emit(&mut out[..versions.buffer_len() - 1]), Err(Full));
    assert_eq!(out, [0; 128]);
}

#[test]
fn every_truncation_of_every_type_is_malformed() {
    for datagram in one_of_each() {
        let whole = Handshake::parse(&datagram);
        assert!(whole.is_ok());
        for len in 0..datagram.len() {
            let cut = Handshake::parse(&datagram[..len]);
            if matches!(whole, Ok(Handshake::Versions(_))) && len == datagram.len() - 4 {
                assert!(cut.is_ok(), "a shorter list of versions is one");
            } else {
                assert_eq!(cut, Err(Malformed));
            }
        }
    }
}

proptest! {
    #[test]
    fn every_type_comes_back(
        destination: [u8; 8],
        source: [u8; 8],
        token: [u8; 16],
        message in proptest::collection::vec(any::<u8>(), 0..1200),
        list in proptest::collection::vec(any::<u32>(), 1..20),
    ) {
        let (destination, source) = (ConnectionId(destination), ConnectionId(source));
        let datagram = init(source, token, &message);
        let view = InitPacket::parse(&datagram).unwrap();
        prop_assert_eq!((view.version(), view.source(), view.cookie()), (VERSION, source, &token));
        prop_assert_eq!(view.message(), &message);

        let datagram = response(&message);
        let view = ResponsePacket::parse(&datagram).unwrap();
        prop_assert_eq!((view.destination(), view.source(), view.message()), (A, B, &message[..]));

        let datagram = finish(&message, token);
        let view = FinishPacket::parse(&datagram).unwrap();
        prop_assert_eq!((view.destination(), view.source(), view.message()), (B, A, &message[..]));
        prop_assert_eq!((view.mac(), view.len()), (&token, datagram.len()));

        let datagram = cookie(destination, token);
        let view = CookiePacket::parse(&datagram).unwrap();
        prop_assert_eq!((view.destination(), view.cookie()), (destination, &token));

        let datagram = versions(destination, &list);
        let view = VersionsPacket::parse(&datagram).unwrap();
        prop_assert_eq!(view.destination(), destination);
        prop_assert_eq!(view.versions().collect::<Vec<_>>(), list);
    }

    #[test]
    fn arbitrary_bytes_are_read_with_a_message_inside_them_or_not_at_all(
        first in 0x80u8..0x88,
        mut bytes in proptest::collection::vec(prop_oneof![3 => Just(0u8), 1 => any::<u8>()], 1..80),
    ) {
        bytes[0] = first;
        match Handshake::parse(&bytes) {
            Ok(Handshake::Init(view)) => prop_assert_eq!(view.message().len() + INIT_MESSAGE_OFFSET, bytes.len()),
            Ok(Handshake::Response(view)) => prop_assert_eq!(view.message().len() + RESPONSE_MESSAGE_OFFSET, bytes.len()),
            Ok(Handshake::Finish(view)) => prop_assert!(view.len() <= bytes.len()),
            Ok(Handshake::Cookie(_)) => prop_assert_eq!(bytes.len(), 37),
            Ok(Handshake::Versions(view)) => prop_assert_eq!(21 + 4 * view.versions().len(), bytes.len()),
            Err(Malformed) => {}
        }
    }
}
