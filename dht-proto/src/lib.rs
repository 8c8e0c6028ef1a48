//! A Kademlia DHT, sans-IO: whom to ask, what to answer, what to believe.
//!
//! The whole of it is [`SealedDht`] with five verbs: [`SealedDht::handle`] takes a datagram, [`SealedDht::poll_transmit`]
//! writes one, [`Dht::poll_timeout`] says when to call [`Dht::handle_timeout`], and [`Dht::poll_event`] says what became of
//! [`Dht::find`], [`Dht::get`], [`Dht::put`] and [`Dht::announce`]. [`Dht`] alone is the same without the seals, for
//! simulations: there whoever carries its messages vouches for their senders.
//!
//! - Only nodes that answered enter the table, and an answer counts only with the random transaction id, from the asked
//!   address and the asked key.
//! - Tables, lookups and the nodes that a record is stored on take at most 2 nodes of a /24 (/48 of IPv6) and 4 of a /16
//!   (/32): ids are free, addresses are not.
//! - A lookup follows three disjoint paths. It stores on the 20 nearest nodes and on all within the distance that the
//!   20th is to be expected at from the estimated size of the network, and looks as far.
//! - Same seed, same calls, same times give the same bytes. Nothing allocates once a node is made.
//!
//! Datagrams and messages are those of `PROTO §14`.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
mod dht;
mod event;
mod header;
mod id;
mod message;
mod node;
mod query;
mod random;
mod rate;
mod record;
mod sealed;
mod shortlist;
mod store;
mod table;
mod token;

pub use config::Limits;
pub use dht::{Admitted, Dht, DropReason, Transmit};
pub use event::{Closest, Conflict, Event, Outcome, Providers, QueryId, StartError};
pub use header::{Header, MAX_DATAGRAM, MAX_HEADER, MAX_UNSEALED, Transaction};
pub use id::Id;
pub use message::{Ask, Held, MAX_NODES, Nodes, Offer, Reply, StoreResult, write_ask};
pub use node::{NodeRef, is_public};
pub use rate::RateLimits;
pub use record::{Kind, MAX_SIGNED_VALUE, MAX_VALUE, Record, Signed, sign, signed_key, value_key};
pub use sealed::SealedDht;
pub use token::{Token, WriteToken};
