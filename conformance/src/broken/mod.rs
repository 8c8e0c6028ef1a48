//! Deliberately wrong drivers: the suite has to reject every one, or it proves nothing.
//!
//! Each is a wrapper around any driver. [`Sound`] is the same wrapper without a fault, which passes: what the others are
//! rejected for is their fault.

mod faults;
mod list;
mod parking;
mod receiving;
mod sending;
mod stage;

use std::fmt;
use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::BorrowedFd;

use wraith_drivers::{Caps, Driver, Park, RxReport, TxReport, Wake};
#[cfg(unix)]
use wraith_drivers::{Interest, Pollable};
use wraith_proto::{Instant, RxMeta};

use crate::harness::{Harness, Link, Pair, Setup, Workshop};

pub use faults::*;
#[cfg(unix)]
pub use list::pollable_specimens;
pub use list::{Specimen, sound, specimens};
pub use parking::*;
pub use receiving::*;
pub use sending::*;
pub use stage::{Quirk, Stage};

/// `inner` with a fault.
pub struct Broken<D> {
    inner: D,
    stage: Stage,
    fault: Box<dyn Fault<D>>,
}

/// What a broken driver does wrong. A method that is not overridden does right.
pub trait Fault<D: Driver>: fmt::Debug + Send {
    /// How its transmit queue misbehaves.
    fn quirk(&self) -> Quirk {
        Quirk::None
    }

    /// What it claims.
    fn caps(&self, caps: Caps) -> Caps {
        caps
    }

    /// What its clock says.
    fn now(&self, now: Instant) -> Instant {
        now
    }

    /// What it does when somebody asks for its queue.
    fn before_commit(&mut self, inner: &mut D, stage: &mut Stage) {
        let _ = (inner, stage);
    }

    /// How it hands what is staged to `inner`.
    ///
    /// # Errors
    /// Those of the driver, and the fault's own.
    fn flush(&mut self, inner: &mut D, stage: &mut Stage) -> io::Result<TxReport> {
        stage.pass_on(inner)
    }

    /// How it lends what `inner` has received.
    ///
    /// # Errors
    /// Those of the driver, and the fault's own.
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        inner.recv(budget, lend)
    }

    /// How it parks.
    ///
    /// # Errors
    /// Those of the driver.
    fn park(&mut self, inner: &mut D, until: Option<Instant>) -> io::Result<Wake>
    where
        D: Park,
    {
        inner.park(until)
    }

    /// What an outer loop is to wait for.
    #[cfg(unix)]
    fn interest(&self, interest: Interest) -> Interest {
        interest
    }

    /// The descriptor that it gives out instead of its own.
    #[cfg(unix)]
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// What takes a lent datagram.
pub type Lend<'a> = dyn FnMut(&RxMeta, &mut [u8]) + 'a;

/// No fault: the control.
#[derive(Debug, Default)]
pub struct Sound;

impl<D: Driver> Fault<D> for Sound {}

/// Makes pairs of `H` with a fault at both ends.
pub(crate) struct Sabotage<H: Harness> {
    pub(crate) name: &'static str,
    pub(crate) fault: fn() -> Box<dyn Fault<H::Driver>>,
}

impl<H: Harness> Workshop<Broken<H::Driver>> for Sabotage<H> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn pair(&self, link: &Link) -> Result<Pair<Broken<H::Driver>>, Setup> {
        let Pair { left, right, guard } = H::pair(link)?;
        let broken = |inner| Broken::new(inner, (self.fault)());
        Ok(Pair { left: broken(left), right: broken(right), guard })
    }

    fn path_limit(&self, link: &Link) -> Option<usize> {
        H::path_limit(link)
    }
}

impl<D: Driver> Broken<D> {
    /// Breaks `inner`.
    pub fn new(inner: D, fault: Box<dyn Fault<D>>) -> Self {
        let caps = inner.caps();
        Self { inner, stage: Stage::new(caps.tx_slots, caps.max_datagram, fault.quirk()), fault }
    }
}

impl<D: Driver> Driver for Broken<D> {
    type Tx = Stage;

    fn caps(&self) -> Caps {
        self.fault.caps(self.inner.caps())
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn now(&self) -> Instant {
        self.fault.now(self.inner.now())
    }

    fn recv(
        &mut self,
        budget: usize,
        mut on_datagram: impl FnMut(&RxMeta, &mut [u8]),
    ) -> io::Result<RxReport> {
        self.fault.recv(&mut self.inner, budget, &mut on_datagram)
    }

    fn tx(&mut self) -> &mut Self::Tx {
        self.fault.before_commit(&mut self.inner, &mut self.stage);
        &mut self.stage
    }

    fn flush(&mut self) -> io::Result<TxReport> {
        self.stage.end_reservation();
        self.fault.flush(&mut self.inner, &mut self.stage)
    }
}

impl<D: Park> Park for Broken<D> {
    type Unparker = D::Unparker;

    fn park(&mut self, until: Option<Instant>) -> io::Result<Wake> {
        self.fault.park(&mut self.inner, until)
    }

    fn unparker(&self) -> Self::Unparker {
        self.inner.unparker()
    }
}

#[cfg(unix)]
impl<D: Pollable> Pollable for Broken<D> {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.fault.poll_fd().unwrap_or_else(|| self.inner.poll_fd())
    }

    fn interest(&self) -> Interest {
        self.fault.interest(self.inner.interest())
    }
}

impl<D: fmt::Debug> fmt::Debug for Broken<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broken")
            .field("inner", &self.inner)
            .field("fault", &self.fault)
            .finish_non_exhaustive()
    }
}
