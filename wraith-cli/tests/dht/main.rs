//! The DHT as real processes on loopback.

#![forbid(unsafe_code)]
#![cfg(unix)]

mod bootstrap;
mod content;
mod ends;
mod fifty;
#[path = "../cli/heard.rs"]
mod heard;
mod late;
mod node;
mod peers;
mod state;
#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "these tests give every listener arguments")]
mod support;
