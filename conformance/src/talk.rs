//! The application of the session cases: two ends that exchange streams and datagrams, check them and part.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use wraith_drivers::{App, Turn};
use wraith_proto::{
    CloseReason, Dir, Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId, WriteError,
};

use crate::case::{Outcome, Verdict, ensure_eq};

/// What each end sends to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Plan {
    /// Bytes of its stream; 0 is none.
    pub(crate) stream: u64,
    /// Unreliable datagrams, each a byte longer than the one before, from 1 to a packet.
    pub(crate) datagrams: u32,
}

/// Who begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Dials and speaks first, and closes when it has heard everything.
    Leader,
    /// Answers when it has heard everything.
    Follower,
}

/// One end.
#[derive(Debug)]
pub(crate) struct Talk {
    plan: Plan,
    role: Role,
    session: Option<SessionHandle>,
    began: bool,
    datagrams_sent: u32,
    datagrams_heard: u32,
    bytes_heard: u64,
    stream_ended: bool,
    delivered: bool,
    trouble: Option<&'static str>,
    closed: Option<CloseReason>,
    stop: Arc<AtomicBool>,
}

/// What the leader closes with.
const CODE: u32 = 7;

impl Talk {
    pub(crate) fn new(plan: Plan, role: Role) -> Self {
        Self {
            plan,
            role,
            session: None,
            began: false,
            datagrams_sent: 0,
            datagrams_heard: 0,
            bytes_heard: 0,
            stream_ended: plan.stream == 0,
            delivered: plan.stream == 0,
            trouble: None,
            closed: None,
            stop: Arc::default(),
        }
    }

    /// Ends the talk in its next turn once it is set.
    pub(crate) fn stopper(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// How far it got, for failures.
    pub(crate) fn progress(&self) -> String {
        format!(
            "{} bytes and {} datagrams heard, {} sent, closed: {:?}",
            self.bytes_heard, self.datagrams_heard, self.datagrams_sent, self.closed
        )
    }

    /// Checks that everything came, whole, and the session was closed by the leader.
    pub(crate) fn verdict(&self) -> Outcome {
        let end = match self.role {
            Role::Leader => CloseReason::Local,
            Role::Follower => CloseReason::Peer(CODE),
        };
        if let Some(trouble) = self.trouble {
            return Err(Verdict::Fail(trouble.to_owned()));
        }
        ensure_eq!(self.closed, Some(end), "end of the session");
        ensure_eq!(self.bytes_heard, self.plan.stream, "bytes of the stream");
        ensure_eq!(self.datagrams_heard, self.plan.datagrams, "datagrams of the session");
        Ok(())
    }

    fn has_heard_all(&self) -> bool {
        self.stream_ended
            && self.bytes_heard == self.plan.stream
            && self.datagrams_heard == self.plan.datagrams
    }

    /// Opens the stream; the datagrams follow in every turn.
    fn begin(&mut self, endpoint: &mut Endpoint, session: SessionHandle) -> Result<(), WriteError> {
        self.began = true;
        if self.plan.stream == 0 {
            return Ok(());
        }
        let Some(mut session) = endpoint.session(session) else { return Err(WriteError::Closed) };
        let Ok(stream) = session.open(Dir::Uni) else { return Err(WriteError::UnknownStream) };
        session.attach(stream, self.plan.stream)
    }

    fn check(&mut self, offset: u64, data: &[u8]) {
        if data.iter().zip(offset..).any(|(byte, offset)| *byte != byte_at(offset)) {
            self.trouble = Some("a session delivered other bytes than were sent");
        }
    }

    fn send_datagrams(&mut self, endpoint: &mut Endpoint, session: SessionHandle) {
        let Some(mut session) = endpoint.session(session) else { return };
        while self.datagrams_sent < self.plan.datagrams {
            let len = 1 + self.datagrams_sent as usize % session.max_datagram().max(1);
            let data: Bytes = (0..len as u64).map(byte_at).collect();
            if session.send_datagram(data).is_err() {
                return;
            }
            self.datagrams_sent += 1;
        }
    }
}

/// The byte of every stream at an offset; few neighbours are alike.
fn byte_at(offset: u64) -> u8 {
    (offset ^ (offset >> 8) ^ (offset >> 16)) as u8
}

impl Source for Talk {
    fn fill(&mut self, _: SessionHandle, _: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        let len = (self.plan.stream - offset).min(buf.len() as u64) as usize;
        for (byte, offset) in buf[..len].iter_mut().zip(offset..) {
            *byte = byte_at(offset);
        }
        len
    }
}

impl App for Talk {
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn {
        if let (Some(session), None) = (self.session, self.closed) {
            let leads = self.role == Role::Leader;
            if !self.began && (leads || self.has_heard_all()) && self.begin(endpoint, session).is_err() {
                self.trouble = Some("a session opens no stream");
            }
            if self.began {
                self.send_datagrams(endpoint, session);
            }
            if leads
                && self.delivered
                && self.has_heard_all()
                && let Some(mut session) = endpoint.session(session)
            {
                session.close(now, CODE);
            }
        }
        let over = self.closed.is_some() && endpoint.is_drained();
        if over || self.stop.load(Ordering::Relaxed) { Turn::Stop } else { Turn::Continue }
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        match payload {
            Payload::Stream { offset, data, fin, .. } => {
                self.check(offset, data);
                self.bytes_heard += data.len() as u64;
                self.stream_ended |= fin;
            }
            Payload::Datagram { data, .. } => {
                self.check(0, data);
                self.datagrams_heard += 1;
            }
            _ => {}
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, session: SessionHandle, event: Event) {
        match event {
            Event::Connected => self.session = Some(session),
            Event::Delivered(_) => self.delivered = true,
            Event::Closed(reason) => self.closed = Some(reason),
            _ => {}
        }
    }
}
