//! What applications ask of a session; `Session` is the public face of these.

use bytes::Bytes;

use super::Endpoint;
use super::lifecycle::End;
use crate::crypto::{Role, TAG_LEN};
use crate::error::{DatagramError, OpenError, ReadError, SessionError, WriteError};
use crate::session::{Control, EventBits, Phase, SessionState};
use crate::stats::SessionStats;
use crate::stream::{Bits, Dir, LEVELS, RecvHalf, SendHalf, StreamId};
use crate::time::Instant;
use crate::wire::PACKET_HEADER_LEN;

/// What one DATAGRAM frame costs beside its bytes: header, type and length, trailer, tag.
const DATAGRAM_OVERHEAD: usize = PACKET_HEADER_LEN + 3 + 2 + TAG_LEN;

impl Endpoint {
    pub(crate) fn state(&self, index: u32) -> &SessionState {
        &self.sessions[index]
    }

    pub(crate) fn authorize(&mut self, index: u32, now: Instant) -> Result<(), SessionError> {
        self.advance(now);
        let session = &mut self.sessions[index];
        if session.ending.is_some() {
            return Err(SessionError::Closed);
        }
        if session.phase != Phase::Pending {
            return Err(SessionError::NotPending);
        }
        if session.role == Role::Initiator {
            let slot = session.handshake.ok_or(SessionError::Closed)?;
            return self.authorize_dial(index, slot);
        }
        session.phase = Phase::Live;
        session.control.0 |= Control::AUTHORIZED;
        self.notify(index, EventBits::CONNECTED);
        self.settle(index);
        Ok(())
    }

    pub(crate) fn open_stream(&mut self, index: u32, dir: Dir) -> Result<StreamId, OpenError> {
        let own = self.config.transport.stream_window;
        let session = &mut self.sessions[index];
        if !session.may_send() {
            return Err(OpenError::Closed);
        }
        let (role, credit) = (session.role, session.peer_parameters.stream_credit);
        let count = session.streams.count(dir);
        if count.opened >= count.limit {
            session.streams.wanted = true;
            return Err(OpenError::PeerLimit);
        }
        let id = StreamId::new(role, dir, count.opened);
        let recv = (dir == Dir::Bi).then(|| RecvHalf::new(own));
        let send = Some(SendHalf::new(credit));
        self.streams.open(&mut session.streams, index, id, send, recv).ok_or(OpenError::LocalLimit)?;
        session.streams.count(dir).opened += 1;
        Ok(id)
    }

    pub(crate) fn write_stream(&mut self, index: u32, id: StreamId, chunk: Bytes) -> Result<(), WriteError> {
        self.sending(index, id, |send| send.write(chunk))
    }

    pub(crate) fn attach_stream(&mut self, index: u32, id: StreamId, len: u64) -> Result<(), WriteError> {
        self.sending(index, id, |send| send.attach(len))
    }

    pub(crate) fn finish_stream(&mut self, index: u32, id: StreamId) -> Result<(), WriteError> {
        self.sending(index, id, SendHalf::finish)
    }

    pub(crate) fn reset_stream(&mut self, index: u32, id: StreamId, code: u32) -> Result<(), WriteError> {
        let mut news = false;
        self.sending(index, id, |send| {
            news = send.reset(code);
            Ok(())
        })?;
        if news && let Some(slot) = self.streams.find(index, id) {
            self.streams.want(&mut self.sessions[index].streams, slot, Bits::RESET);
            self.settle(index);
        }
        Ok(())
    }

    pub(crate) fn set_stream_level(&mut self, index: u32, id: StreamId, level: u8) -> Result<(), WriteError> {
        let slot = self.streams.find(index, id).ok_or(WriteError::UnknownStream)?;
        let level = level.min(LEVELS as u8 - 1);
        self.streams.set_level(&mut self.sessions[index].streams, slot, level);
        Ok(())
    }

    pub(crate) fn grant_stream(&mut self, index: u32, id: StreamId, up_to: u64) -> Result<(), ReadError> {
        let up_to = up_to.min(crate::wire::varint::MAX);
        let slot = self.receiving(index, id)?;
        let Some(recv) = &mut self.streams.stream(slot).recv else { return Err(ReadError::UnknownStream) };
        if recv.grant(up_to) {
            self.streams.want(&mut self.sessions[index].streams, slot, Bits::CREDIT);
            self.settle(index);
        }
        Ok(())
    }

    pub(crate) fn stop_stream(&mut self, index: u32, id: StreamId, code: u32) -> Result<(), ReadError> {
        let slot = self.receiving(index, id)?;
        let (stream, ranges) = self.streams.parts(slot);
        let Some(recv) = &mut stream.recv else { return Err(ReadError::UnknownStream) };
        if recv.stopped.is_none() && !recv.is_over() {
            recv.stopped = Some(code);
            recv.clear(ranges);
            self.streams.want(&mut self.sessions[index].streams, slot, Bits::STOP);
            self.settle(index);
        }
        Ok(())
    }

    pub(crate) fn queue_datagram(&mut self, index: u32, data: Bytes) -> Result<(), DatagramError> {
        let max = self.max_datagram_of(index);
        let session = &mut self.sessions[index];
        if !session.may_send() {
            return Err(DatagramError::Closed);
        }
        if data.len() > max {
            return Err(DatagramError::TooLarge { max });
        }
        if !self.datagrams.push(&mut session.datagrams, data) {
            if session.datagrams.is_empty() {
                self.starved_links.push_back(&mut self.starved, index);
            }
            return Err(DatagramError::Blocked);
        }
        self.settle(index);
        Ok(())
    }

    pub(crate) fn max_datagram_of(&self, index: u32) -> usize {
        usize::from(self.sessions[index].mtu()) - DATAGRAM_OVERHEAD
    }

    pub(crate) fn hint_mtu(&mut self, index: u32, now: Instant, largest: u16) {
        self.advance(now);
        let now = self.now;
        self.sessions[index].recovery.on_mtu_hint(now, largest);
        self.report_mtu(index);
        self.settle(index);
    }

    pub(crate) fn ping_session(&mut self, index: u32) -> Result<(), SessionError> {
        let session = &mut self.sessions[index];
        if !session.is_open() {
            return Err(SessionError::Closed);
        }
        session.control.0 |= Control::PING;
        self.settle(index);
        Ok(())
    }

    pub(crate) fn close_session(&mut self, index: u32, now: Instant, code: u32) {
        self.advance(now);
        self.end(index, End::local(code));
    }

    /// Runs `change` on the sending half of a stream and brings its place among the senders up to date.
    fn sending(
        &mut self,
        index: u32,
        id: StreamId,
        change: impl FnOnce(&mut SendHalf) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let session = &mut self.sessions[index];
        if !session.may_send() {
            return Err(WriteError::Closed);
        }
        let slot = self.streams.find(index, id).ok_or(WriteError::UnknownStream)?;
        let send = self.streams.stream(slot).send.as_mut().ok_or(WriteError::UnknownStream)?;
        change(send)?;
        if send.newly_blocked().is_some() {
            self.streams.want(&mut session.streams, slot, Bits::BLOCKED);
        }
        self.streams.refresh_ready(&mut session.streams, slot);
        self.settle(index);
        Ok(())
    }

    /// The slot of a stream that this end receives on.
    fn receiving(&mut self, index: u32, id: StreamId) -> Result<u32, ReadError> {
        if !self.sessions[index].is_open() {
            return Err(ReadError::Closed);
        }
        let slot = self.streams.find(index, id).ok_or(ReadError::UnknownStream)?;
        let recv = self.streams.stream(slot).recv.as_ref().ok_or(ReadError::UnknownStream)?;
        match recv.reset {
            Some(code) => Err(ReadError::Reset(code)),
            None => Ok(slot),
        }
    }
}

impl SessionState {
    pub(crate) fn stats(&self) -> SessionStats {
        use crate::recovery::congestion::CongestionController;
        let recovery = &self.recovery;
        let rtt = &recovery.rtt;
        let known = |duration| if rtt.has_sample() { duration } else { core::time::Duration::ZERO };
        SessionStats {
            rtt: known(rtt.smoothed()),
            latest_rtt: known(rtt.latest()),
            min_rtt: known(rtt.min()),
            congestion_window: recovery.controller.window(),
            bytes_in_flight: recovery.bytes_in_flight(),
            packets_sent: self.packets_sent,
            packets_received: self.packets_received,
            packets_lost: recovery.packets_lost,
            congestion_events: recovery.controller.events(),
            epoch: self.keys.as_ref().map_or(0, crate::session::Keys::epoch),
            datagram_size: self.mtu(),
        }
    }
}
