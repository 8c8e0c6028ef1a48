//! Sending: a slot of memory for each flush, batches by the segmentation rule, and chains of sends in order.

use std::collections::VecDeque;
use std::mem;
use std::ops::Range;

use wraith_drivers::{Segments, TxReport};
use wraith_proto::{TxMeta, TxQueue};

use crate::ring::SlotMemory;
use crate::socket::MAX_V4;
use crate::verdict::Verdict;

/// Earlier datagrams' errors that one datagram may meet before it is given up.
const EARLIER_ERRORS: usize = 8;

/// The transmit queue of a [`UringDriver`](crate::UringDriver): datagrams lie end to end in one slot a flush.
#[derive(Debug)]
pub struct Tx {
    memory: SlotMemory,
    slot_bytes: usize,
    slots: Box<[Slot]>,
    /// The slot that datagrams are committed to.
    filling: Option<usize>,
    reserved: Option<(TxMeta, usize)>,
    /// Batches of earlier flushes that were not sent, in order.
    queue: VecDeque<Batch>,
    /// Sends of the chain that the ring has.
    running: usize,
    max_segments: usize,
    retry: bool,
    /// Something has moved since the last flush.
    moved: bool,
    /// Settled since the last report.
    sent: usize,
    dropped: usize,
}

#[derive(Debug)]
struct Slot {
    /// End of what is committed.
    end: usize,
    /// What is committed and no flush has seen.
    segments: Segments,
    /// Batches in the queue that lie here, and sends that the network still reads for.
    users: usize,
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
}

/// One send: datagrams of `segment` bytes in the transmit memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) meta: TxMeta,
    slot: usize,
    start: usize,
    bytes: usize,
    segment: usize,
}

impl Tx {
    /// Slots of `slot_bytes` bytes each, as many as `memory` holds.
    pub(crate) fn new(memory: SlotMemory, slots: usize, slot_bytes: usize, max_segments: usize) -> Self {
        let slot = || Slot { end: 0, segments: Segments::new(max_segments, MAX_V4), users: 0 };
        Self {
            memory,
            slot_bytes,
            slots: (0..slots).map(|_| slot()).collect(),
            filling: None,
            reserved: None,
            queue: VecDeque::with_capacity(slots * Segments::BATCHES),
            running: 0,
            max_segments,
            retry: false,
            moved: false,
            sent: 0,
            dropped: 0,
        }
    }

    /// Begins a flush: what is committed joins the queue.
    pub(crate) fn seal(&mut self) {
        // Its place may be given to another.
        self.reserved = None;
        self.retry = false;
        let Some(index) = self.filling.take() else { return };
        let slot = &mut self.slots[index];
        let mut start = index * self.slot_bytes;
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
            });
            start += bytes;
        }
    }

    /// The sends of the next chain, at most `room` of them; none while another runs or memory is short.
    pub(crate) fn chain(&self, room: usize) -> impl Iterator<Item = Piece> + '_ {
        let ready = self.running == 0 && !self.retry;
        let room = if ready { room } else { 0 };
        // A batch that is taken apart ends a chain: its next piece follows when this one is settled.
        let whole = self.queue.iter().take_while(|batch| batch.piece() == batch.bytes).count();
        self.queue.iter().take(room.min(whole + 1)).map(Batch::first)
    }

    /// Notes that the ring has the first `sends` sends of the chain.
    pub(crate) fn note_running(&mut self, sends: usize) {
        self.running += sends;
    }

    /// Draws the conclusion from the result of the oldest send that runs. If it `holds` its slot, that is not free
    /// before [`Tx::release`].
    pub(crate) fn settle(&mut self, result: i32, holds: bool) {
        self.running = self.running.saturating_sub(1);
        self.moved = true;
        let verdict = if result >= 0 { None } else { Some(Verdict::of_send(-result)) };
        // What was cancelled behind a failed send stands in the queue and is sent again.
        if verdict == Some(Verdict::Cancelled) {
            return;
        }
        let Some(mut batch) = self.queue.pop_front() else { return };
        self.slots[batch.slot].users += usize::from(holds);
        let piece = batch.piece();
        match verdict {
            None => {
                if batch.suspect {
                    // The same datagram went alone, so it was the segmentation that was refused.
                    self.refuse_segments();
                }
                self.sent += batch.count(piece);
                return self.advance(batch, piece);
            }
            Some(Verdict::NoBuffers) => self.retry = true,
            Some(Verdict::Earlier) if batch.errors < EARLIER_ERRORS => batch.errors += 1,
            Some(verdict @ (Verdict::TooLong | Verdict::Unsupported)) if piece > batch.segment => {
                batch.split = true;
                batch.suspect = verdict == Verdict::Unsupported;
            }
            Some(_) => {
                self.dropped += batch.count(piece);
                batch.suspect = false;
                return self.advance(batch, piece);
            }
        }
        self.queue.push_front(batch);
    }

    /// Notes that the network reads no more for a send that held this slot.
    pub(crate) fn release(&mut self, slot: u16) {
        self.moved = true;
        self.leave(slot.into());
    }

    /// Ends a flush, and says what has been settled since the last one.
    pub(crate) fn report(&mut self, syscalls: usize) -> TxReport {
        self.moved = false;
        TxReport {
            sent: mem::take(&mut self.sent),
            dropped: mem::take(&mut self.dropped),
            in_flight: self.queue.iter().map(|batch| batch.count(batch.bytes)).sum(),
            syscalls,
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

    /// Whether a flush has something new to settle or to send.
    pub(crate) fn has_moved(&self) -> bool {
        self.moved
    }

    /// Datagrams that one send may carry; 1 after a refusal.
    pub(crate) fn max_segments(&self) -> usize {
        self.max_segments
    }

    /// Passes over the first `piece` bytes of `batch`, and keeps the rest in front.
    fn advance(&mut self, mut batch: Batch, piece: usize) {
        batch.start += piece;
        batch.bytes -= piece;
        batch.errors = 0;
        if self.max_segments == 1 {
            batch.suspect = false;
        }
        if batch.bytes > 0 {
            self.queue.push_front(batch);
            return;
        }
        self.leave(batch.slot);
    }

    /// Notes that a slot has one user less.
    fn leave(&mut self, slot: usize) {
        let Some(slot) = self.slots.get_mut(slot) else { return };
        slot.users = slot.users.saturating_sub(1);
        if slot.users == 0 && slot.segments.is_empty() {
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
        let free = |slot: &Slot| slot.users == 0;
        let index = self.filling.or_else(|| self.slots.iter().position(free))?;
        let slot = &self.slots[index];
        if len > self.slot_bytes - slot.end || !slot.segments.has_room(meta, len) {
            return None;
        }
        let start = index * self.slot_bytes + slot.end;
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
        } else {
            // Only an empty datagram in a full queue comes here.
            self.dropped += 1;
        }
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

    fn first(&self) -> Piece {
        Piece {
            meta: self.meta,
            slot: self.slot,
            start: self.start,
            bytes: self.piece(),
            segment: self.segment,
        }
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

#[cfg(test)]
mod tests;
