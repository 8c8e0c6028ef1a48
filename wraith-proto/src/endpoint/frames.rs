//! What received frames do to a session. Stream data itself is lent by `Received`.

use super::Endpoint;
use super::lifecycle::{End, Violation};
use super::scope::{Context, Credits, Scope};
use crate::config::LONGEST_ACK_DELAY;
use crate::crypto::Role;
use crate::error::{CloseReason, DropReason};
use crate::meta::Ecn;
use crate::recovery::MtuNews;
use crate::session::{Control, EventBits, Numbered, Phase, Sequence, SessionState};
use crate::stream::{Dir, StreamId};
use crate::wire::{Frame, Frames};

/// What is known of a packet's frames before any of them takes effect.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Summary {
    /// A frame asks for an acknowledgement.
    pub(super) asks: bool,
    /// A frame is about where the ends are.
    pub(super) path: bool,
}

/// Why a packet's frames take no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unfit {
    /// They break the protocol.
    Violation,
    /// They need streams that the pool does not have: the packet is dropped and comes again (`PROTO §7.7`).
    Full,
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
            summary.path |= matches!(frame, Frame::PathChallenge { .. } | Frame::PathResponse { .. });
            data += frame.data_len();
            let stream = stream_of(&frame);
            let is_data = stream.is_some() || matches!(frame, Frame::Datagram { .. });
            if is_data && session.phase == Phase::Pending {
                return Err(Unfit::Violation);
            }
            if let Some(id) = stream {
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
        let (now, max_delay) = (self.now, self.config.transport.max_ack_delay.min(LONGEST_ACK_DELAY));
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
        self.report_mtu(index);
        if !self.sessions[index].streams.events.is_empty() {
            self.event_links.push_back(&mut self.news, index);
        }
    }

    /// Tells of another datagram size, or ends the session if the path does not carry the least.
    pub(super) fn report_mtu(&mut self, index: u32) {
        match self.sessions[index].recovery.path_mtu.take_news() {
            Some(MtuNews::Changed) => {
                self.trace_mtu(index);
                self.notify(index, EventBits::MAX_DATAGRAM);
            }
            Some(MtuNews::NoPath) => self.end(index, End::path_too_small()),
            None => {}
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
                let (recovery, scope) = Scope::split(index, &mut self.sessions[index], &mut self.streams);
                let mut scope = self.hook.watch(now, index, scope);
                let before = (recovery.packets_lost, recovery.spurious);
                recovery.on_ack(now, ack, &mut self.sent, &mut scope).map_err(|_| Violation)?;
                self.stats.packets_lost += recovery.packets_lost - before.0;
                self.stats.spurious_losses += recovery.spurious - before.1;
                self.after_acks(index);
                self.trace_metrics(index);
            }
            Frame::Close { code } => self.end(index, End::silent(close_reason(code))),
            Frame::CloseApp { code } => self.end(index, End::silent(CloseReason::Peer(code))),
            Frame::MaxStreamsBi { count } => self.on_max_streams(index, Dir::Bi, count),
            Frame::MaxStreamsUni { count } => self.on_max_streams(index, Dir::Uni, count),
            Frame::NewConnectionId { sequence, retire_prior_to, id } => {
                let session = &mut self.sessions[index];
                let new = Numbered { sequence: Sequence::new(sequence), id };
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
                    if !self.redials.is_pending(index) {
                        self.notify(index, EventBits::CONNECTED);
                    }
                }
            }
            Frame::KeyShare(ref share) => self.on_key_share(index, share)?,
            Frame::Padding { .. }
            | Frame::Ping
            | Frame::Datagram { .. }
            | Frame::Extension { .. }
            | Frame::PathChallenge { .. }
            | Frame::PathResponse { .. } => {}
            _ => return self.apply_stream_frame(index, frame),
        }
        Ok(())
    }

    fn apply_stream_frame(&mut self, index: u32, frame: &Frame<'_>) -> Result<(), Violation> {
        let transport = &self.config.transport;
        let session = &mut self.sessions[index];
        let context = Context {
            now: self.now,
            rtt: session.recovery.rtt.smoothed(),
            max_window: transport.max_window,
            manual: transport.manual_credit,
            credits: Credits { own: transport.stream_window, peer: session.peer_parameters.stream_credit },
        };
        let (recovery, mut scope) = Scope::split(index, session, &mut self.streams);
        match *frame {
            Frame::HolesTaken { stream, report } => {
                if scope.take_answer(stream, report, &context)? {
                    recovery.on_answer();
                }
            }
            Frame::StopSending { .. } | Frame::MaxStreamData { .. } | Frame::StreamHoles { .. } => {
                scope.apply_to_sender(frame, &context)?;
            }
            _ => scope.apply_to_receiver(frame, &context)?,
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
        super::lifecycle::CODE_PATH => CloseReason::PathTooSmall,
        super::lifecycle::CODE_REPLACED => CloseReason::Replaced,
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
