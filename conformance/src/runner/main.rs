//! `wraith-conformance`: runs the suite against the drivers of WRAITH, and protocol cases against any implementation.

#![forbid(unsafe_code)]

mod args;
mod dht;
mod drivers;
mod junit;
mod peer;
mod table;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
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
        Command::Dht(args) => dht::run(&args),
        Command::Broken => reject_broken(),
    }
}

fn list() -> ExitCode {
    let mut out = io::stdout().lock();
    for case in cases() {
        if let Err(error) = writeln!(out, "{:60} {:18} {}", case.id, case.clause, case.level) {
            return unprinted(&error);
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
    let mut junit = match args.junit.as_deref().map(Output::create).transpose() {
        Ok(junit) => junit,
        Err(error) => return failed(&error, 1),
    };
    let mut reports = Vec::new();
    for driver in &args.driver {
        for report in driver.run(&options) {
            if !args.json {
                eprintln!("{}", table::headline(&report));
            }
            reports.push(report);
        }
    }
    if let Err(error) = junit.as_mut().map_or(Ok(()), |junit| junit.write(&reports)) {
        return failed(&error, 1);
    }
    if let Err(error) = print(args, &reports) {
        return unprinted(&error);
    }
    if reports.iter().all(Report::conforms) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The file of `--junit`, made before the run: whoever cannot have it need not wait for that.
struct Output<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> Output<'a> {
    fn create(path: &'a Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Self { path, file })
    }

    fn write(&mut self, reports: &[Report]) -> Result<(), String> {
        let xml = junit::xml(reports).map_err(|error| error.to_string())?;
        let named = |error| format!("cannot write {}: {error}", self.path.display());
        self.file.write_all(xml.as_bytes()).map_err(named)
    }
}

fn print(args: &Run, reports: &[Report]) -> io::Result<()> {
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
    let caught = print_specimens(&broken::specimens::<Memory>(), &options);
    #[cfg(unix)]
    let caught = caught.and_then(|caught| {
        let nested = broken::pollable_specimens::<wraith_conformance::Mio>();
        Ok(caught & print_specimens(&nested, &options)?)
    });
    match caught {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => unprinted(&error),
    }
}

/// Prints a line for each, and says whether all were rejected.
fn print_specimens<D: Driver + 'static>(specimens: &[Specimen<D>], options: &Options) -> io::Result<bool> {
    let mut all = true;
    for Specimen { name, rejected_by, suite } in specimens {
        let rejects =
            |case: &&&str| matches!(suite.run_case(case, options), wraith_conformance::Verdict::Fail(_));
        let rejecting: Vec<&str> = rejected_by.iter().filter(rejects).copied().collect();
        let caught = rejecting.len() == rejected_by.len();
        let text = if caught { rejecting.join(", ") } else { "NOT REJECTED".to_owned() };
        writeln!(io::stdout(), "{name:28} {text}")?;
        all &= caught;
    }
    Ok(all)
}

/// Results that nobody can read are no success. Whoever has stopped to read needs no word about it.
fn unprinted(error: &io::Error) -> ExitCode {
    if error.kind() != io::ErrorKind::BrokenPipe {
        return failed(&format!("cannot print the results: {error}"), 1);
    }
    ExitCode::FAILURE
}

fn failed(message: &str, code: u8) -> ExitCode {
    eprintln!("wraith-conformance: {message}");
    ExitCode::from(code)
}
