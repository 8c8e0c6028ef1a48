//! What another protocol seals to a peer in datagrams of its own (`PROTO §12.14`): without id and time, which that protocol
//! has or does not need.

use super::{Mailbox, OpenError, SealError};
use crate::crypto::{NoiseX, PAYLOAD_AT, PeerId, TAG_LEN};

/// Where the body begins in a note: behind the head of the Noise message and the sender's `PeerId`.
pub const NOTE_BODY_AT: usize = PAYLOAD_AT + 32;

/// Bytes that a note has more than its body.
pub const NOTE_OVERHEAD: usize = NOTE_BODY_AT + TAG_LEN;

/// Bytes in the clear that a note can be bound to at most.
pub const MAX_NOTE_PREFIX: usize = 32;

impl Mailbox {
    /// The peer with these bytes: at once if it is remembered, else after the check of `PROTO §3.2`; [`None`] if that fails.
    pub fn recognise(&self, peer: &[u8; 32]) -> Option<PeerId> {
        let remembered = self.peers.name(peer);
        remembered.or_else(|| PeerId::recognised_by(self.crypto, peer))
    }

    /// Seals the body that stands in `note` at [`NOTE_BODY_AT`], with 16 bytes of room behind it, to `to`. `prefix` travels
    /// in the clear beside it, and whoever alters it spoils the note. `randomness` is 32 fresh bytes.
    ///
    /// The protocol is to choose prefixes that begin as nothing else does, so that no note is taken for something else.
    ///
    /// # Errors
    /// [`SealError::Length`] if the prefix has more than [`MAX_NOTE_PREFIX`] bytes, [`SealError::Room`] if `note` is shorter
    /// than [`NOTE_OVERHEAD`], [`SealError::Recipient`] if `to` has no shared secret with this mailbox.
    pub fn seal_note(
        &mut self,
        prefix: &[u8],
        to: &PeerId,
        randomness: &[u8; 32],
        note: &mut [u8],
    ) -> Result<(), SealError> {
        if prefix.len() > MAX_NOTE_PREFIX {
            return Err(SealError::Length);
        }
        let end =
            note.len().checked_sub(TAG_LEN).filter(|&end| end >= NOTE_BODY_AT).ok_or(SealError::Room)?;
        note[PAYLOAD_AT..NOTE_BODY_AT].copy_from_slice(self.peer_id().as_bytes());
        let hedge = blake3::Hasher::new().update(prefix).update(&note[PAYLOAD_AT..end]).finalize();
        self.write(prefix, to, randomness, &hedge, note).map(drop)
    }

    /// Opens a note where it lies: who sealed it, and the body. Whatever it holds costs one X25519, and a second one if its
    /// first part is genuine and the sender not remembered: bound how often you call this.
    ///
    /// # Errors
    /// [`OpenError::NotForUs`], [`OpenError::Sender`], [`OpenError::Malformed`]. What `note` holds then is undefined.
    pub fn open_note<'n>(
        &mut self,
        prefix: &[u8],
        note: &'n mut [u8],
    ) -> Result<(PeerId, &'n mut [u8]), OpenError> {
        if prefix.len() > MAX_NOTE_PREFIX {
            return Err(OpenError::Malformed);
        }
        let (from, _, ()) = self.read::<32, _>(prefix, note, NoiseX::read_payload)?;
        let end = note.len() - TAG_LEN;
        Ok((from, &mut note[NOTE_BODY_AT..end]))
    }
}
