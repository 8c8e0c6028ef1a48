//! Receivers that ask for what they must not, against a provider.

use crate::harness::{Server, TOKEN, content, each_message, encoded};
use proptest::prelude::*;
use wraith_transfer_proto::{
    Access, AddError, CHUNK, ChunkBits, Code, Failure, Hash, Kind, ListId, Message, OpenError, Provider,
    ProviderEvent, ProviderLimits, StreamError, Tree, Violation, chunk_value,
};

/// A server of one content and a session whose words the test writes.
fn server(size: usize) -> (Server, Hash) {
    let mut server = Server::new();
    let hash = server.add(content(size, 1));
    server.provider.open(0).unwrap();
    (server, hash)
}

fn get(transfer: u32, hash: Hash) -> Message<'static> {
    Message::Get { transfer, kind: Kind::File, hash, token: TOKEN }
}

fn says(server: &mut Server, message: &Message<'_>) -> Result<Vec<u8>, Violation> {
    server.exchange(0, &encoded(message))
}

fn want(chunks: impl IntoIterator<Item = u64>) -> Message<'static> {
    let mut chunks = chunks.into_iter();
    let mut bits = ChunkBits::of(chunks.next().unwrap());
    assert!(chunks.all(|chunk| bits.insert(chunk)));
    Message::Want { transfer: 0, chunks: bits }
}

/// A server of a content of `chunks` chunks whose bytes are never read, with a transfer begun.
fn large(chunks: u64) -> Server {
    let mut server = Server::new();
    let values = (0..chunks).map(|index| chunk_value(index, &[0; 8]).unwrap()).collect();
    let tree = Tree::from_values((chunks - 1) * CHUNK as u64 + 8, values).unwrap();
    let hash = tree.hash();
    server.provider.add(tree, Kind::File, Access::Token(TOKEN)).unwrap();
    server.provider.open(0).unwrap();
    says(&mut server, &get(0, hash)).unwrap();
    server
}

/// PROTO §10.7
#[test]
fn an_unknown_content_a_wrong_token_and_a_wrong_kind_get_the_same_answer() {
    let (mut server, hash) = server(300);
    let token = TOKEN;
    let mut wrong = token;
    wrong[15] ^= 1;
    let questions = [
        (Kind::File, [9; 32], token),
        (Kind::File, hash, wrong),
        (Kind::File, hash, [0; 16]),
        (Kind::Folder, hash, token),
    ];
    for (transfer, (kind, hash, token)) in questions.into_iter().enumerate() {
        let transfer = transfer as u32;
        let answer = says(&mut server, &Message::Get { transfer, kind, hash, token }).unwrap();
        assert_eq!(answer, encoded(&Message::Refused { transfer, code: Code::NOT_FOUND }));
    }
    assert!(server.events.is_empty());
    let answer = says(&mut server, &get(4, hash)).unwrap();
    assert_eq!(answer, encoded(&Message::Offer { transfer: 4, size: 300, complete: true, top: &[] }));
}

/// PROTO §10.10
#[test]
fn a_want_outside_the_content_closes_the_session() {
    for (message, violation) in [
        (want([3]), Violation::OutOfRange),
        (want([2, 3]), Violation::OutOfRange),
        (want([1 << 40]), Violation::OutOfRange),
        (want([(1 << 62) - 1]), Violation::OutOfRange),
    ] {
        let (mut server, hash) = server(3 * CHUNK);
        says(&mut server, &get(0, hash)).unwrap();
        says(&mut server, &want([0, 2])).unwrap();
        assert_eq!(says(&mut server, &message), Err(violation), "{message:?}");
        assert!(matches!(
            server.events[..],
            [_, ProviderEvent::Failed { transfer: 0, failure: Failure::SessionClosed, .. }]
        ));
        assert_eq!(server.provider.next_delivery(0), None);
        assert_eq!(says(&mut server, &get(1, hash)), Ok(Vec::new()), "nobody listens any more");
    }
    // An empty content has no chunk at all.
    let (mut server, hash) = server(0);
    says(&mut server, &get(0, hash)).unwrap();
    assert_eq!(says(&mut server, &want([0])), Err(Violation::OutOfRange));
}

/// PROTO §10.10
#[test]
fn at_most_256_chunks_are_wanted_and_not_sent() {
    let mut server = large(600);
    assert_eq!(says(&mut server, &want(0..256)), Ok(Vec::new()));
    let first = server.provider.next_delivery(0).unwrap();
    server.provider.on_pulled(0, &first);
    assert_eq!(says(&mut server, &want([256])), Ok(Vec::new()), "one was sent");
    assert_eq!(says(&mut server, &want([257])), Err(Violation::TooMany));

    let mut server = large(600);
    says(&mut server, &want(0..200)).unwrap();
    assert_eq!(says(&mut server, &want(300..357)), Err(Violation::TooMany));
}

/// PROTO §10.5
#[test]
fn transfer_numbers_ascend() {
    let (mut server, hash) = server(300);
    says(&mut server, &get(5, hash)).unwrap();
    says(&mut server, &get(u32::MAX, hash)).unwrap();
    for transfer in [u32::MAX, 5, 6, 0] {
        let (mut again, _) = self::server(300);
        says(&mut again, &get(5, hash)).unwrap();
        says(&mut again, &get(u32::MAX, hash)).unwrap();
        assert_eq!(says(&mut again, &get(transfer, hash)), Err(Violation::TransferNumber), "{transfer}");
    }
    let (mut server, hash) = self::server(300);
    says(&mut server, &get(5, hash)).unwrap();
    assert_eq!(
        says(&mut server, &Message::Cancel { transfer: 6, code: Code::STOPPED }),
        Err(Violation::TransferNumber)
    );
}

/// PROTO §10.5
#[test]
fn late_words_of_an_ended_transfer_are_ignored() {
    let (mut server, hash) = server(3 * CHUNK);
    says(&mut server, &get(3, hash)).unwrap();
    says(&mut server, &Message::Done { transfer: 3, hash }).unwrap();
    let list = ListId { level: 1, index: 0 };
    let Message::Want { chunks, .. } = want([1]) else { unreachable!() };
    for transfer in [0, 3] {
        for message in [
            Message::GetList { transfer, list },
            Message::Want { transfer, chunks },
            Message::Done { transfer, hash: [0; 32] },
            Message::Cancel { transfer, code: Code::STOPPED },
        ] {
            assert_eq!(says(&mut server, &message), Ok(Vec::new()), "{message:?}");
        }
    }
    assert_eq!(server.events.len(), 2);
}

/// PROTO §10.5
#[test]
fn more_than_64_requests_without_an_answer_close_the_session() {
    let list = Message::GetList { transfer: 0, list: ListId { level: 1, index: 0 } };
    let requests = |count: usize| encoded(&list).repeat(count);
    let mut server = large(600);
    let answer = server.exchange(0, &requests(64)).unwrap();
    let mut lists = 0;
    each_message(&answer, |message| {
        assert!(matches!(message, Message::List { values, .. } if values.len() == 600 * 32));
        lists += 1;
    });
    assert_eq!(lists, 64);
    assert!(server.exchange(0, &requests(64)).is_ok(), "answered ones do not count");
    assert_eq!(large(600).exchange(0, &requests(65)), Err(Violation::TooMany));
}

/// PROTO §10.5
#[test]
fn transfers_over_the_limit_are_refused_as_busy_whatever_they_ask_for() {
    let limits = ProviderLimits { transfers: 2, ..ProviderLimits::default() };
    let mut server = Server::new();
    server.provider = Provider::new(limits, [3; 32]);
    let hash = server.add(content(300, 1));
    server.provider.open(0).unwrap();
    for transfer in 0..2 {
        says(&mut server, &get(transfer, hash)).unwrap();
    }
    for (transfer, hash) in [(2, hash), (3, [7; 32])] {
        let busy = encoded(&Message::Refused { transfer, code: Code::BUSY });
        assert_eq!(says(&mut server, &get(transfer, hash)), Ok(busy));
    }
    says(&mut server, &Message::Cancel { transfer: 0, code: Code::STOPPED }).unwrap();
    let offer = encoded(&Message::Offer { transfer: 4, size: 300, complete: true, top: &[] });
    assert_eq!(says(&mut server, &get(4, hash)), Ok(offer));

    // Ended transfers count until their event was taken, so events cannot pile up.
    let flood: Vec<u8> = (5..15)
        .flat_map(|transfer| {
            [encoded(&get(transfer, hash)), encoded(&Message::Cancel { transfer, code: Code::STOPPED })]
                .concat()
        })
        .collect();
    says(&mut server, &Message::Cancel { transfer: 4, code: Code::STOPPED }).unwrap();
    server.events.clear();
    server.exchange(0, &flood).unwrap();
    assert_eq!(server.events.len(), 2, "one transfer was let in");
}

/// PROTO §10.4
#[test]
fn a_list_that_the_content_does_not_have_closes_the_session() {
    for list in [(1, 1), (2, 0), (4, 0), (1, (1 << 62) - 1)] {
        let list = ListId { level: list.0, index: list.1 };
        let message = Message::GetList { transfer: 0, list };
        assert_eq!(says(&mut large(600), &message), Err(Violation::OutOfRange), "{list:?}");
    }
    let mut server = large(1500);
    let message = Message::GetList { transfer: 0, list: ListId { level: 1, index: 1 } };
    let mut len = 0;
    each_message(&says(&mut server, &message).unwrap(), |message| match message {
        Message::List { values, .. } => len = values.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(len, 476 * 32);
}

/// PROTO §10.12
#[test]
fn a_confirmation_of_other_content_closes_the_session() {
    let (mut server, hash) = server(300);
    says(&mut server, &get(0, hash)).unwrap();
    let mut other = hash;
    other[0] ^= 1;
    assert_eq!(says(&mut server, &Message::Done { transfer: 0, hash: other }), Err(Violation::WrongContent));
    assert!(!server.events.iter().any(|event| matches!(event, ProviderEvent::Confirmed { .. })));

    let (mut server, hash) = self::server(300);
    says(&mut server, &get(0, hash)).unwrap();
    let answer = says(&mut server, &Message::Done { transfer: 0, hash });
    assert_eq!(answer, Ok(encoded(&Message::DoneAck { transfer: 0 })));
    assert!(matches!(server.events[1], ProviderEvent::Confirmed { transfer: 0, .. }));
    assert_eq!(server.provider.delivered(0, 0), None);
}

/// PROTO §10.3
#[test]
fn words_of_the_provider_and_broken_ones_close_the_session() {
    let list = ListId { level: 1, index: 0 };
    for message in [
        Message::Offer { transfer: 0, size: 3, complete: true, top: &[] },
        Message::List { transfer: 0, list, values: &[0; 32] },
        Message::DoneAck { transfer: 0 },
        Message::Refused { transfer: 0, code: Code::BUSY },
    ] {
        assert_eq!(says(&mut large(600), &message), Err(Violation::WrongSide));
    }
    assert_eq!(large(600).exchange(0, &[0]), Err(Violation::MessageLength));
    assert_eq!(large(600).exchange(0, &[1, 0x20]), Err(Violation::UnknownType));
    assert_eq!(large(600).exchange(0, &[2, 0x41, 0]), Ok(Vec::new()), "an extension");
}

/// PROTO §10.11, §10.14, §10.15
#[test]
fn codes_have_the_numbers_of_the_document() {
    let codes = [
        Code::STOPPED,
        Code::NOT_FOUND,
        Code::BUSY,
        Code::BAD_CHUNK,
        Code::BAD_LIST,
        Code::WRONG_SIZE,
        Code::CHANGED,
        Code::TOO_LARGE,
        Code::BAD_DELIVERY,
        Code::NOT_STORED,
        Code::INCOMPLETE,
    ];
    assert!(codes.iter().map(|code| code.0).eq(0..11));
    assert_eq!(Code(99).to_string(), "ended for reason 99");
    assert_eq!(StreamError::Unsolicited.code(), 0);
    assert_eq!(StreamError::BadChunk.code(), 3);
    assert_eq!([StreamError::WrongLength, StreamError::Short].map(StreamError::code), [8, 8]);
    let violations = [
        Violation::MessageLength,
        Violation::Malformed,
        Violation::UnknownType,
        Violation::WrongSide,
        Violation::TransferNumber,
        Violation::OutOfRange,
        Violation::TooMany,
        Violation::Unsolicited,
        Violation::WrongContent,
    ];
    assert!(violations.iter().map(|violation| violation.code()).eq(0x101..0x10a));
}

#[test]
fn sessions_and_contents_are_taken_once_and_up_to_the_limit() {
    let limits = ProviderLimits { sessions: 2, ..ProviderLimits::default() };
    let mut provider: Provider<u8> = Provider::new(limits, [0; 32]);
    let tree = Tree::of(b"same").unwrap();
    let key = provider.add(tree.clone(), Kind::File, Access::Token(TOKEN)).unwrap();
    assert_eq!(provider.add(tree.clone(), Kind::File, Access::Token(TOKEN)), Err(AddError::AlreadyServed));
    assert!(provider.add(tree.clone(), Kind::Folder, Access::Token(TOKEN)).is_ok());
    assert!(provider.add(tree.clone(), Kind::File, Access::Announced).is_ok());
    provider.remove(key, Code::STOPPED);
    assert!(provider.add(tree, Kind::File, Access::Token(TOKEN)).is_ok());
    assert_eq!((provider.open(1), provider.open(1)), (Ok(()), Err(OpenError::AlreadyOpen)));
    assert_eq!((provider.open(2), provider.open(3)), (Ok(()), Err(OpenError::Full)));
    provider.close(1);
    provider.close(1);
    assert_eq!(provider.open(3), Ok(()));
    assert_eq!(provider.handle(9, &[0]), Ok(()));
    assert_eq!(provider.poll_control(9, &mut [0; 9]), 0);
    assert_eq!(provider.poll_event(), None);
}

proptest! {
    #[test]
    fn arbitrary_words_never_panic(
        words in proptest::collection::vec((0u8..10, proptest::collection::vec(any::<u8>(), 0..60)), 0..30),
    ) {
        let (mut server, hash) = server(300);
        let _ = says(&mut server, &get(0, hash));
        for (kind, body) in words {
            let frame = [&[body.len() as u8 + 1, kind], &body[..]].concat();
            let _ = server.exchange(0, &frame);
            while let Some(delivery) = server.provider.next_delivery(0) {
                server.provider.on_delivered(0, &delivery);
            }
        }
    }
}
