//! A message that is whole in one datagram (`PROTO §12.5`).

use super::envelope::{ENVELOPE_LEN, Envelope, Letter, Opened};
use super::{Mailbox, OpenError, SIGNATURE_LEN, SealError};
use crate::crypto::{NoiseX, PAYLOAD_AT, TAG_LEN};

/// The first byte: form 011, bit 4 zero, type 1. Neither handshake nor packet begins so.
const FIRST: u8 = 0b0110_0001;

/// Where the body of an unsigned datagram begins.
const BODY_AT: usize = 1 + PAYLOAD_AT + ENVELOPE_LEN;

/// Bytes that a sealed datagram has more than its body; a signature is [`SIGNATURE_LEN`] more.
pub const DATAGRAM_OVERHEAD: usize = BODY_AT + TAG_LEN;

/// Most bytes of a sealed datagram: what UDP carries over IPv4. What a path carries unasked is 1,200 (`PROTO §2.1`).
pub const MAX_DATAGRAM: usize = 65_507;

/// Whether a datagram has the form of those that belong to no session, by its first byte: bits 7 to 4 are `0110`
/// (`PROTO §2.2`). An endpoint drops them all, whatever their type, so a caller that takes some looks here first.
#[inline]
pub const fn has_sealed_form(datagram: &[u8]) -> bool {
    matches!(datagram, [0x60..=0x6f, ..])
}

/// Whether a datagram is of that form and holds a message that [`Mailbox::open_datagram`] opens: type 1 (`PROTO §12.5`).
#[inline]
pub const fn is_datagram(datagram: &[u8]) -> bool {
    matches!(datagram, [FIRST, ..])
}

impl Mailbox {
    /// Seals `body` into `out` and returns the length. `randomness` is 32 fresh bytes of the operating system.
    ///
    /// # Errors
    /// [`SealError::Length`] if it does not fit in [`MAX_DATAGRAM`], [`SealError::Room`] if it does not fit in `out`.
    pub fn seal_datagram(
        &mut self,
        letter: &Letter,
        randomness: &[u8; 32],
        body: &[u8],
        out: &mut [u8],
    ) -> Result<usize, SealError> {
        let envelope = Envelope::of(self.peer_id(), letter);
        let body_at = BODY_AT + if letter.sign { SIGNATURE_LEN } else { 0 };
        let len = body.len().saturating_add(body_at + TAG_LEN);
        if len > MAX_DATAGRAM {
            return Err(SealError::Length);
        }
        let out = out.get_mut(..len).ok_or(SealError::Room)?;
        out[0] = FIRST;
        out[1 + PAYLOAD_AT..BODY_AT].copy_from_slice(&envelope.to_bytes());
        out[body_at..body_at + body.len()].copy_from_slice(body);
        if letter.sign {
            let text = envelope.signed_text(&letter.to, &blake3::hash(body));
            out[BODY_AT..body_at].copy_from_slice(&self.identity.sign(&text));
        }
        let hedge = envelope.hedge(&[FIRST], body);
        self.write(&[FIRST], &letter.to, randomness, &hedge, &mut out[1..])?;
        Ok(len)
    }

    /// Opens a datagram where it lies and lends its body. Whatever it holds costs one X25519, and a second one if its first
    /// part is genuine and the sender not remembered: bound how often you call this.
    ///
    /// # Errors
    /// Every [`OpenError`] but those of segments. What `datagram` holds then is undefined.
    pub fn open_datagram<'d>(&mut self, datagram: &'d mut [u8]) -> Result<(Opened, &'d mut [u8]), OpenError> {
        let Some((&mut FIRST, message)) = datagram.split_first_mut() else {
            return Err(OpenError::NotSealed);
        };
        let (envelope, ()) = self.read_envelope(&[FIRST], message, NoiseX::read_payload)?;
        let end = message.len() - TAG_LEN;
        let body = &mut message[PAYLOAD_AT + ENVELOPE_LEN..end];
        if !envelope.signed {
            return Ok((envelope, body));
        }
        let (signature, body) = body.split_first_chunk_mut().ok_or(OpenError::Malformed)?;
        let text = envelope.signed_text(&self.peer_id(), &blake3::hash(body));
        if !envelope.from.has_signed(&text, signature) {
            return Err(OpenError::Signature);
        }
        Ok((envelope, body))
    }
}
