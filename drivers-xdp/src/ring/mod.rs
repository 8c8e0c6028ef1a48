//! One `AF_XDP` socket: memory shared with the kernel, and four rings that say whose each part of it is.
//!
//! The only modules with `unsafe`. What they give out is safe to use: a [`Slot`] is the right to a part of the memory
//! that the kernel does not have, and a received frame is lent for a call.

mod memory;
mod receive;
mod setup;
mod transmit;

#[cfg(test)]
mod tests;

pub(crate) use receive::{Frame, Receive};
pub(crate) use setup::{Setup, open};
pub(crate) use transmit::{Kicked, Slot, Transmit};

/// Set in all descriptors of a packet but its last (`XDP_PKT_CONTD`, `linux/if_xdp.h`).
const CONTINUED: u32 = 1;
