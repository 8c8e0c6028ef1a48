//! Every protocol case against the core in memory.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use wraith_conformance::Verdict;
use wraith_conformance::protocol::{Case, Core, Door, Subject, Target, Variant, cases, run_case};

const SEED: u64 = 1;

/// Runs the cases of a group; each has to pass.
fn check(group: &str) {
    let all: Vec<&Case> = cases().filter(|case| case.id.split('/').next() == Some(group)).collect();
    assert!(!all.is_empty(), "there is no group {group}");
    for case in all {
        let verdict = run_case(&Core, case, SEED, Duration::from_secs(10));
        assert_eq!(verdict, Verdict::Pass, "{} ({})", case.id, case.clause);
    }
}

macro_rules! groups {
    ($($group:ident)*) => {
        const GROUPS: &[&str] = &[$(stringify!($group)),*];
        $(
            #[test]
            fn $group() {
                check(stringify!($group));
            }
        )*
    };
}

groups! { init finish packet frame ack ids violation stream authorized close idle sessions dial response }

#[test]
fn every_group_is_run() {
    let groups: BTreeSet<&str> = cases().filter_map(|case| case.id.split('/').next()).collect();
    assert_eq!(groups, GROUPS.iter().copied().collect());
    let names: BTreeSet<&str> = cases().map(|case| case.id).collect();
    assert_eq!(names.len(), cases().count(), "two cases of one name");
}

/// Who says nothing passes no case but those in which nothing may be said.
#[test]
fn a_subject_that_is_dead_passes_nothing_that_takes_life() {
    struct Dead(Duration);
    impl Subject for Dead {
        fn peer_id(&self) -> Option<[u8; 32]> {
            None
        }
        fn send(&mut self, _: Door, _: &[u8]) -> io::Result<()> {
            Ok(())
        }
        fn receive(&mut self, patience: Duration) -> io::Result<Option<(Door, Vec<u8>)>> {
            self.0 += patience;
            Ok(None)
        }
        fn settle(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn now(&self) -> Duration {
            self.0
        }
        fn dial(&mut self, _: &[u8; 32]) -> Result<(), Verdict> {
            Ok(())
        }
    }
    struct Nobody;
    impl Target for Nobody {
        fn name(&self) -> String {
            "nobody".to_owned()
        }
        fn subject(&self, _: Variant, _: u64) -> Result<Box<dyn Subject>, Verdict> {
            Ok(Box::new(Dead(Duration::ZERO)))
        }
        fn protocol(&self) -> Vec<u8> {
            b"none".to_vec()
        }
    }
    let passed =
        cases().filter(|case| run_case(&Nobody, case, SEED, Duration::from_secs(2)) == Verdict::Pass);
    let names: Vec<&str> = passed.map(|case| case.id).collect();
    assert_eq!(names, ["init/noise", "init/answers_to_nobody"]);
}
