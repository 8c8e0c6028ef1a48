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
    match judge(suite, id, place, &options) {
        Ok(note) => print!("{note}"),
        Err(failure) => panic!("{failure}"),
    }
}

/// What a test has to say of a case: a note, or why it fails.
fn judge<D: Driver + 'static>(
    suite: &Suite<D>,
    id: &str,
    place: &Place,
    options: &Options,
) -> Result<String, String> {
    let verdict = suite.run_case(id, options);
    let (driver, word, reason) = (suite.name(), verdict.word(), verdict.reason().unwrap_or_default());
    let case = cases().iter().find(|case| case.id == id);
    if case.is_some_and(|case| verdict.is_failure(case, options)) {
        let (clause, level) = case.map(|case| (case.clause, case.level)).unzip();
        let (clause, level) =
            (clause.unwrap_or_default(), level.map_or(String::new(), |level| level.to_string()));
        let (seed, repeat) = (options.seed, place.repeat(id, options));
        return Err(format!(
            "{driver}: {id} ({clause}, {level}): {word}: {reason}\n  seed {seed}, again: {repeat}"
        ));
    }
    Ok(if verdict == Verdict::Pass { String::new() } else { format!("{driver}: {id}: {word}: {reason}\n") })
}

#[cfg(test)]
mod tests {
    use wraith_drivers::MemoryDriver;

    use super::*;
    use crate::harness::{Harness, Link, Pair, Setup};

    const PLACE: Place = Place { package: "wraith-drivers-mine", module: "conformance::ipv4::rx" };

    fn judged<H: Harness<Driver = MemoryDriver>>(id: &str, strict: bool) -> Result<String, String> {
        let options = Options { seed: 9, strict, ..Options::default() };
        judge(&Suite::of::<H>(), id, &PLACE, &options)
    }

    struct Refused;

    impl Harness for Refused {
        type Driver = MemoryDriver;
        const NAME: &'static str = "refused";

        fn pair(_: &Link) -> Result<Pair<MemoryDriver>, Setup> {
            Err(Setup::Failed("it does not open".to_owned()))
        }
    }

    struct Forbidden;

    impl Harness for Forbidden {
        type Driver = MemoryDriver;
        const NAME: &'static str = "forbidden";

        fn pair(_: &Link) -> Result<Pair<MemoryDriver>, Setup> {
            Err(Setup::Unavailable("a privilege is missing".to_owned()))
        }
    }

    #[test]
    fn a_failure_names_the_clause_the_seed_and_the_way_to_repeat_it() {
        let failure = judged::<Refused>("rx/marks_arrive", false).unwrap_err();
        let expected = "refused: rx/marks_arrive (DRV §2.10, if ecn): FAIL: no pair: it does not open\n  \
            seed 9, again: WRAITH_SEED=9 cargo test -p wraith-drivers-mine -- --exact ipv4::rx::marks_arrive";
        assert_eq!(failure, expected);
    }

    #[test]
    fn what_cannot_be_tested_is_a_note_and_fails_a_strict_run() {
        let note = judged::<Forbidden>("rx/marks_arrive", false).unwrap();
        assert_eq!(note, "forbidden: rx/marks_arrive: unavailable: a privilege is missing\n");
        assert!(judged::<Forbidden>("rx/marks_arrive", true).is_err());
    }

    #[test]
    fn a_trait_that_is_not_claimed_is_a_note() {
        let note = judged::<crate::Memory>("park/room_ends_a_park", true).unwrap();
        assert_eq!(
            note,
            "memory: park/room_ends_a_park: not claimed: the harness does not claim the trait\n"
        );
        assert_eq!(judged::<crate::Memory>("rx/marks_arrive", true).unwrap(), "");
    }
}
