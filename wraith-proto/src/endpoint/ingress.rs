//! Datagrams in: classify, find the session, open in place, apply the frames.

use super::frames::Unfit;
use super::lifecycle::End;
use super::paths::Origin;
use super::received::Received;
use super::respond::Finished;
use super::{Endpoint, Route};
use crate::error::DropReason;
use crate::event::Outcome;
use crate::meta::RxMeta;
use crate::sealed::has_sealed_form;
use crate::session::{Phase, Seen};
use crate::time::Instant;
use crate::wire::{HandshakeKind, PacketHeader, ProtectedPacket, apply_mask, expand_number, is_handshake};
use crate::wire::{PACKET_HEADER_LEN, SAMPLE_LEN, split_body, unprotected};

/// An authentic packet: where its body lies in the datagram.
struct Opened {
    session: u32,
    number: u64,
    body: core::ops::Range<usize>,
}

impl Endpoint {
    /// Takes a datagram. It is decrypted where it lies; the payload is lent until the result is dropped.
    pub fn handle<'a>(&'a mut self, now: Instant, meta: &RxMeta, datagram: &'a mut [u8]) -> Received<'a> {
        self.advance(now);
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += datagram.len() as u64;
        let opened = match self.take_in(meta, datagram) {
            Ok(opened) => opened,
            Err(Outcome::Dropped(reason)) => {
                self.stats.drop(reason);
                self.trace_dropped(reason, datagram);
                return Received::without_payload(self, Outcome::Dropped(reason));
            }
            Err(outcome) => return Received::without_payload(self, outcome),
        };
        let session = self.handle_of(opened.session);
        let Ok((payload, frames)) = split_body(&mut datagram[opened.body]) else {
            return Received::without_payload(self, Outcome::Authenticated(session));
        };
        if !self.sessions[opened.session].is_open() || payload.is_empty() && frames.is_empty() {
            return Received::without_payload(self, Outcome::Authenticated(session));
        }
        Received::with_payload(self, session, opened.number, payload, frames)
    }

    fn take_in(&mut self, meta: &RxMeta, datagram: &mut [u8]) -> Result<Opened, Outcome> {
        if !is_handshake(datagram) {
            if has_sealed_form(datagram) {
                return Err(Outcome::Dropped(DropReason::Sealed));
            }
            return self.take_packet(meta, datagram, 0).map_err(Outcome::Dropped);
        }
        let kind = HandshakeKind::of(datagram).ok_or(Outcome::Dropped(DropReason::Malformed))?;
        self.trace_handshake_received(datagram);
        let outcome = match kind {
            HandshakeKind::Init => self.on_init(meta, datagram),
            HandshakeKind::Response => self.on_response(meta, datagram),
            HandshakeKind::Cookie => self.on_cookie(datagram),
            HandshakeKind::Versions => self.on_versions(datagram),
            HandshakeKind::Finish => match self.on_finish(meta, datagram) {
                Ok(Finished::Now(None)) => Ok(Outcome::Handshaking),
                // The handshake counts even if the packet behind it does not.
                Ok(Finished::Now(Some(at))) => {
                    return self.take_packet(meta, datagram, at).map_err(|_| Outcome::Handshaking);
                }
                Ok(Finished::Before(at)) => {
                    return self.take_packet(meta, datagram, at).map_err(Outcome::Dropped);
                }
                Err(reason) => Err(reason),
            },
        };
        Err(outcome.unwrap_or_else(Outcome::Dropped))
    }

    /// Opens the protected packet at `at` and lets its frames take effect.
    fn take_packet(&mut self, meta: &RxMeta, datagram: &mut [u8], at: usize) -> Result<Opened, DropReason> {
        let bytes = datagram.len();
        let packet = &mut datagram[at..];
        let visible = ProtectedPacket::parse(packet).map_err(|_| DropReason::Malformed)?;
        let destination = visible.destination();
        let Route::Session(index) = self.route(destination)? else {
            return Err(DropReason::UnknownSession);
        };
        let sample = *visible.sample();
        let (number, phase, len) = self.open(index, packet, &sample)?;
        self.stats.packets_opened += 1;
        let start = at + PACKET_HEADER_LEN;
        let opened = Opened { session: index, number, body: start..start + len };
        let body = &mut datagram[opened.body.clone()];
        if self.sessions[index].phase == Phase::Closing {
            self.on_late_packet(index, body);
            return Ok(opened);
        }
        match split_body(body).map_err(|_| Unfit::Violation).and_then(|(payload, frames)| {
            let summary = self.check_frames(index, payload.len(), frames)?;
            Ok((summary, frames))
        }) {
            Ok((summary, frames)) => {
                self.trace_received(index, number, phase, len, frames);
                let expected = self.sessions[index].window.expected();
                self.sessions[index].window.mark(number);
                self.on_authentic(index);
                self.on_phase(index, phase);
                self.note_packet(index, number, expected, summary.asks, meta.ecn);
                let newest = number >= expected;
                self.note_origin(index, meta, &Origin { bytes, id: destination, newest });
                self.apply_frames(index, frames);
                self.settle_redial(index);
                if summary.path {
                    self.apply_path_frames(index, meta, bytes, frames);
                }
                self.advance_epoch(index);
            }
            Err(Unfit::Violation) => self.end(index, End::violation()),
            Err(unfit) => return Err(unfit.into()),
        }
        self.settle(index);
        Ok(opened)
    }

    /// Removes header protection and opens the packet; nothing changes unless the tag is good
    /// (`PROTO §5.8`). Returns packet number, key phase and the length of the body.
    fn open(
        &mut self,
        index: u32,
        packet: &mut [u8],
        sample: &[u8; SAMPLE_LEN],
    ) -> Result<(u64, u8, usize), DropReason> {
        let session = &mut self.sessions[index];
        if session.phase == Phase::Draining {
            return Err(DropReason::UnknownSession);
        }
        let expected = session.window.expected();
        let keys = session.keys.as_mut().ok_or(DropReason::UnknownSession)?;
        let place = self.expanded.opening(index, keys, &mut self.stats);
        apply_mask(packet, self.expanded.mask(place, sample));
        let header = PacketHeader::parse(packet).map_err(|_| DropReason::Malformed)?;
        let (phase, reserved_fit) = unprotected(packet[0]);
        let number = expand_number(expected, header.number);
        let (aad, body) = packet.split_at_mut(PACKET_HEADER_LEN);
        let Ok(len) = self.expanded.open(place, keys, phase, number, aad, body) else {
            keys.failures += 1;
            if keys.failures >= keys.suite.failure_limit() {
                self.end(index, End::exhausted());
            }
            return Err(DropReason::BadTag);
        };
        session.window.check(number).map_err(|seen| match seen {
            Seen::Replayed => DropReason::Replayed,
            Seen::TooOld => DropReason::TooOld,
        })?;
        if !reserved_fit {
            self.end(index, End::violation());
            return Err(DropReason::Malformed);
        }
        Ok((number, phase, len))
    }

    /// The peer holds the keys: the dial is confirmed and the session is alive.
    fn on_authentic(&mut self, index: u32) {
        self.sessions[index].packets_received += 1;
        self.sessions[index].silent_timeouts = 0;
        if self.sessions[index].handshake.is_some() {
            self.confirm_dial(index);
        }
        self.postpone_idle(index);
    }
}
