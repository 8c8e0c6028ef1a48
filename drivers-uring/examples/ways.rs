//! Compares ways to send and receive bare datagrams: the portable driver, this one, and what it can be asked for.
//!
//! `cargo run --release --package wraith-drivers-uring --example ways -- [--veth] [--pairs N] [--load NAME] [WAY…]`
//!
//! Each pair runs the portable driver and another way in turn, so that what the machine does besides meets both.
//! Printed are medians of the ratios of a pair: below 1 the way takes less processor time for a datagram, or
//! less time for a round trip, than the portable driver. With `--veth` the two ends are hosts of their own, as
//! root.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
#[path = "ways/linux.rs"]
mod linux;
