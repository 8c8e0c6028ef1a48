//! One packet: choose its frames, pull its payload, seal it in place.

mod control;
mod draft;
mod payload;

use draft::{Draft, Memo, TRAILER_LEN};
use payload::record_piece;

use super::Endpoint;
use crate::crypto::TAG_LEN;
use crate::queue::Source;
use crate::recovery::congestion::Delivery;
use crate::recovery::{Narrow64, SentPacket};
use crate::session::Phase;
use crate::wire::{ConnectionId, Frame, PACKET_HEADER_LEN, PacketHeader, apply_mask};

impl Endpoint {
    /// Builds a packet behind FINISH, if the session has something to say.
    pub(in crate::endpoint) fn build_packet<S: Source>(
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
    pub(in crate::endpoint) fn build<S: Source>(
        &mut self,
        index: u32,
        room: &mut [u8],
        asks: bool,
        marked: bool,
        source: &mut S,
    ) -> Option<usize> {
        self.mind_keys(index);
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
            } else {
                self.put_answers(index, &mut draft);
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
            if self.sessions[index].recovery.admits_new() {
                self.put_datagrams(index, draft);
                self.put_streams(index, draft, source);
            }
        }
        self.put_probe(index, draft, source);
    }

    /// What may leave although no record is free: a lost packet, whole, so that it hands its record on, or a probe.
    fn put_without_record<S: Source>(&mut self, index: u32, draft: &mut Draft<'_>, source: &mut S) {
        let recovery = &mut self.sessions[index].recovery;
        // An ACK might take the room of a lost packet.
        if recovery.sent.lost.is_empty() {
            self.put_ack(index, draft);
            self.put_answers(index, draft);
        }
        if self.sessions[index].recovery.probes == 2 && self.put_reports(index, draft) {
            self.sessions[index].recovery.probes -= 1;
            return;
        }
        self.put_lost(index, draft, source, true);
        self.put_probe(index, draft, source);
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
        let lent = match (tail, lent) {
            (Some(tail), Some(bytes)) => {
                record_piece(&mut draft, &self.streams, tail);
                draft.payload = bytes.len();
                Some(bytes)
            }
            (Some(tail), None) => {
                self.put_piece(index, &mut draft, tail, source);
                None
            }
            (None, _) => None,
        };
        if draft.frames_len == 0 {
            return None;
        }
        let memo = Memo::take(&mut draft, marked);
        let len = self.seal(index, draft, lent)?;
        self.remember(index, len, memo);
        Some(len)
    }

    /// Builds a packet that fills `room` and asks for an acknowledgement: a probe of what the path carries (`PROTO §8.11`).
    pub(in crate::endpoint) fn build_mtu_probe(&mut self, index: u32, room: &mut [u8]) -> Option<usize> {
        let len = self.build_alone(index, room, &Frame::Ping, None)?;
        self.sessions[index].recovery.on_mtu_probe_sent(self.now, len as u16);
        self.stats.mtu_probes_sent += 1;
        Some(len)
    }

    /// Builds a packet with `frame` alone, padded to fill `room`; `destination` is another id than the one in use. It has
    /// no record: if it gets lost, whoever waits for it asks again.
    pub(in crate::endpoint) fn build_alone(
        &mut self,
        index: u32,
        room: &mut [u8],
        frame: &Frame<'_>,
        destination: Option<ConnectionId>,
    ) -> Option<usize> {
        self.mind_keys(index);
        if !self.sessions[index].is_open() {
            return None;
        }
        let mut draft = Draft::new(room);
        draft.push(frame);
        draft.padding = draft.left();
        draft.destination = destination;
        self.seal(index, draft, None)
    }

    /// Writes header and trailer, seals, protects the header. `lent` is the payload if it is not in place.
    fn seal(&mut self, index: u32, draft: Draft<'_>, lent: Option<&[u8]>) -> Option<usize> {
        let session = &mut self.sessions[index];
        let keys = session.keys.as_mut()?;
        let destination = draft.destination.or_else(|| session.cids.remote())?;
        let rng = &mut self.rng;
        let number = session.recovery.next_number(|window| rng.below(window));
        let ignored = rng.next_u64() & 1 != 0;
        let header =
            PacketHeader { phase: keys.phase(), ignored, destination, number: number as u32 }.to_bytes();
        let Draft { room, payload, frames, frames_len, padding, .. } = draft;
        let len = PACKET_HEADER_LEN + payload + frames_len + padding + TRAILER_LEN + TAG_LEN;
        let packet = &mut room[..len];
        packet[..PACKET_HEADER_LEN].copy_from_slice(&header);
        let at = PACKET_HEADER_LEN + payload;
        packet[at..at + frames_len].copy_from_slice(&frames[..frames_len]);
        let end = at + frames_len + padding;
        packet[at + frames_len..end].fill(0);
        packet[end..][..TRAILER_LEN].copy_from_slice(&((frames_len + padding) as u16).to_be_bytes());
        let body = &mut packet[PACKET_HEADER_LEN..];
        let key = self.expanded.sealing(index, keys, &mut self.stats);
        match lent {
            Some(payload) => key.packet().seal_from(number, &header, payload, body),
            None => key.packet().seal_in_place(number, &header, body),
        }
        let sample = packet[PACKET_HEADER_LEN..].first_chunk()?;
        let mask = key.header().mask(sample);
        apply_mask(packet, mask);
        session.recovery.spend_number();
        session.packets_sent += 1;
        session.sent_since = true;
        self.trace_sent(index, number, len, payload, &frames[..frames_len]);
        Some(len)
    }

    /// Keeps a record of what asks for an acknowledgement.
    fn remember(&mut self, index: u32, len: usize, memo: Memo) {
        let Memo { asks, reported, ect, unrecorded, frames } = memo;
        let session = &mut self.sessions[index];
        if reported > 0 {
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
            let packet = SentPacket {
                number: Narrow64::new(number),
                sent_at: Narrow64::new(self.now.as_nanos()),
                size,
                ect,
                app_limited,
                reported: Narrow64::new(reported),
                delivery: Delivery::default(),
                frames,
            };
            session.recovery.on_sent(&mut self.sent, packet);
            self.trace_metrics(index);
        }
    }
}
