//! Accelerated cryptography for WRAITH: packet protection, X25519 and the cipher of handshakes from [AWS-LC](https://github.com/aws/aws-lc), which
//! picks the instructions of the processor at run time.
//!
//! [`Accel`] gives the same bytes as the core's pure-Rust provider, so either end may use either:
//!
//! ```
//! use wraith_proto::{Config, Identity};
//!
//! let mut config = Config::new(Identity::from_seed([7; 32]), b"example");
//! config.crypto = &wraith_crypto_accel::Accel;
//! ```
//!
//! Its keys live partly on the C heap, where no Rust allocator sees them: some 2.3 KiB for a session with AES-256-GCM and
//! 1.4 KiB with XChaCha20-Poly1305, of which `Limits::memory` counts 1.3 KiB. They are allocated at the handshake and for
//! each epoch; packets allocate nothing.

#![forbid(unsafe_code)]

mod aead;
mod x25519;

use crrl::ed25519::Point;
use wraith_proto::crypto::{CryptoProvider, HeaderKey, KeyMaterial, PacketKey, RustCrypto, Suite, X25519Key};

/// Both suites, header protection and X25519 from AWS-LC; the suite that is faster on this processor first.
#[derive(Clone, Copy, Default, Debug)]
pub struct Accel;

impl CryptoProvider for Accel {
    fn suites(&self) -> &[Suite] {
        // Both providers gain by the same instructions, so the order is the same.
        RustCrypto.suites()
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        match suite {
            Suite::XChaCha20Poly1305 => Box::new(aead::Key::xchacha20_poly1305(material)),
            Suite::Aes256Gcm => Box::new(aead::Key::aes_256_gcm(material)),
            other => panic!("{other:?} was not offered"),
        }
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        match suite {
            Suite::XChaCha20Poly1305 => RustCrypto.header_key(suite, key),
            Suite::Aes256Gcm => Box::new(aead::AesHeaderKey::new(key)),
            other => panic!("{other:?} was not offered"),
        }
    }

    fn noise_key(&self, key: &[u8; 32]) -> Box<dyn PacketKey> {
        Box::new(aead::Key::chacha20_poly1305(key))
    }

    fn static_public(&self, public: &[u8; 32]) -> Option<[u8; 32]> {
        // Half of a multiplication by the group order: Pornin, "Point-Halving and Subgroup Membership in Twisted Edwards
        // Curves". Of the points of small order, the neutral element alone is in the subgroup.
        let point = Point::decode(public)?;
        let good = point.is_in_subgroup() != 0 && point.isneutral() == 0;
        good.then(|| point.to_montgomery_u().encode())
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        Box::new(x25519::Key::new(secret))
    }
}
