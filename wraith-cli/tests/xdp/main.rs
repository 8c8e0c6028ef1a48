//! The driver on `AF_XDP` in the real binary, on devices that the tests make. It takes root.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod files;
mod hosts;
mod refusals;
mod runs;
#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "these tests need only a part")]
mod support;
#[path = "../transfer/transfer.rs"]
#[expect(dead_code, reason = "these tests need only a part")]
mod transfer;
mod usage;
