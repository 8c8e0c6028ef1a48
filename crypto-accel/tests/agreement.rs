//! Both providers are one: the same bytes from either, for anything.

use aws_lc_rs::aead::quic;
use crrl::field::GF25519 as Element;
use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity as _, IsIdentity};
use proptest::prelude::*;
use wraith_crypto_accel::Accel;
use wraith_proto::crypto::{BadTag, CryptoProvider, KeyMaterial, PacketKey, RustCrypto, Suite, TAG_LEN};
use wraith_proto::sealed::{Letter, Mailbox, MessageId};
use wraith_proto::{Identity, PeerId};

const SUITES: [Suite; 2] = [Suite::XChaCha20Poly1305, Suite::Aes256Gcm];

/// The UDP payload that IPv4 has room for.
const MAX_DATAGRAM: usize = 65_507;

fn keys(suite: Suite, key: [u8; 32], prefix: [u8; 16]) -> [Box<dyn PacketKey>; 2] {
    let material = KeyMaterial { key, prefix };
    [Accel.key(suite, &material), RustCrypto.key(suite, &material)]
}

/// `len` bytes that follow from `seed`.
fn text(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn seal(key: &dyn PacketKey, packet_number: u64, header: &[u8], plaintext: &[u8]) -> Vec<u8> {
    let mut packet = [plaintext, &[0; TAG_LEN]].concat();
    key.seal_in_place(packet_number, header, &mut packet);
    packet
}

/// Seals with the first `borrowed` bytes elsewhere. What stands in their place is of no consequence.
fn seal_from(
    key: &dyn PacketKey,
    packet_number: u64,
    header: &[u8],
    plaintext: &[u8],
    borrowed: usize,
) -> Vec<u8> {
    let (payload, frames) = plaintext.split_at(borrowed);
    let mut packet = [&vec![0xa5; borrowed], frames, &[0x5a; TAG_LEN]].concat();
    key.seal_from(packet_number, header, payload, &mut packet);
    packet
}

fn assert_one(suite: Suite, material: ([u8; 32], [u8; 16]), number: u64, header: &[u8], plaintext: &[u8]) {
    let [ours, theirs] = keys(suite, material.0, material.1);
    let sealed = seal(&*ours, number, header, plaintext);
    assert_eq!(seal(&*theirs, number, header, plaintext), sealed);
    for key in [&ours, &theirs] {
        let mut packet = sealed.clone();
        assert_eq!(key.open_in_place(number, header, &mut packet), Ok(plaintext.len()));
        assert_eq!(packet[..plaintext.len()], *plaintext);
    }
}

/// What either says of an encoded point, which is that point's, and its X25519 form: whether it is a peer.
fn both_find(point: EdwardsPoint, public: [u8; 32]) -> bool {
    let form = point.to_montgomery().to_bytes();
    let [ours, theirs] = [Accel.is_peer(&public, &form), RustCrypto.is_peer(&public, &form)];
    assert_eq!((ours, theirs), (PeerId::from_bytes(public).is_ok(), ours), "{public:x?}");
    if let Ok(peer) = PeerId::from_bytes(public) {
        assert_eq!([Accel.static_public(&peer), RustCrypto.static_public(&peer)], [form; 2]);
    }
    // No other form, least of all one that X25519 takes for the same.
    let (mut larger, mut signed) = (form, form);
    larger[0] = larger[0].wrapping_add(1);
    signed[31] |= 0x80;
    for form in [larger, signed] {
        assert_eq!([Accel.is_peer(&public, &form), RustCrypto.is_peer(&public, &form)], [false; 2]);
    }
    ours
}

/// `PROTO §3.2`: 200 points of the large prime order, with each of the eight of small order, and these alone.
#[test]
fn both_find_peers_among_points_of_every_order() {
    for torsion in EIGHT_TORSION {
        let mut point = EdwardsPoint::identity();
        for nth in 0..=200 {
            let is_peer = nth > 0 && torsion.is_identity();
            for point in [point + torsion, -(point + torsion)] {
                assert_eq!(point.is_torsion_free() && !point.is_small_order(), is_peer, "{nth}");
                assert_eq!(both_find(point, point.compress().to_bytes()), is_peer, "{nth}");
            }
            point += ED25519_BASEPOINT_POINT;
        }
    }
}

proptest! {
    /// `PROTO §3.2`: points of any order, and bytes that may be no point.
    #[test]
    fn both_find_the_same_peers(bytes: [u8; 32], torsion in 0..8_usize, form: [u8; 32]) {
        let free = ED25519_BASEPOINT_POINT * Scalar::from_bytes_mod_order(bytes);
        for point in [free, free + EIGHT_TORSION[torsion]] {
            let is_peer = point.is_torsion_free() && !point.is_small_order();
            assert_eq!(both_find(point, point.compress().to_bytes()), is_peer);
        }
        if let Some(point) = CompressedEdwardsY(bytes).decompress() {
            let is_peer = point.is_torsion_free() && !point.is_small_order();
            assert_eq!(both_find(point, bytes), is_peer);
        }
        assert_eq!([Accel.is_peer(&bytes, &form), RustCrypto.is_peer(&bytes, &form)], [false; 2]);
        // Of every y that is no point's, the form that it would have is on the twist.
        let y = Element::decode_reduce(&bytes);
        let form = ((Element::ONE + y) / (Element::ONE - y)).encode();
        assert_eq!(Accel.is_peer(&bytes, &form), RustCrypto.is_peer(&bytes, &form));
    }
}

/// Encodings that no point has: `y` from the prime to 2^255 - 1 with either sign, and a sign where `x` is 0.
#[test]
fn neither_accepts_another_encoding() {
    let mut encodings = vec![[1, 0, 0x80], [0xec, 0xff, 0xff]];
    encodings.extend((0xed..=0xff).flat_map(|low| [[low, 0xff, 0x7f], [low, 0xff, 0xff]]));
    let mut points = 0;
    for [low, rest, top] in encodings {
        let mut public = [rest; 32];
        (public[0], public[31]) = (low, top);
        if let Some(point) = CompressedEdwardsY(public).decompress() {
            assert!(!both_find(point, public));
            points += 1;
        }
        assert_eq!([Accel.is_peer(&public, &[9; 32]), RustCrypto.is_peer(&public, &[9; 32])], [false; 2]);
    }
    assert!(points >= 12, "{points}");
}

/// Sizes at which block and batch processing change, and those of packets.
#[test]
fn both_seal_and_open_the_same_at_every_size_that_matters() {
    let sizes =
        (0..=600).chain([1024, 1183, 1200, 1443, 1472, 4095, 4096, 4097, 8192, 16_384, 65_490, 65_491]);
    for len in sizes {
        for suite in SUITES {
            assert_one(
                suite,
                ([len as u8; 32], [7; 16]),
                len as u64,
                b"thirteen byte",
                &text(len as u64, len),
            );
        }
    }
}

/// A borrowed payload of any length, with any frames behind it, gives the same packet.
#[test]
fn payloads_seal_the_same_from_where_they_lie() {
    let splits = [
        (0, 0),
        (0, 1),
        (1, 0),
        (15, 1),
        (16, 16),
        (17, 240),
        (1000, 24),
        (1432, 24),
        (1432, 0),
        (1200, 256),
        (1200, 257),
        (4095, 20),
        (4096, 0),
        (4096, 20),
        (4097, 256),
        (4097, 257),
        (8152, 24),
        (20_000, 3000),
        (65_467, 24),
        (65_491, 0),
    ];
    for suite in SUITES {
        let [ours, theirs] = keys(suite, [3; 32], [4; 16]);
        for (payload, frames) in splits {
            let plaintext = text(payload as u64, payload + frames);
            let expected = seal(&*theirs, 9, b"header", &plaintext);
            assert_eq!(
                seal_from(&*ours, 9, b"header", &plaintext, payload),
                expected,
                "{payload} and {frames}"
            );
            assert_eq!(seal_from(&*theirs, 9, b"header", &plaintext, payload), expected);
        }
    }
}

#[test]
#[should_panic(expected = "mid > len")]
fn a_packet_without_room_for_its_payload_is_a_bug_of_the_caller() {
    let [ours, _] = keys(Suite::Aes256Gcm, [3; 32], [4; 16]);
    ours.seal_from(0, b"", &[0; 30], &mut [0; 29]);
}

#[test]
fn what_either_refuses_the_other_refuses() {
    for suite in SUITES {
        let [ours, theirs] = keys(suite, [1; 32], [2; 16]);
        let sealed = seal(&*theirs, 9, b"header", &text(1, 40));
        for bit in 0..sealed.len() * 8 {
            let mut altered = sealed.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ours.open_in_place(9, b"header", &mut altered), Err(BadTag), "bit {bit}");
        }
        assert_eq!(ours.open_in_place(8, b"header", &mut sealed.clone()), Err(BadTag));
        assert_eq!(ours.open_in_place(9, b"heaDer", &mut sealed.clone()), Err(BadTag));
        for len in 0..=TAG_LEN {
            assert_eq!(ours.open_in_place(0, b"", &mut vec![0; len]), Err(BadTag));
        }
    }
}

#[test]
fn both_offer_the_same_suites_in_the_same_order() {
    assert_eq!(Accel.suites(), RustCrypto.suites());
}

proptest! {
    #[test]
    fn any_packet_is_the_same_from_both(
        (key, prefix, number) in any::<([u8; 32], [u8; 16], u64)>(),
        header in proptest::collection::vec(any::<u8>(), 0..40),
        (seed, len) in (any::<u64>(), 0..=MAX_DATAGRAM - TAG_LEN),
        borrowed in any::<prop::sample::Index>(),
    ) {
        let plaintext = text(seed, len);
        let borrowed = borrowed.index(len + 1);
        for suite in SUITES {
            assert_one(suite, (key, prefix), number, &header, &plaintext);
            let [ours, theirs] = keys(suite, key, prefix);
            let expected = seal(&*theirs, number, &header, &plaintext);
            prop_assert_eq!(&seal_from(&*ours, number, &header, &plaintext, borrowed), &expected);
            // A few frames behind a long payload, as in most packets.
            let borrowed = len.saturating_sub(borrowed % 300);
            prop_assert_eq!(&seal_from(&*ours, number, &header, &plaintext, borrowed), &expected);
        }
    }

    #[test]
    fn any_damage_is_noticed_by_both(
        (key, prefix, number) in any::<([u8; 32], [u8; 16], u64)>(),
        len in 0..3000_usize,
        (at, bit) in (any::<prop::sample::Index>(), 0..8),
    ) {
        for suite in SUITES {
            let [ours, theirs] = keys(suite, key, prefix);
            let mut packet = seal(&*ours, number, b"header", &text(number, len));
            let at = at.index(packet.len());
            packet[at] ^= 1_u8 << bit;
            prop_assert_eq!(ours.open_in_place(number, b"header", &mut packet.clone()), Err(BadTag));
            prop_assert_eq!(theirs.open_in_place(number, b"header", &mut packet), Err(BadTag));
        }
    }

    #[test]
    fn a_key_made_anew_in_place_is_the_new_key_alone(
        keys: [[u8; 32]; 2],
        prefixes: [[u8; 16]; 2],
        suites in [any::<bool>(), any::<bool>()],
    ) {
        let suites = suites.map(|aes| if aes { Suite::Aes256Gcm } else { Suite::XChaCha20Poly1305 });
        let [former, latter] = [0, 1].map(|at| KeyMaterial { key: keys[at], prefix: prefixes[at] });
        for provider in [&Accel as &dyn CryptoProvider, &RustCrypto] {
            let mut key = provider.key(suites[0], &former);
            prop_assert!(key.rekey(suites[1], &latter));
            prop_assert_eq!(
                seal(&*key, 7, b"header", b"text"),
                seal(&*RustCrypto.key(suites[1], &latter), 7, b"header", b"text")
            );
            let mut header_key = provider.header_key(suites[0], &keys[0]);
            prop_assert!(header_key.rekey(suites[1], &keys[1]));
            let sample = [9; 16];
            prop_assert_eq!(header_key.mask(&sample), RustCrypto.header_key(suites[1], &keys[1]).mask(&sample));
        }
    }

    /// `PROTO §5.7`
    #[test]
    fn any_sample_has_the_same_mask(key: [u8; 32], mut sample: [u8; 16], last_block: bool) {
        if last_block {
            sample[..4].fill(0xff);
        }
        // The core's, which the provider lends, and those of AWS-LC.
        for (suite, algorithm) in [(Suite::XChaCha20Poly1305, &quic::CHACHA20), (Suite::Aes256Gcm, &quic::AES_256)] {
            let theirs = quic::HeaderProtectionKey::new(algorithm, &key).unwrap().new_mask(&sample).unwrap();
            prop_assert_eq!(Accel.header_key(suite, &key).mask(&sample), theirs);
        }
    }

    #[test]
    fn any_two_secrets_agree_across_providers(a: [u8; 32], b: [u8; 32], anything: [u8; 32]) {
        let (ours, theirs) = (Accel.x25519_key(&a), RustCrypto.x25519_key(&b));
        prop_assert_eq!(ours.public(), RustCrypto.x25519_base(&a));
        prop_assert_eq!(theirs.public(), Accel.x25519_base(&b));
        prop_assert_eq!(ours.agree(&theirs.public()), theirs.agree(&ours.public()));
        // Half of all bytes are on the twist, and some are no canonical encoding.
        prop_assert_eq!(ours.agree(&anything), RustCrypto.x25519(&a, &anything));
        prop_assert_eq!(Accel.x25519(&a, &anything), RustCrypto.x25519(&a, &anything));
    }
}

#[test]
fn sealed_messages_are_the_same_and_open_with_either() {
    let providers: [&'static dyn CryptoProvider; 2] = [&Accel, &RustCrypto];
    let mailbox = |seed, crypto| Mailbox::new(Identity::from_seed([seed; 32]), crypto, 1);
    for len in [0, 11, 65_536, 100_000] {
        let body = text(7, len);
        let [one, other] = providers.map(|crypto| {
            let to = Identity::from_seed([2; 32]).peer_id();
            let letter = Letter { to, id: MessageId([7; 16]), time: 1, sign: true };
            let mut message = Vec::new();
            mailbox(1, crypto).seal(&letter, &[3; 32], &body, &mut message).unwrap();
            message
        });
        assert!(one == other, "{len}");
        for crypto in providers {
            let mut opened = Vec::new();
            assert!(mailbox(2, crypto).open(&one, &mut opened).unwrap().signed);
            assert!(opened == body, "{len}");
        }
    }
}
