//! Why something was not sealed or not opened.

use core::fmt;

/// Why nothing was sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SealError {
    /// The Diffie-Hellman result with the recipient's key is zero (`PROTO §3.3`).
    Recipient,
    /// The place for the result is too small.
    Room,
    /// More than a datagram or a segment holds, or a segment that is not the last is not full.
    Length,
}

/// Why nothing was opened, or nothing more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// It does not begin as a sealed message or datagram does.
    NotSealed,
    /// A message in a format that is not known here.
    Version,
    /// Lengths or values that `PROTO §12` does not allow.
    Malformed,
    /// It is for another identity, or it was altered: there is no telling which.
    NotForUs,
    /// The sender's name is not acceptable, or not that of its key (`PROTO §12.4`).
    Sender,
    /// A segment was altered, or does not stand where its sender put it.
    Segment,
    /// The signature is not the sender's.
    Signature,
    /// The message ends before its last segment.
    Truncated,
    /// Something stands behind the last segment.
    Trailing,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recipient => "the recipient's key gives no secret",
            Self::Room => "there is no room for the result",
            Self::Length => "a part has a length that does not fit",
        })
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSealed => "it is no sealed message",
            Self::Version => "it is sealed in a format that is not known here",
            Self::Malformed => "it is not in order",
            Self::NotForUs => "it is sealed to another identity, or it was altered",
            Self::Sender => "the name of its sender does not fit the key",
            Self::Segment => "a part of it was altered",
            Self::Signature => "its signature is not the sender's",
            Self::Truncated => "it ends before its last part",
            Self::Trailing => "there is something behind its end",
        })
    }
}

impl core::error::Error for SealError {}
impl core::error::Error for OpenError {}
