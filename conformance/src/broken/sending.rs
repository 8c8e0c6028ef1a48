//! Faults of sending.

use std::io;

use wraith_drivers::{Caps, Driver, TxReport};
use wraith_proto::{Ecn, TxMeta, Via};

use super::{Fault, Quirk, Stage};

/// Throws away what the network does not take now, and calls it sent.
#[derive(Debug, Default)]
pub struct DropsOnFull;

impl<D: Driver> Fault<D> for DropsOnFull {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let mut report = stage.pass_on(inner)?;
        report.sent += stage.committed;
        report.in_flight -= stage.committed;
        stage.retire(stage.committed);
        Ok(report)
    }
}

/// Lets a longer datagram join a batch: the system cuts it at the size of the first.
#[derive(Debug, Default)]
pub struct MergesUnequalSegments;

impl<D: Driver> Fault<D> for MergesUnequalSegments {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        for index in 1..stage.committed {
            let (before, behind) = stage.committed_mut().split_at_mut(index);
            let (first, second) = (&mut before[index - 1], &mut behind[0]);
            if first.meta == second.meta && first.len > 0 && second.len > first.len {
                second.len = first.len;
            }
        }
        stage.pass_on(inner)
    }
}

/// Loses the slot of every reservation that is not committed.
#[derive(Debug, Default)]
pub struct LeaksReservation;

impl<D: Driver> Fault<D> for LeaksReservation {
    fn quirk(&self) -> Quirk {
        Quirk::Leaks
    }
}

/// Lends the memory of a datagram that has not left.
#[derive(Debug, Default)]
pub struct ReusesInFlightBuffer;

impl<D: Driver> Fault<D> for ReusesInFlightBuffer {
    fn quirk(&self) -> Quirk {
        Quirk::LendsCommitted
    }
}

/// Reports as sent what the network has not taken.
#[derive(Debug, Default)]
pub struct HidesPartialSend;

impl<D: Driver> Fault<D> for HidesPartialSend {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let mut report = stage.pass_on(inner)?;
        report.sent += std::mem::take(&mut report.in_flight);
        Ok(report)
    }
}

/// Sends as many bytes as were reserved.
#[derive(Debug, Default)]
pub struct SendsWholeReservation;

impl<D: Driver> Fault<D> for SendsWholeReservation {
    fn quirk(&self) -> Quirk {
        Quirk::CommitsAll
    }
}

/// Takes a second commit for a second datagram.
#[derive(Debug, Default)]
pub struct CommitsTwice;

impl<D: Driver> Fault<D> for CommitsTwice {
    fn quirk(&self) -> Quirk {
        Quirk::Recommits
    }
}

/// Lends memory without end.
#[derive(Debug, Default)]
pub struct NeverFull;

impl<D: Driver> Fault<D> for NeverFull {
    fn quirk(&self) -> Quirk {
        Quirk::NeverFull
    }
}

/// Has no room for long datagrams.
#[derive(Debug, Default)]
pub struct RefusesLong;

impl<D: Driver> Fault<D> for RefusesLong {
    fn quirk(&self) -> Quirk {
        Quirk::RefusesLong
    }
}

/// Sends the beginning of what is too long.
#[derive(Debug, Default)]
pub struct ClipsLong;

impl<D: Driver> Fault<D> for ClipsLong {
    fn quirk(&self) -> Quirk {
        Quirk::Clips
    }
}

/// Sends the beginning of what no path carries in one piece.
#[derive(Debug, Default)]
pub struct ClipsToPath;

impl<D: Driver> Fault<D> for ClipsToPath {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        for slot in stage.committed_mut() {
            slot.len = slot.len.min(60_000);
        }
        stage.pass_on(inner)
    }
}

/// Drops what is too long without a word about its length.
#[derive(Debug, Default)]
pub struct HidesTooLong;

impl<D: Driver> Fault<D> for HidesTooLong {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        Ok(TxReport { too_long: None, ..stage.pass_on(inner)? })
    }
}

/// Promises more slots than it has.
#[derive(Debug, Default)]
pub struct OverclaimsSlots;

impl<D: Driver> Fault<D> for OverclaimsSlots {
    fn caps(&self, mut caps: Caps) -> Caps {
        caps.tx_slots *= 2;
        caps
    }
}

/// Claims segmentation and makes one system call a datagram.
#[derive(Debug, Default)]
pub struct OverclaimsSegmentation;

impl<D: Driver> Fault<D> for OverclaimsSegmentation {
    fn caps(&self, mut caps: Caps) -> Caps {
        caps.tx_segments = 64;
        caps
    }

    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let report = stage.pass_on(inner)?;
        Ok(TxReport { syscalls: report.sent, ..report })
    }
}

/// Sends when it is asked for room.
#[derive(Debug, Default)]
pub struct SendsBeforeFlush {
    early: TxReport,
}

impl<D: Driver> Fault<D> for SendsBeforeFlush {
    fn before_commit(&mut self, inner: &mut D, stage: &mut Stage) {
        if let Ok(report) = stage.pass_on(inner) {
            self.early.sent += report.sent;
            self.early.dropped += report.dropped;
        }
    }

    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let mut report = stage.pass_on(inner)?;
        let early = std::mem::take(&mut self.early);
        report.sent += early.sent;
        report.dropped += early.dropped;
        Ok(report)
    }
}

/// Sends the newest first.
#[derive(Debug, Default)]
pub struct Reorders;

impl<D: Driver> Fault<D> for Reorders {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        stage.committed_mut().reverse();
        stage.pass_on(inner)
    }
}

/// Sends the last datagram of every flush twice.
#[derive(Debug, Default)]
pub struct SendsTwice;

impl<D: Driver> Fault<D> for SendsTwice {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let last = stage.committed().last().cloned();
        let Some((meta, slot)) = last.and_then(|slot| Some((slot.meta?, slot))) else {
            return stage.pass_on(inner);
        };
        stage.add(&meta, &slot.data[..slot.len]);
        let mut report = stage.pass_on(inner)?;
        report.sent -= report.sent.min(1);
        Ok(report)
    }
}

/// Sends everything to the destination of the first.
#[derive(Debug, Default)]
pub struct MergesDestinations;

impl<D: Driver> Fault<D> for MergesDestinations {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let to = stage.committed().first().and_then(|slot| slot.meta).map(|meta| meta.to);
        for meta in stage.committed_mut().iter_mut().filter_map(|slot| slot.meta.as_mut()) {
            meta.to = to.unwrap_or(meta.to);
        }
        stage.pass_on(inner)
    }
}

/// Sends everything with the mark of the first.
#[derive(Debug, Default)]
pub struct MergesMarks;

impl<D: Driver> Fault<D> for MergesMarks {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let mark = stage.committed().first().and_then(|slot| slot.meta).map_or(Ecn::NotEct, |meta| meta.ecn);
        for meta in stage.committed_mut().iter_mut().filter_map(|slot| slot.meta.as_mut()) {
            meta.ecn = mark;
        }
        stage.pass_on(inner)
    }
}

/// Hands over no more than 64 equal datagrams, and loses the rest of the batch.
#[derive(Debug, Default)]
pub struct OverfillsBatches;

impl<D: Driver> Fault<D> for OverfillsBatches {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let surplus = stage.committed.saturating_sub(64);
        stage.committed -= surplus;
        let mut report = stage.pass_on(inner)?;
        report.sent += surplus;
        Ok(report)
    }
}

/// Fails when a datagram cannot be sent.
#[derive(Debug, Default)]
pub struct FailsOnUnsendable;

impl<D: Driver> Fault<D> for FailsOnUnsendable {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let report = stage.pass_on(inner)?;
        if report.dropped > 0 { Err(io::ErrorKind::NetworkUnreachable.into()) } else { Ok(report) }
    }
}

/// Waits for ever behind a datagram that cannot be sent.
#[derive(Debug, Default)]
pub struct StopsAtUnsendable;

impl<D: Driver> Fault<D> for StopsAtUnsendable {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let local = inner.local_addr();
        let reachable = |meta: &TxMeta| meta.to.is_ipv4() == local.is_ipv4();
        let first = stage.committed().iter().position(|slot| !slot.meta.as_ref().is_some_and(reachable));
        let held = first.map_or(0, |first| stage.committed - first);
        stage.committed -= held;
        let before = stage.committed;
        let mut report = stage.pass_on(inner)?;
        let gone = before - stage.committed;
        // The held ones still stand behind those that are gone.
        stage.slots[stage.committed..before + held].rotate_left(gone);
        stage.committed += held;
        report.in_flight += held;
        Ok(report)
    }
}

/// Sends from its own address, whatever source was chosen.
#[derive(Debug, Default)]
pub struct IgnoresSource;

impl<D: Driver> Fault<D> for IgnoresSource {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        for meta in stage.committed_mut().iter_mut().filter_map(|slot| slot.meta.as_mut()) {
            meta.from = None;
        }
        stage.pass_on(inner)
    }
}

/// Drops what has a source at all.
#[derive(Debug, Default)]
pub struct RefusesSource;

impl<D: Driver> Fault<D> for RefusesSource {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        keep(inner, stage, |meta| meta.from.is_none())
    }
}

/// Drops what has a `via` that it never gave out.
#[derive(Debug, Default)]
pub struct TrustsVia;

impl<D: Driver> Fault<D> for TrustsVia {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        keep(inner, stage, |meta| meta.via == Via::default())
    }
}

/// Waits 40 ms whenever it sends.
#[derive(Debug, Default)]
pub struct BlocksInFlush;

impl<D: Driver> Fault<D> for BlocksInFlush {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let blocks = stage.committed > 0;
        let report = stage.pass_on(inner)?;
        if blocks {
            std::thread::sleep(std::time::Duration::from_millis(40));
        }
        Ok(report)
    }
}

/// Reports the last flush that did something, over and over.
#[derive(Debug, Default)]
pub struct RepeatsReports {
    last: TxReport,
}

impl<D: Driver> Fault<D> for RepeatsReports {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let report = stage.pass_on(inner)?;
        if report.sent > 0 {
            self.last = report;
        }
        Ok(TxReport { in_flight: report.in_flight, ..self.last })
    }
}

/// Makes a system call for nothing.
#[derive(Debug, Default)]
pub struct CallsForNothing;

impl<D: Driver> Fault<D> for CallsForNothing {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let report = stage.pass_on(inner)?;
        Ok(TxReport { syscalls: report.syscalls + 1, ..report })
    }
}

/// Loses a slot with every thousandth datagram.
#[derive(Debug, Default)]
pub struct LosesSlots {
    sent: usize,
}

impl<D: Driver> Fault<D> for LosesSlots {
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        let report = stage.pass_on(inner)?;
        self.sent += report.sent;
        if self.sent >= 1000 && stage.capacity > 1 {
            self.sent -= 1000;
            stage.capacity -= 1;
        }
        Ok(report)
    }
}

/// Passes on what `wanted` wants and drops the rest, counted.
fn keep<D: Driver>(inner: &mut D, stage: &mut Stage, wanted: fn(&TxMeta) -> bool) -> io::Result<TxReport> {
    let mut kept = Vec::new();
    for slot in stage.committed() {
        if let Some(meta) = slot.meta.filter(wanted) {
            kept.push((meta, slot.data[..slot.len].to_vec()));
        }
    }
    let dropped = stage.committed - kept.len();
    stage.retire(stage.committed);
    for (meta, data) in kept {
        stage.add(&meta, &data);
    }
    let mut report = stage.pass_on(inner)?;
    report.dropped += dropped;
    Ok(report)
}
