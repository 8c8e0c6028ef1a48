//! Records of sent packets, in one slab that all sessions share.

use heapless::Vec;

use super::congestion::Delivery;
use crate::stream::Bits;
use crate::time::Instant;
use crate::util::{Links, List, Slab};

/// Most frames of one packet that are remembered (`PROTO §8.2`).
const MAX_FRAMES: usize = 3;

/// Records that each session owns, whatever the others do.
pub(crate) const OWN_RECORDS: u32 = 8;

/// A number that needs no more than the alignment of its neighbours, which saves a seventh of each record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, packed(4))]
pub(crate) struct Narrow64(u64);

impl Narrow64 {
    pub(crate) const fn new(value: u64) -> Self {
        Self(value)
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }
}

/// A frame that has to be sent again if its packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SentFrame {
    /// Stream data.
    Data { slot: u32, generation: u32, offset: Narrow64, len: u16, fin: bool },
    /// Frames about a stream: they are made anew from its state.
    Stream { slot: u32, generation: u32, bits: Bits, report: Narrow64 },
    /// Frames about the session, as bits of `session::Control`.
    Session { bits: u32 },
}

/// The frames of one packet that are remembered.
pub(crate) type SentFrames = Vec<SentFrame, MAX_FRAMES, u8>;

/// A packet that is in flight, or lost and not yet sent again.
#[derive(Debug)]
pub(crate) struct SentPacket {
    pub(crate) number: Narrow64,
    /// Nanoseconds of an [`Instant`].
    pub(crate) sent_at: Narrow64,
    /// Bytes of the datagram.
    pub(crate) size: u16,
    /// It was marked ECT(0).
    pub(crate) ect: bool,
    /// The application had nothing more to send.
    pub(crate) app_limited: bool,
    /// An ACK in it reported numbers below this one; 0 if it had none.
    pub(crate) reported: Narrow64,
    /// Set by `Recovery::on_sent`.
    pub(crate) delivery: Delivery,
    pub(crate) frames: SentFrames,
}

// 8 of them are part of what an idle session costs.
const _: () = assert!(size_of::<SentPacket>() <= 104);

impl SentPacket {
    pub(crate) const fn number(&self) -> u64 {
        self.number.value()
    }

    pub(crate) const fn sent_at(&self) -> Instant {
        Instant::from_nanos(self.sent_at.value())
    }
}

/// The records of one session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentLists {
    /// In flight, oldest first.
    pub(crate) in_flight: List,
    /// Lost, with stream data that was not sent again yet.
    pub(crate) lost: List,
}

impl SentLists {
    fn len(&self) -> u32 {
        self.in_flight.len() + self.lost.len()
    }
}

/// All records.
#[derive(Debug)]
pub(crate) struct SentPool {
    slab: Slab<SentPacket>,
    links: Links,
    /// Records beyond those that sessions own, and how many of them are taken.
    shared: u32,
    taken: u32,
    /// Sessions that hold a record.
    active: u32,
}

impl SentPool {
    /// A pool of `shared` records and [`OWN_RECORDS`] for each of `sessions`.
    pub(crate) fn new(shared: u32, sessions: u32) -> Self {
        let capacity = Self::capacity(shared, sessions);
        Self { slab: Slab::new(capacity), links: Links::new(capacity), shared, taken: 0, active: 0 }
    }

    pub(crate) const fn memory(shared: u32, sessions: u32) -> usize {
        let capacity = Self::capacity(shared, sessions) as usize;
        Slab::<SentPacket>::memory(capacity) + Links::memory(capacity)
    }

    const fn capacity(shared: u32, sessions: u32) -> u32 {
        shared.saturating_add(OWN_RECORDS.saturating_mul(sessions))
    }

    /// Whether the session may send another packet that asks for an acknowledgement: it has records of its own
    /// left, or its fair share of the common ones.
    pub(crate) fn may_send(&self, lists: &SentLists) -> bool {
        let used = lists.len();
        if used < OWN_RECORDS {
            return true;
        }
        let sharers = self.active.max(1);
        self.taken < self.shared && used - OWN_RECORDS < self.shared.div_ceil(sharers)
    }

    /// Adds a packet in flight; `may_send` was asked before.
    pub(crate) fn push(&mut self, lists: &mut SentLists, packet: SentPacket) {
        let used = lists.len();
        if let Ok(index) = self.slab.insert(packet) {
            self.links.push_back(&mut lists.in_flight, index);
            self.taken += u32::from(used >= OWN_RECORDS);
            self.active += u32::from(used == 0);
        }
    }

    /// Removes a packet in flight.
    pub(crate) fn remove_in_flight(&mut self, lists: &mut SentLists, index: u32) -> Option<SentPacket> {
        self.links.remove(&mut lists.in_flight, index);
        self.forget(lists, index)
    }

    /// Removes a lost packet.
    pub(crate) fn remove_lost(&mut self, lists: &mut SentLists, index: u32) -> Option<SentPacket> {
        self.links.remove(&mut lists.lost, index);
        self.forget(lists, index)
    }

    /// Moves a packet in flight behind the lost ones.
    pub(crate) fn lose(&mut self, lists: &mut SentLists, index: u32) {
        self.links.remove(&mut lists.in_flight, index);
        self.links.push_back(&mut lists.lost, index);
    }

    pub(crate) fn clear(&mut self, lists: &mut SentLists) {
        while let Some(index) = lists.in_flight.front() {
            self.remove_in_flight(lists, index);
        }
        while let Some(index) = lists.lost.front() {
            self.remove_lost(lists, index);
        }
    }

    pub(crate) fn get(&self, index: u32) -> &SentPacket {
        &self.slab[index]
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> &mut SentPacket {
        &mut self.slab[index]
    }

    /// The record behind `index` in its list.
    pub(crate) fn next(&self, index: u32) -> Option<u32> {
        self.links.next(index)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> u32 {
        self.slab.len()
    }

    fn forget(&mut self, lists: &SentLists, index: u32) -> Option<SentPacket> {
        let packet = self.slab.remove(index)?;
        let used = lists.len();
        self.taken -= u32::from(used >= OWN_RECORDS);
        self.active -= u32::from(used == 0);
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u64) -> SentPacket {
        SentPacket {
            number: Narrow64::new(number),
            sent_at: Narrow64::new(1),
            size: 1200,
            ect: false,
            app_limited: false,
            reported: Narrow64::new(0),
            delivery: Delivery::default(),
            frames: Vec::new(),
        }
    }

    /// `PROTO §8.2`: a bulk session cannot take the records that others own.
    #[test]
    fn every_session_keeps_its_own_records() {
        let mut pool = SentPool::new(4, 2);
        let (mut bulk, mut quiet) = (SentLists::default(), SentLists::default());
        let mut sent = 0;
        while pool.may_send(&bulk) {
            pool.push(&mut bulk, packet(sent));
            sent += 1;
        }
        assert_eq!(sent, 12);
        for number in 0..8 {
            assert!(pool.may_send(&quiet));
            pool.push(&mut quiet, packet(number));
        }
        assert!(!pool.may_send(&quiet), "the shared ones are taken");
        let first = bulk.in_flight.front().unwrap();
        assert_eq!(pool.remove_in_flight(&mut bulk, first).unwrap().number(), 0);
        assert!(pool.may_send(&quiet), "one shared record is free again");
    }

    #[test]
    fn shared_records_are_split_between_those_who_send() {
        let mut pool = SentPool::new(10, 2);
        let (mut a, mut b) = (SentLists::default(), SentLists::default());
        pool.push(&mut a, packet(0));
        pool.push(&mut b, packet(0));
        let mut sent = 1;
        while pool.may_send(&a) {
            pool.push(&mut a, packet(sent));
            sent += 1;
        }
        assert_eq!(sent, 8 + 5);
    }

    #[test]
    fn clearing_gives_every_record_back() {
        let mut pool = SentPool::new(4, 1);
        let mut lists = SentLists::default();
        for number in 0..12 {
            pool.push(&mut lists, packet(number));
        }
        assert!(!pool.may_send(&lists));
        let front = lists.in_flight.front().unwrap();
        pool.lose(&mut lists, front);
        pool.clear(&mut lists);
        assert_eq!((pool.taken, pool.active, pool.slab.len()), (0, 0, 0));
    }
}
