//! The WRAITH driver for Linux's `AF_XDP`: one queue of a network device, and memory shared with it.
//!
//! A filter in the kernel gives the driver what is for its UDP port and leaves all else alone. The core seals packets in
//! frames of that memory, and opens them there, without a copy of the driver's.

#![cfg(target_os = "linux")]

mod companion;
mod driver;
mod hops;
mod netlink;
mod open;
mod options;
mod program;
mod refusal;
mod ring;
#[cfg(test)]
mod testing;
mod tx;
#[cfg(any(test, feature = "veth"))]
pub mod veth;
mod waker;
pub mod wire;

pub use driver::{Drops, XdpDriver};
pub use options::{Attach, Copies, Options};
pub use refusal::{BindError, Reason, Refusal, Step};
pub use tx::Tx;
pub use waker::XdpUnparker;
