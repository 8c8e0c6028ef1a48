//! Running protocol cases, and what came out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::bench::Bench;
use super::cases::GROUPS;
use super::subject::{Target, Variant};
use crate::case::{Outcome, Verdict};

/// One rule of the protocol, as a test.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Group and name, such as `finish/cut`.
    pub id: &'static str,
    /// The clauses that it proves, such as `PROTO §4.3`.
    pub clause: &'static str,
    /// Which side of the handshake the subject is.
    pub side: Side,
    /// How the subject has to be set up.
    pub variant: Variant,
    pub(super) body: fn(&mut Bench<'_>) -> Outcome,
}

/// The subject's side of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It answers.
    Answers,
    /// It dials.
    Dials,
}

/// What came out of the cases.
#[derive(Clone, Debug)]
pub struct Report {
    /// [`Target::name`].
    pub target: String,
    /// Each case and its verdict.
    pub results: Vec<(Case, Verdict)>,
    /// The seed that repeats the run.
    pub seed: u64,
}

impl Report {
    /// Whether no case failed or could not be run.
    pub fn conforms(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The cases that failed or could not be run.
    pub fn failures(&self) -> impl Iterator<Item = &(Case, Verdict)> {
        self.results
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Fail(_) | Verdict::Unavailable(_)))
    }
}

/// All cases.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    GROUPS.iter().copied().flatten()
}

/// Runs the cases whose id contains `only`.
pub fn run(target: &dyn Target, only: &str, seed: u64, patience: Duration) -> Report {
    let wanted = cases().filter(|case| case.id.contains(only));
    let results = wanted.map(|case| (*case, run_case(target, case, seed, patience))).collect();
    Report { target: target.name(), results, seed }
}

/// Runs one case; what has to happen may take `patience`.
pub fn run_case(target: &dyn Target, case: &Case, seed: u64, patience: Duration) -> Verdict {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // Each case has numbers of its own: one process may see them all.
        let name = blake3::hash(case.id.as_bytes());
        let own = name.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let mut bench = Bench::new(target, case.variant, seed ^ own, patience)?;
        (case.body)(&mut bench)
    }));
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Verdict::Fail(format!("it panicked: {text}"))
        }
    }
}
