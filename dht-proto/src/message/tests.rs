use std::vec::Vec;

use proptest::prelude::*;
use wraith_proto::wire::Writer;

use super::*;
use crate::header::MAX_UNSEALED;
use crate::node::{Node, NodeRef};
use crate::record::MAX_SIGNED_VALUE;

mod vectors;

const TOKEN: Token = [9; 16];

fn request(ask: &Ask<'_>) -> Vec<u8> {
    let mut bytes = [0; MAX_UNSEALED];
    let mut w = Writer::new(&mut bytes);
    write_ask(&mut w, ask).unwrap();
    w.written().to_vec()
}

/// An answer as long as a datagram lets it be.
fn found(record: &[u8], nodes: &[Node]) -> Vec<u8> {
    let mut bytes = [0; MAX_UNSEALED - 9];
    let mut w = Writer::new(&mut bytes);
    write_found(&mut w, &TOKEN, [7; 8]).unwrap();
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

fn store(record: Record<'_>) -> Ask<'_> {
    Ask::Store { write_token: [7; 8], expected: None, offer: Offer::Record(record) }
}

#[test]
fn each_request_is_read_as_it_was_written() {
    let key = Id::from_bytes([8; 32]);
    for (ask, len) in [
        (Ask::Ping, 1),
        (Ask::FindNode(key), 33),
        (Ask::FindValue(key, Kind::Providers), 34),
        (Ask::Store { write_token: [7; 8], expected: None, offer: Offer::Provider(key) }, 43),
        (store(Record::Value(b"abc")), 16),
        (store(Record::Value(&[1; MAX_VALUE])), 1_013),
        (store(signed(b"")), 125),
        (
            Ask::Store {
                write_token: [7; 8],
                expected: Some(5),
                offer: Offer::Record(signed(&[1; MAX_SIGNED_VALUE])),
            },
            1_033,
        ),
    ] {
        let bytes = request(&ask);
        assert_eq!(bytes.len(), len, "{ask:?}");
        // PROTO §14.5: the header of a request is 25 bytes long.
        assert!(len <= MAX_UNSEALED - 25);
        assert_eq!(Ask::parse(&bytes), Ok(ask));
    }
}

#[test]
fn the_bytes_of_messages_are_the_documented_ones() {
    let bytes = request(&Ask::FindValue(Id::from_bytes([8; 32]), Kind::Signed));
    assert_eq!(bytes, [&[3][..], &[8; 32], &[2]].concat());
    let bytes = request(&Ask::Store {
        write_token: [7; 8],
        expected: Some(0x0102),
        offer: Offer::Record(Record::Value(b"abc")),
    });
    assert_eq!(bytes, [&[4][..], &[7; 8], &[1, 0, 0, 0, 0, 0, 0, 1, 2], &[1, 0, 3], b"abc"].concat());
    let bytes = found(&[0], &[node(1, "9.8.7.6:258")]);
    assert_eq!(bytes, [&TOKEN[..], &[2], &[7; 8], &[0, 1, 4, 9, 8, 7, 6, 1, 2], &[1; 32]].concat());
}

#[test]
fn each_answer_is_read_as_it_was_written() {
    let mut bytes = [0; 100];
    let mut w = Writer::new(&mut bytes);
    write_pong(&mut w, &TOKEN).unwrap();
    assert_eq!(Reply::parse(w.written()), Ok((TOKEN, Reply::Pong)));
    for result in StoreResult::ALL {
        w.truncate(0);
        write_stored(&mut w, &TOKEN, result, 77).unwrap();
        assert_eq!(Reply::parse(w.written()), Ok((TOKEN, Reply::Stored { result, seq: 77 })));
    }
    let nodes = [node(1, "9.8.7.6:5"), node(2, "[2001:db8::1]:6")];
    let bytes = found(&[0], &nodes);
    let Ok((TOKEN, Reply::Found { write_token, record: Held::Nothing, nodes: read })) = Reply::parse(&bytes)
    else {
        panic!("{bytes:?}")
    };
    assert_eq!(write_token, [7; 8]);
    assert_eq!((read.len(), read.is_empty()), (2, false));
    assert_eq!(read.iter().collect::<Vec<_>>(), nodes.map(NodeRef::from));
}

#[test]
fn a_list_of_nodes_ends_where_the_datagram_does() {
    let v6: Vec<Node> = (0..30).map(|at| node(at, "[2001:db8::1]:6")).collect();
    let count = |bytes: &[u8]| match Reply::parse(bytes) {
        Ok((_, Reply::Found { nodes, .. })) => nodes.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(count(&found(&[0], &v6)), MAX_NODES);
    let mut record = [0; MAX_RECORD];
    for (longest, len) in [(signed(&[1; MAX_SIGNED_VALUE]), 1_041), (Record::Value(&[1; MAX_VALUE]), 1_029)] {
        let mut w = Writer::new(&mut record);
        write_record(&mut w, &longest).unwrap();
        let answer = found(w.written(), &v6);
        assert_eq!((count(&answer), answer.len()), (0, len));
    }
}

#[test]
fn a_message_with_a_byte_without_meaning_is_malformed() {
    // PROTO §14.4
    let good = request(&store(Record::Value(b"abc")));
    for (at, value, what) in
        [(0, 5, "an unknown kind"), (9, 2, "an unknown condition"), (10, 9, "an unknown record")]
    {
        let mut bad = good.clone();
        bad[at] = value;
        assert_eq!(Ask::parse(&bad), Err(Malformed), "{what}");
    }
    let mut conditional = request(&Ask::Store {
        write_token: [7; 8],
        expected: Some(5),
        offer: Offer::Record(Record::Value(b"abc")),
    });
    conditional[9] = 2;
    assert_eq!(Ask::parse(&conditional), Err(Malformed));
    let mut longer = good.clone();
    longer.push(0);
    assert!(Ask::parse(&longer).is_ok());
    longer.push(1);
    assert_eq!(Ask::parse(&longer), Err(Malformed));
    for len in 0..good.len() {
        assert_eq!(Ask::parse(&good[..len]), Err(Malformed), "{len}");
    }
    let good = found(&[0], &[node(1, "9.8.7.6:5")]);
    for (at, value, what) in [(16, 3, "an unknown answer"), (25, 9, "an unknown record"), (27, 5, "a family")]
    {
        let mut bad = good.clone();
        bad[at] = value;
        assert_eq!(Reply::parse(&bad), Err(Malformed), "{what}");
    }
    for len in 0..good.len() {
        assert_eq!(Reply::parse(&good[..len]), Err(Malformed), "{len}");
    }
}

#[test]
fn lists_and_values_over_their_limits_are_malformed() {
    let mut many = found(&[0], &[]);
    many.pop();
    many.push(21);
    many.extend((0..21 * 39).map(|at| if at % 39 == 0 { 4 } else { 1 }));
    assert_eq!(Reply::parse(&many), Err(Malformed));
    for (record, at, over) in
        [(Record::Value(&[1; MAX_VALUE][..]), 11, 1_001_u16), (signed(&[1; MAX_SIGNED_VALUE]), 11 + 112, 901)]
    {
        let mut long = request(&store(record));
        assert!(Ask::parse(&long).is_ok());
        long[at..at + 2].copy_from_slice(&over.to_be_bytes());
        long.push(1);
        assert_eq!(Ask::parse(&long), Err(Malformed));
    }
    let mut bytes = [0; 2_000];
    for record in [Record::Value(&[1; MAX_VALUE + 1][..]), signed(&[1; MAX_SIGNED_VALUE + 1])] {
        assert!(write_ask(&mut Writer::new(&mut bytes), &store(record)).is_err());
    }
}

proptest! {
    #[test]
    fn random_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0_u8..8) {
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        let _ = Ask::parse(&bytes);
        if let Some(kind_of_answer) = bytes.get_mut(16) {
            *kind_of_answer = kind;
        }
        if let Ok((_, Reply::Found { nodes, .. })) = Reply::parse(&bytes) {
            prop_assert_eq!(nodes.iter().count(), nodes.len());
        }
    }
}
