//! The frames that the fuzzer of headers starts with.
#![cfg(target_os = "linux")]

mod check;
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

use std::collections::BTreeSet;
use std::net::IpAddr;

use wraith_drivers_xdp::wire::{Checksums, read};

use seeds::seeds;

#[test]
fn every_seed_of_the_fuzzer_reads_as_etherparse_reads_it() {
    for (name, frame) in seeds("xdp_headers") {
        println!("{name}");
        check::check(&frame);
    }
}

#[test]
fn the_seeds_reach_every_outcome() {
    let outcomes = |setting| -> BTreeSet<String> {
        let outcome = |frame: &[u8]| match read(frame, setting).map(|(flow, _)| flow.from.ip()) {
            Ok(IpAddr::V4(_)) => "IPv4".to_owned(),
            Ok(IpAddr::V6(_)) => "IPv6".to_owned(),
            Err(malformed) => format!("{malformed:?}"),
        };
        seeds("xdp_headers").iter().map(|(_, frame)| outcome(frame)).collect()
    };
    let all = [
        "Fragment",
        "IPv4",
        "IPv6",
        "IpChecksum",
        "Length",
        "NotIp",
        "NotUdp",
        "Options",
        "TooShort",
        "UdpChecksum",
    ];
    assert_eq!(outcomes(Checksums::Verify), all.map(str::to_owned).into());
}
