//! The messages of a transfer (`PROTO §10.3`, `§10.11`).

use serde_json::{Value, json};

use super::{Bytes, File, draw, file_of, hex, vector};

pub(super) fn file() -> File {
    let mut vectors: Vec<Value> = messages()
        .into_iter()
        .map(|(name, fields, body)| {
            let bytes = Bytes::default().varint(body.0.len() as u64).raw(body.0).0;
            vector(name, json!({ "fields": fields }), json!({ "bytes": hex(bytes) }))
        })
        .collect();
    let header = Bytes::default().u32(7).u32(1 << 20).u64(123_456_789).0;
    vectors.push(vector(
        "header of a delivery",
        json!({ "transfer": "7", "length": "1048576", "chunk": "123456789" }),
        json!({ "bytes": hex(header) }),
    ));
    vectors.extend(malformed().into_iter().map(|(name, code, body)| {
        vector(name, json!({ "message": hex(body.0) }), json!({ "close_app": code }))
    }));
    let about = "Messages with their length in front, the header of a delivery, and messages (without the length) \
                 that close the session with this code. Numbers are decimal.";
    file_of("transfer.json", about, "PROTO §10.3, §10.6, §10.10, §10.11, §10.14, §10.15", &vectors)
}

/// Each message: name, fields, type and body.
fn messages() -> Vec<(&'static str, Value, Bytes)> {
    let (hash, token) = (draw::<32>("content id"), draw::<16>("token"));
    let list = [draw::<32>("value 0"), draw("value 1"), draw("value 2")].concat();
    let message = |kind: u8, transfer: u64| Bytes::default().u8(kind).varint(transfer);
    let mut all = Vec::new();
    for (kind, transfer) in [(0, 1), (1, u64::from(u32::MAX))] {
        let fields = json!({
            "transfer": transfer.to_string(), "kind": kind, "content_id": hex(hash), "token": hex(token),
        });
        all.push(("Get", fields, message(0x01, transfer).u8(kind).raw(hash).raw(token)));
    }
    for (size, complete, top) in [(0, 1, &[][..]), (1 << 20, 1, &[]), (3 << 20, 0, &list)] {
        let fields = json!({
            "transfer": "70", "size": size.to_string(), "complete": complete, "top": hex(top),
        });
        all.push(("Offer", fields, message(0x02, 70).varint(size).u8(complete).raw(top)));
    }
    let place =
        |level: u8, index: u64| json!({ "transfer": "3", "level": level, "index": index.to_string() });
    all.push(("GetList", place(4, 20_000), message(0x03, 3).u8(4).varint(20_000)));
    let mut fields = place(1, 5);
    fields["values"] = hex(&list).into();
    all.push(("List", fields, message(0x04, 3).u8(1).varint(5).raw(&list)));
    for (first, chunks, bits) in [
        (5, vec![5u64], vec![1u8]),
        (100, vec![100, 101, 107, 108, 355], [&[0x83, 1][..], &[0; 29], &[0x80]].concat()),
    ] {
        let chunks: Vec<String> = chunks.iter().map(ToString::to_string).collect();
        let fields = json!({ "transfer": "3", "first": first.to_string(), "chunks": chunks });
        all.push(("Want", fields, message(0x05, 3).varint(first).raw(bits)));
    }
    all.push(("Done", json!({ "transfer": "3", "content_id": hex(hash) }), message(0x06, 3).raw(hash)));
    all.push(("DoneAck", json!({ "transfer": "3" }), message(0x07, 3)));
    for code in [1, u64::from(u32::MAX)] {
        let fields = json!({ "transfer": "3", "code": code.to_string() });
        all.push(("Refused", fields.clone(), message(0x08, 3).varint(code)));
        all.push(("Cancel", fields, message(0x09, 3).varint(code)));
    }
    all
}

/// Type and body of messages that a receiver of them closes for, and the code.
fn malformed() -> Vec<(&'static str, u32, Bytes)> {
    let message = |kind: u8| Bytes::default().u8(kind).varint(3);
    let hash = draw::<32>("content id");
    vec![
        ("nothing", 0x101, Bytes::default()),
        ("an unknown type below 0x40", 0x103, message(0x3f)),
        ("type 0", 0x103, message(0)),
        ("a transfer number of 2^32", 0x102, Bytes::default().u8(0x07).varint(1 << 32)),
        ("a transfer number in two bytes that fits in one", 0x102, Bytes::default().u8(0x07).raw([0x40, 3])),
        ("Get of an unknown kind", 0x102, message(0x01).u8(2).raw(hash).raw([0; 16])),
        ("Get that is cut off", 0x102, message(0x01).u8(0).raw(hash).raw([0; 15])),
        ("Get that is too long", 0x102, message(0x01).u8(0).raw(hash).raw([0; 17])),
        ("Offer of more than 2^60 bytes", 0x102, message(0x02).varint((1 << 60) + 1).u8(1).raw(hash)),
        ("Offer that is neither complete nor not", 0x102, message(0x02).varint(5).u8(2)),
        ("Offer of one chunk with a list", 0x102, message(0x02).varint(1 << 20).u8(1).raw(hash)),
        ("Offer of two chunks without a list", 0x102, message(0x02).varint((1 << 20) + 1).u8(1)),
        ("Offer with part of a value", 0x102, message(0x02).varint(1 << 21).u8(1).raw([0; 63])),
        ("GetList of level 0", 0x102, message(0x03).u8(0).varint(0)),
        ("GetList of level 5", 0x102, message(0x03).u8(5).varint(0)),
        ("List without values", 0x102, message(0x04).u8(1).varint(0)),
        ("Want without a vector", 0x102, message(0x05).varint(0)),
        ("Want of 33 bytes", 0x102, message(0x05).varint(0).raw([1; 33])),
        ("Want without its first chunk", 0x102, message(0x05).varint(0).raw([2])),
        ("Want with an empty last byte", 0x102, message(0x05).varint(0).raw([1, 0])),
        ("DoneAck with a body", 0x102, message(0x07).u8(0)),
        ("a code of 2^32", 0x102, message(0x09).varint(1 << 32)),
    ]
}
