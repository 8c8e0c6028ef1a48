//! The session with the source.

use wraith_proto::{Instant, Session, SessionHandle, StreamId};
use wraith_transfer_proto::Violation;

use crate::address::Target;
use crate::transfer::control::Control;
use crate::transfer::watch::Watch;

/// A session that brings the content.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) session: SessionHandle,
    pub(super) target: Target,
    pub(super) watch: Watch,
    /// Of the peer's packets, whatever is in them.
    pub(super) pulse: Watch,
    /// Packets of the peer, when they were last counted.
    packets: u64,
    /// Something came since the last turn.
    pub(super) moved: bool,
    control: Control,
    /// Streams to stop, and why. Their last pieces may come until the next turn.
    refused: Vec<(StreamId, u32)>,
    violation: Option<Violation>,
    /// The control stream's end has arrived there.
    heard: bool,
}

impl Link {
    pub(super) fn new(session: SessionHandle, target: Target, stream: StreamId, now: Instant) -> Self {
        Self {
            session,
            target,
            watch: Watch::new(now),
            pulse: Watch::new(now),
            packets: 0,
            moved: false,
            control: Control::new(stream),
            refused: Vec::new(),
            violation: None,
            heard: false,
        }
    }

    /// Takes the number of the peer's packets so far; whether it has grown.
    pub(super) fn count(&mut self, now: Instant, packets: u64) -> bool {
        let grown = packets > self.packets;
        if grown {
            self.packets = packets;
            self.pulse.moved(now);
        }
        grown
    }

    /// A piece of a bidirectional stream.
    pub(super) fn receive(
        &mut self,
        stream: StreamId,
        offset: u64,
        data: &[u8],
        handle: impl FnMut(&[u8]) -> Result<(), Violation>,
    ) {
        if stream != self.control.stream() {
            // This end provides nothing (`PROTO §10.1`).
            self.violation = self.violation.or(Some(Violation::WrongSide));
        } else if self.violation.is_none()
            && let Err(violation) = self.control.receive(offset, data, handle)
        {
            self.violation = Some(violation);
        }
    }

    /// Nothing more of `stream` is wanted.
    pub(super) fn refuse(&mut self, stream: StreamId, code: u32) {
        if !self.is_refused(stream) {
            self.refused.push((stream, code));
        }
    }

    pub(super) fn is_refused(&self, stream: StreamId) -> bool {
        self.refused.iter().any(|(refused, _)| *refused == stream)
    }

    pub(super) fn on_delivered(&mut self, stream: StreamId) {
        self.heard |= stream == self.control.stream();
    }

    /// Closes, stops and writes what is due, the last words if the receiver is `leaving`.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        session: &mut Session<'_>,
        poll: impl FnMut(&mut [u8]) -> usize,
        leaving: bool,
    ) {
        if std::mem::take(&mut self.moved) {
            self.watch.moved(now);
        }
        if let Some(violation) = self.violation {
            session.close(now, violation.code());
            return;
        }
        for (stream, code) in self.refused.drain(..) {
            // It may have ended meanwhile.
            let _ = session.stop(stream, code);
        }
        self.control.send(session, poll);
        if leaving {
            self.control.finish(session);
        }
    }

    /// Whether the peer has heard everything, or can no more.
    pub(super) fn has_left(&self) -> bool {
        self.heard || self.is_broken()
    }

    /// Whether the peer did what the protocol forbids.
    pub(super) fn is_broken(&self) -> bool {
        self.violation.is_some()
    }
}
