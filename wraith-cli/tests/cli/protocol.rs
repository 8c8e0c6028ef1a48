//! Every protocol case against `listen` and `ping` as processes.

use std::time::Duration;

use wraith_conformance::Verdict;
use wraith_conformance::protocol::{Live, Side, Variant, cases, run_case};
use wraith_proto::PeerId;

use crate::support::Listener;

/// Runs every case that a process can be put to; what its application is to do cannot be asked of it.
fn check(target: &Live, side: Side) {
    let (mut passed, mut failures) = (0, Vec::new());
    for case in cases().filter(|case| case.side == side && case.variant == Variant::Usual) {
        match run_case(target, case, 1, Duration::from_secs(10)) {
            Verdict::Pass => passed += 1,
            Verdict::NotClaimed(_) => {}
            verdict => failures.push(format!("{} ({}): {verdict:?}", case.id, case.clause)),
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    let least = if side == Side::Answers { 70 } else { 28 };
    assert!(passed >= least, "only {passed} cases were run");
}

#[test]
fn listen_keeps_to_the_protocol() {
    let listener = Listener::start("127.0.0.1");
    let peer: PeerId = listener.peer.parse().unwrap();
    let addr = format!("127.0.0.1:{}", listener.port).parse().unwrap();
    let target = Live { answers: Some((peer.0, addr)), dials: None, protocol: b"wraith-ping/1".to_vec() };
    check(&target, Side::Answers);
}

#[test]
fn ping_keeps_to_the_protocol() {
    let command = [env!("CARGO_BIN_EXE_wraith-cli"), "ping", "-q", "-c", "1000", "{}"].map(str::to_owned);
    let target = Live { answers: None, dials: Some(command.into()), protocol: b"wraith-ping/1".to_vec() };
    check(&target, Side::Dials);
}
