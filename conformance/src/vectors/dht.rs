//! Datagrams of the DHT and what they carry (`PROTO §14`).

mod json;
mod refused;

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{File, draw, file_of, hex, vector};
use crate::peer::dht::{
    Ask, Header, Held, Kind, LONGEST, NOTE, Node, Offer, Reply, Signed, node_id, open, seal, signed_text,
    value_key,
};
use crate::peer::{Identity, Note};

const TRANSACTION: [u8; 8] = *b"question";
const TOKEN: [u8; 16] = *b"an address token";
const WRITE: [u8; 8] = *b"writable";

pub(super) fn file() -> File {
    let mut vectors = names();
    vectors.extend(headers());
    vectors.extend(asks().iter().map(|(name, ask)| {
        let message = ask.to_bytes();
        assert_eq!(Ask::read(&message).as_ref(), Ok(ask), "{name}");
        let given = json!({ "what": "request", "ask": json::ask(ask) });
        vector(name, given, json!({ "message": hex(message) }))
    }));
    vectors.extend(replies().iter().map(|(name, reply)| {
        let message = reply.to_bytes(&TOKEN);
        assert_eq!(Reply::read(&message), Ok((TOKEN, reply.clone())), "{name}");
        let given = json!({ "what": "answer", "token": hex(TOKEN), "reply": json::reply(reply) });
        vector(name, given, json!({ "message": hex(message) }))
    }));
    vectors.extend(datagrams());
    vectors.extend(refused::all());
    let about = "Names, headers, messages and whole datagrams of the DHT. A datagram is made of its header and its message, \
                 which are given, and of what seals them. Numbers of 64 bits are decimal text. What is refused is malformed, \
                 does not open, or is not genuine.";
    file_of("dht.json", about, "PROTO §12.10, §12.14, §14.1 to §14.4, §14.13", &vectors)
}

fn owner() -> [u8; 32] {
    draw("dht, owner's seed")
}

/// Byte number i is the lowest byte of i.
fn value(len: usize) -> Vec<u8> {
    (0..len).map(|at| at as u8).collect()
}

fn signed(len: usize) -> Signed {
    Signed::new(&owner(), 0x0102_0304_0506_0708, u64::MAX, &value(len))
}

fn node(address: &str) -> Node {
    let address: SocketAddr = address.parse().expect("an address");
    Node { address, peer: Identity::from_seed(&draw(&format!("dht, node {address}"))).id }
}

fn nodes(count: usize, v6: bool) -> Vec<Node> {
    let address =
        |at| if v6 { format!("[2001:db8::{at:x}]:4{at:03}") } else { format!("192.0.2.{at}:4{at:03}") };
    (1..=count).map(|at| node(&address(at))).collect()
}

/// Ids, keys and signatures.
fn names() -> Vec<Value> {
    let peer = Identity::from_seed(&owner()).id;
    let mut vectors = vec![vector(
        "the id of a node",
        json!({ "what": "node", "peer": hex(peer) }),
        json!({ "id": hex(node_id(&peer)) }),
    )];
    for len in [0, 3, 1_000] {
        let value = value(len);
        let given = json!({ "what": "value", "value": hex(&value) });
        let gives = json!({ "key": hex(value_key(&value)) });
        vectors.push(vector(&format!("the key of a value of {len} bytes"), given, gives));
    }
    for (salt, seq, len) in [(0, 0, 0), (1, 2, 3), (u64::MAX, u64::MAX, 900)] {
        let signed = Signed::new(&owner(), salt, seq, &value(len));
        assert!(signed.is_genuine());
        let given = json!({
            "what": "signed record", "seed": hex(owner()), "salt": salt.to_string(), "seq": seq.to_string(),
            "value": hex(&signed.value),
        });
        let gives = json!({
            "peer": hex(peer), "key": hex(signed.key()), "signed": hex(signed_text(salt, seq, &signed.value)),
            "signature": hex(signed.signature),
        });
        vectors.push(vector(&format!("a signed record of {len} bytes, salt {salt}"), given, gives));
    }
    vectors
}

fn headers() -> Vec<Value> {
    let (transaction, token) = (TRANSACTION, TOKEN);
    let headers = [
        ("a request with a token", Header::Request { transaction, token }),
        ("a request without one", Header::Request { transaction, token: [0; 16] }),
        ("an answer", Header::Answer { transaction }),
        ("a token", Header::Token { transaction, token }),
    ];
    let vectors = headers.map(|(name, header)| {
        let bytes = header.to_bytes();
        assert_eq!(Header::read(&bytes), Ok((header, &[][..])), "{name}");
        let given = json!({ "what": "header", "header": json::header(&header) });
        vector(&format!("the header of {name}"), given, json!({ "bytes": hex(bytes) }))
    });
    vectors.to_vec()
}

/// Every request; the longest of each kind of record.
fn asks() -> Vec<(String, Ask)> {
    let target = draw("dht, target");
    let store = |condition, offer| Ask::Store { write_token: WRITE, condition, offer };
    let mut asks = vec![("ping".to_owned(), Ask::Ping), ("find-node".to_owned(), Ask::FindNode(target))];
    for kind in [Kind::Value, Kind::Signed, Kind::Providers] {
        asks.push((format!("find-value of kind {}", kind as u8), Ask::FindValue(target, kind)));
    }
    for condition in [None, Some(0), Some(0x1122_3344_5566_7788)] {
        let when = condition.map_or(String::new(), |seq: u64| format!(", if {seq} is there"));
        let offers = [
            ("an empty value", Offer::Value(Vec::new())),
            ("the longest value", Offer::Value(value(1_000))),
            ("a signed record without bytes", Offer::Signed(signed(0))),
            ("the longest signed record", Offer::Signed(signed(900))),
            ("a provider", Offer::Provider(target)),
        ];
        asks.extend(offers.map(|(what, offer)| (format!("store {what}{when}"), store(condition, offer))));
    }
    asks
}

/// Every answer; as many nodes as there may be, and as fit.
fn replies() -> Vec<(String, Reply)> {
    let found = |held, nodes| Reply::Found { write_token: WRITE, held, nodes };
    let both = || [nodes(2, false), nodes(3, true)].concat();
    let mut replies = vec![
        ("pong".to_owned(), Reply::Pong),
        ("found nothing".to_owned(), found(Held::Nothing, Vec::new())),
        ("found 20 nodes of IPv4".to_owned(), found(Held::Nothing, nodes(20, false))),
        ("found 20 nodes of IPv6".to_owned(), found(Held::Nothing, nodes(20, true))),
        ("found nodes of both".to_owned(), found(Held::Nothing, both())),
        ("found a value and nodes".to_owned(), found(Held::Value(value(3)), both())),
        ("found the longest value".to_owned(), found(Held::Value(value(1_000)), Vec::new())),
        ("found a signed record and nodes".to_owned(), found(Held::Signed(signed(3)), both())),
        ("found the longest signed record".to_owned(), found(Held::Signed(signed(900)), Vec::new())),
        ("found providers and nodes".to_owned(), found(Held::Providers(nodes(16, false)), nodes(9, false))),
        ("found no providers".to_owned(), found(Held::Providers(Vec::new()), Vec::new())),
    ];
    for result in 0..=5 {
        let seq = if result == 4 { u64::MAX } else { result.into() };
        replies.push((format!("stored with result {result}"), Reply::Stored { result, seq }));
    }
    replies
}

fn note() -> Note {
    Note {
        seed: draw("dht, sender's seed"),
        to: Identity::from_seed(&recipient()).id,
        randomness: draw("dht, randomness"),
    }
}

fn recipient() -> [u8; 32] {
    draw("dht, recipient's seed")
}

/// A message with zeros behind it, so that its datagram is as long as one without a token has to be.
fn filled(mut message: Vec<u8>) -> Vec<u8> {
    message.resize(LONGEST - 25 - NOTE, 0);
    message
}

/// A request that every node takes.
fn request(message: &[u8]) -> Vec<u8> {
    let header = Header::Request { transaction: TRANSACTION, token: [0; 16] };
    seal(&note(), &header, &filled(message.to_vec())).expect("a good recipient").0
}

fn datagrams() -> Vec<Value> {
    let (transaction, token) = (TRANSACTION, TOKEN);
    let without = Header::Request { transaction, token: [0; 16] };
    let with = Header::Request { transaction, token };
    let answer = Header::Answer { transaction };
    let store = Ask::Store { write_token: WRITE, condition: Some(7), offer: Offer::Signed(signed(900)) };
    let found = Reply::Found { write_token: WRITE, held: Held::Nothing, nodes: nodes(20, true) };
    let longest = Reply::Found { write_token: WRITE, held: Held::Signed(signed(900)), nodes: Vec::new() };
    let sealed = [
        ("a request without a token", without, filled(Ask::Ping.to_bytes())),
        ("a request with a token", with, Ask::FindNode(draw("dht, target")).to_bytes()),
        ("the longest request without a token", without, filled(store.to_bytes())),
        ("the longest request with a token", with, store.to_bytes()),
        ("a short answer", answer, Reply::Pong.to_bytes(&TOKEN)),
        ("an answer with 20 nodes", answer, found.to_bytes(&TOKEN)),
        ("the longest answer", answer, longest.to_bytes(&TOKEN)),
    ];
    let mut vectors: Vec<Value> =
        sealed.iter().map(|(name, header, message)| sealed_one(name, header, message)).collect();
    let token = Header::Token { transaction, token }.to_bytes();
    let given =
        json!({ "what": "token", "header": json::header(&Header::read(&token).expect("it is one").0) });
    vectors.push(vector("a datagram: a token", given, json!({ "datagram": hex(&token) })));
    vectors
}

fn sealed_one(name: &str, header: &Header, message: &[u8]) -> Value {
    let (datagram, ephemeral) = seal(&note(), header, message).expect("a good recipient");
    let from = Identity::from_seed(&note().seed).id;
    assert_eq!(open(&recipient(), &datagram), Ok((*header, from, message.to_vec())), "{name}");
    let given = json!({
        "what": "datagram",
        "header": json::header(header),
        "sender_seed": hex(note().seed),
        "recipient_seed": hex(recipient()),
        "recipient": hex(note().to),
        "randomness": hex(note().randomness),
        "message": hex(message),
    });
    let gives = json!({
        "sender": hex(from),
        "ephemeral_secret": hex(ephemeral),
        "length": datagram.len(),
        "datagram": hex(datagram),
    });
    vector(&format!("a datagram: {name}"), given, gives)
}
