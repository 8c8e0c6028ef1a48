//! The key schedule (`PROTO §3.5`, `§3.6`, `§3.9`, `§4.2`).

use serde_json::{Value, json};

use super::{File, draw, file_of, hex, vector};
use crate::peer::{AES_256_GCM, Direction, Root, XCHACHA20_POLY1305};

pub(super) fn file() -> File {
    let [k1, k2, hash] = ["k1", "k2", "handshake hash"].map(draw::<32>);
    let root = Root::from_parts(&k1, &k2, &hash);
    let mut vectors = vec![vector(
        "root_0",
        json!({ "k1": hex(k1), "k2": hex(k2), "h": hex(hash) }),
        json!({ "root_0": hex(root.0) }),
    )];
    let key = blake3::derive_key("WRAITH v1 finish mac", &[k1, k2].concat());
    vectors.push(vector(
        "key of the outer MAC of FINISH",
        json!({ "k1": hex(k1), "k2": hex(k2) }),
        json!({ "finish_mac_key": hex(key) }),
    ));
    for suite in [XCHACHA20_POLY1305, AES_256_GCM] {
        for direction in [Direction::ToResponder, Direction::ToInitiator] {
            vectors.push(of_epoch(&root, 0, direction, suite));
        }
        let exporter = root.exporter(suite);
        let label = "EXAMPLE v1 channel binding";
        vectors.push(vector(
            "exporter",
            json!({ "root_0": hex(root.0), "suite": suite, "label": label }),
            json!({ "exporter": hex(exporter), "exported": hex(blake3::derive_key(label, &exporter)) }),
        ));
    }
    let about =
        "From the outputs of the handshake to the keys of epoch 0. Direction 0 is initiator to responder.";
    file_of("keys.json", about, "PROTO §3.5, §3.6, §3.9, §4.2", &vectors)
}

/// The keys of one direction; header protection belongs to epoch 0.
pub(super) fn of_epoch(root: &Root, epoch: u32, direction: Direction, suite: u16) -> Value {
    let material = root.packet(epoch, direction, suite);
    let mut gives = json!({ "packet_key": hex(material.key), "nonce_prefix": hex(material.prefix) });
    if epoch == 0 {
        gives["header_key"] = hex(root.header(direction, suite)).into();
    }
    let given = json!({ "root": hex(root.0), "epoch": epoch, "direction": direction as u8, "suite": suite });
    vector("keys of an epoch", given, gives)
}
