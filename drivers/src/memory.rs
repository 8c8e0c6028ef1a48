//! Two driver ends in one process: the reference for what the traits mean.

mod link;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use wraith_proto::{Instant, RxMeta, TxMeta, TxQueue, Via};

use crate::{Caps, Clock, Driver, ManualClock, Mode, Park, RxReport, TxReport, Unpark, Wake};
use link::{Inbox, Link, Slot};

/// The shape of an in-memory pair.
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// Addresses of the two ends.
    pub addrs: [SocketAddr; 2],
    /// Longest datagram that crosses, in bytes of UDP payload; longer ones are dropped and counted.
    pub mtu: usize,
    /// Longest datagram that can be committed, in bytes; at least `mtu`.
    pub max_datagram: usize,
    /// Longest datagram that each end takes; longer ones cross and are counted as truncated. Default: no limit.
    pub slot_bytes: [usize; 2],
    /// Datagrams that can be committed before a flush, at least 1.
    pub tx_slots: usize,
    /// Datagrams that wait at the receiver, at least 1; a full receiver holds the sender back.
    pub rx_slots: usize,
    /// The clock of both ends; without one they share a monotonic clock.
    pub clock: Option<ManualClock>,
}

impl Default for MemoryOptions {
    /// Port 1 and port 2 on 127.0.0.1, 1,472-byte datagrams, 64 slots each way, the monotonic clock.
    fn default() -> Self {
        let addr = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Self {
            addrs: [addr(1), addr(2)],
            mtu: 1472,
            max_datagram: 1472,
            slot_bytes: [usize::MAX; 2],
            tx_slots: 64,
            rx_slots: 64,
            clock: None,
        }
    }
}

/// One end of an in-memory pair.
///
/// Datagrams arrive in order and none is lost: a receiver that does not receive fills its queue, then the
/// sender's. They move by exchange of buffers; nothing is copied or allocated after construction.
#[derive(Debug)]
pub struct MemoryDriver {
    link: Arc<Link>,
    end: usize,
    caps: Caps,
    mtu: usize,
    slot_bytes: usize,
    time: Time,
    tx: MemoryTx,
    spare: Slot,
}

#[derive(Clone, Debug)]
enum Time {
    Monotonic(Clock),
    Manual(ManualClock),
}

impl MemoryDriver {
    /// Two ends joined by a perfect link.
    pub fn pair(options: &MemoryOptions) -> (Self, Self) {
        let max_datagram = options.max_datagram.max(options.mtu);
        let link = Arc::new(Link::new(options.addrs, options.rx_slots.max(1), max_datagram));
        let time = match &options.clock {
            Some(clock) => {
                let watched = Arc::downgrade(&link);
                clock.watch(watched);
                Time::Manual(clock.clone())
            }
            None => Time::Monotonic(Clock::new()),
        };
        let driver = |end: usize| {
            let tx_slots = options.tx_slots.max(1);
            let slot_bytes = options.slot_bytes[end];
            let mut caps = Caps::new(Mode::Memory, options.mtu.min(slot_bytes), tx_slots);
            caps.ecn = true;
            caps.local_ip = true;
            caps.dont_fragment = true;
            Self {
                link: Arc::clone(&link),
                end,
                caps,
                mtu: options.mtu,
                slot_bytes,
                time: time.clone(),
                tx: MemoryTx::new(tx_slots, max_datagram),
                spare: Slot::new(max_datagram),
            }
        };
        (driver(0), driver(1))
    }

    /// Why a park may end now, if there is a reason.
    fn wake(&self, inboxes: &mut [Inbox; 2], until: Option<Instant>) -> Option<Wake> {
        let own = &mut inboxes[self.end];
        if std::mem::take(&mut own.unparked) {
            return Some(Wake::Unparked);
        }
        let can_receive = !own.is_empty();
        let can_send = self.tx.committed > 0 && !inboxes[1 - self.end].is_full();
        if can_receive || can_send {
            return Some(Wake::Traffic);
        }
        until.is_some_and(|until| self.now() >= until).then_some(Wake::Deadline)
    }

    /// Whether the network can carry a datagram, and how the other end will see it.
    fn route(&self, meta: &TxMeta, len: usize) -> Option<RxMeta> {
        let local = self.link.addrs[self.end];
        let from_here = meta.from.is_none_or(|from| from == local.ip());
        let fits = len <= self.mtu;
        (meta.to == self.link.addrs[1 - self.end] && from_here && fits).then(|| RxMeta {
            from: local,
            to: Some(meta.to.ip()),
            via: Via::default(),
            ecn: meta.ecn,
        })
    }
}

impl Driver for MemoryDriver {
    type Tx = MemoryTx;

    fn caps(&self) -> Caps {
        self.caps
    }

    fn local_addr(&self) -> SocketAddr {
        self.link.addrs[self.end]
    }

    fn now(&self) -> Instant {
        match &self.time {
            Time::Monotonic(clock) => clock.now(),
            Time::Manual(clock) => clock.now(),
        }
    }

    fn recv(
        &mut self,
        budget: usize,
        mut on_datagram: impl FnMut(&RxMeta, &mut [u8]),
    ) -> io::Result<RxReport> {
        let mut report = RxReport::default();
        while report.datagrams < budget {
            // The lock is free while the datagram is lent.
            let Some(meta) = self.link.receive(self.end, &mut self.spare) else { return Ok(report) };
            if self.spare.len > self.slot_bytes {
                report.truncated += 1;
                continue;
            }
            on_datagram(&meta, &mut self.spare.data[..self.spare.len]);
            report.datagrams += 1;
        }
        report.budget_hit = !self.link.lock()[self.end].is_empty();
        Ok(report)
    }

    fn tx(&mut self) -> &mut Self::Tx {
        &mut self.tx
    }

    fn flush(&mut self) -> io::Result<TxReport> {
        let mut report = TxReport::default();
        let link = Arc::clone(&self.link);
        let mut inboxes = link.lock();
        let peer = &mut inboxes[1 - self.end];
        let mut done = 0;
        for index in 0..self.tx.committed {
            let (meta, len) = (self.tx.metas[index], self.tx.slots[index].len);
            let Some(meta) = meta.and_then(|meta| self.route(&meta, len)) else {
                report.dropped += 1;
                done += 1;
                continue;
            };
            if peer.is_full() {
                break;
            }
            peer.push(meta, &mut self.tx.slots[index]);
            report.sent += 1;
            done += 1;
        }
        drop(inboxes);
        if report.sent > 0 {
            self.link.changed();
        }
        self.tx.retire(done);
        report.in_flight = self.tx.committed;
        Ok(report)
    }
}

impl Park for MemoryDriver {
    type Unparker = MemoryUnparker;

    fn park(&mut self, until: Option<Instant>) -> io::Result<Wake> {
        let mut inboxes = self.link.lock();
        loop {
            if let Some(wake) = self.wake(&mut inboxes, until) {
                return Ok(wake);
            }
            let limit = match (&self.time, until) {
                (Time::Monotonic(clock), Some(until)) => Some(until.saturating_since(clock.now())),
                // Time passes only by the clock's owner, who wakes us.
                (Time::Manual(_), _) | (_, None) => None,
            };
            inboxes = self.link.wait(inboxes, limit);
        }
    }

    fn unparker(&self) -> Self::Unparker {
        MemoryUnparker { link: Arc::clone(&self.link), end: self.end }
    }
}

/// The transmit queue of a [`MemoryDriver`]: one buffer a datagram.
#[derive(Debug)]
pub struct MemoryTx {
    slots: Box<[Slot]>,
    metas: Box<[Option<TxMeta>]>,
    committed: usize,
    reserved: Option<(TxMeta, usize)>,
}

impl MemoryTx {
    fn new(slots: usize, bytes: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| Slot::new(bytes)).collect(),
            metas: vec![None; slots].into(),
            committed: 0,
            reserved: None,
        }
    }

    /// Frees the oldest `done` datagrams; the others keep their order.
    fn retire(&mut self, done: usize) {
        self.slots[..self.committed].rotate_left(done);
        self.metas[..self.committed].rotate_left(done);
        self.committed -= done;
        // A reservation made before the flush stood behind the committed slots, not here.
        self.reserved = None;
    }
}

impl TxQueue for MemoryTx {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        self.reserved = None;
        let memory = self.slots.get_mut(self.committed)?.data.get_mut(..len)?;
        self.reserved = Some((*meta, len));
        Some(memory)
    }

    fn commit(&mut self, len: usize) {
        if let Some((meta, reserved)) = self.reserved.take() {
            self.slots[self.committed].len = len.min(reserved);
            self.metas[self.committed] = Some(meta);
            self.committed += 1;
        }
    }
}

/// Ends the park of a [`MemoryDriver`].
#[derive(Clone, Debug)]
pub struct MemoryUnparker {
    link: Arc<Link>,
    end: usize,
}

impl Unpark for MemoryUnparker {
    fn unpark(&self) -> io::Result<()> {
        self.link.lock()[self.end].unparked = true;
        self.link.changed();
        Ok(())
    }
}
