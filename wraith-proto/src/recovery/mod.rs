//! Loss detection and recovery of one session (RFC 9002).

mod acks;
pub(crate) mod congestion;
mod ecn;
mod loss_event;
mod lost;
mod pacer;
mod path;
mod path_mtu;
mod rtt;
mod sent;
mod silence;
mod sink;

use core::time::Duration;

use heapless::Vec;

pub(crate) use acks::Acks;
use congestion::{Acked, CongestionController, Controller, Lost, LostPacket};
use ecn::{EcnCounters, EcnPath, EcnVerdict};
use loss_event::LossEvent;
use lost::LostNumbers;
use pacer::Pacer;
pub(crate) use pacer::{PaceInput, pace_input};
use path::Doubt;
pub(crate) use path::NewPath;
pub(crate) use path_mtu::{MtuNews, PathMtu};
pub(crate) use rtt::Rtt;
pub(crate) use sent::{Narrow64, SentFrame, SentFrames, SentLists, SentPacket, SentPool};
pub(crate) use sink::AckSink;

use crate::config::Transport;
use crate::session::Sequence;
use crate::time::{Instant, Millis};
use crate::wire::Ack;

/// A packet is lost when this many later ones were acknowledged (RFC 9002 §6.1.1); reordering raises it.
const PACKET_THRESHOLD: u64 = 3;

/// Most that reordering raises the packet threshold to.
const MAX_PACKET_THRESHOLD: u64 = 256;

/// Skipped packet numbers remembered (`PROTO §8.7`).
const SKIP_MEMORY: usize = 4;

/// Probe timeouts back off to this, unless the first is longer: two packets in two seconds burden no path, and one
/// that loses a third would else fall silent for longer than an application waits.
const MAX_BACKOFF: Duration = Duration::from_secs(2);

/// Probe timeouts without answer that make losses persistent congestion (RFC 9002 §7.6.1).
const PERSISTENT_FACTOR: u32 = 3;

/// The peer acknowledged what was never sent (`PROTO §6.4`, `PROTO §8.7`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadAck;

/// Sender state of one session.
#[derive(Debug)]
pub(crate) struct Recovery {
    next_number: u64,
    skip_at: u64,
    skipped: Vec<u64, SKIP_MEMORY>,
    pub(crate) sent: SentLists,
    in_flight: u64,
    largest_acked: Option<Sequence>,
    loss_time: Option<Instant>,
    last_asked: Option<Instant>,
    /// When the caller came back after it was away for long: time before proves nothing (`PROTO §8.9`).
    resumed: Option<Instant>,
    /// The loss timer was restarted because of that; the next late call counts.
    restarted: bool,
    pub(crate) pto_count: u32,
    pub(crate) probes: u8,
    packet_threshold: u64,
    lost: LostNumbers,
    /// The application had nothing more to send.
    pub(crate) app_limited: bool,
    pub(crate) rtt: Rtt,
    pub(crate) controller: Controller,
    pub(crate) pacer: Pacer,
    pub(crate) ecn: EcnPath,
    pub(crate) path_mtu: PathMtu,
    /// The peer may have moved: what is lost says little of the path (`PROTO §13.8`).
    doubt: Doubt,
    /// The first packet number since that has come into question.
    doubted_from: u64,
    peer_delay: Millis,
    pub(crate) packets_lost: u64,
    pub(crate) spurious: u64,
}

impl Recovery {
    pub(crate) fn new(now: Instant, path_mtu: PathMtu, transport: &Transport, peer_delay: Millis) -> Self {
        Self {
            next_number: 0,
            skip_at: u64::MAX,
            skipped: Vec::new(),
            sent: SentLists::default(),
            in_flight: 0,
            largest_acked: None,
            loss_time: None,
            last_asked: None,
            resumed: None,
            restarted: false,
            pto_count: 0,
            probes: 0,
            packet_threshold: PACKET_THRESHOLD,
            lost: LostNumbers::default(),
            app_limited: true,
            rtt: Rtt::new(),
            controller: Controller::new(transport.congestion, path_mtu.size()),
            pacer: Pacer::new(now),
            ecn: if transport.ecn { EcnPath::new() } else { EcnPath::disabled() },
            path_mtu,
            doubt: Doubt::None,
            doubted_from: 0,
            peer_delay,
            packets_lost: 0,
            spurious: 0,
        }
    }

    /// The number of the next packet. `below` draws, once in a while, which one to skip (`PROTO §8.7`).
    pub(crate) fn next_number(&mut self, below: impl FnOnce(u64) -> u64) -> u64 {
        if self.next_number == self.skip_at {
            if self.skipped.is_full() {
                self.skipped.remove(0);
            }
            let _ = self.skipped.push(self.skip_at);
            self.next_number += 1;
            self.skip_at = u64::MAX;
        }
        if self.skip_at == u64::MAX {
            let window = (self.controller.window() / 1200).max(16);
            self.skip_at = self.next_number + 1 + window + below(window);
        }
        self.next_number
    }

    /// The packet `next_number` was sealed: the number is spent.
    pub(crate) fn spend_number(&mut self) {
        self.next_number += 1;
    }

    /// A packet that asks for an acknowledgement left.
    pub(crate) fn on_sent(&mut self, pool: &mut SentPool, mut packet: SentPacket) {
        let (now, size, number) = (packet.sent_at(), packet.size, packet.number());
        self.in_flight += u64::from(size);
        self.last_asked = Some(now);
        packet.delivery = self.controller.on_sent(now, size, number, self.in_flight);
        self.pacer.on_sent(size);
        self.path_mtu.on_packet_sent(now);
        pool.push(&mut self.sent, packet);
    }

    /// There is less to send than window and pacer allow.
    pub(crate) fn on_app_limited(&mut self) {
        self.app_limited = true;
        self.controller.on_app_limited();
    }

    /// A probe left that there was no record for.
    pub(crate) fn on_sent_unrecorded(&mut self, now: Instant) {
        self.last_asked = Some(now);
    }

    /// An ACK arrived. `acked` is told each frame that reached the peer, `lost` each that did not and is not
    /// stream data.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        pool: &mut SentPool,
        sink: &mut impl AckSink,
    ) -> Result<(), BadAck> {
        let largest = ack.largest();
        let mut ranges: Vec<(u64, u64), 64> = Vec::new();
        for range in ack.ranges() {
            let _ = ranges.push(range);
        }
        if largest >= self.next_number
            || self.skipped.iter().any(|&skip| ranges.iter().any(|&(low, high)| low <= skip && skip <= high))
        {
            return Err(BadAck);
        }
        // A window that is not even half used says nothing about the path (RFC 9002 §7.8).
        let idle_window = self.in_flight * 2 < self.controller.window();
        self.notice_absence(now);
        self.notice_spurious(&ranges, pool, sink);
        let raises = self.largest_acked().is_none_or(|before| before < largest);
        self.largest_acked = self.largest_acked.max(Some(Sequence::new(largest)));
        let newly = self.take_acked(now, ack, &ranges, pool, sink);
        if raises {
            self.check_ecn(now, ack, newly);
        }
        self.detect_losses(now, pool, sink);
        self.judge_path(now, &ranges, raises && !newly.large, sink);
        if newly.packets > 0 {
            self.restarted = false;
            self.pto_count = 0;
            self.probes = 0;
        }
        let limited = newly.app_limited || idle_window;
        self.controller.on_ack_frame_end(now, largest, self.in_flight, limited, &self.rtt);
        Ok(())
    }

    /// The loss timer fired; returns whether there are to be probes.
    pub(crate) fn on_timer(&mut self, now: Instant, pool: &mut SentPool, sink: &mut impl AckSink) -> bool {
        self.notice_absence(now);
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return false;
        }
        if self.loss_time.is_some() {
            self.detect_losses(now, pool, sink);
            return false;
        }
        self.pto_count = (self.pto_count + 1).min(16);
        self.last_asked = Some(now);
        self.ecn.on_probe_timeout();
        self.probes = 2;
        true
    }

    /// The peer answered otherwise than by an ACK: probes need not become more seldom.
    pub(crate) fn on_answer(&mut self) {
        self.pto_count = 0;
    }

    /// Takes the oldest packet in flight so that a probe carries its data; no congestion signal.
    pub(crate) fn probe_oldest(&mut self, pool: &mut SentPool, sink: &mut impl AckSink) {
        if let Some(index) = self.sent.in_flight.front() {
            let packet = pool.get(index);
            let number = packet.number();
            self.may_be_congestion(packet.size, packet.sent_at());
            self.lost.add(number);
            sink.packet_probed(number, self.largest_acked.map(Sequence::get));
            self.give_up(pool, index, sink);
        }
    }

    /// When the loss timer fires.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.loss_time.is_some() {
            return self.loss_time;
        }
        if self.sent.in_flight.is_empty() {
            return None;
        }
        Some(self.last_asked?.saturating_add(self.pto()))
    }

    /// The probe timeout, not backed off.
    pub(crate) fn pto_base(&self) -> Duration {
        self.rtt.pto_base(self.peer_delay.duration())
    }

    /// The probe timeout, backed off (RFC 9002 §6.2.1).
    pub(crate) fn pto(&self) -> Duration {
        let base = self.pto_base();
        base.saturating_mul(1 << self.pto_count.min(10)).min(MAX_BACKOFF.max(base))
    }

    /// Whether the next packet is every second probe without an answer: what the ones before carried may be the reason.
    pub(crate) fn doubts_packets(&self) -> bool {
        self.probes == 1 && self.pto_count >= 2
    }

    /// Whether the congestion window admits a packet of `size` bytes.
    pub(crate) fn window_admits(&self, size: u16) -> bool {
        self.in_flight + u64::from(size) <= self.controller.window()
    }

    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The largest packet number that the peer acknowledged.
    pub(crate) fn largest_acked(&self) -> Option<u64> {
        self.largest_acked.map(Sequence::get)
    }

    pub(crate) fn packet_number(&self) -> u64 {
        self.next_number
    }

    fn take_acked(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        ranges: &[(u64, u64)],
        pool: &mut SentPool,
        sink: &mut impl AckSink,
    ) -> Newly {
        let mut newly = Newly::default();
        let mut range = ranges.iter().rev().peekable();
        let mut cursor = self.sent.in_flight.front();
        while let Some(index) = cursor {
            let number = pool.get(index).number();
            cursor = pool.next(index);
            while range.next_if(|&&(_, high)| high < number).is_some() {}
            let Some(&&(low, _)) = range.peek() else { break };
            if number < low {
                continue;
            }
            let Some(packet) = pool.remove_in_flight(&mut self.sent, index) else { break };
            self.in_flight -= u64::from(packet.size);
            // A packet from before an absence measures that, too.
            let measures = self.resumed.is_none_or(|resumed| packet.sent_at() >= resumed);
            if number == ack.largest() && measures {
                let delay = Duration::from_micros(ack.delay_micros());
                self.rtt.sample(
                    now.saturating_since(packet.sent_at()),
                    delay,
                    self.peer_delay.duration(),
                    true,
                );
            }
            self.note_arrival(number);
            newly.packets += 1;
            newly.large |= self.path_mtu.on_acked(packet.size);
            newly.ect += u64::from(packet.ect);
            newly.app_limited = packet.app_limited;
            self.controller.on_ack(&Acked {
                packet_number: number,
                bytes: packet.size,
                sent_at: packet.sent_at(),
                delivery: packet.delivery,
            });
            sink.packet_acked(number);
            for frame in &packet.frames {
                sink.acked(frame);
            }
            sink.ack_seen(packet.reported.value());
        }
        newly
    }

    /// A loss timer that nobody looked at for a probe timeout says that the caller was away, not that packets are
    /// lost: what may lie in the socket gets the time to be read (`PROTO §8.9`).
    fn notice_absence(&mut self, now: Instant) {
        let Some(deadline) = self.deadline() else { return };
        if self.restarted || now <= deadline.saturating_add(self.pto()) {
            return;
        }
        self.restarted = true;
        self.resumed = Some(now);
        self.last_asked = Some(now);
        self.loss_time = self.loss_time.map(|_| now.saturating_add(self.rtt.loss_delay()));
        self.pacer.restart_empty(now);
    }

    /// Late acknowledgements of packets that were given up: undo what that cost.
    fn notice_spurious(&mut self, ranges: &[(u64, u64)], pool: &mut SentPool, sink: &mut impl AckSink) {
        let arrived = self.lost.take(ranges, |first, last| sink.lost_packets_arrived(first, last));
        if arrived.packets == 0 {
            return;
        }
        self.spurious += arrived.packets;
        self.path_mtu.on_spurious();
        // By how much the packet was overtaken; nothing says so of one that a probe replaced.
        let distance = self.largest_acked().map_or(0, |largest| (largest + 1).saturating_sub(arrived.first));
        self.packet_threshold = self.packet_threshold.max(distance.min(MAX_PACKET_THRESHOLD));
        let mut cursor = self.sent.lost.front();
        while let Some(index) = cursor {
            cursor = pool.next(index);
            let number = pool.get(index).number();
            if ranges.iter().any(|&(low, high)| low <= number && number <= high)
                && let Some(packet) = pool.remove_lost(&mut self.sent, index)
            {
                packet.frames.iter().for_each(|frame| sink.acked(frame));
            }
        }
        if arrived.undo {
            self.controller.on_spurious();
        }
    }

    fn check_ecn(&mut self, now: Instant, ack: &Ack<'_>, newly: Newly) {
        let counts =
            ack.ecn().map(|counts| EcnCounters { ect0: counts.ect0, ect1: counts.ect1, ce: counts.ce });
        if let EcnVerdict::Congestion(_) = self.ecn.on_ack(newly.ect, counts) {
            let largest = ack.largest();
            self.controller.on_loss(now, &Lost { largest, bytes: 0, persistent: false, ecn: true });
        }
    }

    /// Declares packets lost by packet or time threshold (RFC 9002 §6.1).
    fn detect_losses(&mut self, now: Instant, pool: &mut SentPool, sink: &mut impl AckSink) {
        self.loss_time = None;
        let Some(largest) = self.largest_acked() else { return };
        let delay = self.rtt.loss_delay();
        let mut event: Option<LossEvent> = None;
        while let Some(index) = self.sent.in_flight.front() {
            let packet = pool.get(index);
            let (number, size, ect, delivery) = (packet.number(), packet.size, packet.ect, packet.delivery);
            if number >= largest {
                break;
            }
            let since = packet.sent_at().max(self.resumed.unwrap_or(packet.sent_at()));
            let due = since.saturating_add(delay);
            if number + self.packet_threshold > largest && due > now {
                self.loss_time = Some(due);
                break;
            }
            let congestion = self.may_be_congestion(size, packet.sent_at());
            event.get_or_insert(LossEvent::new(number, since)).add(number, size, since, congestion);
            self.packets_lost += 1;
            if congestion {
                self.tell_lost(now, &LostPacket { packet_number: number, bytes: size, delivery });
            }
            self.lost.add(number);
            self.ecn.on_lost(u64::from(ect));
            sink.packet_lost(number, number + self.packet_threshold <= largest, largest);
            self.give_up(pool, index, sink);
        }
        if let Some(event) = event.filter(|_| self.doubt != Doubt::Reacted) {
            self.on_losses(now, &event);
        }
    }

    /// Tells the controller of losses.
    fn on_losses(&mut self, now: Instant, event: &LossEvent) {
        if !event.congestion {
            return self.lost.count(event.first, event.packets, false);
        }
        self.path_mtu.on_congestion();
        let limit = self.pto_base() * PERSISTENT_FACTOR;
        let persistent = self.rtt.has_sample() && event.longest >= limit && !self.is_unsure();
        let events = self.controller.events();
        self.controller
            .on_loss(now, &Lost { largest: event.last, bytes: event.bytes, persistent, ecn: false });
        let new = self.controller.events() > events;
        self.note_reaction(new);
        self.lost.count(event.first, event.packets, new);
        if persistent {
            self.rtt.forget_min();
        }
    }

    /// Takes a packet out of flight; its stream data waits to be sent again.
    fn give_up(&mut self, pool: &mut SentPool, index: u32, sink: &mut impl AckSink) {
        let packet = pool.get_mut(index);
        self.in_flight -= u64::from(packet.size);
        packet.frames.retain(|frame| {
            let data = matches!(frame, SentFrame::Data { .. });
            if !data {
                sink.lost(frame);
            }
            data
        });
        if packet.frames.is_empty() {
            pool.remove_in_flight(&mut self.sent, index);
        } else {
            pool.lose(&mut self.sent, index);
        }
    }
}

#[cfg(test)]
impl Recovery {
    pub(crate) fn set_packet_number(&mut self, number: u64) {
        self.next_number = number;
        self.skip_at = number + 1000;
    }
}

/// What one ACK newly acknowledged.
#[derive(Clone, Copy, Default)]
struct Newly {
    packets: u32,
    ect: u64,
    app_limited: bool,
    /// One of them speaks for the path's datagram size.
    large: bool,
}
