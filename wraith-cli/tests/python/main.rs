//! The client in Python, which knows the protocol from its page alone, against the vectors and the real binary.

#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use wraith_conformance::protocol::{Case, Live, Side, cases, run_case};
use wraith_conformance::{Options, Verdict};

mod sealed;
#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "these tests need only a part")]
mod support;

use support::Running;

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/python");

/// What the client imports, and how to get it.
const IMPORTS: &str = "import blake3, cryptography, nacl";
const REMEDY: &str = "install python3 (3.11 or later) with venv, then `python3 -m venv target/python && \
                      target/python/bin/pip install -r conformance/python/requirements.txt`; `.ci/run test` does it";

/// A Python with the packages: that of `WRAITH_PYTHON`, that of `.ci/run`, or the system's. `None` is said aloud, and
/// where everything has to be tested it is a failure.
fn python() -> Option<OsString> {
    let named = env::var_os("WRAITH_PYTHON");
    let candidates = named.map_or_else(|| vec![environment().into(), "python3".into()], |named| vec![named]);
    let found = candidates.into_iter().find(|python| {
        let mut command = Command::new(python);
        command.args(["-c", IMPORTS]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    });
    if found.is_none() {
        assert!(!strict(), "no python3 with the packages of the client: {REMEDY}");
        wraith_conformance::not_tested(format_args!("no python3 with the packages of the client: {REMEDY}"));
    }
    found
}

/// Where `.ci/run` installs the packages: `python` in the target folder.
fn environment() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("python/bin/python")
}

fn strict() -> bool {
    let is = |name, wanted| env::var_os(name).is_some_and(|value| value == wanted);
    is("WRAITH_CONFORMANCE_STRICT", "1") || is("CI", "true")
}

/// Runs these modules of tests; each of at least `least` tests has to pass.
fn python_tests(modules: &[&str], least: u32) {
    let Some(python) = python() else { return };
    // A line for each test tells that it gets on.
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(python);
    command.args(["-B", "-W", "error", "-m", "unittest", "-v"]).args(modules).current_dir(CLIENT);
    command.env("WRAITH_CLI", env!("CARGO_BIN_EXE_wraith-cli"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let done = Running::start(&mut command).finish();
    let said = done.stdout.join("\n");
    assert_eq!(done.code, Some(0), "{said}");
    assert_eq!(said.lines().last(), Some("OK"), "{said}");
    let ran = said.lines().find_map(|line| line.strip_prefix("Ran ")?.split_once(' '));
    assert!(ran.unwrap().0.parse::<u32>().unwrap() >= least, "{said}");
}

#[test]
fn without_the_packages_tests_say_so_and_fail_where_all_is_tested() {
    for (ci, passes, said) in [("", true, "NOT TESTED: no python3"), ("true", false, "no python3 with")] {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "the_python_client_talks_to_itself"]);
        command.env("WRAITH_PYTHON", "/nonexistent").env("CI", ci).env_remove("WRAITH_CONFORMANCE_STRICT");
        let done = command.output().unwrap();
        let text = String::from_utf8_lossy(if passes { &done.stderr } else { &done.stdout });
        assert_eq!(done.status.success(), passes, "{text}");
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn the_python_client_keeps_the_vectors() {
    python_tests(&["tests.test_vectors", "tests.test_dial", "tests.test_sealed", "tests.test_transfer"], 59);
}

#[test]
fn the_python_client_talks_to_itself() {
    python_tests(&["tests.test_session"], 31);
}

#[test]
fn the_python_client_talks_to_listen() {
    python_tests(&["tests.test_listen"], 14);
}

/// As what dials, it keeps the clauses of the protocol one by one. Cases that dial over and over, with bad parameters and
/// identities of which there are vectors, are left to full runs.
#[test]
fn the_python_client_keeps_the_clauses_of_who_dials() {
    const LONG: [&str; 2] = [
        "response/a_malformed_response_is_refused_and_the_dial_goes_on",
        "response/an_unacceptable_responder_is_refused",
    ];
    let Some(python) = python() else { return };
    let ping = format!("{CLIENT}/ping.py");
    let command = [python.to_str().unwrap(), "-B", &ping, "-c", "1000", "{}"].map(str::to_owned);
    let target = Live { answers: None, dials: Some(command.into()), protocol: b"wraith-ping/1".to_vec() };
    let options = Options::from_env().unwrap();
    let full = env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full");
    let wanted = |case: &&Case| case.side == Side::Dials && (full || !LONG.contains(&case.id));
    let left = Mutex::new(cases().iter().rev().filter(wanted));
    let verdicts = Mutex::new(Vec::new());
    // They wait most of the time: several at once, and the long ones, which stand last, first.
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(case) = { left.lock().unwrap().next() } {
                    let verdict = run_case(&target, case, &options);
                    verdicts.lock().unwrap().push((case, verdict));
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap();
    for (case, verdict) in &verdicts {
        // Some are about seconds, which a machine under load stretches: what fails is tried again alone.
        let again = matches!(verdict, Verdict::Fail(_)).then(|| {
            eprintln!("{}: {verdict:?}; again alone", case.id);
            run_case(&target, case, &options)
        });
        let last = again.as_ref().unwrap_or(verdict);
        let both =
            case.id == "life/dials_that_cross_leave_one_session" && matches!(last, Verdict::NotClaimed(_));
        assert!(both || *last == Verdict::Pass, "{} ({}): {last:?}", case.id, case.clause);
    }
    assert!(verdicts.len() >= 29, "{}", verdicts.len());
}

#[test]
fn the_python_client_fetches_what_send_offers() {
    python_tests(&["tests.test_send"], 2);
}

#[test]
fn what_the_python_client_needs_is_pinned() {
    let pins = std::fs::read_to_string(Path::new(CLIENT).join("requirements.txt")).unwrap();
    for package in ["blake3", "cryptography", "PyNaCl"] {
        assert!(pins.lines().any(|line| line.starts_with(&format!("{package}=="))), "{package}");
    }
}
