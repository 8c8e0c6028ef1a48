//! What goes into a fetcher and what comes out.

use crate::Hash;
use crate::chunk_set::ChunkSet;
use crate::code::{Code, Violation};
use crate::message::Kind;
use crate::tree::{CHUNK, MAX_SIZE};
use alloc::boxed::Box;
use core::fmt;

/// How much a fetcher does at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetchLimits {
    /// Buffers of 1 MiB, 1 to 256: so many chunks are wanted, on their way or being written.
    pub buffers: usize,
    /// Of them, how many one source may owe for one content.
    pub per_source: usize,
    /// Contents that one source is asked for at a time, 1 to 16.
    pub transfers: usize,
    /// Lists of chaining values kept for each content, 32 KiB each, at least 12.
    pub lists: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { buffers: 8, per_source: 8, transfers: 16, lists: 16 }
    }
}

/// Names a content that a fetcher receives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FetchId(pub(super) u32);

/// What to fetch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// File or folder.
    pub kind: Kind,
    /// Content id.
    pub hash: Hash,
    /// Largest size taken, bytes; [`MAX_SIZE`] takes any.
    pub max_size: u64,
    /// What an earlier run left.
    pub resume: Option<Resume>,
}

impl Request {
    /// A content of any size, from its beginning.
    pub const fn new(kind: Kind, hash: Hash) -> Self {
        Self { kind, hash, max_size: MAX_SIZE, resume: None }
    }
}

/// What an earlier run verified, wrote and kept a journal of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resume {
    /// The size, which that run proved, bytes.
    pub size: u64,
    /// The chunks that are written.
    pub have: ChunkSet,
}

/// A verified chunk in its buffer.
#[derive(Debug)]
#[must_use = "give it back with `Fetcher::written`: the number of buffers is fixed"]
pub struct ReadyChunk {
    pub(super) fetch: FetchId,
    pub(super) chunk: u64,
    pub(super) len: usize,
    pub(super) buffer: Box<[u8]>,
}

impl ReadyChunk {
    /// The content that it belongs to.
    pub const fn fetch(&self) -> FetchId {
        self.fetch
    }

    /// Number of the chunk.
    pub const fn chunk(&self) -> u64 {
        self.chunk
    }

    /// Where it begins in the content, bytes.
    pub const fn offset(&self) -> u64 {
        self.chunk * CHUNK as u64
    }

    /// Its bytes; none while its buffer is elsewhere.
    pub fn data(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }

    /// Takes its buffer out, for a write that has to own the memory. The chunk's bytes come first in it.
    pub fn take_buffer(&mut self) -> Box<[u8]> {
        core::mem::take(&mut self.buffer)
    }

    /// Puts its buffer back.
    pub fn put_buffer(&mut self, buffer: Box<[u8]>) {
        self.buffer = buffer;
    }
}

/// What happened to a content or one of its sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FetchEvent<S> {
    /// A source claims this size, in bytes. Nothing is proven yet.
    Offered {
        /// Which content.
        fetch: FetchId,
        /// The claim.
        size: u64,
    },
    /// The last chunk proved the size: space can be reserved and a total be shown.
    SizeProven {
        /// Which content.
        fetch: FetchId,
        /// The size, bytes.
        size: u64,
    },
    /// Every chunk is verified and written. Store it for good, then [`confirm`](super::Fetcher::confirm).
    Complete {
        /// Which content.
        fetch: FetchId,
    },
    /// The source knows that all is done.
    Acknowledged {
        /// Which content.
        fetch: FetchId,
        /// Who.
        source: S,
    },
    /// A source does no more for the content. When none is left, ask another or cancel.
    SourceEnded {
        /// Which content.
        fetch: FetchId,
        /// Who.
        source: S,
        /// Why.
        why: EndReason,
    },
}

/// Why a source does no more for a content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EndReason {
    /// It refused to give it.
    Refused(Code),
    /// It gave up.
    Cancelled(Code),
    /// Its session ended.
    SessionClosed,
    /// It broke the protocol.
    Violation(Violation),
    /// This side gave up.
    Stopped,
    /// It sent a chunk that does not match, twice.
    BadChunk,
    /// It sent a list that does not match.
    BadList,
    /// Its size is not that of the content, or not that of the run before.
    WrongSize,
    /// The content is larger than `Request::max_size`.
    TooLarge,
    /// It delivered a chunk with a length that the chunk does not have.
    BadDelivery,
    /// Its streams ended early, twice.
    ShortDelivery,
    /// It has only parts of the content.
    Incomplete,
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused(code) | Self::Cancelled(code) => return code.fmt(f),
            Self::Violation(violation) => return write!(f, "the source broke the protocol: {violation}"),
            Self::SessionClosed => "the session ended",
            Self::Stopped => "stopped",
            Self::BadChunk => "the source sent bytes that do not match the content, twice",
            Self::BadList => "the source sent chunk values that do not match the content",
            Self::WrongSize => "the source's size is not that of the content",
            Self::TooLarge => "the content is larger than allowed",
            Self::BadDelivery => "the source delivered a chunk with a wrong length",
            Self::ShortDelivery => "the source stopped in the middle of a chunk, twice",
            Self::Incomplete => "the source has only parts of the content",
        })
    }
}

/// Why bytes of a stream were refused: the caller stops the stream and passes nothing more of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// A chunk that was not asked for, or not any more.
    Unsolicited,
    /// A length that the chunk does not have.
    WrongLength,
    /// The stream ended before the chunk did.
    Short,
    /// The bytes do not match the content.
    BadChunk,
}

impl StreamError {
    /// The code to stop the stream with.
    pub const fn code(self) -> u32 {
        match self {
            Self::Unsolicited => Code::STOPPED.0,
            Self::WrongLength | Self::Short => Code::BAD_DELIVERY.0,
            Self::BadChunk => Code::BAD_CHUNK.0,
        }
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsolicited => "a chunk that was not asked for",
            Self::WrongLength => "a chunk of wrong length",
            Self::Short => "a chunk cut short",
            Self::BadChunk => "a chunk that does not match the content",
        })
    }
}

impl core::error::Error for StreamError {}

/// Why a source was not asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AskError {
    /// No such content.
    UnknownFetch,
    /// No such source.
    UnknownSource,
    /// It is asked for this content already.
    AskedAlready,
    /// `FetchLimits::transfers` is reached.
    TooMany,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownFetch => "no such content",
            Self::UnknownSource => "no such source",
            Self::AskedAlready => "the source is asked for this content already",
            Self::TooMany => "the source is asked for too much at once",
        })
    }
}

impl core::error::Error for AskError {}

/// The content is not complete, so there is nothing to confirm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotComplete;

impl fmt::Display for NotComplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the content is not complete")
    }
}

impl core::error::Error for NotComplete {}

/// How far a content is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetchProgress {
    /// The claimed size, bytes.
    pub size: Option<u64>,
    /// Whether the last chunk has proven it.
    pub proven: bool,
    /// Bytes verified by this run.
    pub verified: u64,
    /// Bytes written, those of an earlier run included.
    pub written: u64,
    /// Chunks asked for and not yet verified.
    pub wanted: usize,
    /// Sources that are asked for it.
    pub sources: usize,
}

/// What a fetcher refused, over its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FetchStats {
    /// Chunks verified.
    pub chunks: u64,
    /// Streams with a chunk that was not asked for.
    pub unsolicited: u64,
    /// Streams whose length is not that of the chunk.
    pub wrong_length: u64,
    /// Streams that ended early or were reset.
    pub short: u64,
    /// Chunks that did not match.
    pub bad_chunks: u64,
    /// Lists that did not match.
    pub bad_lists: u64,
}
