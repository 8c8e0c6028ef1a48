//! What the benchmarks share: the machine they ran on, the crypto providers to compare, two endpoints without a
//! network between them, and an endpoint with many sessions.

#![forbid(unsafe_code)]

mod crowd;
mod duo;
mod lane;
mod machine;
mod providers;

pub use crowd::{Call, Crowd, Traffic};
pub use duo::{Arena, Duo, End};
pub use lane::{BATCH, Lane, Step};
pub use machine::Machine;
pub use providers::{Provider, default_provider, providers, slug};
