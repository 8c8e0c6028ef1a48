//! Reports as continuous integration reads them.

use quick_junit::{NonSuccessKind, Report as Xml, SerializeError, TestCase, TestCaseStatus, TestSuite};
use wraith_conformance::{Report, Verdict};

use crate::table::repeat;

/// One test suite for each driver, one test for each case.
pub(crate) fn xml(reports: &[Report]) -> Result<String, SerializeError> {
    let mut xml = Xml::new("wraith-conformance");
    for report in reports {
        let mut suite = TestSuite::new(report.driver);
        suite.add_property(("seed", report.options.seed.to_string().as_str()));
        for (case, verdict) in &report.results {
            let mut test = TestCase::new(case.id, status(report, case, verdict));
            test.set_classname(case.clause);
            if verdict.is_failure(case, &report.options) {
                test.set_system_out(repeat(report, case));
            }
            suite.add_test_case(test);
        }
        xml.add_test_suite(suite);
    }
    xml.to_string()
}

fn status(report: &Report, case: &wraith_conformance::Case, verdict: &Verdict) -> TestCaseStatus {
    let mut status = match verdict {
        Verdict::Pass => return TestCaseStatus::success(),
        _ if verdict.is_failure(case, &report.options) => {
            TestCaseStatus::non_success(NonSuccessKind::Failure)
        }
        _ => TestCaseStatus::skipped(),
    };
    status.set_type(verdict.word());
    status.set_message(verdict.reason().unwrap_or_default());
    status
}

#[cfg(test)]
mod tests {
    use wraith_conformance::{Case, Level, Options};

    use super::*;

    #[test]
    fn failures_and_what_is_not_claimed_have_their_reasons() {
        let case = |id| Case { id, clause: "DRV §2.1", level: Level::Must };
        let results = vec![
            (case("rx/a"), Verdict::Pass),
            (case("rx/b"), Verdict::Fail("1 < 2".to_owned())),
            (case("rx/c"), Verdict::NotClaimed("no ecn".to_owned())),
        ];
        let report = Report { driver: "mine", caps: None, results, options: Options::default() };
        let xml = xml(&[report]).unwrap();
        assert!(xml.contains(r#"tests="3" skipped="1" errors="0" failures="1""#), "{xml}");
        assert!(xml.contains(r#"message="1 &lt; 2""#) && xml.contains("--only rx/b --seed 1"), "{xml}");
    }
}
