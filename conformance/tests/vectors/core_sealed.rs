//! The core's sealed messages against the vectors.

use serde_json::Value;
use wraith_conformance::vectors::{array, bytes};
use wraith_proto::crypto::RustCrypto;
use wraith_proto::sealed::{Letter, Mailbox, MessageId, Opened};
use wraith_proto::{Identity, PeerId};

use super::{number, text, vectors};

fn mailbox(seed: &Value) -> Mailbox {
    Mailbox::new(Identity::from_seed(array(seed)), &RustCrypto, 1)
}

/// What a mailbox opens of either form.
fn open(mailbox: &mut Mailbox, form: &str, sealed: &[u8]) -> Option<(Opened, Vec<u8>)> {
    let (mut sealed, mut body) = (sealed.to_vec(), Vec::new());
    if form == "datagram" {
        mailbox.open_datagram(&mut sealed).ok().map(|(opened, body)| (opened, body.to_vec()))
    } else {
        mailbox.open(&sealed, &mut body).ok().map(|opened| (opened, body))
    }
}

/// `PROTO §12.2, §12.3, §12.5, §12.6, §12.7, §12.8, §12.9 and §12.10`
#[test]
fn the_core_seals_and_opens_these_messages() {
    let (mut sealed_ones, mut refused) = (0, 0);
    for vector in vectors("sealed.json") {
        let (given, gives, name) = (&vector["given"], &vector["gives"], &vector["name"]);
        let form = text(&given["form"]);
        let mut to = mailbox(&given["recipient_seed"]);
        if gives["refused"] == true {
            refused += 1;
            assert_eq!(open(&mut to, form, &bytes(&given["sealed"])), None, "{name}");
            continue;
        }
        sealed_ones += 1;
        let mut from = mailbox(&given["sender_seed"]);
        let letter = Letter {
            to: PeerId::from_bytes(array(&given["recipient"])).unwrap(),
            id: MessageId(array(&given["id"])),
            time: number(&given["time"]),
            sign: given["signed"] == true,
        };
        let len = given["body_len"].as_u64().unwrap() as usize;
        let body: Vec<u8> = (0..len).map(|at| (at + at / 256) as u8).collect();
        let mut sealed = Vec::new();
        if form == "datagram" {
            sealed.resize(len + 300, 0);
            let randomness = array(&given["randomness"]);
            let len = from.seal_datagram(&letter, &randomness, &body, &mut sealed).unwrap();
            sealed.truncate(len);
        } else {
            from.seal(&letter, &array(&given["randomness"]), &body, &mut sealed).unwrap();
        }
        assert_eq!(sealed.len() as u64, gives["length"].as_u64().unwrap(), "{name}");
        assert_eq!(*blake3::hash(&sealed).as_bytes(), array(&gives["blake3"]), "{name}");
        if let Some(whole) = gives.get("sealed") {
            assert_eq!(sealed, bytes(whole), "{name}");
        }
        let expected = Opened {
            from: PeerId::from_bytes(array(&gives["sender"])).unwrap(),
            id: letter.id,
            time: letter.time,
            signed: letter.sign,
        };
        assert!(open(&mut to, form, &sealed) == Some((expected, body)), "{name}");
    }
    assert_eq!((sealed_ones, refused), (18, 14));
}
