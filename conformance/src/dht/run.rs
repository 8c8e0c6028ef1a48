//! Running DHT cases.

use super::bench::Bench;
use super::cases::cases;
use super::subject::{Doors, Target};
use crate::case::{Outcome, Verdict};
use crate::options::Options;
use crate::protocol::{self, Rule, check_one, judge};
use crate::suite_macro::Place;

/// One rule of the DHT, as a test.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Group and name, such as `records/a_value_is_stored_and_found`.
    pub id: &'static str,
    /// The clauses that it proves, such as `PROTO §14.12, §14.13`.
    pub clause: &'static str,
    /// Where the bench's addresses have to lie.
    pub doors: Doors,
    pub(super) body: fn(&mut Bench) -> Outcome,
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
pub type Report = protocol::Report<Case>;

/// Runs cases one after the other, each when its verdict is asked for. When the first that is run fails because nothing
/// answers, the others are [`Verdict::Unavailable`].
pub fn verdicts<'a>(
    target: &'a dyn Target,
    cases: impl Iterator<Item = &'a Case> + 'a,
    options: &'a Options,
) -> impl Iterator<Item = (Case, Verdict)> + 'a {
    let (mut failed, mut gone) = (false, false);
    cases.map(move |case| {
        if failed && !gone {
            let probe = Case { doors: Doors::Alike, body: super::cases::answers_at_all, ..*case };
            gone = run_case(target, &probe, options) != Verdict::Pass;
        }
        if gone {
            return (*case, Verdict::Unavailable("not run: nothing answers there any more".to_owned()));
        }
        let verdict = run_case(target, case, options);
        failed = matches!(verdict, Verdict::Fail(_));
        (*case, verdict)
    })
}

/// Runs one case.
pub fn run_case(target: &dyn Target, case: &Case, options: &Options) -> Verdict {
    judge(case, options, |seed| {
        let mut bench = Bench::new(target, case.doors, seed, options.patience)?;
        (case.body)(&mut bench)
    })
}

/// Runs one case as a test.
///
/// # Panics
/// If there is no case of that name, or it fails; then with its seed and a line that repeats it.
pub fn check(target: &dyn Target, id: &str, place: &Place) {
    check_one(cases(), id, &target.name(), place, |case, options| run_case(target, case, options));
}

/// Writes one `#[test]` for each DHT case, in a module for each group; each makes its target by the expression.
///
/// The environment is read as by [`Options::from_env`](crate::Options::from_env).
#[macro_export]
macro_rules! dht_suite {
    ($target:expr) => {
        #[cfg(test)]
        fn dht_target() -> impl $crate::dht::Target {
            $target
        }
        $crate::__dht_cases! { $crate::__dht_tests }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __dht_tests {
    ($($group:ident { $($case:ident: $clause:literal, $doors:ident;)* })*) => {
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
                        $crate::expansion::check_dht(&super::dht_target(), id, &place);
                    }
                )*
            }
        )*
    };
}
