//! The WRAITH driver for Linux's `AF_XDP`: one queue of a network device, and memory shared with it.
//!
//! A filter in the kernel gives the driver what is for its UDP port and leaves all else alone. The core seals packets in
//! frames of that memory, and opens them there, without a copy of the driver's.

#![cfg(target_os = "linux")]

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "what the driver asks before it begins, and it is not there yet")
)]
mod netlink;
mod refusal;
#[cfg(any(test, feature = "veth"))]
pub mod veth;
pub mod wire;

pub use refusal::{BindError, Reason, Refusal, Step};
