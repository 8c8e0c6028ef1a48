//! What stands beside the body of a sealed message (`PROTO §12.3`), and what a signature covers (`PROTO §12.9`).

use core::fmt;

use crate::crypto::PeerId;

/// Bytes of the fields before the body: sender, id, time, flags.
pub(super) const ENVELOPE_LEN: usize = 32 + 16 + 8 + 1;

/// The only flag: a signature follows.
const SIGNED: u8 = 1;

/// The name of a message, by which a recipient notices a copy. Its sender draws it at random.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub [u8; 16]);

/// What its sender says of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Letter {
    /// The recipient.
    pub to: PeerId,
    /// 16 random bytes.
    pub id: MessageId,
    /// The sender's time, in milliseconds since the beginning of 1970, UTC.
    pub time: u64,
    /// Whether to sign it: the recipient can then prove to anybody who sent it.
    pub sign: bool,
}

/// What its recipient learns of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Who sealed it, if nobody else has the recipient's secret.
    pub from: PeerId,
    /// Its name, for the recipient to notice a copy.
    pub id: MessageId,
    /// The sender's time, in milliseconds since the beginning of 1970, UTC.
    pub time: u64,
    /// Whether it carries the sender's signature, and that is good.
    pub signed: bool,
}

/// The fields, whose sender was checked.
pub(super) type Envelope = Opened;

impl Envelope {
    /// The fields of a sender's letter.
    pub(super) fn of(from: PeerId, letter: &Letter) -> Self {
        Self { from, id: letter.id, time: letter.time, signed: letter.sign }
    }

    /// Reads all but the sender, which is checked first; `None` if a flag is set that has no meaning.
    pub(super) fn read(from: PeerId, fields: &[u8; ENVELOPE_LEN]) -> Option<Self> {
        let (id, rest) = fields[32..].split_first_chunk()?;
        let (time, flags) = rest.split_first_chunk()?;
        let signed = match flags {
            [0] => false,
            [SIGNED] => true,
            _ => return None,
        };
        Some(Self { from, id: MessageId(*id), time: u64::from_be_bytes(*time), signed })
    }

    pub(super) fn to_bytes(self) -> [u8; ENVELOPE_LEN] {
        let mut fields = [0; ENVELOPE_LEN];
        fields[..32].copy_from_slice(self.from.as_bytes());
        fields[32..48].copy_from_slice(&self.id.0);
        fields[48..56].copy_from_slice(&self.time.to_be_bytes());
        fields[56] = if self.signed { SIGNED } else { 0 };
        fields
    }

    /// What the ephemeral key depends on besides randomness and names (`PROTO §12.10`).
    pub(super) fn hedge(self, clear: &[u8], body: &[u8]) -> blake3::Hash {
        blake3::Hasher::new().update(clear).update(&self.to_bytes()).update(body).finalize()
    }

    /// What a signature of a body with this hash covers.
    pub(super) fn signed_text(self, to: &PeerId, body: &blake3::Hash) -> [u8; 137] {
        let mut text = [0; 137];
        let mut at = 0;
        for part in [
            &b"WRAITH v1 sealed\0"[..],
            self.from.as_bytes(),
            to.as_bytes(),
            &self.id.0,
            &self.time.to_be_bytes(),
            body.as_bytes(),
        ] {
            text[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        text
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
