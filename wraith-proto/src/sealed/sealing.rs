//! Making a message segment by segment (`PROTO §12.6`, `§12.7`).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use blake3::Hasher;

use super::envelope::{ENVELOPE_LEN, Envelope, Letter};
use super::{HEAD_LEN, MAGIC, Mailbox, SEGMENT_HEADER_LEN, SEGMENT_LEN, SIGNATURE_LEN, SealError};
use crate::crypto::{Finished, Identity, PAYLOAD_AT, PacketKey, PeerId, TAG_LEN};

/// In the header of a segment: there is none behind it.
pub(super) const LAST: u32 = 1 << 31;

/// The rest of a message: its segments. A message without a last one does not open.
pub struct SealStream {
    key: Box<dyn PacketKey>,
    /// Segments that were sealed.
    segments: u64,
    signing: Option<Box<Signing>>,
}

/// What the signature behind the body needs.
struct Signing {
    identity: Identity,
    envelope: Envelope,
    to: PeerId,
    body: Hasher,
}

/// Bytes of a message around a body of `len` bytes.
pub const fn sealed_len(len: u64, signed: bool) -> u64 {
    let segments = if len == 0 { 1 } else { len.div_ceil(SEGMENT_LEN as u64) };
    let signature = if signed { SIGNATURE_LEN as u64 } else { 0 };
    HEAD_LEN as u64 + len + segments * (SEGMENT_HEADER_LEN + TAG_LEN) as u64 + signature
}

/// Key of the segments (`PROTO §12.8`).
pub(super) fn segment_key(mailbox: &Mailbox, finished: Finished) -> Box<dyn PacketKey> {
    mailbox.crypto.noise_key(&finished.derive("WRAITH v1 sealed segments"))
}

/// Number of a segment as Noise takes it for a nonce (`PROTO §12.8`).
pub(super) fn nonce(segment: u64, is_last: bool) -> u64 {
    // 2^63 segments are 2^79 bytes.
    segment << 1 | u64::from(is_last)
}

impl Mailbox {
    /// Begins a message and writes its head. `first` is what the first segment will hold: all of the body if that is not
    /// more than [`SEGMENT_LEN`] bytes. `randomness` is 32 fresh bytes of the operating system.
    ///
    /// # Errors
    /// [`SealError::Recipient`] if the recipient's key gives no secret.
    pub fn begin(
        &mut self,
        letter: &Letter,
        randomness: &[u8; 32],
        first: &[u8],
        head: &mut [u8; HEAD_LEN],
    ) -> Result<SealStream, SealError> {
        let envelope = Envelope::of(self.peer_id(), letter);
        let (clear, message) = head.split_at_mut(MAGIC.len());
        clear.copy_from_slice(&MAGIC);
        message[PAYLOAD_AT..PAYLOAD_AT + ENVELOPE_LEN].copy_from_slice(&envelope.to_bytes());
        let hedge = envelope.hedge(&MAGIC, first);
        let written = self.write(&MAGIC, &letter.to, randomness, &hedge, message)?;
        let finished = written.finish(&message[PAYLOAD_AT..]);
        let signing = letter.sign.then(|| {
            let identity = self.identity.clone();
            Box::new(Signing { identity, envelope, to: letter.to, body: Hasher::new() })
        });
        Ok(SealStream { key: segment_key(self, finished), segments: 0, signing })
    }

    /// Appends `body`, sealed as a message, to `out`. `randomness` is 32 fresh bytes of the operating system.
    ///
    /// # Errors
    /// [`SealError::Recipient`] if the recipient's key gives no secret; `out` is then as it was.
    pub fn seal(
        &mut self,
        letter: &Letter,
        randomness: &[u8; 32],
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let (first, mut rest) = body.split_at(body.len().min(SEGMENT_LEN));
        let mut head = [0; HEAD_LEN];
        let mut stream = self.begin(letter, randomness, first, &mut head)?;
        out.reserve(usize::try_from(sealed_len(body.len() as u64, letter.sign)).unwrap_or(0));
        out.extend_from_slice(&head);
        let mut piece = first;
        let around = SEGMENT_HEADER_LEN + TAG_LEN;
        while !rest.is_empty() {
            append(out, around + piece.len(), |place| stream.segment(piece, place))?;
            (piece, rest) = rest.split_at(rest.len().min(SEGMENT_LEN));
        }
        let signature = if letter.sign { SIGNATURE_LEN } else { 0 };
        append(out, around + piece.len() + signature, |place| stream.last(piece, place))
    }
}

impl SealStream {
    /// Seals a full segment that is not the last into `out` and returns the length of what it wrote.
    ///
    /// # Errors
    /// [`SealError::Length`] unless `body` has [`SEGMENT_LEN`] bytes, [`SealError::Room`] if `out` is too short;
    /// [`MAX_SEALED_SEGMENT`](super::MAX_SEALED_SEGMENT) is always enough.
    pub fn segment(&mut self, body: &[u8], out: &mut [u8]) -> Result<usize, SealError> {
        if body.len() != SEGMENT_LEN {
            return Err(SealError::Length);
        }
        let out = out.get_mut(..SEGMENT_HEADER_LEN + body.len() + TAG_LEN).ok_or(SealError::Room)?;
        if let Some(signing) = &mut self.signing {
            signing.body.update(body);
        }
        self.put(0, body, out);
        self.segments += 1;
        Ok(out.len())
    }

    /// Seals the last segment, which may be empty, into `out` and returns the length of what it wrote.
    ///
    /// # Errors
    /// [`SealError::Length`] if `body` has more than [`SEGMENT_LEN`] bytes, [`SealError::Room`] if `out` is too short;
    /// [`MAX_SEALED_SEGMENT`](super::MAX_SEALED_SEGMENT) is always enough. The message is lost either way.
    pub fn last(mut self, body: &[u8], out: &mut [u8]) -> Result<usize, SealError> {
        if body.len() > SEGMENT_LEN {
            return Err(SealError::Length);
        }
        let signature = self.signing.take().map(|mut signing| {
            let hash = signing.body.update(body).finalize();
            signing.identity.sign(&signing.envelope.signed_text(&signing.to, &hash))
        });
        let signature = signature.as_ref().map_or(&[][..], |signature| signature);
        let body_end = SEGMENT_HEADER_LEN + body.len();
        let len = body_end + signature.len() + TAG_LEN;
        let out = out.get_mut(..len).ok_or(SealError::Room)?;
        out[body_end..len - TAG_LEN].copy_from_slice(signature);
        self.put(LAST, body, out);
        Ok(len)
    }

    /// Header, body and what stands behind it, sealed.
    fn put(&self, flag: u32, body: &[u8], out: &mut [u8]) {
        let (header, packet) = out.split_at_mut(SEGMENT_HEADER_LEN);
        header.copy_from_slice(&(flag | body.len() as u32).to_be_bytes());
        self.key.seal_from(nonce(self.segments, flag == LAST), header, body, packet);
    }
}

impl fmt::Debug for SealStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealStream").field("segments", &self.segments).finish_non_exhaustive()
    }
}

/// Lets `seal` write `len` bytes behind what `out` holds.
fn append(
    out: &mut Vec<u8>,
    len: usize,
    seal: impl FnOnce(&mut [u8]) -> Result<usize, SealError>,
) -> Result<(), SealError> {
    let before = out.len();
    out.resize(before + len, 0);
    seal(&mut out[before..]).map(|_| ())
}

#[cfg(test)]
impl SealStream {
    /// What will be signed.
    pub(super) fn body_for_test(&mut self) -> &mut Hasher {
        &mut self.signing.as_mut().expect("it is to be signed").body
    }
}
