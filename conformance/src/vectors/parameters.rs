//! Parameter lists (`PROTO §4.4`).

use serde_json::{Value, json};
use wraith_proto::wire::{ConnectionId, HandshakeKind};

use super::{File, draw, file_of, hex, vector};
use crate::peer::{AES_256_GCM, Identity, Parameters, Profile, XCHACHA20_POLY1305};
use crate::protocol::cases::hello;

/// The messages with parameters that are in order.
pub(super) fn messages() -> Vec<(&'static str, HandshakeKind, Parameters)> {
    let mut profile = Profile::new(Identity::from_seed(&draw("parameters")), b"example/1");
    profile.versions = vec![1, 0x1a2a_3a4a];
    profile.suites = vec![AES_256_GCM, XCHACHA20_POLY1305];
    profile.protocols.push(b"example/2".to_vec());
    let (initiator, responder) = (ConnectionId(draw("initiator's id")), ConnectionId(draw("responder's id")));
    let response = |profile: &Profile| profile.response(initiator, responder, 1, b"example/1");
    let asking = Profile { ask: true, ..profile.clone() };
    vec![
        ("INIT", HandshakeKind::Init, profile.init(initiator)),
        ("RESPONSE", HandshakeKind::Response, response(&profile)),
        ("RESPONSE that asks", HandshakeKind::Response, response(&asking)),
        ("RESPONSE that refuses", HandshakeKind::Response, profile.refusal(initiator, responder, 3)),
        ("FINISH", HandshakeKind::Finish, profile.finish(initiator, responder, 1, b"example/1")),
    ]
}

pub(super) fn file() -> File {
    let mut vectors = Vec::new();
    for (name, kind, parameters) in messages() {
        let list: Value = parameters.iter().map(|(id, value)| json!([id.to_string(), hex(value)])).collect();
        let gives = json!({ "payload": hex(parameters.to_bytes(0)) });
        vectors.push(vector(name, json!({ "parameters": list }), gives));
        if ["INIT", "RESPONSE", "FINISH"].contains(&name) {
            for (what, payload) in hello::malformed(&parameters, kind, 0) {
                let given = json!({ "message": name, "payload": hex(payload) });
                vectors.push(vector(&format!("{name} {what}"), given, json!({ "refused": true })));
            }
        }
    }
    let about = "The payloads of the Noise messages without their padding, and payloads that are refused.";
    file_of("parameters.json", about, "PROTO §4.4", &vectors)
}
