//! Cryptography: the provider seam, identities, the Noise handshake and the key schedule.

mod aead;
mod blake2s;
mod blank;
mod identity;
mod keys;
mod noise;
mod noise_x;
mod resolver;
mod rng;

use alloc::boxed::Box;
use core::fmt;

use curve25519_dalek::MontgomeryPoint;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

pub use identity::{BadPeerId, Identity, PeerId, PeerIdError};
pub(crate) use keys::{Direction, Root};
pub(crate) use noise::{Noise, Role, StaticKey, finish_mac, verify_finish_mac};
pub(crate) use noise_x::{Beginning, Finished, NoiseX, PAYLOAD_AT, Written};
pub(crate) use rng::Rng;

/// Bytes of the authentication tag of every suite.
pub const TAG_LEN: usize = 16;

/// A packet protection suite (`PROTO §3.7`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
#[non_exhaustive]
pub enum Suite {
    /// XChaCha20-Poly1305, which every implementation offers.
    XChaCha20Poly1305 = 1,
    /// AES-256-GCM.
    Aes256Gcm = 2,
}

impl Suite {
    /// The suite of a number on the wire, `None` if it is unknown.
    pub const fn from_wire(value: u16) -> Option<Self> {
        match value {
            1 => Some(Self::XChaCha20Poly1305),
            2 => Some(Self::Aes256Gcm),
            _ => None,
        }
    }

    /// Its number on the wire.
    pub const fn to_wire(self) -> u16 {
        self as u16
    }

    /// Packets that one key may seal (RFC 9001 §6.6 and appendix B; `PROTO §5.12`).
    pub(crate) const fn packet_limit(self) -> u64 {
        match self {
            Self::XChaCha20Poly1305 => crate::wire::varint::MAX,
            Self::Aes256Gcm => 1 << 23,
        }
    }

    /// Packets that may fail to open in one session (RFC 9001 §6.6; `PROTO §5.12`).
    pub(crate) const fn failure_limit(self) -> u64 {
        match self {
            Self::XChaCha20Poly1305 => 1 << 36,
            Self::Aes256Gcm => 1 << 52,
        }
    }

    /// Its usual name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XChaCha20Poly1305 => "XChaCha20-Poly1305",
            Self::Aes256Gcm => "AES-256-GCM",
        }
    }
}

/// The secrets of one direction in one epoch (`PROTO §3.6`), wiped on drop.
pub struct KeyMaterial {
    /// The packet key.
    pub key: [u8; 32],
    /// The fixed part of the nonce; how much of it is used depends on the suite (`PROTO §5.6`).
    pub prefix: [u8; 16],
}

impl Drop for KeyMaterial {
    fn drop(&mut self) {
        self.key.zeroize();
        self.prefix.zeroize();
    }
}

impl fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyMaterial").finish_non_exhaustive()
    }
}

/// A tag did not fit its packet, or the packet is too short for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadTag;

impl fmt::Display for BadTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("authentication failed")
    }
}

impl core::error::Error for BadTag {}

/// Where packet protection and what handshakes compute with come from.
///
/// The core calls [`key`](Self::key) and [`header_key`](Self::header_key) with suites out of
/// [`suites`](Self::suites) only.
pub trait CryptoProvider: Send + Sync + fmt::Debug {
    /// The suites on offer, best first. XChaCha20-Poly1305 has to be among them.
    fn suites(&self) -> &[Suite];

    /// Expands a packet key, which may allocate. Called at the handshake; afterwards only if
    /// [`rekey`](PacketKey::rekey) refuses.
    ///
    /// # Panics
    /// If `suite` is not one of [`suites`](Self::suites).
    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey>;

    /// Expands a header protection key (`PROTO §5.7`).
    ///
    /// # Panics
    /// If `suite` is not one of [`suites`](Self::suites).
    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey>;

    /// Expands a key of ChaCha20-Poly1305 with the nonces of Noise (§12.3), which handshakes are encrypted with.
    fn noise_key(&self, key: &[u8; 32]) -> Box<dyn PacketKey> {
        Box::new(aead::ChaChaKey::new(key))
    }

    /// The X25519 form of a peer's public key, which is its Noise static key (`PROTO §3.1`).
    fn static_public(&self, peer: &PeerId) -> [u8; 32] {
        peer.static_public()
    }

    /// Whether an Ed25519 public key is the canonical encoding of a point that is torsion-free and not of small order
    /// (`PROTO §3.2`), and `form` its X25519 form. Called at the handshake.
    fn is_peer(&self, public: &[u8; 32], form: &[u8; 32]) -> bool {
        identity::is_peer(public, form)
    }

    /// Prepares a secret of X25519 (RFC 7748 §5), which is clamped, to be used more than once.
    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key>;

    /// X25519 once. The result may be all zero: callers check it (`PROTO §3.3`).
    fn x25519(&self, secret: &[u8; 32], public: &[u8; 32]) -> [u8; 32] {
        self.x25519_key(secret).agree(public)
    }

    /// X25519 with the base point 9: the public key of `secret`.
    fn x25519_base(&self, secret: &[u8; 32]) -> [u8; 32] {
        self.x25519_key(secret).public()
    }
}

/// A secret of X25519 whose public key is known. Wipes its secrets on drop.
pub trait X25519Key: Send + Sync {
    /// Its public key.
    fn public(&self) -> [u8; 32];

    /// X25519 with the public key of a peer. The result may be all zero: callers check it (`PROTO §3.3`).
    fn agree(&self, public: &[u8; 32]) -> [u8; 32];
}

/// X25519 of `key` and a peer's public key. `None` if it is all zero (`PROTO §3.3`): the peer gave a point of small order, and
/// everybody knows the secret.
pub(crate) fn agree(key: &dyn X25519Key, public: &[u8; 32]) -> Option<Zeroizing<[u8; 32]>> {
    let shared = Zeroizing::new(key.agree(public));
    (!bool::from(shared.ct_eq(&[0; 32]))).then_some(shared)
}

/// An expanded packet key: one direction, one epoch. Wipes its secrets on drop.
///
/// Packet numbers become nonces; a caller that uses one twice for sealing gives the key away.
pub trait PacketKey: Send + Sync {
    /// Encrypts `packet`, the plaintext followed by [`TAG_LEN`] bytes of room for the tag. Does not allocate.
    ///
    /// # Panics
    /// If `packet` is shorter than [`TAG_LEN`].
    fn seal_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]);

    /// Encrypts `payload` and the frames that stand in `packet` behind `payload.len()` bytes of room and
    /// before [`TAG_LEN`] bytes of room, so that `packet` ends up sealed as a whole. Does not allocate.
    ///
    /// # Panics
    /// If `packet` is shorter than `payload` and [`TAG_LEN`] together.
    fn seal_from(&self, packet_number: u64, header: &[u8], payload: &[u8], packet: &mut [u8]) {
        packet[..payload.len()].copy_from_slice(payload);
        self.seal_in_place(packet_number, header, packet);
    }

    /// Decrypts `packet`, ciphertext and tag, and returns the length of the plaintext at its beginning.
    /// Does not allocate.
    ///
    /// # Errors
    /// [`BadTag`] if anything was altered or `packet` is shorter than a tag; what `packet` holds then is
    /// undefined.
    fn open_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) -> Result<usize, BadTag>;

    /// Becomes what [`CryptoProvider::key`] makes of `suite` and `material`, where it lies and without more memory; what it
    /// was is wiped. Returns whether it can: if not, nothing has changed, and the caller lets the provider make another.
    ///
    /// Called for each epoch, and for a packet of a session whose expanded keys have made room for those of others
    /// (`Limits::expanded_keys`): a provider that refuses allocates for such packets.
    fn rekey(&mut self, _suite: Suite, _material: &KeyMaterial) -> bool {
        false
    }
}

/// An expanded header protection key: one direction of one session. Wipes its secrets on drop.
pub trait HeaderKey: Send + Sync {
    /// Becomes what [`CryptoProvider::header_key`] makes of `suite` and `key`, as [`PacketKey::rekey`] does.
    fn rekey(&mut self, _suite: Suite, _key: &[u8; 32]) -> bool {
        false
    }

    /// The mask for the first byte and the packet number (RFC 9001 §5.4.1).
    fn mask(&self, sample: &[u8; 16]) -> [u8; 5];
}

/// The default provider: pure Rust, `no_std`, both suites, the faster one on this processor first.
#[derive(Clone, Copy, Default, Debug)]
pub struct RustCrypto;

impl CryptoProvider for RustCrypto {
    fn suites(&self) -> &[Suite] {
        aead::suites_by_speed()
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        Box::new(aead::SuiteKey::new(suite, material))
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        Box::new(aead::SuiteHeaderKey::new(suite, key))
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        Box::new(DalekKey { secret: Zeroizing::new(*secret), public: self.x25519_base(secret) })
    }

    fn x25519(&self, secret: &[u8; 32], public: &[u8; 32]) -> [u8; 32] {
        MontgomeryPoint(*public).mul_clamped(*secret).to_bytes()
    }

    fn x25519_base(&self, secret: &[u8; 32]) -> [u8; 32] {
        MontgomeryPoint::mul_base_clamped(*secret).to_bytes()
    }
}

/// Bytes of the heap that an expanded packet key and header key of [`RustCrypto`] take, whatever their suite.
pub(crate) const EXPANDED_MEMORY: usize = size_of::<aead::SuiteKey>() + size_of::<aead::SuiteHeaderKey>();

/// Bytes of the heap that a secret of X25519 of [`RustCrypto`] takes.
pub(crate) const SECRET_MEMORY: usize = size_of::<DalekKey>();

struct DalekKey {
    secret: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

impl X25519Key for DalekKey {
    fn public(&self) -> [u8; 32] {
        self.public
    }

    fn agree(&self, public: &[u8; 32]) -> [u8; 32] {
        RustCrypto.x25519(&self.secret, public)
    }
}

#[cfg(test)]
mod tests {
    use hex_literal::hex;

    use super::*;

    /// `PROTO §5.12`
    #[test]
    fn a_key_seals_and_fails_no_more_often_than_its_suite_allows() {
        assert_eq!(Suite::Aes256Gcm.packet_limit(), 8_388_608);
        assert_eq!(Suite::Aes256Gcm.failure_limit(), 4_503_599_627_370_496);
        assert_eq!(Suite::XChaCha20Poly1305.packet_limit(), 4_611_686_018_427_387_903);
        assert_eq!(Suite::XChaCha20Poly1305.failure_limit(), 68_719_476_736);
    }

    #[test]
    fn suites_survive_the_wire_and_unknown_numbers_do_not() {
        for suite in [Suite::XChaCha20Poly1305, Suite::Aes256Gcm] {
            assert_eq!(Suite::from_wire(suite.to_wire()), Some(suite));
        }
        assert_eq!(Suite::XChaCha20Poly1305.to_wire(), 0x0001);
        assert_eq!(Suite::Aes256Gcm.to_wire(), 0x0002);
        assert_eq!(Suite::from_wire(0), None);
        assert_eq!(Suite::from_wire(3), None);
    }

    #[test]
    fn x25519_agrees_with_rfc_7748() {
        let provider: &'static dyn CryptoProvider = &RustCrypto;
        // Section 5.2, the first vector; its scalar is not clamped.
        assert_eq!(
            provider.x25519(
                &hex!("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"),
                &hex!("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"),
            ),
            hex!("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552")
        );
        // Section 6.1, Bob's key pair.
        let secret = hex!("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
        let public = hex!("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
        assert_eq!(provider.x25519_base(&secret), public);
        // Bob with Alice.
        let key = provider.x25519_key(&secret);
        assert_eq!(key.public(), public);
        assert_eq!(
            key.agree(&hex!("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")),
            hex!("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
        );
    }

    #[test]
    fn debug_shows_no_secrets() {
        let text = alloc::format!("{:?}", KeyMaterial { key: [0xab; 32], prefix: [0xcd; 16] });
        assert_eq!(text, "KeyMaterial { .. }");
    }
}
