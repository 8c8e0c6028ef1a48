use hex_literal::hex;
use snow::{Builder, HandshakeState};

use super::*;
use crate::crypto::RustCrypto;

fn resolver(seed: u8) -> Resolver {
    Resolver::new(&RustCrypto, None, &[seed; 32])
}

fn dh(seed: u8) -> Box<dyn Dh> {
    let resolver = resolver(seed);
    let mut dh = resolver.resolve_dh(&DHChoice::Curve25519).unwrap();
    dh.generate(&mut *resolver.resolve_rng().unwrap()).unwrap();
    dh
}

fn xx(secret: &[u8; 32], ephemeral: &[u8; 32], initiator: bool) -> HandshakeState {
    let protocol = "Noise_XX_25519_ChaChaPoly_BLAKE2s".parse().unwrap();
    let builder = Builder::with_resolver(protocol, Box::new(resolver(0)))
        .prologue(b"John Galt")
        .unwrap()
        .local_private_key(secret)
        .unwrap()
        .fixed_ephemeral_key_for_testing_only(ephemeral);
    if initiator { builder.build_initiator() } else { builder.build_responder() }.unwrap()
}

#[test]
fn the_published_noise_xx_vector_comes_out() {
    // PROTO §3.4; the cacophony vector of Noise_XX_25519_ChaChaPoly_BLAKE2s.
    let mut ends = [
        xx(
            &hex!("e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1"),
            &hex!("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a"),
            true,
        ),
        xx(
            &hex!("4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893"),
            &hex!("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b"),
            false,
        ),
    ];
    let messages: [(&[u8], &[u8]); 3] = [
        (
            b"Ludwig von Mises",
            &hex!(
                "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
                "4c756477696720766f6e204d69736573"
            ),
        ),
        (
            b"Murray Rothbard",
            &hex!(
                "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
                "7c365eb362a1c991b0557fe8a7fb187d99346765d93ec63db6c1b01504ebeec5"
                "5a2298d2dbff80eff034d20595153f63a196a6cead1e11b2bb13e336fa13616d"
                "d3e8b0a070c882ed3f1a78c7c06c93"
            ),
        ),
        (
            b"F. A. Hayek",
            &hex!(
                "46c3307de83b014258717d97781c1f50936d8b7d50c0722a1739654d10392d41"
                "5b670c114f79b9a4f80541570f77ce88802efa4220cff733e7b5668ba38059ec"
                "904b4b8eef9448085faf51"
            ),
        ),
    ];
    for (i, (payload, ciphertext)) in messages.into_iter().enumerate() {
        let (mut message, mut read) = ([0; 200], [0; 200]);
        let len = ends[i % 2].write_message(payload, &mut message).unwrap();
        assert_eq!(&message[..len], ciphertext);
        let len = ends[(i + 1) % 2].read_message(ciphertext, &mut read).unwrap();
        assert_eq!(&read[..len], payload);
    }
    for end in ends {
        assert_eq!(
            end.get_handshake_hash(),
            hex!("6c4c56cf71612f72d05ceb96c0155e6f4ea54a26b504c93de632a2db4a49d200")
        );
    }
}

#[test]
fn both_ends_of_an_x25519_exchange_agree() {
    let (a, b) = (dh(1), dh(2));
    let (mut at_a, mut at_b) = ([0; 56], [0; 56]);
    a.dh(b.pubkey(), &mut at_a).unwrap();
    b.dh(a.pubkey(), &mut at_b).unwrap();
    assert_eq!(at_a, at_b);
    assert_ne!(at_a[..32], [0; 32]);
}

#[test]
fn a_prepared_static_key_stands_in_for_the_bytes_that_snow_sets() {
    let key = RustCrypto.x25519_key(&[9; 32]);
    let (public, peer) = (key.public(), RustCrypto.x25519_base(&[8; 32]));
    let shared = key.agree(&peer);
    let resolver = Resolver::new(&RustCrypto, Some(key.into()), &[0; 32]);
    let mut dh = resolver.resolve_dh(&DHChoice::Curve25519).unwrap();
    dh.set(&[0; 32]);
    let mut out = [0; 32];
    dh.dh(&peer, &mut out).unwrap();
    assert_eq!((dh.pubkey(), out), (&public[..], shared));
    // An ephemeral key of the same handshake is another.
    let mut dh = resolver.resolve_dh(&DHChoice::Curve25519).unwrap();
    dh.generate(&mut *resolver.resolve_rng().unwrap()).unwrap();
    assert_ne!(dh.pubkey(), public);
}

#[test]
fn a_key_that_was_never_set_agrees_on_nothing() {
    let dh = resolver(0).resolve_dh(&DHChoice::Curve25519).unwrap();
    assert!(dh.dh(&RustCrypto.x25519_base(&[8; 32]), &mut [0; 32]).is_err());
}

#[test]
fn an_all_zero_x25519_result_is_an_error() {
    // PROTO §3.3: every u of small order, in every encoding of 32 bytes.
    let small = [
        hex!("0000000000000000000000000000000000000000000000000000000000000000"),
        hex!("0100000000000000000000000000000000000000000000000000000000000000"),
        hex!("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
        hex!("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
        hex!("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
        hex!("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
        hex!("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    ];
    for mut public in small {
        for top in [0, 0x80] {
            public[31] |= top;
            let mut out = [7; 32];
            assert_eq!(dh(1).dh(&public, &mut out), Err(Error::Dh), "{public:x?}");
            assert_eq!(out, [7; 32]);
        }
    }
}

#[test]
fn ephemeral_keys_follow_the_seed_and_differ_from_one_another() {
    let resolver = resolver(5);
    let mut rng = resolver.resolve_rng().unwrap();
    let mut dh = resolver.resolve_dh(&DHChoice::Curve25519).unwrap();
    dh.generate(&mut *rng).unwrap();
    let first = dh.pubkey().to_vec();
    dh.generate(&mut *rng).unwrap();
    assert_ne!(dh.pubkey(), first);
    assert_eq!(super::tests::dh(5).pubkey(), first);
    assert_ne!(super::tests::dh(6).pubkey(), first);
}

#[test]
fn nothing_but_the_primitives_of_the_protocol_is_resolved() {
    assert!(resolver(0).resolve_dh(&DHChoice::Curve448).is_none());
    assert!(resolver(0).resolve_hash(&HashChoice::Blake2b).is_none());
    assert!(resolver(0).resolve_hash(&HashChoice::SHA256).is_none());
    assert!(resolver(0).resolve_cipher(&CipherChoice::AESGCM).is_none());
}

#[test]
fn a_ciphertext_that_is_short_or_does_not_fit_is_an_error() {
    let mut cipher = resolver(0).resolve_cipher(&CipherChoice::ChaChaPoly).unwrap();
    cipher.set(&[7; 32]);
    let mut message = [0; 20];
    assert_eq!(cipher.encrypt(0, b"", b"text", &mut message), 20);
    let mut out = [0; 4];
    assert_eq!(cipher.decrypt(0, b"", &message[..15], &mut out), Err(Error::Decrypt));
    assert_eq!(cipher.decrypt(0, b"", &message, &mut out[..3]), Err(Error::Decrypt));
    assert_eq!(cipher.decrypt(1, b"", &message, &mut out), Err(Error::Decrypt));
    assert_eq!(cipher.decrypt(0, b"", &message, &mut out), Ok(4));
    assert_eq!(&out, b"text");
}
