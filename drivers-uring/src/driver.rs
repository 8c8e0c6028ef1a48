//! The driver: socket, ring and queues joined.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use wraith_drivers::{Caps, Clock, Driver, Interest, Limit, Mode, Park, Pollable, RxReport, TxReport, Wake};
use wraith_proto::{Instant, RxMeta};

use crate::options::{Options, ZeroCopy};
use crate::outer::Outer;
use crate::probe::probe;
use crate::refusal::BindError;
use crate::ring::{self, Completion, Ring, Send, Sending, Setup};
use crate::rx::Rx;
use crate::socket::Socket;
use crate::tx::{Piece, Tx};
use crate::waker::{UringUnparker, Waker};
use crate::wire::{Control, Name};

/// When to try again after the system ran out of memory for packets, which nothing reports.
const RETRY: Duration = Duration::from_millis(1);
/// Entries without a datagram, because of other hosts' errors for instance, before a receive returns to its caller.
const IDLE_TURNS: usize = 16;

/// A UDP socket behind an `io_uring` as a [`Driver`].
///
/// The thread that first receives, flushes or parks becomes the owner of the ring. The driver can be sent to another
/// thread at any time, but the first call or the drop there waits some 30 ms for the kernel to end the ring that belongs
/// to the thread before.
#[derive(Debug)]
pub struct UringDriver {
    /// Before everything that the kernel may use on its behalf.
    ring: Ring,
    tx: Tx,
    rx: Rx,
    socket: Socket,
    waker: Waker,
    outer: Outer,
    clock: Clock,
    caps: Caps,
    zero_copy: ZeroCopy,
    unparked: bool,
    retry_at: Option<Instant>,
}

impl UringDriver {
    /// Binds a socket to `addr`; port 0 lets the system choose, `[::]` also receives IPv4.
    ///
    /// # Errors
    /// The system refused the socket, its address, or what the driver needs of `io_uring`. Smaller buffers or a
    /// missing offload are no errors: see [`Driver::caps`].
    pub fn bind(addr: SocketAddr, options: &Options) -> Result<Self, BindError> {
        probe()?;
        let socket = Socket::bind(addr, options)?;
        let waker = Waker::new()?;
        let mut caps = socket.caps(options);
        let slots = options.slots.max(1);
        let setup = Setup {
            buffers: options.buffers,
            buffer_bytes: options.buffer_bytes,
            transmit_bytes: slots * options.slot_bytes,
            poll_thread: options.poll_thread,
            busy_poll: options.busy_poll,
            zero_copy: options.zero_copy != ZeroCopy::Never,
        };
        let (mut ring, memory) = Ring::new(&setup, socket.as_fd(), waker.as_fd())?;
        if ring.sending() != Sending::Copy {
            caps.mode = Mode::UringZeroCopy;
        } else if options.zero_copy != ZeroCopy::Never {
            caps.limited_by = Some(Limit::System);
        }
        let buffers = ring.buffers().count();
        Ok(Self {
            tx: Tx::new(memory, slots, options.slot_bytes, caps.tx_segments),
            rx: Rx::new(buffers),
            outer: Outer::new(ring.as_fd(), socket.as_fd())?,
            ring,
            socket,
            waker,
            clock: Clock::new(),
            caps,
            zero_copy: options.zero_copy,
            unparked: false,
            retry_at: None,
        })
    }

    /// Bytes that may wait in the socket, to be received and to be sent.
    ///
    /// What the system granted of [`Options::recv_buffer_bytes`] and [`Options::send_buffer_bytes`]. It
    /// counts a packet's bookkeeping, too; Linux grants double for that, which is halved here.
    pub fn buffer_bytes(&self) -> (usize, usize) {
        self.socket.buffer_bytes()
    }

    /// Takes in what the ring has completed, and returns whether that was anything.
    fn reap(&mut self) -> io::Result<bool> {
        let mut any = false;
        while let Some(completion) = self.ring.next() {
            any = true;
            match completion {
                Completion::Arrived => self.receive_directly(),
                Completion::Received { buffer, len } => self.rx.filled(buffer, len),
                Completion::ReceiveFailed { error } => self.rx.failed(error),
                Completion::Sent { index, result, holds } => self.settle(index.into(), result, holds),
                Completion::Released { slot, copied } => {
                    self.tx.release(slot);
                    if copied && self.zero_copy == ZeroCopy::UntilCopied {
                        self.ring.send_copies();
                        self.note_copies(Limit::Device);
                    }
                }
                Completion::Woken => self.unparked = true,
                Completion::Replaced => {
                    self.tx.release_all();
                    self.outer.watch(self.ring.as_fd())?;
                }
            }
        }
        Ok(any)
    }

    /// Takes in the result of a send.
    fn settle(&mut self, index: usize, result: i32, holds: bool) {
        let limit = match -result {
            libc::EINVAL | libc::EOPNOTSUPP => Limit::Device,
            libc::ENOBUFS | libc::ENOMEM => Limit::Memory,
            _ => return self.tx.settle(index, result, holds),
        };
        if self.ring.sending() == Sending::Copy {
            return self.tx.settle(index, result, holds);
        }
        // Zero-copy may be what was refused: the datagrams stay in the queue and leave without it.
        self.ring.send_plainer();
        self.note_copies(limit);
        self.tx.settle(index, -libc::ECANCELED, holds);
    }

    /// Says in the capabilities that zero-copy has ended, if it has.
    fn note_copies(&mut self, limit: Limit) {
        if self.ring.sending() == Sending::Copy && self.caps.mode == Mode::UringZeroCopy {
            self.caps.mode = Mode::Uring;
            self.caps.limited_by = Some(limit);
        }
    }

    /// Gives the ring the sends that can enter together now; returns how many they are.
    fn push_sends(&mut self) -> usize {
        let family = self.socket.family();
        let room = self.ring.room().min(usize::from(ring::CHAIN));
        let plan = self.tx.plan(room, self.ring.sending() == Sending::Copy);
        let mut pushed = 0;
        while pushed < plan.sends {
            let Some(piece) = self.tx.piece(pushed, plan) else { break };
            let Piece { meta, linked, .. } = piece;
            let to = family.outgoing(meta.to);
            let from = meta.from.map(|ip| family.outgoing_ip(ip));
            let send = Send {
                index: pushed as u16,
                slot: piece.slot(),
                data: piece.data(),
                name: &Name::of(to),
                control: &Control::of(to.ip(), from, meta.ecn, piece.segment()),
                linked,
            };
            if !self.ring.send(&send) {
                break;
            }
            pushed += 1;
        }
        self.tx.note_running(pushed);
        pushed
    }

    /// Draws the driver's conclusions from a flush.
    fn note_flush(&mut self) {
        self.retry_at = self.tx.must_retry().then(|| self.clock.now().saturating_add(RETRY));
        if self.caps.tx_segments > self.tx.max_segments() {
            self.caps.tx_segments = 1;
            self.caps.limited_by = Some(Limit::Device);
        }
    }

    fn receive(
        &mut self,
        budget: usize,
        on_datagram: &mut impl FnMut(&RxMeta, &mut [u8]),
    ) -> io::Result<RxReport> {
        let mut report = RxReport::default();
        let mut idle = 0;
        self.reap()?;
        loop {
            let before = report.datagrams + report.truncated;
            self.rx.lend(self.ring.buffers(), budget, &mut report, on_datagram);
            self.rx.check()?;
            let after = report.datagrams + report.truncated;
            idle += usize::from(before == after);
            // Errors and what is too long must not hold the caller for ever.
            let more = if self.ring.is_polled() {
                self.receive_directly();
                self.rx.has_kept()
            } else {
                self.rx.has_kept() || self.ring.has_work() || !self.ring.is_receiving()
            };
            if after >= budget || idle > IDLE_TURNS || !more {
                report.budget_hit = more;
                return Ok(report);
            }
            if self.ring.is_polled() {
                continue;
            }
            self.ring.start()?;
            self.ring.submit()?;
            // The sign of work put off may stay when all is done.
            if !self.reap()? && self.ring.is_receiving() {
                return Ok(report);
            }
        }
    }

    /// Receives what waits in the socket, if it is not the ring's business.
    fn receive_directly(&mut self) {
        if self.rx.has_kept() {
            return;
        }
        match self.ring.receive() {
            Some(Completion::Received { buffer, len }) => self.rx.filled(buffer, len),
            Some(Completion::ReceiveFailed { error }) => self.rx.failed(error),
            _ => {}
        }
    }

    /// Why a park may end now, if there is a reason.
    fn wake(&mut self) -> Option<Wake> {
        if std::mem::take(&mut self.unparked) && self.waker.take() {
            return Some(Wake::Unparked);
        }
        (self.rx.has_kept() || self.tx.take_moved()).then_some(Wake::Traffic)
    }
}

impl Driver for UringDriver {
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

    fn recv(
        &mut self,
        budget: usize,
        mut on_datagram: impl FnMut(&RxMeta, &mut [u8]),
    ) -> io::Result<RxReport> {
        let report = self.receive(budget, &mut on_datagram)?;
        self.outer.show(self.rx.has_kept())?;
        Ok(report)
    }

    fn tx(&mut self) -> &mut Self::Tx {
        &mut self.tx
    }

    fn flush(&mut self) -> io::Result<TxReport> {
        self.reap()?;
        self.tx.seal();
        let mut syscalls = 0;
        loop {
            if self.push_sends() == 0 {
                break;
            }
            self.ring.start()?;
            syscalls += usize::from(self.ring.submit_chain()?);
            self.reap()?;
            if self.tx.is_running() {
                break;
            }
        }
        if self.tx.is_held() && self.ring.has_work() {
            syscalls += usize::from(self.ring.submit()?);
            self.reap()?;
        }
        self.note_flush();
        // A flush takes in what has arrived, too.
        self.outer.show(self.rx.has_kept())?;
        Ok(self.tx.report(syscalls))
    }
}

impl Park for UringDriver {
    type Unparker = UringUnparker;

    fn park(&mut self, until: Option<Instant>) -> io::Result<Wake> {
        loop {
            self.reap()?;
            self.receive_directly();
            if let Some(wake) = self.wake() {
                return Ok(wake);
            }
            let next = [until, self.retry_at].into_iter().flatten().min();
            let limit = next.map(|next| next.saturating_since(self.clock.now()));
            self.ring.start()?;
            self.ring.wait(limit)?;
            self.reap()?;
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
        self.waker.unparker()
    }
}

/// The descriptor is readable while the socket, the ring or the driver has something, and never watched for room: what
/// the socket could not take at once leaves by itself, and its completion makes the descriptor readable.
///
/// An edge-triggered loop receives until `RxReport::budget_hit` is false. An unparker does not wake the outer loop,
/// which has its own means.
impl Pollable for UringDriver {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.outer.fd(self.rx.has_kept())
    }

    fn interest(&self) -> Interest {
        Interest { readable: true, writable: false }
    }
}
