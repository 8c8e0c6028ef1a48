//! The sans-IO core of WRAITH, a secure datagram protocol.
//!
//! The whole contract in five lines:
//!
//! 1. Datagrams in: [`Endpoint::handle`] decrypts in your buffer, lends you the payload, owns nothing afterwards.
//! 2. Datagrams out: [`Endpoint::poll_transmit`] asks *your* [`TxQueue`] for memory and seals in place.
//! 3. Time: you pass `now`; [`Endpoint::poll_timeout`] says when and why to come back to
//!    [`Endpoint::handle_timeout`].
//! 4. News: [`Endpoint::poll_event`]. A session's state is [`Endpoint::session`].
//! 5. Same seed, same calls, same times give the same bytes. Nothing allocates after construction,
//!    except a bounded amount per handshake.
//!
//! No order between 1 and 4 is required; the cheap one is handle, `handle_timeout`, `poll_event`,
//! `poll_transmit`, `poll_timeout`. `docs/EMBEDDING.md` shows three ways to embed the core,
//! `docs/PROTOCOL.md` is the wire format; `PROTO §x.y` in comments cites its clauses.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
pub mod crypto;
mod endpoint;
mod error;
mod event;
mod meta;
mod queue;
mod recovery;
pub mod sealed;
mod session;
mod stats;
mod stream;
mod time;
#[cfg(feature = "trace")]
pub mod trace;
mod util;
pub mod wire;

pub use config::{Config, Congestion, Limits, MIN_DATAGRAM, Peer, Policy, Shard, Transport};
pub use crypto::{Identity, PeerId};
pub use endpoint::{Budget, Deadline, Endpoint, Memory, Progress, Received, TimerKind, TxStatus};
pub use error::{
    CloseReason, ConfigError, ConnectError, DatagramError, DropReason, OpenError, ReadError, SessionError,
    WriteError,
};
pub use event::{Event, Outcome, Payload};
pub use meta::{Ecn, RxMeta, TxMeta, Via};
pub use queue::{NoSource, OneShot, Source, TxQueue};
pub use session::{Session, SessionHandle};
pub use stats::{SessionStats, Stats};
pub use stream::{Assembler, Dir, StreamId};
pub use time::Instant;
