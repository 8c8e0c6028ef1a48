//! `peer`: the protocol cases against an implementation.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;
use wraith_conformance::protocol::{self, Case, Core, Live, Report, Rule, Side, Target, cases};
use wraith_conformance::{Options, Verdict};
use wraith_proto::PeerId;

use crate::{USAGE, failed, unprinted};

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Peer {
    /// Whom to try: one that answers, as PEER@ADDR, or the core of this repository, as `core`
    #[arg(value_name = "PEER@ADDR", value_parser = subject, required_unless_present_any = ["dial", "list"])]
    subject: Option<Subject>,
    /// A command that dials: {} in it becomes the PEER@ADDR of this end
    #[arg(long, value_name = "COMMAND", value_parser = command)]
    dial: Option<Words>,
    /// The application protocol that both speak; who speaks it sends datagrams back
    #[arg(long, value_name = "NAME", default_value = "wraith-ping/1")]
    protocol: String,
    /// Only cases with this in their name, such as finish/
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

const EXAMPLES: &str = "\
wraith-conformance peer PEER@ADDR with the line that `wraith-cli listen` prints;
wraith-conformance peer --dial 'wraith-cli ping -c 1000 {}' for the side that dials.";

/// Who is tried.
#[derive(Clone, Copy, Debug)]
enum Subject {
    Core,
    Answers(PeerId, SocketAddr),
}

/// A command and its arguments.
#[derive(Clone, Debug)]
struct Words(Vec<String>);

/// Runs the cases; success only if all that could be run conform.
pub(crate) fn run(args: &Peer) -> ExitCode {
    if args.list {
        return list();
    }
    let options = match args.options() {
        Ok(options) => options,
        Err(error) => return failed(&error, USAGE),
    };
    let chosen: Vec<&Case> = cases().iter().filter(|case| args.wants(case)).collect();
    if chosen.is_empty() {
        return failed("no case has that in its name: see --list", USAGE);
    }
    let target = args.target();
    let mut results = Vec::new();
    for (case, verdict) in protocol::verdicts(&*target, chosen.into_iter(), &options) {
        if !args.json
            && let Err(error) = writeln!(io::stdout(), "{}", line(&case, &verdict))
        {
            return unprinted(&error);
        }
        results.push((case, verdict));
    }
    let report = Report { target: target.name(), results, options };
    let text = if args.json { report.to_json() } else { args.summary(&report) };
    match writeln!(io::stdout(), "{text}") {
        Ok(()) if report.conforms() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => unprinted(&error),
    }
}

impl Peer {
    fn options(&self) -> Result<Options, String> {
        let mut options = Options::from_env().map_err(|error| error.to_string())?;
        options.seed = self.seed.unwrap_or(options.seed);
        options.strict |= self.strict;
        options.only.clone_from(&self.only);
        Ok(options)
    }

    /// Whether a case is of a side that there is somebody for, and asked for.
    fn wants(&self, case: &Case) -> bool {
        let side = match (case.side, self.subject) {
            (_, Some(Subject::Core)) => true,
            (Side::Answers, subject) => subject.is_some(),
            (Side::Dials, _) => self.dial.is_some(),
        };
        side && self.only.as_ref().is_none_or(|part| case.id.contains(part))
    }

    fn target(&self) -> Box<dyn Target> {
        let answers = match self.subject {
            Some(Subject::Core) => return Box::new(Core),
            Some(Subject::Answers(peer, addr)) => Some((*peer.as_bytes(), addr)),
            None => None,
        };
        let dials = self.dial.as_ref().map(|words| words.0.clone());
        Box::new(Live { answers, dials, protocol: self.protocol.clone().into() })
    }

    /// What came out, why cases failed, and how to see it again.
    fn summary(&self, report: &Report) -> String {
        let mut text = String::new();
        for (case, verdict) in report.failures() {
            let reason = verdict.reason().unwrap_or_default();
            let again = self.repeat(case, &report.options);
            let _ = writeln!(text, "\n{} ({}): {}: {reason}", case.id, case.clause, verdict.word());
            let _ = writeln!(text, "  seed {}, again: {again}", report.options.seed);
        }
        text + &counts(report)
    }

    /// The line that repeats a case.
    fn repeat(&self, case: &Case, options: &Options) -> String {
        let subject = match (case.side, self.subject) {
            (_, Some(Subject::Core)) => "core".to_owned(),
            (Side::Answers, Some(Subject::Answers(peer, addr))) => format!("{peer}@{addr}"),
            _ => {
                let words = self.dial.as_ref().map(|words| words.0.join(" ")).unwrap_or_default();
                format!("--dial '{words}'")
            }
        };
        format!("wraith-conformance peer {subject} --only {} --seed {}", case.id, options.seed)
    }
}

/// The line in which a report ends.
pub(crate) fn counts<C: Rule>(report: &Report<C>) -> String {
    let count = |word| report.results.iter().filter(|(_, verdict)| verdict.word() == word).count();
    let [passed, failed, not_claimed, unavailable] =
        ["pass", "FAIL", "not claimed", "unavailable"].map(count);
    let verdict = if report.conforms() { "conforms" } else { "DOES NOT CONFORM" };
    let counts =
        format!("{passed} passed, {failed} failed, {not_claimed} not claimed, {unavailable} unavailable");
    format!("\n{}: {verdict}: {counts}", report.target)
}

fn list() -> ExitCode {
    let mut out = io::stdout().lock();
    for protocol::Case { id, clause, side, .. } in cases() {
        let side = if *side == Side::Answers { "answers" } else { "dials" };
        if let Err(error) = writeln!(out, "{id:72} {side:8} {clause}") {
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
    if text == "core" {
        return Ok(Subject::Core);
    }
    addressed(text).map(|(id, addr)| Subject::Answers(id, addr))
}

/// `PEER@ip:port`.
pub(crate) fn addressed(text: &str) -> Result<(PeerId, SocketAddr), String> {
    let (id, addr) = text.split_once('@').ok_or("expected PEER@ip:port, or core")?;
    let id: PeerId = id.parse().map_err(|error| format!("{error}"))?;
    let addr =
        addr.parse().map_err(|_| format!("'{addr}' is not an address: write ip:port, or [ip]:port"))?;
    Ok((id, addr))
}

fn command(text: &str) -> Result<Words, &'static str> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if words.iter().any(|word| word.contains("{}")) {
        Ok(Words(words))
    } else {
        Err("it has no {} that could become the peer to dial")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_the_core_or_a_peer_at_an_address() {
        let id = "bsrbrkb4ibnnqw63c2r4oslb4lqbgxqqj4v6bqvsvzqp5pbn4xoa";
        assert!(matches!(subject("core"), Ok(Subject::Core)));
        for bad in ["", "@", "core@127.0.0.1:5", &format!("{id}@localhost:5"), "127.0.0.1:5"] {
            assert!(subject(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_command_says_where_the_peer_goes() {
        assert_eq!(command("a -b {}").map(|words| words.0), Ok(vec!["a".into(), "-b".into(), "{}".into()]));
        assert!(command("a b").is_err());
    }
}
