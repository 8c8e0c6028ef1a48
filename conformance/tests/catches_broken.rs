//! Who tests the tests: every broken driver is rejected, for its fault, and every case rejects one.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;
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

/// Cases that are tried at a time: most wait for what a broken driver does not do.
const AT_ONCE: usize = 4;

/// The cases that do not reject what they should.
fn missed<D: Driver + 'static>(specimens: &[Specimen<D>]) -> Vec<String> {
    let options = impatient();
    let missed = Mutex::new(Vec::new());
    let left = Mutex::new(
        specimens.iter().flat_map(|specimen| specimen.rejected_by.iter().map(move |case| (specimen, *case))),
    );
    let try_them = || {
        loop {
            let Some((specimen, case)) = left.lock().unwrap().next() else { return };
            match specimen.suite.run_case(case, &options) {
                Verdict::Fail(reason) => println!("{}: {case}: {reason}", specimen.name),
                verdict => missed.lock().unwrap().push(format!("{}: {case}: {verdict:?}", specimen.name)),
            }
        }
    };
    thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(try_them))));
    missed.into_inner().unwrap()
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
