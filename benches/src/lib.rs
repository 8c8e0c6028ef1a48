//! What the benchmarks share: the machine they ran on, the crypto providers to compare, two endpoints without a
//! network between them.

#![forbid(unsafe_code)]

mod duo;
mod lane;
mod machine;
mod providers;

pub use duo::{Arena, Duo, End};
pub use lane::{BATCH, Lane, Step};
pub use machine::Machine;
pub use providers::{Provider, default_provider, providers, slug};
