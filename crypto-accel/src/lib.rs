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
//! Its expanded keys live partly on the C heap, where no Rust allocator sees them: 1.9 KiB for a session, of which
//! `Limits::memory` counts 1.4 KiB. They are allocated at handshakes, for as many sessions as `Limits::expanded_keys` says.
//! A key that takes another's place there gets memory of the same size in exchange; other packets allocate nothing.

#![forbid(unsafe_code)]

mod aead;
mod peer;
mod x25519;

use wraith_proto::PeerId;
use wraith_proto::crypto::{CryptoProvider, HeaderKey, KeyMaterial, PacketKey, RustCrypto, Suite, X25519Key};

/// Packet keys of both suites and X25519 from AWS-LC; the suite that is faster on this processor first.
#[derive(Clone, Copy, Default, Debug)]
pub struct Accel;

impl CryptoProvider for Accel {
    fn suites(&self) -> &[Suite] {
        // Both providers gain by the same instructions, so the order is the same.
        RustCrypto.suites()
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        Box::new(aead::Key::new(suite, material))
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        // A mask is one block: AWS-LC is no faster, and has keys of twice the size (docs/decisions/010).
        RustCrypto.header_key(suite, key)
    }

    fn noise_key(&self, key: &[u8; 32]) -> Box<dyn PacketKey> {
        Box::new(aead::Key::chacha20_poly1305(key))
    }

    fn static_public(&self, peer: &PeerId) -> [u8; 32] {
        peer::static_public(peer.as_bytes())
    }

    fn is_peer(&self, public: &[u8; 32], form: &[u8; 32]) -> bool {
        peer::is_peer(public, form)
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        Box::new(x25519::Key::new(secret))
    }
}
