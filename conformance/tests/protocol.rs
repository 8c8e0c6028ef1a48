//! The core in memory keeps to the protocol, and nobody passes who does nothing.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use wraith_conformance::protocol::{Case, Core, Door, Side, Subject, Target, Variant, cases, run, run_case};
use wraith_conformance::{Options, Verdict};

wraith_conformance::protocol_suite!(Core);

#[test]
fn the_core_claims_every_case() {
    let claimed = |case| !matches!(run_case(&Core, case, &Options::default()), Verdict::NotClaimed(_));
    assert!(cases().iter().all(claimed));
    let names: BTreeSet<&str> = cases().iter().map(|case| case.id).collect();
    assert_eq!(names.len(), cases().len(), "two cases of one name");
}

/// Says nothing, whatever comes.
struct Dead(Duration);

impl Subject for Dead {
    fn peer_id(&self) -> Option<[u8; 32]> {
        Some([0; 32])
    }

    fn send(&mut self, _: Door, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, patience: Duration) -> io::Result<Option<(Door, Vec<u8>)>> {
        self.0 += patience;
        Ok(None)
    }

    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn now(&self) -> Duration {
        self.0
    }

    fn dial(&mut self, _: &[u8; 32]) -> Result<(), Verdict> {
        Ok(())
    }
}

struct Nobody;

impl Target for Nobody {
    fn name(&self) -> String {
        "nobody".to_owned()
    }

    fn subject(&self, _: Side, _: Variant, _: u64) -> Result<Box<dyn Subject>, Verdict> {
        Ok(Box::new(Dead(Duration::ZERO)))
    }

    fn protocol(&self) -> Vec<u8> {
        b"none".to_vec()
    }
}

#[test]
fn a_dead_subject_passes_only_where_silence_is_all_that_is_asked_for() {
    let passed = cases().iter().filter(|case| run_case(&Nobody, case, &Options::default()) == Verdict::Pass);
    let names: Vec<&str> = passed.map(|case| case.id).collect();
    assert_eq!(names, ["init/noise_is_dropped", "init/answers_to_no_dial_are_dropped"]);
}

/// Whoever has a wrong address need not wait for every case.
#[test]
fn a_run_against_nobody_ends_with_the_first_failure_of_each_side() {
    let report = run(&Nobody, &Options::default());
    assert!(!report.conforms());
    let failed: Vec<&str> = report.failures().map(|(case, _)| case.id).collect();
    assert_eq!(
        failed,
        ["init/an_init_is_answered", "rekey/an_exchange_of_a_dialled_session_leads_to_the_next_epoch"]
    );
    let silence = |side| match side {
        Side::Answers => "not run: nothing answers there any more",
        Side::Dials => "not run: nothing dials there any more",
    };
    let others: Vec<_> = report.results.iter().filter(|(case, _)| !failed.contains(&case.id)).collect();
    assert_eq!(others.len() + 2, cases().len());
    for (case, verdict) in others {
        assert_eq!(*verdict, Verdict::Unavailable(silence(case.side).to_owned()), "{}", case.id);
    }
}

/// Sends what it sent last once more, for ever: every 250 ms, and at once where nobody waits.
struct Repeats {
    core: Box<dyn Subject>,
    last: Vec<u8>,
}

impl Subject for Repeats {
    fn peer_id(&self) -> Option<[u8; 32]> {
        self.core.peer_id()
    }

    fn send(&mut self, from: Door, datagram: &[u8]) -> io::Result<()> {
        self.core.send(from, datagram)
    }

    fn receive(&mut self, patience: Duration) -> io::Result<Option<(Door, Vec<u8>)>> {
        if let Some((_, datagram)) = self.core.receive(patience.min(Duration::from_millis(250)))? {
            self.last = datagram;
        }
        Ok(Some((Door::Front, self.last.clone())).filter(|_| !self.last.is_empty()))
    }

    fn settle(&mut self) -> io::Result<()> {
        self.core.settle()
    }

    fn now(&self) -> Duration {
        self.core.now()
    }
}

struct Chatterbox;

impl Target for Chatterbox {
    fn name(&self) -> String {
        "chatterbox".to_owned()
    }

    fn subject(&self, side: Side, variant: Variant, seed: u64) -> Result<Box<dyn Subject>, Verdict> {
        Ok(Box::new(Repeats { core: Core.subject(side, variant, seed)?, last: Vec::new() }))
    }

    fn protocol(&self) -> Vec<u8> {
        Core.protocol()
    }
}

fn case(id: &str) -> &'static Case {
    cases().iter().find(|case| case.id == id).unwrap()
}

#[test]
fn a_subject_that_sends_without_end_is_stopped() {
    let verdict = |id| run_case(&Chatterbox, case(id), &Options::default());
    let amplifies = Verdict::Fail("§4.11: 4800 bytes for 1200 of a stranger".to_owned());
    assert_eq!(verdict("init/a_response_is_repeated_by_timer_within_three_times_the_bytes"), amplifies);
    let endless = Verdict::Fail("it sends without end: 200000 datagrams came".to_owned());
    assert_eq!(verdict("init/an_altered_init_does_not_stop_the_genuine_one"), endless);
}
