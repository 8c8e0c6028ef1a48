//! The WRAITH driver for Linux's `AF_XDP`: one queue of a network device, and memory shared with it.
//!
//! A filter in the kernel gives the driver what is for its UDP port and leaves all else alone. The core seals packets in
//! frames of that memory, and opens them there, without a copy of the driver's.

#![cfg(target_os = "linux")]

mod companion;
#[cfg_attr(not(test), expect(dead_code, reason = "no driver uses it yet"))]
mod hops;
#[cfg_attr(not(test), expect(dead_code, reason = "no driver uses it yet"))]
mod netlink;
mod options;
mod program;
mod refusal;
mod ring;
mod tx;
#[cfg(test)]
mod testing;
#[cfg(any(test, feature = "veth"))]
pub mod veth;
mod waker;
pub mod wire;

pub use options::{Attach, Copies, Options};
pub use refusal::{BindError, Reason, Refusal, Step};
pub use tx::Tx;
pub use waker::XdpUnparker;
