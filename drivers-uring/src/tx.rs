//! Sending: a slot of memory for each flush, batches by the segmentation rule, and the sends that enter together.

use std::collections::VecDeque;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use wraith_drivers::{Segments, TxReport};
use wraith_proto::{TxMeta, TxQueue};

use crate::ring::{self, SlotMemory};
use crate::socket::MAX_V4;
use crate::verdict::Verdict;

/// Earlier datagrams' errors that one datagram may meet before it is given up.
const EARLIER_ERRORS: usize = 8;

/// The transmit queue of a [`UringDriver`](crate::UringDriver): datagrams lie end to end in one slot, and in the next one
/// when that has no room left.
#[derive(Debug)]
pub struct Tx {
    memory: SlotMemory,
    slot_bytes: usize,
    slots: Box<[Slot]>,
    /// The slot that datagrams are committed to.
    filling: Option<usize>,
    /// Slots without room that were filled before it, in order, and have datagrams that no flush has seen.
    full: Vec<usize>,
    /// Bytes that no flush has seen.
    unsealed: usize,
    reserved: Option<(TxMeta, usize)>,
    /// Batches of earlier flushes that were not sent, in order; while sends run, also those that just were.
    queue: VecDeque<Batch>,
    /// Sends that the ring has, of batches at the front of the queue.
    running: usize,
    max_segments: usize,
    retry: bool,
    /// Something has moved since the last flush, and nobody was told.
    moved: bool,
    /// What has come of datagrams since the last report.
    settled: TxReport,
}

#[derive(Debug)]
struct Slot {
    /// End of what flushes have seen.
    sealed: usize,
    /// End of what is committed.
    end: usize,
    /// What is committed and no flush has seen.
    segments: Segments,
    /// Batches in the queue that lie here, and sends that the network still reads for.
    users: usize,
    /// Of these, sends that the network still reads for, and their datagrams: they count as sent when it reads for none.
    holds: usize,
    held: usize,
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    slot: usize,
    /// Within the transmit memory.
    start: usize,
    meta: TxMeta,
    bytes: usize,
    segment: usize,
    /// Datagrams leave one by one.
    split: bool,
    /// It was split because the send was refused, and segmentation may be why.
    suspect: bool,
    /// Earlier datagrams' errors met by the first datagram.
    errors: usize,
    /// All of it was sent or dropped.
    done: bool,
}

/// Which sends enter together: so many batches at the front of the queue.
///
/// Sends to one destination must not overtake each other when the socket is full: they are linked if they follow each
/// other, and all are if a destination comes up again later. Links cost some 4 % of a small send. Zero-copy sends have
/// none: cancelled behind a link, they do not tell what they hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) sends: usize,
    one_chain: bool,
}

/// One send: datagrams of `segment` bytes in the transmit memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) meta: TxMeta,
    /// The next send waits for this one, and is not tried if it fails.
    pub(crate) linked: bool,
    slot: usize,
    start: usize,
    bytes: usize,
    segment: usize,
}

impl Tx {
    /// Slots of `slot_bytes` bytes each, as many as `memory` holds.
    pub(crate) fn new(memory: SlotMemory, slots: usize, slot_bytes: usize, max_segments: usize) -> Self {
        let slot = || Slot {
            sealed: 0,
            end: 0,
            segments: Segments::new(max_segments, MAX_V4),
            users: 0,
            holds: 0,
            held: 0,
        };
        Self {
            memory,
            slot_bytes,
            slots: (0..slots).map(|_| slot()).collect(),
            filling: None,
            full: Vec::with_capacity(slots),
            unsealed: 0,
            reserved: None,
            queue: VecDeque::with_capacity((slots + 1) * Segments::BATCHES),
            running: 0,
            max_segments,
            retry: false,
            moved: false,
            settled: TxReport::default(),
        }
    }

    /// Begins a flush: what is committed joins the queue.
    pub(crate) fn seal(&mut self) {
        // Its place may be given to another.
        self.reserved = None;
        self.retry = false;
        self.unsealed = 0;
        for at in 0..self.full.len() {
            self.seal_slot(self.full[at]);
        }
        self.full.clear();
        if let Some(index) = self.filling {
            self.seal_slot(index);
        }
    }

    fn seal_slot(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let mut start = index * self.slot_bytes + slot.sealed;
        slot.sealed = slot.end;
        while let Some((meta, bytes, segment)) = slot.segments.take() {
            let split = self.max_segments == 1;
            slot.users += 1;
            self.queue.push_back(Batch {
                slot: index,
                start,
                meta,
                bytes,
                segment,
                split,
                suspect: false,
                errors: 0,
                done: false,
            });
            start += bytes;
        }
    }

    /// Plans which batches at the front of the queue enter together, at most `room`: none while sends run or memory is
    /// short. Sends to one destination wait for each other by links, or if those are not `allowed`, for the next plan.
    pub(crate) fn plan(&self, room: usize, allowed: bool) -> Plan {
        if self.running > 0 || self.retry {
            return Plan::default();
        }
        // What is taken apart goes on in the next turn, and what is behind it waits.
        let apart = self.queue.iter().take(room).position(|batch| batch.piece() < batch.bytes);
        let sends = apart.map_or(self.queue.len().min(room), |apart| apart + 1);
        match self.first_repeated(sends, allowed) {
            Some(repeated) if !allowed => Plan { sends: repeated, one_chain: false },
            repeated => Plan { sends, one_chain: repeated.is_some() },
        }
    }

    /// The send of the batch at `index` of a plan.
    pub(crate) fn piece(&self, index: usize, plan: Plan) -> Option<Piece> {
        let batch = self.queue.get(index)?;
        let next = self.queue.get(index + 1).filter(|_| index + 1 < plan.sends);
        Some(Piece {
            meta: batch.meta,
            linked: next.is_some_and(|next| plan.one_chain || next.meta.to == batch.meta.to),
            slot: batch.slot,
            start: batch.start,
            bytes: batch.piece(),
            segment: batch.segment,
        })
    }

    /// The first batch that goes where an earlier one goes; one next to it does not count if `neighbours` may.
    fn first_repeated(&self, sends: usize, neighbours: bool) -> Option<usize> {
        if sends < 2 {
            return None;
        }
        // Open addressing; a quarter of the places is taken at most.
        let mut places = [usize::MAX; 4 * ring::CHAIN as usize];
        let mut last = None;
        for (index, batch) in self.queue.iter().take(sends).enumerate() {
            let to = batch.meta.to;
            if last.replace(to) == Some(to) && neighbours {
                continue;
            }
            let mut place = hash(to) % places.len();
            while let Some(earlier) = self.queue.get(places[place]) {
                if earlier.meta.to == to {
                    return Some(index);
                }
                place = (place + 1) % places.len();
            }
            places[place] = index;
        }
        None
    }

    /// Notes that the ring has the first `sends` of the planned sends.
    pub(crate) fn note_running(&mut self, sends: usize) {
        self.running += sends;
    }

    /// Draws the conclusion from the result of the send at `index`. If it `holds` its slot, that is not free before
    /// [`Tx::release`].
    pub(crate) fn settle(&mut self, index: usize, result: i32, holds: bool) {
        self.running = self.running.saturating_sub(1);
        self.moved = true;
        self.conclude(index, result, holds);
        if self.running == 0 {
            while self.queue.pop_front_if(|batch| batch.done).is_some() {}
            // Behind one that stays there may be some that do not.
            if !self.queue.is_empty() {
                self.queue.retain(|batch| !batch.done);
            }
        }
    }

    fn conclude(&mut self, index: usize, result: i32, holds: bool) {
        let Some(batch) = self.queue.get_mut(index) else { return };
        let slot = &mut self.slots[batch.slot];
        if holds {
            slot.users += 1;
            slot.holds += 1;
        }
        let verdict = if result >= 0 { None } else { Some(Verdict::of_send(-result)) };
        let piece = batch.piece();
        match verdict {
            None => {
                let suspect = batch.suspect;
                *(if holds { &mut slot.held } else { &mut self.settled.sent }) += batch.count(piece);
                if suspect {
                    // The same datagram went alone, so it was the segmentation that was refused.
                    self.refuse_segments();
                }
                self.advance(index, piece);
            }
            // It stands in the queue and is sent again.
            Some(Verdict::Cancelled) => {}
            Some(Verdict::NoBuffers) => self.retry = true,
            Some(Verdict::Earlier) if batch.errors < EARLIER_ERRORS => batch.errors += 1,
            Some(verdict @ (Verdict::TooLong | Verdict::Unsupported)) if piece > batch.segment => {
                batch.split = true;
                batch.suspect = verdict == Verdict::Unsupported;
            }
            Some(verdict) => {
                if verdict == Verdict::TooLong {
                    self.settled.note_too_long(batch.meta.to, piece);
                }
                self.settled.dropped += batch.count(piece);
                batch.suspect = false;
                self.advance(index, piece);
            }
        }
    }

    /// Notes that the network reads no more for a send that held this slot.
    pub(crate) fn release(&mut self, slot: u16) {
        self.moved = true;
        let Some(held) = self.slots.get_mut(usize::from(slot)) else { return };
        held.holds = held.holds.saturating_sub(1);
        if held.holds == 0 {
            self.settled.sent += mem::take(&mut held.held);
        }
        self.leave(slot.into());
    }

    /// Notes that the network reads no more for any send that has ended.
    pub(crate) fn release_all(&mut self) {
        for index in 0..self.slots.len() {
            while self.slots[index].holds > 0 {
                self.release(index as u16);
            }
        }
    }

    /// Whether the network still reads for a send that has ended.
    pub(crate) fn is_held(&self) -> bool {
        self.slots.iter().any(|slot| slot.holds > 0)
    }

    /// Ends a flush, and says what has been settled since the last one.
    pub(crate) fn report(&mut self, syscalls: usize) -> TxReport {
        self.moved = false;
        TxReport {
            in_flight: self
                .queue
                .iter()
                .map(Batch::waiting)
                .chain(self.slots.iter().map(|slot| slot.held))
                .sum(),
            syscalls,
            ..mem::take(&mut self.settled)
        }
    }

    /// Whether sends of a chain run.
    pub(crate) fn is_running(&self) -> bool {
        self.running > 0
    }

    /// Whether a flush had to leave datagrams that nothing reports to move on.
    pub(crate) fn must_retry(&self) -> bool {
        self.retry
    }

    /// Whether a flush has something new to settle or to send: says so once.
    pub(crate) fn take_moved(&mut self) -> bool {
        mem::take(&mut self.moved)
    }

    /// Datagrams that one send may carry; 1 after a refusal.
    pub(crate) fn max_segments(&self) -> usize {
        self.max_segments
    }

    /// Passes over the first `piece` bytes of a batch.
    fn advance(&mut self, index: usize, piece: usize) {
        let Some(batch) = self.queue.get_mut(index) else { return };
        batch.start += piece;
        batch.bytes -= piece;
        batch.errors = 0;
        batch.suspect &= self.max_segments > 1;
        batch.done = batch.bytes == 0;
        if batch.done {
            let slot = batch.slot;
            self.leave(slot);
        }
    }

    /// The slot that has room for a datagram, if any has.
    fn slot_for(&self, meta: &TxMeta, len: usize) -> Option<usize> {
        // The next flush adds so many batches at most.
        let batches = (self.full.len() + 1) * Segments::BATCHES;
        if len > self.slot_bytes - self.unsealed || self.queue.len() + batches > self.queue.capacity() {
            return None;
        }
        match self.filling.map(|index| (index, &self.slots[index])) {
            Some((_, slot)) if !slot.segments.has_room(meta, len) => None,
            Some((index, slot)) if len <= self.slot_bytes - slot.end => Some(index),
            _ => self.slots.iter().position(Slot::is_free),
        }
    }

    /// Notes that a slot has one user less.
    fn leave(&mut self, slot: usize) {
        let Some(slot) = self.slots.get_mut(slot) else { return };
        slot.users = slot.users.saturating_sub(1);
        if slot.is_free() {
            slot.sealed = 0;
            slot.end = 0;
        }
    }

    fn refuse_segments(&mut self) {
        self.max_segments = 1;
        for slot in &mut self.slots {
            slot.segments.set_max_segments(1);
        }
    }
}

impl TxQueue for Tx {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        self.reserved = None;
        let index = self.slot_for(meta, len)?;
        if let Some(last) =
            self.filling.filter(|last| *last != index && !self.slots[*last].segments.is_empty())
        {
            self.full.push(last);
        }
        let start = index * self.slot_bytes + self.slots[index].end;
        let room = self.memory.bytes(start..start + len)?;
        self.filling = Some(index);
        self.reserved = Some((*meta, len));
        Some(room)
    }

    fn commit(&mut self, len: usize) {
        let (Some((meta, reserved)), Some(index)) = (self.reserved.take(), self.filling) else { return };
        let len = len.min(reserved);
        let slot = &mut self.slots[index];
        if slot.segments.push(&meta, len) {
            slot.end += len;
            self.unsealed += len;
        } else {
            // Only an empty datagram in a full queue comes here.
            self.settled.dropped += 1;
        }
    }
}

impl Slot {
    /// Whether nothing lies here.
    fn is_free(&self) -> bool {
        self.users == 0 && self.segments.is_empty()
    }
}

impl Batch {
    /// Bytes of the next send.
    fn piece(&self) -> usize {
        if self.split { self.segment.min(self.bytes) } else { self.bytes }
    }

    /// Datagrams in the first `bytes` bytes.
    fn count(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.segment.max(1)).max(1)
    }

    /// Datagrams that were neither sent nor dropped.
    fn waiting(&self) -> usize {
        if self.done { 0 } else { self.count(self.bytes) }
    }
}

impl Piece {
    /// Where it lies in the transmit memory.
    pub(crate) fn data(&self) -> Range<usize> {
        self.start..self.start + self.bytes
    }

    pub(crate) fn slot(&self) -> u16 {
        self.slot as u16
    }

    /// Bytes of its datagrams, if it has several.
    pub(crate) fn segment(&self) -> Option<u16> {
        (self.bytes > self.segment).then_some(self.segment as u16)
    }
}

/// Fibonacci hashing (Knuth, The Art of Computer Programming 3, §6.4).
fn hash(to: SocketAddr) -> usize {
    let ip = match to.ip() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits() as u64 ^ (ip.to_bits() >> 64) as u64,
    };
    ((ip ^ u64::from(to.port()) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize
}

#[cfg(test)]
mod tests;
