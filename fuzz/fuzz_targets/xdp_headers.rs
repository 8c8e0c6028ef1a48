//! Any bytes as a frame from the network.
#![no_main]

#[path = "../../drivers-xdp/tests/headers/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|frame: &[u8]| check::check(frame));
