//! Files between two processes of the real binary, and from liars.

#![forbid(unsafe_code)]

mod announced;
mod demo;
#[cfg(unix)]
mod ends;
mod files;
mod hostile;
mod liar;
#[cfg(unix)]
mod lost;
mod network;
mod pipes;
#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "these tests need no listener")]
mod support;
mod targets;
mod tickets;
mod transfer;
