//! Macros for a driver's own tests.

use wraith_drivers::Driver;

use crate::case::Verdict;
use crate::cases::cases;
use crate::options::Options;
use crate::suite::Suite;

/// Writes one `#[test]` for each case, in a module for each group: `rx`, `tx`, `time`, `park` and so on.
///
/// `suite!(H)` runs the cases of every driver, `suite!(H: Park)` those of drivers that park a thread as well, and
/// `suite!(H: Park + Pollable)` also those of drivers that nest in another loop. Several suites go into modules of
/// their own. The environment is read as by [`Options::from_env`].
#[macro_export]
macro_rules! suite {
    ($harness:ty) => {
        $crate::suite!(@suite $harness, []);
        $crate::__driver_cases! { $crate::__tests }
    };
    ($harness:ty: Park) => {
        $crate::suite!(@suite $harness, [.park()]);
        $crate::__driver_cases! { $crate::__tests }
        $crate::__park_cases! { $crate::__tests }
    };
    ($harness:ty: Pollable) => {
        $crate::suite!(@suite $harness, [.pollable()]);
        $crate::__driver_cases! { $crate::__tests }
        $crate::__pollable_cases! { $crate::__tests }
    };
    ($harness:ty: Park + Pollable) => {
        $crate::suite!(@suite $harness, [.park().pollable()]);
        $crate::__driver_cases! { $crate::__tests }
        $crate::__park_cases! { $crate::__tests }
        $crate::__pollable_cases! { $crate::__tests }
    };
    (@suite $harness:ty, [$($claims:tt)*]) => {
        #[cfg(test)]
        fn conformance_suite() -> $crate::Suite<<$harness as $crate::Harness>::Driver> {
            $crate::Suite::of::<$harness>()$($claims)*
        }
    };
}

/// Makes the allocator of this test binary count, for the cases that promise to allocate nothing.
#[macro_export]
macro_rules! counting_allocator {
    () => {
        #[global_allocator]
        static COUNTING_ALLOCATOR: $crate::expansion::Counting = $crate::expansion::Counting::new();
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ($($group:ident { $($case:ident: $clause:literal, $level:expr;)* })*) => {
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
                        $crate::expansion::check(&super::conformance_suite(), id, &place);
                    }
                )*
            }
        )*
    };
}

/// Where a test stands.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The package.
    pub package: &'static str,
    /// The module, from the crate on.
    pub module: &'static str,
}

impl Place {
    /// The line that repeats the test of `id`.
    pub(crate) fn repeat(&self, id: &str, options: &Options) -> String {
        let module = self.module.split_once("::").map_or("", |(_, module)| module);
        let name = id.rsplit('/').next().unwrap_or(id);
        let Options { seed, .. } = options;
        format!("WRAITH_SEED={seed} cargo test -p {} -- --exact {module}::{name}", self.package)
    }
}

/// Runs one case as a test.
///
/// # Panics
/// If the case fails, with its seed and a line that repeats it.
pub fn check<D: Driver + 'static>(suite: &Suite<D>, id: &str, place: &Place) {
    let options = Options::from_env().unwrap_or_else(|error| panic!("{error}"));
    let verdict = suite.run_case(id, &options);
    let (word, reason) = (verdict.word(), verdict.reason().unwrap_or_default());
    let Some(case) = cases().iter().find(|case| case.id == id) else { return };
    if verdict.is_failure(case, &options) {
        let (driver, clause, level, seed) = (suite.name(), case.clause, case.level, options.seed);
        let repeat = place.repeat(id, &options);
        panic!("{driver}: {id} ({clause}, {level}): {word}: {reason}\n  seed {seed}, again: {repeat}");
    } else if verdict != Verdict::Pass {
        println!("{}: {id}: {word}: {reason}", suite.name());
    }
}
