//! Running protocol cases, and what came out.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

use super::bench::{Bench, REPEAT};
use super::cases::cases;
use super::subject::{Side, Target, Variant};
use crate::case::{Outcome, Verdict};
use crate::options::Options;
use crate::suite::panic_message;
use crate::suite_macro::Place;

/// One rule of the protocol, as a test.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Group and name, such as `finish/an_altered_finish_is_dropped`.
    pub id: &'static str,
    /// The clauses that it proves, such as `PROTO §4.2, §4.3`.
    pub clause: &'static str,
    /// Which side of the handshake the subject is.
    pub side: Side,
    /// How the subject has to be set up.
    pub variant: Variant,
    pub(super) body: fn(&mut Bench<'_>) -> Outcome,
}

/// A case as reports name it.
pub trait Rule {
    /// Group and name.
    fn id(&self) -> &'static str;

    /// The clauses that it proves.
    fn clause(&self) -> &'static str;
}

impl Rule for Case {
    fn id(&self) -> &'static str {
        self.id
    }

    fn clause(&self) -> &'static str {
        self.clause
    }
}

/// What came out of the cases.
#[derive(Clone, Debug)]
pub struct Report<C = Case> {
    /// The target's name.
    pub target: String,
    /// Each case and its verdict.
    pub results: Vec<(C, Verdict)>,
    /// The options that repeat the run.
    pub options: Options,
}

impl<C: Rule> Report<C> {
    /// Whether the target keeps to the protocol, as far as it claims to. One that no case could be run against does not.
    pub fn conforms(&self) -> bool {
        let any = |wanted: fn(&Verdict) -> bool| self.results.iter().any(|(_, verdict)| wanted(verdict));
        let passed = any(|verdict| *verdict == Verdict::Pass);
        let unavailable = any(|verdict| matches!(verdict, Verdict::Unavailable(_)));
        self.failures().next().is_none() && (passed || !unavailable)
    }

    /// The report as one JSON object in one line.
    pub fn to_json(&self) -> String {
        let result = |(case, verdict): &(C, Verdict)| {
            json!({
                "case": case.id(), "clause": case.clause(), "verdict": verdict.key(), "reason": verdict.reason(),
            })
        };
        let results: Vec<Value> = self.results.iter().map(result).collect();
        let whole = json!({
            "target": self.target, "conforms": self.conforms(), "seed": self.options.seed, "results": results,
        });
        whole.to_string()
    }

    /// The cases that say otherwise.
    pub fn failures(&self) -> impl Iterator<Item = &(C, Verdict)> {
        self.results.iter().filter(|(_, verdict)| is_failure(verdict, &self.options))
    }
}

/// Runs the cases that `options` ask for.
pub fn run(target: &dyn Target, options: &Options) -> Report {
    let wanted = |case: &&Case| options.only.as_ref().is_none_or(|part| case.id.contains(part));
    let results = verdicts(target, cases().iter().filter(wanted), options).collect();
    Report { target: target.name(), results, options: options.clone() }
}

/// Runs cases one after the other, each when its verdict is asked for.
///
/// When one fails and nothing at all comes of that side any more, the others of the side are [`Verdict::Unavailable`].
pub fn verdicts<'a>(
    target: &'a dyn Target,
    cases: impl Iterator<Item = &'a Case> + 'a,
    options: &'a Options,
) -> impl Iterator<Item = (Case, Verdict)> + 'a {
    let (mut failed, mut gone) = (None, Vec::new());
    cases.map(move |case| {
        let side = case.side;
        if failed.take_if(|last| *last == side).is_some() && !is_there(target, case, options) {
            gone.push(side);
        }
        if gone.contains(&side) {
            let silence = if side == Side::Answers { "nothing answers" } else { "nothing dials" };
            return (*case, Verdict::Unavailable(format!("not run: {silence} there any more")));
        }
        let verdict = run_case(target, case, options);
        if matches!(verdict, Verdict::Fail(_)) {
            failed = Some(side);
        }
        (*case, verdict)
    })
}

/// Whether anything comes of the side that a case is about, be it wrong.
fn is_there(target: &dyn Target, case: &Case, options: &Options) -> bool {
    let case = Case { variant: Variant::Usual, body: hears_anything, ..*case };
    // Numbers that no case has used.
    run_case(target, &case, &Options { seed: !options.seed, ..options.clone() }) == Verdict::Pass
}

/// Waits for an INIT, or for an answer to INIT of a known and of an unknown version.
fn hears_anything(bench: &mut Bench<'_>) -> Outcome {
    if bench.side() == Side::Dials {
        return bench.dialled().map(|_| ());
    }
    let end = bench.now() + bench.patience;
    let (known, mut unknown) = (bench.dial()?, bench.dial()?.init().to_vec());
    unknown[1..5].copy_from_slice(&0x2a2a_2a2au32.to_be_bytes());
    while bench.now() < end {
        bench.send(known.init())?;
        bench.send(&unknown)?;
        if bench.next_raw(REPEAT)?.is_some() {
            return Ok(());
        }
    }
    Err(Verdict::Fail("nothing is answered".to_owned()))
}

/// Runs one case.
pub fn run_case(target: &dyn Target, case: &Case, options: &Options) -> Verdict {
    judge(case, options, |seed| {
        let mut bench = Bench::new(target, case, seed, options.patience)?;
        (case.body)(&mut bench)
    })
}

/// Runs what a case does with its seed.
pub(crate) fn judge(case: &impl Rule, options: &Options, body: impl FnOnce(u64) -> Outcome) -> Verdict {
    // Each case has numbers of its own: one process, or one node, may see them all.
    let name = blake3::hash(case.id().as_bytes());
    let own = name.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    match catch_unwind(AssertUnwindSafe(|| body(options.seed ^ own))) {
        Ok(outcome) => outcome.into(),
        Err(panic) => Verdict::Fail(format!("it panicked: {}", panic_message(&*panic))),
    }
}

/// Runs one case as a test.
///
/// # Panics
/// If there is no case of that name, or it fails; then with its seed and a line that repeats it.
pub fn check(target: &dyn Target, id: &str, place: &Place) {
    check_one(cases(), id, &target.name(), place, |case, options| run_case(target, case, options));
}

/// Runs the case of this name as a test of the target called `name`.
pub(crate) fn check_one<C: Rule>(
    cases: &[C],
    id: &str,
    name: &str,
    place: &Place,
    run: impl FnOnce(&C, &Options) -> Verdict,
) {
    let options = Options::from_env().unwrap_or_else(|error| panic!("{error}"));
    let case = cases.iter().find(|case| case.id() == id).unwrap_or_else(|| panic!("there is no case {id}"));
    let (verdict, clause) = (run(case, &options), case.clause());
    let (word, reason) = (verdict.word(), verdict.reason().unwrap_or_default());
    if is_failure(&verdict, &options) {
        let (seed, repeat) = (options.seed, place.repeat(id, &options));
        panic!("{name}: {id} ({clause}): {word}: {reason}\n  seed {seed}, again: {repeat}");
    } else if verdict != Verdict::Pass {
        println!("{name}: {id}: {word}: {reason}");
    }
}

fn is_failure(verdict: &Verdict, options: &Options) -> bool {
    match verdict {
        Verdict::Pass | Verdict::NotClaimed(_) => false,
        Verdict::Fail(_) => true,
        Verdict::Unavailable(_) => options.strict,
    }
}

/// Writes one `#[test]` for each protocol case, in a module for each group; each makes its target by the expression.
///
/// The environment is read as by [`Options::from_env`](crate::Options::from_env).
#[macro_export]
macro_rules! protocol_suite {
    ($target:expr) => {
        #[cfg(test)]
        fn protocol_target() -> impl $crate::protocol::Target {
            $target
        }
        $crate::__protocol_cases! { $crate::__protocol_tests }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __protocol_tests {
    ($($group:ident { $($case:ident: $clause:literal, $side:ident, $variant:ident;)* })*) => {
        $(
            #[cfg(test)]
            mod $group {
                $(
                    #[test]
                    fn $case() {
                        let place = $crate::expansion::Place {
                            package: env!("CARGO_PKG_NAME"),
                            module: module_path!(),
                        };
                        let id = concat!(stringify!($group), "/", stringify!($case));
                        $crate::expansion::check_protocol(&super::protocol_target(), id, &place);
                    }
                )*
            }
        )*
    };
}
