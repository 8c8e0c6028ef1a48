//! Fresh keys (`PROTO §5.13` to `§5.15`, `§6.8`).

use serde_json::json;
use wraith_proto::wire::ConnectionId;

use super::{Bytes, File, draw, file_of, hex, keys, packets, vector};
use crate::peer::{AES_256_GCM, Direction, KeyPair, Plain, Root, XCHACHA20_POLY1305};

pub(super) fn file() -> File {
    let mut vectors = Vec::new();
    let first = Root(draw("root"));
    let mut root = first;
    for epoch in 1..=2 {
        let [initiator, responder] =
            ["initiator", "responder"].map(|end| KeyPair::new(draw(&format!("{end}'s share {epoch}"))));
        let shared = initiator.agree(&responder.public).expect("the keys are of large order");
        let next = root.next(&shared, &initiator.public, &responder.public, epoch);
        let share = |public: [u8; 32]| {
            let whole = Bytes::default().varint(0x15).varint(epoch.into()).u16(1).u16(32).u16(0).u16(32);
            hex(whole.raw(public).0)
        };
        let given = json!({
            "epoch": epoch,
            "initiator_secret": hex(initiator.secret),
            "responder_secret": hex(responder.secret),
            "root": hex(root.0),
        });
        let gives = json!({
            "initiator_share": hex(initiator.public),
            "responder_share": hex(responder.public),
            "initiator_frame": share(initiator.public),
            "responder_frame": share(responder.public),
            "shared": hex(shared),
            "next_root": hex(next.0),
        });
        vectors.push(vector("root of the next epoch", given, gives));
        root = next;
        for suite in [XCHACHA20_POLY1305, AES_256_GCM] {
            for direction in [Direction::ToResponder, Direction::ToInitiator] {
                vectors.push(keys::of_epoch(&root, epoch, direction, suite));
            }
            let material = root.packet(epoch, Direction::ToResponder, suite);
            // Header protection stays that of epoch 0.
            let header_key = first.header(Direction::ToResponder, suite);
            let plain = Plain {
                first: 0x40 | epoch as u8,
                destination: ConnectionId(draw("destination")),
                number: 1000 + u64::from(epoch),
                body: Bytes::default().varint(0x01).u16(1).0,
            };
            let name = format!("PING in epoch {epoch}");
            vectors.push(packets::packet(&name, suite, &material, header_key, &plain));
        }
    }
    let about = "Two exchanges in a row: shares, roots, keys, and a packet of the initiator in each epoch.";
    file_of("rekey.json", about, "PROTO §3.6, §5.13, §5.15, §6.8", &vectors)
}
