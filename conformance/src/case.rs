//! Cases, and what can come out of one.

use std::fmt;
use std::io;

use wraith_drivers::Caps;

use crate::harness::Setup;
use crate::options::Options;

/// One rule of the contract, as a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Group and name, such as `rx/every_size_crosses`.
    pub id: &'static str,
    /// The clause or clauses that it proves, such as `DRV §2.1`.
    pub clause: &'static str,
    /// Whom it binds.
    pub level: Level,
}

/// Whom a case binds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Every driver.
    Must,
    /// Every driver that has no good reason; a failure is reported and leaves the driver conforming.
    Should,
    /// Drivers that claim it.
    IfClaimed(Claim),
}

/// What a driver may claim in its [`Caps`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Claim {
    /// `tx_segments` above 1: several datagrams leave in one system call.
    Segmentation,
    /// `rx_segments` above 1: several datagrams arrive in one buffer.
    Coalescing,
    /// `ecn`: marks are sent and received.
    Ecn,
    /// `local_ip`: local addresses are reported and chosen.
    LocalIp,
    /// `dont_fragment`: nothing is fragmented.
    DontFragment,
}

impl Claim {
    /// Whether `caps` make the claim.
    pub const fn is_made_by(self, caps: &Caps) -> bool {
        match self {
            Self::Segmentation => caps.tx_segments > 1,
            Self::Coalescing => caps.rx_segments > 1,
            Self::Ecn => caps.ecn,
            Self::LocalIp => caps.local_ip,
            Self::DontFragment => caps.dont_fragment,
        }
    }
}

/// What came out of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The driver keeps the clause.
    Pass,
    /// It breaks it: how.
    Fail(String),
    /// It does not claim what the case is about: what is missing.
    NotClaimed(String),
    /// The case could not be run here: why.
    Unavailable(String),
}

/// The end of a case: any verdict but [`Verdict::Pass`] by `?`.
pub(crate) type Outcome<T = ()> = Result<T, Verdict>;

impl Verdict {
    /// The verdict in one word, as reports print it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "FAIL",
            Self::NotClaimed(_) => "not claimed",
            Self::Unavailable(_) => "unavailable",
        }
    }

    /// The verdict as programs read it.
    pub(crate) const fn key(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::NotClaimed(_) => "not-claimed",
            Self::Unavailable(_) => "unavailable",
        }
    }

    /// Whether it keeps the driver from conforming.
    pub const fn is_failure(&self, case: &Case, options: &Options) -> bool {
        match self {
            Self::Pass | Self::NotClaimed(_) => false,
            Self::Fail(_) => options.strict || !matches!(case.level, Level::Should),
            Self::Unavailable(_) => options.strict,
        }
    }

    /// Why, unless it passed.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Pass => None,
            Self::Fail(reason) | Self::NotClaimed(reason) | Self::Unavailable(reason) => Some(reason),
        }
    }
}

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Self {
        outcome.err().unwrap_or(Self::Pass)
    }
}

impl From<io::Error> for Verdict {
    fn from(error: io::Error) -> Self {
        Self::Fail(format!("the driver failed: {error}"))
    }
}

impl From<Setup> for Verdict {
    fn from(setup: Setup) -> Self {
        match setup {
            Setup::Unavailable(reason) => Self::Unavailable(reason),
            Setup::Failed(reason) => Self::Fail(format!("no pair: {reason}")),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Must => f.write_str("must"),
            Self::Should => f.write_str("should"),
            Self::IfClaimed(claim) => write!(f, "if {claim}"),
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Segmentation => "tx_segments > 1",
            Self::Coalescing => "rx_segments > 1",
            Self::Ecn => "ecn",
            Self::LocalIp => "local_ip",
            Self::DontFragment => "dont_fragment",
        })
    }
}

/// Ends the case with [`Verdict::Fail`] unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::case::Verdict::Fail(format!($($message)+)));
        }
    };
}

/// Ends the case with [`Verdict::Fail`] unless both are equal.
macro_rules! ensure_eq {
    ($found:expr, $expected:expr, $($message:tt)+) => {{
        let (found, expected) = (&$found, &$expected);
        if found != expected {
            let what = format!($($message)+);
            return Err($crate::case::Verdict::Fail(format!("{what}: {found:?} instead of {expected:?}")));
        }
    }};
}

pub(crate) use {ensure, ensure_eq};
