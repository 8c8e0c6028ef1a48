use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use curve25519_dalek::constants::EIGHT_TORSION;
use hex_literal::hex;
use proptest::prelude::*;

use super::*;
use crate::crypto::{CryptoProvider, RustCrypto};

/// RFC 8032 §7.1, test 1.
const SEED: [u8; 32] = hex!("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
const PUBLIC: [u8; 32] = hex!("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
const TEXT: &str = "25njqamcweflpvkl73j4szahhihoc4xt3ktcgjnpaingr5yhkena";

fn point(bytes: [u8; 32]) -> EdwardsPoint {
    CompressedEdwardsY(bytes).decompress().unwrap()
}

fn id(point: EdwardsPoint) -> Result<PeerId, BadPeerId> {
    PeerId::from_bytes(point.compress().to_bytes())
}

/// `y` coordinate and sign bit as an encoding, however large `y` is below 2^255.
fn encoding(low: u8, rest: u8, top: u8, sign: bool) -> [u8; 32] {
    let mut bytes = [rest; 32];
    bytes[0] = low;
    bytes[31] = top | (u8::from(sign) << 7);
    bytes
}

#[test]
fn the_peer_id_is_the_ed25519_public_key() {
    // PROTO §3.1
    assert_eq!(Identity::from_seed(SEED).peer_id().as_bytes(), &PUBLIC);
    assert_eq!(Identity::from_seed(SEED).seed(), &SEED);
}

#[test]
fn the_noise_key_is_the_x25519_form() {
    // PROTO §3.1; secret and public from separate implementations of SHA-512 and of the birational map.
    let identity = Identity::from_seed(SEED);
    assert_eq!(
        *identity.static_secret(),
        hex!("307c83864f2833cb427a2ef1c00a013cfdff2768d980c0a3a520f006904de94f")
    );
    let public = hex!("d85e07ec22b0ad881537c2f44d662d1a143cf830c57aca4305d85c7a90f6b62e");
    assert_eq!(identity.peer_id().static_public(), public);
    assert_eq!(RustCrypto.x25519_base(&identity.static_secret()), public);
}

#[test]
fn points_of_small_order_are_refused() {
    // PROTO §3.2
    for torsion in EIGHT_TORSION {
        assert_eq!(id(torsion), Err(BadPeerId));
    }
}

#[test]
fn encodings_that_are_not_canonical_are_refused() {
    // PROTO §3.2: y from p to 2^255 - 1 with either sign, and a sign on the two points where x is 0.
    // These are all there are, and none happens to be torsion-free, so two of the checks refuse each.
    let mut encodings = vec![encoding(1, 0, 0, true), encoding(0xec, 0xff, 0x7f, true)];
    for sign in [false, true] {
        encodings.extend((0xed..=0xff).map(|low| encoding(low, 0xff, 0x7f, sign)));
    }
    let on_curve = |bytes: &&[u8; 32]| CompressedEdwardsY(**bytes).decompress().is_some();
    assert!(encodings.iter().filter(on_curve).count() >= 12);
    for bytes in encodings {
        assert_eq!(PeerId::from_bytes(bytes), Err(BadPeerId), "{bytes:x?}");
    }
}

#[test]
fn coordinates_are_canonical_up_to_the_prime_with_either_sign() {
    // PROTO §3.2
    for sign in [false, true] {
        for low in 0..=0xff {
            assert_eq!(is_canonical(encoding(low, 0xff, 0x7f, sign)), low < 0xed, "{low:#x}");
            for smaller in [encoding(low, 0xfe, 0x7f, sign), encoding(low, 0xff, 0x7e, sign)] {
                assert!(is_canonical(smaller), "{low:#x}");
            }
        }
    }
}

#[test]
fn of_sixteen_points_with_one_secret_only_two_are_names() {
    // PROTO §3.2
    let a = point(PUBLIC);
    let mut accepted = Vec::new();
    for base in [a, -a] {
        for torsion in EIGHT_TORSION {
            accepted.extend(id(base + torsion));
        }
    }
    assert_eq!(accepted, [id(a).unwrap(), id(-a).unwrap()]);
}

#[test]
fn a_point_and_its_negative_are_two_names_with_one_x25519_form() {
    // PROTO §3.2: names are compared as 32 bytes.
    let (a, negative) = (id(point(PUBLIC)).unwrap(), id(-point(PUBLIC)).unwrap());
    assert_ne!(a, negative);
    assert_eq!(a.static_public(), negative.static_public());
}

#[test]
fn bytes_off_the_curve_are_refused() {
    // PROTO §3.2
    let mut off = [0; 32];
    off[0] = 2;
    assert!(CompressedEdwardsY(off).decompress().is_none());
    assert_eq!(PeerId::from_bytes(off), Err(BadPeerId));
}

#[test]
fn the_text_of_a_peer_id_is_lower_case_base32() {
    // PROTO §3.1; texts from a separate implementation of RFC 4648.
    for (bytes, text) in [
        (PUBLIC, TEXT),
        ([0; 32], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        ([0xff; 32], "777777777777777777777777777777777777777777777777777q"),
        (
            hex!("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"),
            "aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dypq",
        ),
    ] {
        assert_eq!(encode(&bytes), text.as_bytes());
        assert_eq!(decode(text.as_bytes().try_into().unwrap()), Ok(bytes));
    }
    assert_eq!(Identity::from_seed(SEED).peer_id().to_string(), TEXT);
    assert_eq!(TEXT.parse(), PeerId::from_bytes(PUBLIC).map_err(PeerIdError::Key));
}

#[test]
fn a_text_of_bytes_that_are_no_peer_is_refused() {
    // PROTO §3.2: the neutral point, and a y-coordinate of no point.
    for low in [1, 2] {
        let text = String::from_utf8(encode(&encoding(low, 0, 0, false)).to_vec()).unwrap();
        assert_eq!(text.parse::<PeerId>(), Err(PeerIdError::Key(BadPeerId)));
    }
    assert_eq!(PeerIdError::Key(BadPeerId).to_string(), "the peer id is not an acceptable public key");
}

#[test]
fn a_text_of_another_length_is_refused() {
    for text in ["", &TEXT[1..], &format!("{TEXT}a"), &format!("{TEXT}====")] {
        assert_eq!(text.parse::<PeerId>(), Err(PeerIdError::Length));
    }
}

#[test]
fn other_characters_and_upper_case_are_refused() {
    for character in ["A", "Z", "0", "1", "8", "9", "=", " ", "-"] {
        let text = format!("{character}{}", &TEXT[1..]);
        assert_eq!(text.parse::<PeerId>(), Err(PeerIdError::Alphabet));
    }
    assert_eq!(TEXT.to_uppercase().parse::<PeerId>(), Err(PeerIdError::Alphabet));
    assert_eq!(format!("ä{}", &TEXT[2..]).parse::<PeerId>(), Err(PeerIdError::Alphabet));
}

#[test]
fn spare_bits_that_are_set_are_refused() {
    let parsed: Vec<_> = ALPHABET
        .iter()
        .map(|last| decode(format!("{}{}", &TEXT[..51], char::from(*last)).as_bytes().try_into().unwrap()))
        .collect();
    let accepted: Vec<_> = (0..32).filter(|i| parsed[*i].is_ok()).collect();
    assert_eq!(accepted, [0, 16]);
    assert_eq!(parsed[1], Err(PeerIdError::NotCanonicalText));
}

#[test]
fn debug_shows_the_name_and_no_secret() {
    assert_eq!(format!("{:?}", Identity::from_seed(SEED).peer_id()), TEXT);
    assert_eq!(format!("{:?}", Identity::from_seed(SEED)), format!("Identity({TEXT})"));
    assert_eq!(format!("{:>54}", Identity::from_seed(SEED).peer_id()), format!("  {TEXT}"));
}

proptest! {
    #[test]
    fn any_bytes_survive_the_text(bytes: [u8; 32]) {
        prop_assert_eq!(decode(&encode(&bytes)), Ok(bytes));
    }

    #[test]
    fn a_text_that_is_accepted_is_the_only_one(text in "[a-z2-7]{52}") {
        if let Ok(bytes) = decode(text.as_bytes().try_into().unwrap()) {
            prop_assert_eq!(&encode(&bytes)[..], text.as_bytes());
        }
    }

    #[test]
    fn any_text_is_read_without_panic_and_only_at_its_length(text in any::<String>()) {
        prop_assert_eq!(text.parse::<PeerId>() == Err(PeerIdError::Length), text.len() != 52);
    }

    #[test]
    fn the_name_of_any_seed_is_acceptable(seed: [u8; 32]) {
        let identity = Identity::from_seed(seed);
        let peer = identity.peer_id();
        prop_assert_eq!(PeerId::from_bytes(*peer.as_bytes()), Ok(peer));
        prop_assert_eq!(peer.static_public(), RustCrypto.x25519_base(&identity.static_secret()));
    }

    /// `PROTO §3.2`, by dalek's multiplication by the group order.
    #[test]
    fn just_the_canonical_points_without_torsion_are_peers(bytes: [u8; 32], torsion in 0..8_usize, order: bool) {
        let any = CompressedEdwardsY(bytes).decompress();
        let free = Scalar::from_bytes_mod_order(bytes) * curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
        for point in any.into_iter().chain([free + EIGHT_TORSION[if order { torsion } else { 0 }]]) {
            let expected = point.is_torsion_free() && !point.is_small_order();
            prop_assert_eq!(id(point).is_ok(), expected);
            if let Ok(id) = id(point) {
                prop_assert_eq!(id.static_public(), point.to_montgomery().to_bytes());
            }
        }
        prop_assert!(any.is_some() || PeerId::from_bytes(bytes).is_err());
    }
}

/// `PROTO §12.9`: the equation holds, which is enough for verifiers that do not look at R.
#[test]
fn a_signature_with_an_r_of_small_order_does_not_verify() {
    let mut signature = [0; 64];
    signature[0] = 1;
    signature[32..]
        .copy_from_slice(&hex!("fba97ef6bd87c30ebd9e29cb0328f74233b4412b33d87c48214d109967ca6209"));
    let identity = Identity::from_seed([1; 32]);
    assert!(!identity.peer_id().has_signed(b"text", &signature));
    let key = VerifyingKey::from_bytes(identity.peer_id().as_bytes()).unwrap();
    assert!(ed25519_dalek::Verifier::verify(&key, b"text", &Signature::from_bytes(&signature)).is_ok());
    assert!(identity.peer_id().has_signed(b"text", &identity.sign(b"text")));
}
