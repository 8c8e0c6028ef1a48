//! Google's Wycheproof vectors, at both providers.

use wraith_crypto_accel::Accel;
use wraith_proto::crypto::{BadTag, CryptoProvider, KeyMaterial, PacketKey, RustCrypto, Suite, TAG_LEN};
use wycheproof::TestResult;
use wycheproof::aead::{self, TestGroup};
use wycheproof::xdh;

const PROVIDERS: [&dyn CryptoProvider; 2] = [&Accel, &RustCrypto];

/// How many vectors had each outcome.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counts {
    valid: usize,
    invalid: usize,
    /// The seam has no way to say it: a key or nonce of another length.
    inexpressible: usize,
}

/// Checks all vectors of a set at one provider; `express` makes of a nonce what the seam takes.
fn check(
    provider: &dyn CryptoProvider,
    suite: Suite,
    name: aead::TestName,
    express: impl Fn(&[u8]) -> Option<([u8; 16], u64)>,
) -> Counts {
    let mut counts = Counts::default();
    let set = aead::TestSet::load(name).expect("the vectors come with the crate");
    for TestGroup { tests, tag_size, .. } in set.test_groups {
        assert_eq!(tag_size, 8 * TAG_LEN);
        for test in tests {
            let key = <[u8; 32]>::try_from(&test.key[..]).ok();
            let Some((key, (prefix, packet_number))) = key.zip(express(&test.nonce)) else {
                counts.inexpressible += 1;
                continue;
            };
            let key = provider.key(suite, &KeyMaterial { key, prefix });
            let sealed = [&test.ct[..], &test.tag[..]].concat();
            let opened = open(&*key, packet_number, &test.aad, &sealed);
            let made = seal(&*key, packet_number, &test.aad, &test.pt);
            match test.result {
                TestResult::Valid => {
                    assert_eq!(opened.as_deref(), Ok(&test.pt[..]), "{name:?} {}", test.tc_id);
                    assert_eq!(made, sealed, "{name:?} {}", test.tc_id);
                    counts.valid += 1;
                }
                TestResult::Invalid => {
                    assert_eq!(opened, Err(BadTag), "{name:?} {}", test.tc_id);
                    assert_ne!(made, sealed, "{name:?} {}", test.tc_id);
                    counts.invalid += 1;
                }
                TestResult::Acceptable => panic!("no AEAD vector is a matter of taste: {}", test.tc_id),
            }
        }
    }
    counts
}

fn seal(key: &dyn PacketKey, packet_number: u64, header: &[u8], plaintext: &[u8]) -> Vec<u8> {
    let mut packet = [plaintext, &[0; TAG_LEN]].concat();
    key.seal_in_place(packet_number, header, &mut packet);
    packet
}

fn open(key: &dyn PacketKey, packet_number: u64, header: &[u8], packet: &[u8]) -> Result<Vec<u8>, BadTag> {
    let mut packet = packet.to_vec();
    let len = key.open_in_place(packet_number, header, &mut packet)?;
    packet.truncate(len);
    Ok(packet)
}

/// `PROTO §5.6`: any nonce of 12 bytes is a prefix with packet number 0, and any one whose last 8 bytes are split
/// between the two.
#[test]
fn both_providers_pass_the_vectors_of_aes_256_gcm() {
    let split = |nonce: &[u8], packet_number: u64| {
        let mut prefix = [0xee; 16];
        prefix[..12].copy_from_slice(<&[u8; 12]>::try_from(nonce).ok()?);
        for (byte, number) in prefix[4..12].iter_mut().zip(packet_number.to_be_bytes()) {
            *byte ^= number;
        }
        Some((prefix, packet_number))
    };
    let expected = Counts { valid: 39, invalid: 27, inexpressible: 250 };
    for provider in PROVIDERS {
        for packet_number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            let express = |nonce: &[u8]| split(nonce, packet_number);
            let counts = check(provider, Suite::Aes256Gcm, aead::TestName::AesGcm, express);
            assert_eq!(counts, expected, "{provider:?}");
        }
    }
}

/// `PROTO §5.6`: any nonce of 24 bytes is a prefix and a little-endian packet number. Those of plain
/// ChaCha20-Poly1305 stand behind `HChaCha20` here, where no caller can choose the key.
#[test]
fn both_providers_pass_the_vectors_of_xchacha20_poly1305() {
    let express = |nonce: &[u8]| {
        let nonce = <&[u8; 24]>::try_from(nonce).ok()?;
        let (prefix, number) = nonce.split_first_chunk().expect("24 bytes");
        Some((*prefix, u64::from_le_bytes(number.try_into().expect("8 bytes"))))
    };
    let expected = Counts { valid: 246, invalid: 60, inexpressible: 9 };
    for provider in PROVIDERS {
        let counts = check(provider, Suite::XChaCha20Poly1305, aead::TestName::XChaCha20Poly1305, express);
        assert_eq!(counts, expected, "{provider:?}");
    }
}

/// `PROTO §3.3`: a result that is all zero comes out as such, for callers to refuse.
#[test]
fn both_providers_pass_the_vectors_of_x25519() {
    let set = xdh::TestSet::load(xdh::TestName::X25519).expect("the vectors come with the crate");
    let tests: Vec<_> = set.test_groups.into_iter().flat_map(|group| group.tests).collect();
    for provider in PROVIDERS {
        let (mut checked, mut zero, mut inexpressible) = (0, 0, 0);
        for test in &tests {
            let secret = <[u8; 32]>::try_from(&test.private_key[..]).expect("32 bytes");
            let Ok(public) = <[u8; 32]>::try_from(&test.public_key[..]) else {
                inexpressible += 1;
                continue;
            };
            let shared = provider.x25519(&secret, &public);
            assert_eq!(shared[..], test.shared_secret[..], "{provider:?} {}", test.tc_id);
            let key = provider.x25519_key(&secret);
            assert_eq!(key.agree(&public), shared, "{provider:?} {}", test.tc_id);
            assert_eq!(key.public(), provider.x25519_base(&secret), "{provider:?} {}", test.tc_id);
            checked += 1;
            zero += usize::from(shared == [0; 32]);
        }
        assert_eq!((checked, zero, inexpressible), (518, 31, 0), "{provider:?}");
    }
}
