//! Names from the wire: one path component each, and never anything that a file system reads otherwise.

use alloc::string::String;
use core::fmt;
use core::fmt::Write as _;

/// Longest name, bytes of UTF-8.
pub const MAX_NAME: usize = 255;

/// Why a name from the wire was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NameError {
    /// No bytes.
    Empty,
    /// More than [`MAX_NAME`] bytes.
    TooLong,
    /// `.` or `..`.
    Dots,
    /// `/` or `\`.
    Separator,
    /// NUL or another control character.
    Control,
    /// Windows would read it as a device, a stream, a pattern or another name.
    Reserved,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the name is empty",
            Self::TooLong => "the name is longer than 255 bytes",
            Self::Dots => "the name is `.` or `..`",
            Self::Separator => "the name contains a path separator",
            Self::Control => "the name contains a control character",
            Self::Reserved => "the name is reserved on Windows",
        })
    }
}

impl core::error::Error for NameError {}

/// Whose file system a name must be safe on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameRules {
    /// What every name on the wire must keep (`PROTO §11.5`).
    Wire,
    /// The wire's rules and those of Windows (`PROTO §11.6`).
    Windows,
}

impl NameRules {
    /// The rules of the system that this was built for.
    pub const NATIVE: Self = if cfg!(windows) { Self::Windows } else { Self::Wire };
}

/// `name` if it is one path component that may be created here.
///
/// # Errors
///
/// The first rule that it breaks.
pub fn check_name(name: &str) -> Result<&str, NameError> {
    check_name_for(name, NameRules::NATIVE)
}

/// `name` if it is one path component under `rules`.
///
/// # Errors
///
/// The first rule that it breaks.
pub fn check_name_for(name: &str, rules: NameRules) -> Result<&str, NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > MAX_NAME {
        return Err(NameError::TooLong);
    }
    if name == "." || name == ".." {
        return Err(NameError::Dots);
    }
    // A backslash separates on one system and not on another: refused on all, so that a name means one thing.
    if name.contains(['/', '\\']) {
        return Err(NameError::Separator);
    }
    if name.contains(char::is_control) {
        return Err(NameError::Control);
    }
    if rules == NameRules::Windows && is_reserved_on_windows(name) {
        return Err(NameError::Reserved);
    }
    Ok(name)
}

/// `text` for a terminal: control characters and those that turn the direction of text become `\u{…}`.
///
/// A backslash stays one, so the result is for eyes, not for parsing.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_invisible(character) {
            // Writing to a string does not fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    out
}

/// Direction overrides, isolates and marks, line and paragraph separators, zero-width characters, tags.
const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

fn is_reserved_on_windows(name: &str) -> bool {
    if name.contains(['<', '>', ':', '"', '|', '?', '*']) || name.ends_with(['.', ' ']) {
        return true;
    }
    // `NUL.txt` and `nul .txt` are the device, too.
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(' ');
    if ["con", "prn", "aux", "nul", "conin$", "conout$"]
        .iter()
        .any(|device| stem.eq_ignore_ascii_case(device))
    {
        return true;
    }
    let (Some(port), Some(number)) = (stem.get(..3), stem.get(3..)) else {
        return false;
    };
    let mut digits = number.chars();
    let one_digit = matches!((digits.next(), digits.next()), (Some('0'..='9' | '¹' | '²' | '³'), None));
    one_digit && (port.eq_ignore_ascii_case("com") || port.eq_ignore_ascii_case("lpt"))
}

#[cfg(test)]
mod tests;
