//! The receiving half of a stream: what arrived, what may come, what was refused.

use core::time::Duration;

use crate::time::Instant;
use crate::util::{RangePool, RangeSet};
use crate::wire::varint::MAX;

/// What a STREAM frame means for the half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// Some of it may be new.
    Accepted,
    /// The half is over: nothing of it matters.
    Ignored,
    /// It breaks the credit or the final size.
    Violation,
}

/// Refused bytes that the peer has to be told about (`PROTO §7.5`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Report {
    pub(crate) number: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The receiving half of a stream.
#[derive(Debug)]
pub(crate) struct RecvHalf {
    received: RangeSet,
    /// Bytes handed to the application.
    lent: u64,
    /// Offset up to which the peer may send, as announced or about to be.
    credit: u64,
    window: u64,
    granted_at: Option<Instant>,
    highest: u64,
    final_size: Option<u64>,
    fin_lent: bool,
    /// The report that the peer has not taken.
    pub(crate) report: Option<Report>,
    /// Refused since the report was made: goes into the next one.
    refused: Option<(u64, u64)>,
    reports: u64,
    /// The report behind which the peer is known to go on: it has a grant that was sent after the report was taken.
    settled: u64,
    /// The application refused bytes and has not granted since.
    paused: bool,
    /// The peer waits for nothing any more: it has reset the stream or heard that it should.
    released: bool,
    pub(crate) reset: Option<u32>,
    pub(crate) stopped: Option<u32>,
}

impl RecvHalf {
    pub(crate) fn new(credit: u64) -> Self {
        let credit = credit.min(MAX);
        Self {
            received: RangeSet::default(),
            lent: 0,
            credit,
            window: credit,
            granted_at: None,
            highest: 0,
            final_size: None,
            fin_lent: false,
            report: None,
            refused: None,
            reports: 0,
            settled: 0,
            paused: false,
            released: false,
            reset: None,
            stopped: None,
        }
    }

    /// Checks a STREAM frame against credit and final size, and notes the end.
    pub(crate) fn on_frame(&mut self, offset: u64, len: u16, fin: bool) -> Arrival {
        let end = offset + u64::from(len);
        if end > self.credit {
            return Arrival::Violation;
        }
        match self.final_size {
            Some(size) if end > size || (fin && end != size) => return Arrival::Violation,
            None if fin && end < self.highest => return Arrival::Violation,
            None if fin => self.final_size = Some(end),
            _ => {}
        }
        self.highest = self.highest.max(end);
        if self.is_over() || self.stopped.is_some() { Arrival::Ignored } else { Arrival::Accepted }
    }

    /// The peer gave up; returns whether that is news, or `None` if its final size is impossible.
    pub(crate) fn on_reset(&mut self, code: u32, final_size: u64) -> Option<bool> {
        let fits = final_size <= self.credit
            && final_size >= self.highest
            && self.final_size.is_none_or(|size| size == final_size);
        if !fits {
            return None;
        }
        let news = !self.is_over();
        self.final_size = Some(final_size);
        self.released = true;
        if news {
            self.reset = Some(code);
        }
        Some(news)
    }

    /// The first part of `from..limit` that was not lent yet, marked as lent; `None` if there is none or no
    /// descriptor is free for the gap that it would leave (`PROTO §7.6`).
    pub(crate) fn lend(&mut self, pool: &mut RangePool, from: u64, limit: u64) -> Option<(u64, u64)> {
        let (start, end) = pool.next_gap(&self.received, from, limit)?;
        pool.insert(&mut self.received, start, end).ok()?;
        self.lent += end - start;
        Some((start, end))
    }

    /// Whether a piece that ends at `end` carries the end of the stream to the application; true once.
    pub(crate) fn lend_fin(&mut self, end: u64) -> bool {
        let fin = self.final_size == Some(end) && !self.fin_lent;
        self.fin_lent |= fin;
        fin
    }

    /// Whether the end of the stream was not handed over yet and lies at `end`.
    pub(crate) fn fin_waits_at(&self, end: u64) -> bool {
        self.final_size == Some(end) && !self.fin_lent
    }

    /// Whether all bytes of `start..end` were lent.
    pub(crate) fn has(&self, pool: &RangePool, start: u64, end: u64) -> bool {
        pool.covered(&self.received, start, end)
    }

    /// These bytes were not taken; returns whether a report is due now. Without `paused` the peer may send them again
    /// as soon as it knows.
    pub(crate) fn refuse(&mut self, start: u64, end: u64, paused: bool) -> bool {
        self.paused |= paused;
        let (low, high) = self.refused.unwrap_or((start, end));
        self.refused = Some((low.min(start), high.max(end)));
        self.next_report()
    }

    /// The peer took report `number`; returns whether another is due, or `None` if that is no news.
    pub(crate) fn on_report_taken(&mut self, number: u64) -> Option<bool> {
        self.report.take_if(|report| report.number == number)?;
        Some(self.next_report())
    }

    /// Whether the half is over while the peer still waits for the application's grant; true once.
    pub(crate) fn end_pause(&mut self) -> bool {
        let waits = self.is_over() && self.paused && self.report.is_none();
        self.paused &= !waits;
        waits
    }

    /// The peer has a grant that was sent when report `number` was the last and taken.
    pub(crate) fn on_settled(&mut self, number: u64) {
        if number == self.reports {
            self.settled = number;
        }
    }

    /// The peer has heard that it should stop.
    pub(crate) fn on_stop_acked(&mut self) {
        self.released = true;
    }

    /// The application allows bytes up to `up_to`; returns whether the peer has to be told.
    pub(crate) fn grant(&mut self, up_to: u64) -> bool {
        let news = up_to > self.credit || self.paused;
        self.credit = self.credit.max(up_to);
        self.paused = false;
        news && !self.is_over()
    }

    /// Extends the credit when half of the window is used; returns whether the peer has to be told.
    ///
    /// The window doubles, up to `max`, while the peer uses half of it in under two round trips: the path is then
    /// limited by credit and not by congestion.
    pub(crate) fn extend(&mut self, now: Instant, rtt: Duration, max: u64) -> bool {
        let ahead = self.credit.saturating_sub(self.lent);
        if ahead * 2 > self.window || self.paused || self.is_over() || self.final_size.is_some() {
            return false;
        }
        let quick = self.granted_at.is_none_or(|then| now.saturating_since(then) < rtt * 2);
        if quick {
            self.widen(max);
        }
        self.granted_at = Some(now);
        let credit = (self.lent + self.window).min(MAX);
        let news = credit > self.credit;
        self.credit = self.credit.max(credit);
        news
    }

    /// The peer says that credit holds it back: the window is too small for the path.
    pub(crate) fn on_blocked(&mut self, at: u64, max: u64) {
        if at == self.credit && !self.paused {
            self.widen(max);
        }
    }

    /// Returns the range descriptors.
    pub(crate) fn clear(&mut self, pool: &mut RangePool) {
        pool.clear(&mut self.received);
    }

    /// Whether the peer waits for a grant of the application.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(crate) fn credit(&self) -> u64 {
        self.credit
    }

    /// Whether nothing more can come.
    pub(crate) fn is_over(&self) -> bool {
        // After STOP_SENDING the end is enough: what comes behind it is a repetition.
        self.reset.is_some()
            || self.stopped.is_some() && self.final_size.is_some()
            || self.fin_lent && Some(self.lent) == self.final_size
    }

    /// Whether the peer waits for nothing that this half has still to say: else it would hold the stream for ever.
    pub(crate) fn is_settled(&self) -> bool {
        self.released || self.report.is_none() && self.settled == self.reports
    }

    /// Number of the last report that was made, and whether the peer has taken it.
    pub(crate) fn last_report(&self) -> (u64, bool) {
        (self.reports, self.report.is_none())
    }

    /// Doubles the window, up to `max`.
    fn widen(&mut self, max: u64) {
        self.window = (self.window * 2).min(max.min(MAX)).max(self.window);
    }

    /// Turns refused bytes into a report unless one is under way.
    fn next_report(&mut self) -> bool {
        if self.report.is_some() {
            return false;
        }
        let refused = self.refused.take().filter(|_| !self.is_over() && self.stopped.is_none());
        let Some((start, end)) = refused else { return false };
        self.reports += 1;
        self.report = Some(Report { number: self.reports, start, end });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;

    /// `PROTO §7.1`: there is no offset beyond 2^62 − 1 to grant.
    #[test]
    fn credit_ends_where_offsets_end() {
        let mut pool = RangePool::new(4);
        let mut recv = RecvHalf::new(u64::MAX);
        assert_eq!(recv.credit(), MAX);
        recv = RecvHalf::new(4);
        for _ in 0..70 {
            recv.on_blocked(4, u64::MAX);
        }
        assert_eq!(recv.lend(&mut pool, 0, 4), Some((0, 4)));
        assert!(recv.extend(Instant::MIN, Duration::ZERO, u64::MAX));
        assert_eq!(recv.credit(), MAX);
    }
}
