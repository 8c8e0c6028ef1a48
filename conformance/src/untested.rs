//! What a test says that cannot run on this machine.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use crate::options::Options;

/// Says aloud, once for each reason, that a test cannot run here: past what the test runner keeps back of tests that pass.
///
/// # Panics
/// Where everything has to be tested: `WRAITH_CONFORMANCE_STRICT` is `1`.
pub fn not_tested(reason: impl fmt::Display) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let options = Options::from_env().unwrap_or_else(|error| panic!("{error}"));
    assert!(!options.strict, "{reason}");
    let note = format!("NOT TESTED: {reason}\n");
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.insert(note.clone()) {
        // `eprintln!` is what the test runner keeps back. Nobody to hear it is no failure.
        let _ = io::stderr().write_all(note.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;

    use super::*;

    /// Set in the process that has something not to test.
    const HERE: &str = "WRAITH_TEST_NOT_TESTED";

    #[test]
    fn what_is_not_tested_is_said_once_and_fails_a_strict_run() {
        if env::var_os(HERE).is_some() {
            for reason in ["no such device", "no such device", "no such right"] {
                not_tested(reason);
            }
            return;
        }
        for (strict, passes, said) in
            [("0", true, "NOT TESTED: no such device\nNOT TESTED: no such right\n"), ("1", false, "")]
        {
            let mut command = Command::new(env::current_exe().unwrap());
            command
                .args(["--exact", "untested::tests::what_is_not_tested_is_said_once_and_fails_a_strict_run"]);
            let done = command.env(HERE, "1").env("WRAITH_CONFORMANCE_STRICT", strict).output().unwrap();
            let text = String::from_utf8_lossy(&done.stderr);
            assert_eq!((done.status.success(), text.contains("NOT TESTED")), (passes, passes), "{text}");
            assert!(text.contains(said), "{text}");
        }
    }
}
