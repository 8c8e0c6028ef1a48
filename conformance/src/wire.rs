//! Two ends of a case and what it does with them: commit, flush, wait, compare.

use std::any::Any;
use std::time::{Duration, Instant as Std};

use wraith_drivers::{Driver, RxReport, TooLong, TxReport};
use wraith_proto::{Ecn, RxMeta, TxMeta, TxQueue, Via};

use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::harness::{Link, Pair};

/// Two ends on one wire; left sends unless a case swaps them.
pub(crate) struct Wire<D> {
    pub(crate) left: End<D>,
    pub(crate) right: End<D>,
    /// Dropped last.
    pub(crate) guard: Box<dyn Any>,
}

/// One driver and what it was given to send.
pub(crate) struct End<D> {
    pub(crate) driver: D,
    pub(crate) tally: Tally,
    pub(crate) patience: Duration,
}

/// Sums over all reports of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) committed: usize,
    pub(crate) sent: usize,
    pub(crate) dropped: usize,
    pub(crate) in_flight: usize,
    pub(crate) syscalls: usize,
    /// Kept until a case takes it.
    pub(crate) too_long: Option<TooLong>,
}

/// A datagram that was lent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    pub(crate) meta: RxMeta,
    pub(crate) data: Vec<u8>,
}

/// A wait that has begun.
pub(crate) struct Waiting {
    since: Std,
    patience: Duration,
}

/// More than a wire of a test takes, from flush to `recv`.
const REST: Duration = Duration::from_millis(5);
/// Datagrams lent by one call where the case has no wish of its own.
const BUDGET: usize = 64;

impl<D: Driver> Wire<D> {
    pub(crate) fn new(pair: Pair<D>, patience: Duration) -> Self {
        let end = |driver| End { driver, tally: Tally::default(), patience };
        Self { left: end(pair.left), right: end(pair.right), guard: pair.guard }
    }

    /// Makes left right and right left.
    pub(crate) fn swap(&mut self) {
        std::mem::swap(&mut self.left, &mut self.right);
    }

    /// Meta of a plain datagram from left to right.
    pub(crate) fn to_right(&self) -> TxMeta {
        TxMeta { to: self.right.driver.local_addr(), from: None, via: Via::default(), ecn: Ecn::NotEct }
    }

    /// Sends plain datagrams from left to right, and checks that they arrive: these, in this order, and no others.
    pub(crate) fn cross(&mut self, datagrams: &[Vec<u8>]) -> Outcome {
        let meta = self.to_right();
        let arrivals = self.carry(datagrams.iter().map(|data| (meta, data.as_slice())))?;
        same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
        self.nothing_more()
    }

    /// Like [`Wire::cross`], with everything committed before the first flush.
    pub(crate) fn batch(&mut self, datagrams: &[Vec<u8>]) -> Outcome {
        self.commit_all(datagrams)?;
        let mut arrivals = Vec::new();
        self.receive(datagrams.len(), &mut arrivals)?;
        same(&arrivals, datagrams.iter().map(Vec::as_slice))?;
        self.nothing_more()
    }

    /// Commits plain datagrams from left to right, which must find room.
    pub(crate) fn commit_all(&mut self, datagrams: &[Vec<u8>]) -> Outcome {
        let meta = self.to_right();
        datagrams.iter().try_for_each(|data| self.left.must_commit(&meta, data))
    }

    /// Sends from left to right and gives what arrived, as many as were sent.
    pub(crate) fn carry<'a>(
        &mut self,
        datagrams: impl IntoIterator<Item = (TxMeta, &'a [u8])>,
    ) -> Outcome<Vec<Arrival>> {
        let mut arrivals = Vec::new();
        let mut offered = 0;
        let mut datagrams = datagrams.into_iter().peekable();
        while let Some(&(meta, data)) = datagrams.peek() {
            let waiting = usize::saturating_sub(offered, arrivals.len());
            if waiting < Link::WINDOW / 2 && self.left.commit(&meta, data) {
                datagrams.next();
                offered += 1;
                continue;
            }
            ensure!(waiting > 0, "reserve lends no room for {} bytes on an idle queue", data.len());
            self.receive(offered, &mut arrivals)?;
        }
        self.receive(offered, &mut arrivals)?;
        Ok(arrivals)
    }

    /// Flushes left and receives at right until there are `count` arrivals.
    pub(crate) fn receive(&mut self, count: usize, arrivals: &mut Vec<Arrival>) -> Outcome {
        let started = Std::now();
        let mut flushed = false;
        while arrivals.len() < count || self.left.tally.in_flight > 0 {
            if !flushed || self.left.tally.in_flight > 0 {
                self.left.flush()?;
                flushed = true;
            }
            let report = self.right.recv(BUDGET, arrivals)?;
            if report.datagrams == 0 && started.elapsed() > self.left.patience {
                return Err(self.missing(count, arrivals));
            }
            if report.datagrams == 0 {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Flushes left and receives at right until nothing is in flight and nothing arrives, whatever that is.
    pub(crate) fn drain(&mut self) -> Outcome {
        let mut waiting = self.waiting();
        loop {
            let in_flight = self.left.flush()?.in_flight;
            let mut arrivals = Vec::new();
            self.right.recv(BUDGET, &mut arrivals)?;
            if in_flight == 0 && arrivals.is_empty() {
                rest();
                if self.right.recv(BUDGET, &mut arrivals)?.datagrams == 0 {
                    return Ok(());
                }
            }
            waiting.check(|| format!("all but {in_flight} datagrams left"))?;
        }
    }

    /// Checks that nothing but one last datagram arrives, which arrives behind everything else.
    pub(crate) fn nothing_more(&mut self) -> Outcome {
        let meta = self.to_right();
        let last = b"the last one".as_slice();
        let mut arrivals = self.carry([(meta, last)])?;
        self.right.recv(BUDGET, &mut arrivals)?;
        match arrivals.as_slice() {
            [arrival] if arrival.data == last => Ok(()),
            [other, ..] => {
                Err(Verdict::Fail(format!("{} bytes arrived that nobody sent there", other.data.len())))
            }
            [] => Err(Verdict::Fail("the last datagram vanished".to_owned())),
        }
    }

    /// The patience for one wait.
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting { since: Std::now(), patience: self.left.patience }
    }

    fn missing(&self, count: usize, arrivals: &[Arrival]) -> Verdict {
        let Tally { sent, dropped, in_flight, .. } = self.left.tally;
        Verdict::Fail(format!(
            "{} of {count} datagrams arrived within {:?}; the sender reported {sent} sent, {dropped} dropped, \
             {in_flight} in flight",
            arrivals.len(),
            self.left.patience
        ))
    }
}

impl<D: Driver> End<D> {
    /// Commits a datagram, or gives false if the queue lends no room.
    pub(crate) fn commit(&mut self, meta: &TxMeta, data: &[u8]) -> bool {
        let tx = self.driver.tx();
        let Some(room) = tx.reserve(meta, data.len()) else { return false };
        room[..data.len()].copy_from_slice(data);
        tx.commit(data.len());
        self.tally.committed += 1;
        true
    }

    /// Commits a datagram that must find room.
    pub(crate) fn must_commit(&mut self, meta: &TxMeta, data: &[u8]) -> Outcome {
        let (before, len) = (self.tally.committed, data.len());
        ensure!(self.commit(meta, data), "reserve lends no room for {len} bytes after {before} commits");
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Outcome<TxReport> {
        let report = self.driver.flush()?;
        self.tally.sent += report.sent;
        self.tally.dropped += report.dropped;
        self.tally.in_flight = report.in_flight;
        self.tally.syscalls += report.syscalls;
        self.tally.too_long = self.tally.too_long.or(report.too_long);
        Ok(report)
    }

    /// Flushes until nothing is in flight.
    pub(crate) fn settle(&mut self) -> Outcome {
        let started = Std::now();
        while self.flush()?.in_flight > 0 {
            let waiting = self.tally.in_flight;
            ensure!(started.elapsed() <= self.patience, "{waiting} datagrams stay in flight");
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Receives once, and checks that the report counts what was lent.
    pub(crate) fn recv(&mut self, budget: usize, arrivals: &mut Vec<Arrival>) -> Outcome<RxReport> {
        let before = arrivals.len();
        let report = self
            .driver
            .recv(budget, |meta, data| arrivals.push(Arrival { meta: *meta, data: data.to_vec() }))?;
        ensure_eq!(report.datagrams, arrivals.len() - before, "datagrams in the report of recv");
        Ok(report)
    }
}

impl Waiting {
    /// Lets others run, and fails if the patience is at its end, with what there is so far.
    pub(crate) fn check(&mut self, so_far: impl FnOnce() -> String) -> Outcome {
        let patience = self.patience;
        ensure!(self.since.elapsed() <= patience, "only {} within {patience:?}", so_far());
        std::thread::yield_now();
        Ok(())
    }
}

/// Lets a few milliseconds pass, so that what was sent has arrived even where a wire takes its time.
pub(crate) fn rest() {
    let started = Std::now();
    while started.elapsed() < REST {
        std::thread::yield_now();
    }
}

/// Checks that `arrivals` are these datagrams, in this order.
pub(crate) fn same<'a>(arrivals: &[Arrival], datagrams: impl ExactSizeIterator<Item = &'a [u8]>) -> Outcome {
    ensure_eq!(arrivals.len(), datagrams.len(), "arrivals");
    for (index, (arrival, sent)) in arrivals.iter().zip(datagrams).enumerate() {
        ensure_eq!(arrival.data.len(), sent.len(), "length of datagram {index}");
        if let Some(at) = arrival.data.iter().zip(sent).position(|(a, b)| a != b) {
            let len = sent.len();
            return Err(Verdict::Fail(format!("datagram {index} of {len} bytes differs from byte {at} on")));
        }
    }
    Ok(())
}
