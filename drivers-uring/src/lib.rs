//! The WRAITH driver for Linux's `io_uring`: one UDP socket behind one ring.
//!
//! Sends of a flush enter the kernel together, with segmentation offload (GSO). One receive goes on by itself and
//! fills buffers that the ring provides, joined by the system where it can (GRO). ECN marks, local addresses
//! and both IP versions are as with the portable driver.
//!
//! It needs Linux 6.1 and no privileges. [`UringDriver::bind`] tries what it needs and says what was refused and
//! what to do about it ([`Refusal`]).
//!
//! Files have rings of their own: [`mod@file`].

#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

mod driver;
pub mod file;
mod options;
mod outer;
mod probe;
mod refusal;
#[expect(unsafe_code, reason = "the kernel shares this memory")]
mod ring;
mod rx;
mod socket;
mod tx;
mod verdict;
mod waker;
mod wire;

pub use driver::UringDriver;
pub use options::{Options, ZeroCopy};
pub use probe::probe;
pub use refusal::{BindError, Reason, Refusal, Step};
pub use tx::Tx;
pub use waker::UringUnparker;
