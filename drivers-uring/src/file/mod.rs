//! Reads and writes of files through a ring of their own, so that the thread of the network need not wait for them.

mod reader;
#[expect(unsafe_code, reason = "the kernel reads and writes the buffers of operations")]
mod ring;
mod writer;

use std::io;

use crate::refusal::{Refusal, Step};

pub use reader::Reader;
pub use writer::Writer;

/// Most operations of a file at the same time.
const MAX_DEPTH: u16 = 1024;

/// Tries what [`Reader`] and [`Writer`] need of `io_uring`.
///
/// # Errors
/// What was refused, and why.
pub fn probe() -> Result<(), Refusal> {
    let (any, _) = io::pipe().map_err(|error| Refusal::new(Step::Trial, &error))?;
    ring::Ring::new(&any, 1).map(|_| ())
}
