//! Instructions that a packet costs without its cipher, both ends together: a figure that a busy machine does not
//! change.
//!
//! `cargo run --profile bench -p wraith-benches --example instructions`; it needs valgrind.

use std::error::Error;
use std::process::Command;

use wraith_benches::{BATCH, Lane};
use wraith_sim::Transparent;

/// Bytes of a datagram.
const PACKET: u16 = 1364;

/// Packets of the shorter of two runs, whose difference leaves out what comes before the first.
const PACKETS: u64 = 100 * BATCH as u64;

const CASES: [&str; 3] = ["datagram", "stream, filled", "stream, lent"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [case, packets] = &arguments[..] {
        return run(case, packets.parse()?);
    }
    println!("| a packet of {PACKET} bytes | instructions |\n|---|---|");
    for case in CASES {
        let instructions = count(case, 2 * PACKETS)? - count(case, PACKETS)?;
        println!("| {case} | {} |", instructions / PACKETS);
    }
    Ok(())
}

/// Carries packets, to be counted.
fn run(case: &str, packets: u64) -> Result<(), Box<dyn Error>> {
    let crypto = Transparent::ACCEPT_ANY;
    let mut lane = match case {
        "datagram" => Lane::datagrams(crypto, &[], PACKET),
        "stream, filled" => Lane::stream(crypto, &[], PACKET, false),
        "stream, lent" => Lane::stream(crypto, &[], PACKET, true),
        _ => return Err(format!("no case {case}").into()),
    };
    lane.whole(packets);
    Ok(())
}

/// Instructions of a run of this program.
fn count(case: &str, packets: u64) -> Result<u64, Box<dyn Error>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args([case, &packets.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}; install it"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = text.lines().find_map(|line| line.split("Collected : ").nth(1));
    let counted = counted.filter(|_| output.status.success()).ok_or_else(|| format!("valgrind: {text}"))?;
    Ok(counted.trim().parse()?)
}
