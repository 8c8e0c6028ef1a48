//! Decrypted payload, lent piece by piece from the caller's buffer.

use super::Endpoint;
use super::scope::Scope;
use crate::event::{Outcome, Payload};
use crate::session::SessionHandle;
use crate::stream::{Bits, StreamId};
use crate::wire::{Frame, Frames};

/// The payloads of one received datagram.
///
/// Pieces that are not taken stay holes of their stream and come again after a grant (`PROTO §7.5`); the
/// packet itself is acknowledged and no loss.
#[must_use = "stream payload left unread stays a hole and will be sent again"]
pub struct Received<'a> {
    endpoint: &'a mut Endpoint,
    outcome: Outcome,
    contents: Option<Contents<'a>>,
}

/// A packet with payload.
struct Contents<'a> {
    session: SessionHandle,
    number: u64,
    payload: &'a mut [u8],
    frames: Frames<'a>,
    /// Bytes of `payload` that belong to frames already read.
    taken: usize,
    piece: Option<Piece>,
}

/// The STREAM frame that is being lent.
#[derive(Clone, Copy)]
struct Piece {
    slot: u32,
    id: StreamId,
    /// Offset of the frame's first byte in the stream, and its place in the payload.
    offset: u64,
    at: usize,
    /// What is left of it: up to `end`.
    next: u64,
    end: u64,
}

/// A piece of stream data found new: its offset, its range in the payload, and whether the stream ends behind.
struct Lent {
    id: StreamId,
    offset: u64,
    range: core::ops::Range<usize>,
    fin: bool,
}

impl<'a> Received<'a> {
    pub(super) fn without_payload(endpoint: &'a mut Endpoint, outcome: Outcome) -> Self {
        Self { endpoint, outcome, contents: None }
    }

    pub(super) fn with_payload(
        endpoint: &'a mut Endpoint,
        session: SessionHandle,
        number: u64,
        payload: &'a mut [u8],
        frames: &'a [u8],
    ) -> Self {
        let frames = Frames::new(frames);
        let contents = Contents { session, number, payload, frames, taken: 0, piece: None };
        Self { endpoint, outcome: Outcome::Authenticated(session), contents: Some(contents) }
    }

    /// The next payload, if any.
    #[expect(clippy::should_implement_trait, reason = "a lending iterator cannot be an Iterator")]
    pub fn next(&mut self) -> Option<Payload<'_>> {
        let contents = self.contents.as_mut()?;
        let session = contents.session;
        loop {
            if let Some(lent) = contents.lend(self.endpoint) {
                let Lent { id: stream, offset, range, fin } = lent;
                // Reborrow through `self`: the loop holds `contents` only until here.
                let data = &mut self.contents.as_mut()?.payload[range];
                return Some(Payload::Stream { session, stream, offset, data, fin });
            }
            let at = contents.taken;
            match contents.frames.next()?.ok()? {
                Frame::Stream { stream, offset, len, .. } => {
                    contents.taken += usize::from(len);
                    contents.begin(self.endpoint, StreamId(stream), offset, at, len);
                }
                Frame::Datagram { len } => {
                    contents.taken += usize::from(len);
                    let range = at..contents.taken;
                    let data = &mut self.contents.as_mut()?.payload[range];
                    return Some(Payload::Datagram { session, data });
                }
                _ => {}
            }
        }
    }

    /// What became of the datagram.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}

impl Contents<'_> {
    fn begin(&mut self, endpoint: &Endpoint, id: StreamId, offset: u64, at: usize, len: u16) {
        if let Some(slot) = endpoint.streams.find(self.session.index, id) {
            let end = offset + u64::from(len);
            self.piece = Some(Piece { slot, id, offset, at, next: offset, end });
        }
    }

    /// The next new part of the frame at hand.
    fn lend(&mut self, endpoint: &mut Endpoint) -> Option<Lent> {
        let piece = self.piece?;
        let (now, transport) = (endpoint.now(), endpoint.config.transport);
        let session = endpoint.sessions.get_mut(self.session.index)?;
        let rtt = session.recovery.rtt.smoothed();
        let (_, scope) = Scope::split(self.session.index, session, &mut endpoint.streams);
        let (stream, ranges) = scope.streams.parts(piece.slot);
        let recv = stream.recv.as_mut().filter(|recv| recv.reset.is_none() && recv.stopped.is_none());
        let Some(recv) = recv else {
            self.finish(endpoint);
            return None;
        };
        let found = recv.lend(ranges, piece.next, piece.end).or_else(|| {
            // Only the end of the stream is new.
            let end = piece.end;
            (recv.fin_waits_at(end) && recv.has(ranges, piece.next, end)).then_some((end, end))
        });
        let Some((start, end)) = found else {
            if !recv.has(ranges, piece.next, piece.end) {
                self.refuse(endpoint, piece, false);
            }
            self.finish(endpoint);
            return None;
        };
        let fin = recv.lend_fin(end);
        if !transport.manual_credit && recv.extend(now, rtt, transport.max_window) {
            scope.streams.want(scope.lists, piece.slot, Bits::CREDIT);
        }
        self.piece = Some(Piece { next: end, ..piece });
        let at = |offset: u64| piece.at + (offset - piece.offset) as usize;
        Some(Lent { id: piece.id, offset: start, range: at(start)..at(end), fin })
    }

    /// The frame at hand was dealt with.
    fn finish(&mut self, endpoint: &mut Endpoint) {
        let Some(piece) = self.piece.take() else { return };
        if let Some(session) = endpoint.sessions.get_mut(self.session.index) {
            Scope::split(self.session.index, session, &mut endpoint.streams).1.retire(piece.slot);
        }
    }

    /// The application, or without `paused` the pool of gaps, does not take the rest of the frame at hand.
    fn refuse(&self, endpoint: &mut Endpoint, piece: Piece, paused: bool) {
        let Some(session) = endpoint.sessions.get_mut(self.session.index) else { return };
        let (_, mut scope) = Scope::split(self.session.index, session, &mut endpoint.streams);
        let (stream, ranges) = scope.streams.parts(piece.slot);
        let Some(recv) = &mut stream.recv else { return };
        let missing = !recv.has(ranges, piece.next, piece.end) || recv.fin_waits_at(piece.end);
        if !missing || recv.is_over() || recv.stopped.is_some() {
            return;
        }
        endpoint.stats.bytes_refused += piece.end - piece.next;
        if recv.refuse(piece.next, piece.end, paused) {
            scope.add_report(piece.slot, self.number);
        } else {
            scope.hold(self.number);
        }
    }

    /// Refuses everything that was not asked for.
    fn refuse_rest(&mut self, endpoint: &mut Endpoint) {
        if let Some(piece) = self.piece {
            self.refuse(endpoint, piece, true);
            self.finish(endpoint);
        }
        while let Some(Ok(frame)) = self.frames.next() {
            let at = self.taken;
            self.taken += frame.data_len();
            if let Frame::Stream { stream, offset, len, .. } = frame {
                self.begin(endpoint, StreamId(stream), offset, at, len);
                if let Some(piece) = self.piece {
                    self.refuse(endpoint, piece, true);
                    self.finish(endpoint);
                }
            }
        }
    }
}

impl Drop for Received<'_> {
    fn drop(&mut self) {
        if let Some(mut contents) = self.contents.take() {
            contents.refuse_rest(self.endpoint);
            self.endpoint.settle(contents.session.index);
        }
    }
}

impl core::fmt::Debug for Received<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Received").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}
