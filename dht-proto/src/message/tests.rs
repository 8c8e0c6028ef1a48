use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const TRANSACTION: Transaction = [1, 2, 3, 4, 5, 6, 7, 8];
const TOKEN: Token = [9; 16];

fn request(token: &Token, ask: &Ask<'_>) -> Vec<u8> {
    let mut bytes = [0; MAX_MESSAGE];
    let mut w = Writer::new(&mut bytes);
    write_request(&mut w, TRANSACTION, token, ask).unwrap();
    w.written().to_vec()
}

fn found(record: &[u8], nodes: &[Node]) -> Vec<u8> {
    let mut bytes = [0; MAX_MESSAGE];
    let mut w = Writer::new(&mut bytes);
    write_found(&mut w, TRANSACTION, &TOKEN, &[7; 16]).unwrap();
    w.bytes(record).unwrap();
    write_nodes(&mut w, nodes.iter().copied()).unwrap();
    w.written().to_vec()
}

fn node(at: u8, address: &str) -> Node {
    NodeRef { key: [at; 32], address: address.parse().unwrap() }.into()
}

fn signed(value: &[u8]) -> Record<'_> {
    Record::Signed(Signed { peer: &[3; 32], salt: 4, seq: 5, signature: &[6; 64], value })
}

#[test]
fn each_request_is_read_as_it_was_written() {
    let key = Id::from_bytes([8; 32]);
    let store = |record| Ask::Store { key, write_token: [7; 16], expected: None, record };
    for (ask, len) in [
        (Ask::Ping, 25),
        (Ask::FindNode(key), 57),
        (Ask::FindValue(key, Kind::Providers), 58),
        (store(None), 75),
        (store(Some(Record::Value(b"abc"))), 80),
        (store(Some(signed(b""))), 189),
        (
            Ask::Store {
                key,
                write_token: [7; 16],
                expected: Some(5),
                record: Some(signed(&[1; MAX_VALUE])),
            },
            1_197,
        ),
    ] {
        let bytes = request(&TOKEN, &ask);
        assert_eq!(bytes.len(), len, "{ask:?}");
        assert_eq!(
            Message::parse(&bytes),
            Ok(Message::Request { transaction: TRANSACTION, token: TOKEN, ask })
        );
    }
}

#[test]
fn the_bytes_of_a_request_are_the_documented_ones() {
    let bytes = request(&TOKEN, &Ask::FindValue(Id::from_bytes([8; 32]), Kind::Signed));
    assert_eq!(bytes, [&[3][..], &TRANSACTION, &TOKEN, &[8; 32], &[2]].concat());
}

#[test]
fn a_request_without_a_token_is_as_long_as_the_longest_answer() {
    let bytes = request(&[0; 16], &Ask::Ping);
    assert_eq!(bytes.len(), MAX_MESSAGE);
    let read = Message::Request { transaction: TRANSACTION, token: [0; 16], ask: Ask::Ping };
    assert_eq!(Message::parse(&bytes), Ok(read));
}

#[test]
fn each_answer_is_read_as_it_was_written() {
    let mut bytes = [0; MAX_MESSAGE];
    let mut w = Writer::new(&mut bytes);
    write_pong(&mut w, TRANSACTION, &TOKEN).unwrap();
    let answer = |reply| Ok(Message::Answer { transaction: TRANSACTION, token: TOKEN, reply });
    assert_eq!(Message::parse(w.written()), answer(Reply::Pong));
    assert_eq!(w.len(), SHORTEST_ANSWER);
    for result in StoreResult::ALL {
        w.truncate(0);
        write_stored(&mut w, TRANSACTION, &TOKEN, result, 77).unwrap();
        assert_eq!(Message::parse(w.written()), answer(Reply::Stored { result, seq: 77 }));
    }
    let nodes = [node(1, "9.8.7.6:5"), node(2, "[2001:db8::1]:6")];
    let bytes = found(&[0], &nodes);
    let Ok(Message::Answer {
        reply: Reply::Found { write_token, record: Held::Nothing, nodes: read }, ..
    }) = Message::parse(&bytes)
    else {
        panic!("{bytes:?}")
    };
    assert_eq!(write_token, [7; 16]);
    assert_eq!((read.len(), read.is_empty()), (2, false));
    assert_eq!(read.iter().collect::<Vec<_>>(), nodes.map(NodeRef::from));
}

#[test]
fn a_list_of_nodes_ends_where_the_datagram_does() {
    let v6: Vec<Node> = (0..30).map(|at| node(at, "[2001:db8::1]:6")).collect();
    let count = |bytes: &[u8]| match Message::parse(bytes) {
        Ok(Message::Answer { reply: Reply::Found { nodes, .. }, .. }) => nodes.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(count(&found(&[0], &v6)), MAX_NODES);
    let mut record = [0; MAX_RECORD];
    let mut w = Writer::new(&mut record);
    write_record(&mut w, &signed(&[1; MAX_VALUE])).unwrap();
    let longest = found(w.written(), &v6);
    assert_eq!((count(&longest), longest.len()), (0, 1_157));
    assert_eq!(count(&found(w.written(), &[node(1, "9.8.7.6:5")])), 1);
}

#[test]
fn a_message_with_a_byte_without_meaning_is_malformed() {
    let key = Id::from_bytes([8; 32]);
    let store = Ask::Store { key, write_token: [7; 16], expected: None, record: Some(Record::Value(b"abc")) };
    let good = request(&TOKEN, &store);
    for (at, value, what) in [
        (0, 0x05, "an unknown kind"),
        (0, 0x83, "an unknown answer"),
        (73, 2, "an unknown condition"),
        (74, 9, "an unknown record"),
    ] {
        let mut bad = good.clone();
        bad[at] = value;
        assert_eq!(Message::parse(&bad), Err(Malformed), "{what}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(Message::parse(&longer).is_ok());
    longer.push(1);
    assert_eq!(Message::parse(&longer), Err(Malformed));
    for len in 0..good.len() {
        assert_eq!(Message::parse(&good[..len]), Err(Malformed), "{len}");
    }
}

#[test]
fn lists_and_values_over_their_limits_are_malformed() {
    let mut many = found(&[0], &[]);
    many.pop();
    many.push(21);
    many.extend([0_u8; 21 * 39].iter().enumerate().map(|(at, _)| if at % 39 == 0 { 4 } else { 1 }));
    assert!(many.len() <= MAX_MESSAGE);
    assert_eq!(Message::parse(&many), Err(Malformed));
    let key = Id::from_bytes([8; 32]);
    let store = Ask::Store {
        key,
        write_token: [7; 16],
        expected: None,
        record: Some(Record::Value(&[1; MAX_VALUE])),
    };
    let mut long = request(&TOKEN, &store);
    assert!(Message::parse(&long).is_ok());
    long[75..77].copy_from_slice(&1_001_u16.to_be_bytes());
    long.push(1);
    assert_eq!(Message::parse(&long), Err(Malformed));
    let mut bytes = request(&[0; 16], &Ask::Ping);
    bytes.push(0);
    assert_eq!(Message::parse(&bytes), Err(Malformed));
}

proptest! {
    #[test]
    fn random_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0_usize..8) {
        if let (Some(first), Some(&kind)) = (bytes.first_mut(), [1, 2, 3, 4, 0x81, 0x82, 0x84].get(kind)) {
            *first = kind;
        }
        if let Ok(Message::Answer { reply: Reply::Found { nodes, .. }, .. }) = Message::parse(&bytes) {
            prop_assert_eq!(nodes.iter().count(), nodes.len());
        }
    }
}
