//! Prints how much of a line CUBIC and BBR use, alone and beside each other, in virtual time, as CSV.
//!
//! `cargo run --release -p wraith-sim --example congestion`: every cell of `docs/congestion.csv`.
//! `… --example congestion -- cubic+bbr 100 20 200 0`: one cell: flows, Mbit/s, round trip in ms, buffer in percent of
//! what the line holds, lost of a million. `… -- bbr 10000 20 200 0` is a line of 10 Gbit/s.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use wraith_sim::Cell;

/// The cells of the table, in its order.
fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for rate in [10, 100, 1_000] {
        for rtt in [20, 100, 300, 1] {
            for buffer in [20, 200] {
                let mut add = |flows: &str, loss| cells.push(Cell::new(flows, rate, rtt, buffer, loss));
                for loss in [0, 1_000, 10_000, 50_000] {
                    add("cubic", loss);
                    add("bbr", loss);
                }
                for pair in ["cubic+cubic", "bbr+bbr", "cubic+bbr"] {
                    // A gigabit for two minutes and more is 10 million packets.
                    if rate < 1_000 || rtt == 20 {
                        add(pair, 0);
                    }
                }
            }
        }
    }
    cells
}

/// Runs every cell, as many at a time as there are cores, and prints them in order.
fn print_all(cells: &[Cell]) {
    let next = AtomicUsize::new(0);
    let (done, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            let (done, next) = (done.clone(), &next);
            scope.spawn(move || {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let _ = done.send((cell, cell.run()));
                }
            });
        }
        drop(done);
        let mut waiting: Vec<_> = cells.iter().map(|cell| (cell, None)).collect();
        let mut printed = 0;
        for (cell, usage) in results {
            for entry in waiting.iter_mut().filter(|entry| entry.0 == cell) {
                entry.1 = Some(usage.clone());
            }
            while let Some((cell, Some(usage))) = waiting.get(printed) {
                println!("{}", cell.row(usage));
                printed += 1;
            }
        }
    });
}

fn main() {
    println!("{}", Cell::HEADER);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        print_all(&cells());
    } else {
        let cell = Cell::parse(&arguments.join(",")).expect("flows, Mbit/s, ms, percent, lost of a million");
        println!("{}", cell.row(&cell.run()));
    }
}
