//! What many sessions cost: memory of each, and the time of a packet with 10 to 100,000 of them.
//!
//! `cargo bench --bench sessions`, or with numbers of sessions: `cargo bench --bench sessions -- 1000 50000`.

mod memory;
mod time;

use wraith_benches::Machine;
use wraith_sim::alloc::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

fn main() {
    // Without `--bench` it is a test: everything once, and little of it.
    let benches = std::env::args().any(|arg| arg == "--bench");
    let chosen: Vec<u32> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let counts = match (&chosen[..], benches) {
        ([], true) => &[10, 100, 1_000, 10_000, 100_000],
        ([], false) => &[10, 100][..],
        (chosen, _) => chosen,
    };
    eprintln!("{}", Machine::detect());
    memory::print(counts);
    time::print(counts, if benches { 1 << 17 } else { 128 });
}
