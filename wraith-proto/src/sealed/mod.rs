//! Sealed messages: to one peer whose key is known, without a session (`PROTO §12`).
//!
//! A [`Mailbox`] seals and opens for one identity. A *message* is of any length and may be made and opened piece by piece
//! ([`Mailbox::begin`], [`Mailbox::open_head`]); a sealed *datagram* is whole in one datagram.
//!
//! Opening tells who sealed a message and keeps it from everybody else. It does not tell that it is new: a copy opens like
//! the first one, so whoever acts on messages remembers their ids. And it convinces nobody but the recipient, who could have
//! sealed the same in the sender's name; so could whoever steals the recipient's secret. A signature binds the sender
//! towards everybody.

mod datagram;
mod envelope;
mod error;
mod note;
mod opening;
mod peers;
mod sealing;

use alloc::boxed::Box;
use core::fmt;

use zeroize::Zeroizing;

use crate::crypto::{
    Beginning, CryptoProvider, Identity, NoiseX, PAYLOAD_AT, PeerId, TAG_LEN, Written, X25519Key, agree,
};
use envelope::{ENVELOPE_LEN, Envelope};
use peers::{Known, Peers};

pub use datagram::{DATAGRAM_OVERHEAD, MAX_DATAGRAM, has_sealed_form, is_datagram};
pub use envelope::{Letter, MessageId, Opened};
pub use error::{OpenError, SealError};
pub use note::{MAX_NOTE_PREFIX, NOTE_BODY_AT, NOTE_OVERHEAD};
pub use opening::OpenStream;
pub use sealing::{SealStream, sealed_len};

/// Bytes of a signature.
pub const SIGNATURE_LEN: usize = 64;

/// Bytes of plaintext in every segment but the last, which may have fewer (`PROTO §12.7`).
pub const SEGMENT_LEN: usize = 65_536;

/// Bytes of what stands in the clear before each segment (`PROTO §12.7`).
pub const SEGMENT_HEADER_LEN: usize = 4;

/// Most bytes of a sealed segment with its header: those of a signed last one.
pub const MAX_SEALED_SEGMENT: usize = SEGMENT_HEADER_LEN + SEGMENT_LEN + SIGNATURE_LEN + TAG_LEN;

/// Bytes of what stands before the segments of a message (`PROTO §12.6`).
pub const HEAD_LEN: usize = MAGIC.len() + PAYLOAD_AT + ENVELOPE_LEN + TAG_LEN;

/// What every message begins with; the last byte is the version of the format.
const MAGIC: [u8; 8] = *b"WRAITHS\x01";

/// Seals messages of one identity and opens those to it.
///
/// Its memory of peers has a fixed capacity, and whoever was not heard of for the longest time goes first. A peer in it
/// saves one of the three X25519 operations of sealing and one of the two of opening, and the check of its `PeerId`.
pub struct Mailbox {
    identity: Identity,
    crypto: &'static dyn CryptoProvider,
    key: Box<dyn X25519Key>,
    beginning: Beginning,
    peers: Peers,
}

impl Mailbox {
    /// A mailbox that remembers up to `peers` peers, at most 2^24; none is fine. Nothing but this call allocates for the
    /// memory; a message allocates its keys.
    pub fn new(identity: Identity, crypto: &'static dyn CryptoProvider, peers: u32) -> Self {
        let key = crypto.x25519_key(&identity.static_secret());
        let peers = Peers::new(peers, &identity);
        Self { identity, crypto, key, beginning: Beginning::new(), peers }
    }

    /// Bytes that the memory of `peers` peers takes.
    pub const fn memory(peers: u32) -> usize {
        Peers::memory(peers)
    }

    /// Forgets every peer.
    pub fn forget_peers(&mut self) {
        self.peers.clear();
    }

    /// Whose mailbox it is.
    pub fn peer_id(&self) -> PeerId {
        self.identity.peer_id()
    }

    /// Number of peers that are remembered.
    pub fn known_peers(&self) -> usize {
        self.peers.len()
    }

    /// Seals the payload in `message` at [`PAYLOAD_AT`], which `hedge` is a hash of, and returns the state for what follows.
    fn write(
        &mut self,
        clear: &[u8],
        to: &PeerId,
        randomness: &[u8; 32],
        hedge: &blake3::Hash,
        message: &mut [u8],
    ) -> Result<Written, SealError> {
        let known = match self.peers.of_peer(to) {
            Some(known) => known,
            None => self.meet(self.crypto.static_public(to)).ok_or(SealError::Recipient)?,
        };
        let noise = NoiseX::new(self.crypto, &self.beginning, &prologue(clear, to), &known.public);
        let ephemeral = self.ephemeral(to, randomness, hedge);
        let written = noise
            .write(&ephemeral, &known.public, &self.key.public(), &known.shared, message)
            .ok_or(SealError::Recipient)?;
        self.peers.remember(to, known);
        Ok(written)
    }

    /// Opens the payload of `message` where it lies behind [`PAYLOAD_AT`], by one of the two ways of [`NoiseX`]; it has at
    /// least `N` bytes and begins with the sender's `PeerId`. Nothing changes unless all of it is genuine.
    fn read<const N: usize, F>(
        &mut self,
        clear: &[u8],
        message: &mut [u8],
        payload: impl FnOnce(NoiseX, &[u8; 32], &mut [u8]) -> Option<(usize, F)>,
    ) -> Result<(PeerId, [u8; N], F), OpenError> {
        let (head, sealed) = message.split_first_chunk_mut::<PAYLOAD_AT>().ok_or(OpenError::Malformed)?;
        let prologue = prologue(clear, &self.peer_id());
        let mut noise = NoiseX::new(self.crypto, &self.beginning, &prologue, &self.key.public());
        let public = noise.read_static(&*self.key, head).ok_or(OpenError::NotForUs)?;
        let met = self.peers.of_static(&public);
        let (known, name) = match met {
            Some((known, name)) => (known, Some(name)),
            None => (self.meet(public).ok_or(OpenError::NotForUs)?, None),
        };
        let (len, end) = payload(noise, &known.shared, sealed).ok_or(OpenError::NotForUs)?;
        let fields: &[u8; N] = sealed.get(..len).and_then(<[u8]>::first_chunk).ok_or(OpenError::Malformed)?;
        let claimed = fields.first_chunk().ok_or(OpenError::Malformed)?;
        let from = match name {
            Some(name) if name.as_bytes() == claimed => name,
            _ => PeerId::checked_by(self.crypto, claimed, &known.public).ok_or(OpenError::Sender)?,
        };
        self.peers.remember(&from, known);
        Ok((from, *fields, end))
    }

    /// As [`read`](Self::read), of what has the fields of `PROTO §12.3`.
    fn read_envelope<F>(
        &mut self,
        clear: &[u8],
        message: &mut [u8],
        payload: impl FnOnce(NoiseX, &[u8; 32], &mut [u8]) -> Option<(usize, F)>,
    ) -> Result<(Envelope, F), OpenError> {
        let (from, fields, end) = self.read::<ENVELOPE_LEN, _>(clear, message, payload)?;
        let envelope = Envelope::read(from, &fields).ok_or(OpenError::Malformed)?;
        Ok((envelope, end))
    }

    /// X25519 with the static key of a peer that is not remembered.
    fn meet(&self, public: [u8; 32]) -> Option<Known> {
        agree(&*self.key, &public).map(|shared| Known { public, shared })
    }

    /// The secret of an ephemeral key (`PROTO §12.10`): weak randomness alone does not make two messages share one.
    fn ephemeral(&self, to: &PeerId, randomness: &[u8; 32], hedge: &blake3::Hash) -> Zeroizing<[u8; 32]> {
        let mut material = Zeroizing::new([0; 128]);
        let parts = [randomness, self.identity.seed(), to.as_bytes(), hedge.as_bytes()];
        for (place, part) in material.chunks_exact_mut(32).zip(parts) {
            place.copy_from_slice(part);
        }
        Zeroizing::new(blake3::derive_key("WRAITH v1 sealed ephemeral", &*material))
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mailbox").field(&self.identity.peer_id()).finish()
    }
}

/// Bytes of a prologue at most: label, version, prefix, recipient.
const MAX_PROLOGUE: usize = 6 + 4 + MAX_NOTE_PREFIX + 32;

/// `PROTO §12.2`: the name of the recipient is in it, since two names share one X25519 key.
fn prologue(clear: &[u8], to: &PeerId) -> heapless::Vec<u8, MAX_PROLOGUE> {
    let mut prologue = heapless::Vec::new();
    for part in [b"WRAITH", &crate::wire::VERSION.to_be_bytes()[..], clear, to.as_bytes()] {
        prologue.extend_from_slice(part).expect("6, 4, at most 32 and 32 bytes");
    }
    prologue
}

#[cfg(test)]
mod tests;
