//! The program, as its users and their scripts see it.

mod dht;
mod peer;

use std::fs;
use std::process::{Command, Output};

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wraith-conformance"));
    for name in ["WRAITH_SEED", "WRAITH_BUDGET", "WRAITH_CONFORMANCE_STRICT"] {
        command.env_remove(name);
    }
    command.args(arguments).envs(variables.iter().copied()).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_list_has_every_case_with_its_clause() {
    let output = run(&["run", "--list"], &[]);
    assert!(output.status.success());
    let text = out(&output);
    assert_eq!(text.lines().count(), wraith_conformance::cases().len());
    let marks = text.lines().find(|line| line.starts_with("rx/marks_arrive")).unwrap();
    assert_eq!(
        marks.split_whitespace().collect::<Vec<_>>(),
        ["rx/marks_arrive", "DRV", "§2.10", "if", "ecn"]
    );
}

#[test]
fn a_run_prints_a_column_for_each_driver_and_succeeds_if_all_conform() {
    let output = run(&["run", "--driver", "memory,mio", "--only", "rx/marks", "--strict"], &[]);
    assert!(output.status.success());
    let text = out(&output);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["case", "clause", "binds", "memory", "mio", "mio-ipv6"]);
    assert_eq!(lines[1], ["rx/marks_arrive", "DRV", "§2.10", "if", "ecn", "pass", "pass", "pass"]);
    assert_eq!(lines.len(), 2);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(
        notes.starts_with("memory (memory): conforms: 1 passed, 0 failed, 0 not claimed, 0 unavailable\n")
    );
}

#[test]
fn json_has_one_object_for_each_driver() {
    let arguments = ["run", "--driver", "memory", "--only", "time/", "--json", "--seed", "7"];
    let output = run(&arguments, &[("WRAITH_SEED", "3"), ("WRAITH_BUDGET", "full")]);
    assert!(output.status.success() && output.stderr.is_empty());
    let report: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["driver"], "memory");
    assert_eq!((&report["seed"], &report["budget"]), (&7.into(), &"full".into()));
    assert_eq!(report["caps"]["max_datagram"], 1472);
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|result| result["verdict"] == "pass" && result["reason"].is_null()));
}

#[test]
fn a_report_for_continuous_integration_is_written_beside_the_table() {
    let path = std::env::temp_dir().join(format!("wraith-conformance-{}.xml", std::process::id()));
    let arguments = ["run", "--driver", "memory", "--only", "rx/", "--junit", path.to_str().unwrap()];
    let output = run(&arguments, &[]);
    let xml = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(output.status.success());
    assert!(
        xml.contains(r#"<testsuite name="memory" tests="13" skipped="1" errors="0" failures="0">"#),
        "{xml}"
    );
    assert!(out(&output).contains("rx/every_size_crosses"));
}

#[test]
fn what_cannot_be_meant_is_wrong_usage() {
    let output = run(&["run", "--only", "rx/nothing"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let message = "wraith-conformance: no case has \"rx/nothing\" in its name: see --list\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
    let output = run(&["run"], &[("WRAITH_BUDGET", "long")]);
    assert_eq!(output.status.code(), Some(2));
    let message = "wraith-conformance: WRAITH_BUDGET has to be short or full\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
    assert_eq!(run(&["run", "--driver", "carrier-pigeon"], &[]).status.code(), Some(2));
}

/// Before the cases run, not after them.
#[test]
fn a_report_that_cannot_be_written_is_known_at_once() {
    let output = run(&["run", "--driver", "memory", "--only", "rx/marks", "--junit", "/nowhere/at/all"], &[]);
    assert_eq!((output.status.code(), out(&output)), (Some(1), String::new()));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("wraith-conformance: cannot write /nowhere/at/all: "), "{message}");
    assert_eq!(message.lines().count(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_no_success() {
    let output = run(&["run", "--driver", "memory", "--only", "rx/marks", "--junit", "/dev/full"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("wraith-conformance: cannot write /dev/full: No space left"), "{message}");
    let commands: [&[&str]; 6] = [
        &["run", "--driver", "memory", "--only", "rx/marks"],
        &["run", "--driver", "memory", "--only", "rx/marks", "--json"],
        &["run", "--list"],
        &["broken"],
        &["peer", "core", "--only", "init/an_init_is_answered"],
        &["peer", "--list"],
    ];
    for arguments in commands {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_wraith-conformance"));
        let output = command.args(arguments).stdout(full).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
        let said = message.contains("wraith-conformance: cannot print the results: No space left");
        assert!(said, "{arguments:?}: {message}");
    }
}
