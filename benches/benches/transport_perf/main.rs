//! The transport in levels: 0 is pure computation, 1 the protocol in memory, 2 system calls on loopback.
//!
//! `cargo bench --bench transport_perf -- "level0/"`.

mod level0;
mod level1;
mod level2;
mod sealed;
#[path = "../support.rs"]
mod support;

fn main() {
    let mut criterion = support::criterion("transport_perf");
    level0::benches(&mut criterion);
    sealed::benches(&mut criterion);
    level1::benches(&mut criterion);
    level2::benches(&mut criterion);
    criterion.final_summary();
}
