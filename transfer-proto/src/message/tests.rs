use super::*;
use alloc::vec;
use proptest::prelude::*;

fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out);
    out
}

fn body(message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode_body(&mut out);
    out
}

/// `PROTO §10.3`
#[test]
fn messages_have_the_bytes_that_the_document_shows() {
    let hash = [0xaa; 32];
    let mut get = vec![0x33, 0x01, 7, 0];
    get.extend([0xaa; 32]);
    get.extend([0xbb; 16]);
    assert_eq!(encoded(&Message::Get { transfer: 7, kind: Kind::File, hash, token: [0xbb; 16] }), get);
    assert_eq!(
        encoded(&Message::Offer { transfer: 64, size: 300, complete: true, top: &[] }),
        [6, 0x02, 0x40, 0x40, 0x41, 0x2c, 1],
    );
    let list = ListId { level: 2, index: 1 };
    assert_eq!(encoded(&Message::GetList { transfer: 0, list }), [4, 0x03, 0, 2, 1]);
    let mut reply = vec![36, 0x04, 0, 2, 1];
    reply.extend([0xcc; 32]);
    assert_eq!(encoded(&Message::List { transfer: 0, list, values: &[0xcc; 32] }), reply);
    let mut chunks = ChunkBits::of(5);
    assert!(chunks.insert(6) && chunks.insert(13));
    assert_eq!(encoded(&Message::Want { transfer: 1, chunks }), [5, 0x05, 1, 5, 0x03, 0x01]);
    assert_eq!(encoded(&Message::DoneAck { transfer: 2 }), [2, 0x07, 2]);
    assert_eq!(encoded(&Message::Refused { transfer: 2, code: Code::NOT_FOUND }), [3, 0x08, 2, 1]);
    assert_eq!(encoded(&Message::Cancel { transfer: 2, code: Code(300) }), [4, 0x09, 2, 0x41, 0x2c]);
}

/// `PROTO §10.3`
#[test]
fn a_full_list_travels_in_one_message_and_a_longer_one_is_malformed() {
    let values = vec![7; MAX_LIST];
    let message = Message::Offer { transfer: u32::MAX, size: MAX_SIZE, complete: false, top: &values };
    let bytes = body(&message);
    assert!(bytes.len() < MAX_MESSAGE);
    assert_eq!(Message::decode(&bytes), Ok(Some(message)));
    let mut longer = bytes;
    longer.extend([0; 32]);
    assert_eq!(Message::decode(&longer), Err(Violation::Malformed));
}

/// `PROTO §10.3`
#[test]
fn unknown_extensions_are_ignored_and_other_unknown_types_are_a_violation() {
    for kind in 0x40..=0xff {
        assert_eq!(Message::decode(&[kind, 1, 2, 3]), Ok(None));
    }
    for kind in (0x0a..0x40).chain([0]) {
        assert_eq!(Message::decode(&[kind, 1, 2, 3]), Err(Violation::UnknownType));
    }
    assert_eq!(Message::decode(&[]), Err(Violation::MessageLength));
    assert_eq!(Message::decode(&vec![0x40; MAX_MESSAGE]), Ok(None));
    assert_eq!(Message::decode(&vec![0x40; MAX_MESSAGE + 1]), Err(Violation::MessageLength));
}

/// `PROTO §10.3`, `PROTO §10.6`
#[test]
fn fields_that_do_not_add_up_are_malformed() {
    let good = [
        body(&Message::Get { transfer: 1, kind: Kind::Folder, hash: [1; 32], token: [2; 16] }),
        body(&Message::Done { transfer: 1, hash: [1; 32] }),
        body(&Message::DoneAck { transfer: 1 }),
        body(&Message::Cancel { transfer: 1, code: Code::STOPPED }),
        body(&Message::GetList { transfer: 1, list: ListId { level: 4, index: 0 } }),
    ];
    for bytes in good {
        assert!(Message::decode(&bytes).is_ok());
        assert_eq!(Message::decode(&bytes[..bytes.len() - 1]), Err(Violation::Malformed), "cut {bytes:?}");
        let mut longer = bytes;
        longer.push(0);
        assert_eq!(Message::decode(&longer), Err(Violation::Malformed), "longer {longer:?}");
    }
    let offer = |size: u64, flag: u8, top: usize| {
        let mut bytes = vec![OFFER, 1];
        put_varint(&mut bytes, size);
        bytes.push(flag);
        bytes.resize(bytes.len() + top, 9);
        bytes
    };
    assert!(Message::decode(&offer(MAX_SIZE, 1, 32)).is_ok());
    for bytes in [
        offer(MAX_SIZE + 1, 1, 32),
        offer((1 << 62) - 1, 1, 32),
        offer(CHUNK as u64 + 1, 1, 0),
        offer(CHUNK as u64 + 1, 1, 33),
        offer(CHUNK as u64, 1, 32),
        offer(1, 2, 0),
    ] {
        assert_eq!(Message::decode(&bytes), Err(Violation::Malformed));
    }
    assert_eq!(Message::decode(&[GET_LIST, 1, 0, 0]), Err(Violation::Malformed), "level 0");
    assert_eq!(Message::decode(&[GET_LIST, 1, 5, 0]), Err(Violation::Malformed), "level 5");
    for kind in [REFUSED, CANCEL] {
        let code = |code: u64| {
            let mut bytes = vec![kind, 1];
            put_varint(&mut bytes, code);
            bytes
        };
        assert!(Message::decode(&code((1 << 32) - 1)).is_ok());
        assert_eq!(Message::decode(&code(1 << 32)), Err(Violation::Malformed), "a code from 2^32 on");
    }
}

/// `PROTO §10.10`
#[test]
fn a_want_has_one_form_and_reaches_over_256_chunks() {
    let want =
        |bits: &[u8]| Message::decode(&[&[WANT, 1, 5], bits].concat()).map(|message| message.is_some());
    assert_eq!(want(&[1]), Ok(true));
    assert_eq!(want(&[0xff; 32]), Ok(true));
    for bits in [&[][..], &[0], &[2], &[1, 0], &[0xff; 33]] {
        assert_eq!(want(bits), Err(Violation::Malformed), "{bits:?}");
    }
    let mut chunks = ChunkBits::of(10);
    assert!(!chunks.insert(9) && !chunks.insert(266));
    assert!(chunks.insert(265) && chunks.insert(12));
    assert_eq!(chunks.iter().collect::<Vec<_>>(), [10, 12, 265]);
    assert_eq!((chunks.first(), chunks.last(), chunks.count()), (10, 265, 3));
}

fn messages() -> impl Strategy<Value = (u8, u32, u64, Vec<u8>, Vec<u8>)> {
    let list = (1usize..4).prop_flat_map(|values| proptest::collection::vec(any::<u8>(), values * 32));
    (0u8..9, any::<u32>(), 0..=MAX_SIZE, list, proptest::collection::vec(0u8..=255, 0..40))
}

proptest! {
    #[test]
    fn every_message_comes_back_as_it_went((which, transfer, number, list, wants) in messages()) {
        let hash: Hash = list[..32].try_into().unwrap();
        let code = Code(number as u32);
        let id = ListId { level: (number % 4) as u8 + 1, index: number };
        let top = if number > CHUNK as u64 { &list[..] } else { &[] };
        let mut chunks = ChunkBits::of(number);
        for want in wants {
            prop_assert!(chunks.insert(number + u64::from(want)));
        }
        let message = match which {
            0 => Message::Get { transfer, kind: Kind::File, hash, token: hash[..16].try_into().unwrap() },
            1 => Message::Offer { transfer, size: number, complete: true, top },
            2 => Message::GetList { transfer, list: id },
            3 => Message::List { transfer, list: id, values: &list },
            4 => Message::Want { transfer, chunks },
            5 => Message::Done { transfer, hash },
            6 => Message::DoneAck { transfer },
            7 => Message::Refused { transfer, code },
            _ => Message::Cancel { transfer, code },
        };
        let bytes = body(&message);
        prop_assert_eq!(Message::decode(&bytes), Ok(Some(message)));
    }

    #[test]
    fn what_decodes_has_no_second_form(bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0u8..12) {
        let bytes = [&[kind], &bytes[..]].concat();
        if let Ok(Some(message)) = Message::decode(&bytes) {
            prop_assert_eq!(body(&message), bytes);
        }
    }
}
