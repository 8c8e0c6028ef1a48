//! `wraith-conformance dht`, as people and scripts run it.

use std::net::UdpSocket;
use std::process::{Command, Output};

use wraith_conformance::dht::{cases, specimens};
use wraith_proto::Identity;

fn dht(args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wraith-conformance"));
    command.arg("dht").args(args).env_remove("WRAITH_SEED").env_remove("WRAITH_CONFORMANCE_STRICT");
    let Output { status, stdout, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap())
}

#[test]
fn the_program_runs_the_cases_and_says_so() {
    let (code, text) = dht(&["core", "--only", "records/", "--seed", "9"]);
    let end = "wraith-dht-proto in memory: conforms: 6 passed, 0 failed, 0 not claimed, 0 unavailable";
    assert_eq!((code, text.lines().last()), (Some(0), Some(end)), "{text}");
    let (code, text) = dht(&["broken"]);
    assert_eq!((code, text.lines().count()), (Some(0), specimens().len() - 1), "{text}");
    let (code, text) = dht(&["--list"]);
    assert_eq!((code, text.lines().count()), (Some(0), cases().len()));
    assert_eq!(dht(&["core", "--only", "no such case"]).0, Some(2));
}

/// The first case fails; the others of a node that says nothing are not waited for.
#[test]
fn a_silent_node_is_given_up() {
    let quiet = UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = Identity::from_seed([1; 32]).peer_id();
    let at = format!("{peer}@{}", quiet.local_addr().unwrap());
    let (code, text) = dht(&[&at]);
    let others = cases().len() - 1;
    let end = format!("DOES NOT CONFORM: 0 passed, 1 failed, 0 not claimed, {others} unavailable");
    assert!(code == Some(1) && text.trim_end().ends_with(&end), "{text}");
}
