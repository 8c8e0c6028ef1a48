//! What somebody seals who does not keep to the rules.

use curve25519_dalek::constants::EIGHT_TORSION;
use curve25519_dalek::edwards::CompressedEdwardsY;

use super::*;
use crate::crypto::{Beginning, NoiseX};

/// A datagram to 2 with this payload, of whoever has `own` in common with 2.
fn forged(clear: &[u8], own: &[u8; 32], payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0; PAYLOAD_AT];
    message.extend_from_slice(payload);
    message.extend_from_slice(&[0; TAG_LEN]);
    let two = Identity::from_seed([2; 32]);
    let shared = RustCrypto.x25519(&two.static_secret(), own);
    let to = two.peer_id();
    NoiseX::new(&RustCrypto, &Beginning::new(), &prologue(clear, &to), &to.static_public())
        .write(&[5; 32], &to.static_public(), own, &shared, &mut message)
        .unwrap();
    [clear, &message].concat()
}

fn fields(from: &[u8; 32], flags: u8) -> Vec<u8> {
    [from, &[7; 16][..], &1_764_547_200_123_u64.to_be_bytes(), &[flags]].concat()
}

/// `PROTO §12.4`
#[test]
fn a_sender_has_the_name_of_its_key() {
    let one = name(1);
    let good = [&fields(one.as_bytes(), 0)[..], b"hello"].concat();
    let datagram = forged(&[0x61], &one.static_public(), &good);
    assert_eq!(open_datagram(2, &datagram), Ok((opened(1, false), b"hello".to_vec())));

    let lie = [&fields(name(3).as_bytes(), 0)[..], b"hello"].concat();
    let mut two = mailbox(2);
    for _ in 0..2 {
        let mut datagram = forged(&[0x61], &one.static_public(), &lie);
        assert_eq!(two.open_datagram(&mut datagram), Err(OpenError::Sender));
        // And again when the holder of the key is remembered.
        two.open_datagram(&mut super::datagram(false, b"hello")).unwrap();
    }
}

/// `PROTO §3.2 and §12.4`: names that several secrets, or everybody, could have.
#[test]
fn a_sender_has_an_acceptable_name() {
    let point = CompressedEdwardsY(*name(1).as_bytes()).decompress().unwrap();
    for torsion in &EIGHT_TORSION[1..] {
        let twin = point + torsion;
        let payload = fields(twin.compress().as_bytes(), 0);
        let datagram = forged(&[0x61], twin.to_montgomery().as_bytes(), &payload);
        assert_eq!(open_datagram(2, &datagram), Err(OpenError::Sender));
    }
    for small in EIGHT_TORSION {
        let payload = fields(small.compress().as_bytes(), 0);
        let datagram = forged(&[0x61], small.to_montgomery().as_bytes(), &payload);
        assert_eq!(open_datagram(2, &datagram), Err(OpenError::NotForUs));
    }
    // y = 3 as 3 + p: another encoding of a name.
    let mut encoding = [0xff; 32];
    (encoding[0], encoding[31]) = (0xf0, 0x7f);
    let point = CompressedEdwardsY(encoding).decompress().unwrap();
    let datagram = forged(&[0x61], point.to_montgomery().as_bytes(), &fields(&encoding, 0));
    assert_eq!(open_datagram(2, &datagram), Err(OpenError::Sender));
}

/// The holder of a secret has the name with the other sign as well; they are two names.
#[test]
fn the_other_name_of_a_key_is_told_from_the_first() {
    let mut other = *name(1).as_bytes();
    other[31] ^= 0x80;
    let payload = fields(&other, 0);
    let mut two = mailbox(2);
    for _ in 0..2 {
        let mut datagram = forged(&[0x61], &name(1).static_public(), &payload);
        let (opened, _) = two.open_datagram(&mut datagram).unwrap();
        assert_eq!(opened.from, PeerId::from_bytes(other).unwrap());
        let mut datagram = super::datagram(false, b"");
        assert_eq!(two.open_datagram(&mut datagram).unwrap().0.from, name(1));
    }
}

/// `PROTO §12.4`
#[test]
fn nothing_is_sealed_to_a_name_that_anybody_could_have() {
    for small in EIGHT_TORSION {
        assert!(PeerId::from_bytes(small.compress().to_bytes()).is_err());
    }
}

/// `PROTO §12.3`
#[test]
fn unknown_flags_and_missing_fields_are_refused() {
    let own = name(1).static_public();
    for flags in [2, 3, 0x80, 0xff] {
        let payload = fields(name(1).as_bytes(), flags);
        assert_eq!(open_datagram(2, &forged(&[0x61], &own, &payload)), Err(OpenError::Malformed));
        let head = forged(&MAGIC, &own, &payload);
        assert_eq!(
            mailbox(2).open_head(head.as_slice().try_into().unwrap()).err(),
            Some(OpenError::Malformed)
        );
    }
    let signed = [fields(name(1).as_bytes(), 1), vec![0; 63]].concat();
    for len in (0..57).chain(57..signed.len()) {
        let payload = if len < 57 { &fields(name(1).as_bytes(), 0)[..len] } else { &signed[..len] };
        assert_eq!(open_datagram(2, &forged(&[0x61], &own, payload)), Err(OpenError::Malformed), "{len}");
    }
}

/// `PROTO §12.5`
#[test]
fn every_byte_of_a_datagram_is_authenticated() {
    for sign in [false, true] {
        let good = datagram(sign, b"hello");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            let expected = if at == 0 { OpenError::NotSealed } else { OpenError::NotForUs };
            assert_eq!(open_datagram(2, &bad), Err(expected), "{at}");
            let expected = if at == 0 {
                OpenError::NotSealed
            } else if at < 81 {
                OpenError::Malformed
            } else {
                OpenError::NotForUs
            };
            assert_eq!(open_datagram(2, &good[..at]), Err(expected), "{at} bytes");
        }
        assert_eq!(open_datagram(2, &[&good[..], &[0]].concat()), Err(OpenError::NotForUs));
    }
}

/// `PROTO §12.2`: the form is part of what is authenticated.
#[test]
fn a_datagram_is_no_message_and_a_message_no_datagram() {
    let payload = fields(name(1).as_bytes(), 0);
    let own = name(1).static_public();
    let (datagram, message) = (forged(&[0x61], &own, &payload), forged(&MAGIC, &own, &payload));
    let as_message = [&MAGIC[..], &datagram[1..]].concat();
    assert_eq!(
        mailbox(2).open_head(as_message.as_slice().try_into().unwrap()).err(),
        Some(OpenError::NotForUs)
    );
    let as_datagram = [&[0x61][..], &message[8..]].concat();
    assert_eq!(open_datagram(2, &as_datagram), Err(OpenError::NotForUs));
    assert!(open_datagram(2, &datagram).is_ok());
    assert!(mailbox(2).open_head(message.as_slice().try_into().unwrap()).is_ok());
}

/// What the signature of 1 covers, of a body to 2.
fn text(from: &PeerId, to: &PeerId, id: u8, time: u64, body: &[u8]) -> Vec<u8> {
    [
        &b"WRAITH v1 sealed\0"[..],
        from.as_bytes(),
        to.as_bytes(),
        &[id; 16],
        &time.to_be_bytes(),
        blake3::hash(body).as_bytes(),
    ]
    .concat()
}

/// `PROTO §12.9`
#[test]
fn a_signature_is_of_this_body_to_this_recipient() {
    let (one, two, three) = (Identity::from_seed([1; 32]), name(2), name(3));
    let time = 1_764_547_200_123;
    let of = |signer: &Identity, text: &[u8]| {
        let payload = [&fields(one.peer_id().as_bytes(), 1)[..], &signer.sign(text), b"hello"].concat();
        open_datagram(2, &forged(&[0x61], &one.peer_id().static_public(), &payload))
    };
    let good = text(&one.peer_id(), &two, 7, time, b"hello");
    assert_eq!(of(&one, &good), Ok((opened(1, true), b"hello".to_vec())));
    let from = one.peer_id();
    for other in [
        text(&from, &three, 7, time, b"hello"),
        text(&three, &two, 7, time, b"hello"),
        text(&from, &two, 8, time, b"hello"),
        text(&from, &two, 7, time + 1, b"hello"),
        text(&from, &two, 7, time, b"hellp"),
        good[17..].to_vec(),
    ] {
        assert_eq!(of(&one, &other), Err(OpenError::Signature));
    }
    assert_eq!(of(&Identity::from_seed([3; 32]), &good), Err(OpenError::Signature));
}

/// `PROTO §12.9`: what came before is the sender's, but nothing of the last segment is handed out.
#[test]
fn the_last_segment_is_kept_when_the_signature_is_wrong() {
    let (mut head, mut out) = ([0; HEAD_LEN], vec![0; MAX_SEALED_SEGMENT]);
    let first = bytes(SEGMENT_LEN);
    let mut one = mailbox(1);
    let mut stream = one.begin(&letter(2, true), &RANDOM, &first, &mut head).unwrap();
    let mut reader = mailbox(2).open_head(&head).unwrap();
    assert_eq!(reader.claims(), &opened(1, true));
    let len = stream.segment(&first, &mut out).unwrap();
    let (header, sealed) = out[..len].split_first_chunk_mut().unwrap();
    assert_eq!(reader.segment(*header, sealed).unwrap(), first);
    stream.body_for_test().update(b"something else");
    let len = stream.last(b"hello", &mut out).unwrap();
    let (header, sealed) = out[..len].split_first_chunk_mut().unwrap();
    assert_eq!(reader.segment(*header, sealed), Err(OpenError::Signature));
    assert!(!reader.is_ended());
    assert_eq!(reader.end(), Err(OpenError::Truncated));
}
