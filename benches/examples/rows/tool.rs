//! The rows that the tool answers: it is run for each of them.

use std::error::Error;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::table::Table;
use crate::units::digits;

/// Packet sizes, from the smallest that `bench` has, and what was published for them in Gbit/s.
const LOOPBACK: [(u16, &str); 5] =
    [(512, "2.1"), (1024, "4.2"), (1364, "0.87 (Freenet)"), (1472, "6.1"), (8192, "9.4")];

/// Encrypted datagrams over loopback, beside the bare socket in the same run.
pub(crate) fn loopback() -> Result<Table, Box<dyn Error>> {
    let columns =
        ["packet", "published, Gbit/s", "Gbit/s", "packets/s", "lost", "bare socket, Gbit/s", "suite"];
    let mut table = Table::new("Datagrams over loopback, counted at the receiver", &columns);
    for (size, published) in LOOPBACK {
        let line = run(&["bench", "--duration", "5s", "--packet-size", &size.to_string()])?;
        let cells = ["gbps", "pps", "lost", "bare_gbps"].map(|field| number(&line, field));
        let suite = line["suite"].as_str().unwrap_or_default().to_owned();
        table.row(&format!("{size} B"), [published.to_owned()].into_iter().chain(cells).chain([suite]));
    }
    Ok(table)
}

/// A file between two processes.
pub(crate) fn file() -> Result<Table, Box<dyn Error>> {
    let mut table = Table::new("A file of 1 GiB between two processes", &["run", "seconds", "Gbit/s"]);
    table.row("published", ["2.43".to_owned(), "3.29".to_owned()]);
    let folder: &[&str] = if cfg!(target_os = "linux") { &["--dir", "/dev/shm"] } else { &[] };
    for round in ["warm-up", "1", "2", "3", "4", "5"] {
        let line = run(&[&["demo", "--size", "1GiB"], folder].concat())?;
        table.row(round, ["seconds", "gbps"].map(|field| number(&line, field)));
    }
    Ok(table)
}

/// The last line that the tool prints for programs.
fn run(arguments: &[&str]) -> Result<Value, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "--package", "wraith-cli", "--", "--json"]).args(arguments);
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().last().filter(|_| output.status.success());
    let line = line.ok_or_else(|| format!("`wraith-cli {}` failed", arguments.join(" ")))?;
    Ok(serde_json::from_str(line)?)
}

fn number(line: &Value, field: &str) -> String {
    line[field].as_f64().map_or_else(crate::results::missing, digits)
}
