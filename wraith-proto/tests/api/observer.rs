//! What a passive observer can compute, and that it opens nothing.

use std::sync::{Arc, Mutex};

use blake2::{Blake2s256, Digest};
use wraith_proto::crypto::{CryptoProvider, HeaderKey, KeyMaterial, PacketKey, RustCrypto, Suite, X25519Key};
use wraith_proto::wire::{
    FinishPacket, HandshakeKind, InitPacket, PACKET_HEADER_LEN, PacketHeader, ProtectedPacket,
    ResponsePacket, apply_mask, expand_number,
};
use wraith_sim::{Pair, PairConfig};

use crate::common::{SMALL, assert_carries, of_kind, watch};

const SUITE: Suite = Suite::XChaCha20Poly1305;

/// Real cryptography that tells the test its secrets.
#[derive(Debug, Default)]
struct Spy {
    agreements: Arc<Mutex<Vec<[u8; 32]>>>,
    keys: Mutex<Vec<([u8; 32], [u8; 16])>>,
}

impl CryptoProvider for Spy {
    fn suites(&self) -> &[Suite] {
        &[SUITE]
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        self.keys.lock().expect("one thread").push((material.key, material.prefix));
        RustCrypto.key(suite, material)
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        RustCrypto.header_key(suite, key)
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        Box::new(SpiedKey { key: RustCrypto.x25519_key(secret), agreements: Arc::clone(&self.agreements) })
    }
}

/// A secret that tells what it agrees on.
struct SpiedKey {
    key: Box<dyn X25519Key>,
    agreements: Arc<Mutex<Vec<[u8; 32]>>>,
}

impl X25519Key for SpiedKey {
    fn public(&self) -> [u8; 32] {
        self.key.public()
    }

    fn agree(&self, public: &[u8; 32]) -> [u8; 32] {
        let shared = self.key.agree(public);
        self.agreements.lock().expect("one thread").push(shared);
        shared
    }
}

/// Everything that went over the wire in one session.
struct Wire {
    init: Vec<u8>,
    response: Vec<u8>,
    finish: Vec<u8>,
    packets: Vec<Vec<u8>>,
    peers: [[u8; 32]; 2],
}

fn record(spy: &'static Spy) -> Wire {
    let mut pair = Pair::new(PairConfig::new(21).with_both(|config| {
        config.crypto = spy;
        config.limits = SMALL;
    }));
    let seen = watch(&mut pair, |_| false);
    let (left, right) = pair.connect();
    assert_carries(&mut pair, left, right);
    let first = |kind| of_kind(&seen, kind).remove(0);
    let packets =
        seen.borrow().iter().filter(|sent| sent.kind().is_none()).map(|sent| sent.bytes.clone()).collect();
    Wire {
        init: first(HandshakeKind::Init),
        response: first(HandshakeKind::Response),
        finish: first(HandshakeKind::Finish),
        packets,
        peers: [*pair.left.peer_id().as_bytes(), *pair.right.peer_id().as_bytes()],
    }
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Blake2s256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// HMAC (RFC 2104) with BLAKE2s, whose block has 64 bytes.
fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        block.iter_mut().zip(key).for_each(|(pad, key)| *pad ^= key);
        block
    };
    let mut inner = Blake2s256::new();
    inner.update(pad(0x36));
    for part in parts {
        inner.update(part);
    }
    hash(&[&pad(0x5c), &inner.finalize()])
}

/// HKDF of Noise §4.3 with two outputs.
fn hkdf(chaining_key: &[u8; 32], input: &[u8]) -> ([u8; 32], [u8; 32]) {
    let temp = hmac(chaining_key, &[input]);
    let first = hmac(&temp, &[&[1]]);
    (first, hmac(&temp, &[&first, &[2]]))
}

/// The handshake hash: every byte that goes into it is on the wire.
fn handshake_hash(wire: &Wire) -> [u8; 32] {
    let mix = |h: [u8; 32], data: &[u8]| hash(&[&h, data]);
    let mut h = mix(hash(&[b"Noise_XX_25519_ChaChaPoly_BLAKE2s"]), b"WRAITH\0\0\0\x01");
    let init = InitPacket::parse(&wire.init).expect("an INIT").message();
    let response = ResponsePacket::parse(&wire.response).expect("a RESPONSE").message();
    let finish = FinishPacket::parse(&wire.finish).expect("a FINISH").message();
    for part in [
        &init[..32],
        &init[32..],
        &response[..32],
        &response[32..80],
        &response[80..],
        &finish[..48],
        &finish[48..],
    ] {
        h = mix(h, part);
    }
    h
}

/// The root that `PROTO §3.5` makes of these values.
fn root(k1: &[u8], k2: &[u8], h: &[u8]) -> [u8; 32] {
    blake3::derive_key("WRAITH v1 session root", &[k1, k2, h].concat())
}

/// A key of `PROTO §3.6`.
fn derive(purpose: &str, root: &[u8; 32], direction: u8) -> [u8; 32] {
    let material = [&root[..], &[0; 4], &[direction], &SUITE.to_wire().to_be_bytes()].concat();
    blake3::derive_key(&format!("WRAITH v1 {purpose}"), &material)
}

fn packet_key(root: &[u8; 32], direction: u8) -> KeyMaterial {
    let prefix = derive("nonce prefix", root, direction);
    KeyMaterial {
        key: derive("packet key", root, direction),
        prefix: *prefix.first_chunk().expect("32 bytes"),
    }
}

/// How many of `packets` open with keys from `root`.
fn opened(packets: &[Vec<u8>], root: &[u8; 32]) -> usize {
    let opens = |packet: &Vec<u8>, direction| {
        let mut packet = packet.clone();
        let header_key = RustCrypto.header_key(SUITE, &derive("header protection", root, direction));
        let mask = header_key.mask(ProtectedPacket::parse(&packet).expect("a packet").sample());
        apply_mask(&mut packet, mask);
        let number = expand_number(0, PacketHeader::parse(&packet).expect("a header").number);
        let key = RustCrypto.key(SUITE, &packet_key(root, direction));
        let (header, body) = packet.split_at_mut(PACKET_HEADER_LEN);
        key.open_in_place(number, header, body).is_ok()
    };
    packets.iter().filter(|packet| opens(packet, 0) || opens(packet, 1)).count()
}

/// Every root that public values lead to, in the places of `k1`, `k2` and `h` and by themselves.
fn public_roots(wire: &Wire) -> Vec<[u8; 32]> {
    let h = handshake_hash(wire);
    let initial = hash(&[b"Noise_XX_25519_ChaChaPoly_BLAKE2s"]);
    let (split1, split2) = hkdf(&initial, &[]);
    let (hashed1, hashed2) = hkdf(&h, &[]);
    let [left, right] = wire.peers;
    let ephemeral = |message: &[u8]| *message.first_chunk::<32>().expect("32 bytes");
    let values = [
        [0; 32],
        h,
        initial,
        split1,
        split2,
        hashed1,
        hashed2,
        left,
        right,
        ephemeral(&wire.init[41..]),
        ephemeral(&wire.response[25..]),
    ];
    let mut roots = values.to_vec();
    for a in &values {
        roots.push(blake3::derive_key("WRAITH v1 session root", a));
        roots.extend(values.iter().map(|b| root(a, b, &h)));
        roots.extend(values.iter().map(|b| root(a, b, &[])));
    }
    roots
}

/// `PROTO §3.5`
#[test]
fn no_key_follows_from_the_transcript_and_the_identities() {
    let wire = record(Box::leak(Box::default()));
    assert!(wire.packets.len() > 40);
    for root in public_roots(&wire) {
        assert_eq!(opened(&wire.packets[..4], &root), 0);
    }
}

/// The counterpart: the same observer opens what a handshake would protect whose root came from its hash alone.
#[test]
fn the_observer_would_open_packets_under_a_root_from_the_transcript_hash() {
    let wire = record(Box::leak(Box::default()));
    let h = handshake_hash(&wire);
    for weak in [root(&h, &h, &h), root(&[0; 32], &[0; 32], &h), h] {
        let mut packet = vec![0; PACKET_HEADER_LEN + 40];
        packet[0] = 0x40;
        let (header, body) = packet.split_at_mut(PACKET_HEADER_LEN);
        RustCrypto.key(SUITE, &packet_key(&weak, 0)).seal_in_place(0, header, body);
        let header_key = RustCrypto.header_key(SUITE, &derive("header protection", &weak, 0));
        let mask = header_key.mask(ProtectedPacket::parse(&packet).expect("a packet").sample());
        apply_mask(&mut packet, mask);
        let found = public_roots(&wire).iter().filter(|root| opened(&[packet.clone()], root) > 0).count();
        assert!(found >= 1);
    }
}

/// `PROTO §3.5, §3.6`: with the three agreements the same steps lead to the keys in use.
#[test]
fn the_three_agreements_and_the_transcript_give_the_keys() {
    let spy: &'static Spy = Box::leak(Box::default());
    let wire = record(spy);
    let mut agreements = spy.agreements.lock().expect("one thread").clone();
    // Both ends compute each of ee, es and se; what only one has computed is no agreement.
    agreements.dedup();
    let mut distinct = Vec::new();
    for agreement in agreements {
        if !distinct.contains(&agreement) {
            distinct.push(agreement);
        }
    }
    let mut chaining_key = hash(&[b"Noise_XX_25519_ChaChaPoly_BLAKE2s"]);
    assert_eq!(distinct.len(), 3, "ee, es, se");
    for agreement in &distinct {
        chaining_key = hkdf(&chaining_key, agreement).0;
    }
    let (k1, k2) = hkdf(&chaining_key, &[]);
    let root = root(&k1, &k2, &handshake_hash(&wire));
    let used = spy.keys.lock().expect("one thread").clone();
    for direction in [0, 1] {
        let material = packet_key(&root, direction);
        assert_eq!(used.iter().filter(|key| **key == (material.key, material.prefix)).count(), 2);
    }
    assert_eq!(opened(&wire.packets, &root), wire.packets.len());
}
