//! One packet: choose its frames, pull its payload, seal it in place.

use heapless::Vec;

use super::Endpoint;
use super::lifecycle::End;
use crate::crypto::{Role, TAG_LEN};
use crate::queue::Source;
use crate::recovery::{MAX_FRAMES, SentFrame, SentPacket};
use crate::session::{Control, EventBits, Phase, SessionHandle};
use crate::stream::{Bits, DatagramPool, Dir, Piece, StreamId, StreamPool};
use crate::wire::{
    AckRepr, EcnCounts, Frame, MAX_ACK_RANGES, PACKET_HEADER_LEN, PacketHeader, Writer, apply_mask, varint,
};

/// Room for frames in one packet. An ACK takes at most 300 bytes of it.
const FRAMES_LEN: usize = 512;

/// The length of the frames behind them (`PROTO §5.4`).
const TRAILER_LEN: usize = 2;

/// Lost packets looked at for data that may be sent again now.
const LOST_SCAN: usize = 8;

/// Streams looked at for reports of refused bytes that a probe without a record carries.
const REPORT_SCAN: u32 = 16;

/// Streams passed over in search of one that the peer is known to have room for.
const UNKNOWN_SCAN: u32 = 64;

/// Packet numbers end here (`PROTO §5.3`).
const LAST_NUMBER: u64 = varint::MAX;

/// A packet under construction: payload from the front of the room, frames beside it until it is sealed.
struct Draft<'a> {
    room: &'a mut [u8],
    payload: usize,
    frames: [u8; FRAMES_LEN],
    frames_len: usize,
    sent: Vec<SentFrame, MAX_FRAMES>,
    /// A frame asks for an acknowledgement.
    asks: bool,
    acked: Option<u64>,
    /// There is no record to remember the packet by.
    unrecorded: bool,
    /// Only streams that the peer is known to have room for: this packet has to arrive (`PROTO §7.7`).
    known_only: bool,
    /// An attached stream's piece that fills the rest of the packet: it may be sealed from where it lies.
    tail: Option<Tail>,
}

/// What is remembered of a draft.
struct Memo {
    asks: bool,
    acked: Option<u64>,
    ect: bool,
    unrecorded: bool,
    frames: Vec<SentFrame, MAX_FRAMES>,
}

impl Memo {
    fn take(draft: &mut Draft<'_>, ect: bool) -> Self {
        let frames = core::mem::take(&mut draft.sent);
        Self { asks: draft.asks, acked: draft.acked, ect, unrecorded: draft.unrecorded, frames }
    }
}

/// See `Draft::tail`.
#[derive(Clone, Copy)]
struct Tail {
    slot: u32,
    id: StreamId,
    piece: Piece,
}

impl<'a> Draft<'a> {
    fn new(room: &'a mut [u8]) -> Self {
        Self {
            room,
            payload: 0,
            frames: [0; FRAMES_LEN],
            frames_len: 0,
            sent: Vec::new(),
            asks: false,
            acked: None,
            unrecorded: false,
            known_only: false,
            tail: None,
        }
    }

    /// Bytes left for payload and frames.
    fn left(&self) -> usize {
        let fixed = PACKET_HEADER_LEN + TRAILER_LEN + TAG_LEN;
        self.room.len().saturating_sub(fixed + self.payload + self.frames_len)
    }

    fn writer(&mut self) -> Writer<'_> {
        let end = (self.frames_len + self.left()).min(FRAMES_LEN);
        Writer::new(&mut self.frames[self.frames_len..end])
    }

    /// Adds a frame without payload; `false` if it does not fit.
    fn push(&mut self, frame: &Frame<'_>) -> bool {
        let mut writer = self.writer();
        if frame.emit(&mut writer).is_err() {
            return false;
        }
        self.frames_len += writer.len();
        self.asks |= frame.is_ack_eliciting();
        true
    }

    /// Bytes of stream data that fit beside their frame.
    fn stream_room(&self, id: StreamId, offset: u64) -> Option<usize> {
        let header = 1 + varint::size(u64::from(id.0)) + varint::size(offset) + 2;
        if self.sent.is_full() || self.frames_len + header > FRAMES_LEN || self.tail.is_some() {
            return None;
        }
        self.left().checked_sub(header)
    }

    /// Where the next payload of `len` bytes goes.
    fn payload_room(&mut self, len: usize) -> &mut [u8] {
        let at = PACKET_HEADER_LEN + self.payload;
        &mut self.room[at..at + len]
    }
}

impl Endpoint {
    /// Builds a packet behind FINISH, if the session has something to say.
    pub(super) fn build_packet<S: Source>(
        &mut self,
        index: u32,
        room: &mut [u8],
        source: &mut S,
    ) -> Option<usize> {
        if room.len() < usize::from(self.config.transport.min_datagram) / 2
            || !self.sessions[index].has_work()
        {
            return None;
        }
        self.build(index, room, true, false, source)
    }

    /// Builds and seals one packet in `room`; returns its length, or `None` if there was nothing to put in.
    pub(super) fn build<S: Source>(
        &mut self,
        index: u32,
        room: &mut [u8],
        asks: bool,
        marked: bool,
        source: &mut S,
    ) -> Option<usize> {
        if self.sessions[index].recovery.packet_number() >= LAST_NUMBER {
            self.end(index, End::exhausted());
        }
        let mut draft = Draft::new(room);
        draft.known_only = self.sessions[index].recovery.doubts_packets();
        if self.sessions[index].phase == Phase::Closing {
            self.put_close(index, &mut draft);
            return self.seal(index, draft, None);
        }
        let recovery = &self.sessions[index].recovery;
        if asks && !self.sent.may_send(&recovery.sent) {
            self.put_without_record(index, &mut draft, source);
        } else {
            self.put_ack(index, &mut draft);
            if asks {
                self.put_news(index, &mut draft, source);
            }
        }
        if draft.frames_len == 0 && draft.tail.is_none() {
            return None;
        }
        self.finish(index, draft, marked, source)
    }

    /// What asks for an acknowledgement, as long as there is room.
    fn put_news<S: Source>(&mut self, index: u32, draft: &mut Draft<'_>, source: &mut S) {
        self.put_control(index, draft);
        self.put_stream_control(index, draft);
        if self.sessions[index].may_send() {
            self.put_lost(index, draft, source, false);
            self.put_datagrams(index, draft);
            self.put_streams(index, draft, source);
        }
        self.put_probe(index, draft, source);
    }

    /// What may leave although no record is free: a lost packet, whole, so that it hands its record on, or a probe.
    fn put_without_record<S: Source>(&mut self, index: u32, draft: &mut Draft<'_>, source: &mut S) {
        let recovery = &mut self.sessions[index].recovery;
        // An ACK might take the room of a lost packet.
        if recovery.sent.lost.is_empty() {
            self.put_ack(index, draft);
        }
        if self.sessions[index].recovery.probes == 2 && self.put_reports(index, draft) {
            self.sessions[index].recovery.probes -= 1;
            return;
        }
        self.put_lost(index, draft, source, true);
        self.put_probe(index, draft, source);
    }

    /// Adds frames about refused bytes, which stay pending: they may be what an answer waits for.
    fn put_reports(&mut self, index: u32, draft: &mut Draft<'_>) -> bool {
        let mut cursor = self.sessions[index].streams.control.front();
        for _ in 0..REPORT_SCAN {
            let Some(slot) = cursor else { break };
            cursor = self.streams.next_control(slot);
            let stream = self.streams.stream(slot);
            for bit in [Bits::HOLES, Bits::TAKEN] {
                if stream.pending.contains(bit)
                    && let Some(frame) = stream.frame(bit)
                {
                    draft.unrecorded |= draft.push(&frame);
                }
            }
        }
        draft.unrecorded
    }

    /// Seals the packet and remembers it.
    fn finish<S: Source>(
        &mut self,
        index: u32,
        mut draft: Draft<'_>,
        marked: bool,
        source: &mut S,
    ) -> Option<usize> {
        let handle = self.handle_of(index);
        let tail = draft.tail.take();
        let lent = tail.and_then(|tail| {
            let len = usize::from(tail.piece.len);
            source.lend(handle, tail.id, tail.piece.offset, len).filter(|bytes| bytes.len() == len)
        });
        match (tail, lent) {
            (Some(tail), Some(bytes)) => {
                record_piece(&mut draft, &self.streams, tail, tail.piece);
                draft.payload = bytes.len();
                let memo = Memo::take(&mut draft, marked);
                let len = self.seal(index, draft, Some(bytes))?;
                self.remember(index, len, memo);
                return Some(len);
            }
            (Some(tail), None) => self.fill_tail(index, &mut draft, tail, source),
            (None, _) => {}
        }
        if draft.frames_len == 0 {
            return None;
        }
        let memo = Memo::take(&mut draft, marked);
        let len = self.seal(index, draft, None)?;
        self.remember(index, len, memo);
        Some(len)
    }

    fn fill_tail<S: Source>(&mut self, index: u32, draft: &mut Draft<'_>, tail: Tail, source: &mut S) {
        let handle = self.handle_of(index);
        let Tail { slot, id, piece } = tail;
        let filled = fill(&mut self.streams, slot, handle, id, piece, draft, source);
        if let Some(piece) = self.settle_fill(index, slot, piece, filled) {
            draft.payload += usize::from(piece.len);
            record_piece(draft, &self.streams, tail, piece);
        }
    }

    /// The source gave `filled` bytes of a piece: fewer than asked for mean that its data ended early.
    fn settle_fill(&mut self, index: u32, slot: u32, piece: Piece, filled: usize) -> Option<Piece> {
        if filled >= usize::from(piece.len) {
            return Some(piece);
        }
        let lists = &mut self.sessions[index].streams;
        if let Some(send) = &mut self.streams.stream(slot).send {
            send.reset(0);
        }
        self.streams.want(lists, slot, Bits::RESET);
        self.streams.refresh_ready(lists, slot);
        None
    }

    /// Writes header and trailer, seals, protects the header. `lent` is the payload if it is not in place.
    fn seal(&mut self, index: u32, draft: Draft<'_>, lent: Option<&[u8]>) -> Option<usize> {
        let session = &mut self.sessions[index];
        let keys = session.keys.as_ref()?;
        let destination = session.cids.remote()?;
        let rng = &mut self.rng;
        let number = session.recovery.next_number(|window| rng.below(window));
        let ignored = rng.next_u64() & 1 != 0;
        let header = PacketHeader { phase: 0, ignored, destination, number: number as u32 }.to_bytes();
        let Draft { room, payload, frames, frames_len, .. } = draft;
        let len = PACKET_HEADER_LEN + payload + frames_len + TRAILER_LEN + TAG_LEN;
        let packet = &mut room[..len];
        packet[..PACKET_HEADER_LEN].copy_from_slice(&header);
        let at = PACKET_HEADER_LEN + payload;
        packet[at..at + frames_len].copy_from_slice(&frames[..frames_len]);
        packet[at + frames_len..][..TRAILER_LEN].copy_from_slice(&(frames_len as u16).to_be_bytes());
        let body = &mut packet[PACKET_HEADER_LEN..];
        match lent {
            Some(payload) => keys.seal.seal_from(number, &header, payload, body),
            None => keys.seal.seal_in_place(number, &header, body),
        }
        let sample = packet[PACKET_HEADER_LEN..].first_chunk()?;
        let mask = keys.seal_header.mask(sample);
        apply_mask(packet, mask);
        session.recovery.spend_number();
        session.packets_sent += 1;
        session.sent_since = true;
        Some(len)
    }

    /// Keeps a record of what asks for an acknowledgement.
    fn remember(&mut self, index: u32, len: usize, memo: Memo) {
        let Memo { asks, acked, ect, unrecorded, frames } = memo;
        let session = &mut self.sessions[index];
        if acked.is_some() {
            self.stats.acks_sent += 1;
            session.acks.on_sent(asks);
        }
        if ect {
            session.recovery.ecn.on_marked();
        }
        if unrecorded {
            session.recovery.on_sent_unrecorded(self.now);
        } else if asks {
            let number = session.recovery.packet_number() - 1;
            let (size, app_limited) = (len as u16, session.recovery.app_limited);
            let packet = SentPacket { number, sent_at: self.now, size, ect, app_limited, acked, frames };
            session.recovery.on_sent(&mut self.sent, packet);
        }
    }

    fn put_close(&mut self, index: u32, draft: &mut Draft<'_>) {
        if let Some(ending) = &self.sessions[index].ending
            && let Some((application, code)) = ending.frame
        {
            draft.push(&if application { Frame::CloseApp { code } } else { Frame::Close { code } });
        }
        self.forget_close(index);
    }

    fn put_ack(&mut self, index: u32, draft: &mut Draft<'_>) {
        let now = self.now;
        let session = &mut self.sessions[index];
        if !session.acks.has_news() {
            return;
        }
        let mut ranges = [(0, 0); MAX_ACK_RANGES];
        let count = session.window.ranges(session.acks.floor(), &mut ranges);
        // Numbers behind refused bytes wait until the peer knows of those (`PROTO §7.5`).
        let hold = session.acks.hold.unwrap_or(u64::MAX);
        let reported = ranges[..count]
            .iter()
            .filter(|&&(low, _)| low < hold)
            .map(|&(low, high)| (low, high.min(hold.saturating_sub(1))));
        let Some(largest) = reported.clone().next().map(|(_, high)| high) else {
            session.acks.on_sent(false);
            return;
        };
        let delay = session.acks.delay(now).as_micros().min(1 << 40) as u64;
        let ecn = &session.acks.ecn;
        let ecn = ecn.any().then_some(EcnCounts { ect0: ecn.ect0, ect1: ecn.ect1, ce: ecn.ce });
        let mut writer = draft.writer();
        let ack = AckRepr { ranges: reported, delay_micros: delay, ecn };
        if ack.emit(&mut writer).is_ok() {
            draft.frames_len += writer.len();
            draft.acked = Some(largest);
        }
    }

    fn put_control(&mut self, index: u32, draft: &mut Draft<'_>) {
        let session = &mut self.sessions[index];
        if session.acks.wants_reply() && draft.acked.is_some() {
            session.control.0 |= Control::PING;
        }
        let pending = session.control.0;
        if pending == 0 {
            return;
        }
        let mut done = 0;
        for bit in (0..12).map(|shift| 1u32 << shift).filter(|bit| pending & bit != 0) {
            let Some(frame) = session.control_frame(bit) else {
                session.control.0 &= !bit;
                continue;
            };
            if draft.push(&frame) {
                done |= bit;
            }
        }
        session.control.0 &= !done;
        if done != 0 {
            let _ = draft.sent.push(SentFrame::Session { bits: done });
        }
    }

    fn put_stream_control(&mut self, index: u32, draft: &mut Draft<'_>) {
        let lists = &mut self.sessions[index].streams;
        while let Some(slot) = lists.control.front() {
            if draft.sent.is_full() {
                return;
            }
            let generation = self.streams.generation(slot);
            let stream = self.streams.stream(slot);
            let mut done = Bits::default();
            let report = stream.recv.as_ref().and_then(|recv| recv.report).map_or(0, |report| report.number);
            for bit in [Bits::RESET, Bits::STOP, Bits::HOLES, Bits::TAKEN, Bits::CREDIT, Bits::BLOCKED] {
                if !stream.pending.contains(bit) {
                    continue;
                }
                match stream.frame(bit) {
                    Some(frame) if draft.push(&frame) => {
                        done.insert(bit);
                        stream.pending.remove(bit);
                    }
                    Some(_) => {}
                    None => stream.pending.remove(bit),
                }
            }
            let blocked = !stream.pending.is_empty();
            if !done.is_empty() {
                let _ = draft.sent.push(SentFrame::Stream { slot, generation, bits: done, report });
            }
            self.streams.refresh_control(lists, slot);
            if blocked {
                return;
            }
        }
    }

    /// Data of lost packets first: the receiver waits for it. With `one`, a single packet's, and whole.
    fn put_lost<S: Source>(&mut self, index: u32, draft: &mut Draft<'_>, source: &mut S, one: bool) {
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
        let handle = self.handle_of(index);
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
        if part < len && (part == 0 || whole) {
            return Some(frame);
        }
        let piece = Piece { offset, len: part, fin: fin && part == len };
        let filled = fill(&mut self.streams, slot, handle, id, piece, draft, source);
        let piece = self.settle_fill(index, slot, piece, filled)?;
        draft.payload += usize::from(piece.len);
        record_piece(draft, &self.streams, Tail { slot, id, piece }, piece);
        let (offset, len) = (offset + u64::from(part), len - part);
        (len > 0).then_some(SentFrame::Data { slot, generation, offset, len, fin })
    }

    fn put_datagrams(&mut self, index: u32, draft: &mut Draft<'_>) {
        while let Some(len) = put_datagram(&self.datagrams, &self.sessions[index].datagrams, draft) {
            draft.payload += len;
            if self.datagrams.pop(&mut self.sessions[index].datagrams) {
                self.notify(index, EventBits::DATAGRAMS);
            }
        }
    }

    fn put_streams<S: Source>(&mut self, index: u32, draft: &mut Draft<'_>, source: &mut S) {
        let handle = self.handle_of(index);
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
            let filled = fill(&mut self.streams, slot, handle, id, piece, draft, source);
            if let Some(piece) = self.settle_fill(index, slot, piece, filled) {
                draft.payload += usize::from(piece.len);
                record_piece(draft, &self.streams, tail, piece);
            }
        }
    }

    /// A probe carries the oldest data in flight, or at least a PING (RFC 9002 §6.2.4).
    fn put_probe<S: Source>(&mut self, index: u32, draft: &mut Draft<'_>, source: &mut S) {
        let session = &mut self.sessions[index];
        if session.recovery.probes == 0 {
            return;
        }
        session.recovery.probes -= 1;
        if draft.asks || draft.tail.is_some() {
            return;
        }
        let (recovery, mut scope) = super::frames::Scope::split(index, session, &mut self.streams);
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

impl crate::session::SessionState {
    /// The frame of one control bit, if it still has something to say.
    fn control_frame(&mut self, bit: u32) -> Option<Frame<'static>> {
        let offer = self.streams.offer;
        match bit {
            Control::PING => return Some(Frame::Ping),
            Control::AUTHORIZED => return (self.role == Role::Responder).then_some(Frame::Authorized),
            Control::MAX_BI | Control::MAX_UNI => {
                let dir = if bit == Control::MAX_BI { Dir::Bi } else { Dir::Uni };
                let count = self.streams.count(dir);
                count.allowed = count.allowed.max(count.finished + offer);
                let count = u64::from(count.allowed);
                return Some(match dir {
                    Dir::Bi => Frame::MaxStreamsBi { count },
                    Dir::Uni => Frame::MaxStreamsUni { count },
                });
            }
            _ => {}
        }
        let slot = bit.trailing_zeros() as usize;
        if bit >= Control::RETIRE_ID {
            return self.cids.retiring(slot - 8).map(|sequence| Frame::RetireConnectionId { sequence });
        }
        let new = self.cids.local(slot - 4)?;
        Some(Frame::NewConnectionId { sequence: new.sequence, retire_prior_to: 0, id: new.id })
    }
}

impl crate::stream::Stream {
    /// The frame of one pending bit, if it still has something to say.
    fn frame(&self, bit: Bits) -> Option<Frame<'static>> {
        let stream = self.id.0;
        Some(match bit {
            Bits::RESET => {
                let send = self.send.as_ref()?;
                Frame::ResetStream { stream, code: send.reset?, final_size: send.sent() }
            }
            Bits::STOP => Frame::StopSending { stream, code: self.recv.as_ref()?.stopped? },
            Bits::CREDIT => Frame::MaxStreamData { stream, credit: self.recv.as_ref()?.credit() },
            Bits::HOLES => {
                let report = self.recv.as_ref()?.report?;
                let (offset, len) = (report.start, report.end - report.start);
                Frame::StreamHoles { stream, report: report.number, offset, len }
            }
            Bits::TAKEN => Frame::HolesTaken { stream, report: self.send.as_ref()?.last_report() },
            _ => Frame::StreamBlocked { stream, credit: self.send.as_ref()?.credit() },
        })
    }
}

/// Copies a piece of a stream to its place in the packet; returns how many bytes there were.
fn fill<S: Source>(
    streams: &mut StreamPool,
    slot: u32,
    handle: SessionHandle,
    id: StreamId,
    piece: Piece,
    draft: &mut Draft<'_>,
    source: &mut S,
) -> usize {
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
fn record_piece(draft: &mut Draft<'_>, streams: &StreamPool, tail: Tail, piece: Piece) {
    let Piece { offset, len, fin } = piece;
    draft.push_stream(tail.id, piece);
    let (slot, generation) = (tail.slot, streams.generation(tail.slot));
    let _ = draft.sent.push(SentFrame::Data { slot, generation, offset, len, fin });
}

impl Draft<'_> {
    /// Adds a STREAM frame; its room was reserved by `stream_room`, its payload may count already.
    fn push_stream(&mut self, id: StreamId, piece: Piece) {
        let Piece { offset, len, fin } = piece;
        let mut writer = Writer::new(&mut self.frames[self.frames_len..]);
        if (Frame::Stream { stream: id.0, offset, len, fin }).emit(&mut writer).is_ok() {
            self.frames_len += writer.len();
            self.asks = true;
        }
    }
}

/// Adds the next datagram if it fits; returns its length.
fn put_datagram(
    pool: &DatagramPool,
    queue: &crate::stream::DatagramQueue,
    draft: &mut Draft<'_>,
) -> Option<usize> {
    let data = pool.front(queue)?;
    let len = data.len();
    let frame = Frame::Datagram { len: len as u16 };
    if len + frame.encoded_len() > draft.left() || draft.frames_len + frame.encoded_len() > FRAMES_LEN {
        return None;
    }
    draft.payload_room(len).copy_from_slice(data);
    draft.push(&frame).then_some(len)
}
