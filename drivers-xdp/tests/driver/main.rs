//! The driver on lines between hosts of its own.
#![cfg(target_os = "linux")]

#[path = "../../../drivers/tests/beside/app.rs"]
mod app;
mod common;
mod life;
mod paths;
mod sessions;
mod shards;
