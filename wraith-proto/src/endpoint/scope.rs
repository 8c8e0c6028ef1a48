//! The side of a session that frames about streams, ids and acknowledgements touch.

use core::time::Duration;

use super::lifecycle::Violation;
use crate::crypto::Role;
use crate::recovery::{AckSink, Acks, Recovery, SentFrame};
use crate::session::{Cids, Control, Keys, SessionState};
use crate::stream::{Arrival, Bits, Dir, Piece, RecvHalf, SendHalf, SessionStreams, StreamId, StreamPool};
use crate::time::Instant;
use crate::wire::Frame;

/// A session's view of what frames about streams, ids and acknowledgements touch, apart from its recovery.
pub(super) struct Scope<'a> {
    index: u32,
    role: Role,
    pub(super) streams: &'a mut StreamPool,
    pub(super) lists: &'a mut SessionStreams,
    pub(super) control: &'a mut Control,
    acks: &'a mut Acks,
    cids: &'a mut Cids,
    keys: Option<&'a mut Keys>,
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
            keys: session.keys.as_mut(),
            reports: &mut session.reports,
        };
        (&mut session.recovery, scope)
    }

    /// A frame about a stream that this end receives on.
    pub(super) fn apply_to_receiver(
        &mut self,
        frame: &Frame<'_>,
        context: &Context,
    ) -> Result<(), Violation> {
        match *frame {
            Frame::Stream { stream, offset, len, fin } => {
                let Some(slot) = self.find(stream, false, context.credits)? else { return Ok(()) };
                let Some(recv) = &mut self.streams.stream(slot).recv else { return Ok(()) };
                match recv.on_frame(offset, len, fin) {
                    Arrival::Violation => return Err(Violation),
                    Arrival::Ignored => self.retire(slot),
                    Arrival::Accepted => {}
                }
            }
            Frame::ResetStream { stream, code, final_size } => {
                let Some(slot) = self.find(stream, false, context.credits)? else { return Ok(()) };
                let (stream, ranges) = self.streams.parts(slot);
                let Some(recv) = &mut stream.recv else { return Ok(()) };
                let news = recv.on_reset(code, final_size).ok_or(Violation)?;
                // A half that is over already may still have a report: one that was stopped after its end had come.
                let reported = recv.report.take().is_some();
                if news {
                    recv.clear(ranges);
                    self.streams.notify(self.lists, slot, Bits::WAS_RESET);
                }
                if reported {
                    self.streams.unwant(self.lists, slot, Bits::HOLES);
                    self.settle_report();
                }
                self.retire(slot);
            }
            Frame::StreamBlocked { stream, credit } => {
                let Some(slot) = self.find(stream, false, context.credits)? else { return Ok(()) };
                if let Some(recv) = &mut self.streams.stream(slot).recv
                    && !context.manual
                {
                    recv.on_blocked(credit, context.max_window);
                    if recv.extend(context.now, context.rtt, context.max_window) {
                        self.streams.want(self.lists, slot, Bits::CREDIT);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A frame about a stream that this end sends on.
    pub(super) fn apply_to_sender(&mut self, frame: &Frame<'_>, context: &Context) -> Result<(), Violation> {
        match *frame {
            Frame::StopSending { stream, code } => {
                let Some(slot) = self.find(stream, true, context.credits)? else { return Ok(()) };
                let Some(send) = &mut self.streams.stream(slot).send else { return Ok(()) };
                if send.stop(code) {
                    send.reset(code);
                    self.streams.want(self.lists, slot, Bits::RESET);
                    self.streams.refresh_ready(self.lists, slot);
                    self.streams.notify(self.lists, slot, Bits::STOPPED);
                }
            }
            Frame::MaxStreamData { stream, credit } => {
                let Some(slot) = self.find(stream, true, context.credits)? else { return Ok(()) };
                if let Some(send) = &mut self.streams.stream(slot).send {
                    send.grant(credit);
                    self.streams.refresh_ready(self.lists, slot);
                }
            }
            Frame::StreamHoles { stream, report, offset, len } => {
                let Some(slot) = self.find(stream, true, context.credits)? else { return Ok(()) };
                self.acks.hurry();
                if let Some(send) = &mut self.streams.stream(slot).send {
                    send.on_holes(report, offset, len);
                    self.streams.refresh_ready(self.lists, slot);
                    self.streams.want(self.lists, slot, Bits::TAKEN);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// `HOLES_TAKEN` arrived; returns whether it settles a report.
    pub(super) fn take_answer(
        &mut self,
        stream: u32,
        report: u64,
        context: &Context,
    ) -> Result<bool, Violation> {
        let Some(slot) = self.find(stream, false, context.credits)? else { return Ok(false) };
        let news = self.on_report_taken(slot, report);
        self.retire(slot);
        Ok(news)
    }

    /// Frees the stream if it is over, and makes room for another of the peer's.
    pub(super) fn retire(&mut self, slot: u32) {
        if self.streams.stream(slot).recv.as_mut().is_some_and(RecvHalf::end_pause) {
            self.streams.want(self.lists, slot, Bits::CREDIT);
        }
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

    /// The peer took a report of refused bytes; returns whether that is news.
    fn on_report_taken(&mut self, slot: u32, report: u64) -> bool {
        let Some(recv) = &mut self.streams.stream(slot).recv else { return false };
        let Some(another) = recv.on_report_taken(report) else { return false };
        // The peer holds the stream since it took the report: an earlier grant may have come before.
        let waits = recv.is_paused() && !recv.is_over();
        let mut bits = if waits { Bits::default() } else { Bits::CREDIT };
        if another {
            bits.insert(Bits::HOLES);
        } else {
            // A repetition that still waits has nothing to say any more.
            self.streams.unwant(self.lists, slot, Bits::HOLES);
            self.settle_report();
        }
        if !bits.is_empty() {
            self.streams.want(self.lists, slot, bits);
        }
        true
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
pub(super) struct Credits {
    pub(super) own: u64,
    pub(super) peer: u64,
}

/// What frames about streams depend on beside the streams themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) now: Instant,
    pub(super) rtt: Duration,
    pub(super) max_window: u64,
    /// The application grants all credit.
    pub(super) manual: bool,
    pub(super) credits: Credits,
}

impl AckSink for Scope<'_> {
    fn acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Data { slot, generation, offset, len, fin } => {
                let Some(stream) = self.streams.lookup(slot, generation) else { return };
                let Some(send) = &mut stream.send else { return };
                send.on_acked(Piece { offset: offset.value(), len, fin });
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
                if let Some(recv) = &mut stream.recv {
                    if bits.contains(Bits::SETTLES) {
                        recv.on_settled(report.value());
                    }
                    if bits.contains(Bits::STOP) {
                        recv.on_stop_acked();
                    }
                }
                if bits.contains(Bits::HOLES) {
                    self.on_report_taken(slot, report.value());
                }
                self.retire(slot);
            }
            SentFrame::Session { bits } => {
                for slot in 0..4 {
                    if bits & Control::RETIRE_ID << slot != 0 {
                        self.cids.on_retire_acked(slot);
                    }
                }
                if bits & Control::KEY_SHARE != 0
                    && let Some(keys) = &mut self.keys
                {
                    keys.on_share_acked((bits >> Control::EPOCH_SHIFT) as u16);
                }
            }
        }
    }

    fn lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Data { .. } => {}
            SentFrame::Stream { slot, generation, mut bits, .. } => {
                bits.remove(Bits::SETTLES);
                if self.streams.lookup(slot, generation).is_some() {
                    self.streams.want(self.lists, slot, bits);
                }
            }
            SentFrame::Session { bits } => self.control.0 |= bits & Control::REPEATED,
        }
    }

    fn ack_seen(&mut self, below: u64) {
        self.acks.on_acked(below);
    }
}
