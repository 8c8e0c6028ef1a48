//! Sending: one arena, batches by the segmentation rule, and the tail that the socket did not take.

use std::io;

use quinn_udp::{EcnCodepoint, Transmit};
use wraith_drivers::{Family, Segments, TxReport};
use wraith_proto::{TxMeta, TxQueue};

use crate::socket::MAX_V4;
use crate::verdict::Verdict;

/// Earlier datagrams' errors that one datagram may meet before it is given up.
const EARLIER_ERRORS: usize = 8;

/// The transmit queue of a [`MioDriver`](crate::MioDriver): datagrams lie end to end in one arena.
#[derive(Debug)]
pub struct Tx {
    arena: Box<[u8]>,
    /// First byte that was neither sent nor dropped.
    start: usize,
    /// End of what is committed.
    end: usize,
    reserved: Option<(TxMeta, usize)>,
    segments: Segments,
    max_segments: usize,
    /// The batch at `start`, when a send of it was tried.
    front: Option<Batch>,
    hold: Hold,
    /// Given up before the next report.
    dropped: usize,
    refused: bool,
}

/// What the queue waits for before a flush makes sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    Nothing,
    /// The socket becomes writable.
    Writable,
    /// A moment; the system does not say when.
    Retry,
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    meta: TxMeta,
    bytes: usize,
    segment: usize,
    /// Datagrams leave one by one.
    split: bool,
    /// It was split because the call was refused, and segmentation may be why.
    suspect: bool,
    /// Earlier datagrams' errors met by the first datagram.
    errors: usize,
}

impl Tx {
    pub(crate) fn new(arena_bytes: usize, max_segments: usize) -> Self {
        Self {
            arena: vec![0; arena_bytes].into(),
            start: 0,
            end: 0,
            reserved: None,
            segments: Segments::new(max_segments, MAX_V4),
            max_segments,
            front: None,
            hold: Hold::Nothing,
            dropped: 0,
            refused: false,
        }
    }

    /// Sends what is committed through `send`, in order, until it is all gone or must be held.
    pub(crate) fn flush(
        &mut self,
        family: Family,
        mut send: impl FnMut(&Transmit<'_>) -> io::Result<()>,
    ) -> TxReport {
        let mut report = TxReport { dropped: std::mem::take(&mut self.dropped), ..TxReport::default() };
        // Its place in the arena may be given to another.
        self.reserved = None;
        self.hold = Hold::Nothing;
        while self.hold == Hold::Nothing {
            let Some(batch) = self.front.take().or_else(|| self.next_batch()) else { break };
            report.syscalls += 1;
            let piece = batch.piece();
            let transmit = Transmit {
                destination: family.outgoing(batch.meta.to),
                ecn: EcnCodepoint::from_bits(batch.meta.ecn.bits()),
                contents: &self.arena[self.start..self.start + piece],
                segment_size: (piece > batch.segment).then_some(batch.segment),
                src_ip: batch.meta.from.map(|ip| family.outgoing_ip(ip)),
            };
            let result = send(&transmit);
            self.settle(batch, result, &mut report);
        }
        if self.front.is_none() && self.segments.is_empty() {
            (self.start, self.end) = (0, 0);
        }
        report.in_flight = self.segments.datagrams() + self.front.map_or(0, |batch| batch.count(batch.bytes));
        report
    }

    /// Whether the system refused a form of call since the last question.
    pub(crate) fn take_refused(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    pub(crate) fn hold(&self) -> Hold {
        self.hold
    }

    /// Datagrams that one call may carry; 1 after a refusal.
    pub(crate) fn max_segments(&self) -> usize {
        self.max_segments
    }

    fn next_batch(&mut self) -> Option<Batch> {
        let (meta, bytes, segment) = self.segments.take()?;
        let split = self.max_segments == 1;
        Some(Batch { meta, bytes, segment, split, suspect: false, errors: 0 })
    }

    /// Draws the conclusion from the result of one call for the first piece of `batch`.
    fn settle(&mut self, mut batch: Batch, result: io::Result<()>, report: &mut TxReport) {
        let piece = batch.piece();
        let verdict = match result {
            Ok(()) => {
                if batch.suspect {
                    // The same datagram went alone, so it was the segmentation that was refused.
                    self.max_segments = 1;
                    self.segments.set_max_segments(1);
                }
                report.sent += batch.count(piece);
                return self.advance(batch, piece);
            }
            Err(error) => Verdict::of_send(&error),
        };
        self.refused |= verdict == Verdict::Unsupported;
        match verdict {
            Verdict::Full => self.hold = Hold::Writable,
            Verdict::NoBuffers => self.hold = Hold::Retry,
            Verdict::Earlier if batch.errors < EARLIER_ERRORS => batch.errors += 1,
            Verdict::TooLong | Verdict::Unsupported if piece > batch.segment => {
                batch.split = true;
                batch.suspect = verdict == Verdict::Unsupported;
            }
            _ => {
                if verdict == Verdict::TooLong {
                    report.note_too_long(batch.meta.to, piece);
                }
                report.dropped += batch.count(piece);
                batch.suspect = false;
                return self.advance(batch, piece);
            }
        }
        self.front = Some(batch);
    }

    /// Passes over the first `piece` bytes of `batch`, and keeps the rest in front.
    fn advance(&mut self, mut batch: Batch, piece: usize) {
        self.start += piece;
        batch.bytes -= piece;
        batch.errors = 0;
        if self.max_segments == 1 {
            batch.suspect = false;
        }
        self.front = (batch.bytes > 0).then_some(batch);
    }
}

impl TxQueue for Tx {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        self.reserved = None;
        let room = self.arena.get_mut(self.end..)?.get_mut(..len)?;
        if !self.segments.has_room(meta, len) {
            return None;
        }
        self.reserved = Some((*meta, len));
        Some(room)
    }

    fn commit(&mut self, len: usize) {
        let Some((meta, reserved)) = self.reserved.take() else { return };
        let len = len.min(reserved);
        if self.segments.push(&meta, len) {
            self.end += len;
        } else {
            // Only an empty datagram in a full queue comes here.
            self.dropped += 1;
        }
    }
}

impl Batch {
    /// Bytes of the next call.
    fn piece(&self) -> usize {
        if self.split { self.segment.min(self.bytes) } else { self.bytes }
    }

    /// Datagrams in the first `bytes` bytes.
    fn count(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.segment.max(1)).max(1)
    }
}

#[cfg(all(test, unix))]
mod tests;
