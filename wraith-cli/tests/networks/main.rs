//! Networks that change while a file crosses them, with the real binary: hosts in namespaces of their own, a router between
//! them, and its nftables. They take root, and touch nothing outside their namespaces.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod changes;
mod host;
mod nat;
#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "these tests need only a part")]
mod support;
mod topology;
#[path = "../transfer/transfer.rs"]
#[expect(dead_code, reason = "these tests need only a part")]
mod transfer;
