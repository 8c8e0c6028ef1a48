//! What people and programs read: results on stdout, everything else on stderr.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
pub(crate) use wraith_transfer_proto::escape;

use crate::failure::Failure;

/// How to speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "options of the command line, apart from each other")]
pub(crate) struct Output {
    /// One JSON object a line on stdout instead of text.
    pub(crate) json: bool,
    /// No messages on stderr but errors and warnings.
    pub(crate) quiet: bool,
    /// More messages on stderr.
    pub(crate) verbose: bool,
    /// Stdout carries data: JSON goes to stderr, in place of all else.
    pub(crate) beside_data: bool,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "error")]
struct ErrorEvent<'a> {
    message: &'a str,
}

impl Output {
    /// For a part of the program that nobody listens to.
    pub(crate) const SILENT: Self = Self { json: false, quiet: true, verbose: false, beside_data: false };

    /// Prints a result: `event` as JSON, or the text.
    pub(crate) fn result(self, event: &impl Serialize, text: impl fmt::Display) {
        if self.json {
            self.event(event);
        } else {
            write_line(text.to_string().as_bytes());
        }
    }

    /// Prints a path as a result: exactly for programs, harmless for terminals.
    pub(crate) fn path_result(self, event: &impl Serialize, path: &Path) {
        if self.json || io::stdout().is_terminal() {
            self.result(event, escape(&path.to_string_lossy()));
        } else {
            write_line(path.as_os_str().as_encoded_bytes());
        }
    }

    /// Prints `event` for programs only.
    pub(crate) fn event(self, event: &impl Serialize) {
        if self.json
            && let Ok(line) = serde_json::to_string(event)
        {
            if self.beside_data {
                let _ = writeln!(io::stderr().lock(), "{line}");
            } else {
                write_line(line.as_bytes());
            }
        }
    }

    /// Tells people what happens.
    pub(crate) fn note(self, text: impl fmt::Display) {
        if !self.quiet && !self.is_only_json() {
            complain(&text);
        }
    }

    /// Tells people who want to know more.
    pub(crate) fn detail(self, text: impl fmt::Display) {
        if self.verbose && !self.is_only_json() {
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
        if !self.is_only_json() {
            complain(&format_args!("error: {}", escape(&message)));
        }
    }

    /// Whether stderr is for programs.
    fn is_only_json(self) -> bool {
        self.json && self.beside_data
    }
}

/// Whether a line could not be written to stdout.
static STDOUT_LOST: AtomicBool = AtomicBool::new(false);

/// Whether nobody reads the results any more: the command may end as on Ctrl-C, and has failed.
pub(crate) fn stdout_is_lost() -> bool {
    STDOUT_LOST.load(Ordering::SeqCst)
}

/// Writes a line to stdout. The process does not end here if it cannot: files and peers wait for a proper end.
fn write_line(line: &[u8]) {
    if stdout_is_lost() {
        return;
    }
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(line).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush());
    let Err(error) = written else { return };
    STDOUT_LOST.store(true, Ordering::SeqCst);
    if error.kind() != io::ErrorKind::BrokenPipe {
        complain(&format_args!("error: cannot write to stdout: {error}; check where it leads"));
    }
}

/// Writes a line to stderr, if it can be written to.
fn complain(text: &dyn fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
