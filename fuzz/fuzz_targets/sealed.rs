//! Any bytes as a sealed message.
#![no_main]

#[path = "../../wraith-proto/tests/sealed/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &[u8]| check::check(message));
