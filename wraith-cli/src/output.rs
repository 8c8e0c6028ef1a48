//! What people and programs read: results on stdout, everything else on stderr.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;
pub(crate) use wraith_transfer_proto::escape;

use crate::failure::Failure;

/// How to speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Output {
    /// One JSON object a line on stdout instead of text.
    pub(crate) json: bool,
    /// No messages on stderr but errors and warnings.
    pub(crate) quiet: bool,
    /// More messages on stderr.
    pub(crate) verbose: bool,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "error")]
struct ErrorEvent<'a> {
    message: &'a str,
}

impl Output {
    /// For a part of the program that nobody listens to.
    pub(crate) const SILENT: Self = Self { json: false, quiet: true, verbose: false };

    /// Prints a result: `event` as JSON, or the text.
    pub(crate) fn result(self, event: &impl Serialize, text: impl fmt::Display) {
        if self.json {
            self.event(event);
        } else {
            write_line(&text.to_string());
        }
    }

    /// Prints `event` for programs only.
    pub(crate) fn event(self, event: &impl Serialize) {
        if self.json
            && let Ok(line) = serde_json::to_string(event)
        {
            write_line(&line);
        }
    }

    /// Tells people what happens.
    pub(crate) fn note(self, text: impl fmt::Display) {
        if !self.quiet {
            complain(&text);
        }
    }

    /// Tells people who want to know more.
    pub(crate) fn detail(self, text: impl fmt::Display) {
        if self.verbose {
            complain(&text);
        }
    }

    /// Says why the program ends.
    pub(crate) fn failure(self, failure: &Failure) {
        if matches!(failure, Failure::Interrupted) {
            return;
        }
        let message = failure.to_string();
        self.event(&ErrorEvent { message: &message });
        complain(&format_args!("error: {}", escape(&message)));
    }
}

/// Writes a line to stdout; when nobody reads any more, there is nothing left to do.
fn write_line(line: &str) {
    let mut stdout = io::stdout().lock();
    let Err(error) = writeln!(stdout, "{line}").and_then(|()| stdout.flush()) else { return };
    if error.kind() != io::ErrorKind::BrokenPipe {
        complain(&format_args!("error: cannot write to stdout: {error}"));
    }
    std::process::exit(1);
}

/// Writes a line to stderr, if it can be written to.
fn complain(text: &dyn fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
