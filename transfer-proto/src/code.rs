//! Why a transfer or a session ends, as numbers on the wire.

use core::fmt;

/// Why a transfer was refused or cancelled, as it stands in a message (`PROTO §10.14`).
///
/// Unknown numbers are kept: a newer peer may know more reasons.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Code(pub u32);

impl Code {
    /// The user or the program stopped it.
    pub const STOPPED: Self = Self(0);
    /// The content is unknown or the token is wrong: one answer for both.
    pub const NOT_FOUND: Self = Self(1);
    /// Too many transfers at once.
    pub const BUSY: Self = Self(2);
    /// A chunk did not match the content id.
    pub const BAD_CHUNK: Self = Self(3);
    /// A list of chaining values did not match its parent.
    pub const BAD_LIST: Self = Self(4);
    /// The offered size is not that of the content.
    pub const WRONG_SIZE: Self = Self(5);
    /// The content changed or could not be read while it was sent.
    pub const CHANGED: Self = Self(6);
    /// The content is larger than the receiver takes.
    pub const TOO_LARGE: Self = Self(7);
    /// A delivery's length is not that of its chunk.
    pub const BAD_DELIVERY: Self = Self(8);
    /// The receiver could not store what it got.
    pub const NOT_STORED: Self = Self(9);
    /// The provider has only parts of the content, which this version does not use.
    pub const INCOMPLETE: Self = Self(10);
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::STOPPED => "stopped by the other side",
            Self::NOT_FOUND => "the sender does not offer this content under this ticket",
            Self::BUSY => "the sender has too many transfers at once",
            Self::BAD_CHUNK => "a chunk did not match the content",
            Self::BAD_LIST => "a list of chunk values did not match the content",
            Self::WRONG_SIZE => "the offered size is not that of the content",
            Self::CHANGED => "the content changed while it was sent",
            Self::TOO_LARGE => "the content is larger than the receiver takes",
            Self::BAD_DELIVERY => "a chunk was delivered with a wrong length",
            Self::NOT_STORED => "the receiver could not store the content",
            Self::INCOMPLETE => "the sender has only parts of the content",
            Self(other) => return write!(f, "ended for reason {other}"),
        })
    }
}

/// How a peer broke chapter 10; the session is closed with [`Violation::code`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Violation {
    /// A message of no bytes or of more than 65,536.
    MessageLength,
    /// Fields that do not add up or have impossible values.
    Malformed,
    /// A message type that is neither known nor an extension.
    UnknownType,
    /// A message that only the other side sends.
    WrongSide,
    /// A transfer number that does not ascend, or was never begun.
    TransferNumber,
    /// A chunk or list that the content does not have.
    OutOfRange,
    /// More unanswered requests or wanted chunks than allowed.
    TooMany,
    /// An offer or list that nobody asked for.
    Unsolicited,
    /// A confirmation of other content than was offered.
    WrongContent,
}

impl Violation {
    /// The code to close the session with (`PROTO §10.15`).
    pub const fn code(self) -> u32 {
        match self {
            Self::MessageLength => 0x101,
            Self::Malformed => 0x102,
            Self::UnknownType => 0x103,
            Self::WrongSide => 0x104,
            Self::TransferNumber => 0x105,
            Self::OutOfRange => 0x106,
            Self::TooMany => 0x107,
            Self::Unsolicited => 0x108,
            Self::WrongContent => 0x109,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MessageLength => "a message of forbidden length",
            Self::Malformed => "a malformed message",
            Self::UnknownType => "a message of unknown type",
            Self::WrongSide => "a message from the wrong side",
            Self::TransferNumber => "a wrong transfer number",
            Self::OutOfRange => "a chunk or list outside the content",
            Self::TooMany => "more requests than allowed",
            Self::Unsolicited => "an answer that nobody asked for",
            Self::WrongContent => "a confirmation of other content",
        })
    }
}

impl core::error::Error for Violation {}
