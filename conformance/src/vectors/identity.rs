//! Identities (`PROTO §3.1`, `§3.2`).

use serde_json::json;

use super::{File, draw, file_of, hex, vector};
use crate::peer::{Identity, peer_id_text, points};

pub(super) fn file() -> File {
    let mut vectors = Vec::new();
    let counting: [u8; 32] = std::array::from_fn(|at| at as u8);
    for (name, seed) in [("zeros", [0; 32]), ("counting", counting), ("random", draw("identity"))] {
        let Identity { id, keys } = Identity::from_seed(&seed);
        let gives = json!({
            "peer_id": hex(id),
            "static_public": hex(keys.public),
            "static_secret": hex(keys.secret),
            "text": peer_id_text(&id),
        });
        vectors.push(vector(name, json!({ "seed": hex(seed) }), gives));
    }
    let good = Identity::from_seed(&counting);
    for (name, bad) in points::bad_identities(&good) {
        vectors.push(vector(&name, json!({ "peer_id": hex(bad.id) }), json!({ "refused": true })));
    }
    let about = "Seeds with their PeerId, its text and the Noise static keys; PeerIds that are refused.";
    file_of("identity.json", about, "PROTO §3.1, §3.2", &vectors)
}
