//! Two driver ends in one process: the reference for what the traits mean.

mod link;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use wraith_proto::{Instant, RxMeta};

use crate::{Caps, Clock, Driver, ManualClock, Mode, Park, RxReport, Slots, TxReport, Unpark, Wake};
use link::{Buffer, Inbox, Link};

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
    tx: Slots,
    spare: Buffer,
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
                tx: Slots::new(tx_slots, max_datagram),
                spare: Buffer::new(max_datagram),
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
        let can_send = self.tx.committed().len() > 0 && !inboxes[1 - self.end].is_full();
        if can_receive || can_send {
            return Some(Wake::Traffic);
        }
        until.is_some_and(|until| self.now() >= until).then_some(Wake::Deadline)
    }
}

impl Driver for MemoryDriver {
    type Tx = Slots;

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
        let Self { link, end, mtu, tx, .. } = self;
        let mut inboxes = link.lock();
        let peer = &mut inboxes[1 - *end];
        let mut done = 0;
        for slot in tx.committed_mut() {
            let route = link.route(*end, &slot.meta);
            let Some(meta) = route.filter(|_| slot.len <= *mtu) else {
                if route.is_some() {
                    report.note_too_long(slot.meta.to, slot.len);
                }
                report.dropped += 1;
                done += 1;
                continue;
            };
            if peer.is_full() {
                break;
            }
            peer.push(meta, &mut slot.data, slot.len);
            report.sent += 1;
            done += 1;
        }
        drop(inboxes);
        if report.sent > 0 {
            link.changed();
        }
        tx.retire(done);
        report.in_flight = tx.committed().len();
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
