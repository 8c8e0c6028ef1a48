//! How a command ends when it does not succeed.

use std::fmt;
use std::process::ExitCode;

/// Why the program ends without success.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// One line: what failed, on what, and what to do.
    Failed(String),
    /// Arguments that do not fit together, in one line.
    Usage(String),
    /// Ctrl-C.
    Interrupted,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// A failed command; `message` is one line that names the remedy.
pub(crate) fn failed(message: impl Into<String>) -> Failure {
    Failure::Failed(message.into())
}

impl Failure {
    /// 1 failed, 2 usage, 130 Ctrl-C.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Interrupted => 130,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) | Self::Usage(message) => f.write_str(message),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}
