//! Any bytes as datagrams of the DHT whose seal is good, and any interleaving of them.
#![no_main]

#[path = "../../dht-proto/tests/hostile/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::check(bytes);
});
