//! The seam between the WRAITH core and the network.
//!
//! A driver is a non-blocking pair of queues that is polled:
//!
//! 1. Receiving lends buffers in: [`Driver::recv`] hands each datagram to a closure, for the call only.
//! 2. Sending lends memory out: the core asks [`Driver::tx`] for room and seals in place.
//! 3. [`Driver::flush`] is the only place that talks to the kernel to send.
//! 4. Waiting is a separate trait: [`Park`] blocks a thread, `Pollable` nests in somebody else's loop.
//! 5. Batches (GSO, GRO, rings) are the driver's business; the core deals in single datagrams.
//!
//! Facts about a driver stand in its [`Caps`]; nothing degrades silently. A program with no loop of its
//! own calls [`Runner::run`]; one that has a loop calls [`Runner::step`] from it.
//!
//! [`MemoryDriver`] joins two ends in one process. It is the reference for what the traits mean, and
//! with a [`ManualClock`] it runs two ends in lock-step.
//!
//! Drivers around drivers, each behind a feature of its name: `Netem` is a bad network, `Pcap` writes a capture file
//! that tcpdump and Wireshark read, `Trace` tells `tracing` what passes through.

#![forbid(unsafe_code)]

mod caps;
mod clock;
mod family;
mod memory;
mod runner;
mod segments;
mod slots;
#[cfg(feature = "trace")]
pub mod trace;
mod wrap;

use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::BorrowedFd;

use wraith_proto::{Instant, RxMeta, TxQueue};

pub use caps::{Caps, Limit, Mode, RxReport, TooLong, TxReport};
pub use clock::{Clock, ManualClock};
pub use family::{Family, canonical};
pub use memory::{MemoryDriver, MemoryOptions, MemoryUnparker};
pub use runner::{App, Runner, Turn};
pub use segments::Segments;
pub use slots::Slots;
#[cfg(feature = "netem")]
pub use wrap::Netem;
#[cfg(feature = "pcap")]
pub use wrap::Pcap;
#[cfg(feature = "tracing")]
pub use wrap::Trace;

/// A non-blocking pair of queues for datagrams.
pub trait Driver {
    /// The queue that lends memory for sending.
    type Tx: TxQueue;

    /// What was really obtained. It may change when the system withdraws something, never silently.
    fn caps(&self) -> Caps;

    /// The address that datagrams are received on.
    fn local_addr(&self) -> SocketAddr;

    /// The driver's clock; it never goes backwards.
    fn now(&self) -> Instant;

    /// Lends up to `budget` received datagrams to `on_datagram`, one by one, and never blocks.
    ///
    /// The buffer belongs to the driver again after each call. If the report says `budget_hit`, there may
    /// be more: call again before waiting.
    ///
    /// # Errors
    /// Only what makes the driver unusable. Errors that remote hosts cause are not among them.
    fn recv(&mut self, budget: usize, on_datagram: impl FnMut(&RxMeta, &mut [u8])) -> io::Result<RxReport>;

    /// The queue to reserve and commit datagrams in; none of them leaves before [`Driver::flush`].
    fn tx(&mut self) -> &mut Self::Tx;

    /// Hands what was committed to the network, in order, and never blocks.
    ///
    /// What the network does not take now stays committed, and a later call tries again.
    ///
    /// # Errors
    /// Only what makes the driver unusable. A datagram that can never leave is dropped and counted.
    fn flush(&mut self) -> io::Result<TxReport>;
}

/// Nests a driver inside somebody else's loop: epoll, mio, tokio's `AsyncFd`.
#[cfg(unix)]
pub trait Pollable: Driver {
    /// What to register. It is valid as long as the driver, and may be watched level- or edge-triggered.
    fn poll_fd(&self) -> BorrowedFd<'_>;

    /// What to wait for now; ask again after each flush.
    fn interest(&self) -> Interest;
}

/// Blocks the thread until traffic, a deadline or an unpark.
pub trait Park: Driver {
    /// Ends a park from another thread.
    type Unparker: Unpark;

    /// Waits until there is something to receive, committed datagrams can move on, `until` has come, or
    /// an unparker was used since the last [`Wake::Unparked`].
    ///
    /// It never reports [`Wake::Deadline`] early, and returns at once after a receive that hit its budget.
    ///
    /// # Errors
    /// Only what makes the driver unusable.
    fn park(&mut self, until: Option<Instant>) -> io::Result<Wake>;

    /// A handle that ends a park, the running or the next one.
    fn unparker(&self) -> Self::Unparker;
}

/// Ends the park of a driver that another thread runs.
pub trait Unpark: Clone + Send + Sync + 'static {
    /// Ends the running park or the next one; several calls count once.
    ///
    /// [`Wake::Unparked`] is reported by the next park, or at the latest by the first one that has no traffic to
    /// report, and never lost.
    ///
    /// # Errors
    /// The system refused to signal the thread.
    fn unpark(&self) -> io::Result<()>;
}

/// What a loop has to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest {
    /// Something to receive.
    pub readable: bool,
    /// Room for committed datagrams that the last flush kept.
    pub writable: bool,
}

/// Why a park ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// There may be something to receive, or committed datagrams may move on.
    Traffic,
    /// The deadline has come.
    Deadline,
    /// An unparker was used.
    Unparked,
}
