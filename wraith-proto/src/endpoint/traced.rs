//! Tells a tracer what the endpoint does. Without the feature `trace`, `untraced.rs` stands in its place.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::Endpoint;
use super::scope::Scope;
use crate::crypto::{Direction as Way, Role as End, Suite, TAG_LEN};
use crate::error::{CloseReason, DropReason};
use crate::recovery::congestion::CongestionController;
use crate::recovery::{AckSink, Recovery, SentFrame};
use crate::session::{Keys, SessionHandle, SessionState};
use crate::time::Instant;
use crate::trace::{
    Direction, Established, HandshakeMessage, HeaderKey, LossCause, Metrics, Packet, PacketKey, Role,
    SessionIds, TraceEvent, Tracer,
};
use crate::util::Slab;
use crate::wire::{Frames, HandshakeHeader, PACKET_HEADER_LEN, visible_destination};

/// The tracer, if there is one, and what has to be known of sessions to speak of them.
pub(super) struct Hook {
    tracer: Option<Box<dyn Tracer>>,
    /// By index; grows when a session is established.
    sessions: Vec<Option<Traced>>,
}

/// An established session.
#[derive(Clone, Copy)]
struct Traced {
    handle: SessionHandle,
    ids: SessionIds,
    metrics: Metrics,
    mtu: u16,
}

/// Sees what becomes of packets on its way to the session.
pub(super) struct Watch<'a> {
    tracer: Option<&'a mut (dyn Tracer + 'static)>,
    now: Instant,
    session: Option<SessionHandle>,
    scope: Scope<'a>,
}

impl Hook {
    /// Without a tracer.
    pub(super) const NONE: Self = Self { tracer: None, sessions: Vec::new() };

    pub(super) fn watch<'a>(&'a mut self, now: Instant, index: u32, scope: Scope<'a>) -> Watch<'a> {
        let session = self.traced(index).map(|traced| traced.handle);
        Watch { tracer: self.tracer.as_deref_mut(), now, session, scope }
    }

    /// A handshake message leaves.
    pub(super) fn handshake_sent(
        &mut self,
        now: Instant,
        sessions: &Slab<SessionState>,
        index: Option<u32>,
        message: &[u8],
    ) {
        let session = index.map(|index| SessionHandle { index, generation: sessions.generation(index) });
        if let (Some(tracer), Ok(header)) = (&mut self.tracer, HandshakeHeader::parse(message)) {
            let message = HandshakeMessage { header, size: message.len() };
            tracer.event(now, session, &TraceEvent::HandshakeSent(message));
        }
    }

    fn traced(&mut self, index: u32) -> Option<&mut Traced> {
        self.sessions.get_mut(index as usize)?.as_mut()
    }

    fn remember(&mut self, traced: Traced) {
        let at = traced.handle.index as usize;
        if self.sessions.len() <= at {
            self.sessions.resize(at + 1, None);
        }
        self.sessions[at] = Some(traced);
    }

    fn wants_secrets(&self) -> bool {
        self.tracer.as_deref().is_some_and(Tracer::wants_secrets)
    }
}

impl Endpoint {
    /// Tells `tracer` what the endpoint does from now on, in the place of a former one. Of sessions that are
    /// established already it learns neither ids nor keys nor metrics.
    ///
    /// Takes about 128 bytes for each session, apart from [`Limits::memory`](crate::Limits::memory).
    pub fn set_tracer(&mut self, tracer: Box<dyn Tracer>) {
        self.hook = Hook { tracer: Some(tracer), sessions: Vec::new() };
    }

    pub(super) fn trace_handshake_received(&mut self, datagram: &[u8]) {
        let Ok(header) = HandshakeHeader::parse(datagram) else { return };
        let session = self.session_at(header.destination);
        let message = HandshakeMessage { header, size: datagram.len() };
        self.tell(session, &TraceEvent::HandshakeReceived(message));
    }

    /// The handshake is done: names the session, and its first keys.
    pub(super) fn trace_established(&mut self, index: u32) {
        if self.hook.tracer.is_none() {
            return;
        }
        let handle = self.handle_of(index);
        let session = &self.sessions[index];
        let (Some(keys), Some(peer)) = (&session.keys, session.peer) else { return };
        let Some((own, theirs)) = session.cids.local(0).map(|own| own.id).zip(session.cids.remote()) else {
            return;
        };
        let (role, ids) = match session.role {
            End::Initiator => (Role::Initiator, SessionIds { initiator: own, responder: theirs }),
            End::Responder => (Role::Responder, SessionIds { initiator: theirs, responder: own }),
        };
        let suite = keys.suite;
        let protocol = self.config.protocols.get(usize::from(session.protocol));
        let protocol = protocol.map_or(&b""[..], |name| &name[..]);
        let mtu = session.mtu();
        self.hook.remember(Traced { handle, ids, metrics: Metrics::default(), mtu });
        if let Some(tracer) = &mut self.hook.tracer {
            let established = Established { ids, role, peer, suite, protocol };
            tracer.event(self.now, Some(handle), &TraceEvent::Established(established));
        }
        self.trace_header_keys(index);
        self.trace_keys(index);
        self.trace_metrics(index);
    }

    /// The packet keys of the newest epoch were made.
    pub(super) fn trace_keys(&mut self, index: u32) {
        self.trace_secrets(index, |ids, suite, keys, tell| {
            let (epoch, root) = keys.newest();
            for (way, direction) in WAYS {
                let material = root.packet(epoch, way, suite);
                let (key, prefix) = (&material.key, &material.prefix);
                tell(&TraceEvent::PacketKey(PacketKey { ids, suite, direction, epoch, key, prefix }));
            }
        });
    }

    /// This end sends in another epoch, from packet `first` on.
    pub(super) fn trace_epoch(&mut self, index: u32, first: u64) {
        let epoch = self.sessions[index].keys.as_ref().map_or(0, Keys::epoch);
        self.tell(Some(index), &TraceEvent::EpochBegun { epoch, first });
    }

    pub(super) fn trace_sent(&mut self, index: u32, number: u64, size: usize, payload: usize, frames: &[u8]) {
        let epoch = self.sessions[index].keys.as_ref().map_or(0, Keys::epoch);
        let packet = Packet { number, epoch, size, payload, frames: Frames::new(frames) };
        self.tell(Some(index), &TraceEvent::PacketSent(packet));
    }

    /// A packet opened to `len` bytes of which these are the frames.
    pub(super) fn trace_received(&mut self, index: u32, number: u64, phase: u8, len: usize, frames: &[u8]) {
        let keys = self.sessions[index].keys.as_ref();
        let epoch = keys.and_then(|keys| keys.epoch_of(phase)).unwrap_or(0);
        let size = PACKET_HEADER_LEN + len + TAG_LEN;
        let payload = len.saturating_sub(frames.len() + size_of::<u16>());
        let packet = Packet { number, epoch, size, payload, frames: Frames::new(frames) };
        self.tell(Some(index), &TraceEvent::PacketReceived(packet));
    }

    pub(super) fn trace_dropped(&mut self, reason: DropReason, datagram: &[u8]) {
        let header = HandshakeHeader::parse(datagram).ok();
        let destination = header.map(|header| header.destination).or_else(|| visible_destination(datagram));
        let session = destination.and_then(|id| self.session_at(id));
        self.tell(session, &TraceEvent::DatagramDropped { reason, size: datagram.len() });
    }

    /// Metrics may have changed.
    pub(super) fn trace_metrics(&mut self, index: u32) {
        let (Some(traced), Some(session)) = (self.hook.traced(index), self.sessions.get(index)) else {
            return;
        };
        let metrics = metrics(&session.recovery);
        if traced.metrics != metrics {
            traced.metrics = metrics;
            self.tell(Some(index), &TraceEvent::Metrics(metrics));
        }
    }

    /// The datagram size has changed.
    pub(super) fn trace_mtu(&mut self, index: u32) {
        let (Some(traced), Some(session)) = (self.hook.traced(index), self.sessions.get(index)) else {
            return;
        };
        let path_mtu = &session.recovery.path_mtu;
        let (new, done) = (path_mtu.size(), path_mtu.is_resting());
        let old = core::mem::replace(&mut traced.mtu, new);
        self.tell(Some(index), &TraceEvent::MtuUpdated { old, new, done });
    }

    pub(super) fn trace_closed(&mut self, index: u32, reason: CloseReason) {
        self.tell(Some(index), &TraceEvent::Closed { reason });
    }

    fn trace_header_keys(&mut self, index: u32) {
        self.trace_secrets(index, |ids, suite, keys, tell| {
            let (_, root) = keys.newest();
            for (way, direction) in WAYS {
                let key = &*root.header(way, suite);
                tell(&TraceEvent::HeaderKey(HeaderKey { ids, suite, direction, key }));
            }
        });
    }

    /// Lets `derive` tell secrets, if anybody wants to know them.
    fn trace_secrets(
        &mut self,
        index: u32,
        derive: impl FnOnce(SessionIds, Suite, &Keys, &mut dyn FnMut(&TraceEvent<'_>)),
    ) {
        if !self.hook.wants_secrets() {
            return;
        }
        let (Some(traced), Some(keys)) = (self.hook.traced(index).copied(), &self.sessions[index].keys)
        else {
            return;
        };
        if let Some(tracer) = &mut self.hook.tracer {
            let mut tell = |event: &TraceEvent<'_>| tracer.event(self.now, Some(traced.handle), event);
            derive(traced.ids, keys.suite, keys, &mut tell);
        }
    }

    fn tell(&mut self, index: Option<u32>, event: &TraceEvent<'_>) {
        let session = index.map(|index| self.handle_of(index));
        if let Some(tracer) = &mut self.hook.tracer {
            tracer.event(self.now, session, event);
        }
    }

    fn session_at(&self, id: crate::wire::ConnectionId) -> Option<u32> {
        match self.route(id) {
            Ok(super::Route::Session(index)) => Some(index),
            _ => None,
        }
    }
}

impl Watch<'_> {
    fn tell(&mut self, event: &TraceEvent<'_>) {
        if let Some(tracer) = &mut self.tracer {
            tracer.event(self.now, self.session, event);
        }
    }
}

impl AckSink for Watch<'_> {
    fn acked(&mut self, frame: &SentFrame) {
        self.scope.acked(frame);
    }

    fn lost(&mut self, frame: &SentFrame) {
        self.scope.lost(frame);
    }

    fn ack_seen(&mut self, below: u64) {
        self.scope.ack_seen(below);
    }

    fn packet_acked(&mut self, number: u64) {
        self.tell(&TraceEvent::PacketAcked { number });
    }

    fn packet_lost(&mut self, number: u64, overtaken: bool, largest_acked: u64) {
        let cause = if overtaken { LossCause::PacketThreshold } else { LossCause::TimeThreshold };
        self.tell(&TraceEvent::PacketLost { number, cause, largest_acked: Some(largest_acked) });
    }

    fn packet_probed(&mut self, number: u64, largest_acked: Option<u64>) {
        self.tell(&TraceEvent::PacketLost { number, cause: LossCause::Probe, largest_acked });
    }

    fn lost_packets_arrived(&mut self, first: u64, last: u64) {
        self.tell(&TraceEvent::SpuriousLoss { first, last });
    }
}

const WAYS: [(Way, Direction); 2] =
    [(Way::ToResponder, Direction::ToResponder), (Way::ToInitiator, Direction::ToInitiator)];

fn metrics(recovery: &Recovery) -> Metrics {
    let rtt = &recovery.rtt;
    let known = |duration| if rtt.has_sample() { duration } else { Duration::ZERO };
    let ssthresh = recovery.controller.ssthresh();
    Metrics {
        latest_rtt: known(rtt.latest()),
        smoothed_rtt: known(rtt.smoothed()),
        rtt_variation: known(rtt.var()),
        min_rtt: known(rtt.min()),
        pto_count: recovery.pto_count,
        congestion_window: recovery.controller.window(),
        ssthresh: (ssthresh != u64::MAX).then_some(ssthresh),
        bytes_in_flight: recovery.bytes_in_flight(),
        packets_in_flight: recovery.sent.in_flight.len(),
        congestion_events: recovery.controller.events(),
    }
}
