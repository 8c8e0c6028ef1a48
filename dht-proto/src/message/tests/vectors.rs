//! The test vectors of `conformance/vectors/dht.json`, which a second implementation computed.

use std::fs;
use std::string::String;
use std::vec::Vec;

use serde_json::Value;
use wraith_proto::crypto::RustCrypto;
use wraith_proto::sealed::{Mailbox, NOTE_BODY_AT, NOTE_OVERHEAD};
use wraith_proto::{Identity, Instant, PeerId};

use super::*;
use crate::config::Limits;
use crate::dht::DropReason;
use crate::header::{Header, MAX_DATAGRAM};
use crate::record::{sign, signed_key, value_key};
use crate::sealed::SealedDht;

/// The vectors about `what`, each with its name, what is given and what it gives.
fn vectors(what: &str) -> Vec<(String, Value, Value)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/vectors/dht.json");
    let mut file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let all = file["vectors"].as_array_mut().unwrap();
    let chosen = all.iter_mut().filter(|vector| vector["given"]["what"] == what);
    let parts =
        chosen.map(|vector| (text(&vector["name"]).into(), vector["given"].take(), vector["gives"].take()));
    parts.collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    let text = text(value);
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn array<const N: usize>(value: &Value) -> [u8; N] {
    bytes(value).try_into().unwrap()
}

fn number(value: &Value) -> u64 {
    text(value).parse().unwrap()
}

fn id(value: &Value) -> Id {
    Id::from_bytes(array(value))
}

/// What a record borrows.
struct Parts {
    peer: [u8; 32],
    signature: [u8; 64],
    value: Vec<u8>,
}

impl Parts {
    fn of(record: &Value) -> Self {
        match record["kind"].as_str() {
            Some("signed") => Self {
                peer: array(&record["peer"]),
                signature: array(&record["signature"]),
                value: bytes(&record["value"]),
            },
            Some("value") => Self { peer: [0; 32], signature: [0; 64], value: bytes(&record["value"]) },
            _ => Self { peer: [0; 32], signature: [0; 64], value: Vec::new() },
        }
    }

    /// The record; [`None`] for nodes and for nothing.
    fn record(&self, record: &Value) -> Option<Record<'_>> {
        let Self { peer, signature, value } = self;
        match text(&record["kind"]) {
            "value" => Some(Record::Value(value)),
            "signed" => Some(Record::Signed(Signed {
                peer,
                salt: number(&record["salt"]),
                seq: number(&record["seq"]),
                signature,
                value,
            })),
            _ => None,
        }
    }
}

fn ask<'a>(given: &Value, parts: &'a Parts) -> Ask<'a> {
    match text(&given["kind"]) {
        "ping" => Ask::Ping,
        "find-node" => Ask::FindNode(id(&given["target"])),
        "find-value" => {
            Ask::FindValue(id(&given["target"]), read_kind(given["record"].as_u64().unwrap() as u8).unwrap())
        }
        _ => Ask::Store {
            write_token: array(&given["write_token"]),
            expected: Some(&given["condition"]).filter(|seq| !seq.is_null()).map(number),
            offer: match parts.record(&given["record"]) {
                Some(record) => Offer::Record(record),
                None => Offer::Provider(id(&given["record"]["key"])),
            },
        },
    }
}

fn list(nodes: &Value) -> Vec<NodeRef> {
    let node = |node: &Value| NodeRef {
        key: array(&node["peer"]),
        address: text(&node["address"]).parse().unwrap(),
    };
    nodes.as_array().unwrap().iter().map(node).collect()
}

fn write_list(w: &mut Writer<'_>, nodes: &Value) {
    write_nodes(w, list(nodes).into_iter().map(Node::from)).unwrap();
}

fn header(given: &Value) -> Header {
    let transaction = array(&given["transaction"]);
    match text(&given["kind"]) {
        "request" => Header::Request { transaction, token: array(&given["token"]) },
        "answer" => Header::Answer { transaction },
        _ => Header::Token { transaction, token: array(&given["token"]) },
    }
}

fn written(header: &Header) -> Vec<u8> {
    let mut bytes = [0; 25];
    let mut w = Writer::new(&mut bytes);
    header.write(&mut w).unwrap();
    w.written().to_vec()
}

fn mailbox(seed: &Value) -> Mailbox {
    Mailbox::new(Identity::from_seed(array(seed)), &RustCrypto, 1)
}

#[test]
fn names_and_signatures_are_those_of_the_vectors() {
    // PROTO §14.1, §14.13
    for (name, given, gives) in vectors("node") {
        assert_eq!(*Id::of_node(&array(&given["peer"])).as_bytes(), array(&gives["id"]), "{name}");
    }
    let values = vectors("value");
    for (name, given, gives) in &values {
        assert_eq!(value_key(&bytes(&given["value"])), id(&gives["key"]), "{name}");
    }
    let (mut made, mut refused) = (0, 0);
    for (name, given, gives) in vectors("signed record") {
        if gives["refused"] == true {
            let parts = Parts::of(&given["record"]);
            let record = parts.record(&given["record"]).unwrap();
            assert!(!record.is_genuine(&record.key()), "{name}");
            refused += 1;
            continue;
        }
        let owner = Identity::from_seed(array(&given["seed"]));
        let (salt, seq, value) = (number(&given["salt"]), number(&given["seq"]), bytes(&given["value"]));
        let signature = sign(&owner, salt, seq, &value).unwrap();
        assert_eq!(signature, array(&gives["signature"]), "{name}");
        assert_eq!(*owner.peer_id().as_bytes(), array(&gives["peer"]), "{name}");
        assert_eq!(signed_key(&owner.peer_id(), salt), id(&gives["key"]), "{name}");
        let peer = owner.peer_id();
        let signed = Signed { peer: peer.as_bytes(), salt, seq, signature: &signature, value: &value };
        assert!(Record::Signed(signed).is_genuine(&id(&gives["key"])), "{name}");
        made += 1;
    }
    assert_eq!((values.len(), made, refused), (3, 3, 8));
}

#[test]
fn headers_are_those_of_the_vectors() {
    // PROTO §14.3
    let vectors = vectors("header");
    for (name, given, gives) in &vectors {
        let (header, bytes) = (header(&given["header"]), bytes(&gives["bytes"]));
        assert_eq!(written(&header), bytes, "{name}");
        assert_eq!(Header::parse(&bytes), Ok((header, bytes.len())), "{name}");
    }
    assert_eq!(vectors.len(), 4);
}

#[test]
fn requests_are_those_of_the_vectors() {
    // PROTO §14.4
    let (mut made, mut refused) = (0, 0);
    for (name, given, gives) in vectors("request") {
        if gives["refused"] == true {
            assert_eq!(Ask::parse(&bytes(&given["message"])), Err(Malformed), "{name}");
            refused += 1;
            continue;
        }
        let parts = Parts::of(&given["ask"]["record"]);
        let ask = ask(&given["ask"], &parts);
        assert_eq!(request(&ask), bytes(&gives["message"]), "{name}");
        assert_eq!(Ask::parse(&bytes(&gives["message"])), Ok(ask), "{name}");
        made += 1;
    }
    assert_eq!((made, refused), (20, 16));
}

#[test]
fn answers_are_those_of_the_vectors() {
    // PROTO §14.4
    let (mut made, mut refused) = (0, 0);
    for (name, given, gives) in vectors("answer") {
        if gives["refused"] == true {
            assert_eq!(Reply::parse(&bytes(&given["message"])), Err(Malformed), "{name}");
            refused += 1;
            continue;
        }
        let (token, reply, message) = (array(&given["token"]), &given["reply"], bytes(&gives["message"]));
        assert_eq!(answer(&token, reply), message, "{name}");
        let (read_token, read) = Reply::parse(&message).unwrap();
        assert_eq!(read_token, token, "{name}");
        assert_reads(&name, &read, reply);
        made += 1;
    }
    assert_eq!((made, refused), (17, 16));
}

fn answer(token: &Token, reply: &Value) -> Vec<u8> {
    let mut bytes = [0; MAX_UNSEALED - 9];
    let mut w = Writer::new(&mut bytes);
    match text(&reply["kind"]) {
        "pong" => write_pong(&mut w, token).unwrap(),
        "found" => {
            write_found(&mut w, token, array(&reply["write_token"])).unwrap();
            let held = &reply["record"];
            match Parts::of(held).record(held) {
                Some(record) => write_record(&mut w, &record).unwrap(),
                None if held["kind"] == "none" => w.u8(0).unwrap(),
                None => {
                    w.u8(Kind::Providers as u8).unwrap();
                    write_list(&mut w, &held["nodes"]);
                }
            }
            write_list(&mut w, &reply["nodes"]);
        }
        _ => {
            let result = StoreResult::ALL[reply["result"].as_u64().unwrap() as usize];
            write_stored(&mut w, token, result, number(&reply["seq"])).unwrap();
        }
    }
    w.written().to_vec()
}

fn assert_reads(name: &str, read: &Reply<'_>, reply: &Value) {
    match read {
        Reply::Pong => assert_eq!(reply["kind"], "pong", "{name}"),
        Reply::Stored { result, seq } => {
            assert_eq!((*result as u64, *seq), (reply["result"].as_u64().unwrap(), number(&reply["seq"])));
        }
        Reply::Found { write_token, record, nodes } => {
            assert_eq!(*write_token, array(&reply["write_token"]), "{name}");
            assert_eq!(nodes.iter().collect::<Vec<_>>(), list(&reply["nodes"]), "{name}");
            let held = &reply["record"];
            match record {
                Held::Nothing => assert_eq!(held["kind"], "none", "{name}"),
                Held::Record(record) => assert_eq!(Parts::of(held).record(held), Some(*record), "{name}"),
                Held::Providers(nodes) => {
                    assert_eq!(nodes.iter().collect::<Vec<_>>(), list(&held["nodes"]), "{name}");
                }
            }
        }
    }
}

/// Whether a datagram opens and says something.
fn takes(mailbox: &mut Mailbox, datagram: &[u8]) -> bool {
    let Ok((header, read)) = Header::parse(datagram) else { return false };
    let (prefix, note) = datagram.split_at(read);
    let mut note = note.to_vec();
    let opened = mailbox.open_note(prefix, &mut note);
    datagram.len() <= MAX_DATAGRAM
        && match header {
            Header::Request { .. } => opened.is_ok_and(|(_, message)| Ask::parse(message).is_ok()),
            Header::Answer { .. } => opened.is_ok_and(|(_, message)| Reply::parse(message).is_ok()),
            Header::Token { token, .. } => token != Token::default(),
        }
}

#[test]
fn datagrams_are_those_of_the_vectors() {
    // PROTO §14.2, §14.3, §14.5, §12.10 and §12.14
    let (mut made, mut refused) = (0, 0);
    for (name, given, gives) in vectors("datagram") {
        let mut to = mailbox(&given["recipient_seed"]);
        if gives["refused"] == true {
            assert!(!takes(&mut to, &bytes(&given["datagram"])), "{name}");
            refused += 1;
            continue;
        }
        let (header, message) = (header(&given["header"]), bytes(&given["message"]));
        let mut datagram = written(&header);
        let note_at = datagram.len();
        datagram.resize(note_at + NOTE_OVERHEAD + message.len(), 0);
        let (prefix, note) = datagram.split_at_mut(note_at);
        note[NOTE_BODY_AT..][..message.len()].copy_from_slice(&message);
        let recipient = PeerId::from_bytes(array(&given["recipient"])).unwrap();
        let mut from = mailbox(&given["sender_seed"]);
        from.seal_note(prefix, &recipient, &array(&given["randomness"]), note).unwrap();
        assert_eq!(datagram, bytes(&gives["datagram"]), "{name}");
        assert!(datagram.len() <= MAX_DATAGRAM && takes(&mut to, &datagram), "{name}");
        let (prefix, note) = datagram.split_at_mut(note_at);
        let (sender, opened) = to.open_note(prefix, note).unwrap();
        assert_eq!((*sender.as_bytes(), &*opened), (array(&gives["sender"]), &message[..]), "{name}");
        made += 1;
    }
    assert_eq!((made, refused), (7, 22));
    for (name, given, gives) in vectors("token") {
        assert_eq!(written(&header(&given["header"])), bytes(&gives["datagram"]), "{name}");
    }
}

#[test]
fn a_node_answers_the_datagrams_of_the_vectors_and_no_altered_one() {
    // PROTO §14.2, §14.5
    let now = Instant::from_nanos(3_600_000_000_000);
    let from = "192.0.2.7:4007".parse().unwrap();
    let (mut answered, mut dropped) = (0, 0);
    for (name, given, gives) in vectors("datagram") {
        let me = Identity::from_seed(array(&given["recipient_seed"]));
        let mut node = SealedDht::new(&Limits::default(), me, &RustCrypto, 8, &[1; 32], now);
        let is_refused = gives["refused"] == true;
        let mut datagram = bytes(if is_refused { &given["datagram"] } else { &gives["datagram"] });
        let outcome = node.handle(now, from, &mut datagram);
        let sent =
            node.poll_transmit(now, &mut [0; MAX_DATAGRAM]).map(|(to, len)| (to, len <= datagram.len()));
        if is_refused {
            dropped += 1;
            // Who may be forged and sends less than 1,200 bytes is told how to ask, and nothing is opened.
            assert!(outcome.is_err() && sent.is_none() || sent == Some((from, true)), "{name}");
            let is_token = datagram.len() < MAX_DATAGRAM && outcome.is_ok();
            assert_eq!(sent.is_some(), is_token, "{name}");
        } else if datagram[0] == 0x62 {
            answered += 1;
            assert_eq!((outcome, sent), (Ok(()), Some((from, true))), "{name}");
        } else {
            assert_eq!((outcome, sent), (Err(DropReason::Unasked), None), "{name}");
        }
    }
    assert_eq!((answered, dropped), (4, 22));
}
