//! `wraith-conformance peer`, as people and scripts run it.

use std::process::{Command, Output};

use serde_json::Value;
use wraith_conformance::protocol::{Side, cases};

fn peer(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wraith-conformance"));
    command.arg("peer").args(args).env_remove("WRAITH_SEED").env_remove("WRAITH_CONFORMANCE_STRICT");
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_list_has_every_case() {
    let output = peer(&["--list"]);
    assert_eq!((output.status.code(), stdout(&output).lines().count()), (Some(0), cases().len()));
}

#[test]
fn the_core_conforms_and_a_line_says_so() {
    let output = peer(&["core", "--only", "rekey/a_", "--seed", "9"]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    let end = "wraith-proto in memory: conforms: 3 passed, 0 failed, 0 not claimed, 0 unavailable";
    assert_eq!(text.lines().last(), Some(end));
    assert!(text.lines().next().unwrap().starts_with("pass "), "{text}");
}

#[test]
fn json_has_the_verdict_of_each_case() {
    let output = peer(&["core", "--json", "--only", "packets/"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["conforms"], &report["seed"]), (&Value::Bool(true), &1.into()));
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), cases().iter().filter(|case| case.id.starts_with("packets/")).count());
    assert!(results.iter().all(|result| result["verdict"] == "pass" && result["reason"].is_null()));
}

/// The exit code tells, and the line that repeats the case is there.
#[test]
fn somebody_who_says_nothing_does_not_conform() {
    let quiet = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = format!("{}@{}", wraith_conformance::peer::peer_id_text(&id()), quiet.local_addr().unwrap());
    let output = peer(&[&at, "--only", "init/an_init_is_answered"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.contains("init/an_init_is_answered (PROTO §4.1, §4.4, §4.7): FAIL: §4.1"), "{text}");
    let again = format!("again: wraith-conformance peer {at} --only init/an_init_is_answered --seed 1");
    assert!(text.contains(&again), "{text}");
    assert!(text.contains("DOES NOT CONFORM: 0 passed, 1 failed"), "{text}");
}

/// No case could be run, which is no success either.
#[test]
fn a_command_that_cannot_be_started_does_not_conform() {
    let output = peer(&["--dial", "/nowhere/at/all {}", "--only", "dialled/an_init"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.contains("`/nowhere/at/all {}`: No such file"), "{text}");
    let end = "/nowhere/at/all {}: DOES NOT CONFORM: 0 passed, 0 failed, 0 not claimed, 2 unavailable";
    assert_eq!(text.lines().last(), Some(end));
}

/// The first case fails; the others of a peer that says nothing are not waited for.
#[test]
fn a_silent_peer_is_given_up() {
    let quiet = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = format!("{}@{}", wraith_conformance::peer::peer_id_text(&id()), quiet.local_addr().unwrap());
    let output = peer(&[&at]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let others = cases().iter().filter(|case| case.side == Side::Answers).count() - 1;
    assert_eq!(text.matches(": not run: nothing answers there any more\n").count(), others);
    let end = format!("DOES NOT CONFORM: 0 passed, 1 failed, 0 not claimed, {others} unavailable");
    assert!(text.trim_end().ends_with(&end), "{text}");
}

#[test]
fn wrong_usage_is_told_apart() {
    let commands: [&[&str]; 5] = [
        &[],
        &["nobody"],
        &["core", "--only", "no such case"],
        &["--dial", "true"],
        &["core", "--seed", "x"],
    ];
    for args in commands {
        assert_eq!(peer(args).status.code(), Some(2), "{args:?}");
    }
}

/// An identity that is one.
fn id() -> [u8; 32] {
    wraith_conformance::peer::Identity::from_seed(&[1; 32]).id
}
