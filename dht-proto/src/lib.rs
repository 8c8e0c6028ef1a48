//! A Kademlia DHT, sans-IO: whom to ask, what to answer, what to believe.

#![no_std]
#![forbid(unsafe_code)]
#![expect(dead_code, reason = "parts without the machine that joins them")]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod id;
mod message;
mod node;
mod random;
mod rate;
mod record;
mod store;
mod table;
mod token;

pub use id::Id;
pub use message::{
    Ask, Held, MAX_MESSAGE, MAX_NODES, Message, Nodes, Reply, StoreResult, Transaction, write_request,
};
pub use node::NodeRef;
pub use rate::RateLimits;
pub use record::{Kind, MAX_VALUE, Record, Signed, sign, signed_key, value_key};
pub use token::{TOKEN, Token};
