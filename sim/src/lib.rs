//! WRAITH in virtual time: links, pairs and networks of endpoints, reproducible from one seed.
//!
//! - [`Link`]: one direction of a path with latency, jitter, loss, reordering, duplication, rate,
//!   queue, ECN marking and MTU.
//! - [`Pair`]: two endpoints on a path, the fixture of most tests; [`Network`]: many around one router.
//! - [`Line`]: flows that share a line, to judge congestion control.
//! - [`Recorder`]: a host that keeps what arrives; [`Model`]: what an ideal session would have delivered.
//! - `dht` (feature `dht`): networks of DHT nodes, with churn and adversaries.
//! - [`Transcript`]: the hash of all that was sent.
//! - [`Transparent`]: a crypto provider that hides nothing.
//! - `alloc` (feature `alloc-count`): an allocator that counts, for tests that promise to allocate nothing.

#![deny(unsafe_code)]

#[cfg(feature = "alloc-count")]
#[expect(unsafe_code, reason = "a global allocator is unsafe by its trait; it only counts and forwards")]
pub mod alloc;
mod clock;
#[cfg(feature = "dht")]
pub mod dht;
mod line;
mod link;
mod model;
mod net;
mod node;
mod nonces;
mod outlet;
mod pair;
mod recorder;
mod rng;
mod transcript;
mod transparent;

pub use clock::Clock;
pub use line::{Cell, Line, Usage};
pub use link::{Fate, GilbertElliott, Link, LinkConfig, LinkCounters, LinkMeta, Loss};
pub use model::{Divergence, Model};
pub use net::Network;
pub use node::{Host, Node};
pub use nonces::NonceRecorder;
pub use outlet::{Passing, Verdict};
pub use pair::{LEFT, Pair, PairConfig, RIGHT, Side};
pub use recorder::{ReceivedStream, Recorder};
pub use rng::{Rng, SeedGuard};
pub use transcript::{Entry, Transcript};
pub use transparent::Transparent;
