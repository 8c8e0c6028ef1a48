//! How the suite is run.

use std::env;
use std::time::Duration;

/// How cases are run.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Decides everything random: contents, sizes, orders.
    pub seed: u64,
    /// How much the long cases do.
    pub budget: Budget,
    /// [`Verdict::Unavailable`](crate::Verdict::Unavailable), and a failure of a [`Level::Should`](crate::Level::Should)
    /// case, count as failures.
    pub strict: bool,
    /// Runs only cases whose id contains this.
    pub only: Option<String>,
    /// How long a case waits for what has to happen before it fails. Default: 5 s.
    pub patience: Duration,
}

/// How much the long cases do. Counts are the same on every machine, so that a seed repeats them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Budget {
    /// Seconds for a driver.
    #[default]
    Short,
    /// All of it, up to a minute for a driver: a million datagrams each way, a stream of 64 MiB.
    Full,
}

/// The seed when none is given. Any other is as good.
const SEED: u64 = 1;

impl Options {
    /// What the environment asks for: `WRAITH_SEED`, `WRAITH_BUDGET` (`short` or `full`) and
    /// `WRAITH_CONFORMANCE_STRICT` (`1`).
    ///
    /// # Panics
    /// If one of them has another value.
    pub fn from_env() -> Self {
        let variable = |name| env::var(name).ok();
        let seed = variable("WRAITH_SEED").map(|text| text.parse().expect("WRAITH_SEED is a number"));
        Self {
            seed: seed.unwrap_or(SEED),
            budget: match variable("WRAITH_BUDGET").as_deref() {
                None | Some("" | "short") => Budget::Short,
                Some("full") => Budget::Full,
                Some(other) => panic!("WRAITH_BUDGET is short or full, not {other}"),
            },
            strict: match variable("WRAITH_CONFORMANCE_STRICT").as_deref() {
                None | Some("" | "0") => false,
                Some("1") => true,
                Some(other) => panic!("WRAITH_CONFORMANCE_STRICT is 0 or 1, not {other}"),
            },
            ..Self::default()
        }
    }
}

impl Default for Options {
    /// Seed 1, the short form, not strict, every case.
    fn default() -> Self {
        Self {
            seed: SEED,
            budget: Budget::Short,
            strict: false,
            only: None,
            patience: Duration::from_secs(5),
        }
    }
}

impl Budget {
    /// `short` or `full`, whichever it is.
    pub const fn pick(self, short: u64, full: u64) -> u64 {
        match self {
            Self::Short => short,
            Self::Full => full,
        }
    }
}
