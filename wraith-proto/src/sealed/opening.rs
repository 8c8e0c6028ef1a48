//! Opening a message segment by segment (`PROTO §12.6` to `§12.9`).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use blake3::Hasher;

use super::envelope::Opened;
use super::sealing::{LAST, nonce, segment_key};
use super::{HEAD_LEN, MAGIC, Mailbox, OpenError, SEGMENT_HEADER_LEN, SEGMENT_LEN, SIGNATURE_LEN};
use crate::crypto::{NoiseX, PacketKey, PeerId, TAG_LEN};

/// The rest of a message that is being opened: its segments.
pub struct OpenStream {
    key: Box<dyn PacketKey>,
    /// Segments that were opened.
    segments: u64,
    claims: Opened,
    to: PeerId,
    /// Of the body so far, if there will be a signature.
    body: Option<Box<Hasher>>,
    is_ended: bool,
}

impl Mailbox {
    /// Opens the head of a message. Whatever it holds costs one X25519, and a second one if its first part is genuine and
    /// the sender not remembered.
    ///
    /// # Errors
    /// [`OpenError`], as it says.
    pub fn open_head(&mut self, head: &[u8; HEAD_LEN]) -> Result<OpenStream, OpenError> {
        let (clear, message) = head.split_at(MAGIC.len());
        match (clear[..7] == MAGIC[..7], clear[7] == MAGIC[7]) {
            (true, true) => {}
            (true, false) => return Err(OpenError::Version),
            _ => return Err(OpenError::NotSealed),
        }
        let mut copy = [0; HEAD_LEN - MAGIC.len()];
        copy.copy_from_slice(message);
        let (claims, finished) = self.read_envelope(&MAGIC, &mut copy, NoiseX::read_payload_and_finish)?;
        let body = claims.signed.then(|| Box::new(Hasher::new()));
        let key = segment_key(self, finished);
        Ok(OpenStream { key, segments: 0, claims, to: self.peer_id(), body, is_ended: false })
    }

    /// Opens a whole message and appends its body to `body`, which after an error is as it was.
    ///
    /// # Errors
    /// [`OpenError`], as it says.
    pub fn open(&mut self, message: &[u8], body: &mut Vec<u8>) -> Result<Opened, OpenError> {
        let before = body.len();
        let opened = self.open_all(message, body);
        if opened.is_err() {
            body.truncate(before);
        }
        opened
    }

    fn open_all(&mut self, message: &[u8], body: &mut Vec<u8>) -> Result<Opened, OpenError> {
        let Some((head, mut rest)) = message.split_first_chunk() else {
            return Err(if message.starts_with(&MAGIC) {
                OpenError::Truncated
            } else {
                OpenError::NotSealed
            });
        };
        let mut stream = self.open_head(head)?;
        while !rest.is_empty() {
            let (header, behind) = rest.split_first_chunk().ok_or(OpenError::Truncated)?;
            let (sealed, behind) =
                behind.split_at_checked(stream.expects(*header)?).ok_or(OpenError::Truncated)?;
            let before = body.len();
            body.extend_from_slice(sealed);
            let len = stream.segment(*header, &mut body[before..])?.len();
            body.truncate(before + len);
            rest = behind;
        }
        stream.end()
    }
}

impl OpenStream {
    /// Opens the segment behind `header` where it lies and lends its part of the body; the signature, too, if it is the
    /// last. Nothing of a segment may be used before this has returned.
    ///
    /// # Errors
    /// [`OpenError::Malformed`] for a wrong length, [`OpenError::Segment`], [`OpenError::Signature`],
    /// [`OpenError::Trailing`]. What `sealed` holds then is undefined.
    pub fn segment<'s>(
        &mut self,
        header: [u8; SEGMENT_HEADER_LEN],
        sealed: &'s mut [u8],
    ) -> Result<&'s mut [u8], OpenError> {
        let (len, is_last) = self.parse(header)?;
        if sealed.len() != self.expects(header)? {
            return Err(OpenError::Malformed);
        }
        self.key
            .open_in_place(nonce(self.segments, is_last), &header, sealed)
            .map_err(|_| OpenError::Segment)?;
        let (body, behind) = sealed.split_at_mut(len);
        if let Some(hasher) = &mut self.body {
            hasher.update(body);
            if is_last {
                let text = self.claims.signed_text(&self.to, &hasher.finalize());
                let signature = behind.first_chunk().ok_or(OpenError::Malformed)?;
                if !self.claims.from.has_signed(&text, signature) {
                    return Err(OpenError::Signature);
                }
            }
        }
        self.segments += 1;
        self.is_ended = is_last;
        Ok(body)
    }

    /// How many bytes stand behind the header of the next segment.
    ///
    /// # Errors
    /// [`OpenError::Malformed`] if no segment has that header, [`OpenError::Trailing`] behind the last one.
    pub fn expects(&self, header: [u8; SEGMENT_HEADER_LEN]) -> Result<usize, OpenError> {
        let (len, is_last) = self.parse(header)?;
        let signature = if is_last && self.claims.signed { SIGNATURE_LEN } else { 0 };
        Ok(len + signature + TAG_LEN)
    }

    /// What the head says. The sender is proven already; the signature, if it says that there is one, only when
    /// [`is_ended`](Self::is_ended).
    pub fn claims(&self) -> &Opened {
        &self.claims
    }

    /// Whether the last segment was opened.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// What is proven of the message, now that no byte is left.
    ///
    /// # Errors
    /// [`OpenError::Truncated`] if its last segment did not come.
    pub fn end(self) -> Result<Opened, OpenError> {
        if self.is_ended { Ok(self.claims) } else { Err(OpenError::Truncated) }
    }

    /// Bytes of the body in a segment, and whether it is the last.
    fn parse(&self, header: [u8; SEGMENT_HEADER_LEN]) -> Result<(usize, bool), OpenError> {
        if self.is_ended {
            return Err(OpenError::Trailing);
        }
        let header = u32::from_be_bytes(header);
        let (len, is_last) = ((header & !LAST) as usize, header & LAST != 0);
        let fits = if is_last { len <= SEGMENT_LEN } else { len == SEGMENT_LEN };
        if fits { Ok((len, is_last)) } else { Err(OpenError::Malformed) }
    }
}

impl fmt::Debug for OpenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStream").field("claims", &self.claims).finish_non_exhaustive()
    }
}
