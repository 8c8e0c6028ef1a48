//! Hostile bytes: the fuzzer's seeds, and a lookup between genuine nodes that hostile datagrams do not change.

mod among;
mod check;
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

use std::fs;

use wraith_dht_proto::{Ask, Id, Kind, Offer, Record, Signed, sign, write_ask};
use wraith_proto::wire::Writer;
use wraith_proto::{Identity, PeerId};

use seeds::{folder, seeds};

#[test]
fn every_seed_of_the_fuzzer_is_taken_without_harm() {
    // PROTO §14.4
    for (name, bytes) in seeds("dht") {
        println!("{name}");
        check::check(&bytes);
    }
}

/// Each kind of datagram is sent, contacts are made and records kept; else the fuzzer begins from nothing.
#[test]
fn the_seeds_reach_every_part_of_a_node() {
    let seen: Vec<check::Seen> = seeds("dht").iter().map(|(_, bytes)| check::check(bytes)).collect();
    for (at, kind) in ["requests", "answers", "tokens"].iter().enumerate() {
        assert!(seen.iter().any(|seen| seen.sent[at] > 0), "no {kind}");
    }
    assert!(seen.iter().any(|seen| seen.kept[0] >= 2), "no contacts: {seen:?}");
    assert!(seen.iter().any(|seen| seen.kept[1] >= 3), "no records: {seen:?}");
    assert!(seen.iter().any(|seen| seen.dropped > 0) && seen.iter().any(|seen| seen.taken > 3));
}

/// What the seeds are made of; an input that fails goes among them as it is.
#[test]
fn the_seeds_are_what_is_written_here() {
    for (name, bytes) in made() {
        let path = folder("dht").join(name);
        assert!(fs::read(&path).is_ok_and(|found| found == bytes), "{name}");
    }
}

/// A step of [`check`]: what, by whom, with which bytes.
fn step(what: u8, whom: u8, bytes: &[u8]) -> Vec<u8> {
    let units = bytes.len().div_ceil(16);
    let (len, filled) =
        if bytes.len() < 128 { (bytes.len(), bytes.len()) } else { (127 + units, 16 * units) };
    let mut step = vec![what << 5 | whom, len as u8];
    step.extend(bytes);
    step.resize(2 + filled, 0);
    step
}

const STRANGER: u8 = 1;
const KNOWN: u8 = 2;
const ANSWER: u8 = 3;
const TOKEN: u8 = 4;
const TIME: u8 = 5;
const BOOTSTRAP: u8 = 6;
const WISH: u8 = 7;

fn asked(ask: &Ask<'_>) -> Vec<u8> {
    let mut bytes = [0; 1_200];
    let mut w = Writer::new(&mut bytes);
    write_ask(&mut w, ask).unwrap();
    w.written().to_vec()
}

/// An answer with a list of nodes.
fn found(nodes: &[u8]) -> Vec<u8> {
    let mut out = [&[7; 16][..], &[2], &[8; 8], &[0, nodes.len() as u8]].concat();
    for at in nodes {
        let node = check::somebody(*at);
        match node.address.ip() {
            std::net::IpAddr::V4(ip) => out.extend([&[4], &ip.octets()[..]].concat()),
            std::net::IpAddr::V6(ip) => out.extend([&[6], &ip.octets()[..]].concat()),
        }
        out.extend(node.address.port().to_be_bytes());
        out.extend(node.key);
    }
    out
}

fn made() -> Vec<(&'static str, Vec<u8>)> {
    [messages(), happenings()].concat()
}

/// Single headers and messages.
fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let key = Id::from_bytes([9; 32]);
    let store = |offer| asked(&Ask::Store { write_token: [0; 8], expected: Some(1), offer });
    let (owner, signature) = signature();
    vec![
        ("empty", Vec::new()),
        ("header", [&[0x62], &[4; 24][..]].concat()),
        ("ping", asked(&Ask::Ping)),
        ("find-value", asked(&Ask::FindValue(key, Kind::Signed))),
        ("store-value", store(Offer::Record(Record::Value(&[1; 1_000])))),
        ("store-signed", store(Offer::Record(signed(owner.as_bytes(), &signature)))),
        ("store-provider", store(Offer::Provider(key))),
        ("answer", found(&[2, 3, 5])),
    ]
}

fn signature() -> (PeerId, [u8; 64]) {
    let owner = Identity::from_seed([3; 32]);
    (owner.peer_id(), sign(&owner, 1, 2, b"signed").unwrap())
}

fn signed<'a>(peer: &'a [u8; 32], signature: &'a [u8; 64]) -> Record<'a> {
    Record::Signed(Signed { peer, salt: 1, seq: 2, signature, value: b"signed" })
}

/// What happens to a node, step by step.
fn happenings() -> Vec<(&'static str, Vec<u8>)> {
    let key = Id::from_bytes([9; 32]);
    let pong = [&[7; 16][..], &[1]].concat();
    let (owner, signature) = signature();
    // Answers with the transaction of whatever waits.
    let answers = |bytes: &[u8]| (0..3).flat_map(|at| step(ANSWER, at, bytes)).collect::<Vec<u8>>();
    vec![
        ("short-request", [step(0, 2, &[0x62; 30]), step(KNOWN, 2, &asked(&Ask::Ping))].concat()),
        (
            "strangers",
            (0..20)
                .flat_map(|at| {
                    let ask = asked(&Ask::FindNode(key));
                    [step(STRANGER, at, &ask), step(ANSWER, at, &pong), step(KNOWN, at, &ask)].concat()
                })
                .collect(),
        ),
        (
            "lookup",
            [
                step(BOOTSTRAP, 2, &[]),
                answers(&found(&[3, 5, 6, 7, 9, 10, 11])),
                answers(&found(&[13, 14, 15, 17, 18, 19])),
                step(WISH, 0, &[5; 32]),
                answers(&found(&[21, 22, 23])),
                step(TIME, 3, &[15, 15]),
                answers(&found(&[])),
            ]
            .concat(),
        ),
        (
            "asked-again",
            [step(BOOTSTRAP, 2, &[]), step(TOKEN, 0, &[9; 16]), step(ANSWER, 1, &found(&[3]))].concat(),
        ),
        (
            "kept",
            [Record::Value(b"one"), signed(owner.as_bytes(), &signature), Record::Value(&[2; 700])]
                .iter()
                .zip([2, 3, 6])
                .flat_map(|(record, whom)| {
                    let ask = Ask::FindValue(record.key(), record.kind());
                    let offer = Offer::Record(*record);
                    let store = asked(&Ask::Store { write_token: [0; 8], expected: None, offer });
                    [step(STRANGER, whom, &asked(&ask)), step(KNOWN, whom, &store)].concat()
                })
                .collect(),
        ),
        (
            "own-records",
            [step(WISH, 5, b"one"), step(WISH, 11, b"two"), step(WISH, 3, &[6; 32]), step(TIME, 9, &[1; 5])]
                .concat(),
        ),
    ]
}
