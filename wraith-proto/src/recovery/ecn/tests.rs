use super::*;

fn counted(ect0: u64, ect1: u64, ce: u64) -> EcnCounters {
    EcnCounters { ect0, ect1, ce }
}

/// A path that marked `packets` and had all of them counted.
fn capable(packets: u64) -> EcnPath {
    let mut path = EcnPath::new();
    assert!(path.mark());
    assert_eq!(path.on_ack(1, Some(counted(1, 0, 0))), EcnVerdict::None);
    for _ in 1..packets {
        assert!(path.mark());
    }
    assert_eq!(path.on_ack(packets - 1, Some(counted(packets, 0, 0))), EcnVerdict::None);
    path
}

impl EcnPath {
    /// Sends a packet; returns whether it was marked.
    fn mark(&mut self) -> bool {
        let marks = self.marks();
        if marks {
            self.on_marked();
        }
        marks
    }
}

#[test]
fn received_marks_are_counted() {
    let mut counters = EcnCounters::default();
    counters.record(Ecn::NotEct);
    assert!(!counters.any());
    for mark in [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::Ect1, Ecn::Ce] {
        counters.record(mark);
        assert!(counters.any());
    }
    assert_eq!(counters, EcnCounters { ect0: 3, ect1: 2, ce: 1 });
}

#[test]
fn ten_packets_are_marked_until_the_path_proves_itself() {
    let mut path = EcnPath::new();
    let marks = (0..20).filter(|_| path.mark()).count();
    assert_eq!(marks, 10);
    assert_eq!(path.on_ack(2, Some(counted(2, 0, 0))), EcnVerdict::None);
    assert!((0..1_000).all(|_| path.mark()));
}

#[test]
fn an_ack_of_unmarked_packets_proves_nothing() {
    let mut path = EcnPath::new();
    assert!((0..10).all(|_| path.mark()));
    assert_eq!(path.on_ack(0, None), EcnVerdict::None);
    assert_eq!(path.on_ack(0, Some(counted(0, 0, 0))), EcnVerdict::None);
    assert!(!path.mark());
}

#[test]
fn an_increase_of_ce_is_congestion_and_reported_once() {
    let mut path = capable(10);
    assert!((0..10).all(|_| path.mark()));
    assert_eq!(path.on_ack(5, Some(counted(12, 0, 3))), EcnVerdict::Congestion(3));
    assert_eq!(path.on_ack(5, Some(counted(17, 0, 3))), EcnVerdict::None);
    assert!(path.mark());
}

#[test]
fn all_marked_as_ce_is_congestion_not_failure() {
    let mut path = EcnPath::new();
    assert!((0..4).all(|_| path.mark()));
    assert_eq!(path.on_ack(4, Some(counted(0, 0, 4))), EcnVerdict::Congestion(4));
    assert!(path.mark());
}

#[test]
fn missing_counts_end_marking_and_are_reported_once() {
    let mut path = EcnPath::new();
    assert!(path.mark());
    assert_eq!(path.on_ack(1, None), EcnVerdict::Failed);
    assert!(!path.mark());
    assert_eq!(path.on_ack(1, None), EcnVerdict::None);
    assert_eq!(path.on_ack(0, Some(counted(1, 0, 1))), EcnVerdict::None);
    assert!(!path.mark());
}

#[test]
fn counts_that_fall_end_marking() {
    for lower in [counted(9, 0, 1), counted(10, 0, 0)] {
        let mut path = capable(10);
        assert!((0..5).all(|_| path.mark()));
        assert_eq!(path.on_ack(1, Some(counted(10, 0, 1))), EcnVerdict::Congestion(1));
        assert_eq!(path.on_ack(0, Some(lower)), EcnVerdict::Failed);
    }
}

#[test]
fn counts_at_the_number_sent_hold_and_one_more_ends_marking() {
    for (total, verdict) in [(15, EcnVerdict::None), (16, EcnVerdict::Failed)] {
        let mut path = capable(10);
        assert!((0..5).all(|_| path.mark()));
        assert_eq!(path.on_ack(5, Some(counted(total, 0, 0))), verdict);
    }
    // Marks of congestion exceed just the same, and overflow does no harm.
    let mut path = capable(10);
    assert_eq!(path.on_ack(0, Some(counted(10, 0, 1))), EcnVerdict::Failed);
    let mut path = capable(10);
    assert_eq!(path.on_ack(0, Some(counted(u64::MAX, 0, u64::MAX))), EcnVerdict::Failed);
}

#[test]
fn fewer_counted_than_acknowledged_ends_marking() {
    let mut path = capable(10);
    assert!((0..5).all(|_| path.mark()));
    assert_eq!(path.on_ack(5, Some(counted(13, 0, 1))), EcnVerdict::Failed);
}

#[test]
fn a_mark_that_we_never_set_ends_marking() {
    let mut path = capable(10);
    assert!((0..5).all(|_| path.mark()));
    assert_eq!(path.on_ack(5, Some(counted(15, 1, 0))), EcnVerdict::Failed);
}

#[test]
fn a_test_that_is_lost_to_the_last_packet_ends_marking() {
    let mut path = EcnPath::new();
    assert!((0..9).all(|_| path.mark()));
    assert_eq!(path.on_lost(9), EcnVerdict::None);
    assert!(path.mark());
    assert_eq!(path.on_lost(1), EcnVerdict::Failed);
    assert!(!path.mark());
    assert_eq!(path.on_lost(u64::MAX), EcnVerdict::None);

    let mut survivor = EcnPath::new();
    assert!((0..10).all(|_| survivor.mark()));
    assert_eq!(survivor.on_lost(9), EcnVerdict::None);
    assert_eq!(survivor.on_ack(1, Some(counted(1, 0, 0))), EcnVerdict::None);
    assert_eq!(survivor.on_lost(9), EcnVerdict::None);
    assert!(survivor.mark());
}

#[test]
fn after_a_probe_timeout_probes_leave_unmarked_until_an_answer() {
    let mut path = EcnPath::new();
    path.on_probe_timeout();
    assert!((0..2).all(|_| path.mark()));
    path.on_probe_timeout();
    assert!(!path.mark());
    let mut answered = path;
    assert_eq!(answered.on_ack(1, Some(counted(1, 0, 0))), EcnVerdict::None);
    answered.on_probe_timeout();
    assert!(answered.mark());
    assert_eq!(path.on_lost(2), EcnVerdict::Failed);
}
