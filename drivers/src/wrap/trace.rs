//! What a driver does, for whoever listens through `tracing`.

use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::BorrowedFd;

use tracing::{debug, trace, warn};
use wraith_proto::{Instant, RxMeta, TxMeta};

use super::pass_on;
use crate::{Caps, Driver, Park, RxReport, Slots, TooLong, TxReport, Wake};
#[cfg(unix)]
use crate::{Interest, Pollable};

/// Where the events come from, to filter by.
const TARGET: &str = "wraith::driver";

/// Tells `tracing` what passes through a driver, with the target `wraith::driver`.
///
/// | level | events | fields |
/// |---|---|---|
/// | `TRACE` | `sent`, `received`: each datagram | `peer`, `len`, `ecn`, `via`, `local` |
/// | `DEBUG` | `flushed`, `lent`: each call that did something; `parked` | those of the report; `wake` |
/// | `WARN` | `dropped`, `truncated`, `failed` | how many; the error |
///
/// Each has the driver's local address as `addr`. Sending costs a copy, and nothing else as long as nobody listens.
#[derive(Debug)]
pub struct Trace<D> {
    inner: D,
    tx: Slots,
    addr: SocketAddr,
}

impl<D: Driver> Trace<D> {
    /// Traces `inner`.
    pub fn new(inner: D) -> Self {
        let (caps, addr) = (inner.caps(), inner.local_addr());
        debug!(target: TARGET, %addr, mode = %caps.mode, max_datagram = caps.max_datagram, "opened");
        Self { tx: Slots::new(caps.tx_slots, caps.max_datagram), inner, addr }
    }

    /// The driver inside.
    ///
    /// What is committed and not handed on is lost.
    pub fn into_inner(self) -> D {
        self.inner
    }

    /// Passes a result on and tells of an error.
    fn told<T>(&self, call: &str, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            warn!(target: TARGET, addr = %self.addr, call, %error, "failed");
        }
        result
    }
}

impl<D: Driver> Driver for Trace<D> {
    type Tx = Slots;

    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn recv(
        &mut self,
        budget: usize,
        mut on_datagram: impl FnMut(&RxMeta, &mut [u8]),
    ) -> io::Result<RxReport> {
        let addr = self.addr;
        let result = self.inner.recv(budget, |meta, datagram| {
            let (peer, via, local) = (meta.from, meta.via.0, meta.to);
            trace!(target: TARGET, %addr, %peer, len = datagram.len(), ecn = ?meta.ecn, via, ?local, "received");
            on_datagram(meta, datagram);
        });
        let RxReport { datagrams, truncated, budget_hit } = self.told("recv", result)?;
        if datagrams > 0 {
            debug!(target: TARGET, %addr, datagrams, budget_hit, "lent");
        }
        if truncated > 0 {
            warn!(target: TARGET, %addr, truncated, "truncated");
        }
        Ok(RxReport { datagrams, truncated, budget_hit })
    }

    fn tx(&mut self) -> &mut Self::Tx {
        &mut self.tx
    }

    fn flush(&mut self) -> io::Result<TxReport> {
        let addr = self.addr;
        let result = pass_on(&mut self.tx, &mut self.inner, |meta: &TxMeta, datagram| {
            let (peer, via, local) = (meta.to, meta.via.0, meta.from);
            trace!(target: TARGET, %addr, %peer, len = datagram.len(), ecn = ?meta.ecn, via, ?local, "sent");
        });
        let report = self.told("flush", result)?;
        let TxReport { sent, dropped, in_flight, syscalls, too_long } = report;
        if report != TxReport::default() {
            debug!(target: TARGET, %addr, sent, dropped, in_flight, syscalls, "flushed");
        }
        if let Some(TooLong { to: peer, len }) = too_long {
            warn!(target: TARGET, %addr, dropped, %peer, len, "dropped: too long");
        } else if dropped > 0 {
            warn!(target: TARGET, %addr, dropped, "dropped");
        }
        Ok(report)
    }
}

impl<D: Park> Park for Trace<D> {
    type Unparker = D::Unparker;

    fn park(&mut self, until: Option<Instant>) -> io::Result<Wake> {
        let result = self.inner.park(until);
        let wake = self.told("park", result)?;
        debug!(target: TARGET, addr = %self.addr, ?wake, "parked");
        Ok(wake)
    }

    fn unparker(&self) -> Self::Unparker {
        self.inner.unparker()
    }
}

#[cfg(unix)]
impl<D: Pollable> Pollable for Trace<D> {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.inner.poll_fd()
    }

    fn interest(&self) -> Interest {
        self.inner.interest()
    }
}
