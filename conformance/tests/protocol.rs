//! The core in memory keeps to the protocol, and nobody passes who does nothing.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use wraith_conformance::protocol::{Core, Door, Side, Subject, Target, Variant, cases, run_case};
use wraith_conformance::{Options, Verdict};

wraith_conformance::protocol_suite!(Core);

#[test]
fn the_core_claims_every_case() {
    let claimed = |case| !matches!(run_case(&Core, case, &Options::default()), Verdict::NotClaimed(_));
    assert!(cases().iter().all(claimed));
    let names: BTreeSet<&str> = cases().iter().map(|case| case.id).collect();
    assert_eq!(names.len(), cases().len(), "two cases of one name");
}

/// Says nothing, whatever comes.
struct Dead(Duration);

impl Subject for Dead {
    fn peer_id(&self) -> Option<[u8; 32]> {
        Some([0; 32])
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

    fn subject(&self, _: Side, _: Variant, _: u64) -> Result<Box<dyn Subject>, Verdict> {
        Ok(Box::new(Dead(Duration::ZERO)))
    }

    fn protocol(&self) -> Vec<u8> {
        b"none".to_vec()
    }
}

#[test]
fn a_dead_subject_passes_only_where_silence_is_all_that_is_asked_for() {
    let passed = cases().iter().filter(|case| run_case(&Nobody, case, &Options::default()) == Verdict::Pass);
    let names: Vec<&str> = passed.map(|case| case.id).collect();
    assert_eq!(names, ["init/noise_is_dropped", "init/answers_to_no_dial_are_dropped"]);
}
