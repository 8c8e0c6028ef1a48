//! Loss detection and recovery of one session (RFC 9002).

mod acks;
pub(crate) mod congestion;
mod ecn;
mod pacer;
mod rtt;
mod sent;

use core::time::Duration;

use heapless::Vec;

pub(crate) use acks::Acks;
use congestion::{Acked, Congestion, Controller};
use ecn::{EcnCounters, EcnPath, EcnVerdict};
pub(crate) use pacer::PaceInput;
use pacer::Pacer;
pub(crate) use rtt::Rtt;
pub(crate) use sent::{MAX_FRAMES, SentFrame, SentLists, SentPacket, SentPool};

use crate::time::Instant;
use crate::wire::Ack;

/// A packet is lost when this many later ones were acknowledged (RFC 9002 §6.1.1); reordering raises it.
const PACKET_THRESHOLD: u64 = 3;

/// Most that reordering raises the packet threshold to.
const MAX_PACKET_THRESHOLD: u64 = 256;

/// Lost packet numbers remembered, to notice that they were not lost.
const LOST_MEMORY: usize = 16;

/// Skipped packet numbers remembered (`PROTO §8.7`).
const SKIP_MEMORY: usize = 4;

/// Probe timeouts without answer that make losses persistent congestion (RFC 9002 §7.6.1).
const PERSISTENT_FACTOR: u32 = 3;

/// The peer acknowledged what was never sent (`PROTO §6.4`, `PROTO §8.7`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadAck;

/// What `Recovery::on_timer` decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimerAction {
    /// Packets were declared lost.
    Lost,
    /// A probe has to be sent.
    Probe,
    /// Nothing: too early, or the caller was away.
    Nothing,
}

/// Sender state of one session.
#[derive(Debug)]
pub(crate) struct Recovery {
    next_number: u64,
    skip_at: u64,
    skipped: Vec<u64, SKIP_MEMORY>,
    pub(crate) sent: SentLists,
    in_flight: u64,
    largest_acked: Option<u64>,
    loss_time: Option<Instant>,
    last_asked: Option<Instant>,
    /// The loss timer was restarted because the caller was away; the next late call counts.
    restarted: bool,
    pto_count: u32,
    pub(crate) probes: u8,
    packet_threshold: u64,
    lost: Vec<u64, LOST_MEMORY>,
    /// The application had nothing more to send.
    pub(crate) app_limited: bool,
    /// Times that no record was free.
    pub(crate) starved: u64,
    /// More losses in the event than `lost` remembers: it cannot be undone.
    lost_overflow: bool,
    pub(crate) rtt: Rtt,
    pub(crate) controller: Controller,
    pub(crate) pacer: Pacer,
    pub(crate) ecn: EcnPath,
    peer_delay: Duration,
    pub(crate) packets_lost: u64,
    pub(crate) spurious: u64,
}

impl Recovery {
    pub(crate) fn new(now: Instant, mtu: u16, ecn: bool, peer_delay: Duration) -> Self {
        Self {
            next_number: 0,
            skip_at: u64::MAX,
            skipped: Vec::new(),
            sent: SentLists::default(),
            in_flight: 0,
            largest_acked: None,
            loss_time: None,
            last_asked: None,
            restarted: false,
            pto_count: 0,
            probes: 0,
            packet_threshold: PACKET_THRESHOLD,
            lost: Vec::new(),
            app_limited: true,
            starved: 0,
            lost_overflow: false,
            rtt: Rtt::new(),
            controller: Controller::new(mtu),
            pacer: Pacer::new(now),
            ecn: if ecn { EcnPath::new() } else { EcnPath::disabled() },
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
    pub(crate) fn on_sent(&mut self, pool: &mut SentPool, packet: SentPacket) {
        let (now, size, number) = (packet.sent_at, packet.size, packet.number);
        self.in_flight += u64::from(size);
        self.last_asked = Some(now);
        self.controller.on_sent(now, size, number);
        self.pacer.on_sent(size);
        pool.push(&mut self.sent, packet);
    }

    /// An ACK arrived. `acked` is told each frame that reached the peer, `lost` each that did not and is not
    /// stream data. `late`: the caller was away for so long that elapsed time proves nothing (`PROTO §8.9`).
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        pool: &mut SentPool,
        late: bool,
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
        let raises = self.largest_acked.is_none_or(|before| before < largest);
        self.largest_acked = self.largest_acked.max(Some(largest));
        let newly = self.take_acked(now, ack, &ranges, pool, sink);
        self.notice_spurious(&ranges, pool, sink);
        if raises {
            self.check_ecn(now, ack, newly);
        }
        self.detect_losses(now, pool, late, sink);
        if newly.packets > 0 {
            self.restarted = false;
            self.pto_count = 0;
            self.probes = 0;
        }
        let limited = newly.app_limited || idle_window;
        self.controller.on_ack_frame_end(now, largest, self.in_flight, limited, &self.rtt);
        Ok(())
    }

    /// The loss timer fired.
    pub(crate) fn on_timer(
        &mut self,
        now: Instant,
        pool: &mut SentPool,
        late: bool,
        sink: &mut impl AckSink,
    ) -> TimerAction {
        let Some(deadline) = self.deadline() else { return TimerAction::Nothing };
        if deadline > now {
            return TimerAction::Nothing;
        }
        if late && !self.restarted {
            self.restarted = true;
            // Nobody listened: give what may lie in the socket the time to arrive (`PROTO §8.9`).
            self.last_asked = Some(now);
            self.loss_time = self.loss_time.map(|_| now.saturating_add(self.rtt.loss_delay()));
            return TimerAction::Nothing;
        }
        if self.loss_time.is_some() {
            self.detect_losses(now, pool, false, sink);
            return TimerAction::Lost;
        }
        self.pto_count = (self.pto_count + 1).min(16);
        self.last_asked = Some(now);
        self.ecn.on_probe_timeout();
        self.probes = 2;
        TimerAction::Probe
    }

    /// Takes the oldest packet in flight so that a probe carries its data; no congestion signal.
    pub(crate) fn probe_oldest(&mut self, pool: &mut SentPool, sink: &mut impl AckSink) {
        if let Some(index) = self.sent.in_flight.front() {
            self.remember_lost(pool.get(index).number);
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

    /// The probe timeout, backed off (RFC 9002 §6.2.1).
    pub(crate) fn pto(&self) -> Duration {
        self.rtt
            .pto_base(self.peer_delay)
            .saturating_mul(1 << self.pto_count.min(10))
            .min(Duration::from_mins(1))
    }

    /// Whether the congestion window admits a packet of `size` bytes.
    pub(crate) fn window_admits(&self, size: u16) -> bool {
        self.in_flight + u64::from(size) <= self.controller.window()
    }

    pub(crate) fn bytes_in_flight(&self) -> u64 {
        self.in_flight
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
            let number = pool.get(index).number;
            cursor = pool.next(index);
            while range.next_if(|&&(_, high)| high < number).is_some() {}
            let Some(&&(low, _)) = range.peek() else { break };
            if number < low {
                continue;
            }
            let Some(packet) = pool.remove_in_flight(&mut self.sent, index) else { break };
            self.in_flight -= u64::from(packet.size);
            if number == ack.largest() {
                let delay = Duration::from_micros(ack.delay_micros());
                self.rtt.sample(now.saturating_since(packet.sent_at), delay, self.peer_delay, true);
            }
            newly.packets += 1;
            newly.ect += u64::from(packet.ect);
            newly.app_limited = packet.app_limited;
            self.controller.on_ack(&Acked { packet_number: number, bytes: packet.size });
            for frame in &packet.frames {
                sink.acked(frame);
            }
            if let Some(largest) = packet.acked {
                sink.ack_seen(largest);
            }
        }
        newly
    }

    /// Late acknowledgements of packets that were given up: undo what that cost.
    fn notice_spurious(&mut self, ranges: &[(u64, u64)], pool: &mut SentPool, sink: &mut impl AckSink) {
        if self.lost.is_empty() {
            return;
        }
        let before = self.lost.len();
        let largest = self.largest_acked.unwrap_or(0);
        let mut distance = 0;
        self.lost.retain(|&number| {
            let acked = ranges.iter().any(|&(low, high)| low <= number && number <= high);
            if acked {
                distance = distance.max(largest - number + 1);
            }
            !acked
        });
        let found = before - self.lost.len();
        if found == 0 {
            return;
        }
        self.spurious += found as u64;
        self.packet_threshold = self.packet_threshold.max(distance.min(MAX_PACKET_THRESHOLD));
        let mut cursor = self.sent.lost.front();
        while let Some(index) = cursor {
            cursor = pool.next(index);
            let number = pool.get(index).number;
            if ranges.iter().any(|&(low, high)| low <= number && number <= high)
                && let Some(packet) = pool.remove_lost(&mut self.sent, index)
            {
                packet.frames.iter().for_each(|frame| sink.acked(frame));
            }
        }
        if self.lost.is_empty() && !self.lost_overflow {
            self.controller.on_spurious();
        }
    }

    fn check_ecn(&mut self, now: Instant, ack: &Ack<'_>, newly: Newly) {
        let counts =
            ack.ecn().map(|counts| EcnCounters { ect0: counts.ect0, ect1: counts.ect1, ce: counts.ce });
        if let EcnVerdict::Congestion(_) = self.ecn.on_ack(newly.ect, counts) {
            self.controller.on_loss(now, ack.largest(), false, true);
        }
    }

    /// Declares packets lost by packet or time threshold (RFC 9002 §6.1).
    fn detect_losses(&mut self, now: Instant, pool: &mut SentPool, late: bool, sink: &mut impl AckSink) {
        self.loss_time = None;
        let Some(largest) = self.largest_acked else { return };
        let delay = self.rtt.loss_delay();
        let mut event: Option<LossEvent> = None;
        while let Some(index) = self.sent.in_flight.front() {
            let packet = pool.get(index);
            let (number, sent_at, ect) = (packet.number, packet.sent_at, packet.ect);
            if number >= largest {
                break;
            }
            let overtaken = number + self.packet_threshold <= largest;
            let overdue = sent_at.saturating_add(delay) <= now;
            if !overtaken && (late || !overdue) {
                let due = sent_at.saturating_add(delay);
                self.loss_time = Some(if late && overdue { now.saturating_add(delay) } else { due });
                break;
            }
            let event = event.get_or_insert(LossEvent::new(number, sent_at));
            event.add(number, sent_at);
            self.packets_lost += 1;
            self.ecn.on_lost(u64::from(ect));
            self.give_up(pool, index, sink);
            self.note_lost(number, event.first == number);
        }
        if let Some(event) = event {
            let span = event.last_sent.saturating_since(event.run_start);
            let limit = self.rtt.pto_base(self.peer_delay) * PERSISTENT_FACTOR;
            let persistent = !late && self.rtt.has_sample() && span >= limit;
            self.controller.on_loss(now, event.last, persistent, false);
            if persistent {
                self.rtt.forget_min();
            }
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

    /// Remembers a lost number; a new event forgets the old ones only when they are settled.
    fn note_lost(&mut self, number: u64, first: bool) {
        if first && self.lost.is_empty() {
            self.lost_overflow = false;
        }
        self.remember_lost(number);
    }

    fn remember_lost(&mut self, number: u64) {
        if self.lost.is_full() {
            self.lost.remove(0);
            self.lost_overflow = true;
        }
        let _ = self.lost.push(number);
    }
}

/// What the pacing rate of a session follows from now.
pub(crate) fn pace_input(recovery: &Recovery, mtu: u16) -> PaceInput {
    let controller = &recovery.controller;
    let pending = controller.window().saturating_sub(recovery.in_flight);
    PaceInput::new(controller.window(), &recovery.rtt, controller.in_slow_start(), mtu, pending)
}

/// Told what became of frames that were sent.
pub(crate) trait AckSink {
    /// The frame reached the peer.
    fn acked(&mut self, frame: &SentFrame);
    /// The frame did not, and is not stream data: it has to be made anew.
    fn lost(&mut self, frame: &SentFrame);
    /// The peer saw our acknowledgement up to this number.
    fn ack_seen(&mut self, largest: u64);
}

/// What one ACK newly acknowledged.
#[derive(Clone, Copy, Default)]
struct Newly {
    packets: u32,
    ect: u64,
    app_limited: bool,
}

/// Losses found in one go.
struct LossEvent {
    first: u64,
    last: u64,
    last_sent: Instant,
    /// When the first packet of the unbroken run of losses was sent.
    run_start: Instant,
}

impl LossEvent {
    fn new(number: u64, sent_at: Instant) -> Self {
        Self { first: number, last: number, last_sent: sent_at, run_start: sent_at }
    }

    fn add(&mut self, number: u64, sent_at: Instant) {
        if number > self.last + 2 {
            self.run_start = sent_at;
        }
        self.last = number;
        self.last_sent = sent_at;
    }
}
