//! Records: values named by their hash, and values that their owner signs and may replace.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use wraith_proto::{Identity, PeerId};

use crate::id::Id;

/// Bytes of a value under its hash at most.
pub const MAX_VALUE: usize = 1_000;

/// Bytes of a signed value at most: with what a signed record has besides it fits in a datagram, as one of
/// [`MAX_VALUE`] does without.
pub const MAX_SIGNED_VALUE: usize = 900;

/// What begins each signature of a record; see [`Signed`].
const DOMAIN: &[u8] = b"WRAITH v1 dht record\0";

/// Bytes that are signed at most: domain, salt, sequence number, value.
const MAX_SIGNED: usize = DOMAIN.len() + 16 + MAX_SIGNED_VALUE;

/// What can be stored under a key. Each kind has keys of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A value under its hash, which nobody can replace.
    Value = 1,
    /// A value that a peer signed and may replace by one with a higher sequence number.
    Signed = 2,
    /// The nodes that provide what the key names.
    Providers = 3,
}

impl Kind {
    /// Bytes of a value at most.
    pub const fn max_value(self) -> usize {
        match self {
            Self::Value => MAX_VALUE,
            Self::Signed => MAX_SIGNED_VALUE,
            Self::Providers => 0,
        }
    }
}

/// A record with one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// A value under [`value_key`].
    Value(&'a [u8]),
    /// A value under [`Signed::key`].
    Signed(Signed<'a>),
}

impl Record<'_> {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Value(_) => Kind::Value,
            Self::Signed(_) => Kind::Signed,
        }
    }

    /// The key that it is stored under.
    pub fn key(&self) -> Id {
        match self {
            Self::Value(value) => value_key(value),
            Self::Signed(signed) => signed.key(),
        }
    }

    /// The bytes that it carries.
    pub const fn value(&self) -> &[u8] {
        match self {
            Self::Value(value) => value,
            Self::Signed(signed) => signed.value,
        }
    }

    /// The sequence number; 0 for what cannot be replaced.
    pub const fn seq(&self) -> u64 {
        match self {
            Self::Value(_) => 0,
            Self::Signed(signed) => signed.seq,
        }
    }

    /// Whether it belongs under `key` and is what its owner made.
    pub fn is_genuine(&self, key: &Id) -> bool {
        self.key() == *key && self.is_sound()
    }

    /// Whether it is what its owner made, wherever it belongs.
    fn is_sound(&self) -> bool {
        self.value().len() <= self.kind().max_value()
            && match self {
                Self::Value(_) => true,
                Self::Signed(signed) => signed.is_signed(),
            }
    }
}

/// A record and its key, which is computed once, and cannot be another's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keyed<'a> {
    key: Id,
    record: Record<'a>,
}

impl<'a> Keyed<'a> {
    pub(crate) fn new(record: Record<'a>) -> Self {
        Self { key: record.key(), record }
    }

    /// Where it belongs.
    pub(crate) const fn key(&self) -> &Id {
        &self.key
    }

    pub(crate) const fn record(&self) -> &Record<'a> {
        &self.record
    }

    /// Whether it is what its owner made.
    pub(crate) fn is_genuine(&self) -> bool {
        self.record.is_sound()
    }
}

/// A value that a peer signed.
///
/// The signature is Ed25519 over `WRAITH v1 dht record`, a zero byte, the salt and the sequence number as 8 bytes each,
/// most significant first, and the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signed<'a> {
    /// The bytes of the `PeerId` that signed.
    pub peer: &'a [u8; 32],
    /// Which of the peer's records this is.
    pub salt: u64,
    /// Higher replaces lower.
    pub seq: u64,
    /// The signature.
    pub signature: &'a [u8; 64],
    /// At most [`MAX_SIGNED_VALUE`] bytes.
    pub value: &'a [u8],
}

impl Signed<'_> {
    /// The key that it is stored under.
    pub fn key(&self) -> Id {
        key_of(self.peer, self.salt)
    }

    fn is_signed(&self) -> bool {
        let Some(message) = message(self.salt, self.seq, self.value) else { return false };
        VerifyingKey::from_bytes(self.peer)
            .is_ok_and(|key| key.verify_strict(&message, &Signature::from_bytes(self.signature)).is_ok())
    }
}

/// The key of a value: a hash of it, but not the plain one, which names files.
pub fn value_key(value: &[u8]) -> Id {
    Id::from_bytes(blake3::derive_key("WRAITH v1 dht value", value))
}

/// The key of the record `salt` of `peer`.
pub fn signed_key(peer: &PeerId, salt: u64) -> Id {
    key_of(peer.as_bytes(), salt)
}

/// Signs a value for [`Signed`]; `None` if it is longer than [`MAX_SIGNED_VALUE`].
pub fn sign(identity: &Identity, salt: u64, seq: u64, value: &[u8]) -> Option<[u8; 64]> {
    let message = message(salt, seq, value)?;
    Some(SigningKey::from_bytes(identity.seed()).sign(&message).to_bytes())
}

fn key_of(peer: &[u8; 32], salt: u64) -> Id {
    let mut hasher = blake3::Hasher::new_derive_key("WRAITH v1 dht signed record");
    hasher.update(peer).update(&salt.to_be_bytes());
    Id::from_bytes(*hasher.finalize().as_bytes())
}

fn message(salt: u64, seq: u64, value: &[u8]) -> Option<heapless::Vec<u8, MAX_SIGNED>> {
    let mut message = heapless::Vec::new();
    for part in [DOMAIN, &salt.to_be_bytes(), &seq.to_be_bytes(), value] {
        message.extend_from_slice(part).ok()?;
    }
    Some(message)
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    #[test]
    fn a_value_belongs_under_its_hash_alone() {
        let record = Record::Value(b"abc");
        assert!(record.is_genuine(&value_key(b"abc")));
        assert!(!record.is_genuine(&value_key(b"abd")));
        assert!(!record.is_genuine(&Id::from_bytes(*blake3::hash(b"abc").as_bytes())));
    }

    #[test]
    fn a_signature_covers_salt_sequence_number_and_value() {
        // PROTO §14.13
        let identity = Identity::from_seed([7; 32]);
        let peer = identity.peer_id();
        let signature = sign(&identity, 1, 2, b"abc").unwrap();
        let right = Signed { peer: peer.as_bytes(), salt: 1, seq: 2, signature: &signature, value: b"abc" };
        assert_eq!(right.key(), signed_key(&peer, 1));
        assert!(Record::Signed(right).is_genuine(&signed_key(&peer, 1)));
        let mut other_signature = signature;
        other_signature[3] ^= 1;
        let other = Identity::from_seed([8; 32]).peer_id();
        for wrong in [
            Signed { salt: 9, ..right },
            Signed { seq: 3, ..right },
            Signed { value: b"abd", ..right },
            Signed { signature: &other_signature, ..right },
            Signed { peer: other.as_bytes(), ..right },
        ] {
            assert!(!Record::Signed(wrong).is_genuine(&wrong.key()), "{wrong:?}");
        }
        assert!(!Record::Signed(right).is_genuine(&signed_key(&peer, 2)));
    }

    #[test]
    fn nobody_signs_under_a_peer_of_small_order() {
        // PROTO §14.13
        let mut neutral = [0; 32];
        neutral[0] = 1;
        // With such a key R = [S]B is enough, whatever was signed.
        let mut signature = [0; 64];
        signature[0] = 1;
        let signed = Signed { peer: &neutral, salt: 1, seq: 2, signature: &signature, value: b"abc" };
        assert!(!Record::Signed(signed).is_genuine(&signed.key()));
        let key = VerifyingKey::from_bytes(&neutral).unwrap();
        let text = message(1, 2, b"abc").unwrap();
        assert!(ed25519_dalek::Verifier::verify(&key, &text, &Signature::from_bytes(&signature)).is_ok());
    }

    #[test]
    fn the_longest_values_are_genuine_and_one_byte_more_is_not() {
        let identity = Identity::from_seed([7; 32]);
        let value = vec![1; MAX_SIGNED_VALUE + 1];
        let signature = sign(&identity, 0, 0, &value[1..]).unwrap();
        let peer = identity.peer_id();
        let signed =
            Signed { peer: peer.as_bytes(), salt: 0, seq: 0, signature: &signature, value: &value[1..] };
        assert!(Record::Signed(signed).is_genuine(&signed.key()));
        assert_eq!(sign(&identity, 0, 0, &value), None);
        assert!(!Record::Signed(Signed { value: &value, ..signed }).is_genuine(&signed.key()));
        let value = vec![1; MAX_VALUE + 1];
        assert!(Record::Value(&value[1..]).is_genuine(&value_key(&value[1..])));
        assert!(!Record::Value(&value).is_genuine(&value_key(&value)));
    }

    #[test]
    fn the_domain_is_the_first_thing_signed() {
        // A signature over the same bytes without the domain, as another protocol would make it.
        let identity = Identity::from_seed([7; 32]);
        let bytes = [&1_u64.to_be_bytes()[..], &2_u64.to_be_bytes(), b"abc"].concat();
        let signature = SigningKey::from_bytes(identity.seed()).sign(&bytes).to_bytes();
        let peer = identity.peer_id();
        let signed = Signed { peer: peer.as_bytes(), salt: 1, seq: 2, signature: &signature, value: b"abc" };
        assert!(!Record::Signed(signed).is_genuine(&signed.key()));
        assert_eq!(DOMAIN.last(), Some(&0));
    }
}
