use alloc::vec::Vec;
use alloc::{format, vec};

use blake2::{Blake2s256, Digest};
use hex_literal::hex;

use super::*;
use crate::crypto::RustCrypto;

const VERSION: u32 = 1;

fn identity(seed: u8) -> Identity {
    Identity::from_seed([seed; 32])
}

fn static_key(seed: u8) -> StaticKey {
    StaticKey::new(&identity(seed), &RustCrypto)
}

fn end(role: Role, seed: u8) -> Noise {
    Noise::new(role, &static_key(seed), VERSION, &[seed ^ 0x55; 32])
}

fn pair() -> (Noise, Noise) {
    (end(Role::Initiator, 1), end(Role::Responder, 2))
}

fn write(noise: &mut Noise, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 2000];
    let len = noise.write(payload, &mut out).unwrap();
    out.truncate(len);
    out
}

fn read(noise: &mut Noise, message: &[u8]) -> Result<Vec<u8>, NoiseError> {
    let mut out = vec![0; 2000];
    let len = noise.read(message, &mut out)?;
    out.truncate(len);
    Ok(out)
}

/// Takes both ends past the first `count` messages and returns these.
fn exchange(initiator: &mut Noise, responder: &mut Noise, count: usize) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    for i in 0..count {
        let payload = format!("payload {i}").into_bytes();
        let (from, to) =
            if i % 2 == 0 { (&mut *initiator, &mut *responder) } else { (&mut *responder, &mut *initiator) };
        let message = write(from, &payload);
        assert_eq!(read(to, &message), Ok(payload));
        messages.push(message);
    }
    messages
}

#[test]
fn both_ends_agree_on_root_and_know_each_other() {
    // PROTO §3.5
    let (mut initiator, mut responder) = pair();
    exchange(&mut initiator, &mut responder, 3);
    assert_eq!(initiator.root().unwrap().secret(), responder.root().unwrap().secret());
    assert_eq!(initiator.remote_static(), Some(identity(2).peer_id().static_public()));
    assert_eq!(responder.remote_static(), Some(identity(1).peer_id().static_public()));
}

#[test]
fn both_ends_agree_on_the_finish_mac_key() {
    // PROTO §4.2
    let (mut initiator, mut responder) = pair();
    exchange(&mut initiator, &mut responder, 2);
    let key = initiator.finish_mac_key();
    assert!(key.is_some());
    assert_eq!(key, responder.finish_mac_key());
}

#[test]
fn secrets_exist_only_at_their_own_stage() {
    // PROTO §3.5, §4.2
    for count in 0..=3 {
        let (mut initiator, mut responder) = pair();
        exchange(&mut initiator, &mut responder, count);
        for (end, known_after) in [(&mut initiator, 2), (&mut responder, 3)] {
            assert_eq!(end.finish_mac_key().is_some(), count == 2);
            assert_eq!(end.root().is_some(), count == 3);
            assert_eq!(end.remote_static().is_some(), count >= known_after);
        }
    }
}

#[test]
fn the_finish_mac_key_is_not_the_public_split_of_an_early_state() {
    // Before the second message the split depends on the protocol name alone.
    let early = |seed| {
        let (k1, k2) = end(Role::Initiator, seed).split();
        [*k1, *k2].concat()
    };
    assert_eq!(early(1), early(9));
    let (mut initiator, mut responder) = pair();
    exchange(&mut initiator, &mut responder, 2);
    assert_ne!(initiator.finish_mac_key(), Some(blake3::derive_key("WRAITH v1 finish mac", &early(1))));
}

#[test]
fn sessions_of_the_same_identities_have_different_secrets() {
    let (mut initiator, mut responder) = pair();
    exchange(&mut initiator, &mut responder, 3);
    let first = initiator.root().unwrap().secret();
    let mut initiator = Noise::new(Role::Initiator, &static_key(1), VERSION, &[77; 32]);
    let mut responder = end(Role::Responder, 2);
    exchange(&mut initiator, &mut responder, 3);
    assert_ne!(initiator.root().unwrap().secret(), first);
}

#[test]
fn an_end_with_the_same_seed_begins_the_same_handshake_again() {
    let (mut impostor, mut responder) = (end(Role::Responder, 3), end(Role::Responder, 2));
    let mut initiator = end(Role::Initiator, 1);
    let first = write(&mut initiator, b"parameters");
    read(&mut impostor, &first).unwrap();
    read(&mut initiator, &write(&mut impostor, b"")).unwrap();
    assert_eq!(initiator.remote_static(), Some(identity(3).peer_id().static_public()));

    let mut again = end(Role::Initiator, 1);
    assert_eq!(write(&mut again, b"parameters"), first);
    read(&mut responder, &first).unwrap();
    read(&mut again, &write(&mut responder, b"")).unwrap();
    assert_eq!(again.remote_static(), Some(identity(2).peer_id().static_public()));
}

#[test]
fn ends_of_different_versions_do_not_understand_each_other() {
    // PROTO §3.4: the version is in the prologue.
    let mut initiator = end(Role::Initiator, 1);
    let mut responder = Noise::new(Role::Responder, &static_key(2), VERSION + 1, &[3; 32]);
    let message = write(&mut initiator, b"");
    assert_eq!(read(&mut responder, &message), Ok(vec![]));
    let message = write(&mut responder, b"");
    assert_eq!(read(&mut initiator, &message), Err(NoiseError::Rejected));
}

#[test]
fn an_ephemeral_of_small_order_is_refused_and_the_genuine_one_still_works() {
    // PROTO §3.3
    let (mut initiator, mut responder) = pair();
    read(&mut responder, &[0; 32]).unwrap();
    assert_eq!(responder.write(b"", &mut [0; 200]), Err(NoiseError::Rejected));

    let mut responder = end(Role::Responder, 2);
    exchange(&mut initiator, &mut responder, 1);
    let genuine = write(&mut responder, b"");
    let mut forged = genuine.clone();
    forged[..32].fill(0);
    assert_eq!(read(&mut initiator, &forged), Err(NoiseError::Rejected));
    assert_eq!(read(&mut initiator, &genuine), Ok(vec![]));
}

#[test]
fn a_second_message_altered_anywhere_does_no_harm() {
    // PROTO §4.3
    let (mut initiator, mut responder) = pair();
    exchange(&mut initiator, &mut responder, 1);
    let genuine = write(&mut responder, b"parameters");
    for position in 0..genuine.len() {
        let mut altered = genuine.clone();
        altered[position] ^= 1;
        assert_eq!(read(&mut initiator, &altered), Err(NoiseError::Rejected));
        assert_eq!(initiator.remote_static(), None);
        assert!(initiator.finish_mac_key().is_none());
    }
    for len in 0..genuine.len() {
        assert_eq!(read(&mut initiator, &genuine[..len]), Err(NoiseError::Rejected));
    }
    assert_eq!(read(&mut initiator, &genuine), Ok(b"parameters".to_vec()));
    let finish = write(&mut initiator, b"");
    assert_eq!(read(&mut responder, &finish), Ok(vec![]));
    assert_eq!(initiator.root().unwrap().secret(), responder.root().unwrap().secret());
}

#[test]
fn a_third_message_with_an_altered_payload_would_spoil_the_genuine_one() {
    // Why PROTO §4.2 puts a MAC around it. If this fails, snow recovers now and the MAC has lost its reason.
    let (mut initiator, mut responder) = pair();
    exchange(&mut initiator, &mut responder, 2);
    let genuine = write(&mut initiator, b"parameters");
    let mut altered = genuine.clone();
    altered[48] ^= 1;
    assert_eq!(read(&mut responder, &altered), Err(NoiseError::Rejected));
    assert_eq!(responder.remote_static(), None);
    assert_eq!(read(&mut responder, &genuine), Err(NoiseError::Rejected));
}

#[test]
fn the_finish_mac_stops_a_third_message_altered_anywhere() {
    // PROTO §4.2, §4.3
    let (mut initiator, mut responder) = pair();
    exchange(&mut initiator, &mut responder, 2);
    let key = initiator.finish_mac_key().unwrap();
    let datagram = [&b"outer header"[..], &write(&mut initiator, b"parameters")].concat();
    let mac = finish_mac(&key, &datagram);

    let key = responder.finish_mac_key().unwrap();
    for position in 0..datagram.len() {
        let mut altered = datagram.clone();
        altered[position] ^= 0x80;
        assert!(!verify_finish_mac(&key, &altered, &mac));
    }
    for position in 0..mac.len() {
        let mut altered = mac;
        altered[position] ^= 1;
        assert!(!verify_finish_mac(&key, &datagram, &altered));
    }
    assert!(verify_finish_mac(&key, &datagram, &mac));
    assert_eq!(read(&mut responder, &datagram[12..]), Ok(b"parameters".to_vec()));
}

#[test]
fn the_finish_mac_has_its_vector() {
    // PROTO §4.2; from a separate implementation of BLAKE3.
    let datagram: Vec<u8> = (0..200).collect();
    assert_eq!(finish_mac(&[7; 32], &datagram), hex!("485b8876223afc10ea7220bc09362d48"));
}

#[test]
fn buffers_of_the_exact_length_are_enough_and_shorter_ones_do_no_harm() {
    let (mut initiator, mut responder) = pair();
    for (i, overhead) in OVERHEAD.into_iter().enumerate() {
        let (from, to) =
            if i % 2 == 0 { (&mut initiator, &mut responder) } else { (&mut responder, &mut initiator) };
        let mut message = vec![0; overhead + 10];
        assert_eq!(from.write(&[5; 10], &mut message[1..]), Err(NoiseError::Rejected));
        assert_eq!(from.write(&[5; 10], &mut message), Ok(overhead + 10));
        let mut payload = [0; 10];
        assert_eq!(to.read(&message, &mut payload[1..]), Err(NoiseError::Rejected));
        assert_eq!(to.read(&message[..overhead - 1], &mut payload), Err(NoiseError::Rejected));
        assert_eq!(to.read(&message, &mut payload), Ok(10));
        assert_eq!(payload, [5; 10]);
    }
    assert!(responder.root().is_some());
}

#[test]
fn a_message_out_of_turn_or_after_the_end_is_rejected() {
    let (mut initiator, mut responder) = pair();
    assert_eq!(responder.write(b"", &mut [0; 200]), Err(NoiseError::Rejected));
    assert_eq!(initiator.read(&[9; 100], &mut [0; 200]), Err(NoiseError::Rejected));
    exchange(&mut initiator, &mut responder, 3);
    for end in [&mut initiator, &mut responder] {
        assert_eq!(end.write(b"", &mut [0; 200]), Err(NoiseError::Rejected));
        assert_eq!(end.read(&[9; 100], &mut [0; 200]), Err(NoiseError::Rejected));
        assert!(end.root().is_some());
    }
}

#[test]
fn the_longest_noise_message_passes_and_a_longer_one_does_not() {
    let mut initiator = end(Role::Initiator, 1);
    let mut out = vec![0; 70_000];
    assert_eq!(initiator.write(&vec![0; MAX_MESSAGE - 31], &mut out), Err(NoiseError::Rejected));
    assert_eq!(initiator.write(&vec![0; MAX_MESSAGE - 32], &mut out[..MAX_MESSAGE]), Ok(MAX_MESSAGE));
    let mut payload = vec![0; 70_000];
    let mut responder = end(Role::Responder, 2);
    assert_eq!(responder.read(&out[..=MAX_MESSAGE], &mut payload), Err(NoiseError::Rejected));
    assert_eq!(responder.read(&out[..MAX_MESSAGE], &mut payload), Ok(MAX_MESSAGE - 32));
}

#[test]
fn handshakes_can_move_between_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Noise>();
}

#[test]
fn dropping_a_handshake_leaves_a_blank_state_behind() {
    let (mut initiator, mut responder) = pair();
    exchange(&mut initiator, &mut responder, 3);
    let spent = initiator.split();
    initiator.wipe();
    assert_ne!(initiator.split(), spent);
    assert_eq!(initiator.state.get_remote_static(), None);
}

/// What everybody on the path can compute: the handshake hash, from names, prologue and messages.
fn public_handshake_hash(messages: &[Vec<u8>]) -> [u8; 32] {
    let mix =
        |h: [u8; 32], data: &[u8]| Blake2s256::new().chain_update(h).chain_update(data).finalize().into();
    let mut h: [u8; 32] = Blake2s256::digest(PROTOCOL).into();
    h = mix(h, b"WRAITH\0\0\0\x01");
    // e, payload; e, s, payload; s, payload.
    for (message, cuts) in messages.iter().zip([&[32][..], &[32, 80], &[48]]) {
        let mut from = 0;
        for &to in cuts.iter().chain([&message.len()]) {
            h = mix(h, &message[from..to]);
            from = to;
        }
    }
    h
}

#[test]
fn a_passive_observer_of_the_whole_handshake_does_not_learn_the_root() {
    // PROTO §3.5
    let (mut initiator, mut responder) = pair();
    let messages = exchange(&mut initiator, &mut responder, 3);
    let root = initiator.root().unwrap().secret();

    let h = public_handshake_hash(&messages);
    assert_eq!(initiator.state.get_handshake_hash(), h, "the observer does know the hash");
    assert_eq!(responder.state.get_handshake_hash(), h);

    let (public_k1, public_k2) = end(Role::Initiator, 9).split();
    let (i, r) = (identity(1).peer_id().static_public(), identity(2).peer_id().static_public());
    let guesses = [([0; 32], [0; 32]), (*public_k1, *public_k2), (i, r), (r, i), (h, h)];
    for (k1, k2) in guesses {
        assert_ne!(Root::new(&k1, &k2, &h).secret(), root);
    }
    assert_ne!(blake3::derive_key("WRAITH v1 session root", &h), root);

    // And both secrets count: with either of them alone nothing is won.
    let (k1, k2) = initiator.split();
    assert_eq!(Root::new(&k1, &k2, &h).secret(), root);
    assert_ne!(Root::new(&k1, &public_k2, &h).secret(), root);
    assert_ne!(Root::new(&public_k1, &k2, &h).secret(), root);
}
