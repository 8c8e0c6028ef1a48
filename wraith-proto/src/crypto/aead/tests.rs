use alloc::vec;
use alloc::vec::Vec;

use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305};
use hex_literal::hex;

use super::*;
use crate::crypto::{CryptoProvider, RustCrypto};

const SUITES: [Suite; 2] = [Suite::XChaCha20Poly1305, Suite::Aes256Gcm];

const MATERIAL: KeyMaterial = KeyMaterial {
    key: hex!("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"),
    prefix: hex!("404142434445464748494a4b4c4d4e4f"),
};

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + 3) as u8).collect()
}

fn sealed(key: &dyn PacketKey, packet_number: u64, header: &[u8], plaintext: &[u8]) -> Vec<u8> {
    let mut packet = plaintext.to_vec();
    packet.resize(plaintext.len() + TAG_LEN, 0);
    key.seal_in_place(packet_number, header, &mut packet);
    packet
}

#[test]
fn the_published_vector_of_xchacha20_poly1305_comes_out() {
    // draft-irtf-cfrg-xchacha-03, appendix A.3.1; the last 8 nonce bytes 50 to 57 are the little-endian
    // number.
    let packet = sealed(
        &ChaChaKey::extended(&MATERIAL),
        0x5756_5554_5352_5150,
        &hex!("50515253c0c1c2c3c4c5c6c7"),
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
          sunscreen would be it.",
    );
    assert_eq!(
        packet,
        hex!(
            "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb"
            "731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b452"
            "2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff9"
            "21f9664c97637da9768812f615c68b13b52ec0875924c1c7987947deafd8780acf49"
        )
    );
}

#[test]
fn packets_equal_those_of_plain_xchacha20_poly1305() {
    // PROTO §5.6
    let reference = XChaCha20Poly1305::new(&MATERIAL.key.into());
    let key = ChaChaKey::extended(&MATERIAL);
    for packet_number in [0, 1, 255, 256, u64::from(u32::MAX) + 1, (1 << 62) - 1] {
        for len in [0, 1, 63, 64, 65, 1200, 1472, 65_000] {
            let mut nonce = [0; 24];
            nonce[..16].copy_from_slice(&MATERIAL.prefix);
            nonce[16..].copy_from_slice(&u64::to_le_bytes(packet_number));
            let mut expected = text(len);
            let tag = reference
                .encrypt_inout_detached(&nonce.into(), b"13 bytes here", expected.as_mut_slice().into())
                .unwrap();
            expected.extend_from_slice(&tag);
            assert_eq!(sealed(&key, packet_number, b"13 bytes here", &text(len)), expected);
        }
    }
}

/// The key of test case 16 in "The Galois/Counter Mode of Operation (GCM)", 2005.
const GCM_KEY: [u8; 32] = hex!("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");

/// `PROTO §5.6`: the number is big-endian and goes into the end of the nonce by XOR.
#[test]
fn the_published_vector_of_aes_256_gcm_comes_out_however_prefix_and_number_make_up_the_nonce() {
    let mut prefix = [0xee; 16];
    for (twelve, packet_number) in [
        (hex!("cafebabefacedbaddecaf888"), 0),
        (hex!("cafebabe0000000000000000"), 0xface_dbad_deca_f888),
        (hex!("cafebabefacedbad00000000"), 0xdeca_f888),
        (hex!("cafebabe053124522130077f"), 0xffff_ffff_fffa_fff7),
    ] {
        prefix[..12].copy_from_slice(&twelve);
        let packet = sealed(
            &AesGcmKey::new(&KeyMaterial { key: GCM_KEY, prefix }),
            packet_number,
            &hex!("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
            &hex!(
                "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
            ),
        );
        assert_eq!(
            packet,
            hex!(
                "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
                "76fc6ece0f4e1768cddf8853bb2d551b"
            )
        );
    }
}

#[test]
fn an_opened_packet_holds_what_was_sealed() {
    for suite in SUITES {
        let key = RustCrypto.key(suite, &MATERIAL);
        for len in [0, 1, 1200, 65_000] {
            let mut packet = sealed(&*key, 9, b"header", &text(len));
            assert_eq!(key.open_in_place(9, b"header", &mut packet), Ok(len));
            assert_eq!(packet[..len], text(len));
        }
    }
}

#[test]
fn any_altered_bit_number_or_header_is_a_bad_tag() {
    for suite in SUITES {
        let key = RustCrypto.key(suite, &MATERIAL);
        let packet = sealed(&*key, 9, b"header", &text(40));
        for bit in 0..packet.len() * 8 {
            let mut altered = packet.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open_in_place(9, b"header", &mut altered), Err(BadTag));
        }
        assert_eq!(key.open_in_place(8, b"header", &mut packet.clone()), Err(BadTag));
        assert_eq!(key.open_in_place(9, b"heaDer", &mut packet.clone()), Err(BadTag));
    }
}

#[test]
fn a_packet_shorter_than_a_tag_is_a_bad_tag() {
    for suite in SUITES {
        let key = RustCrypto.key(suite, &MATERIAL);
        for len in 0..=TAG_LEN {
            assert_eq!(key.open_in_place(0, b"", &mut vec![0; len]), Err(BadTag));
        }
    }
}

#[test]
fn a_borrowed_payload_seals_like_a_copied_one() {
    for suite in SUITES {
        let key = RustCrypto.key(suite, &MATERIAL);
        let payload = text(1000);
        let mut packet = vec![0; 1000];
        packet.extend_from_slice(b"the frames");
        packet.resize(packet.len() + TAG_LEN, 0);
        key.seal_from(3, b"header", &payload, &mut packet);
        assert_eq!(packet, sealed(&*key, 3, b"header", &[&payload[..], b"the frames"].concat()));
    }
}

#[test]
fn the_prefix_matters_as_much_as_the_key() {
    let other = KeyMaterial { key: MATERIAL.key, prefix: [0; 16] };
    for suite in SUITES {
        assert_ne!(
            sealed(&*RustCrypto.key(suite, &MATERIAL), 1, b"", b"text"),
            sealed(&*RustCrypto.key(suite, &other), 1, b"", b"text")
        );
    }
}

/// `PROTO §3.7`
#[test]
fn both_suites_are_on_offer_and_the_first_is_the_one_with_instructions() {
    let mut suites = RustCrypto.suites().to_vec();
    let fast = if has_instructions_for_gcm() { Suite::Aes256Gcm } else { Suite::XChaCha20Poly1305 };
    assert_eq!(suites[0], fast);
    suites.sort_unstable();
    assert_eq!(suites, SUITES);
}

#[test]
fn the_header_mask_agrees_with_rfc_9001_appendix_a_5() {
    // PROTO §5.7
    let key = ChaChaHeaderKey::new(&hex!("25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4"));
    assert_eq!(key.mask(&hex!("5e5cd55c41f69080575d7999c25a5bfb")), hex!("aefefe7d03"));
}

#[test]
fn a_sample_with_the_last_block_counter_has_a_mask_too() {
    // From a separate implementation of RFC 8439 §2.3.
    let key = ChaChaHeaderKey::new(&hex!("25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4"));
    assert_eq!(key.mask(&[0xff; 16]), hex!("5537fd9cea"));
}

/// `PROTO §5.7`: RFC 9001 has no mask of AES-256, FIPS 197 has its block (appendix C.3).
#[test]
fn the_header_mask_of_aes_256_agrees_with_fips_197() {
    let key = AesHeaderKey::new(&hex!("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"));
    assert_eq!(key.mask(&hex!("00112233445566778899aabbccddeeff")), hex!("8ea2b7ca51"));
}
