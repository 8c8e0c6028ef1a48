//! Networks of DHT nodes in virtual time.
//!
//! A datagram takes 10 to 60 ms, 30 in the mean, so that a query and its answer take 20 to 120, 60 in the mean: the second
//! smallest of four even draws, which leans to the short side as round trips do. Nothing is lost, messages travel bare,
//! computing takes no time. Nodes join one after the other through the first one, and learn all else from messages.

mod net;
mod run;

pub use net::{Behaviour, DhtNetwork, Ended};
pub use run::{Adversaries, LATENCY_MODEL, Plan, Report, run};
