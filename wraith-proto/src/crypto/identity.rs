//! Identities: one Ed25519 seed, its public name and its Noise static key (`PROTO §3.1`, `§3.2`).

use core::fmt;
use core::str::FromStr;

use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use curve25519_dalek::traits::IsIdentity;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use super::CryptoProvider;

/// Characters of a [`PeerId`] in text: 256 bits, 5 in each, the last 4 spare.
const TEXT_LEN: usize = 52;

/// RFC 4648 §6, in lower case.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A secret identity: a 32-byte Ed25519 seed, wiped on drop.
#[derive(Clone)]
pub struct Identity {
    /// With its public key, which takes as long to find as half of a signature.
    key: SigningKey,
}

impl Identity {
    /// The identity of a seed, which has to come from a secure random source.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let seed = Zeroizing::new(seed);
        Self { key: SigningKey::from_bytes(&seed) }
    }

    /// The secret seed, to be stored.
    pub fn seed(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }

    /// Its public name.
    pub fn peer_id(&self) -> PeerId {
        PeerId(*self.key.as_ref().as_bytes())
    }

    /// The secret half of the Noise static key: the clamped first half of SHA-512 of the seed.
    pub(crate) fn static_secret(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(clamp_integer(self.key.to_scalar_bytes()))
    }

    /// The Ed25519 signature of `text`, which begins with its purpose.
    pub(crate) fn sign(&self, text: &[u8]) -> [u8; 64] {
        self.key.sign(text).to_bytes()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.peer_id()).finish()
    }
}

/// The name of a peer: its Ed25519 public key, which was checked (`PROTO §3.2`).
///
/// Its text is 52 characters of lower-case base32 without padding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId([u8; 32]);

impl PeerId {
    /// The peer of this public key. Costs about two thirds of X25519.
    ///
    /// Without the check one secret could appear under 16 names, and anybody could be one of the 8 peers
    /// whose Diffie-Hellman results are all zero.
    ///
    /// # Errors
    /// [`BadPeerId`] unless it is the canonical encoding of a torsion-free point that is not of small order.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Self, BadPeerId> {
        checked_point(&bytes).map(|_| Self(bytes)).ok_or(BadPeerId)
    }

    /// The peer of this public key if `crypto` finds it acceptable and `form` to be its [`static_public`](Self::static_public).
    pub(crate) fn checked_by(
        crypto: &dyn CryptoProvider,
        public: &[u8; 32],
        form: &[u8; 32],
    ) -> Option<Self> {
        crypto.is_peer(public, form).then_some(Self(*public))
    }

    /// The peer of this public key if `crypto` finds it acceptable.
    pub(crate) fn recognised_by(crypto: &dyn CryptoProvider, public: &[u8; 32]) -> Option<Self> {
        // Of what is no point the form is no peer's either.
        let form = crypto.static_public(&Self(*public));
        Self::checked_by(crypto, public, &form)
    }

    /// The public key.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether `signature` is this peer's, of `text`; one with a point of small order is not.
    pub(crate) fn has_signed(&self, text: &[u8], signature: &[u8; 64]) -> bool {
        let key = VerifyingKey::from_bytes(&self.0);
        key.is_ok_and(|key| key.verify_strict(text, &Signature::from_bytes(signature)).is_ok())
    }

    /// The X25519 form of the public key, which is the peer's Noise static key (`PROTO §3.1`).
    pub fn static_public(&self) -> [u8; 32] {
        // Every PeerId is a point.
        let point = CompressedEdwardsY(self.0).decompress();
        point.map(|point| point.to_montgomery().to_bytes()).unwrap_or_default()
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = encode(&self.0);
        f.pad(core::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PeerId {
    type Err = PeerIdError;

    fn from_str(text: &str) -> Result<Self, PeerIdError> {
        let text = text.as_bytes().try_into().map_err(|_| PeerIdError::Length)?;
        Self::from_bytes(decode(text)?).map_err(PeerIdError::Key)
    }
}

/// Bytes are not an acceptable public key (`PROTO §3.2`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadPeerId;

impl fmt::Display for BadPeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the peer id is not an acceptable public key")
    }
}

impl core::error::Error for BadPeerId {}

/// Why a text is not a [`PeerId`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PeerIdError {
    /// It is not 52 characters long.
    Length,
    /// A character is not one of `a` to `z` and `2` to `7`; upper case is not accepted.
    Alphabet,
    /// The 4 spare bits of the last character are not zero, so another text stands for the same bytes.
    NotCanonicalText,
    /// It stands for bytes that are no peer.
    Key(BadPeerId),
}

impl fmt::Display for PeerIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "a peer id has 52 characters",
            Self::Alphabet => "a peer id consists of the characters a-z and 2-7",
            Self::NotCanonicalText => "the last character of the peer id is wrong",
            Self::Key(error) => return error.fmt(f),
        })
    }
}

impl core::error::Error for PeerIdError {}

/// Whether `public` is a peer's, and `form` its X25519 form.
pub(super) fn is_peer(public: &[u8; 32], form: &[u8; 32]) -> bool {
    checked_point(public).is_some_and(|point| point.to_montgomery().to_bytes() == *form)
}

/// The point of an Ed25519 public key if it is acceptable (`PROTO §3.2`).
fn checked_point(public: &[u8; 32]) -> Option<EdwardsPoint> {
    let point = CompressedEdwardsY(*public).decompress().filter(|_| is_canonical(*public))?;
    // Free of torsion: the group order less one negates it. Of the points of small order only the neutral element is.
    // A public key has nothing to hide from the clock.
    let negated = EdwardsPoint::vartime_double_scalar_mul_basepoint(&-Scalar::ONE, &point, &Scalar::ZERO);
    (negated == -point && !point.is_identity()).then_some(point)
}

/// Whether the y-coordinate is below 2^255 − 19. A sign without an x-coordinate would be non-canonical, too, but has
/// points of small order only.
fn is_canonical(mut bytes: [u8; 32]) -> bool {
    bytes[31] &= 0x7f;
    let [first, rest @ .., last] = bytes;
    first < 0xed || last != 0x7f || rest.iter().any(|byte| *byte != 0xff)
}

fn encode(bytes: &[u8; 32]) -> [u8; TEXT_LEN] {
    let mut text = [0; TEXT_LEN];
    for (i, character) in text.iter_mut().enumerate() {
        let bit = i * 5;
        let pair = [bytes[bit / 8], bytes.get(bit / 8 + 1).copied().unwrap_or(0)];
        let five = u16::from_be_bytes(pair) >> (11 - bit % 8);
        *character = ALPHABET[usize::from(five & 31)];
    }
    text
}

fn decode(text: &[u8; TEXT_LEN]) -> Result<[u8; 32], PeerIdError> {
    let mut bytes = [0; 32];
    let mut spare = 0;
    for (i, character) in text.iter().enumerate() {
        let five = match character {
            b'a'..=b'z' => character - b'a',
            b'2'..=b'7' => character - b'2' + 26,
            _ => return Err(PeerIdError::Alphabet),
        };
        let bit = i * 5;
        let [high, low] = (u16::from(five) << (11 - bit % 8)).to_be_bytes();
        bytes[bit / 8] |= high;
        *bytes.get_mut(bit / 8 + 1).unwrap_or(&mut spare) |= low;
    }
    // The last character has one bit inside the bytes and four beyond them.
    if spare != 0 {
        return Err(PeerIdError::NotCanonicalText);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
