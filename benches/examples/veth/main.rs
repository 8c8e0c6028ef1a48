//! Compares drivers between two hosts on one veth pair: encrypted datagrams, and bare ones beside them.
//!
//! `cargo run --release -p wraith-benches --example veth --features xdp -- [--runs 7] [--seconds 2]
//! [--sizes 512,1024,1472] [--ways NAME,…] [--loads encrypted,bare] [--json]`, as root.
//!
//! In each round every way has a pair of devices of its own for every size, in turn, backwards in every second round; a
//! round before the first is thrown away. Printed are medians. Each end is one thread and waits by parking.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    match linux::main() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod linux;
