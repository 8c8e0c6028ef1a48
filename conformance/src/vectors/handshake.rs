//! Whole handshakes, from all secrets to each datagram (`PROTO §2.3`, `§3.4`, `§4`).

use serde_json::{Value, json};
use wraith_proto::wire::{ConnectionId, Frame, INIT_MESSAGE_OFFSET, RESPONSE_MESSAGE_OFFSET};

use super::{Bytes, File, draw, file_of, hex, vector};
use crate::peer::{
    AES_256_GCM, Answer, Dial, Identity, KeyPair, Parameters, Profile, Reception, XCHACHA20_POLY1305,
};

pub(super) fn file() -> File {
    let mut vectors = vec![
        handshake("a session with XChaCha20-Poly1305", XCHACHA20_POLY1305),
        handshake("a session with AES-256-GCM", AES_256_GCM),
        refusal(),
    ];
    let (id, cookie) = (draw::<8>("initiator's id"), draw::<16>("cookie"));
    let datagram = Bytes::default().u8(0x84).u32(1).raw(id).raw([0; 8]).raw(cookie).0;
    vectors.push(vector(
        "COOKIE",
        json!({ "initiator_id": hex(id), "cookie": hex(cookie) }),
        json!({ "datagram": hex(datagram) }),
    ));
    let versions = [1, 0x1a2a_3a4a];
    let header = Bytes::default().u8(0x85).u32(0).raw(id).raw([0; 8]);
    let datagram = versions.iter().fold(header, |bytes, version| bytes.u32(*version)).0;
    vectors.push(vector(
        "VERSIONS",
        json!({ "initiator_id": hex(id), "versions": versions }),
        json!({ "datagram": hex(datagram) }),
    ));
    let about =
        "Handshakes with fixed secrets: each message, each key on the way, and the first packet of each end.";
    file_of("handshake.json", about, "PROTO §2.3, §2.4, §2.5, §3.4, §3.5, §4.1, §4.2, §4.4, §4.18", &vectors)
}

/// Both ends of a handshake and their secrets.
struct Ends {
    initiator: Profile,
    responder: Profile,
    initiator_id: ConnectionId,
    responder_id: ConnectionId,
    initiator_ephemeral: KeyPair,
    responder_ephemeral: KeyPair,
}

impl Ends {
    fn new(suite: u16) -> Self {
        let profile = |end: &str| {
            let mut profile =
                Profile::new(Identity::from_seed(&draw(&format!("{end}'s seed"))), b"example/1");
            profile.instance = draw(&format!("{end}'s instance"));
            profile.suites = vec![suite];
            profile
        };
        Self {
            initiator: profile("initiator"),
            responder: profile("responder"),
            initiator_id: ConnectionId(draw("initiator's id")),
            responder_id: ConnectionId(draw("responder's id")),
            initiator_ephemeral: KeyPair::new(draw("initiator's ephemeral")),
            responder_ephemeral: KeyPair::new(draw("responder's ephemeral")),
        }
    }

    fn given(&self) -> Value {
        json!({
            "initiator_ephemeral": hex(self.initiator_ephemeral.secret),
            "initiator_id": hex(self.initiator_id.0),
            "initiator_seed": hex(draw::<32>("initiator's seed")),
            "responder_ephemeral": hex(self.responder_ephemeral.secret),
            "responder_id": hex(self.responder_id.0),
            "responder_seed": hex(draw::<32>("responder's seed")),
        })
    }
}

fn handshake(name: &str, suite: u16) -> Value {
    let ends = Ends::new(suite);
    let (initiator, responder) = (ends.initiator_id, ends.responder_id);
    let dial = Dial::new(&ends.initiator, initiator, ends.initiator_ephemeral).expect("a sound profile");
    let reception = Reception::new(&ends.responder, dial.init()).expect("an INIT in order");
    let response = reception.respond(responder, ends.responder_ephemeral).expect("keys of large order");
    let Ok(Answer::Met(met)) = dial.read(response.datagram()) else { unreachable!("a RESPONSE in order") };
    let (finish, mut one) = met.finish().expect("keys of large order");
    let (mut other, _) = response.read(&finish).expect("a FINISH in order");
    let datagram = [Frame::Datagram { len: 5 }];
    let first = one.seal(&datagram, b"hello");
    let answer = other.seal(&[Frame::Ping], &[]);
    let mut given = ends.given();
    let payload = |parameters: &Parameters, len| hex(parameters.to_bytes(len));
    let protocol = b"example/1";
    given["init_payload"] = payload(&ends.initiator.init(initiator), 1200 - INIT_MESSAGE_OFFSET - 32).into();
    let parameters = ends.responder.response(initiator, responder, suite, protocol);
    given["response_payload"] = payload(&parameters, 1200 - RESPONSE_MESSAGE_OFFSET - 96).into();
    given["finish_payload"] = payload(&met.parameters(), 0).into();
    given["cookie"] = hex(draw::<16>("cookie")).into();
    let [k1, k2] = one.handshake().split();
    let gives = json!({
        "init": hex(dial.init()),
        "init_with_cookie": hex(dial.init_with(&draw("cookie"))),
        "response": hex(response.datagram()),
        "finish": hex(&finish),
        "finish_mac_key": hex(met.finish_key()),
        "k1": hex(k1),
        "k2": hex(k2),
        "h": hex(one.handshake().hash()),
        "root_0": hex(one.root().0),
        "suite": suite,
        "finish_with_first_packet": hex([&finish[..], &first].concat()),
        "responder_first_packet": hex(answer),
    });
    vector(name, given, gives)
}

fn refusal() -> Value {
    let mut ends = Ends::new(XCHACHA20_POLY1305);
    ends.responder.protocols = vec![b"other/1".to_vec()];
    let dial =
        Dial::new(&ends.initiator, ends.initiator_id, ends.initiator_ephemeral).expect("a sound profile");
    let reception = Reception::new(&ends.responder, dial.init()).expect("an INIT in order");
    let response =
        reception.respond(ends.responder_id, ends.responder_ephemeral).expect("keys of large order");
    let Ok(Answer::Refusal(code)) = dial.read(response.datagram()) else {
        unreachable!("a refusal in order")
    };
    let mut given = ends.given();
    given["init"] = hex(dial.init()).into();
    let parameters = ends.responder.refusal(ends.initiator_id, ends.responder_id, code);
    given["response_payload"] = hex(parameters.to_bytes(1200 - RESPONSE_MESSAGE_OFFSET - 96)).into();
    vector("a refusal", given, json!({ "response": hex(response.datagram()), "code": code }))
}
