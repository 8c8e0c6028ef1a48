//! How messages of the DHT stand in the file.

use serde_json::{Value, json};

use super::super::hex;
use crate::peer::dht::{Ask, Header, Held, Node, Offer, Reply, Signed};

pub(super) fn header(header: &Header) -> Value {
    match header {
        Header::Request { transaction, token } => {
            json!({ "kind": "request", "transaction": hex(transaction), "token": hex(token) })
        }
        Header::Answer { transaction } => json!({ "kind": "answer", "transaction": hex(transaction) }),
        Header::Token { transaction, token } => {
            json!({ "kind": "token", "transaction": hex(transaction), "token": hex(token) })
        }
    }
}

pub(super) fn ask(ask: &Ask) -> Value {
    match ask {
        Ask::Ping => json!({ "kind": "ping" }),
        Ask::FindNode(target) => json!({ "kind": "find-node", "target": hex(target) }),
        Ask::FindValue(target, kind) => {
            json!({ "kind": "find-value", "target": hex(target), "record": *kind as u8 })
        }
        Ask::Store { write_token, condition, offer } => json!({
            "kind": "store",
            "write_token": hex(write_token),
            "condition": condition.map(|seq| seq.to_string()),
            "record": match offer {
                Offer::Value(bytes) => value(bytes),
                Offer::Signed(record) => signed(record),
                Offer::Provider(key) => json!({ "kind": "provider", "key": hex(key) }),
            },
        }),
    }
}

pub(super) fn reply(reply: &Reply) -> Value {
    match reply {
        Reply::Pong => json!({ "kind": "pong" }),
        Reply::Found { write_token, held, nodes: near } => json!({
            "kind": "found",
            "write_token": hex(write_token),
            "record": match held {
                Held::Nothing => json!({ "kind": "none" }),
                Held::Value(bytes) => value(bytes),
                Held::Signed(record) => signed(record),
                Held::Providers(list) => json!({ "kind": "providers", "nodes": nodes(list) }),
            },
            "nodes": nodes(near),
        }),
        Reply::Stored { result, seq } => {
            json!({ "kind": "stored", "result": result, "seq": seq.to_string() })
        }
    }
}

pub(super) fn signed(record: &Signed) -> Value {
    json!({
        "kind": "signed",
        "peer": hex(record.peer),
        "salt": record.salt.to_string(),
        "seq": record.seq.to_string(),
        "signature": hex(record.signature),
        "value": hex(&record.value),
    })
}

fn value(bytes: &[u8]) -> Value {
    json!({ "kind": "value", "value": hex(bytes) })
}

fn nodes(list: &[Node]) -> Value {
    list.iter().map(|node| json!({ "address": node.address.to_string(), "peer": hex(node.peer) })).collect()
}
