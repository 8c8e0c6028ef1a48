//! What came out of a suite.

use std::fmt;

use serde::Serialize;
use wraith_drivers::Caps;

use crate::case::{Case, Verdict};
use crate::options::Options;

/// What came out of a suite.
#[derive(Clone, Debug)]
pub struct Report {
    /// [`Harness::NAME`](crate::Harness::NAME).
    pub driver: &'static str,
    /// What the driver says of itself, if there was a pair to ask.
    pub caps: Option<Caps>,
    /// Each case and its verdict.
    pub results: Vec<(Case, Verdict)>,
    /// The options that repeat the run.
    pub options: Options,
}

impl Report {
    /// Whether the driver keeps the contract.
    pub fn conforms(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The cases that keep the driver from conforming.
    pub fn failures(&self) -> impl Iterator<Item = &(Case, Verdict)> {
        self.results.iter().filter(|(case, verdict)| verdict.is_failure(case, &self.options))
    }

    /// How many verdicts there are of each kind: passed, failed, not claimed, unavailable.
    pub fn counts(&self) -> [usize; 4] {
        let mut counts = [0; 4];
        for (_, verdict) in &self.results {
            let kind = match verdict {
                Verdict::Pass => 0,
                Verdict::Fail(_) => 1,
                Verdict::NotClaimed(_) => 2,
                Verdict::Unavailable(_) => 3,
            };
            counts[kind] += 1;
        }
        counts
    }

    /// The report as one JSON object in one line.
    pub fn to_json(&self) -> String {
        let options = &self.options;
        let json = Json {
            driver: self.driver,
            conforms: self.conforms(),
            seed: options.seed,
            budget: options.budget.name(),
            strict: options.strict,
            caps: self.caps.as_ref().map(JsonCaps::new),
            results: self.results.iter().map(|(case, verdict)| JsonResult::new(case, verdict)).collect(),
        };
        // Numbers, texts and flags alone: there is nothing that could fail.
        serde_json::to_string(&json).unwrap_or_default()
    }
}

/// One line for the driver, and one for each case.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.conforms() { "conforms" } else { "DOES NOT CONFORM" };
        let [passed, failed, not_claimed, unavailable] = self.counts();
        write!(
            f,
            "{}: {verdict}: {passed} passed, {failed} failed, {not_claimed} not claimed, ",
            self.driver
        )?;
        write!(f, "{unavailable} unavailable; seed {}", self.options.seed)?;
        for (case, verdict) in &self.results {
            write!(f, "\n  {:11} {} ({}, {})", verdict.word(), case.id, case.clause, case.level)?;
            if let Some(reason) = verdict.reason() {
                write!(f, ": {reason}")?;
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Json<'a> {
    driver: &'static str,
    conforms: bool,
    seed: u64,
    budget: &'static str,
    strict: bool,
    caps: Option<JsonCaps>,
    results: Vec<JsonResult<'a>>,
}

#[derive(Serialize)]
struct JsonCaps {
    mode: String,
    limited_by: Option<String>,
    max_datagram: usize,
    tx_slots: usize,
    tx_segments: usize,
    rx_segments: usize,
    ecn: bool,
    local_ip: bool,
    dont_fragment: bool,
}

#[derive(Serialize)]
struct JsonResult<'a> {
    case: &'static str,
    clause: &'static str,
    level: String,
    verdict: &'static str,
    reason: Option<&'a str>,
}

impl JsonCaps {
    fn new(caps: &Caps) -> Self {
        Self {
            mode: caps.mode.to_string(),
            limited_by: caps.limited_by.map(|limit| limit.to_string()),
            max_datagram: caps.max_datagram,
            tx_slots: caps.tx_slots,
            tx_segments: caps.tx_segments,
            rx_segments: caps.rx_segments,
            ecn: caps.ecn,
            local_ip: caps.local_ip,
            dont_fragment: caps.dont_fragment,
        }
    }
}

impl<'a> JsonResult<'a> {
    fn new(case: &Case, verdict: &'a Verdict) -> Self {
        Self {
            case: case.id,
            clause: case.clause,
            level: case.level.to_string(),
            verdict: verdict.key(),
            reason: verdict.reason(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Claim, Level};

    fn report(strict: bool) -> Report {
        let case = |id, level| Case { id, clause: "DRV §2.1", level };
        let results = vec![
            (case("a/b", Level::Must), Verdict::Pass),
            (case("a/c", Level::Should), Verdict::Fail("late".to_owned())),
            (case("a/d", Level::IfClaimed(Claim::Ecn)), Verdict::NotClaimed("no ecn".to_owned())),
            (case("a/e", Level::Must), Verdict::Unavailable("no \"right\"".to_owned())),
        ];
        let options = Options { strict, seed: 7, ..Options::default() };
        Report { driver: "mine", caps: None, results, options }
    }

    #[test]
    fn what_should_be_and_what_cannot_be_tested_fails_only_a_strict_run() {
        assert!(report(false).conforms());
        let strict = report(true);
        let failures: Vec<_> = strict.failures().map(|(case, _)| case.id).collect();
        assert_eq!(failures, ["a/c", "a/e"]);
        assert_eq!(strict.counts(), [1, 1, 1, 1]);
    }

    #[test]
    fn a_report_has_a_line_for_each_case() {
        let text = report(false).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "mine: conforms: 1 passed, 1 failed, 1 not claimed, 1 unavailable; seed 7");
        assert_eq!(lines[2], "  FAIL        a/c (DRV §2.1, should): late");
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn a_report_is_one_line_of_json() {
        let json = report(true).to_json();
        assert!(json.starts_with(
            r#"{"driver":"mine","conforms":false,"seed":7,"budget":"short","strict":true,"caps":null,"results":["#
        ));
        assert!(json.ends_with(
            r#"{"case":"a/e","clause":"DRV §2.1","level":"must","verdict":"unavailable","reason":"no \"right\""}]}"#
        ));
        assert!(!json.contains('\n'));
    }
}
