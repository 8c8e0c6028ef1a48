//! Explicit Congestion Notification: what we count of the peer's packets, and whether to believe what it counts of
//! ours (RFC 9000 §13.4).

use crate::meta::Ecn;

/// Packets marked while it is unknown whether the path carries marks (RFC 9000 §A.4).
const TEST_PACKETS: u8 = 10;

/// Packets received by their mark: what an `ACK_ECN` frame reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct EcnCounters {
    /// Marked ECT(0).
    pub(crate) ect0: u64,
    /// Marked ECT(1).
    pub(crate) ect1: u64,
    /// Marked as having met congestion.
    pub(crate) ce: u64,
}

impl EcnCounters {
    /// Counts a packet that was opened and is no duplicate (RFC 9000 §13.4.1).
    pub(crate) fn record(&mut self, mark: Ecn) {
        match mark {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.ect0 += 1,
            Ecn::Ect1 => self.ect1 += 1,
            Ecn::Ce => self.ce += 1,
        }
    }

    /// Whether there is anything to report.
    pub(crate) const fn any(&self) -> bool {
        self.ect0 | self.ect1 | self.ce != 0
    }

    /// What was counted after `earlier`, if no count fell.
    fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            ect0: self.ect0.checked_sub(earlier.ect0)?,
            ect1: self.ect1.checked_sub(earlier.ect1)?,
            ce: self.ce.checked_sub(earlier.ce)?,
        })
    }
}

/// How far a path is trusted with marks; the names are those of RFC 9000 §A.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The first packets are marked.
    Testing,
    /// Nothing is marked until something is heard of those.
    Unknown,
    /// Everything is marked.
    Capable,
    /// Nothing is marked any more.
    Failed,
}

/// What an ACK frame meant for the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EcnVerdict {
    /// Nothing to do.
    None,
    /// So many more packets met congestion: a congestion event.
    Congestion(u64),
    /// The counts cannot be true, or are missing: marking has ended. Reported once.
    Failed,
}

/// Marking of one path's packets, and its validation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EcnPath {
    state: State,
    /// Packets marked since the test began, while it runs.
    tested: u8,
    /// Those of them that were lost.
    lost: u8,
    /// Marked packets that no count has accounted for yet.
    outstanding: u64,
    /// The latest counts; they belong to the session and run on from path to path.
    last: EcnCounters,
}

impl EcnPath {
    /// The state of a session's first path.
    pub(crate) const fn new() -> Self {
        Self {
            state: State::Testing,
            tested: 0,
            lost: 0,
            outstanding: 0,
            last: EcnCounters { ect0: 0, ect1: 0, ce: 0 },
        }
    }

    /// The state of a session that never marks.
    pub(crate) const fn disabled() -> Self {
        Self { state: State::Failed, ..Self::new() }
    }

    /// The state of another path of the same session: counts run on, and marked packets of the former path may still
    /// be counted.
    pub(crate) const fn next_path(&self) -> Self {
        Self { outstanding: self.outstanding, last: self.last, ..Self::new() }
    }

    /// Whether the next packet is to be marked ECT(0).
    pub(crate) const fn marks(&self) -> bool {
        matches!(self.state, State::Testing | State::Capable)
    }

    /// A marked packet left.
    pub(crate) fn on_marked(&mut self) {
        self.outstanding += 1;
        if self.state == State::Testing {
            self.tested += 1;
            if self.tested == TEST_PACKETS {
                self.state = State::Unknown;
            }
        }
    }

    /// Takes an ACK frame: how many packets it newly acknowledged that were marked, and its counts if it has any.
    ///
    /// Only for frames that raise the largest acknowledged number: an overtaken one has smaller counts by right.
    pub(crate) fn on_ack(&mut self, newly_acked_ect0: u64, counts: Option<EcnCounters>) -> EcnVerdict {
        let Some(counts) = counts else {
            return if newly_acked_ect0 > 0 { self.fail() } else { EcnVerdict::None };
        };
        let new = counts.since(&self.last);
        self.last = counts;
        let seen = new.and_then(|new| new.ect0.checked_add(new.ce));
        let outstanding = self.outstanding;
        self.outstanding = outstanding.saturating_sub(seen.unwrap_or(0));
        match (new, seen) {
            // Each marked packet is counted, none twice, and nobody marks ECT(1).
            (Some(new), Some(seen)) if new.ect1 == 0 && (newly_acked_ect0..=outstanding).contains(&seen) => {
                self.accept(seen, new.ce)
            }
            _ => self.fail(),
        }
    }

    /// So many packets that were marked on this path are lost: if that is all of the test, the path drops marks.
    pub(crate) fn on_lost(&mut self, marked: u64) -> EcnVerdict {
        if !matches!(self.state, State::Testing | State::Unknown) {
            return EcnVerdict::None;
        }
        self.lost = self.lost.saturating_add(u8::try_from(marked).unwrap_or(u8::MAX));
        if self.state == State::Unknown && self.lost >= self.tested { self.fail() } else { EcnVerdict::None }
    }

    /// A probe timeout ran out: a test without an answer goes on without marks, so that probes get through.
    pub(crate) fn on_probe_timeout(&mut self) {
        if self.state == State::Testing && self.tested > 0 {
            self.state = State::Unknown;
        }
    }

    fn accept(&mut self, seen: u64, ce: u64) -> EcnVerdict {
        if self.state == State::Failed {
            return EcnVerdict::None;
        }
        if seen > 0 {
            self.state = State::Capable;
        }
        if ce > 0 { EcnVerdict::Congestion(ce) } else { EcnVerdict::None }
    }

    fn fail(&mut self) -> EcnVerdict {
        if self.state == State::Failed {
            return EcnVerdict::None;
        }
        self.state = State::Failed;
        EcnVerdict::Failed
    }
}

#[cfg(test)]
mod tests;
