//! Frames without payload: closes, acknowledgements, and what sessions and streams have to say.

use super::draft::Draft;
use crate::crypto::Role;
use crate::endpoint::{Endpoint, scope::Scope};
use crate::recovery::{Narrow64, SentFrame};
use crate::session::Control;
use crate::stream::{Bits, Dir, RecvHalf};
use crate::wire::{AckRepr, EcnCounts, Frame, KeyShare, MAX_ACK_RANGES};

/// Streams looked at for reports of refused bytes that a probe without a record carries.
const REPORT_SCAN: u32 = 16;

impl Endpoint {
    pub(super) fn put_close(&mut self, index: u32, draft: &mut Draft<'_>) {
        if let Some(ending) = &self.sessions[index].ending
            && let Some((application, code)) = ending.frame
        {
            draft.push(&if application { Frame::CloseApp { code } } else { Frame::Close { code } });
        }
        self.forget_close(index);
    }

    pub(super) fn put_ack(&mut self, index: u32, draft: &mut Draft<'_>) {
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
            draft.reported = largest + 1;
        }
    }

    pub(super) fn put_control(&mut self, index: u32, draft: &mut Draft<'_>) {
        let session = &mut self.sessions[index];
        if session.acks.wants_reply() && draft.reported > 0 {
            session.control.0 |= Control::PING;
        }
        let pending = session.control.0;
        if pending == 0 {
            return;
        }
        let mut done = 0;
        for bit in (0..Control::BITS).map(|shift| 1u32 << shift).filter(|bit| pending & bit != 0) {
            let Some(frame) = session.control_frame(bit) else {
                session.control.0 &= !bit;
                continue;
            };
            if draft.push(&frame) {
                done |= bit;
            }
        }
        session.control.0 &= !done;
        if done & Control::KEY_SHARE != 0 {
            done |= session.share_epoch() << Control::EPOCH_SHIFT;
        }
        if done != 0 {
            let _ = draft.sent.push(SentFrame::Session { bits: done });
        }
    }

    pub(super) fn put_stream_control(&mut self, index: u32, draft: &mut Draft<'_>) {
        while let Some(slot) = self.sessions[index].streams.control.front() {
            if draft.sent.is_full() {
                return;
            }
            let generation = self.streams.generation(slot);
            let stream = self.streams.stream(slot);
            let mut done = Bits::default();
            let (report, taken) = stream.recv.as_ref().map_or((0, true), RecvHalf::last_report);
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
            if taken && done.contains(Bits::CREDIT) {
                done.insert(Bits::SETTLES);
            }
            let blocked = !stream.pending.is_empty();
            if !done.is_empty() {
                let report = Narrow64::new(report);
                let _ = draft.sent.push(SentFrame::Stream { slot, generation, bits: done, report });
            }
            self.streams.refresh_control(&mut self.sessions[index].streams, slot);
            if blocked {
                return;
            }
            if done.is_empty() {
                // What was to be said is settled, and no acknowledgement will look at the stream again.
                Scope::split(index, &mut self.sessions[index], &mut self.streams).1.retire(slot);
            }
        }
    }

    /// Answers reports of refused bytes as freely as an ACK leaves: two ends that withhold acknowledgements from each
    /// other may have no records and no window left. Whoever misses an answer repeats the report (`PROTO §7.5`).
    pub(super) fn put_answers(&mut self, index: u32, draft: &mut Draft<'_>) {
        let asks = draft.asks;
        let mut cursor = self.sessions[index].streams.control.front();
        for _ in 0..REPORT_SCAN {
            let Some(slot) = cursor else { break };
            cursor = self.streams.next_control(slot);
            let stream = self.streams.stream(slot);
            if stream.pending.contains(Bits::TAKEN)
                && stream.frame(Bits::TAKEN).is_none_or(|frame| draft.push(&frame))
            {
                let (_, mut scope) = Scope::split(index, &mut self.sessions[index], &mut self.streams);
                scope.streams.unwant(scope.lists, slot, Bits::TAKEN);
                scope.retire(slot);
            }
        }
        draft.asks = asks;
    }

    /// Adds frames about refused bytes, which stay pending: they may be what an answer waits for.
    pub(super) fn put_reports(&mut self, index: u32, draft: &mut Draft<'_>) -> bool {
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
}

impl crate::session::SessionState {
    /// The frame of one control bit, if it still has something to say.
    fn control_frame(&mut self, bit: u32) -> Option<Frame<'_>> {
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
            Control::KEY_SHARE => {
                let (epoch, share) = self.keys.as_ref()?.share()?;
                return Some(Frame::KeyShare(KeyShare::x25519(epoch, share)));
            }
            _ => {}
        }
        let slot = bit.trailing_zeros() as usize;
        if bit >= Control::RETIRE_ID {
            return self.cids.retiring(slot - 8).map(|sequence| Frame::RetireConnectionId { sequence });
        }
        let new = self.cids.local(slot - 4)?;
        Some(Frame::NewConnectionId { sequence: new.sequence.get(), retire_prior_to: 0, id: new.id })
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
