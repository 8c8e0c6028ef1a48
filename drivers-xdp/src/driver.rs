//! The driver: rings, filter, next hops and the system's socket joined.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt};
use wraith_drivers::{Caps, Clock, Driver, Interest, Park, Pollable, RxReport, TxReport, Wake};
use wraith_proto::{Instant, RxMeta, TxMeta};

use crate::companion::{Companion, Found, Sent};
use crate::hops::{Hop, Hops};
use crate::open::{self, Opened, Steering};
use crate::options::Options;
use crate::refusal::BindError;
use crate::ring::{Frame, Receive};
use crate::tx::Tx;
use crate::waker::{Waker, XdpUnparker};
use crate::wire::{self, Checksums, Flow, Mac};

/// When to try again what the kernel did not take, which nothing reports.
const RETRY: Duration = Duration::from_micros(100);
/// The same while the device is down, which may last.
const RETRY_DOWN: Duration = Duration::from_millis(10);
/// Frames without a datagram, and errors of other hosts, before a receive returns to its caller.
const IDLE_TURNS: usize = 64;

/// One queue of a network device as a [`Driver`].
pub struct XdpDriver {
    tx: Tx,
    receive: Receive,
    companion: Companion,
    hops: Hops,
    link: Link,
    waker: Waker,
    clock: Clock,
    caps: Caps,
    zero_copy: bool,
    checksums: Checksums,
    malformed: u64,
    retry_at: Option<Instant>,
    /// The device was down at the last kick. It has no use for more, and they would take the slots of what goes elsewhere.
    down: bool,
    look: Look,
    /// The filter stays as long as one of its drivers does.
    _steering: Steering,
}

/// When the next receive looks into the system's socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    /// Before the frames, which took the whole budget of the last receive.
    First,
    Last,
    /// Not at all: a park has just seen that it has nothing.
    Never,
}

/// What the driver itself is on its link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) mac: Mac,
    pub(crate) index: u32,
    pub(crate) port: u16,
    /// The address that the driver is bound to, if it is one.
    pub(crate) ip: Option<IpAddr>,
}

/// Frames that did not become datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Drops {
    /// Frames whose headers or checksums are wrong.
    pub malformed: u64,
    /// Frames that the kernel had no room for, or that were too long.
    pub no_room: u64,
}

impl XdpDriver {
    /// Opens a queue of a device for the UDP port of `addr`; port 0 lets the system choose, `[::]` also receives IPv4.
    ///
    /// The calling thread's network namespace is the driver's; afterwards the driver may go to any thread.
    ///
    /// What was asked for as the best is tried in this order: native and without copies, native with copies, generic
    /// with copies. [`Driver::caps`] says what was obtained and what held it back.
    ///
    /// # Errors
    /// The system refused the UDP socket or its address, or something that `AF_XDP` needs.
    pub fn bind(addr: SocketAddr, options: &Options) -> Result<Self, BindError> {
        let mut opened = open::open(addr, options, 1)?;
        opened.pop().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput).into()).map(Self::new)
    }

    /// Opens `queues` queues of a device, from [`Options::queue`] on, behind one filter and on one port: one driver each.
    ///
    /// A device gives all packets of one flow to one queue, so that each driver can serve an endpoint of its own shard.
    /// After a peer has changed its address its packets may reach another queue:
    /// [`Endpoint::shard_of`](wraith_proto::Endpoint::shard_of) tells whose they are.
    ///
    /// # Errors
    /// As [`XdpDriver::bind`].
    pub fn bind_queues(addr: SocketAddr, options: &Options, queues: u32) -> Result<Vec<Self>, BindError> {
        Ok(open::open(addr, options, queues)?.into_iter().map(Self::new).collect())
    }

    fn new(opened: Opened) -> Self {
        Self {
            tx: opened.tx,
            receive: opened.receive,
            companion: opened.companion,
            hops: opened.hops,
            link: opened.link,
            waker: opened.waker,
            clock: Clock::new(),
            caps: opened.caps,
            zero_copy: opened.zero_copy,
            checksums: opened.checksums,
            malformed: 0,
            retry_at: None,
            down: false,
            look: Look::Last,
            _steering: opened.steering,
        }
    }

    /// Frames that did not become datagrams, so far.
    pub fn drops(&self) -> Drops {
        Drops { malformed: self.malformed, no_room: self.tx.transmit().dropped() }
    }

    /// Lends what the ring has, up to the budget.
    fn receive_frames(
        &mut self,
        budget: usize,
        report: &mut RxReport,
        on_datagram: &mut impl FnMut(&RxMeta, &mut [u8]),
    ) {
        let Self { receive, hops, link, checksums, malformed, .. } = self;
        let now = self.clock.now();
        let mut idle = 0;
        while report.datagrams < budget && idle < IDLE_TURNS {
            let lent = receive.next(|frame| {
                let Ok((flow, payload)) = wire::read(frame, *checksums) else { return false };
                let via = hops.learn(now, flow.from.ip(), flow.source);
                let from = with_scope(flow.from, link.index);
                let meta = RxMeta { from, to: Some(flow.to.ip()), via, ecn: flow.ecn };
                on_datagram(&meta, &mut frame[payload]);
                true
            });
            match lent {
                None => break,
                Some(Frame::Whole(true)) => report.datagrams += 1,
                Some(Frame::Whole(false)) => {
                    *malformed += 1;
                    idle += 1;
                }
                Some(Frame::TooLong) => {
                    report.truncated += 1;
                    idle += 1;
                }
            }
        }
        receive.refill();
    }

    /// Lends what the system's socket has, up to the budget, and returns whether it is empty.
    fn receive_companion(
        &mut self,
        budget: usize,
        report: &mut RxReport,
        on_datagram: &mut impl FnMut(&RxMeta, &mut [u8]),
    ) -> io::Result<bool> {
        let mut idle = 0;
        while report.datagrams < budget && idle < IDLE_TURNS {
            match self.companion.recv(&mut *on_datagram)? {
                Found::Nothing => return Ok(true),
                Found::Lent => report.datagrams += 1,
                Found::Truncated => {
                    report.truncated += 1;
                    idle += 1;
                }
                Found::Error => idle += 1,
            }
        }
        Ok(false)
    }

    /// Moves what is committed to where it leaves from.
    fn send_committed(&mut self, report: &mut TxReport) -> io::Result<()> {
        let now = self.clock.now();
        // Datagrams of one session follow each other.
        let mut last: Option<(TxMeta, Hop)> = None;
        let mut pushed = false;
        while let Some(meta) = self.tx.front() {
            if !self.tx.front_fits() {
                report.note_too_long(meta.to, self.tx.front_bytes().len());
                self.tx.take_front();
                report.dropped += 1;
                continue;
            }
            let hop = match last {
                Some((known, hop)) if known == meta => hop,
                _ if self.link.is_elsewhere(meta.to) => Hop::Kernel,
                _ => self.hops.hop(now, meta.to.ip(), meta.from.or(self.link.ip), meta.via),
            };
            last = Some((meta, hop));
            match hop {
                Hop::Device { mac, source } if !self.down => {
                    self.tx.push_front(&self.link.flow(mac, source, &meta));
                    pushed = true;
                }
                Hop::Device { .. } | Hop::Kernel => {
                    // What is committed first leaves first.
                    if std::mem::take(&mut pushed) {
                        self.kick(report)?;
                    }
                    report.syscalls += 1;
                    match self.companion.send(&meta, self.tx.front_bytes()) {
                        Sent::Taken => report.sent += 1,
                        Sent::Refused => report.dropped += 1,
                        Sent::TooLong => {
                            report.note_too_long(meta.to, self.tx.front_bytes().len());
                            report.dropped += 1;
                        }
                        Sent::Full => break,
                    }
                    self.tx.take_front();
                }
            }
        }
        Ok(())
    }

    fn kick(&mut self, report: &mut TxReport) -> io::Result<()> {
        let kicked = self.tx.kick(self.zero_copy)?;
        self.down = kicked.down;
        report.sent += kicked.taken;
        report.syscalls += kicked.syscalls;
        Ok(())
    }

    fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.tx.transmit().as_fd(), self.companion.as_fd()]
    }
}

impl Link {
    /// Whether an address is one of another device's link.
    fn is_elsewhere(&self, addr: SocketAddr) -> bool {
        matches!(addr, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local()
            && ![0, self.index].contains(&v6.scope_id()))
    }

    fn flow(&self, destination: Mac, source: IpAddr, meta: &TxMeta) -> Flow {
        let from = SocketAddr::new(source, self.port);
        Flow { source: self.mac, destination, from, to: meta.to, ecn: meta.ecn }
    }
}

impl Driver for XdpDriver {
    type Tx = Tx;

    fn caps(&self) -> Caps {
        self.caps
    }

    fn local_addr(&self) -> SocketAddr {
        self.companion.local_addr()
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn recv(
        &mut self,
        budget: usize,
        mut on_datagram: impl FnMut(&RxMeta, &mut [u8]),
    ) -> io::Result<RxReport> {
        let mut report = RxReport::default();
        // Who watches the descriptor is told by this call that nothing is left: then it has to be known.
        let watched = self.waker.is_watched()?;
        let look = match std::mem::replace(&mut self.look, Look::Last) {
            Look::Never if watched => Look::Last,
            look => look,
        };
        let mut empty = true;
        if look == Look::First {
            empty = self.receive_companion(budget, &mut report, &mut on_datagram)?;
        }
        self.receive_frames(budget, &mut report, &mut on_datagram);
        if look == Look::Last {
            empty = self.receive_companion(budget, &mut report, &mut on_datagram)?;
            if !empty {
                self.look = Look::First;
            }
        }
        report.budget_hit = !empty || self.receive.has_more();
        Ok(report)
    }

    fn tx(&mut self) -> &mut Self::Tx {
        &mut self.tx
    }

    fn flush(&mut self) -> io::Result<TxReport> {
        let mut report = TxReport::default();
        self.send_committed(&mut report)?;
        self.kick(&mut report)?;
        report.in_flight = self.tx.in_flight();
        let retry = if self.down { RETRY_DOWN } else { RETRY };
        self.retry_at = (report.in_flight > 0).then(|| self.clock.now().saturating_add(retry));
        Ok(report)
    }
}

impl Park for XdpDriver {
    type Unparker = XdpUnparker;

    fn park(&mut self, until: Option<Instant>) -> io::Result<Wake> {
        loop {
            let next = [until, self.retry_at].into_iter().flatten().min();
            let limit = next.map(|next| next.saturating_since(self.clock.now()));
            if let Some(ready) = self.waker.wait(self.descriptors(), limit)? {
                self.look = match self.look {
                    _ if !ready.second => Look::Never,
                    Look::Never => Look::Last,
                    look => look,
                };
                if ready.first || ready.second {
                    return Ok(Wake::Traffic);
                }
            }
            if self.waker.take() {
                return Ok(Wake::Unparked);
            }
            let now = self.clock.now();
            if until.is_some_and(|until| now >= until) {
                // Only this tells of a device that is gone to whoever does not send.
                match getsockopt(self.tx.transmit(), sockopt::SocketError)? {
                    0 => {}
                    code => return Err(io::Error::from_raw_os_error(code)),
                }
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

/// The descriptor is readable while the `AF_XDP` socket or the system's socket has something. It is never watched for
/// room: what the kernel did not take is offered again by the next flush.
///
/// An edge-triggered loop receives until `RxReport::budget_hit` is false. An unparker does not wake the outer loop, which
/// has its own means.
impl Pollable for XdpDriver {
    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.waker.watch(self.descriptors())
    }

    fn interest(&self) -> Interest {
        Interest { readable: true, writable: false }
    }
}

/// Without buffers: what was received last is decrypted there.
impl fmt::Debug for XdpDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XdpDriver")
            .field("local_addr", &self.local_addr())
            .field("link", &self.link)
            .field("caps", &self.caps)
            .finish_non_exhaustive()
    }
}

/// A link-local address is one only together with its device.
fn with_scope(addr: SocketAddr, interface: u32) -> SocketAddr {
    match addr {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => {
            SocketAddrV6::new(*v6.ip(), v6.port(), 0, interface).into()
        }
        _ => addr,
    }
}

#[cfg(test)]
mod tests;
