//! The table of congestion control holds: a few cells of `docs/congestion.csv` computed again, and what it promises.
//!
//! `WRAITH_BUDGET=full` computes every cell of up to 100 Mbit/s.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use wraith_proto::{Congestion, Transport};
use wraith_sim::Cell;

const TABLE: &str = include_str!("../../docs/congestion.csv");

/// Equal code gives equal figures; changes elsewhere may shift a share by this much of the line, in percent.
const TOLERANCE: f64 = 3.0;

/// Cells that are computed each time: loss, shallow and deep buffers, and flows beside each other.
const SHORT: [&str; 14] = [
    "bbr,10,20,200,0,",
    "bbr,10,20,20,0,",
    "bbr,100,100,20,0,",
    "bbr,100,100,200,0,",
    "bbr,100,100,20,10000,",
    "bbr,100,100,200,10000,",
    "cubic,10,100,200,10000,",
    "cubic,10,20,200,0,",
    "bbr+bbr,10,20,200,0,",
    "bbr+bbr,10,100,20,0,",
    "bbr+bbr,10,300,20,0,",
    "bbr+bbr,10,300,200,0,",
    "bbr+bbr,100,20,20,0,",
    "cubic+bbr,10,20,200,0,",
];

/// Shares and queueing delay of a row.
fn figures(row: &str) -> Vec<f64> {
    row.split(',').skip(5).filter(|column| !column.is_empty()).map(|column| column.parse().unwrap()).collect()
}

fn row(start: &str) -> &'static str {
    TABLE.lines().find(|row| row.starts_with(start)).unwrap_or_else(|| panic!("no row {start}"))
}

fn shares(start: &str) -> Vec<f64> {
    let mut figures = figures(row(start));
    figures.pop();
    figures
}

#[test]
fn the_table_holds_what_the_simulator_says_now() {
    let full = std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full");
    let cheap = |row: &&str| !row.contains(",1000,") && !row.starts_with("flows");
    let rows: Vec<&str> = if full { TABLE.lines().filter(cheap).collect() } else { SHORT.map(row).to_vec() };
    let next = AtomicUsize::new(0);
    let check = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let cell = Cell::parse(row).expect("a row of the table");
            let now = cell.row(&cell.run());
            let (is, was) = (figures(&now), figures(row));
            assert_eq!(is.len(), was.len(), "{row}");
            for (is, was) in is.iter().zip(&was).take(is.len() - 1) {
                assert!((is - was).abs() <= TOLERANCE, "{now} is now what was {row}");
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(check);
        }
    });
}

#[test]
fn two_flows_of_the_default_share_within_60_to_40_on_all_lines_but_one() {
    // Of few packets, which a cycle of several long rounds and a queue that stays make slow to converge.
    const SLOW: &str = "bbr+bbr,10,300,200,0,";
    let mut rows = 0;
    for row in TABLE.lines().filter(|row| row.starts_with("bbr+bbr,")) {
        let shares = shares(row);
        let smaller = shares[0].min(shares[1]) / (shares[0] + shares[1]);
        assert!(smaller >= if row.starts_with(SLOW) { 0.37 } else { 0.4 }, "{row}");
        rows += 1;
    }
    assert!(rows >= 16, "lines of 1 to 300 ms, shallow and deep: {rows}");
}

#[test]
fn the_default_fills_a_line_of_100_mbit_with_and_without_loss() {
    assert_eq!(Transport::default().congestion, Congestion::Bbr);
    for buffer in [20, 200] {
        for (loss, least) in [(0, 95.0), (10_000, 80.0)] {
            let share = shares(&format!("bbr,100,100,{buffer},{loss},"))[0];
            assert!(share >= least, "{share} % at {loss} of a million, {buffer} % buffer");
        }
    }
}
