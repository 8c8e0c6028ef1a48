//! How the suite is run.

use std::env;
use std::fmt;
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
    /// # Errors
    /// Names the first variable that has another value.
    pub fn from_env() -> Result<Self, BadVariable> {
        let variable = |name| env::var(name).ok().filter(|text| !text.is_empty());
        let mut options = Self::default();
        if let Some(text) = variable("WRAITH_SEED") {
            options.seed =
                text.parse().map_err(|_| BadVariable { name: "WRAITH_SEED", wanted: "a number" })?;
        }
        options.budget = match variable("WRAITH_BUDGET").as_deref() {
            None | Some("short") => Budget::Short,
            Some("full") => Budget::Full,
            Some(_) => return Err(BadVariable { name: "WRAITH_BUDGET", wanted: "short or full" }),
        };
        options.strict = match variable("WRAITH_CONFORMANCE_STRICT").as_deref() {
            None | Some("0") => false,
            Some("1") => true,
            Some(_) => return Err(BadVariable { name: "WRAITH_CONFORMANCE_STRICT", wanted: "0 or 1" }),
        };
        Ok(options)
    }
}

/// A variable of the environment with a value that means nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadVariable {
    /// The variable.
    pub name: &'static str,
    /// What it may be.
    pub wanted: &'static str,
}

impl fmt::Display for BadVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has to be {}", self.name, self.wanted)
    }
}

impl std::error::Error for BadVariable {}

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
    /// `short` or `full`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Full => "full",
        }
    }

    /// The first or the second, whichever it is.
    pub const fn pick(self, short: u64, full: u64) -> u64 {
        match self {
            Self::Short => short,
            Self::Full => full,
        }
    }
}
