//! The sending half of a stream: what to send next, and what is not yet acknowledged.
//!
//! Bytes in flight belong to records of sent packets; a lost record is sent again and only then forgotten, so
//! `outstanding` counts them exactly. Only what the peer refused is kept here as ranges, until it grants more.

use bytes::Bytes;
use heapless::Deque;

use super::missing::Missing;
use crate::error::WriteError;

/// Chunks that one stream queues.
pub(crate) const MAX_CHUNKS: usize = 16;

/// A piece of written data. Each byte counts as unacknowledged until it was first acknowledged, and again for each
/// further record or missing range that it is in.
#[derive(Debug)]
struct Chunk {
    data: Bytes,
    len: usize,
    unacked: usize,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each stream")]
enum Data {
    /// Written chunks; the first begins at `base`.
    Chunks { base: u64, chunks: Deque<Chunk, MAX_CHUNKS> },
    /// The application's `Source` has the bytes.
    Attached,
}

/// A frame's worth of stream data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) len: u16,
    pub(crate) fin: bool,
}

/// The sending half of a stream.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts; RFC 9000's state diagram joins them")]
pub(crate) struct SendHalf {
    data: Data,
    /// First byte never sent.
    next: u64,
    /// End of the bytes that the application gave.
    end: u64,
    /// Bytes in records of sent packets, in flight or lost.
    outstanding: u64,
    /// Refused bytes, to be sent again.
    missing: Missing,
    /// The end of the stream has to be sent again.
    fin_missing: bool,
    /// Offset up to which the peer lets us send.
    credit: u64,
    /// Credit at which `STREAM_BLOCKED` was sent last.
    blocked_at: Option<u64>,
    finished: bool,
    fin_sent: bool,
    fin_acked: bool,
    /// Records of sent packets that hold the end.
    fins: u32,
    delivered: bool,
    /// Refused bytes wait for the peer's next grant (`PROTO §7.5`).
    held: bool,
    /// The peer has acknowledged some of it, so it had room for the stream.
    known: bool,
    /// Number of the last report of refused bytes.
    report: u64,
    pub(crate) reset: Option<u32>,
    pub(crate) reset_acked: bool,
    pub(crate) stopped: Option<u32>,
    /// A write was refused; an event tells when it may be tried again.
    pub(crate) blocked: bool,
}

impl SendHalf {
    pub(crate) fn new(credit: u64) -> Self {
        Self {
            data: Data::Chunks { base: 0, chunks: Deque::new() },
            next: 0,
            end: 0,
            outstanding: 0,
            missing: Missing::default(),
            fin_missing: false,
            credit,
            blocked_at: None,
            finished: false,
            fin_sent: false,
            fin_acked: false,
            fins: 0,
            delivered: false,
            held: false,
            known: false,
            report: 0,
            reset: None,
            reset_acked: false,
            stopped: None,
            blocked: false,
        }
    }

    /// Takes a chunk whole, or refuses it whole.
    pub(crate) fn write(&mut self, data: Bytes) -> Result<(), WriteError> {
        self.writable()?;
        let Data::Chunks { chunks, .. } = &mut self.data else { return Err(WriteError::Finished) };
        if data.is_empty() {
            return Ok(());
        }
        let len = data.len();
        if chunks.push_back(Chunk { data, len, unacked: len }).is_err() {
            self.blocked = true;
            return Err(WriteError::Blocked);
        }
        self.end += len as u64;
        Ok(())
    }

    /// Makes the stream exactly `len` bytes of the application's source.
    pub(crate) fn attach(&mut self, len: u64) -> Result<(), WriteError> {
        self.writable()?;
        if self.end != 0 {
            return Err(WriteError::Finished);
        }
        self.data = Data::Attached;
        self.end = len;
        self.finished = true;
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<(), WriteError> {
        self.writable()?;
        self.finished = true;
        Ok(())
    }

    /// Gives up; returns whether that is news to the peer.
    pub(crate) fn reset(&mut self, code: u32) -> bool {
        if self.reset.is_some() || self.delivered {
            return false;
        }
        self.reset = Some(code);
        self.data = Data::Attached;
        self.missing.clear();
        true
    }

    /// The peer asked to stop; returns whether that is news.
    pub(crate) fn stop(&mut self, code: u32) -> bool {
        let news = self.stopped.is_none() && self.reset.is_none() && !self.delivered;
        if news {
            self.stopped = Some(code);
        }
        news
    }

    /// The peer's new credit. Also ends the wait after a refusal.
    pub(crate) fn grant(&mut self, credit: u64) {
        self.credit = self.credit.max(credit);
        self.held = false;
    }

    /// Offset of the next piece, for the room that its frame takes.
    pub(crate) fn next_offset(&mut self) -> u64 {
        self.skip_forgotten();
        self.missing.first().map_or(self.next, |(start, _)| start)
    }

    /// The next piece, at `next_offset`, of at most `room` bytes; refused ones come first. `None` when there is nothing to send now.
    pub(crate) fn next_piece(&mut self, room: usize) -> Option<Piece> {
        if !self.wants_to_send() {
            return None;
        }
        let room = room.min(usize::from(u16::MAX)) as u64;
        let (offset, end) = match self.missing.first() {
            Some((start, end)) => (start, self.kept_until(start, end)),
            None => (self.next, self.end.min(self.credit)),
        };
        let len = end.saturating_sub(offset).min(room);
        let fin = self.finished && offset + len == self.end && (self.fin_missing || !self.fin_sent);
        if len == 0 && !fin {
            return None;
        }
        self.missing.cut(offset + len);
        self.next = self.next.max(offset + len);
        self.outstanding += len;
        if fin {
            (self.fin_sent, self.fin_missing) = (true, false);
            self.fins += 1;
        }
        Some(Piece { offset, len: len as u16, fin })
    }

    /// A piece was acknowledged.
    pub(crate) fn on_acked(&mut self, piece: Piece) {
        self.outstanding = self.outstanding.saturating_sub(u64::from(piece.len));
        self.known = true;
        if piece.fin {
            self.fin_acked = true;
            self.fins = self.fins.saturating_sub(1);
        }
        self.adjust_unacked(piece.offset, u64::from(piece.len), false);
        self.release();
    }

    /// The peer refused `len` bytes from `offset` (report `report`, counted from 1): they wait for its next grant.
    /// A report that is old or impossible changes nothing.
    pub(crate) fn on_holes(&mut self, report: u64, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        if report != self.report + 1 || end > self.next {
            return;
        }
        self.report = report;
        if self.reset.is_some() {
            return;
        }
        self.held = true;
        self.miss(offset, end, self.fin_sent && end == self.end);
    }

    /// A piece of a lost packet has to wait for the peer's grant like refused bytes; its record goes.
    pub(crate) fn hold(&mut self, piece: Piece) {
        let len = u64::from(piece.len);
        self.outstanding = self.outstanding.saturating_sub(len);
        self.fins = self.fins.saturating_sub(piece.fin.into());
        self.miss(piece.offset, piece.offset + len, piece.fin);
        self.adjust_unacked(piece.offset, len, false);
        self.release();
    }

    /// Copies bytes of a piece from the written chunks; `false` if the stream is attached or they are gone.
    pub(crate) fn copy(&self, offset: u64, out: &mut [u8]) -> bool {
        let Data::Chunks { base, chunks } = &self.data else { return false };
        let mut start = *base;
        let mut filled = 0;
        for chunk in chunks {
            let end = start + chunk.len as u64;
            let from = offset + filled as u64;
            if from < end && from >= start {
                let at = (from - start) as usize;
                let Some(rest) = chunk.data.get(at..) else { return false };
                let take = rest.len().min(out.len() - filled);
                out[filled..filled + take].copy_from_slice(&rest[..take]);
                filled += take;
                if filled == out.len() {
                    return true;
                }
            }
            start = end;
        }
        filled == out.len()
    }

    /// The credit at which the stream is newly blocked, if it is.
    pub(crate) fn newly_blocked(&mut self) -> Option<u64> {
        let blocked = self.next == self.credit && self.next < self.end && self.reset.is_none();
        if !blocked || self.blocked_at == Some(self.credit) {
            return None;
        }
        self.blocked_at = Some(self.credit);
        Some(self.credit)
    }

    /// Whether everything arrived; true once. A stream that was reset ends with the reset, which has to arrive, too.
    pub(crate) fn take_delivered(&mut self) -> bool {
        let complete = self.outstanding == 0 && self.missing.is_empty() && self.next == self.end;
        let open = self.reset.is_none() && !self.delivered;
        let now = self.fin_acked && self.fins == 0 && !self.fin_missing && complete && open;
        self.delivered |= now;
        now
    }

    pub(crate) fn is_attached(&self) -> bool {
        matches!(self.data, Data::Attached)
    }

    /// Whether new bytes or the end may be sent now.
    pub(crate) fn wants_to_send(&self) -> bool {
        let bytes = self.next < self.end.min(self.credit);
        let fin = self.finished && self.next == self.end && (!self.fin_sent || self.fin_missing);
        (bytes || fin || !self.missing.is_empty()) && self.reset.is_none() && !self.held
    }

    /// Number of the last report that was taken.
    pub(crate) fn last_report(&self) -> u64 {
        self.report
    }

    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    /// Whether the half needs no more attention.
    pub(crate) fn is_over(&self) -> bool {
        self.delivered || (self.reset.is_some() && self.reset_acked)
    }

    pub(crate) fn has_room(&self) -> bool {
        matches!(&self.data, Data::Chunks { chunks, .. } if !chunks.is_full())
    }

    /// Total bytes sent so far: the final size of a reset stream.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    pub(crate) fn credit(&self) -> u64 {
        self.credit
    }

    /// Adds a range to what has to be sent again.
    fn miss(&mut self, start: u64, end: u64, fin: bool) {
        if fin {
            (self.fin_missing, self.fin_acked) = (true, false);
        }
        if start == end {
            return;
        }
        let mut missing = core::mem::take(&mut self.missing);
        missing.insert(start, end, |low, high, is_in| self.adjust_unacked(low, high - low, is_in));
        self.missing = missing;
    }

    /// Takes bytes that the peer has already acknowledged out of what has to be sent again.
    fn skip_forgotten(&mut self) {
        let Data::Chunks { base, chunks } = &self.data else { return };
        let mut start = *base;
        self.missing.cut(start);
        for chunk in chunks {
            let end = start + chunk.len as u64;
            match self.missing.first() {
                Some((first, _)) if first < end => {
                    if !chunk.data.is_empty() {
                        return;
                    }
                    self.missing.cut(end);
                }
                Some(_) => {}
                None => return,
            }
            start = end;
        }
    }

    /// Where the bytes from `start` to `end` end that are still there.
    fn kept_until(&self, start: u64, end: u64) -> u64 {
        let Data::Chunks { base, chunks } = &self.data else { return end };
        let mut at = *base;
        for chunk in chunks {
            if at > start && chunk.data.is_empty() {
                return end.min(at);
            }
            at += chunk.len as u64;
        }
        end
    }

    fn writable(&self) -> Result<(), WriteError> {
        if let Some(code) = self.stopped {
            return Err(WriteError::Stopped(code));
        }
        if self.finished || self.reset.is_some() {
            return Err(WriteError::Finished);
        }
        Ok(())
    }

    /// Counts bytes of the chunks as acknowledged, or as missing again.
    fn adjust_unacked(&mut self, offset: u64, len: u64, missing: bool) {
        let Data::Chunks { base, chunks } = &mut self.data else { return };
        let (mut start, end) = (*base, offset + len);
        for chunk in chunks.iter_mut() {
            let chunk_end = start + chunk.len as u64;
            let overlap = chunk_end.min(end).saturating_sub(start.max(offset)) as usize;
            if missing {
                // A chunk without data was acknowledged whole.
                chunk.unacked += if chunk.data.is_empty() { 0 } else { overlap };
            } else {
                chunk.unacked = chunk.unacked.saturating_sub(overlap);
                if chunk.unacked == 0 {
                    chunk.data = Bytes::new();
                }
            }
            if chunk_end >= end {
                break;
            }
            start = chunk_end;
        }
    }

    /// Forgets acknowledged chunks at the front.
    fn release(&mut self) {
        let Data::Chunks { base, chunks } = &mut self.data else { return };
        while let Some(chunk) = chunks.front()
            && chunk.unacked == 0
        {
            *base += chunk.len as u64;
            chunks.pop_front();
        }
    }
}
