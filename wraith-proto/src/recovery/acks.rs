//! What to acknowledge, and when.

use core::time::Duration;

use super::ecn::EcnCounters;
use crate::time::Instant;

/// An acknowledgement leaves at the latest after this many packets that ask for one (`PROTO §8.4`).
const MAX_UNACKED: u32 = 64;

/// Acknowledgement state of one session; the packet numbers themselves are in the `ReceivedWindow`.
#[derive(Debug)]
pub(crate) struct Acks {
    /// Numbers below are not reported any more: the peer has seen them acknowledged.
    floor: u64,
    /// Packets that asked for an acknowledgement and got none yet.
    unacked: u32,
    /// Acknowledge at the next occasion.
    due: bool,
    /// Acknowledge at this time at the latest.
    pub(crate) deadline: Option<Instant>,
    largest_at: Instant,
    /// How many packets an acknowledgement may wait for; follows the packet rate.
    threshold: u32,
    round_started: Instant,
    round_packets: u32,
    /// Packets without own news since the last one that asked for an acknowledgement.
    silent: u32,
    /// Numbers from here on may only be reported together with the refused ranges (`PROTO §7.5`).
    pub(crate) hold: Option<u64>,
    pub(crate) ecn: EcnCounters,
}

impl Acks {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            floor: 0,
            unacked: 0,
            due: false,
            deadline: None,
            largest_at: now,
            threshold: 2,
            round_started: now,
            round_packets: 0,
            silent: 0,
            hold: None,
            ecn: EcnCounters::default(),
        }
    }

    /// A packet arrived, where `expected` would have been the one behind the largest before it.
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        number: u64,
        expected: u64,
        asks: bool,
        rtt: Duration,
        max_delay: Duration,
    ) {
        self.floor = self.floor.min(number);
        if number >= expected {
            self.largest_at = now;
        }
        self.follow_rate(now, rtt);
        if !asks {
            return;
        }
        self.unacked += 1;
        if self.unacked >= self.threshold || number != expected {
            self.due = true;
        } else if self.deadline.is_none() {
            self.deadline = Some(now.saturating_add(max_delay));
        }
    }

    /// An acknowledgement of everything received so far was sent.
    pub(crate) fn on_sent(&mut self, asks: bool) {
        self.unacked = 0;
        self.due = false;
        self.deadline = None;
        self.silent = if asks { 0 } else { self.silent + 1 };
    }

    /// The peer saw an acknowledgement of numbers below `floor`.
    pub(crate) fn on_acked(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
    }

    pub(crate) fn on_timer(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.due = true;
        }
    }

    /// The peer marked congestion: it should learn at once.
    pub(crate) fn hurry(&mut self) {
        self.due = true;
    }

    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Whether something waits to be acknowledged, due or not: it rides along with other frames.
    pub(crate) fn has_news(&self) -> bool {
        self.unacked > 0 || self.due
    }

    /// Whether the next packet should ask for an acknowledgement only so that ranges can be forgotten.
    pub(crate) fn wants_reply(&self) -> bool {
        self.silent >= MAX_UNACKED
    }

    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    pub(crate) fn delay(&self, now: Instant) -> Duration {
        now.saturating_since(self.largest_at)
    }

    /// Lets eight acknowledgements leave per round trip: at least one in 64 packets, at most one in 2.
    fn follow_rate(&mut self, now: Instant, rtt: Duration) {
        self.round_packets += 1;
        let threshold = (self.round_packets / 8).clamp(2, MAX_UNACKED);
        self.threshold = self.threshold.max(threshold);
        if now.saturating_since(self.round_started) >= rtt.max(Duration::from_millis(1)) {
            self.threshold = threshold;
            self.round_started = now;
            self.round_packets = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(10);
    const DELAY: Duration = Duration::from_millis(25);

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1_000_000 + micros * 1000)
    }

    /// `PROTO §8.4`
    #[test]
    fn one_packet_waits_for_the_delay_and_the_second_makes_it_due() {
        let mut acks = Acks::new(at(0));
        acks.on_packet(at(0), 0, 0, true, RTT, DELAY);
        assert!(!acks.is_due());
        assert_eq!(acks.deadline, Some(at(25_000)));
        acks.on_packet(at(10), 1, 1, true, RTT, DELAY);
        assert!(acks.is_due());
        acks.on_sent(false);
        assert!(!acks.is_due() && acks.deadline.is_none());
    }

    #[test]
    fn a_gap_is_reported_at_once() {
        let mut acks = Acks::new(at(0));
        acks.on_packet(at(0), 2, 1, true, RTT, DELAY);
        assert!(acks.is_due());
    }

    #[test]
    fn packets_that_ask_for_nothing_cause_nothing() {
        let mut acks = Acks::new(at(0));
        acks.on_packet(at(0), 0, 0, false, RTT, DELAY);
        assert!(!acks.has_news() && acks.deadline.is_none());
    }

    /// `PROTO §8.4`: never fewer than one in 64.
    #[test]
    fn acknowledgements_thin_out_under_load_and_come_back_when_it_ends() {
        let mut acks = Acks::new(at(0));
        let mut sent = 0u32;
        for number in 0..40_000u64 {
            acks.on_packet(at(number), number, number, true, RTT, DELAY);
            if acks.is_due() {
                acks.on_sent(false);
                sent += 1;
            }
        }
        assert!((625..700).contains(&sent), "{sent} acknowledgements of 40,000 packets");
        for number in 40_000..40_004u64 {
            acks.on_packet(at(number * 10_000), number, number, true, RTT, DELAY);
        }
        assert_eq!(acks.threshold, 2);
    }

    #[test]
    fn a_late_packet_below_the_floor_is_reported_again() {
        let mut acks = Acks::new(at(0));
        acks.on_acked(100);
        assert_eq!(acks.floor(), 100);
        acks.on_packet(at(0), 50, 100, true, RTT, DELAY);
        assert_eq!(acks.floor(), 50);
    }
}
