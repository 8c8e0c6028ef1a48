//! Published vectors, by the primitives of both implementations.

use serde_json::Value;
use wraith_conformance::peer::{HeaderKey, Identity, KeyMaterial, KeyPair, Keys, Noise, Role};
use wraith_conformance::vectors::{array, bytes};
use wraith_proto::Identity as CoreIdentity;
use wraith_proto::crypto::{CryptoProvider, KeyMaterial as CoreMaterial, RustCrypto, Suite};

use super::vectors;

/// The vectors of one primitive.
fn of(name: &str) -> Vec<Value> {
    let all: Vec<Value> =
        vectors("published.json").into_iter().filter(|vector| vector["name"] == name).collect();
    assert!(!all.is_empty(), "{name}");
    assert!(all.iter().all(|vector| !vector["given"]["source"].as_str().unwrap().is_empty()));
    all
}

/// Seals in both implementations with this key, prefix and number.
fn seal(suite: Suite, vector: &Value, prefix: [u8; 16], number: u64) {
    let (given, expected) = (&vector["given"], bytes(&vector["gives"]["sealed"]));
    let (key, aad, plaintext) = (array(&given["key"]), bytes(&given["aad"]), bytes(&given["plaintext"]));
    let keys = Keys::new(suite.to_wire(), KeyMaterial { key, prefix }).unwrap();
    assert_eq!(keys.seal(number, &aad, &plaintext), expected);
    assert_eq!(keys.open(number, &aad, &expected), Ok(plaintext.clone()));
    let core = RustCrypto.key(suite, &CoreMaterial { key, prefix });
    let mut packet = [&plaintext[..], &[0; 16]].concat();
    core.seal_in_place(number, &aad, &mut packet);
    assert_eq!(packet, expected);
}

/// `PROTO §5.6`
#[test]
fn xchacha20_poly1305_is_that_of_the_draft() {
    for vector in of("XChaCha20-Poly1305") {
        let nonce: [u8; 24] = array(&vector["given"]["nonce"]);
        let (prefix, number) = (nonce[..16].try_into().unwrap(), nonce[16..].try_into().unwrap());
        seal(Suite::XChaCha20Poly1305, &vector, prefix, u64::from_le_bytes(number));
    }
}

/// `PROTO §5.6`
#[test]
fn aes_256_gcm_is_that_of_its_authors() {
    for vector in of("AES-256-GCM") {
        let mut prefix = [0; 16];
        prefix[..12].copy_from_slice(&bytes(&vector["given"]["nonce"]));
        seal(Suite::Aes256Gcm, &vector, prefix, 0);
    }
}

/// `PROTO §5.7`
#[test]
fn header_protection_is_that_of_quic() {
    for vector in of("header protection") {
        let given = &vector["given"];
        let (key, sample) = (array(&given["header_key"]), array(&given["sample"]));
        let suite = u16::try_from(given["suite"].as_u64().unwrap()).unwrap();
        let expected: [u8; 5] = array(&vector["gives"]["mask"]);
        assert_eq!(HeaderKey::new(suite, key).unwrap().mask(&sample), expected);
        let core = RustCrypto.header_key(Suite::from_wire(suite).unwrap(), &key);
        assert_eq!(core.mask(&sample), expected);
    }
}

/// `PROTO §1.2`: both implementations hash by the same library, so it alone is looked at.
#[test]
fn blake3_is_that_of_its_authors() {
    for vector in of("BLAKE3") {
        let (given, gives) = (&vector["given"], &vector["gives"]);
        let len = given["input_len"].as_u64().unwrap();
        let input: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        assert_eq!(*blake3::hash(&input).as_bytes(), array(&gives["hash"]));
        assert_eq!(*blake3::keyed_hash(&array(&given["key"]), &input).as_bytes(), array(&gives["keyed"]));
        let context = given["context"].as_str().unwrap();
        assert_eq!(blake3::derive_key(context, &input), array(&gives["derive_key"]));
    }
}

/// `PROTO §3.3`
#[test]
fn x25519_is_that_of_rfc_7748() {
    for vector in of("X25519") {
        let (given, shared) = (&vector["given"], array(&vector["gives"]["shared"]));
        let (secret, public) = (array(&given["secret"]), array(&given["public"]));
        assert_eq!(KeyPair::new(secret).agree(&public), Ok(shared));
        assert_eq!(RustCrypto.x25519(&secret, &public), shared);
    }
}

/// `PROTO §3.1`
#[test]
fn a_peer_id_is_the_public_key_of_rfc_8032() {
    for vector in of("Ed25519 public key") {
        let (seed, id): ([u8; 32], _) = (array(&vector["given"]["seed"]), array(&vector["gives"]["peer_id"]));
        assert_eq!(Identity::from_seed(&seed).id, id);
        assert_eq!(*CoreIdentity::from_seed(seed).peer_id().as_bytes(), id);
    }
}

/// `PROTO §3.4`: the core's handshake is compared with the second implementation's in a live one.
#[test]
fn noise_xx_is_that_of_others() {
    for vector in of("Noise XX") {
        let (given, gives) = (&vector["given"], &vector["gives"]);
        let prologue = bytes(&given["prologue"]);
        let end = |role, end: &str| {
            let keys = |kind| KeyPair::new(array(&given[format!("{end}_{kind}")]));
            Noise::new(role, &prologue, keys("static"), keys("ephemeral"))
        };
        let mut ends = [end(Role::Initiator, "init"), end(Role::Responder, "resp")];
        let messages = gives["messages"].as_array().unwrap();
        for (turn, message) in messages.iter().take(3).enumerate() {
            let payload = bytes(&given["payloads"][turn]);
            let written = ends[turn % 2].write(&payload).unwrap();
            assert_eq!(written, bytes(message), "message {turn}");
            assert_eq!(ends[1 - turn % 2].read(&written), Ok(payload));
        }
        let [initiator, responder] = ends;
        assert_eq!((initiator.split(), initiator.hash()), (responder.split(), responder.hash()));
        if let Some(hash) = gives.get("h") {
            assert_eq!(initiator.hash(), array(hash));
        }
        transport(&initiator, given, messages);
    }
}

/// The messages behind the handshake prove both outputs of `Split()` (Noise §5.2).
fn transport(noise: &Noise, given: &Value, messages: &[Value]) {
    use chacha20poly1305::aead::Aead;
    use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
    for (turn, message) in messages.iter().enumerate().skip(3) {
        // Message 3 is the first of the responder, 4 the first of the initiator.
        let key = noise.split()[turn % 2];
        let nonce = [0; 12];
        assert!(turn < 5, "later ones have other nonces");
        let sealed =
            ChaCha20Poly1305::new((&key).into()).encrypt(&nonce.into(), &*bytes(&given["payloads"][turn]));
        assert_eq!(sealed.unwrap(), bytes(message), "message {turn}");
    }
}
