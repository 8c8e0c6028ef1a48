//! What others have written, on stdout: as it is for programs, and for terminals only if it is text.

use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};

use crate::failure::{Failure, failed};

/// Stdout, which never hands a terminal what that would obey.
#[derive(Debug)]
pub(crate) struct Foreign<W> {
    to: W,
    is_terminal: bool,
    /// The first bytes of a character that goes on in what is written next.
    begun: Vec<u8>,
}

impl Foreign<StdoutLock<'static>> {
    pub(crate) fn stdout() -> Self {
        let to = io::stdout().lock();
        let is_terminal = to.is_terminal();
        Self { to, is_terminal, begun: Vec::new() }
    }
}

impl<W: Write> Foreign<W> {
    /// Writes `bytes` and keeps nothing of them back.
    ///
    /// # Errors
    /// Those of stdout. It is a terminal, and the bytes are no text or have control characters: nothing was written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_terminal && !self.is_text(bytes) {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "a terminal would obey what is in there: send stdout to a file or a pipe",
            ));
        }
        self.to.write_all(bytes)?;
        self.to.flush()
    }

    /// Whether there is nothing but printable characters, tabs and ends of lines.
    fn is_text(&mut self, bytes: &[u8]) -> bool {
        let mut text = std::mem::take(&mut self.begun);
        text.extend_from_slice(bytes);
        let whole = match str::from_utf8(&text) {
            Ok(whole) => whole,
            Err(error) if error.error_len().is_none() => {
                let (whole, begun) = text.split_at(error.valid_up_to());
                self.begun.extend_from_slice(begun);
                str::from_utf8(whole).unwrap_or_default()
            }
            Err(_) => return false,
        };
        whole.chars().all(|char| !char.is_control() || matches!(char, '\n' | '\r' | '\t'))
    }
}

/// What a user is told when stdout does not take something.
pub(crate) fn unwritten(error: &io::Error) -> Failure {
    failed(match error.kind() {
        ErrorKind::InvalidData => error.to_string(),
        _ => format!("cannot write to stdout: {error}; check where it leads"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(is_terminal: bool) -> Foreign<Vec<u8>> {
        Foreign { to: Vec::new(), is_terminal, begun: Vec::new() }
    }

    fn write(is_terminal: bool, bytes: &[u8]) -> (io::Result<()>, Vec<u8>) {
        let mut foreign = foreign(is_terminal);
        (foreign.write(bytes), foreign.to)
    }

    #[test]
    fn a_terminal_gets_text_and_nothing_that_it_would_obey() {
        for text in ["", "hello\r\n\tworld\n", "Grüße, 世界 🦀"] {
            let (written, to) = write(true, text.as_bytes());
            assert!(written.is_ok() && to == text.as_bytes(), "{text}");
        }
        let bad: [&[u8]; 7] =
            [b"\x1b[2J", b"a\x07", b"\x7f", "\u{9b}2J".as_bytes(), b"a\x9b2J", b"\x9b2J", b"a\0"];
        for bytes in bad {
            let (written, to) = write(true, bytes);
            assert!(to.is_empty(), "{bytes:?}");
            assert!(unwritten(&written.unwrap_err()).to_string().starts_with("a terminal would obey"));
            assert_eq!(write(false, bytes).1, bytes);
        }
    }

    #[test]
    fn a_text_may_come_in_parts_of_any_length() {
        let text = "Grüße, 世界 🦀!".repeat(3);
        for at in 0..text.len() {
            let (one, other) = text.as_bytes().split_at(at);
            let mut foreign = foreign(true);
            assert!(
                foreign.write(one).is_ok() && foreign.write(other).is_ok() && foreign.to == text.as_bytes(),
                "{at}"
            );
        }
    }
}
