//! A bad network around any driver.

use std::io;
use std::net::SocketAddr;

use wraith_proto::{Instant, RxMeta, TxMeta, TxQueue};
use wraith_sim::{Link, LinkConfig, LinkCounters};

use crate::{Caps, Driver, Park, RxReport, Slots, TxReport, Wake};

/// Feeds the datagrams of a driver through a [`Link`] in each direction, in the time of the driver's clock.
///
/// ```text
/// commit ─▶ link out ─▶ inner driver ─▶ network
/// recv   ◀─ link in  ◀─ inner driver ◀─ network
/// ```
///
/// What a link delays is handed on by the first [`Driver::recv`], [`Driver::flush`] or [`Park::park`] after its time.
/// What a link has taken counts as sent, whatever becomes of it; [`Netem::counters`] tells. What is too long for the
/// driver inside is told by the flush that hands it on.
#[derive(Debug)]
pub struct Netem<D> {
    inner: D,
    outgoing: Link<TxMeta>,
    incoming: Link<RxMeta>,
    tx: Slots,
}

impl<D: Driver> Netem<D> {
    /// `inner` behind two links whose dice follow from `seed`.
    pub fn new(inner: D, outgoing: LinkConfig, incoming: LinkConfig, seed: u64) -> Self {
        let caps = inner.caps();
        let tx = Slots::new(caps.tx_slots.max(1), caps.max_datagram);
        Self { inner, outgoing: Link::new(outgoing, seed), incoming: Link::new(incoming, !seed), tx }
    }

    /// Changes what the links do to datagrams from now on.
    pub fn set_links(&mut self, outgoing: LinkConfig, incoming: LinkConfig) {
        self.outgoing.set_config(outgoing);
        self.incoming.set_config(incoming);
    }

    /// What became of the datagrams on the way out and on the way in.
    pub fn counters(&self) -> (&LinkCounters, &LinkCounters) {
        (self.outgoing.counters(), self.incoming.counters())
    }

    /// When one of the links has something next: time to flush and to receive, for a loop that does not park.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.outgoing.next_arrival().into_iter().chain(self.incoming.next_arrival()).min()
    }

    /// The driver inside.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The driver inside; what is still on a link is lost.
    pub fn into_inner(self) -> D {
        self.inner
    }

    /// Hands what has passed the outgoing link to the driver inside, as far as that has room.
    fn pump(&mut self) -> io::Result<TxReport> {
        let now = self.inner.now();
        let mut total = TxReport::default();
        loop {
            let stuck = self.fill(now);
            let report = self.inner.flush()?;
            total.syscalls += report.syscalls;
            total.join_too_long(&report);
            total.in_flight = report.in_flight;
            if !stuck || report.sent + report.dropped == 0 {
                return Ok(total);
            }
        }
    }

    /// Returns whether the driver inside had no room for a datagram that is due.
    fn fill(&mut self, now: Instant) -> bool {
        while let Some((meta, len)) = self.outgoing.peek(now) {
            let Some(room) = self.inner.tx().reserve(&meta.clone(), len) else { return true };
            let Some((_, datagram)) = self.outgoing.pop(now) else { return false };
            room[..len].copy_from_slice(datagram);
            self.inner.tx().commit(len);
        }
        false
    }
}

impl<D: Driver> Driver for Netem<D> {
    type Tx = Slots;

    fn caps(&self) -> Caps {
        let mut caps = self.inner.caps();
        caps.tx_slots = self.tx.capacity();
        caps
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn recv(
        &mut self,
        budget: usize,
        mut on_datagram: impl FnMut(&RxMeta, &mut [u8]),
    ) -> io::Result<RxReport> {
        self.pump()?;
        let now = self.inner.now();
        let incoming = &mut self.incoming;
        let mut report = self.inner.recv(budget, |meta, datagram| {
            incoming.push(now, meta, datagram);
        })?;
        report.datagrams = 0;
        while report.datagrams < budget
            && let Some((meta, datagram)) = incoming.pop(now)
        {
            on_datagram(&meta, datagram);
            report.datagrams += 1;
        }
        report.budget_hit |= incoming.next_arrival().is_some_and(|at| at <= now);
        Ok(report)
    }

    fn tx(&mut self) -> &mut Self::Tx {
        &mut self.tx
    }

    fn flush(&mut self) -> io::Result<TxReport> {
        let now = self.inner.now();
        let sent = self.tx.committed().len();
        for (meta, datagram) in self.tx.committed() {
            self.outgoing.push(now, meta, datagram);
        }
        self.tx.retire(sent);
        let report = self.pump()?;
        Ok(TxReport { sent, syscalls: report.syscalls, too_long: report.too_long, ..TxReport::default() })
    }
}

impl<D: Park> Park for Netem<D> {
    type Unparker = D::Unparker;

    fn park(&mut self, until: Option<Instant>) -> io::Result<Wake> {
        self.pump()?;
        let arrival = self.next_arrival();
        let first = arrival.into_iter().chain(until).min();
        match self.inner.park(first)? {
            // The links' deadline is traffic to the caller.
            Wake::Deadline if until.is_none_or(|until| self.inner.now() < until) => Ok(Wake::Traffic),
            Wake::Deadline if arrival.is_some_and(|at| at <= self.inner.now()) => Ok(Wake::Traffic),
            wake => Ok(wake),
        }
    }

    fn unparker(&self) -> Self::Unparker {
        self.inner.unparker()
    }
}
