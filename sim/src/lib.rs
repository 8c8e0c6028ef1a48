//! WRAITH in virtual time: links, pairs and networks of endpoints, reproducible from one seed.
//!
//! - [`Link`]: one direction of a path with latency, jitter, loss, reordering, duplication, rate,
//!   queue, ECN marking and MTU.
//! - [`Transcript`]: the hash of all that was sent.
//! - `alloc` (feature `alloc-count`): an allocator that counts, for tests that promise to allocate nothing.

#![deny(unsafe_code)]

#[cfg(feature = "alloc-count")]
#[expect(unsafe_code, reason = "a global allocator is unsafe by its trait; it only counts and forwards")]
pub mod alloc;
mod link;
mod rng;
mod transcript;

pub use link::{Fate, GilbertElliott, Link, LinkConfig, LinkCounters, LinkMeta, Loss};
pub use rng::{Rng, SeedGuard};
pub use transcript::{Entry, Transcript};
