//! Verified file transfer, sans-IO: what to ask, what to answer, what to believe.
//!
//! A content is named by the plain BLAKE3 hash of its bytes, what `b3sum` prints. It travels in chunks
//! of 1 MiB, each verified before it is handed out for writing. The exchange rides on reliable streams
//! and is normative in `docs/PROTOCOL.md`, chapters 10 (file transfer) and 11 (tickets):
//!
//! ```text
//! receiver                         provider
//!   Get {hash, token}        ->
//!                            <-    Offer {size, top list}
//!   Want {first, bits}       ->
//!                            <-    one stream per chunk, in the order of the wants
//!   Done                     ->
//!                            <-    DoneAck
//! ```
//!
//! - [`Provider`] serves: [`Tree`]s of contents, and the sessions that ask for them.
//! - [`Fetcher`] receives: any number of contents from any number of sources, in a fixed set of buffers.
//! - [`Ticket`] is what one person hands to another; [`check_name`] guards every name from the wire.
//!
//! No file, no socket, no clock: bytes and verdicts only.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod base32;
mod chunk_set;
mod code;
mod codec;
mod control;
mod delivery;
mod fetcher;
mod message;
mod name;
mod provider;
mod ticket;
mod tree;

pub use chunk_set::ChunkSet;
pub use code::{Code, Violation};
pub use delivery::{DELIVERY_HEADER, DeliveryHeader};
pub use fetcher::{
    AskError, EndReason, FetchEvent, FetchId, FetchLimits, FetchProgress, FetchStats, Fetcher, NotComplete,
    ReadyChunk, Request, Resume, StreamError,
};
pub use message::{ChunkBits, Kind, MAX_MESSAGE, MAX_WANTED, Message, Token, WANT_SPAN};
pub use name::{MAX_NAME, NameError, NameRules, check_name, check_name_for, escape};
pub use provider::{
    Access, AddError, ContentKey, Delivery, Failure, OpenError, Provider, ProviderEvent, ProviderLimits,
};
pub use ticket::{MAX_ADDRESSES, MAX_TICKET_TEXT, Ticket, TicketError};
pub use tree::{
    CHUNK, Expected, FAN, ListId, MAX_SIZE, Tree, TreeBuilder, TreeError, TreeVerifier, chunk_count,
    chunk_value,
};

pub use wraith_proto::PeerId;

/// The name of this protocol in a session's list of application protocols (`PROTO §10.1`).
pub const PROTOCOL: &[u8] = b"wraith-transfer/1";

/// A content id: the plain BLAKE3 hash of the bytes.
pub type Hash = [u8; 32];
