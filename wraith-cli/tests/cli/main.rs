//! The real binary, as people and scripts run it.

#![forbid(unsafe_code)]

mod bench;
mod dht;
mod identity;
mod protocol;
#[cfg(all(target_os = "linux", feature = "io-uring"))]
mod refusals;
mod sealed;
mod sessions;
mod support;
mod usage;
