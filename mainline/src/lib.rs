//! WRAITH on the `BitTorrent` DHT: who serves a content, where a peer is, and records that a peer signs.
//!
//! [`Mainline`] is a node of that network with seven verbs, each with a deadline and a way to stop. What it finds is hearsay:
//! an address has to prove by a session that it is the peer, or by its bytes that it has the content. A [`Record`] is
//! proven, by three signatures (`docs/decisions/020-mainline.md`).
//!
//! That network knows IPv4 alone, and whatever is published there can be read by anybody together with the address that
//! it came from.

#![forbid(unsafe_code)]

mod addresses;
mod error;
mod node;
mod record;
mod wait;

pub use addresses::MAX_CANDIDATES;
pub use error::{FindError, GetError, PublishError, PutError, StartError};
pub use node::{Mainline, Stored};
pub use record::{MAX_SEQ, MAX_VALUE, Record, record_key};
pub use wait::Limit;
