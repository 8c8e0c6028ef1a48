//! Results, and how they are shown.

use std::time::Duration;

use serde::Serialize;
use wraith_benches::Machine;
use wraith_drivers::Mode;

use super::meter::Seen;
use super::plan::{Load, Plan};
use super::way::{BASE, Way};

/// A share of a core, or of all, from which on it is full.
const FULL: f64 = 0.93;

const COMMAND: &str = "cargo run --release -p wraith-benches --example veth --features xdp -- ";

/// One way with one load.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) way: Way,
    pub(super) load: Load,
    pub(super) size: u16,
    pub(super) mode: Option<Mode>,
    pub(super) runs: Vec<Run>,
}

/// What one run says.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Run {
    /// Gigabits of UDP payload that arrived in a second.
    gbps: f64,
    /// Packets that arrived in a second.
    pps: f64,
    /// Share of packets that were sent and did not arrive.
    lost: f64,
    /// Processor time for a packet, in nanoseconds: of the sending thread for a sent one.
    tx_ns: f64,
    /// Of the receiving thread for a received one.
    rx_ns: f64,
    /// Of the whole machine for a received one.
    machine_ns: f64,
    /// Share of a core that the sending thread took.
    tx_share: f64,
    /// Share of a core that the receiving thread took.
    rx_share: f64,
    /// Share of all cores that were busy.
    machine_share: f64,
}

/// The line of a row in JSON: medians, and the least and the largest of the runs.
#[derive(Serialize)]
struct Line<'a> {
    way: &'a str,
    mode: String,
    load: &'a str,
    packet_size: u16,
    median: Run,
    min: Run,
    max: Run,
    runs: usize,
    bound_by: &'a str,
    pps_to_base: Option<f64>,
    cpu_to_base: Option<f64>,
    machine_to_base: Option<f64>,
    machine: String,
}

impl Run {
    pub(super) fn new(size: u16, sent: &Seen, received: &Seen) -> Self {
        let pps = received.packets as f64 / received.time.as_secs_f64();
        let each = |time: Duration, packets: u64| time.as_secs_f64() * 1e9 / packets.max(1) as f64;
        let share = |part: Duration, time: Duration| part.as_secs_f64() / time.as_secs_f64();
        Self {
            gbps: pps * f64::from(size) * 8.0 / 1e9,
            pps,
            lost: sent.total.saturating_sub(received.total) as f64 / sent.total.max(1) as f64,
            tx_ns: each(sent.cpu, sent.packets),
            rx_ns: each(received.cpu, received.packets),
            machine_ns: each(sent.machine, received.packets),
            tx_share: share(sent.cpu, sent.time),
            rx_share: share(received.cpu, received.time),
            machine_share: share(sent.machine, sent.time) / cores() as f64,
        }
    }

    /// Each figure of several runs by itself.
    fn of(runs: &[Self], pick: impl Fn(&mut [f64]) -> f64) -> Self {
        let all = |figure: fn(&Self) -> f64| pick(&mut runs.iter().map(figure).collect::<Vec<_>>());
        Self {
            gbps: all(|run| run.gbps),
            pps: all(|run| run.pps),
            lost: all(|run| run.lost),
            tx_ns: all(|run| run.tx_ns),
            rx_ns: all(|run| run.rx_ns),
            machine_ns: all(|run| run.machine_ns),
            tx_share: all(|run| run.tx_share),
            rx_share: all(|run| run.rx_share),
            machine_share: all(|run| run.machine_share),
        }
    }

    /// Both threads.
    fn cpu_ns(&self) -> f64 {
        self.tx_ns + self.rx_ns
    }

    /// What is full.
    fn bound_by(&self) -> &'static str {
        match (self.tx_share >= FULL, self.rx_share >= FULL) {
            (true, true) => "both threads",
            (true, false) => "sender",
            (false, true) => "receiver",
            _ if self.machine_share >= FULL => "machine",
            _ => "window",
        }
    }
}

impl Row {
    pub(super) fn new(way: Way, load: Load, size: u16) -> Self {
        Self { way, load, size, mode: None, runs: Vec::new() }
    }

    fn median(&self) -> Run {
        Run::of(&self.runs, median)
    }

    /// The row of the way that others are compared with.
    fn base<'a>(&self, rows: &'a [Self]) -> Option<&'a Self> {
        rows.iter().find(|row| row.way.name == BASE && (row.load, row.size) == (self.load, self.size))
    }

    /// The median of the ratios to the other way within a round.
    fn ratio(&self, rows: &[Self], figure: impl Fn(&Run) -> f64) -> Option<f64> {
        let base = self.base(rows)?;
        let mut ratios: Vec<_> =
            self.runs.iter().zip(&base.runs).map(|(run, base)| figure(run) / figure(base)).collect();
        Some(median(&mut ratios))
    }

    /// A line of the table.
    fn markdown(&self, rows: &[Self]) -> String {
        let Run { gbps, lost, tx_ns, rx_ns, machine_ns, .. } = self.median();
        let millions = |pick: fn(f64, f64) -> f64| {
            self.runs.iter().map(|run| run.pps / 1e6).reduce(pick).unwrap_or_default()
        };
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        format!(
            "| `{}` | {} | {gbps:.2} | {:.3} M ({:.3}-{:.3}) | {:.2} % | {tx_ns:.0} | {rx_ns:.0} | {machine_ns:.0} | {} | \
             {} | {} |",
            self.way.name,
            self.size,
            self.median().pps / 1e6,
            millions(f64::min),
            millions(f64::max),
            lost * 100.0,
            self.median().bound_by(),
            ratio(self.ratio(rows, |run| run.pps)),
            ratio(self.ratio(rows, Run::cpu_ns)),
        )
    }
}

/// One object a line.
pub(super) fn print_json(rows: &[Row]) {
    let machine = Machine::detect().to_string();
    for row in rows {
        let line = Line {
            way: row.way.name,
            mode: row.mode.map(|mode| mode.to_string()).unwrap_or_default(),
            load: row.load.name(),
            packet_size: row.size,
            median: row.median(),
            min: Run::of(&row.runs, |values| values.iter().copied().fold(f64::INFINITY, f64::min)),
            max: Run::of(&row.runs, |values| values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            runs: row.runs.len(),
            bound_by: row.median().bound_by(),
            pps_to_base: row.ratio(rows, |run| run.pps),
            cpu_to_base: row.ratio(rows, Run::cpu_ns),
            machine_to_base: row.ratio(rows, |run| run.machine_ns),
            machine: machine.clone(),
        };
        println!("{}", serde_json::to_string(&line).expect("numbers and names"));
    }
}

/// A table for each load, and what it depends on.
pub(super) fn print_markdown(plan: &Plan, rows: &[Row]) {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    println!("{COMMAND}{}", arguments.join(" "));
    println!("{}; medians of {} runs of {} s.", Machine::detect(), plan.runs, plan.duration.as_secs_f64());
    println!("{}.", modes(rows));
    for load in Load::ALL {
        let mut with_load = rows.iter().filter(|row| row.load == load).peekable();
        if with_load.peek().is_none() {
            continue;
        }
        println!(
            "\n| {} | bytes | Gbit/s | packets/s (least to most) | lost | send, ns | receive, ns | machine, ns | bound by | \
             packets/s to {BASE} | CPU to {BASE} |\n|---|---|---|---|---|---|---|---|---|---|---|",
            load.name()
        );
        with_load.for_each(|row| println!("{}", row.markdown(rows)));
    }
}

/// How each way's datagrams really travelled.
fn modes(rows: &[Row]) -> String {
    let mut modes = Vec::new();
    for row in rows {
        let mode = row.mode.map(|mode| mode.to_string()).unwrap_or_default();
        let line = format!("`{}`: {mode}", row.way.name);
        if !modes.contains(&line) {
            modes.push(line);
        }
    }
    modes.join("; ")
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
