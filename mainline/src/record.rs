//! A signed record of our own DHT in a mutable item of BEP 44.
//!
//! The item's key is derived from the identity: BEP 44 signs bytes that begin with `4:salt` or `3:seq`, which leaves no room
//! for a prefix that says what a signature is for, so the identity itself signs nothing there. The item's salt is the
//! record's, 8 bytes, most significant first, and its sequence number is the record's. The item's value is:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version, 1 |
//! | 32 | `PeerId` |
//! | 64 | certificate: the identity's signature of `WRAITH v1 mainline`, a zero byte and the item's key |
//! | 64 | the record's signature, [`wraith_dht_proto::Signed`] |
//! | 0 to 835 | the record's value |

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use wraith_dht_proto::{Record as DhtRecord, Signed, sign};
use wraith_proto::{Identity, PeerId};
use zeroize::Zeroizing;

use crate::error::PutError;

/// Version of the format.
const VERSION: u8 = 1;

/// Bytes before the value.
const HEADER: usize = 1 + 32 + 64 + 64;

/// Bytes of an item's value: BEP 44 allows 1,000 with the four of the length before them, `996:`.
const MAX_ITEM: usize = 996;

/// Bytes of a value at most.
pub const MAX_VALUE: usize = MAX_ITEM - HEADER;

/// The highest sequence number: BEP 44 has a signed one.
pub const MAX_SEQ: u64 = i64::MAX as u64;

/// What begins a certificate.
const CERTIFICATE: &[u8] = b"WRAITH v1 mainline\0";

/// A record that its peer has signed, as everybody can check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Whose it is.
    pub peer: PeerId,
    /// Which of the peer's records it is.
    pub salt: u64,
    /// Higher replaces lower.
    pub seq: u64,
    /// The peer's signature, with which it is the same record on our own DHT.
    pub signature: [u8; 64],
    /// At most [`MAX_VALUE`] bytes.
    pub value: Vec<u8>,
}

impl Record {
    /// The record as our own DHT has it.
    pub fn signed(&self) -> Signed<'_> {
        let Self { peer, salt, seq, signature, value } = self;
        Signed { peer: peer.as_bytes(), salt: *salt, seq: *seq, signature, value }
    }
}

/// The key that the records of `identity` are found under. It does not follow from the `PeerId`: who looks for them has to
/// be told.
pub fn record_key(identity: &Identity) -> [u8; 32] {
    signing_key(identity).verifying_key().to_bytes()
}

/// The secret behind [`record_key`].
pub(crate) fn signing_key(identity: &Identity) -> SigningKey {
    let secret = Zeroizing::new(blake3::derive_key("WRAITH v1 mainline", identity.seed()));
    SigningKey::from_bytes(&secret)
}

/// The salt as BEP 44 has it.
pub(crate) fn item_salt(salt: u64) -> [u8; 8] {
    salt.to_be_bytes()
}

/// Sequence number and value of the item that carries a record.
pub(crate) fn encode(
    identity: &Identity,
    salt: u64,
    seq: u64,
    value: &[u8],
) -> Result<(i64, Vec<u8>), PutError> {
    let item_seq = i64::try_from(seq).map_err(|_| PutError::SeqTooHigh)?;
    if value.len() > MAX_VALUE {
        return Err(PutError::TooLong);
    }
    let signature = sign(identity, salt, seq, value).ok_or(PutError::TooLong)?;
    let certificate = SigningKey::from_bytes(identity.seed()).sign(&certified(&record_key(identity)));
    let mut item = Vec::with_capacity(HEADER + value.len());
    item.push(VERSION);
    item.extend_from_slice(identity.peer_id().as_bytes());
    item.extend_from_slice(&certificate.to_bytes());
    item.extend_from_slice(&signature);
    item.extend_from_slice(value);
    Ok((item_seq, item))
}

/// The record in an item under `key` whose signature of BEP 44 was checked; `None` if its peer did not make it, for this
/// key, this salt and this sequence number.
pub(crate) fn decode(key: &[u8; 32], salt: u64, seq: i64, item: &[u8]) -> Option<Record> {
    let (&version, rest) = item.split_first()?;
    let (peer, rest) = rest.split_first_chunk::<32>()?;
    let (certificate, rest) = rest.split_first_chunk::<64>()?;
    let (signature, value) = rest.split_first_chunk::<64>()?;
    if version != VERSION || value.len() > MAX_VALUE {
        return None;
    }
    let (peer, seq) = (PeerId::from_bytes(*peer).ok()?, u64::try_from(seq).ok()?);
    let certifier = VerifyingKey::from_bytes(peer.as_bytes()).ok()?;
    certifier.verify_strict(&certified(key), &Signature::from_bytes(certificate)).ok()?;
    let record = Record { peer, salt, seq, signature: *signature, value: value.to_vec() };
    let signed = record.signed();
    DhtRecord::Signed(signed).is_genuine(&signed.key()).then_some(record)
}

/// What a certificate signs.
fn certified(key: &[u8; 32]) -> Vec<u8> {
    [CERTIFICATE, key].concat()
}

#[cfg(test)]
mod tests;
