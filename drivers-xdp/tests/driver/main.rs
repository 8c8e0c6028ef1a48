//! The driver on lines between hosts of its own.
#![cfg(target_os = "linux")]

mod common;
mod life;
mod paths;
mod shards;
