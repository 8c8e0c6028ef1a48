//! `wraith-conformance`: runs the suite against the drivers of WRAITH, and protocol cases against any implementation.

#![forbid(unsafe_code)]

mod args;
mod drivers;
mod junit;
mod peer;
mod table;

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use wraith_conformance::broken::{self, Specimen};
use wraith_conformance::{Memory, Options, Report, cases};
use wraith_drivers::Driver;

use args::{Cli, Command, Run};

// Some cases count what a driver allocates.
wraith_conformance::counting_allocator!();

/// Wrong usage, or an environment that means nothing.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) if args.list => list(),
        Command::Run(args) => run(&args),
        Command::Peer(args) => peer::run(&args),
        Command::Broken => reject_broken(),
    }
}

fn list() -> ExitCode {
    let mut out = io::stdout().lock();
    for case in cases() {
        if writeln!(out, "{:60} {:18} {}", case.id, case.clause, case.level).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn run(args: &Run) -> ExitCode {
    let options = match args.options() {
        Ok(options) => options,
        Err(error) => return failed(&error, USAGE),
    };
    let wanted = options.only.as_deref().unwrap_or_default();
    if !cases().iter().any(|case| case.id.contains(wanted)) {
        return failed(&format!("no case has {wanted:?} in its name: see --list"), USAGE);
    }
    let mut reports = Vec::new();
    for driver in &args.driver {
        for report in driver.run(&options) {
            if !args.json {
                eprintln!("{}", table::headline(&report));
            }
            reports.push(report);
        }
    }
    if let Err(error) = print(args, &reports) {
        return failed(&error.to_string(), 1);
    }
    if reports.iter().all(Report::conforms) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(args: &Run, reports: &[Report]) -> io::Result<()> {
    if let Some(path) = &args.junit {
        let xml = junit::xml(reports).map_err(io::Error::other)?;
        let named = |error: io::Error| io::Error::other(format!("cannot write {}: {error}", path.display()));
        fs::write(path, xml).map_err(named)?;
    }
    let mut out = io::stdout().lock();
    for report in reports.iter().filter(|_| args.json) {
        writeln!(out, "{}", report.to_json())?;
    }
    if !args.json {
        write!(out, "{}{}", table::verdicts(reports), table::failures(reports))?;
    }
    out.flush()
}

/// Which cases reject which broken driver.
fn reject_broken() -> ExitCode {
    let mut options = match Options::from_env() {
        Ok(options) => options,
        Err(error) => return failed(&error.to_string(), USAGE),
    };
    // Over memory and loopback, what does not come soon never does.
    options.patience = std::time::Duration::from_millis(250);
    let mut caught = print_specimens(&broken::specimens::<Memory>(), &options);
    #[cfg(unix)]
    {
        caught &= print_specimens(&broken::pollable_specimens::<wraith_conformance::Mio>(), &options);
    }
    if caught { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a line for each, and says whether all were rejected.
fn print_specimens<D: Driver + 'static>(specimens: &[Specimen<D>], options: &Options) -> bool {
    let mut all = true;
    for Specimen { name, rejected_by, suite } in specimens {
        let rejects =
            |case: &&&str| matches!(suite.run_case(case, options), wraith_conformance::Verdict::Fail(_));
        let rejecting: Vec<&str> = rejected_by.iter().filter(rejects).copied().collect();
        let caught = rejecting.len() == rejected_by.len();
        let text = if caught { rejecting.join(", ") } else { "NOT REJECTED".to_owned() };
        // Whoever reads no further wants the exit code at most.
        let _ = writeln!(io::stdout(), "{name:28} {text}");
        all &= caught;
    }
    all
}

fn failed(message: &str, code: u8) -> ExitCode {
    eprintln!("wraith-conformance: {message}");
    ExitCode::from(code)
}
