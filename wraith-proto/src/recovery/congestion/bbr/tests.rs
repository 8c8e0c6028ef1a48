use std::collections::VecDeque;
use std::vec::Vec;

use core::time::Duration;

use super::*;

const MTU: u16 = 1_200;
const PACKET: u64 = MTU as u64;
const MS: fn(u64) -> Duration = Duration::from_millis;
/// 1,000 packets a second.
const RATE: u64 = 1_200_000;
const RTT: Duration = Duration::from_millis(100);
/// What the line holds in a round trip.
const BDP: u64 = RATE / 10;

/// A packet on the line.
struct Packet {
    number: u64,
    sent_at: Instant,
    arrives: Instant,
    delivery: Delivery,
    lost: bool,
}

/// An end that is not there for 50 to 500 µs of each one or two milliseconds, as within a machine.
struct Absences {
    leaves: Instant,
    returns: Instant,
    drawn: u64,
}

impl Absences {
    const NONE_YET: Self = Self { leaves: Instant::MIN, returns: Instant::MIN, drawn: 0 };

    /// When what falls to this time is done. Times ascend.
    fn done(&mut self, at: Instant) -> Instant {
        while self.returns <= at {
            self.drawn = self.drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bits = self.drawn >> 33;
            self.leaves = self.returns.max(at).saturating_add(Duration::from_micros(500 + bits % 1_000));
            self.returns = self.leaves.saturating_add(Duration::from_micros(50 + (bits >> 10) % 450));
        }
        if self.leaves <= at { self.returns } else { at }
    }
}

/// A controller on a line that delivers packets at a rate, with a queue before it, and acknowledges each.
struct Path {
    bbr: Bbr,
    rtt: Rtt,
    now: Instant,
    next_send: Instant,
    busy_until: Instant,
    number: u64,
    in_flight: u64,
    packets: VecDeque<Packet>,
    rate: u64,
    /// Bytes that the queue takes.
    queue: u64,
    /// One of so many packets is lost at random, or none.
    lose_each: Option<u64>,
    /// The application offers so many packets.
    offered: u64,
    phases: Vec<(Phase, Instant)>,
    round_trip: Duration,
    receiver: Option<Absences>,
    sender: Option<Absences>,
    delivered: u64,
}

impl Path {
    fn new() -> Self {
        let start = Instant::from_nanos(1_000_000_000);
        let mut rtt = Rtt::new();
        rtt.sample(RTT, Duration::ZERO, Duration::ZERO, true);
        Self {
            bbr: Bbr::new(MTU),
            rtt,
            now: start,
            next_send: start,
            busy_until: start,
            number: 0,
            in_flight: 0,
            packets: VecDeque::new(),
            rate: RATE,
            queue: 4 * BDP,
            lose_each: None,
            offered: u64::MAX,
            phases: Vec::new(),
            round_trip: RTT,
            receiver: None,
            sender: None,
            delivered: 0,
        }
    }

    /// In the middle of a cycle, on a path that is known.
    fn cruising() -> Self {
        let mut path = Self::new();
        path.run_until(|path| path.bbr.phase == Phase::Cruise);
        path
    }

    fn transmit_time(&self) -> Duration {
        Duration::from_nanos(PACKET * 1_000_000_000 / self.rate)
    }

    fn send(&mut self) {
        let waiting = product(self.rate, nanos(self.busy_until.saturating_since(self.now)));
        let noise = self.lose_each.is_some_and(|each| self.number % each == each - 1);
        let lost = waiting + PACKET > self.queue || noise;
        if !lost {
            self.busy_until = self.busy_until.max(self.now).saturating_add(self.transmit_time());
        }
        let mut arrives = self.busy_until.max(self.now).saturating_add(self.round_trip);
        if let Some(receiver) = &mut self.receiver {
            arrives = receiver.done(arrives);
        }
        self.in_flight += PACKET;
        let delivery = self.bbr.on_sent(self.now, MTU, self.number, self.in_flight);
        let (number, sent_at) = (self.number, self.now);
        self.packets.push_back(Packet { number, sent_at, arrives, delivery, lost });
        self.number += 1;
        let rate = self.bbr.pacing_rate(&self.rtt).expect("there is a round-trip time");
        self.next_send = self.now.saturating_add(Duration::from_nanos(PACKET * 1_000_000_000 / rate));
        self.offered -= 1;
        if self.offered == 0 {
            self.bbr.on_app_limited();
        }
    }

    fn receive(&mut self) {
        let packet = self.packets.pop_front().expect("one arrived");
        self.in_flight -= PACKET;
        if packet.lost {
            self.lose(packet.number, packet.delivery);
            return;
        }
        self.delivered += PACKET;
        let round_trip = self.now.saturating_since(packet.sent_at);
        self.rtt.sample(round_trip, Duration::ZERO, Duration::ZERO, true);
        let Packet { number, sent_at, delivery, .. } = packet;
        self.bbr.on_ack(&Acked { packet_number: number, bytes: MTU, sent_at, delivery });
        self.bbr.on_ack_frame_end(self.now, number, self.in_flight, false, &self.rtt);
    }

    fn lose(&mut self, number: u64, delivery: Delivery) {
        self.bbr.on_packet_lost(self.now, &LostPacket { packet_number: number, bytes: MTU, delivery });
        self.bbr.on_loss(self.now, &Lost { largest: number, bytes: PACKET, persistent: false, ecn: false });
    }

    /// The next packet leaves or arrives.
    fn step(&mut self) {
        let admitted = self.offered > 0 && self.in_flight + PACKET <= self.bbr.window();
        let arrival = self.packets.front().map(|packet| packet.arrives);
        let mut leaves = self.next_send.max(self.now);
        if let Some(sender) = &mut self.sender {
            leaves = sender.done(leaves);
        }
        let departure = admitted.then_some(leaves);
        match (arrival, departure) {
            (Some(arrival), Some(departure)) if departure < arrival => {
                self.now = departure;
                self.send();
            }
            (Some(arrival), _) => {
                self.now = arrival;
                self.receive();
            }
            (None, Some(departure)) => {
                self.now = departure;
                self.send();
            }
            (None, None) => panic!("nothing will ever happen"),
        }
        if self.phases.last().is_none_or(|&(phase, _)| phase != self.bbr.phase) {
            self.phases.push((self.bbr.phase, self.now));
        }
    }

    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        let end = self.now.saturating_add(Duration::from_mins(1));
        while !done(self) {
            assert!(self.now < end, "in {:?} after {:?}", self.bbr.phase, self.phases);
            self.step();
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now.saturating_add(time);
        self.run_until(|path| path.now >= end);
    }

    /// Everything in flight arrives, and nothing more is offered.
    fn empty(&mut self) {
        self.offered = 1;
        self.run_until(|path| path.packets.is_empty() && path.offered == 0);
    }

    fn phases(&self) -> Vec<Phase> {
        self.phases.iter().map(|&(phase, _)| phase).collect()
    }

    /// How long the phase before the present one took.
    fn last_phase(&self) -> Duration {
        let [.., (_, start), (_, end)] = self.phases[..] else { panic!("{:?}", self.phases) };
        end.saturating_since(start)
    }
}

/// A line within a machine: 10 Gbit/s, 30 µs.
fn within_a_machine() -> Path {
    let mut path = Path::new();
    (path.rate, path.queue, path.round_trip) = (1_250_000_000, 4 << 20, Duration::from_micros(30));
    path.rtt = Rtt::new();
    path.rtt.sample(path.round_trip, Duration::ZERO, Duration::ZERO, true);
    path
}

/// What the second half of a second delivers, in percent of the line.
fn share(path: &mut Path) -> u64 {
    path.run_for(MS(500));
    let before = path.delivered;
    path.run_for(MS(500));
    (path.delivered - before) * 100 / (path.rate / 2)
}

fn assert_near(value: u64, expected: u64, tolerance: u64) {
    assert!(value.abs_diff(expected) * 100 <= expected * tolerance, "{value} instead of {expected}");
}

#[test]
fn startup_doubles_until_the_rate_stops_growing_and_drain_empties_the_queue() {
    let mut path = Path::new();
    let start = path.now;
    path.run_until(|path| path.bbr.phase == Phase::Drain);
    // 10, 20, 40, 80 packets of the 100 that the line holds, and three rounds without growth, longer by the queue.
    let rounds = path.now.saturating_since(start).as_millis() / 100;
    assert!((6..=16).contains(&rounds), "{rounds} round trips");
    assert_near(path.bbr.max_rate(), RATE, 2);
    assert!(path.in_flight > BDP * 3 / 2, "a queue is there: {}", path.in_flight);
    assert_eq!(path.bbr.bounds, Bounds::NONE);
    path.run_until(|path| path.bbr.phase != Phase::Drain);
    // With an empty queue there is nothing to go down from.
    assert_eq!(path.phases(), [Phase::Startup, Phase::Drain, Phase::Cruise]);
    assert!(path.in_flight <= path.bbr.target(100), "{}", path.in_flight);
    assert!(path.last_phase() < MS(400), "{:?}", path.last_phase());
}

#[test]
fn startup_ends_with_the_losses_of_a_full_queue_and_remembers_how_much_was_in_flight() {
    let mut path = Path::new();
    path.queue = BDP / 5;
    path.run_until(|path| path.bbr.phase == Phase::Drain);
    assert!(path.bbr.full_ever && !path.bbr.full_now, "by loss, not by the rate");
    assert_near(path.bbr.bounds.long_in_flight, BDP * 6 / 5, 25);
}

#[test]
fn a_few_losses_do_not_end_startup() {
    let mut path = Path::new();
    path.lose_each = Some(200);
    path.run_until(|path| path.bbr.phase == Phase::Drain);
    assert!(path.bbr.full_now);
    assert_eq!(path.bbr.bounds, Bounds::NONE);
}

#[test]
fn a_cycle_goes_down_cruises_refills_and_probes_up_every_few_seconds() {
    let mut path = Path::cruising();
    path.phases.clear();
    path.run_until(|path| path.phases().ends_with(&[Phase::Down, Phase::Cruise, Phase::Refill]));
    let expected = [Phase::Cruise, Phase::Refill, Phase::Up, Phase::Down, Phase::Cruise, Phase::Refill];
    assert_eq!(path.phases(), expected);
    let at = |index: usize| path.phases[index].1;
    let waited = at(5).saturating_since(at(3));
    assert!((MS(2_000)..=MS(3_200)).contains(&waited), "{waited:?} from probe to probe");
    let refilled = at(2).saturating_since(at(1));
    assert!((MS(90)..=MS(250)).contains(&refilled), "{refilled:?} to refill");
    assert_eq!(path.bbr.bounds, Bounds::NONE, "nothing was lost");
    assert_near(path.bbr.max_rate(), RATE, 2);
}

#[test]
fn each_phase_paces_with_its_gain() {
    let mut path = Path::cruising();
    for (phase, gain) in [(Phase::Cruise, 100), (Phase::Refill, 100), (Phase::Up, 125), (Phase::Down, 90)] {
        path.run_until(|path| path.bbr.phase == phase);
        path.run_for(MS(3));
        assert_near(path.bbr.pacing_rate, RATE * gain / 100 * 99 / 100, 2);
    }
}

#[test]
fn bandwidth_that_appears_is_found() {
    let mut path = Path::cruising();
    path.rate = 4 * RATE;
    path.run_for(Duration::from_secs(12));
    assert_near(path.bbr.max_rate(), 4 * RATE, 3);
}

#[test]
fn bandwidth_that_vanishes_is_forgotten_with_the_second_probe() {
    let mut path = Path::cruising();
    path.rate = RATE / 2;
    path.run_for(Duration::from_secs(20));
    assert_near(path.bbr.max_rate(), RATE / 2, 3);
}

#[test]
fn a_probe_that_meets_too_much_loss_bounds_what_is_in_flight_and_leaves_headroom() {
    let mut path = Path::cruising();
    path.queue = BDP / 5;
    path.run_until(|path| path.bbr.phase == Phase::Up);
    path.run_until(|path| path.bbr.phase == Phase::Down);
    let bound = path.bbr.bounds.long_in_flight;
    assert_near(bound, BDP * 6 / 5, 15);
    assert!(!path.bbr.full_now, "loss ended the probe");
    path.run_until(|path| path.bbr.phase == Phase::Cruise);
    assert!(path.bbr.window() <= bound - bound * 15 / 100, "{} of {bound}", path.bbr.window());
}

#[test]
fn the_long_term_bound_rises_by_ever_larger_steps_while_a_probe_fills_it() {
    let mut path = Path::cruising();
    path.bbr.bounds.long_in_flight = BDP;
    path.rate = 2 * RATE;
    path.run_for(Duration::from_secs(15));
    assert!(path.bbr.bounds.long_in_flight > 2 * BDP, "{}", path.bbr.bounds.long_in_flight);
    assert_near(path.bbr.max_rate(), 2 * RATE, 5);
}

#[test]
fn a_probe_goes_on_while_only_the_long_term_bound_holds_it() {
    let mut path = Path::cruising();
    path.empty();
    (path.bbr.bounds.long_in_flight, path.bbr.window) = (BDP / 4, BDP / 4);
    path.offered = u64::MAX;
    path.run_until(|path| path.bbr.phase == Phase::Up);
    assert_near(path.bbr.bounds.long_in_flight, BDP / 4, 5);
    path.run_until(|path| path.bbr.phase == Phase::Down);
    assert!(path.bbr.bounds.long_in_flight >= BDP, "{}", path.bbr.bounds.long_in_flight);
}

#[test]
fn a_due_probe_waits_while_a_queue_is_there_but_not_for_long() {
    let mut path = Path::cruising();
    path.bbr.probe_wait = 0;
    path.bbr.min_rtt = nanos(MS(80));
    path.run_for(MS(150));
    let rounds = path.bbr.rounds;
    path.run_until(|path| path.bbr.phase == Phase::Refill);
    assert!((3..=5).contains(&path.bbr.rounds.wrapping_sub(rounds)), "{} rounds", path.bbr.rounds - rounds);
    let mut path = Path::cruising();
    path.bbr.probe_wait = 0;
    path.run_for(MS(150));
    assert_eq!(path.bbr.phase, Phase::Refill, "there is no queue");
}

#[test]
fn waits_between_probes_are_spread_over_more_than_a_probe_takes() {
    let longest = |rtt| {
        let mut bbr = Bbr::new(MTU);
        bbr.min_rtt = nanos(rtt);
        let waits = (0..1_000).map(|number| {
            bbr.next_packet = number;
            bbr.start_down(Instant::from_nanos(1));
            bbr.probe_wait
        });
        let waits: Vec<u16> = waits.collect();
        assert!(waits.iter().all(|&wait| wait >= 2_000));
        waits.into_iter().max().unwrap()
    };
    assert!((2_950..3_000).contains(&longest(MS(20))));
    assert!((2_950..3_000).contains(&longest(MS(125))));
    assert!((4_300..4_400).contains(&longest(MS(300))));
    assert!((11_900..12_000).contains(&longest(Duration::from_secs(5))));
}

#[test]
fn a_round_with_much_loss_lowers_the_short_term_bounds_until_the_next_probe() {
    let mut path = Path::cruising();
    path.rate = RATE / 2;
    path.lose_each = Some(10);
    path.queue = BDP;
    path.run_for(MS(700));
    assert_eq!(path.bbr.phase, Phase::Cruise);
    let Bounds { short_rate, short_in_flight, .. } = path.bbr.bounds;
    // Two rounds of 200 ms, to seven tenths each, or to what they delivered.
    assert!((RATE * 44 / 100..RATE * 9 / 10).contains(&short_rate), "{short_rate}");
    assert!(short_in_flight < 2 * BDP, "{short_in_flight}");
    path.lose_each = None;
    path.run_until(|path| path.bbr.phase == Phase::Refill);
    assert_eq!((path.bbr.bounds.short_rate, path.bbr.bounds.short_in_flight), (u64::MAX, u64::MAX));
}

#[test]
fn little_loss_without_a_queue_lowers_nothing() {
    let mut path = Path::cruising();
    path.lose_each = Some(100);
    path.run_for(MS(1_500));
    assert_eq!(path.bbr.phase, Phase::Cruise);
    assert!(path.bbr.events() > 0);
    assert_eq!(path.bbr.bounds, Bounds::NONE);
}

#[test]
fn an_old_round_trip_is_measured_with_little_in_flight_for_a_fifth_of_a_second() {
    let mut path = Path::cruising();
    // A queue that stays, as others make it.
    path.bbr.probe_min = nanos(MS(80));
    path.bbr.min_rtt = nanos(MS(80));
    path.run_until(|path| path.bbr.phase == Phase::ProbeRtt);
    let before = path.bbr.window;
    assert!(path.bbr.window() < before);
    path.run_until(|path| path.bbr.probe_rtt_done.is_some());
    assert!(path.in_flight <= path.bbr.probe_rtt_window());
    path.run_until(|path| path.bbr.phase != Phase::ProbeRtt);
    assert_eq!(path.bbr.phase, Phase::Cruise);
    assert!((MS(200)..=MS(700)).contains(&path.last_phase()), "{:?}", path.last_phase());
    assert_eq!(path.bbr.window(), before);
    assert_near(path.bbr.probe_min, nanos(RTT), 3);
    assert_near(path.bbr.max_rate(), RATE, 2);
}

#[test]
fn an_old_round_trip_waits_for_a_probe_of_the_rate_to_end() {
    let mut path = Path::cruising();
    path.run_for(Duration::from_secs(12));
    path.rate = RATE / 2;
    path.run_until(|path| path.bbr.phase == Phase::Refill);
    // Both are due at once, in a queue that stays.
    let old = Instant::from_nanos(path.now.as_nanos() - nanos(Duration::from_secs(11)));
    (path.bbr.probe_min, path.bbr.probe_min_at) = (nanos(MS(80)), old);
    (path.bbr.min_rtt, path.bbr.min_rtt_at) = (nanos(MS(80)), old);
    path.phases.clear();
    path.run_until(|path| path.bbr.phase == Phase::ProbeRtt);
    assert_eq!(path.phases(), [Phase::Refill, Phase::Up, Phase::Down, Phase::ProbeRtt]);
    // The cycle was complete, and what is not measured anew is still known.
    assert!(path.bbr.rates[1] <= RATE * 6 / 10, "{:?}", path.bbr.rates);
    assert_eq!(path.bbr.min_rtt, nanos(MS(80)));
    path.run_until(|path| path.bbr.phase == Phase::Cruise);
    path.run_for(MS(300));
    assert_near(path.bbr.min_rtt, nanos(RTT), 5);
}

#[test]
fn a_receiver_that_is_away_now_and_then_costs_nothing() {
    let mut path = within_a_machine();
    path.receiver = Some(Absences::NONE_YET);
    let share = share(&mut path);
    assert!(share >= 98, "{share} %");
}

#[test]
fn a_sender_that_is_away_now_and_then_does_not_hold_the_path_for_slow() {
    let mut path = within_a_machine();
    path.sender = Some(Absences::NONE_YET);
    let share = share(&mut path);
    // It is there for four fifths of the time, and nothing makes up for the rest.
    assert!((75..85).contains(&share), "{share} %");
    assert_near(path.bbr.max_rate(), path.rate, 2);
}

#[test]
fn the_first_round_trip_is_not_old() {
    let mut path = Path::new();
    path.now = path.now.saturating_add(Duration::from_hours(1));
    (path.next_send, path.busy_until) = (path.now, path.now);
    path.run_until(|path| path.bbr.rounds > 2);
    assert_eq!(path.phases(), [Phase::Startup]);
}

#[test]
fn a_round_trip_that_is_seen_again_needs_no_probe() {
    let mut path = Path::cruising();
    path.phases.clear();
    path.run_for(Duration::from_secs(30));
    assert!(!path.phases().contains(&Phase::ProbeRtt), "{:?}", path.phases);
}

#[test]
fn a_longer_path_is_known_after_ten_seconds() {
    let mut path = Path::cruising();
    path.bbr.min_rtt = nanos(MS(20));
    path.bbr.probe_min = nanos(MS(20));
    path.run_for(Duration::from_secs(17));
    assert_near(path.bbr.min_rtt, nanos(RTT), 5);
}

#[test]
fn an_application_that_offers_little_does_not_lower_the_rate() {
    let mut path = Path::cruising();
    for _ in 0..100 {
        path.empty();
        path.now = path.now.saturating_add(MS(50));
        path.offered = 5;
        path.run_until(|path| path.packets.is_empty() && path.offered == 0);
    }
    assert_near(path.bbr.max_rate(), RATE, 2);
    assert!(path.bbr.window() > BDP);
}

#[test]
fn an_application_that_offers_little_does_not_end_startup() {
    let mut path = Path::new();
    for _ in 0..20 {
        path.offered = 3;
        path.run_until(|path| path.packets.is_empty() && path.offered == 0);
        path.now = path.now.saturating_add(MS(50));
    }
    assert_eq!(path.bbr.phase, Phase::Startup);
    // Nor does it delay what comes then: ten packets a round trip, times 2.77.
    assert_near(path.bbr.pacing_rate, 277 * PACKET, 5);
}

#[test]
fn after_silence_packets_leave_at_the_known_rate_and_the_round_trip_is_not_probed() {
    let mut path = Path::cruising();
    path.empty();
    path.now = path.now.saturating_add(Duration::from_secs(20));
    path.offered = u64::MAX;
    path.step();
    assert!(path.bbr.idle_restart);
    assert_near(path.bbr.pacing_rate, RATE * 99 / 100, 2);
    path.phases.clear();
    path.run_for(MS(800));
    assert!(!path.phases().contains(&Phase::ProbeRtt), "{:?}", path.phases);
    assert_near(path.bbr.max_rate(), RATE, 2);
}

#[test]
fn spurious_losses_bring_bounds_and_probe_back() {
    let mut path = Path::cruising();
    path.run_until(|path| path.bbr.phase == Phase::Up);
    path.run_for(MS(120));
    let before = path.bbr.bounds;
    let (number, delivery) =
        path.packets.iter().map(|packet| (packet.number, packet.delivery)).next_back().unwrap();
    for _ in 0..10 {
        path.lose(number, delivery);
    }
    assert_eq!(path.bbr.phase, Phase::Down);
    assert!(path.bbr.bounds.long_in_flight < u64::MAX);
    path.bbr.on_spurious();
    assert_eq!((path.bbr.phase, path.bbr.bounds), (Phase::Up, before));
    // Once only.
    path.bbr.bounds.long_in_flight = BDP;
    path.bbr.on_spurious();
    assert_eq!(path.bbr.bounds.long_in_flight, BDP);
}

#[test]
fn spurious_losses_bring_startup_back() {
    let mut path = Path::new();
    path.run_until(|path| path.number == 40);
    let (number, delivery) =
        path.packets.iter().map(|packet| (packet.number, packet.delivery)).next_back().unwrap();
    path.lose(number, delivery);
    path.bbr.leave_startup();
    path.bbr.phase = Phase::Drain;
    path.bbr.on_spurious();
    assert_eq!((path.bbr.phase, path.bbr.full_ever), (Phase::Startup, false));
    assert_eq!(path.bbr.bounds, Bounds::NONE);
}

#[test]
fn a_mark_ends_startup_and_probes_and_is_not_undone() {
    let mark = |path: &mut Path| {
        let largest = path.number - 1;
        path.bbr.on_loss(path.now, &Lost { largest, bytes: 0, persistent: false, ecn: true });
    };
    let mut path = Path::new();
    path.run_until(|path| path.number == 100);
    mark(&mut path);
    path.run_until(|path| path.bbr.phase == Phase::Drain);
    assert!(path.bbr.bounds.long_in_flight < u64::MAX);

    let mut path = Path::cruising();
    path.run_until(|path| path.bbr.phase == Phase::Up);
    mark(&mut path);
    assert_eq!((path.bbr.phase, path.bbr.events()), (Phase::Down, 1));
    assert_near(path.bbr.bounds.long_in_flight, path.in_flight, 1);
    path.bbr.on_spurious();
    assert_eq!(path.bbr.phase, Phase::Down);
    // In Cruise it lowers what lasts until the next probe.
    path.run_until(|path| path.bbr.phase == Phase::Cruise);
    mark(&mut path);
    path.run_for(MS(250));
    assert!(path.bbr.bounds.short_rate < u64::MAX);
}

#[test]
fn persistent_congestion_leaves_four_packets_and_growth_from_there() {
    let mut path = Path::cruising();
    let largest = path.number - 1;
    path.bbr.on_loss(path.now, &Lost { largest, bytes: PACKET, persistent: true, ecn: false });
    assert_eq!(path.bbr.window(), 4 * PACKET);
    path.run_for(MS(600));
    assert!(path.bbr.window() >= BDP, "{}", path.bbr.window());
}

#[test]
fn equal_runs_are_equal_and_probes_are_not_in_step() {
    let waits = |queue| {
        let mut path = Path::new();
        path.queue = queue;
        path.run_for(Duration::from_secs(20));
        (path.bbr.probe_wait, path.number)
    };
    assert_eq!(waits(4 * BDP), waits(4 * BDP));
    assert_ne!(waits(4 * BDP).0, waits(BDP / 3).0);
}

#[test]
fn a_larger_datagram_keeps_the_window_and_what_was_measured() {
    let mut bbr = Bbr::new(MTU);
    bbr.on_mtu(8_972);
    assert_eq!((bbr.window(), bbr.min_window()), (initial_window(8_972), MIN_PACKETS * 8_972));
    let mut path = Path::new();
    path.run_for(MS(3_000));
    let (window, rate) = (path.bbr.window(), path.bbr.max_rate());
    path.bbr.on_mtu(1_472);
    assert_eq!((path.bbr.window(), path.bbr.max_rate()), (window, rate));
    path.bbr.on_mtu(60_000);
    assert_eq!(path.bbr.window(), window.max(MIN_PACKETS * 60_000));
}
