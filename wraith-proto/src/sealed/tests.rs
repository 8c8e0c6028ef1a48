use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::crypto::RustCrypto;

mod forged;
mod notes;
mod segments;

const RANDOM: [u8; 32] = [9; 32];

fn mailbox(seed: u8) -> Mailbox {
    Mailbox::new(Identity::from_seed([seed; 32]), &RustCrypto, 4)
}

fn name(seed: u8) -> PeerId {
    Identity::from_seed([seed; 32]).peer_id()
}

fn letter(to: u8, sign: bool) -> Letter {
    Letter { to: name(to), id: MessageId([7; 16]), time: 1_764_547_200_123, sign }
}

fn opened(from: u8, signed: bool) -> Opened {
    Opened { from: name(from), id: MessageId([7; 16]), time: 1_764_547_200_123, signed }
}

/// From 1 to 2.
fn message(sign: bool, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    mailbox(1).seal(&letter(2, sign), &RANDOM, body, &mut out).unwrap();
    out
}

/// From 1 to 2.
fn datagram(sign: bool, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; body.len() + DATAGRAM_OVERHEAD + SIGNATURE_LEN];
    let len = mailbox(1).seal_datagram(&letter(2, sign), &RANDOM, body, &mut out).unwrap();
    out.truncate(len);
    out
}

/// What `seed` makes of a message; its body is empty unless it opens.
fn open(seed: u8, message: &[u8]) -> (Result<Opened, OpenError>, Vec<u8>) {
    let mut body = Vec::new();
    (mailbox(seed).open(message, &mut body), body)
}

fn open_datagram(seed: u8, datagram: &[u8]) -> Result<(Opened, Vec<u8>), OpenError> {
    let mut datagram = datagram.to_vec();
    mailbox(seed).open_datagram(&mut datagram).map(|(opened, body)| (opened, body.to_vec()))
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at ^ at >> 8) as u8).collect()
}

fn full() -> bool {
    std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full")
}

/// `PROTO §12.3, §12.5`
#[test]
fn a_datagram_opens_to_what_was_sealed() {
    for sign in [false, true] {
        for len in [0, 1, 11, 1000, 4000] {
            let sealed = datagram(sign, &bytes(len));
            let signature = if sign { 64 } else { 0 };
            assert_eq!(sealed.len(), 154 + signature + len);
            assert_eq!(sealed[0], 0x61);
            assert_eq!(open_datagram(2, &sealed), Ok((opened(1, sign), bytes(len))));
        }
    }
}

/// `PROTO §12.3, §12.6, §12.7`
#[test]
fn a_message_opens_to_what_was_sealed() {
    for sign in [false, true] {
        for (len, segments) in [(0, 1), (11, 1), (65_535, 1), (65_536, 1), (65_537, 2), (200_000, 4)] {
            let sealed = message(sign, &bytes(len));
            let signature = if sign { 64 } else { 0 };
            assert_eq!(sealed.len(), 161 + len + segments * 20 + signature);
            assert_eq!(sealed.len() as u64, sealed_len(len as u64, sign));
            assert_eq!(sealed[..8], *b"WRAITHS\x01");
            assert!(open(2, &sealed) == (Ok(opened(1, sign)), bytes(len)), "{len}");
        }
    }
}

/// `PROTO §12.2`: neither another identity nor the other name of the same X25519 key.
#[test]
fn nobody_but_the_recipient_opens() {
    let (message, datagram) = (message(false, b"hello"), datagram(true, b"hello"));
    for seed in [1, 3] {
        assert_eq!(open(seed, &message), (Err(OpenError::NotForUs), vec![]));
        assert_eq!(open_datagram(seed, &datagram), Err(OpenError::NotForUs));
    }
    let mut other = *name(2).as_bytes();
    other[31] ^= 0x80;
    let to = PeerId::from_bytes(other).unwrap();
    assert_eq!(to.static_public(), name(2).static_public());
    let mut out = Vec::new();
    mailbox(1).seal(&Letter { to, ..letter(2, false) }, &RANDOM, b"hello", &mut out).unwrap();
    assert_eq!(open(2, &out), (Err(OpenError::NotForUs), vec![]));
}

#[test]
fn a_peer_may_seal_to_itself() {
    let mut out = Vec::new();
    mailbox(1).seal(&letter(1, true), &RANDOM, b"note", &mut out).unwrap();
    assert_eq!(open(1, &out), (Ok(opened(1, true)), b"note".to_vec()));
}

/// `PROTO §12.12`
#[test]
fn what_is_remembered_of_a_peer_changes_no_byte_and_no_result() {
    let (mut one, mut two) = (mailbox(1), mailbox(2));
    assert_eq!((one.known_peers(), two.known_peers()), (0, 0));
    for known in [1, 1] {
        let (mut message, mut body) = (Vec::new(), Vec::new());
        one.seal(&letter(2, true), &RANDOM, b"hello", &mut message).unwrap();
        assert_eq!(message, super::tests::message(true, b"hello"));
        assert_eq!(two.open(&message, &mut body), Ok(opened(1, true)));
        assert_eq!(body, b"hello");
        assert_eq!((one.known_peers(), two.known_peers()), (known, known));
        let mut sealed = datagram(false, b"hello");
        let (found, body) = two.open_datagram(&mut sealed).unwrap();
        assert_eq!((found, &*body), (opened(1, false), &b"hello"[..]));
    }
    one.forget_peers();
    assert_eq!(one.known_peers(), 0);
}

/// `PROTO §12.12`
#[test]
fn a_peer_is_remembered_only_when_its_message_was_genuine() {
    let mut two = mailbox(2);
    let good = datagram(false, b"hello");
    for at in 1..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(two.open_datagram(&mut bad).is_err());
        assert_eq!(two.known_peers(), 0, "{at}");
    }
    two.open_datagram(&mut good.clone()).unwrap();
    assert_eq!(two.known_peers(), 1);
}

/// `PROTO §12.10`
#[test]
fn the_ephemeral_key_depends_on_all_that_a_message_says() {
    let ephemeral = |from: u8, letter: &Letter, randomness: &[u8; 32], body: &[u8]| -> [[u8; 32]; 2] {
        let mut message = Vec::new();
        mailbox(from).seal(letter, randomness, body, &mut message).unwrap();
        let mut datagram = [0; 600];
        mailbox(from).seal_datagram(letter, randomness, body, &mut datagram).unwrap();
        [message[8..40].try_into().unwrap(), datagram[1..33].try_into().unwrap()]
    };
    let base = letter(2, false);
    let keys = [
        ephemeral(1, &base, &RANDOM, b"hello"),
        ephemeral(3, &base, &RANDOM, b"hello"),
        ephemeral(1, &letter(3, false), &RANDOM, b"hello"),
        ephemeral(1, &letter(2, true), &RANDOM, b"hello"),
        ephemeral(1, &Letter { id: MessageId([8; 16]), ..base }, &RANDOM, b"hello"),
        ephemeral(1, &Letter { time: 0, ..base }, &RANDOM, b"hello"),
        ephemeral(1, &base, &[8; 32], b"hello"),
        ephemeral(1, &base, &RANDOM, b"hellp"),
    ];
    let mut all = keys.concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2 * keys.len());
    assert_eq!(ephemeral(1, &base, &RANDOM, b"hello"), keys[0]);

    let fields = [name(1).as_bytes(), &[7; 16][..], &base.time.to_be_bytes(), &[0]].concat();
    let hedge = blake3::hash(&[b"WRAITHS\x01", &fields[..], b"hello"].concat());
    let material = [RANDOM, [1; 32], *name(2).as_bytes(), *hedge.as_bytes()].concat();
    let secret = blake3::derive_key("WRAITH v1 sealed ephemeral", &material);
    assert_eq!(RustCrypto.x25519_base(&secret), keys[0][0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut one = mailbox(1);
    let letter = letter(2, false);
    let mut out = vec![0; MAX_DATAGRAM + 1];
    let most = MAX_DATAGRAM - DATAGRAM_OVERHEAD;
    assert_eq!(one.seal_datagram(&letter, &RANDOM, &bytes(most), &mut out), Ok(MAX_DATAGRAM));
    assert_eq!(one.seal_datagram(&letter, &RANDOM, &bytes(most + 1), &mut out), Err(SealError::Length));
    assert_eq!(one.seal_datagram(&letter, &RANDOM, b"hello", &mut out[..158]), Err(SealError::Room));
    assert_eq!(one.seal_datagram(&letter, &RANDOM, b"hello", &mut out[..159]), Ok(159));
}

#[test]
fn debug_shows_no_secrets() {
    assert_eq!(std::format!("{:?}", mailbox(1)), std::format!("Mailbox({})", name(1)));
    assert_eq!(std::format!("{:?}", MessageId([0xab; 16])), "ab".repeat(16));
}

proptest! {
    #[test]
    fn any_body_survives_both_forms(
        body in proptest::collection::vec(any::<u8>(), 0..3000),
        sign: bool, seeds: [u8; 2], id: [u8; 16], time: u64, randomness: [u8; 32],
    ) {
        let (mut from, mut to) = (mailbox(seeds[0]), mailbox(seeds[1]));
        let letter = Letter { to: to.peer_id(), id: MessageId(id), time, sign };
        let expected = Opened { from: from.peer_id(), id: MessageId(id), time, signed: sign };
        let (mut message, mut found) = (Vec::new(), Vec::new());
        from.seal(&letter, &randomness, &body, &mut message).unwrap();
        prop_assert_eq!(to.open(&message, &mut found), Ok(expected));
        prop_assert_eq!(&found, &body);
        let mut datagram = vec![0; 4000];
        let len = from.seal_datagram(&letter, &randomness, &body, &mut datagram).unwrap();
        let (opened, found) = to.open_datagram(&mut datagram[..len]).unwrap();
        prop_assert_eq!((opened, &*found), (expected, &body[..]));
    }

    #[test]
    fn any_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut body = Vec::new();
        prop_assert!(mailbox(2).open(&bytes, &mut body).is_err());
        let mut message = [&MAGIC[..], &bytes].concat();
        prop_assert!(mailbox(2).open(&message, &mut body).is_err());
        message.splice(..8, [0x61]);
        prop_assert!(mailbox(2).open_datagram(&mut message).is_err());
        prop_assert!(body.is_empty());
    }
}
