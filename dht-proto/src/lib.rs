//! A Kademlia DHT, sans-IO: whom to ask, what to answer, what to believe.
//!
//! The whole of it is [`Dht`] with five verbs: [`Dht::handle`] takes a message, [`Dht::poll_transmit`] writes one,
//! [`Dht::poll_timeout`] says when to call [`Dht::handle_timeout`], and [`Dht::poll_event`] says what became of
//! [`Dht::find`], [`Dht::get`], [`Dht::put`] and [`Dht::announce`]. The crate does not know what carries the messages; the
//! carrier proves the sender's key.
//!
//! - Only nodes that answered enter the table, and an answer counts only with the random transaction id, from the asked
//!   address and the asked key.
//! - Tables, lookups and the nodes that a record is stored on take at most 2 nodes of a /24 (/48 of IPv6) and 4 of a /16
//!   (/32): ids are free, addresses are not.
//! - A lookup follows three disjoint paths. It stores on the 20 nearest nodes and on all within the distance that the
//!   20th is to be expected at from the estimated size of the network, and looks as far.
//! - Same seed, same calls, same times give the same bytes. Nothing allocates once a node is made.
//!
//! Not here yet: a carrier. The simulator carries the messages bare.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
mod dht;
mod event;
mod id;
mod message;
mod node;
mod query;
mod random;
mod rate;
mod record;
mod shortlist;
mod store;
mod table;
mod token;

pub use config::Limits;
pub use dht::{Dht, DropReason};
pub use event::{Closest, Event, Outcome, Providers, QueryId, StartError};
pub use id::Id;
pub use message::{
    Ask, Held, MAX_MESSAGE, MAX_NODES, Message, Nodes, Reply, StoreResult, Transaction, write_request,
};
pub use node::NodeRef;
pub use rate::RateLimits;
pub use record::{Kind, MAX_VALUE, Record, Signed, sign, signed_key, value_key};
pub use token::{TOKEN, Token};
