//! Results: single runs, their sums, and how they are shown.

use std::time::Duration;

use serde::Serialize;

use super::Kind;
use crate::cipher;
use crate::driver_pick::Picked;

/// One run, or the sum of several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    /// Application bytes that arrived.
    pub(super) bytes: u64,
    /// Packets that carried them.
    pub(super) packets: u64,
    /// Packets that were sent and did not arrive.
    pub(super) lost: u64,
    /// From the first to the last arrival.
    pub(super) rx_time: Duration,
    /// CPU time of the receiving thread.
    pub(super) rx_cpu: Option<Duration>,
    /// Time spent sending.
    pub(super) tx_time: Duration,
    /// CPU time of the sending thread.
    pub(super) tx_cpu: Option<Duration>,
    pub(super) picked: Option<Picked>,
    pub(super) suite: Option<&'static str>,
}

impl Run {
    /// Adds another run of the same kind.
    pub(super) fn add(&mut self, other: &Self) {
        let first = self.packets == 0;
        let sum = |a: Option<Duration>, b: Option<Duration>| if first { b } else { Some(a? + b?) };
        self.rx_cpu = sum(self.rx_cpu, other.rx_cpu);
        self.tx_cpu = sum(self.tx_cpu, other.tx_cpu);
        self.bytes += other.bytes;
        self.packets += other.packets;
        self.lost += other.lost;
        self.rx_time += other.rx_time;
        self.tx_time += other.tx_time;
        self.picked = other.picked.or(self.picked);
        self.suite = self.suite.or(other.suite);
    }

    fn gbps(&self) -> f64 {
        per_second(self.bytes as f64 * 8.0 / 1e9, self.rx_time)
    }

    fn pps(&self) -> f64 {
        per_second(self.packets as f64, self.rx_time)
    }

    /// Shares of one core: 1.0 is a whole one.
    fn cpu(&self) -> (Option<f64>, Option<f64>) {
        (
            self.tx_cpu.map(|cpu| per_second(cpu.as_secs_f64(), self.tx_time)),
            self.rx_cpu.map(|cpu| per_second(cpu.as_secs_f64(), self.rx_time)),
        )
    }

    /// A line of the table.
    pub(super) fn text(&self, name: &str) -> String {
        let percent =
            |cpu: Option<f64>| cpu.map_or_else(|| "-".to_owned(), |cpu| format!("{:.0} %", cpu * 100.0));
        let (cpu_tx, cpu_rx) = self.cpu();
        format!(
            "{name:10} {:>8.3} {:>11.0} {:>9} {:>9} {:>9}",
            self.gbps(),
            self.pps(),
            self.lost,
            percent(cpu_tx),
            percent(cpu_rx)
        )
    }
}

/// The heading of the lines of [`Run::text`].
pub(super) fn heading() -> String {
    format!("{:10} {:>8} {:>11} {:>9} {:>9} {:>9}", "", "Gbit/s", "packets/s", "lost", "CPU send", "CPU recv")
}

/// The result of one kind of load. `cpu_tx` and `cpu_rx` are shares of one core.
#[derive(Serialize)]
#[serde(tag = "event", rename = "bench")]
pub(super) struct BenchEvent {
    driver: &'static str,
    mode: &'static str,
    kind: &'static str,
    packet_size: u16,
    seconds: f64,
    received_bytes: u64,
    received_packets: u64,
    lost: u64,
    gbps: f64,
    pps: f64,
    cpu_tx: Option<f64>,
    cpu_rx: Option<f64>,
    bare_gbps: Option<f64>,
    bare_pps: Option<f64>,
    bare_lost: Option<u64>,
    bare_cpu_tx: Option<f64>,
    bare_cpu_rx: Option<f64>,
    ratio_to_bare: Option<f64>,
    suite: &'static str,
    crypto: &'static str,
}

impl BenchEvent {
    pub(super) fn new(kind: Kind, packet_size: u16, run: &Run, bare: Option<&Run>) -> Self {
        let Picked { name: driver, mode } = run.picked.unwrap_or(Picked { name: "none", mode: "none" });
        let (cpu_tx, cpu_rx) = run.cpu();
        let (bare_cpu_tx, bare_cpu_rx) = bare.map_or((None, None), Run::cpu);
        let bare_gbps = bare.map(Run::gbps);
        Self {
            driver,
            mode,
            kind: kind.name(),
            packet_size,
            seconds: run.rx_time.as_secs_f64(),
            received_bytes: run.bytes,
            received_packets: run.packets,
            lost: run.lost,
            gbps: run.gbps(),
            pps: run.pps(),
            cpu_tx,
            cpu_rx,
            bare_gbps,
            bare_pps: bare.map(Run::pps),
            bare_lost: bare.map(|bare| bare.lost),
            bare_cpu_tx,
            bare_cpu_rx,
            ratio_to_bare: bare_gbps.filter(|bare| *bare > 0.0).map(|bare| run.gbps() / bare),
            suite: run.suite.unwrap_or("none"),
            crypto: cipher::LIBRARY,
        }
    }

    /// Its part of what the bare socket carries, for people.
    pub(super) fn ratio_text(&self) -> Option<String> {
        self.ratio_to_bare.map(|ratio| format!("{}s carry {ratio:.2} of the bare socket's bytes", self.kind))
    }
}

fn per_second(amount: f64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_rates_follow_from_what_arrived() {
        let run = Run {
            bytes: 1_250_000_000,
            packets: 1_000_000,
            lost: 3,
            rx_time: Duration::from_secs(2),
            rx_cpu: Some(Duration::from_secs(1)),
            tx_time: Duration::from_secs(4),
            tx_cpu: None,
            picked: Some(Picked { name: "mio", mode: "syscall" }),
            suite: Some("S"),
        };
        let mut sum = Run::default();
        sum.add(&run);
        sum.add(&run);
        let bare = Run { bytes: 5_000_000_000, rx_time: Duration::from_secs(4), ..run };
        let event = BenchEvent::new(Kind::Datagram, 1472, &sum, Some(&bare));
        let json: serde_json::Value = serde_json::to_value(&event).unwrap();
        assert_eq!(json["event"], "bench");
        assert_eq!(json["kind"], "datagram");
        assert_eq!(json["driver"], "mio");
        assert_eq!(json["seconds"], 4.0);
        assert_eq!(json["received_packets"], 2_000_000);
        assert_eq!(json["lost"], 6);
        assert_eq!(json["gbps"], 5.0);
        assert_eq!(json["pps"], 500_000.0);
        assert_eq!(json["cpu_tx"], serde_json::Value::Null);
        assert_eq!(json["cpu_rx"], 0.5);
        assert_eq!(json["bare_gbps"], 10.0);
        assert_eq!(json["ratio_to_bare"], 0.5);
        assert_eq!(json["suite"], "S");
    }
}
