//! Packet and header protection of both suites (`PROTO §5.1` to `§5.7`).

use serde_json::{Value, json};
use wraith_proto::wire::{ConnectionId, apply_mask};

use super::{Bytes, File, draw, file_of, hex, vector};
use crate::peer::{AES_256_GCM, HeaderKey, KeyMaterial, Keys, Plain, XCHACHA20_POLY1305};

pub(super) fn file() -> File {
    let mut vectors = Vec::new();
    for suite in [XCHACHA20_POLY1305, AES_256_GCM] {
        vectors.extend(masks(suite));
        let header_key = draw("header key");
        let material = KeyMaterial { key: draw("packet key"), prefix: draw("nonce prefix") };
        for (name, plain) in plains() {
            vectors.push(packet(name, suite, &material, header_key, &plain));
        }
    }
    let about =
        "Masks of header protection, and packets from their plaintext to the datagram. Numbers are decimal.";
    file_of("packets.json", about, "PROTO §5.1, §5.2, §5.3, §5.4, §5.5, §5.6, §5.7", &vectors)
}

fn masks(suite: u16) -> Vec<Value> {
    let key = draw("header key");
    // The first four bytes are the block number of ChaCha20, in little-endian: its largest value, too.
    let mut last = draw::<16>("another sample");
    last[..4].fill(0xff);
    [("a sample", draw("sample")), ("a sample of zeros", [0; 16]), ("the last block", last)]
        .map(|(name, sample)| {
            let mask = HeaderKey::new(suite, key).map(|key| key.mask(&sample)).unwrap_or_default();
            let mut header: [u8; 13] = std::array::from_fn(|at| 0x40 + at as u8);
            let before = header;
            apply_mask(&mut header, mask);
            let given = json!({
                "header": hex(before), "header_key": hex(key), "sample": hex(sample), "suite": suite,
            });
            vector(
                &format!("mask of {name}"),
                given,
                json!({ "mask": hex(mask), "protected_header": hex(header) }),
            )
        })
        .into()
}

/// Packets worth looking at.
fn plains() -> Vec<(&'static str, Plain)> {
    let destination = ConnectionId(draw("destination"));
    let plain = |first, number, body| Plain { first, destination, number, body };
    let frames =
        |data: &[u8], frames: &[u8]| Bytes::default().raw(data).raw(frames).u16(frames.len() as u16).0;
    let datagram = frames(b"hello", &Bytes::default().varint(0x06).u16(5).0);
    let mut full = vec![7; 1200 - 13 - 16 - 2 - 3];
    full.extend(Bytes::default().varint(0x06).u16(full.len() as u16).u16(3).0);
    vec![
        ("PING", plain(0x40, 0, frames(&[], &[0x01]))),
        ("no frames", plain(0x50, 1, frames(&[], &[]))),
        ("a datagram", plain(0x40, 77, datagram.clone())),
        ("key phase 3", plain(0x43, 78, datagram.clone())),
        ("the ignored bit", plain(0x50, 79, datagram.clone())),
        ("a number of 32 bits", plain(0x40, u64::from(u32::MAX), datagram.clone())),
        ("a number of 33 bits", plain(0x40, 1 << 32, datagram.clone())),
        ("the largest number", plain(0x40, (1 << 62) - 1, datagram)),
        ("1,200 bytes", plain(0x40, 123_456, full)),
    ]
}

/// A packet with all that happens on its way to the datagram.
pub(super) fn packet(
    name: &str,
    suite: u16,
    material: &KeyMaterial,
    header_key: [u8; 32],
    plain: &Plain,
) -> Value {
    let keys = Keys::new(suite, *material).expect("the suite is known");
    let header = plain.header();
    let sealed = keys.seal(plain.number, &header, &plain.body);
    let mask = HeaderKey::new(suite, header_key).expect("the suite is known");
    let mask = mask.mask(sealed[..16].try_into().expect("a tag is 16 bytes"));
    let mut datagram = [&header[..], &sealed].concat();
    apply_mask(&mut datagram, mask);
    let nonce = if suite == AES_256_GCM {
        hex(keys.aes_nonce(plain.number))
    } else {
        hex(keys.xchacha_nonce(plain.number))
    };
    let given = json!({
        "body": hex(&plain.body),
        "destination": hex(plain.destination.0),
        "first": plain.first,
        "header_key": hex(header_key),
        "nonce_prefix": hex(material.prefix),
        "number": plain.number.to_string(),
        "packet_key": hex(material.key),
        "suite": suite,
    });
    let gives = json!({
        "datagram": hex(datagram),
        "header": hex(header),
        "mask": hex(mask),
        "nonce": nonce,
        "sealed": hex(sealed),
    });
    vector(name, given, gives)
}
