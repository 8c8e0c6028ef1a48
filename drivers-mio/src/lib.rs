//! The portable WRAITH driver: one UDP socket, through `mio` and `quinn-udp`.
//!
//! It runs without privileges on Linux, macOS and Windows, and uses what the system has: segmentation
//! offload for sending (GSO) and receiving (GRO), ECN marks, local addresses, don't-fragment.
//! [`MioDriver::caps`] says what was obtained; a network device that refuses segmentation later is noted
//! there, too, and no datagram is lost by it.

#![forbid(unsafe_code)]

mod options;
mod park;
mod rx;
mod socket;
mod tx;
mod verdict;

use std::fmt;
use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(windows)]
use std::os::windows::io::{AsSocket, BorrowedSocket};
use std::time::Duration;

use wraith_drivers::{Caps, Clock, Driver, Limit, Mode, Park, RxReport, TxReport, Wake};
#[cfg(unix)]
use wraith_drivers::{Interest, Pollable};
use wraith_proto::{Instant, RxMeta};

pub use options::Options;
pub use park::MioUnparker;
pub use tx::Tx;

use park::Parker;
use rx::Rx;
use socket::Socket;
use tx::Hold;

/// When to try again after the system ran out of memory for packets, which no readiness reports.
const RETRY: Duration = Duration::from_millis(1);

/// A UDP socket as a [`Driver`].
pub struct MioDriver {
    socket: Socket,
    tx: Tx,
    rx: Rx,
    parker: Parker,
    clock: Clock,
    caps: Caps,
    retry_at: Option<Instant>,
}

impl MioDriver {
    /// Binds a socket to `addr`; port 0 lets the system choose, `[::]` also receives IPv4.
    ///
    /// # Errors
    /// The system refused the socket or the address. Smaller buffers or a missing offload are no errors:
    /// see [`Driver::caps`].
    pub fn bind(addr: SocketAddr, options: &Options) -> io::Result<Self> {
        let mut socket = Socket::bind(addr, options)?;
        let parker = Parker::new(&mut socket)?;
        let caps = socket.caps(options);
        Ok(Self {
            tx: Tx::new(options.arena_bytes, caps.tx_segments),
            rx: Rx::new(options.slot_bytes),
            socket,
            parker,
            clock: Clock::new(),
            caps,
            retry_at: None,
        })
    }

    /// Goes on with the clock of the driver that it takes the place of. An endpoint moves to another socket without
    /// its time going backwards; call it before anything else.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The clock of [`Driver::now`].
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Bytes that may wait in the socket, to be received and to be sent.
    ///
    /// What the system granted of [`Options::recv_buffer_bytes`] and [`Options::send_buffer_bytes`]. It
    /// counts a packet's bookkeeping, too; Linux grants double for that, which is halved here.
    pub fn buffer_bytes(&self) -> (usize, usize) {
        self.socket.buffer_bytes()
    }

    /// Draws the driver's conclusions from a flush.
    fn note_flush(&mut self) -> io::Result<()> {
        self.retry_at = None;
        match self.tx.hold() {
            Hold::Nothing => {}
            Hold::Writable => self.parker.writable = false,
            Hold::Retry => self.retry_at = Some(self.clock.now().saturating_add(RETRY)),
        }
        if self.tx.take_refused() {
            // The socket's state took the refusal for a missing ECN option as well; a fresh one has it.
            self.socket.probe()?;
            if self.caps.tx_segments > self.tx.max_segments() {
                self.caps.tx_segments = 1;
                self.caps.mode = Mode::Syscall;
                self.caps.limited_by = Some(Limit::Device);
            }
        }
        Ok(())
    }

    /// Why a park may end now, if there is a reason.
    fn wake(&mut self) -> Option<Wake> {
        if self.parker.take_unparked() {
            return Some(Wake::Unparked);
        }
        let can_receive = self.parker.readable || self.rx.has_kept();
        let can_send = self.tx.hold() == Hold::Writable && self.parker.writable;
        (can_receive || can_send).then_some(Wake::Traffic)
    }
}

/// Without buffers: what was received last is decrypted there.
impl fmt::Debug for MioDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MioDriver")
            .field("local_addr", &self.local_addr())
            .field("caps", &self.caps)
            .finish_non_exhaustive()
    }
}

impl Driver for MioDriver {
    type Tx = Tx;

    fn caps(&self) -> Caps {
        self.caps
    }

    fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn recv(&mut self, budget: usize, on_datagram: impl FnMut(&RxMeta, &mut [u8])) -> io::Result<RxReport> {
        let socket = &self.socket;
        let report = self.rx.recv(budget, |slots, metas| socket.recv(slots, metas), on_datagram)?;
        // Edges come only after the socket was found empty; until then there is more.
        self.parker.readable = report.budget_hit;
        Ok(report)
    }

    fn tx(&mut self) -> &mut Self::Tx {
        &mut self.tx
    }

    fn flush(&mut self) -> io::Result<TxReport> {
        let socket = &self.socket;
        let report = self.tx.flush(socket.family(), |transmit| socket.send(transmit));
        self.note_flush()?;
        Ok(report)
    }
}

impl Park for MioDriver {
    type Unparker = MioUnparker;

    fn park(&mut self, until: Option<Instant>) -> io::Result<Wake> {
        loop {
            if let Some(wake) = self.wake() {
                return Ok(wake);
            }
            let next = [until, self.retry_at].into_iter().flatten().min();
            let limit = next.map(|next| next.saturating_since(self.clock.now()));
            self.parker.watch_room(&mut self.socket, self.tx.hold() == Hold::Writable)?;
            self.parker.wait(limit)?;
            if let Some(wake) = self.wake() {
                return Ok(wake);
            }
            let now = self.clock.now();
            if until.is_some_and(|until| now >= until) {
                return Ok(Wake::Deadline);
            }
            if self.retry_at.is_some_and(|retry_at| now >= retry_at) {
                return Ok(Wake::Traffic);
            }
        }
    }

    fn unparker(&self) -> Self::Unparker {
        self.parker.unparker()
    }
}

/// The descriptor is the socket's, not that of the inner epoll: readiness of that one ends only by a park,
/// which an outer loop never calls, and it cannot say whether the socket is readable or writable.
///
/// An edge-triggered loop receives until `RxReport::budget_hit` is false. An unparker does not wake the
/// outer loop, which has its own means.
#[cfg(unix)]
impl Pollable for MioDriver {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn interest(&self) -> Interest {
        Interest { readable: true, writable: self.tx.hold() == Hold::Writable }
    }
}

/// What an outer loop registers on Windows, in place of `Pollable::poll_fd`.
#[cfg(windows)]
impl AsSocket for MioDriver {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        self.socket.as_socket()
    }
}

#[cfg(all(test, unix))]
mod tests;

/// The example of the project's front page, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadMe;

/// The code of the guide to embedding, as tests. It registers descriptors, which Windows has none of.
#[cfg(all(doctest, unix))]
#[doc = include_str!("../../docs/EMBEDDING.md")]
struct Embedding;
