//! Who tests the tests: every broken driver is rejected, for its fault, and every case rejects one.

use std::collections::BTreeSet;
use std::time::Duration;

use wraith_conformance::broken::{self, Specimen};
use wraith_conformance::{Memory, Options, Verdict, cases};
use wraith_drivers::Driver;

wraith_conformance::counting_allocator!();

/// Over memory and loopback nothing takes long: what does not come soon never does.
fn impatient() -> Options {
    let mut options = Options::from_env().unwrap();
    options.patience = Duration::from_millis(250);
    options
}

/// The cases that do not reject what they should.
fn missed<D: Driver + 'static>(specimens: &[Specimen<D>]) -> Vec<String> {
    let options = impatient();
    let mut missed = Vec::new();
    for specimen in specimens {
        for case in specimen.rejected_by {
            match specimen.suite.run_case(case, &options) {
                Verdict::Fail(reason) => println!("{}: {case}: {reason}", specimen.name),
                verdict => missed.push(format!("{}: {case}: {verdict:?}", specimen.name)),
            }
        }
    }
    missed
}

fn rejecting<D>(specimens: &[Specimen<D>]) -> impl Iterator<Item = &'static str> {
    specimens.iter().flat_map(|specimen| specimen.rejected_by).copied()
}

#[test]
fn every_broken_driver_is_rejected_by_the_cases_that_are_named_for_it() {
    let specimens = broken::specimens::<Memory>();
    assert!(specimens.len() >= 50);
    assert_eq!(missed(&specimens), Vec::<String>::new());
}

#[test]
#[cfg(all(unix, feature = "mio"))]
fn every_broken_driver_of_an_outer_loop_is_rejected_as_well() {
    assert_eq!(missed(&broken::pollable_specimens::<wraith_conformance::Mio>()), Vec::<String>::new());
}

#[test]
fn the_wrapper_without_a_fault_passes() {
    let report = broken::sound::<Memory>().run(&Options::from_env().unwrap());
    assert!(report.conforms(), "{:?}", report.failures().collect::<Vec<_>>());
}

#[test]
#[cfg(all(unix, feature = "mio"))]
fn every_case_is_known_to_reject_something() {
    let mut known: BTreeSet<_> = rejecting(&broken::specimens::<Memory>()).collect();
    known.extend(rejecting(&broken::pollable_specimens::<wraith_conformance::Mio>()));
    let idle: Vec<_> = cases().iter().map(|case| case.id).filter(|id| !known.contains(id)).collect();
    assert_eq!(idle, Vec::<&str>::new());
}
