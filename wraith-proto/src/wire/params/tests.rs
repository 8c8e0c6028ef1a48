use super::*;
use crate::wire::{is_reserved_parameter, varint};
use proptest::prelude::*;
use std::{vec, vec::Vec};

const PEER: [u8; 32] = [9; 32];
const INSTANCE: [u8; 16] = [10; 16];

/// Every parameter that FINISH needs.
fn full() -> Params<'static> {
    Params {
        versions: Versions::parse(&[0, 0, 0, 1]).ok(),
        first_version: Some(1),
        suites: Suites::parse(&[0, 1, 0, 2]).ok(),
        protocols: Protocols::parse(b"\x04echo").ok(),
        initiator_id: Some(ConnectionId([5; 8])),
        responder_id: Some(ConnectionId([6; 8])),
        suite: Some(2),
        protocol: Some(b"echo"),
        peer: Some(&PEER),
        instance: Some(&INSTANCE),
        refusal: None,
        idle_timeout: Some(30_000),
        max_datagram: Some(1200),
        stream_credit: Some(1 << 20),
        streams_bi: Some(16),
        streams_uni: Some(0),
        max_ack_delay: Some(25),
        ask: false,
    }
}

fn init() -> Params<'static> {
    let Params { versions, first_version, suites, protocols, initiator_id, .. } = full();
    Params { versions, first_version, suites, protocols, initiator_id, ..Params::default() }
}

fn refusal() -> Params<'static> {
    Params { protocols: None, suite: None, protocol: None, refusal: Some(2), ..full() }
}

fn emit(params: &Params<'_>) -> Vec<u8> {
    let mut buf = vec![0; 2048];
    let mut w = ParamsWriter::new(&mut buf);
    params.emit(&mut w).unwrap();
    let len = w.len();
    buf.truncate(len);
    buf
}

/// A copy without one known parameter.
fn without(params: &Params<'static>, gone: u64) -> Params<'static> {
    let mut out = [0; 2048];
    let mut w = ParamsWriter::new(&mut out);
    let whole = emit(params);
    let mut reader = Reader::new(&whole);
    while let Ok(id) = reader.varint() {
        let len = reader.varint().unwrap();
        let value = reader.take(len as usize).unwrap();
        if id != gone {
            w.bytes(id, value).unwrap();
        }
    }
    let len = w.len();
    Params::parse(std::boxed::Box::leak(out[..len].to_vec().into_boxed_slice())).unwrap()
}

/// `PROTO §4.4`: id, length, value; the list ends at id 0 and zeros follow.
#[test]
fn a_known_list_has_these_bytes() {
    let mut buf = [0xff; 64];
    let mut w = ParamsWriter::new(&mut buf);
    init().emit(&mut w).unwrap();
    assert_eq!(w.pad_to(40), Ok(40));
    let mut expected = vec![1, 4, 0, 0, 0, 1, 2, 4, 0, 0, 0, 1, 3, 4, 0, 1, 0, 2, 4, 5, 4];
    expected.extend(b"echo");
    expected.extend([5, 8, 5, 5, 5, 5, 5, 5, 5, 5, 0, 0, 0, 0, 0]);
    assert_eq!(buf[..40], expected);
    assert_eq!(buf[40..], [0xff; 24]);
    let params = Params::parse(&buf[..40]).unwrap();
    assert_eq!(params, init());
    assert_eq!(params.suites.unwrap().iter().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(params.protocols.unwrap().iter().collect::<Vec<_>>(), [b"echo"]);
    assert_eq!(Params::parse(&[]), Ok(Params::default()));
}

#[test]
fn a_byte_behind_the_end_that_is_not_zero_is_malformed() {
    assert_eq!(Params::parse(&[0]), Ok(Params::default()));
    assert_eq!(Params::parse(&[0, 0, 0]), Ok(Params::default()));
    assert_eq!(Params::parse(&[0, 0, 1]), Err(Malformed));
    assert_eq!(Params::parse(&[22, 0, 0, 22, 0]), Err(Malformed));
}

/// `PROTO §4.4`: an id that appears twice MUST be refused.
#[test]
fn an_id_that_appears_twice_is_malformed() {
    for known in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 17, 18, 19, 20, 21] {
        let whole = emit(&full());
        let rest = emit(&without(&full(), known));
        let mut single = whole.clone();
        single.extend_from_slice(&rest);
        assert_eq!(Params::parse(&single), Err(Malformed));
    }
    for id in [22, 23, 27, 63, 64, 89, varint::MAX] {
        let mut buf = [0; 64];
        let mut w = ParamsWriter::new(&mut buf);
        w.bytes(id, b"").unwrap();
        let once = w.len();
        w.bytes(id, b"").unwrap();
        let twice = w.len();
        assert!(Params::parse(&buf[..once]).is_ok());
        assert_eq!(Params::parse(&buf[..twice]), Err(Malformed), "{id}");
    }
}

/// `PROTO §4.4`: unknown ids are ignored.
#[test]
fn unknown_and_reserved_ids_are_ignored_up_to_32_high_ones() {
    let mut buf = [0; 1024];
    let mut w = ParamsWriter::new(&mut buf);
    init().emit(&mut w).unwrap();
    for id in [12, 15, 23, 63] {
        w.bytes(id, b"new").unwrap();
    }
    for n in 0..31 {
        w.bytes(64 + n, &[n as u8]).unwrap();
    }
    w.reserved(u64::MAX, b"grease").unwrap();
    let most = w.len();
    w.bytes(100, b"").unwrap();
    let over = w.len();
    assert_eq!(Params::parse(&buf[..most]), Ok(init()));
    assert_eq!(Params::parse(&buf[..over]), Err(Malformed));
}

#[test]
fn reserved_ids_have_the_reserved_form_for_every_seed() {
    for seed in [0, 1, 2, 77, u64::MAX / 31, u64::MAX] {
        let mut buf = [0; 16];
        ParamsWriter::new(&mut buf).reserved(seed, b"xy").unwrap();
        let mut reader = Reader::new(&buf);
        assert!(is_reserved_parameter(reader.varint().unwrap()));
        assert_eq!(reader.take(3), Ok(&[2, b'x', b'y'][..]));
    }
}

/// `PROTO §4.4`: a value of wrong length MUST be refused.
#[test]
fn values_of_wrong_length_or_range_are_malformed() {
    let parse = |id: u8, value: &[u8]| {
        let list = [&[id, value.len() as u8], value].concat();
        Params::parse(&list).map(|params| params.present())
    };
    let fixed = [(2, 4), (5, 8), (6, 8), (7, 2), (9, 32), (10, 16), (22, 0)];
    for (id, len) in fixed {
        for other in 0..40 {
            let expected = if other == len { Ok(1 << id) } else { Err(Malformed) };
            assert_eq!(parse(id, &vec![1; other]), expected, "id {id}, {other} bytes");
        }
    }
    for (id, unit) in [(1, 4), (3, 2)] {
        for len in 0..13 {
            assert_eq!(parse(id, &vec![1; len]).is_ok(), len > 0 && len % unit == 0);
        }
    }
    for len in 0..40 {
        assert_eq!(parse(8, &vec![1; len]).is_ok(), (1..=32).contains(&len));
    }
    assert_eq!(parse(4, b"\x02a"), Err(Malformed));
    for id in [11, 16, 18, 19, 20, 21] {
        assert_eq!(parse(id, &[5]), Ok(1 << id));
        assert_eq!(parse(id, &[]), Err(Malformed));
        assert_eq!(parse(id, &[5, 0]), Err(Malformed));
        assert_eq!(parse(id, &[0x40, 5]), Err(Malformed));
    }
    assert_eq!(parse(11, &[0xc0, 0, 0, 1, 0, 0, 0, 0]), Err(Malformed));
    assert_eq!(parse(17, &[0x44, 0xaf]), Err(Malformed), "1199");
    assert_eq!(parse(17, &[0x44, 0xb0]), Ok(1 << 17), "1200");
}

/// `PROTO §4.4`: a missing parameter MUST be refused.
#[test]
fn each_message_needs_the_parameters_of_its_column() {
    use HandshakeKind::{Cookie, Finish, Init, Response, Versions};
    let response = Params { protocols: None, ..full() };
    for (params, message) in [(init(), Init), (response, Response), (refusal(), Response), (full(), Finish)] {
        assert_eq!(params.require(message), Ok(()));
        for id in 1..=21 {
            let bit = 1 << id;
            if params.present() & bit == 0 {
                continue;
            }
            // Without 11 a refusal is an ordinary RESPONSE without suite.
            let spare = params.refusal.is_some() && TRANSPORT & bit != 0;
            assert_eq!(without(&params, id).require(message).is_ok(), spare, "{message:?} without {id}");
        }
    }
    assert_eq!(full().require(Cookie), Err(Malformed));
    assert_eq!(full().require(Versions), Err(Malformed));
}

#[test]
fn a_parameter_out_of_its_column_is_refused() {
    use HandshakeKind::{Finish, Init, Response};
    let response = Params { protocols: None, ..full() };
    assert_eq!(Params { ask: true, ..response }.require(Response), Ok(()));
    assert_eq!(Params { ask: true, ..full() }.require(Finish), Err(Malformed));
    assert_eq!(Params { ask: true, ..refusal() }.require(Response), Err(Malformed));
    assert_eq!(Params { suite: Some(1), ..refusal() }.require(Response), Err(Malformed));
    assert_eq!(Params { refusal: Some(1), ..full() }.require(Finish), Err(Malformed));
    assert_eq!(Params { peer: Some(&PEER), ..init() }.require(Init), Err(Malformed));
    assert_eq!(full().require(Response), Err(Malformed));
}

#[test]
fn a_writer_refuses_what_does_not_fit_and_keeps_the_rest() {
    let mut buf = [0; 8];
    let mut w = ParamsWriter::new(&mut buf);
    assert!(w.is_empty());
    w.u16(7, 1).unwrap();
    assert_eq!(w.u32(2, 1), Err(Full));
    assert_eq!(w.bytes(0, b""), Err(Full));
    assert_eq!(w.varint(16, varint::MAX + 1), Err(Full));
    assert_eq!(w.protocols([&[0u8; 256][..]].into_iter()), Err(Full));
    assert_eq!(w.len(), 4);
    assert_eq!(w.pad_to(3), Err(Full));
    let mut w = ParamsWriter::new(&mut buf);
    w.u16(7, 1).unwrap();
    assert_eq!(w.pad_to(9), Err(Full));
    let mut w = ParamsWriter::new(&mut buf);
    w.u16(7, 1).unwrap();
    assert_eq!(w.pad_to(4), Ok(4));
    assert_eq!(buf[..4], [7, 2, 0, 1]);
}

proptest! {
    #[test]
    fn lists_come_back_padded_or_not(
        versions in proptest::collection::vec(any::<u32>(), 1..10),
        suites in proptest::collection::vec(any::<u16>(), 1..10),
        names in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..=32), 1..=8),
        numbers in proptest::collection::vec(1200..=varint::MAX, 6),
        (first, suite, refusal, ask) in any::<(u32, u16, Option<u32>, bool)>(),
        (a, b, peer, instance) in any::<([u8; 8], [u8; 8], [u8; 32], [u8; 16])>(),
        (seed, padding) in (any::<u64>(), 0usize..50),
    ) {
        let version_bytes: Vec<_> = versions.iter().flat_map(|v| v.to_be_bytes()).collect();
        let suite_bytes: Vec<_> = suites.iter().flat_map(|s| s.to_be_bytes()).collect();
        let name_bytes: Vec<_> = names.iter().flat_map(|n| [&[n.len() as u8][..], n].concat()).collect();
        let params = Params {
            versions: Some(Versions::parse(&version_bytes).unwrap()),
            first_version: Some(first),
            suites: Some(Suites::parse(&suite_bytes).unwrap()),
            protocols: Some(Protocols::parse(&name_bytes).unwrap()),
            initiator_id: Some(ConnectionId(a)),
            responder_id: Some(ConnectionId(b)),
            suite: Some(suite),
            protocol: Some(&names[0]),
            peer: Some(&peer),
            instance: Some(&instance),
            refusal,
            idle_timeout: Some(numbers[0]),
            max_datagram: Some(numbers[1]),
            stream_credit: Some(numbers[2]),
            streams_bi: Some(numbers[3]),
            streams_uni: Some(numbers[4]),
            max_ack_delay: Some(numbers[5]),
            ask,
        };
        let mut buf = [0xff; 1200];
        let mut w = ParamsWriter::new(&mut buf);
        w.reserved(seed, &peer[..padding % 32]).unwrap();
        params.emit(&mut w).unwrap();
        let len = w.len();
        prop_assert_eq!(w.pad_to(len + padding), Ok(len + padding));
        prop_assert_eq!(Params::parse(&buf[..len]), Ok(params));
        prop_assert_eq!(Params::parse(&buf[..len + padding]), Ok(params));
        prop_assert!(params.versions.unwrap().iter().eq(versions));
        prop_assert!(params.suites.unwrap().iter().eq(suites));
        prop_assert!(params.protocols.unwrap().iter().eq(names.iter().map(|n| &n[..])));
    }

    /// A list that is cut off between parameters is a shorter list; anywhere else it is malformed.
    #[test]
    fn every_truncation_is_malformed_or_misses_a_parameter(len in 0usize..emit(&full()).len()) {
        let whole = emit(&full());
        let cut = Params::parse(&whole[..len]);
        prop_assert!(cut.and_then(|params| params.require(HandshakeKind::Finish)).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_read_as_they_would_be_written_or_not_at_all(
        bytes in proptest::collection::vec(prop_oneof![0u8..24, any::<u8>()], 0..64),
    ) {
        if let Ok(params) = Params::parse(&bytes) {
            let again = emit(&params);
            prop_assert_eq!(Params::parse(&again), Ok(params));
        }
    }
}
