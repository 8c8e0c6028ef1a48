//! Reports as people read them.

use std::fmt::Write;

use wraith_conformance::{Budget, Case, Report, Verdict};

/// One line for a driver: how it works here, and what came out.
pub(crate) fn headline(report: &Report) -> String {
    let mode = report.caps.map_or("no pair of it can be had".to_owned(), |caps| caps.mode.to_string());
    let limit =
        report.caps.and_then(|caps| caps.limited_by).map_or(String::new(), |limit| format!(", {limit}"));
    let [passed, failed, not_claimed, unavailable] = report.counts();
    let verdict = if report.conforms() { "conforms" } else { "DOES NOT CONFORM" };
    format!(
        "{} ({mode}{limit}): {verdict}: {passed} passed, {failed} failed, {not_claimed} not claimed, {unavailable} unavailable",
        report.driver
    )
}

/// A line for each case and a column for each driver.
pub(crate) fn verdicts(reports: &[Report]) -> String {
    let mut text = format!("{:58} {:18} {:18}", "case", "clause", "binds");
    for report in reports {
        let _ = write!(text, " {:11}", report.driver);
    }
    text.push('\n');
    let cases = reports.first().map_or(&[][..], |report| &report.results);
    for (index, (case, _)) in cases.iter().enumerate() {
        let _ = write!(text, "{:58} {:18} {:18}", case.id, case.clause, case.level.to_string());
        for report in reports {
            let _ = write!(text, " {:11}", report.results[index].1.word());
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// What failed, why, and how to see it again.
pub(crate) fn failures(reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        for (case, verdict) in &report.results {
            if matches!(verdict, Verdict::Fail(_)) || verdict.is_failure(case, &report.options) {
                let reason = verdict.reason().unwrap_or_default();
                let (driver, id, word) = (report.driver, case.id, verdict.word());
                let _ = writeln!(text, "\n{driver}: {id} ({}): {word}: {reason}", case.clause);
                let _ = writeln!(text, "  seed {}, again: {}", report.options.seed, repeat(report, case));
            }
        }
    }
    text
}

/// The line that repeats a case.
pub(crate) fn repeat(report: &Report, case: &Case) -> String {
    let options = &report.options;
    let driver = report.driver.split('-').next().unwrap_or_default();
    let full = if options.budget == Budget::Full { " --budget full" } else { "" };
    let (id, seed) = (case.id, options.seed);
    format!(
        "cargo run --release -p wraith-conformance -- run --driver {driver} --only {id} --seed {seed}{full}"
    )
}
