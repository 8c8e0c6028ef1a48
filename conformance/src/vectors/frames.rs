//! Varints and frames (`PROTO §1.1`, `§6`).

use serde_json::{Value, json};

use super::{Bytes, File, file_of, hex, vector};

pub(super) fn file() -> File {
    let mut vectors: Vec<Value> = [
        0,
        37,
        63,
        64,
        15_293,
        16_383,
        16_384,
        494_878_333,
        (1 << 30) - 1,
        1 << 30,
        151_288_809_941_952_652,
        (1 << 62) - 1,
    ]
    .map(|value: u64| {
        let gives = json!({ "bytes": hex(Bytes::default().varint(value).0) });
        vector("varint", json!({ "value": value.to_string() }), gives)
    })
    .into();
    vectors.extend(frames().into_iter().map(|(name, fields, bytes)| {
        vector(name, json!({ "fields": fields }), json!({ "bytes": hex(bytes.0) }))
    }));
    vectors.extend(
        malformed().into_iter().map(|(name, bytes)| {
            vector(name, json!({ "frames": hex(bytes.0) }), json!({ "violation": true }))
        }),
    );
    let about = "Varints, each frame, and frames that end a session with CLOSE 1. Numbers are decimal.";
    file_of("frames.json", about, "PROTO §1.1, §6.1, §6.2, §6.3, §6.4, §6.5, §6.6, §6.8", &vectors)
}

const LARGEST: u64 = (1 << 62) - 1;

/// Each frame: name, fields in their order, bytes.
fn frames() -> Vec<(&'static str, Value, Bytes)> {
    let mut all = vec![
        ("PADDING", json!({ "count": "5" }), Bytes::default().raw([0; 5])),
        ("PING", json!({}), Bytes::default().varint(0x01)),
        ("AUTHORIZED", json!({}), Bytes::default().varint(0x14)),
    ];
    all.extend(acks());
    for code in [0, 300, u32::MAX] {
        let fields = json!({ "code": code.to_string() });
        all.push(("CLOSE", fields.clone(), Bytes::default().varint(0x04).varint(code.into())));
        all.push(("CLOSE_APP", fields, Bytes::default().varint(0x05).varint(code.into())));
    }
    all.push(("DATAGRAM", json!({ "length": "1200" }), Bytes::default().varint(0x06).u16(1200)));
    for (kind, name) in [(0x08, "STREAM"), (0x09, "STREAM_FIN")] {
        for (stream, offset, len) in [(0, 0, 0), (4, 1000, 1000), (u32::MAX, LARGEST - 9, 9)] {
            let fields = json!({
                "stream": stream.to_string(), "offset": offset.to_string(), "length": len.to_string(),
            });
            all.push((
                name,
                fields,
                Bytes::default().varint(kind).varint(stream.into()).varint(offset).u16(len),
            ));
        }
    }
    for (kind, name, keys) in NUMBERS {
        for values in [[1, 1, 2, 3], [70, 80, 20_000, 300], [7, u64::from(u32::MAX), LARGEST - 9, 9]] {
            let values = &values[..keys.len()];
            let fields: Value = keys
                .iter()
                .zip(values)
                .map(|(key, value)| ((*key).to_owned(), Value::from(value.to_string())))
                .collect();
            let start = Bytes::default().varint(*kind);
            all.push((name, fields, values.iter().fold(start, |bytes, value| bytes.varint(*value))));
        }
    }
    let id = [1, 2, 3, 4, 5, 6, 7, 8];
    let fields = json!({ "sequence": "3", "retire_prior_to": "2", "id": hex(id) });
    all.push(("NEW_CONNECTION_ID", fields, Bytes::default().varint(0x12).varint(3).varint(2).raw(id)));
    let share: [u8; 32] = std::array::from_fn(|at| at as u8);
    let fields = json!({ "epoch": "300", "group": "1", "total": "32", "offset": "0", "piece": hex(share) });
    let bytes = Bytes::default().varint(0x15).varint(300).u16(1).u16(32).u16(0).u16(32).raw(share);
    all.push(("KEY_SHARE", fields, bytes));
    for (kind, name) in [(0x16, "PATH_CHALLENGE"), (0x17, "PATH_RESPONSE")] {
        all.push((name, json!({ "data": hex(id) }), Bytes::default().varint(kind).raw(id)));
    }
    for kind in [0x40, 0x3fff] {
        let fields = json!({ "type": kind.to_string(), "body": hex(b"extension") });
        all.push(("extension", fields, Bytes::default().varint(kind).varint(9).raw(b"extension")));
    }
    all
}

/// Frames that are a type and varints. The first field is a stream, but for the last three.
const NUMBERS: &[(u64, &str, &[&str])] = &[
    (0x0a, "RESET_STREAM", &["stream", "code", "final_size"]),
    (0x0b, "STOP_SENDING", &["stream", "code"]),
    (0x0c, "MAX_STREAM_DATA", &["stream", "credit"]),
    (0x0d, "STREAM_HOLES", &["stream", "report", "offset", "length"]),
    (0x0e, "STREAM_BLOCKED", &["stream", "credit"]),
    (0x0f, "HOLES_TAKEN", &["stream", "report"]),
    (0x10, "MAX_STREAMS_BI", &["count"]),
    (0x11, "MAX_STREAMS_UNI", &["count"]),
    (0x13, "RETIRE_CONNECTION_ID", &["sequence"]),
];

/// ACK with one range and with several, with and without ECN counts.
fn acks() -> Vec<(&'static str, Value, Bytes)> {
    let ranges = |ranges: &[(u64, u64)]| -> Value {
        ranges.iter().map(|(low, high)| json!([low.to_string(), high.to_string()])).collect()
    };
    let one = Bytes::default().varint(0x02).varint(500).varint(25_000).varint(0).varint(10);
    // 90 to 100, 80 to 85 and 0: three unacknowledged numbers less one between the first two, 79 less one behind.
    let several = |kind| {
        let start = Bytes::default().varint(kind).varint(100).varint(0).varint(2).varint(10);
        start.varint(3).varint(5).varint(78).varint(0)
    };
    let three = [(90, 100), (80, 85), (0, 0)];
    let ecn = json!({
        "ranges": ranges(&three), "delay": "0", "ect0": "1000", "ect1": "0", "ce": "3",
    });
    vec![
        ("ACK", json!({ "ranges": ranges(&[(490, 500)]), "delay": "25000" }), one),
        ("ACK", json!({ "ranges": ranges(&three), "delay": "0" }), several(0x02)),
        ("ACK_ECN", ecn, several(0x03).varint(1000).varint(0).varint(3)),
    ]
}

/// Bytes in the place of frames that break a rule, whatever the session is.
fn malformed() -> Vec<(&'static str, Bytes)> {
    let start = Bytes::default;
    let large = 1 << 32;
    vec![
        ("an unknown type below 0x40", start().varint(0x18)),
        ("a challenge that is cut off", start().varint(0x16).raw([7; 7])),
        ("an unknown type above 0x3fff", start().varint(0x4000).varint(0)),
        ("PING in two bytes", start().raw([0x40, 0x01])),
        ("a stream id in two bytes that fits in one", start().varint(0x0c).raw([0x40, 0x04]).varint(5)),
        ("a code over 32 bits", start().varint(0x04).varint(large)),
        ("a stream id over 32 bits", start().varint(0x08).varint(large).varint(0).u16(0)),
        ("an end of a stream at 2^62", start().varint(0x08).varint(0).varint(LARGEST).u16(1)),
        ("STREAM that is cut off", start().varint(0x08).varint(0).varint(0).u8(0)),
        ("an ACK with a range below 0", start().varint(0x02).varint(5).varint(0).varint(0).varint(6)),
        (
            "an ACK with 64 further ranges",
            start().varint(0x02).varint(5000).varint(0).varint(64).raw([0; 129]),
        ),
        ("an extension that is cut off", start().varint(0x40).varint(2).u8(0)),
        ("an empty piece of a share", start().varint(0x15).varint(1).u16(1).u16(32).u16(0).u16(0)),
        (
            "a piece beyond its share",
            start().varint(0x15).varint(1).u16(1).u16(32).u16(1).u16(32).raw([9; 32]),
        ),
    ]
}
