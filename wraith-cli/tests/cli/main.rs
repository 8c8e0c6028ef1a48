//! The real binary, as people and scripts run it.

#![forbid(unsafe_code)]

mod bench;
mod identity;
mod protocol;
mod sessions;
mod support;
mod usage;
