//! `dht`: the DHT cases against a node, or against nodes that are wrong on purpose.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;
use wraith_conformance::dht::{self, Case, Core, Live, Report, Target, cases, specimens};
use wraith_conformance::{Options, Verdict};
use wraith_proto::PeerId;

use crate::peer::{addressed, counts};
use crate::{USAGE, failed, unprinted};

#[derive(Args, Debug)]
#[command(
    after_help = "wraith-conformance dht PEER@ADDR with the PeerId and UDP address of any node of the DHT."
)]
pub(crate) struct Dht {
    /// The node to try, as PEER@ADDR; that of this repository, as `core`; or wrong ones, each of which has to fail, as `broken`
    #[arg(value_name = "PEER@ADDR", value_parser = subject, required_unless_present = "list")]
    subject: Option<Subject>,
    /// Only cases with this in their name, such as records/
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// Seed of everything random; without it that of `WRAITH_SEED`, or 1
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Fail for what cannot be tested here
    #[arg(long)]
    strict: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print the cases and run none
    #[arg(long)]
    list: bool,
}

/// Who is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Subject {
    Core,
    Broken,
    Node(PeerId, SocketAddr),
}

/// Runs the cases; success only if all that could be run conform.
pub(crate) fn run(args: &Dht) -> ExitCode {
    let options = match args.options() {
        Ok(options) => options,
        Err(error) => return failed(&error, USAGE),
    };
    let chosen: Vec<&Case> =
        cases().iter().filter(|case| args.only.as_ref().is_none_or(|part| case.id.contains(part))).collect();
    if chosen.is_empty() {
        return failed("no case has that in its name: see --list", USAGE);
    }
    let (target, again): (Box<dyn Target>, _) = match args.subject {
        None => return list(),
        Some(Subject::Broken) => return reject_broken(&options),
        Some(Subject::Core) => (Box::new(Core), "core".to_owned()),
        Some(Subject::Node(peer, addr)) => {
            (Box::new(Live { peer: *peer.as_bytes(), addr }), format!("{peer}@{addr}"))
        }
    };
    let mut results = Vec::new();
    for (case, verdict) in dht::verdicts(&*target, chosen.into_iter(), &options) {
        if !args.json
            && let Err(error) = writeln!(io::stdout(), "{}", line(&case, &verdict))
        {
            return unprinted(&error);
        }
        results.push((case, verdict));
    }
    let report = Report { target: target.name(), results, options };
    let text = if args.json { report.to_json() } else { summary(&report, &again) };
    match writeln!(io::stdout(), "{text}") {
        Ok(()) if report.conforms() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => unprinted(&error),
    }
}

impl Dht {
    fn options(&self) -> Result<Options, String> {
        let mut options = Options::from_env().map_err(|error| error.to_string())?;
        options.seed = self.seed.unwrap_or(options.seed);
        options.strict |= self.strict;
        options.only.clone_from(&self.only);
        Ok(options)
    }
}

/// What came out, why cases failed, and how to see it again.
fn summary(report: &Report, subject: &str) -> String {
    let (mut text, seed) = (String::new(), report.options.seed);
    for (case, verdict) in report.failures() {
        let reason = verdict.reason().unwrap_or_default();
        let _ = writeln!(text, "\n{} ({}): {}: {reason}", case.id, case.clause, verdict.word());
        let again = format!("wraith-conformance dht {subject} --only {} --seed {seed}", case.id);
        let _ = writeln!(text, "  seed {seed}, again: {again}");
    }
    text + &counts(report)
}

/// Which case rejects which wrong node.
fn reject_broken(options: &Options) -> ExitCode {
    let mut all = true;
    for specimen in specimens().iter().filter(|specimen| !specimen.rejected_by.is_empty()) {
        let case = cases().iter().find(|case| case.id == specimen.rejected_by);
        let caught =
            case.is_some_and(|case| matches!(dht::run_case(specimen, case, options), Verdict::Fail(_)));
        let text = if caught { specimen.rejected_by } else { "NOT REJECTED" };
        if let Err(error) = writeln!(io::stdout(), "{:28} {text}", specimen.name) {
            return unprinted(&error);
        }
        all &= caught;
    }
    if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn list() -> ExitCode {
    let mut out = io::stdout().lock();
    for Case { id, clause, .. } in cases() {
        if let Err(error) = writeln!(out, "{id:72} {clause}") {
            return unprinted(&error);
        }
    }
    ExitCode::SUCCESS
}

fn line(case: &Case, verdict: &Verdict) -> String {
    let line = format!("{:12} {:72} {}", verdict.word(), case.id, case.clause);
    match verdict {
        Verdict::NotClaimed(reason) | Verdict::Unavailable(reason) => format!("{line}: {reason}"),
        Verdict::Pass | Verdict::Fail(_) => line,
    }
}

fn subject(text: &str) -> Result<Subject, String> {
    match text {
        "core" => Ok(Subject::Core),
        "broken" => Ok(Subject::Broken),
        _ => addressed(text).map(|(peer, addr)| Subject::Node(peer, addr)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_the_core_or_a_node_at_an_address() {
        let id = wraith_proto::Identity::from_seed([1; 32]).peer_id();
        assert_eq!((subject("core"), subject("broken")), (Ok(Subject::Core), Ok(Subject::Broken)));
        assert!(matches!(subject(&format!("{id}@[::1]:5")), Ok(Subject::Node(..))));
        assert!(subject("127.0.0.1:5").is_err());
    }
}
