//! What a node has to refuse.

use curve25519_dalek::scalar::Scalar;
use serde_json::{Value, json};

use super::super::{draw, hex, vector};
use super::{
    TOKEN, TRANSACTION, WRITE, json as form, node, nodes, note, owner, recipient, request, signed, value,
};
use crate::peer::dht::{Ask, Header, Held, Offer, Reply, Signed, open, seal, signed_text};
use crate::peer::{Note, points, sign_with};

/// Messages, records and datagrams, each with one fault.
pub(super) fn all() -> Vec<Value> {
    let mut vectors = Vec::new();
    for (name, message) in requests() {
        assert!(Ask::read(&message).is_err(), "{name}");
        vectors.push(refused("request", name, json!({ "message": hex(message) })));
    }
    for (name, message) in answers() {
        assert!(Reply::read(&message).is_err(), "{name}");
        vectors.push(refused("answer", name, json!({ "message": hex(message) })));
    }
    for (name, record) in records() {
        assert!(!record.is_genuine(), "{name}");
        vectors.push(refused("signed record", &name, json!({ "record": form::signed(&record) })));
    }
    for (name, datagram) in datagrams() {
        let read = open(&recipient(), &datagram).and_then(|(header, _, message)| match header {
            Header::Request { .. } => Ask::read(&message).map(drop),
            _ => Reply::read(&message).map(drop),
        });
        assert!(read.is_err(), "{name}");
        let given = json!({ "recipient_seed": hex(recipient()), "datagram": hex(datagram) });
        vectors.push(refused("datagram", name, given));
    }
    vectors
}

fn refused(what: &str, name: &str, mut given: Value) -> Value {
    given["what"] = what.into();
    vector(&format!("refused, a {what}: {name}"), given, json!({ "refused": true }))
}

/// `message` with another byte at one place.
fn with(message: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut message = message.to_vec();
    message[at] = byte;
    message
}

fn requests() -> Vec<(&'static str, Vec<u8>)> {
    let target = draw("dht, target");
    let find = Ask::FindNode(target).to_bytes();
    let find_value = [&[3], &target[..]].concat();
    let store = |offer| Ask::Store { write_token: WRITE, condition: None, offer }.to_bytes();
    let put = store(Offer::Value(value(3)));
    let conditional =
        Ask::Store { write_token: WRITE, condition: Some(7), offer: Offer::Value(value(3)) }.to_bytes();
    vec![
        ("nothing", Vec::new()),
        ("kind 0", vec![0]),
        ("kind 5", with(&find, 0, 5)),
        ("a ping with a byte behind it", vec![1, 1]),
        ("a byte behind zeros", [&find[..], &[0; 100], &[1]].concat()),
        ("a target that is cut off", find[..32].to_vec()),
        ("find-value without a kind", find_value.clone()),
        ("find-value of kind 0", [&find_value[..], &[0]].concat()),
        ("find-value of kind 4", [&find_value[..], &[4]].concat()),
        ("condition 2", with(&conditional, 9, 2)),
        ("a record of kind 0", with(&put, 10, 0)),
        ("a record of kind 4", with(&put, 10, 4)),
        ("a value that is cut off", put[..put.len() - 1].to_vec()),
        ("a value of 1,001 bytes", store(Offer::Value(value(1_001)))),
        ("a signed value of 901 bytes", store(Offer::Signed(signed(901)))),
        ("a provider's key that is cut off", store(Offer::Provider(target))[..42].to_vec()),
    ]
}

fn answers() -> Vec<(&'static str, Vec<u8>)> {
    let found = |held, nodes| Reply::Found { write_token: WRITE, held, nodes }.to_bytes(&TOKEN);
    let one = found(Held::Nothing, vec![node("192.0.2.1:4001")]);
    let stored = Reply::Stored { result: 5, seq: 7 }.to_bytes(&TOKEN);
    vec![
        ("a token that is cut off", TOKEN[..15].to_vec()),
        ("a token alone", TOKEN.to_vec()),
        ("kind 0", with(&one, 16, 0)),
        ("kind 3", with(&one, 16, 3)),
        ("kind 5", with(&one, 16, 5)),
        ("a record of kind 4", with(&one, 25, 4)),
        ("an IP version of 5", with(&one, 27, 5)),
        ("a node that is cut off", one[..one.len() - 1].to_vec()),
        ("a byte behind zeros", [&one[..], &[0; 9], &[1]].concat()),
        ("a list of 21", found(Held::Nothing, nodes(21, false))),
        ("21 providers", found(Held::Providers(nodes(21, false)), Vec::new())),
        ("a record without nodes behind it", found(Held::Value(value(3)), Vec::new())[..31].to_vec()),
        ("a value of 1,001 bytes", found(Held::Value(value(1_001)), Vec::new())),
        ("a signed value of 901 bytes", found(Held::Signed(signed(901)), Vec::new())),
        ("result 6", with(&stored, 17, 6)),
        ("a sequence number that is cut off", stored[..stored.len() - 1].to_vec()),
    ]
}

fn records() -> Vec<(String, Signed)> {
    let good = Signed::new(&owner(), 1, 2, &value(3));
    let text = signed_text(1, 2, &value(3));
    let mut altered = good.signature;
    altered[40] ^= 1;
    let mut records: Vec<(String, Signed)> = [
        ("another salt", Signed { salt: 2, ..good.clone() }),
        ("another sequence number", Signed { seq: 3, ..good.clone() }),
        ("another value", Signed { value: value(4), ..good.clone() }),
        ("another peer", Signed { peer: Signed::new(&draw("dht, another"), 1, 2, &[]).peer, ..good.clone() }),
        ("an altered signature", Signed { signature: altered, ..good.clone() }),
        ("an S above the order of the group", Signed { signature: high_s(&good.signature), ..good.clone() }),
        (
            "an R of small order",
            Signed { signature: sign_with(&owner(), &text, Scalar::ZERO), ..good.clone() },
        ),
    ]
    .map(|(name, record)| (name.to_owned(), record))
    .into();
    // Under a key that is the neutral element every signature with R = [S]B satisfies the equation.
    let neutral = points::neutral();
    let signature = sign_with(&owner(), &text, Scalar::ONE);
    let commitment = *signature.first_chunk::<32>().expect("64 bytes");
    let anybody = [commitment, Scalar::ONE.to_bytes()].concat().try_into().expect("64 bytes");
    records.push(("a key of small order".to_owned(), Signed { peer: neutral, signature: anybody, ..good }));
    records
}

/// The same S and the order of the group.
fn high_s(signature: &[u8; 64]) -> [u8; 64] {
    const ORDER: [u8; 16] =
        [0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14];
    let mut high = *signature;
    let mut carry = 0;
    for (at, byte) in high[32..].iter_mut().enumerate() {
        let order = ORDER.get(at).copied().unwrap_or(if at == 31 { 0x10 } else { 0 });
        let sum = u16::from(*byte) + u16::from(order) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    high
}

fn datagrams() -> Vec<(&'static str, Vec<u8>)> {
    let good = request(&Ask::Ping.to_bytes());
    let flip = |at: usize| with(&good, at, good[at] ^ 1);
    let (transaction, token) = (TRANSACTION, TOKEN);
    let given = Header::Token { transaction, token }.to_bytes();
    let elsewhere = Note { to: super::Identity::from_seed(&draw("dht, another")).id, ..note() };
    let header = Header::Request { transaction, token: [0; 16] };
    let (foreign, _) = seal(&elsewhere, &header, &[1]).expect("a good recipient");
    let pong = Reply::Pong.to_bytes(&TOKEN);
    let answer = seal(&note(), &Header::Answer { transaction }, &pong).expect("a good recipient").0;
    let mut long = Ask::Ping.to_bytes();
    long.resize(1_048, 0);
    let long = seal(&note(), &header, &long).expect("a good recipient").0;
    let mut low = good.clone();
    low[25..57].copy_from_slice(&points::low_order()[0]);
    vec![
        ("nothing", Vec::new()),
        ("another first byte, 0x60", with(&good, 0, 0x60)),
        ("another first byte, 0x65", with(&good, 0, 0x65)),
        ("a header that is cut off", good[..24].to_vec()),
        ("a header alone", good[..25].to_vec()),
        ("another transaction", flip(1)),
        ("another token", flip(9)),
        ("another ephemeral key", flip(25)),
        ("an ephemeral key of small order", low),
        ("another static key", flip(57)),
        ("another payload", flip(105)),
        ("another tag", flip(good.len() - 1)),
        ("a byte too few", good[..good.len() - 1].to_vec()),
        ("a byte too many behind a short one", [&answer[..], &[0]].concat()),
        ("an answer with another transaction", with(&answer, 1, answer[1] ^ 1)),
        ("an answer turned into a request", [&[0x62], &answer[1..]].concat()),
        ("1,201 bytes", long),
        ("sealed to somebody else", foreign),
        ("an unknown request", request(&[5])),
        ("a token of zeros", Header::Token { transaction, token: [0; 16] }.to_bytes()),
        ("a token that is cut off", given[..given.len() - 1].to_vec()),
        ("a token with a byte behind it", [&given[..], &[0]].concat()),
    ]
}
