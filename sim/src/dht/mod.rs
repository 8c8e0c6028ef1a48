//! Networks of DHT nodes in virtual time.
//!
//! A datagram takes 10 to 60 ms, 30 in the mean, so that a query and its answer take 20 to 120, 60 in the mean: the second
//! smallest of four even draws, which leans to the short side as round trips do. Nothing is lost unless asked for, messages
//! travel bare, computing takes no time. Nodes join one after the other through the first one of their family, and learn all
//! else from messages.
//!
//! A node has one address. Those with IPv4 and those with IPv6 do not reach each other, so each family is a network of its
//! own: a value is found by nodes of the family that stored it, and by no other.

mod net;
mod queue;
mod run;

pub use net::{Behaviour, DhtNetwork, End, Ended};
pub use run::{Adversaries, LATENCY_MODEL, Plan, Report, run};
