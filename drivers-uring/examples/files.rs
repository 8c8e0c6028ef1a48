//! Compares ways to read and write a file in order: system calls that wait, and the ring of `wraith_drivers_uring::file`.
//!
//! `cargo run --release --package wraith-drivers-uring --example files -- DIR [--pairs N] [--mib N]`
//!
//! Each pair runs both ways in turn, so that what the machine does besides meets both. Printed are medians in GB/s and
//! medians of the ratios of a pair, ring to calls: of the time, and of the processor time with the kernel's threads.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    linux::main()
}

#[cfg(target_os = "linux")]
#[path = "files/linux.rs"]
mod linux;
