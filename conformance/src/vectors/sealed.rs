//! Sealed messages (`PROTO §12`).

use serde_json::{Value, json};

use super::{File, draw, file_of, hex, vector};
use crate::peer::{Identity, Letter, Making, open_datagram, open_message, seal_datagram, seal_message};

/// Longer messages stand in the file by their hash.
const LONGEST: usize = 1000;

pub(super) fn file() -> File {
    let mut vectors = Vec::new();
    for sign in [false, true] {
        for len in [0, 11, 1000] {
            vectors.push(sealed("datagram", sign, len));
        }
        for len in [0, 11, 65_535, 65_536, 65_537, 200_000] {
            vectors.push(sealed("message", sign, len));
        }
    }
    vectors.extend(refused());
    let about = "Sealed messages and datagrams, with all that they follow from. Byte number i of a body is the lowest byte of \
                 i + i div 256. A long one is named by its BLAKE3 hash, and begins with `head`. \
                 Altered ones are refused.";
    file_of("sealed.json", about, "PROTO §12.2 to §12.10", &vectors)
}

fn letter(sign: bool) -> Letter {
    Letter {
        seed: draw("sealed, sender's seed"),
        to: Identity::from_seed(&draw("sealed, recipient's seed")).id,
        id: draw("sealed, id"),
        time: 1_764_547_200_123,
        sign,
        randomness: draw("sealed, randomness"),
    }
}

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at + at / 256) as u8).collect()
}

fn sealed(form: &str, sign: bool, len: usize) -> Value {
    let (letter, body, recipient) = (letter(sign), body(len), draw("sealed, recipient's seed"));
    let (bytes, making) = if form == "datagram" {
        let (bytes, making) = seal_datagram(&letter, &body).expect("a good recipient");
        assert_eq!(open_datagram(&recipient, &bytes).map(|opened| opened.body), Ok(body));
        (bytes, making)
    } else {
        let (bytes, making) = seal_message(&letter, &body).expect("a good recipient");
        assert_eq!(open_message(&recipient, &bytes).map(|opened| opened.body), Ok(body));
        (bytes, making)
    };
    let Making { ephemeral, outputs: [k1, k2, h], signature } = making;
    let given = json!({
        "form": form,
        "sender_seed": hex(letter.seed),
        "recipient_seed": hex(recipient),
        "recipient": hex(letter.to),
        "id": hex(letter.id),
        "time": letter.time.to_string(),
        "signed": sign,
        "randomness": hex(letter.randomness),
        "body_len": len,
    });
    let mut gives = json!({
        "sender": hex(Identity::from_seed(&letter.seed).id),
        "ephemeral_secret": hex(ephemeral),
        "h": hex(h),
        "length": bytes.len(),
        "blake3": hex(blake3::hash(&bytes).as_bytes()),
    });
    if form == "message" {
        gives["k1"] = hex(k1).into();
        gives["k2"] = hex(k2).into();
        let key = blake3::derive_key("WRAITH v1 sealed segments", &[k1, k2, h].concat());
        gives["segment_key"] = hex(key).into();
        gives["head"] = hex(&bytes[..161]).into();
    }
    if let Some(signature) = signature {
        gives["signature"] = hex(signature).into();
    }
    if len <= LONGEST {
        gives["sealed"] = hex(&bytes).into();
    }
    vector(&format!("a {form} of {len} bytes{}", if sign { ", signed" } else { "" }), given, gives)
}

/// Altered in one place each.
fn refused() -> Vec<Value> {
    let (datagram, _) = seal_datagram(&letter(true), &body(11)).expect("a good recipient");
    let (message, _) = seal_message(&letter(true), &body(11)).expect("a good recipient");
    let (other, _) =
        seal_message(&Letter { randomness: [1; 32], ..letter(true) }, &body(11)).expect("a good recipient");
    let flip = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 1;
        bytes
    };
    let cases = [
        ("datagram", "another type", flip(&datagram, 0)),
        ("datagram", "another ephemeral key", flip(&datagram, 1)),
        ("datagram", "another static key", flip(&datagram, 33)),
        ("datagram", "another payload", flip(&datagram, 100)),
        ("datagram", "a byte too few", datagram[..datagram.len() - 1].to_vec()),
        ("datagram", "a byte too many", [&datagram[..], &[0]].concat()),
        ("message", "another format", flip(&message, 7)),
        ("message", "no segments", message[..161].to_vec()),
        ("message", "a last segment that says it is none", flip_top(&message)),
        ("message", "another length", flip(&message, 164)),
        ("message", "another last byte", flip(&message, message.len() - 1)),
        ("message", "a byte too few", message[..message.len() - 1].to_vec()),
        ("message", "bytes behind the end", [&message[..], &[0; 4]].concat()),
        ("message", "the segment of another message", [&message[..161], &other[161..]].concat()),
    ];
    let recipient = draw("sealed, recipient's seed");
    let vectors = cases.map(|(form, name, bytes)| {
        let opened = if form == "datagram" { open_datagram } else { open_message };
        assert!(opened(&recipient, &bytes).is_err(), "{name}");
        let given = json!({ "form": form, "recipient_seed": hex(recipient), "sealed": hex(bytes) });
        vector(&format!("a {form} with {name}"), given, json!({ "refused": true }))
    });
    vectors.to_vec()
}

/// With bit 31 of the first segment header the other way.
fn flip_top(message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    message[161] ^= 0x80;
    message
}
