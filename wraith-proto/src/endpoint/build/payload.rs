//! Frames with payload: lost data first, then datagrams, then new stream data.

use super::draft::{Draft, FRAMES_LEN, Tail};
use crate::endpoint::{Endpoint, scope::Scope};
use crate::queue::Source;
use crate::recovery::{Narrow64, SentFrame};
use crate::session::{Control, EventBits, SessionHandle};
use crate::stream::{Bits, DatagramPool, DatagramQueue, Piece, StreamPool};
use crate::wire::Frame;

/// Lost packets looked at for data that may be sent again now.
const LOST_SCAN: usize = 8;

/// Streams passed over in search of one that the peer is known to have room for.
const UNKNOWN_SCAN: u32 = 64;

impl Endpoint {
    /// Puts a piece of a stream into the packet. If there are fewer bytes than asked for, its data ended early: the
    /// stream is reset, and `false` returned.
    pub(super) fn put_piece<S: Source>(
        &mut self,
        index: u32,
        draft: &mut Draft<'_>,
        tail: Tail,
        source: &mut S,
    ) -> bool {
        let handle = self.handle_of(index);
        let Tail { slot, piece, .. } = tail;
        let len = usize::from(piece.len);
        if fill(&mut self.streams, handle, tail, draft, source) >= len {
            draft.payload += len;
            record_piece(draft, &self.streams, tail);
            return true;
        }
        let lists = &mut self.sessions[index].streams;
        if let Some(send) = &mut self.streams.stream(slot).send {
            send.reset(0);
        }
        self.streams.want(lists, slot, Bits::RESET);
        self.streams.refresh_ready(lists, slot);
        false
    }

    /// Data of lost packets first: the receiver waits for it. With `one`, a single packet's, and whole.
    pub(super) fn put_lost<S: Source>(
        &mut self,
        index: u32,
        draft: &mut Draft<'_>,
        source: &mut S,
        one: bool,
    ) {
        let mut cursor = self.sessions[index].recovery.sent.lost.front();
        let mut left = LOST_SCAN;
        while let Some(record) = cursor
            && left > 0
            && !draft.sent.is_full()
        {
            cursor = self.sent.next(record);
            let before = draft.sent.len();
            for at in (0..self.sent.get(record).frames.len()).rev() {
                let frame = self.sent.get(record).frames[at];
                match self.resend(index, frame, draft, source, one) {
                    Some(rest) => self.sent.get_mut(record).frames[at] = rest,
                    None => {
                        self.sent.get_mut(record).frames.swap_remove(at);
                    }
                }
            }
            if self.sent.get(record).frames.is_empty() {
                self.sent.remove_lost(&mut self.sessions[index].recovery.sent, record);
            } else {
                left -= 1;
            }
            if one && draft.sent.len() > before {
                return;
            }
        }
    }

    /// Sends a lost piece again as far as it fits, or with `whole` only if all of it does; returns what is left of it.
    fn resend<S: Source>(
        &mut self,
        index: u32,
        frame: SentFrame,
        draft: &mut Draft<'_>,
        source: &mut S,
        whole: bool,
    ) -> Option<SentFrame> {
        let SentFrame::Data { slot, generation, offset, len, fin } = frame else { return None };
        let offset = offset.value();
        let stream = self.streams.lookup(slot, generation)?;
        let (id, send) = (stream.id, stream.send.as_mut()?);
        if send.reset.is_some() {
            return None;
        }
        if draft.known_only && !send.is_known() {
            return Some(frame);
        }
        if send.is_held() {
            send.hold(Piece { offset, len, fin });
            return None;
        }
        let Some(room) = draft.stream_room(id, offset) else { return Some(frame) };
        let part = usize::from(len).min(room) as u16;
        if part < len && whole && draft.is_empty() {
            // The path carries less than before: without a second record the bytes go back to their stream.
            send.hold(Piece { offset, len, fin });
            self.streams.refresh_ready(&mut self.sessions[index].streams, slot);
            return None;
        }
        if part < len && (part == 0 || whole) {
            return Some(frame);
        }
        let piece = Piece { offset, len: part, fin: fin && part == len };
        let sent = self.put_piece(index, draft, Tail { slot, id, piece }, source);
        let (offset, len) = (offset + u64::from(part), len - part);
        let offset = Narrow64::new(offset);
        (sent && len > 0).then_some(SentFrame::Data { slot, generation, offset, len, fin })
    }

    pub(super) fn put_datagrams(&mut self, index: u32, draft: &mut Draft<'_>) {
        self.drop_unfit_datagrams(index);
        while let Some(len) = put_datagram(&self.datagrams, &self.sessions[index].datagrams, draft) {
            draft.payload += len;
            if self.datagrams.pop(&mut self.sessions[index].datagrams) {
                self.notify(index, EventBits::DATAGRAMS);
            }
            self.feed_starved();
            if self.config.transport.lone_datagrams {
                break;
            }
        }
    }

    /// Drops datagrams that fitted when they were queued, but not what the path carries now.
    fn drop_unfit_datagrams(&mut self, index: u32) {
        let max = self.max_datagram_of(index);
        while self.datagrams.front(&self.sessions[index].datagrams).is_some_and(|data| data.len() > max) {
            if self.datagrams.pop(&mut self.sessions[index].datagrams) {
                self.notify(index, EventBits::DATAGRAMS);
            }
            self.feed_starved();
            self.stats.datagrams_unfit += 1;
        }
    }

    pub(super) fn put_streams<S: Source>(&mut self, index: u32, draft: &mut Draft<'_>, source: &mut S) {
        let mut unknown = 0;
        while let Some(slot) = self.sessions[index].streams.next_ready() {
            let stream = self.streams.stream(slot);
            let (id, Some(send)) = (stream.id, stream.send.as_mut()) else { return };
            if draft.known_only && !send.is_known() {
                unknown += 1;
                if unknown > UNKNOWN_SCAN {
                    return;
                }
                self.streams.rotate(&mut self.sessions[index].streams, slot);
                continue;
            }
            let Some(room) = draft.stream_room(id, send.next_offset()) else { return };
            let Some(piece) = send.next_piece(room) else {
                if send.wants_to_send() {
                    return;
                }
                self.streams.refresh_ready(&mut self.sessions[index].streams, slot);
                continue;
            };
            let blocked = send.newly_blocked().is_some();
            let attached = send.is_attached();
            let lists = &mut self.sessions[index].streams;
            self.streams.refresh_ready(lists, slot);
            self.streams.rotate(lists, slot);
            if blocked {
                self.streams.want(lists, slot, Bits::BLOCKED);
            }
            let tail = Tail { slot, id, piece };
            if attached && draft.payload == 0 && usize::from(piece.len) == room {
                draft.tail = Some(tail);
                return;
            }
            self.put_piece(index, draft, tail, source);
        }
    }

    /// A probe carries the oldest data in flight, or at least a PING (RFC 9002 §6.2.4).
    pub(super) fn put_probe<S: Source>(&mut self, index: u32, draft: &mut Draft<'_>, source: &mut S) {
        let session = &mut self.sessions[index];
        if session.recovery.probes == 0 {
            return;
        }
        session.recovery.probes -= 1;
        if draft.asks || draft.tail.is_some() {
            return;
        }
        let (recovery, scope) = Scope::split(index, session, &mut self.streams);
        let mut scope = self.hook.watch(self.now, index, scope);
        recovery.probe_oldest(&mut self.sent, &mut scope);
        let has_record = self.sent.may_send(&recovery.sent);
        if has_record {
            self.put_control(index, draft);
            self.put_stream_control(index, draft);
        }
        self.put_lost(index, draft, source, !has_record);
        if !draft.asks && draft.push(&Frame::Ping) {
            let has_record = self.sent.may_send(&self.sessions[index].recovery.sent);
            draft.unrecorded = !has_record;
            if has_record {
                let _ = draft.sent.push(SentFrame::Session { bits: Control::PING });
            }
        }
    }
}

/// Copies a piece of a stream to its place in the packet; returns how many bytes there were.
fn fill<S: Source>(
    streams: &mut StreamPool,
    handle: SessionHandle,
    tail: Tail,
    draft: &mut Draft<'_>,
    source: &mut S,
) -> usize {
    let Tail { slot, id, piece } = tail;
    let len = usize::from(piece.len);
    let out = draft.payload_room(len);
    match &streams.stream(slot).send {
        Some(send) if !send.is_attached() => {
            if send.copy(piece.offset, out) {
                len
            } else {
                0
            }
        }
        Some(_) if len > 0 => source.fill(handle, id, piece.offset, out).min(len),
        _ => len,
    }
}

/// Adds the STREAM frame of a piece whose payload is in place.
pub(super) fn record_piece(draft: &mut Draft<'_>, streams: &StreamPool, tail: Tail) {
    let Tail { slot, id, piece } = tail;
    let Piece { offset, len, fin } = piece;
    draft.push_stream(id, piece);
    let (generation, offset) = (streams.generation(slot), Narrow64::new(offset));
    let _ = draft.sent.push(SentFrame::Data { slot, generation, offset, len, fin });
}

/// Adds the next datagram if it fits; returns its length.
fn put_datagram(pool: &DatagramPool, queue: &DatagramQueue, draft: &mut Draft<'_>) -> Option<usize> {
    let data = pool.front(queue)?;
    let len = data.len();
    let frame = Frame::Datagram { len: len as u16 };
    if len + frame.encoded_len() > draft.left() || draft.frames_len + frame.encoded_len() > FRAMES_LEN {
        return None;
    }
    draft.payload_room(len).copy_from_slice(data);
    draft.push(&frame).then_some(len)
}
