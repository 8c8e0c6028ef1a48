//! One direction of a path: datagrams go in at one time and come out at another, or not at all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use wraith_proto::{Ecn, Instant, RxMeta, TxMeta};

use crate::rng::Rng;

mod bottleneck;
mod config;
#[cfg(test)]
mod tests;

use bottleneck::Bottleneck;
pub use config::{GilbertElliott, LinkConfig, Loss};

/// One direction of a path between two ends, in virtual time.
///
/// `M` travels beside each datagram: [`RxMeta`] between endpoints, [`TxMeta`] in front of a driver.
/// Equal configurations, seeds and pushes give equal arrivals. Nothing allocates once as many
/// datagrams were in flight as ever will be.
pub struct Link<M = RxMeta> {
    config: LinkConfig,
    // One generator per effect: switching one effect on leaves the others as they were.
    dice: Dice,
    bad_state: bool,
    bottleneck: Bottleneck,
    now: Instant,
    last_arrival: Instant,
    order: u64,
    slots: Vec<Slot<M>>,
    free: Vec<u32>,
    arrivals: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    counters: LinkCounters,
}

/// What became of a pushed datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It will arrive.
    Sent,
    /// It was lost on the way.
    Lost,
    /// The queue was full.
    QueueFull,
    /// It was larger than the MTU.
    TooLarge,
}

/// Datagrams of a link since it was made.
///
/// `offered = delivered + lost + queue_dropped + too_large - duplicated` once nothing is in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    /// Pushed.
    pub offered: u64,
    /// Popped.
    pub delivered: u64,
    /// Bytes popped.
    pub delivered_bytes: u64,
    /// Lost behind the queue.
    pub lost: u64,
    /// Dropped at the tail of the full queue.
    pub queue_dropped: u64,
    /// Larger than the MTU.
    pub too_large: u64,
    /// Second arrivals.
    pub duplicated: u64,
    /// Held back for reordering.
    pub reordered: u64,
    /// Marked as having met congestion.
    pub marked: u64,
}

/// What a link needs of the metadata that it carries.
pub trait LinkMeta: Copy {
    /// The ECN field.
    fn ecn(&self) -> Ecn;
    /// Changes the ECN field.
    fn set_ecn(&mut self, ecn: Ecn);
}

struct Slot<M> {
    meta: Option<M>,
    bytes: Vec<u8>,
}

struct Dice {
    loss: Rng,
    jitter: Rng,
    reorder: Rng,
    duplicate: Rng,
}

/// Bytes taken at once for a slot on a link with a larger MTU.
const SLOT_BYTES: usize = 2048;

impl<M: LinkMeta> Link<M> {
    /// An idle link.
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut link = Self {
            config,
            dice: Dice { loss: rng.fork(), jitter: rng.fork(), reorder: rng.fork(), duplicate: rng.fork() },
            bad_state: false,
            bottleneck: Bottleneck::new(),
            now: Instant::MIN,
            last_arrival: Instant::MIN,
            order: 0,
            slots: Vec::with_capacity(config.slots),
            free: Vec::with_capacity(config.slots),
            arrivals: BinaryHeap::with_capacity(config.slots),
            counters: LinkCounters::default(),
        };
        for _ in 0..config.slots {
            let slot = link.new_slot();
            link.free.push(slot);
        }
        link
    }

    /// Takes a datagram at `now`; times before the latest one count as the latest one.
    pub fn push(&mut self, now: Instant, meta: &M, datagram: &[u8]) -> Fate {
        self.now = self.now.max(now);
        self.counters.offered += 1;
        if datagram.len() > self.config.mtu {
            self.counters.too_large += 1;
            return Fate::TooLarge;
        }
        let mut meta = *meta;
        let Some(departure) = self.serialise(&mut meta, datagram.len()) else {
            self.counters.queue_dropped += 1;
            return Fate::QueueFull;
        };
        if self.loses() {
            self.counters.lost += 1;
            return Fate::Lost;
        }
        let at = self.arrival(departure);
        self.store(at, meta, datagram);
        if self.dice.duplicate.chance(self.config.duplicate) {
            self.counters.duplicated += 1;
            self.store(at, meta, datagram);
        }
        Fate::Sent
    }

    /// Lends the first datagram that has arrived by `now`, until the next call.
    pub fn pop(&mut self, now: Instant) -> Option<(M, &mut [u8])> {
        let &Reverse((at, _, index)) = self.arrivals.peek()?;
        if at > now {
            return None;
        }
        self.arrivals.pop();
        self.free.push(index);
        let slot = &mut self.slots[index as usize];
        self.counters.delivered += 1;
        self.counters.delivered_bytes += slot.bytes.len() as u64;
        Some((slot.meta.take()?, &mut slot.bytes))
    }

    /// Changes what the link does from the next datagram on; those in flight arrive as before.
    pub fn set_config(&mut self, config: LinkConfig) {
        self.config = config;
    }

    /// When the next datagram arrives.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.arrivals.peek().map(|&Reverse((at, _, _))| at)
    }

    /// Metadata and length of what [`pop`](Self::pop) would lend, for a consumer that may lack room.
    pub fn peek(&self, now: Instant) -> Option<(&M, usize)> {
        let &Reverse((at, _, index)) = self.arrivals.peek()?;
        let slot = &self.slots[index as usize];
        if at > now { None } else { Some((slot.meta.as_ref()?, slot.bytes.len())) }
    }

    /// What the link does.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// What became of the datagrams so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Datagrams on the way.
    pub fn in_flight(&self) -> usize {
        self.arrivals.len()
    }

    /// Passes the queue and the transmitter: when the datagram has left, or `None` if there is no room.
    fn serialise(&mut self, meta: &mut M, len: usize) -> Option<Instant> {
        let Some(rate) = self.config.rate else {
            return Some(self.now);
        };
        let waiting = self.bottleneck.backlog(self.now, rate);
        if waiting > 0 && waiting.saturating_add(len) > self.config.queue_bytes {
            return None;
        }
        let congested = self.config.ecn_mark_threshold.is_some_and(|threshold| waiting >= threshold);
        if congested && matches!(meta.ecn(), Ecn::Ect0 | Ecn::Ect1) {
            meta.set_ecn(Ecn::Ce);
            self.counters.marked += 1;
        }
        Some(self.bottleneck.send(self.now, rate, len))
    }

    fn loses(&mut self) -> bool {
        let dice = &mut self.dice.loss;
        match self.config.loss {
            Loss::Random(ppm) => dice.chance(ppm),
            Loss::Burst(model) => {
                let turn = if self.bad_state { model.to_good } else { model.to_bad };
                self.bad_state ^= dice.chance(turn);
                dice.chance(if self.bad_state { model.loss_bad } else { model.loss_good })
            }
        }
    }

    fn arrival(&mut self, departure: Instant) -> Instant {
        let jitter = self.dice.jitter.up_to(self.config.jitter);
        let at = departure.saturating_add(self.config.latency).saturating_add(jitter).max(self.last_arrival);
        if self.dice.reorder.chance(self.config.reorder) {
            self.counters.reordered += 1;
            return at.saturating_add(self.config.reorder_delay);
        }
        self.last_arrival = at;
        at
    }

    fn store(&mut self, at: Instant, meta: M, datagram: &[u8]) {
        let index = self.free.pop().unwrap_or_else(|| self.new_slot());
        let slot = &mut self.slots[index as usize];
        slot.meta = Some(meta);
        slot.bytes.clear();
        slot.bytes.extend_from_slice(datagram);
        self.arrivals.push(Reverse((at, self.order, index)));
        self.order += 1;
    }

    fn new_slot(&mut self) -> u32 {
        let index = self.slots.len() as u32;
        self.slots.push(Slot { meta: None, bytes: Vec::with_capacity(self.config.mtu.min(SLOT_BYTES)) });
        // Room to return every slot, so that `pop` never grows the list.
        self.free.reserve(self.slots.len() - self.free.len());
        index
    }
}

impl<M> fmt::Debug for Link<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("config", &self.config)
            .field("in_flight", &self.arrivals.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl LinkMeta for RxMeta {
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
}

impl LinkMeta for TxMeta {
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
}
