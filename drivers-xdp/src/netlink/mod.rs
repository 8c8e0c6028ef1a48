//! The kernel's tables of devices, addresses, routes and neighbours, asked over netlink (rtnetlink(7)).
//!
//! One request, one answer, in the calling thread: the kernel has the answer ready when the request has been sent.

mod socket;
mod tables;

#[expect(unused_imports, reason = "the driver that asks is not there yet")]
pub(crate) use tables::{Interface, Route, Tables};
