//! Identities and the X25519 keys that they stand for (`PROTO §3.1` to `§3.3`).

use curve25519_dalek::MontgomeryPoint;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::clamp_integer;
use sha2::{Digest, Sha512};

use super::Refused;

/// An X25519 key pair. The public half can be given apart, to announce a point that is none.
#[derive(Clone, Copy, Debug)]
pub struct KeyPair {
    /// The secret scalar.
    pub secret: [u8; 32],
    /// What the other end is told.
    pub public: [u8; 32],
}

impl KeyPair {
    /// The pair of a secret, which RFC 7748 §5 clamps.
    pub fn new(secret: [u8; 32]) -> Self {
        Self { secret, public: MontgomeryPoint::mul_base_clamped(secret).to_bytes() }
    }

    /// X25519 with the other end's public key.
    ///
    /// # Errors
    /// [`Refused`] if the result is zero (`PROTO §3.3`).
    pub fn agree(&self, public: &[u8; 32]) -> Result<[u8; 32], Refused> {
        let shared = MontgomeryPoint(*public).mul_clamped(self.secret).to_bytes();
        if shared == [0; 32] { Err(Refused("§3.3: the X25519 result is zero")) } else { Ok(shared) }
    }
}

/// An Ed25519 seed with its public key, and their X25519 form (`PROTO §3.1`).
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The `PeerId`.
    pub id: [u8; 32],
    /// The Noise static key pair.
    pub keys: KeyPair,
}

impl Identity {
    /// The identity of a seed: RFC 8032 §5.1.5, and the birational map of RFC 7748 §4.1.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let digest: [u8; 64] = Sha512::digest(seed).into();
        let mut half = [0; 32];
        half.copy_from_slice(&digest[..32]);
        let secret = clamp_integer(half);
        let point = EdwardsPoint::mul_base_clamped(secret);
        let keys = KeyPair { secret, public: point.to_montgomery().to_bytes() };
        Self { id: point.compress().to_bytes(), keys }
    }
}

/// The X25519 form of a `PeerId`.
///
/// # Errors
/// [`Refused`] unless it is the canonical encoding of a torsion-free point that is not of small order (`PROTO §3.2`).
pub fn x25519_form(id: &[u8; 32]) -> Result<[u8; 32], Refused> {
    const RULE: Refused = Refused("§3.2: the PeerId is no acceptable public key");
    let point = CompressedEdwardsY(*id).decompress().ok_or(RULE)?;
    let canonical = point.compress().to_bytes() == *id;
    if !canonical || point.is_small_order() || !point.is_torsion_free() {
        return Err(RULE);
    }
    Ok(point.to_montgomery().to_bytes())
}

/// A `PeerId` as people see it: lower-case RFC 4648 base32 without padding (`PROTO §3.1`).
pub fn peer_id_text(id: &[u8; 32]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bit = |at: usize| id.get(at / 8).map_or(0, |byte| usize::from(byte >> (7 - at % 8) & 1));
    let five = |first: usize| (first..first + 5).fold(0, |sum, at| sum << 1 | bit(at));
    (0..256).step_by(5).map(|first| char::from(ALPHABET[five(first)])).collect()
}
