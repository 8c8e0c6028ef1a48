//! What received frames do to a session. Stream data itself is lent by `Received`.

use super::Endpoint;
use super::lifecycle::{End, Violation};
use crate::crypto::Role;
use crate::error::{CloseReason, DropReason};
use crate::meta::Ecn;
use crate::recovery::{AckSink, Acks, Recovery, SentFrame};
use crate::session::{Cids, Control, EventBits, Numbered, Phase, SessionState};
use crate::stream::{Arrival, Bits, Dir, RecvHalf, SendHalf, SessionStreams, StreamId, StreamPool};
use crate::wire::{Frame, Frames};

/// What is known of a packet's frames before any of them takes effect.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Summary {
    /// A frame asks for an acknowledgement.
    pub(super) asks: bool,
}

/// Why a packet's frames take no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unfit {
    /// They break the protocol.
    Violation,
    /// They need streams that the pool does not have: the packet is dropped and comes again (`PROTO §7.7`).
    Full,
}

/// A session's view of what frames about streams, ids and acknowledgements touch, apart from its recovery.
pub(super) struct Scope<'a> {
    index: u32,
    role: Role,
    pub(super) streams: &'a mut StreamPool,
    pub(super) lists: &'a mut SessionStreams,
    pub(super) control: &'a mut Control,
    acks: &'a mut Acks,
    cids: &'a mut Cids,
    reports: &'a mut u32,
}

impl<'a> Scope<'a> {
    /// Splits a session into its recovery and the rest.
    pub(super) fn split(
        index: u32,
        session: &'a mut SessionState,
        streams: &'a mut StreamPool,
    ) -> (&'a mut Recovery, Self) {
        let scope = Self {
            index,
            role: session.role,
            streams,
            lists: &mut session.streams,
            control: &mut session.control,
            acks: &mut session.acks,
            cids: &mut session.cids,
            reports: &mut session.reports,
        };
        (&mut session.recovery, scope)
    }

    /// Frees the stream if it is over, and makes room for another of the peer's.
    pub(super) fn retire(&mut self, slot: u32) {
        let unreported = self.streams.stream(slot).recv.as_ref().is_some_and(|recv| recv.report.is_some());
        let Some(id) = self.streams.free_if_over(self.lists, self.index, slot) else { return };
        if unreported {
            self.settle_report();
        }
        if id.opener() == self.role {
            return;
        }
        let offer = self.lists.offer;
        let count = self.lists.count(id.dir());
        count.finished += 1;
        if (count.finished + offer).saturating_sub(count.allowed) * 2 >= offer {
            self.control.0 |= match id.dir() {
                Dir::Bi => Control::MAX_BI,
                Dir::Uni => Control::MAX_UNI,
            };
        }
    }

    /// A report of refused bytes was made.
    pub(super) fn add_report(&mut self, slot: u32, packet_number: u64) {
        *self.reports += 1;
        self.hold(packet_number);
        self.streams.want(self.lists, slot, Bits::HOLES);
    }

    /// More bytes were refused while a report is under way.
    pub(super) fn hold(&mut self, packet_number: u64) {
        self.acks.hold = Some(self.acks.hold.map_or(packet_number, |hold| hold.min(packet_number)));
    }

    /// The peer took a report of refused bytes.
    fn on_report_taken(&mut self, slot: u32, report: u64) {
        let Some(recv) = &mut self.streams.stream(slot).recv else { return };
        let Some(another) = recv.on_report_taken(report) else { return };
        // The peer holds the stream since it took the report: an earlier grant may have come before.
        let mut bits = if recv.is_paused() { Bits::default() } else { Bits::CREDIT };
        if another {
            bits.insert(Bits::HOLES);
        } else {
            self.settle_report();
        }
        if !bits.is_empty() {
            self.streams.want(self.lists, slot, bits);
        }
    }

    /// A report was settled; the last one lets acknowledgements flow again.
    fn settle_report(&mut self) {
        *self.reports = self.reports.saturating_sub(1);
        if *self.reports == 0 {
            self.acks.hold = None;
            self.acks.hurry();
        }
    }

    /// The slot of a stream that a frame names; `None` if it is over. A stream of the peer is opened if it is new.
    fn find(&mut self, id: u32, sends: bool, parameters: Credits) -> Result<Option<u32>, Violation> {
        let id = StreamId(id);
        let own = id.opener() == self.role;
        if id.dir() == Dir::Uni && own != sends {
            return Err(Violation);
        }
        let count = *self.lists.count(id.dir());
        let known = if own { count.opened } else { count.accepted };
        if id.sequence() < known {
            return Ok(self.streams.find(self.index, id));
        }
        if own || id.sequence() >= count.allowed {
            return Err(Violation);
        }
        for sequence in known..=id.sequence() {
            let id = StreamId::new(id.opener(), id.dir(), sequence);
            let send = (id.dir() == Dir::Bi).then(|| SendHalf::new(parameters.peer));
            let recv = Some(RecvHalf::new(parameters.own));
            let slot = self.streams.open(self.lists, self.index, id, send, recv).ok_or(Violation)?;
            self.lists.count(id.dir()).accepted += 1;
            self.streams.notify(self.lists, slot, Bits::OPENED);
        }
        Ok(self.streams.find(self.index, id))
    }
}

/// Credit that new streams start with, given by each end.
#[derive(Clone, Copy, Debug)]
struct Credits {
    own: u64,
    peer: u64,
}

impl AckSink for Scope<'_> {
    fn acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Data { slot, generation, offset, len, fin } => {
                let Some(stream) = self.streams.lookup(slot, generation) else { return };
                let Some(send) = &mut stream.send else { return };
                send.on_acked(crate::stream::Piece { offset, len, fin });
                if send.take_delivered() {
                    self.streams.notify(self.lists, slot, Bits::DELIVERED);
                } else if send.blocked && send.has_room() {
                    send.blocked = false;
                    self.streams.notify(self.lists, slot, Bits::WRITABLE);
                }
            }
            SentFrame::Stream { slot, generation, bits, report } => {
                let Some(stream) = self.streams.lookup(slot, generation) else { return };
                if bits.contains(Bits::RESET)
                    && let Some(send) = &mut stream.send
                {
                    send.reset_acked = true;
                }
                if bits.contains(Bits::HOLES) {
                    self.on_report_taken(slot, report);
                }
                self.retire(slot);
            }
            SentFrame::Session { bits } => {
                for slot in 0..4 {
                    if bits & Control::RETIRE_ID << slot != 0 {
                        self.cids.on_retire_acked(slot);
                    }
                }
            }
        }
    }

    fn lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Data { .. } => {}
            SentFrame::Stream { slot, generation, bits, .. } => {
                if self.streams.lookup(slot, generation).is_some() {
                    self.streams.want(self.lists, slot, bits);
                }
            }
            SentFrame::Session { bits } => self.control.0 |= bits & !Control::PING,
        }
    }

    fn ack_seen(&mut self, largest: u64) {
        self.acks.on_acked(largest);
    }
}

impl Endpoint {
    /// Looks at all frames of an authentic packet before any takes effect.
    pub(super) fn check_frames(&self, index: u32, payload: usize, frames: &[u8]) -> Result<Summary, Unfit> {
        let session = &self.sessions[index];
        let mut summary = Summary::default();
        let mut data = 0usize;
        let mut new_streams = [0u32; 2];
        for frame in Frames::new(frames) {
            let frame = frame.map_err(|_| Unfit::Violation)?;
            summary.asks |= frame.is_ack_eliciting();
            data += frame.data_len();
            if frame.data_len() > 0 && session.phase == Phase::Pending {
                return Err(Unfit::Violation);
            }
            if let Some(id) = stream_of(&frame) {
                let id = StreamId(id);
                let new = &mut new_streams[id.dir() as usize];
                *new = (*new).max(streams_to_open(session, id));
            }
        }
        if data != payload {
            return Err(Unfit::Violation);
        }
        if new_streams[0] + new_streams[1] > self.streams.free_slots() {
            return Err(Unfit::Full);
        }
        Ok(summary)
    }

    /// Lets the frames of an authentic packet take effect. They were checked.
    pub(super) fn apply_frames(&mut self, index: u32, frames: &[u8]) {
        for frame in Frames::new(frames).flatten() {
            if self.apply_frame(index, &frame).is_err() {
                self.end(index, End::violation());
            }
            if !self.sessions[index].is_open() {
                return;
            }
        }
    }

    /// Notes that a packet arrived: what to acknowledge, and the ECN mark.
    pub(super) fn note_packet(&mut self, index: u32, number: u64, expected: u64, asks: bool, ecn: Ecn) {
        let (now, max_delay) = (self.now, self.config.transport.max_ack_delay);
        let session = &mut self.sessions[index];
        let rtt = session.recovery.rtt.smoothed();
        session.acks.on_packet(now, number, expected, asks, rtt, max_delay);
        session.acks.ecn.record(ecn);
        if ecn == Ecn::Ce {
            session.acks.hurry();
        }
    }

    /// Streams and events after an acknowledgement was processed.
    pub(super) fn after_acks(&mut self, index: u32) {
        if !self.sessions[index].streams.events.is_empty() {
            self.event_links.push_back(&mut self.news, index);
        }
    }

    /// Time passes without answer: the reports that the peer has not taken are repeated, since as long as this end
    /// withholds acknowledgements the peer may withhold its own (`PROTO §7.5`).
    pub(super) fn repeat_reports(&mut self, index: u32) {
        let session = &mut self.sessions[index];
        if session.reports > 0 {
            self.streams.repeat_reports(&mut session.streams);
        }
    }

    /// Raises session events.
    pub(super) fn notify(&mut self, index: u32, bits: u8) {
        self.sessions[index].events.0 |= bits;
        self.event_links.push_back(&mut self.news, index);
    }

    fn apply_frame(&mut self, index: u32, frame: &Frame<'_>) -> Result<(), Violation> {
        match *frame {
            Frame::Ack(ref ack) => {
                let now = self.now;
                let (recovery, mut scope) = Scope::split(index, &mut self.sessions[index], &mut self.streams);
                let before = (recovery.packets_lost, recovery.spurious);
                recovery.on_ack(now, ack, &mut self.sent, &mut scope).map_err(|_| Violation)?;
                self.stats.packets_lost += recovery.packets_lost - before.0;
                self.stats.spurious_losses += recovery.spurious - before.1;
                self.after_acks(index);
            }
            Frame::Close { code } => self.end(index, End::silent(close_reason(code))),
            Frame::CloseApp { code } => self.end(index, End::silent(CloseReason::Peer(code))),
            Frame::MaxStreamsBi { count } => self.on_max_streams(index, Dir::Bi, count),
            Frame::MaxStreamsUni { count } => self.on_max_streams(index, Dir::Uni, count),
            Frame::NewConnectionId { sequence, retire_prior_to, id } => {
                let session = &mut self.sessions[index];
                let new = Numbered { sequence, id };
                let bits = session.cids.on_new(new, retire_prior_to).map_err(|_| Violation)?;
                session.control.0 |= u32::from(bits) * Control::RETIRE_ID;
            }
            Frame::RetireConnectionId { sequence } => {
                let retired = self.sessions[index].cids.on_retire(sequence).map_err(|_| Violation)?;
                if let Some(id) = retired {
                    self.routes.remove(id.as_u64());
                    self.issue_ids(index);
                }
            }
            Frame::Authorized => {
                let session = &mut self.sessions[index];
                if session.role == Role::Responder {
                    return Err(Violation);
                }
                if session.phase == Phase::Waiting {
                    session.phase = Phase::Live;
                    self.notify(index, EventBits::CONNECTED);
                }
            }
            Frame::Padding { .. } | Frame::Ping | Frame::Datagram { .. } | Frame::Extension { .. } => {}
            _ => return self.apply_stream_frame(index, frame),
        }
        Ok(())
    }

    fn apply_stream_frame(&mut self, index: u32, frame: &Frame<'_>) -> Result<(), Violation> {
        let (now, max_window) = (self.now, self.config.transport.max_window);
        let manual = self.config.transport.manual_credit;
        let session = &mut self.sessions[index];
        let credits =
            Credits { own: self.config.transport.stream_window, peer: session.peer_parameters.stream_credit };
        let rtt = session.recovery.rtt.smoothed();
        let (_, mut scope) = Scope::split(index, session, &mut self.streams);
        match *frame {
            Frame::Stream { stream, offset, len, fin } => {
                let Some(slot) = scope.find(stream, false, credits)? else { return Ok(()) };
                let Some(recv) = &mut scope.streams.stream(slot).recv else { return Ok(()) };
                match recv.on_frame(offset, len, fin) {
                    Arrival::Violation => return Err(Violation),
                    Arrival::Ignored => scope.retire(slot),
                    Arrival::Accepted => {}
                }
            }
            Frame::ResetStream { stream, code, final_size } => {
                let Some(slot) = scope.find(stream, false, credits)? else { return Ok(()) };
                let (stream, ranges) = scope.streams.parts(slot);
                let Some(recv) = &mut stream.recv else { return Ok(()) };
                if recv.on_reset(code, final_size).ok_or(Violation)? {
                    recv.clear(ranges);
                    if recv.report.take().is_some() {
                        scope.settle_report();
                    }
                    scope.streams.notify(scope.lists, slot, Bits::WAS_RESET);
                }
            }
            Frame::StopSending { stream, code } => {
                let Some(slot) = scope.find(stream, true, credits)? else { return Ok(()) };
                let Some(send) = &mut scope.streams.stream(slot).send else { return Ok(()) };
                if send.stop(code) {
                    send.reset(code);
                    scope.streams.want(scope.lists, slot, Bits::RESET);
                    scope.streams.refresh_ready(scope.lists, slot);
                    scope.streams.notify(scope.lists, slot, Bits::STOPPED);
                }
            }
            Frame::MaxStreamData { stream, credit } => {
                let Some(slot) = scope.find(stream, true, credits)? else { return Ok(()) };
                if let Some(send) = &mut scope.streams.stream(slot).send {
                    send.grant(credit);
                    scope.streams.refresh_ready(scope.lists, slot);
                }
            }
            Frame::StreamHoles { stream, report, offset, len } => {
                let Some(slot) = scope.find(stream, true, credits)? else { return Ok(()) };
                scope.acks.hurry();
                if let Some(send) = &mut scope.streams.stream(slot).send {
                    send.on_holes(report, offset, len);
                    scope.streams.refresh_ready(scope.lists, slot);
                    scope.streams.want(scope.lists, slot, Bits::TAKEN);
                }
            }
            Frame::HolesTaken { stream, report } => {
                let Some(slot) = scope.find(stream, false, credits)? else { return Ok(()) };
                scope.on_report_taken(slot, report);
            }
            Frame::StreamBlocked { stream, credit } => {
                let Some(slot) = scope.find(stream, false, credits)? else { return Ok(()) };
                if let Some(recv) = &mut scope.streams.stream(slot).recv
                    && !manual
                {
                    recv.on_blocked(credit, max_window);
                    if recv.extend(now, rtt, max_window) {
                        scope.streams.want(scope.lists, slot, Bits::CREDIT);
                    }
                }
            }
            _ => {}
        }
        self.after_acks(index);
        Ok(())
    }

    fn on_max_streams(&mut self, index: u32, dir: Dir, limit: u64) {
        let session = &mut self.sessions[index];
        let count = session.streams.count(dir);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX).min(1 << 30);
        if limit > count.limit {
            count.limit = limit;
            if core::mem::take(&mut session.streams.wanted) {
                self.notify(index, EventBits::STREAMS);
            }
        }
    }
}

/// The stream that a frame is about, if it may open it.
fn stream_of(frame: &Frame<'_>) -> Option<u32> {
    match *frame {
        Frame::Stream { stream, .. }
        | Frame::ResetStream { stream, .. }
        | Frame::StopSending { stream, .. }
        | Frame::MaxStreamData { stream, .. }
        | Frame::StreamBlocked { stream, .. }
        | Frame::HolesTaken { stream, .. }
        | Frame::StreamHoles { stream, .. } => Some(stream),
        _ => None,
    }
}

/// How many streams a frame about `id` would open.
fn streams_to_open(session: &SessionState, id: StreamId) -> u32 {
    if id.opener() == session.role {
        return 0;
    }
    let count = match id.dir() {
        Dir::Bi => &session.streams.bi,
        Dir::Uni => &session.streams.uni,
    };
    if id.sequence() >= count.allowed { 0 } else { (id.sequence() + 1).saturating_sub(count.accepted) }
}

fn close_reason(code: u32) -> CloseReason {
    match code {
        super::lifecycle::CODE_REFUSED => CloseReason::Refused,
        super::lifecycle::CODE_EXHAUSTED => CloseReason::KeysExhausted,
        _ => CloseReason::Violation,
    }
}

impl From<Unfit> for DropReason {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Violation => Self::Malformed,
            Unfit::Full => Self::TableFull,
        }
    }
}
