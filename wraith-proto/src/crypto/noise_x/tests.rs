use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use snow::{Builder, HandshakeState};

use super::super::resolver::Resolver;
use super::*;
use crate::crypto::RustCrypto;

const PROLOGUE: &[u8] = b"John Galt";
const EPHEMERAL: [u8; 32] = [3; 32];

fn public(secret: u8) -> [u8; 32] {
    RustCrypto.x25519_base(&[secret; 32])
}

fn shared(secret: u8, peer: u8) -> [u8; 32] {
    RustCrypto.x25519(&[secret; 32], &public(peer))
}

/// What secret 1 says to secret 2.
fn message(payload: &[u8]) -> (Vec<u8>, Zeroizing<[u8; 32]>) {
    let mut message = vec![0; PAYLOAD_AT + payload.len() + TAG_LEN];
    message[PAYLOAD_AT..PAYLOAD_AT + payload.len()].copy_from_slice(payload);
    let written = NoiseX::new(&RustCrypto, &Beginning::new(), PROLOGUE, &public(2))
        .write(&EPHEMERAL, &public(2), &public(1), &shared(1, 2), &mut message)
        .unwrap();
    let key = written.finish(&message[PAYLOAD_AT..]).derive("test");
    (message, key)
}

/// Sender, payload and derived key.
type Read = ([u8; 32], Vec<u8>, Zeroizing<[u8; 32]>);

/// What secret 2 reads.
fn read(message: &[u8]) -> Option<Read> {
    let mut message = message.to_vec();
    let (head, payload) = message.split_first_chunk_mut()?;
    let mut state = NoiseX::new(&RustCrypto, &Beginning::new(), PROLOGUE, &public(2));
    let sender = state.read_static(&*RustCrypto.x25519_key(&[2; 32]), head)?;
    let (len, finished) = state.read_payload_and_finish(&RustCrypto.x25519(&[2; 32], &sender), payload)?;
    Some((sender, payload[..len].to_vec(), finished.derive("test")))
}

fn snow(secret: u8, initiator: bool) -> HandshakeState {
    let resolver = Box::new(Resolver::new(&RustCrypto, None, &[0; 32]));
    let secret = [secret; 32];
    let builder = Builder::with_resolver("Noise_X_25519_ChaChaPoly_BLAKE2s".parse().unwrap(), resolver)
        .prologue(PROLOGUE)
        .unwrap()
        .local_private_key(&secret)
        .unwrap();
    if initiator {
        let peer = public(2);
        let builder = builder.remote_public_key(&peer).unwrap();
        builder.fixed_ephemeral_key_for_testing_only(&EPHEMERAL).build_initiator().unwrap()
    } else {
        builder.build_responder().unwrap()
    }
}

fn derived(mut state: HandshakeState) -> [u8; 32] {
    let (k1, k2) = state.dangerously_get_raw_split();
    blake3::derive_key("test", &[&k1, &k2, state.get_handshake_hash()].concat())
}

/// `PROTO §12.2`
#[test]
fn messages_and_keys_are_those_of_snow() {
    for len in [0, 1, 57, 300, 65_000] {
        let payload: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let (ours, key) = message(&payload);

        let mut sender = snow(1, true);
        let mut theirs = vec![0; ours.len()];
        assert_eq!(sender.write_message(&payload, &mut theirs).unwrap(), ours.len());
        assert_eq!(ours, theirs);
        assert_eq!(*key, derived(sender));

        let mut recipient = snow(2, false);
        let mut opened = vec![0; len + TAG_LEN];
        assert_eq!(recipient.read_message(&ours, &mut opened).unwrap(), len);
        assert_eq!(opened[..len], payload);
        assert_eq!(recipient.get_remote_static().unwrap(), public(1));
        assert_eq!(*key, derived(recipient));

        let (from, text, read_key) = read(&theirs).unwrap();
        assert_eq!((from, text, read_key), (public(1), payload, key));
    }
}

#[test]
fn an_altered_message_is_not_read() {
    let (good, _) = message(b"hello");
    assert!(read(&good).is_some());
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        assert!(read(&bad).is_none(), "{at}");
        assert!(read(&good[..at]).is_none(), "{at} bytes");
    }
}

/// `PROTO §3.3 and §12.2`: everybody could have written it.
#[test]
fn an_ephemeral_key_of_small_order_is_refused() {
    // Points of order 1, 2 and 8 (RFC 7748 §6.1 asks to look for their result).
    let mut eight = [0; 32];
    eight.copy_from_slice(&curve25519_dalek::constants::EIGHT_TORSION[1].to_montgomery().to_bytes());
    let mut one = [0; 32];
    one[0] = 1;
    for point in [[0; 32], one, eight] {
        assert_eq!(RustCrypto.x25519(&[2; 32], &point), [0; 32]);
        let mut state = NoiseX::new(&RustCrypto, &Beginning::new(), PROLOGUE, &public(2));
        let mut message = [0; PAYLOAD_AT];
        message[..32].copy_from_slice(&point);
        message[32..64].copy_from_slice(&public(1));
        state.mix_hash(&point);
        state.mix_key(&[0; 32]);
        state.encrypt(&mut message[32..]);
        let mut reader = NoiseX::new(&RustCrypto, &Beginning::new(), PROLOGUE, &public(2));
        assert!(reader.read_static(&*RustCrypto.x25519_key(&[2; 32]), &message).is_none());
    }
}

/// `PROTO §3.3 and §12.2`
#[test]
fn nothing_is_written_to_a_key_of_small_order() {
    let state = NoiseX::new(&RustCrypto, &Beginning::new(), PROLOGUE, &[0; 32]);
    let written = state.write(&EPHEMERAL, &[0; 32], &public(1), &[0; 32], &mut [0; 128]);
    assert!(written.is_none());
}
