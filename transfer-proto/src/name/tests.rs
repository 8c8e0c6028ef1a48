use super::*;
use alloc::format;
use proptest::prelude::*;

fn wire(name: &str) -> Result<&str, NameError> {
    check_name_for(name, NameRules::Wire)
}

/// `PROTO §11.5`
#[test]
fn a_name_is_one_path_component_without_control_characters() {
    for name in
        ["a", "…", "naïve.txt", " leading", "trailing.", "a:b", "...", ".hidden", "con", "\u{202e}gpj.exe"]
    {
        assert_eq!(wire(name), Ok(name));
    }
    assert_eq!(wire(""), Err(NameError::Empty));
    for name in [".", ".."] {
        assert_eq!(wire(name), Err(NameError::Dots));
    }
    for name in ["../name", "/etc/passwd", "a/b", "a\\b", "..\\name", "a/", "C:\\x"] {
        assert_eq!(wire(name), Err(NameError::Separator), "{name}");
    }
    for name in ["a\0", "a\nb", "\r", "\u{1b}[2J", "\u{7f}", "\u{9b}31m"] {
        assert_eq!(wire(name), Err(NameError::Control), "{name:?}");
    }
}

/// `PROTO §11.5`
#[test]
fn a_name_is_at_most_255_bytes() {
    let longest = "x".repeat(255);
    assert_eq!(wire(&longest), Ok(longest.as_str()));
    assert_eq!(wire(&"x".repeat(256)), Err(NameError::TooLong));
    assert_eq!(wire(&"é".repeat(128)), Err(NameError::TooLong), "bytes count, not characters");
}

/// `PROTO §11.6`
#[test]
fn windows_refuses_devices_streams_and_names_that_it_would_change() {
    for name in [
        "con",
        "NUL",
        "nul.txt",
        "Aux.tar.gz",
        "nul .txt",
        "COM1",
        "com0.x",
        "lpt9",
        "COM²",
        "CONIN$",
        "conout$",
        "a:b",
        "a.",
        "a ",
        "a?",
        "a*b",
        "<a>",
        "a|b",
        "\"a\"",
    ] {
        assert_eq!(check_name_for(name, NameRules::Windows), Err(NameError::Reserved), "{name}");
        assert_eq!(wire(name), Ok(name), "{name} is fine elsewhere");
    }
    for name in ["console", "com", "com10", "comx", "nulls.txt", "a.con", "lpt", "ünï", "日本語"] {
        assert_eq!(check_name_for(name, NameRules::Windows), Ok(name));
    }
}

/// `PROTO §11.5`
#[test]
fn what_a_terminal_would_obey_is_shown_escaped() {
    assert_eq!(escape("plain … name"), "plain … name");
    assert_eq!(escape("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\u{a}");
    assert_eq!(escape("x\u{202e}gpj.exe"), "x\\u{202e}gpj.exe");
    assert_eq!(escape("\u{2066}\u{200f}\u{feff}\u{85}"), "\\u{2066}\\u{200f}\\u{feff}\\u{85}");
}

proptest! {
    #[test]
    fn any_text_is_judged_without_panic_and_escaped_text_is_harmless(text in "\\PC*|.*") {
        for rules in [NameRules::Wire, NameRules::Windows] {
            if let Ok(name) = check_name_for(&text, rules) {
                prop_assert_eq!(name, text.as_str());
                let joined = format!("/target/{name}");
                prop_assert_eq!(joined.matches('/').count(), 2);
            }
        }
        prop_assert!(!escape(&text).contains(char::is_control));
    }
}
