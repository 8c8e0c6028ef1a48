//! Machines that sleep, clocks that jump, loops that come late: in every phase of a session.

use std::time::Duration;

use wraith_proto::{
    Budget, CloseReason, Congestion, Dir, Event, Progress, SessionHandle, SessionStats, StreamId,
};
use wraith_sim::{LinkConfig, Node, Pair, PairConfig, Recorder, Side};

use crate::common::{ONE_WAY, SECOND, SMALL, assert_carries, events, millis, watch};

const MINUTE: Duration = Duration::from_mins(1);

/// Where a session is when somebody falls asleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// So many milliseconds after the dial.
    Handshake(u64),
    Transfer,
    Idle,
    Closing,
    Rekey,
    Search,
}

const PHASES: [Phase; 9] = [
    Phase::Handshake(5),
    Phase::Handshake(15),
    Phase::Handshake(25),
    Phase::Handshake(35),
    Phase::Transfer,
    Phase::Idle,
    Phase::Closing,
    Phase::Rekey,
    Phase::Search,
];

/// Who sleeps.
const SLEEPERS: [&[Side]; 3] = [&[Side::Left], &[Side::Right], &[Side::Left, Side::Right]];

/// What is on its way in the phases that have a transfer.
fn content() -> Vec<u8> {
    (0..600_000_u32).map(|at| (at % 251) as u8).collect()
}

fn config(seed: u64, phase: Phase, idle: Duration, congestion: Congestion) -> PairConfig {
    // 10 Mbit/s: the transfer takes half a second.
    let link = LinkConfig::perfect().with_latency(ONE_WAY).with_rate(Some(10_000_000));
    PairConfig::new(seed).with_link(link).with_both(move |config| {
        config.limits = wraith_proto::Limits { sent_packets: 4096, ..SMALL };
        let transport = config.transport.with_idle_timeout(idle).with_congestion(congestion);
        config.transport = match phase {
            Phase::Rekey => transport.with_rekey_interval(Duration::ZERO),
            Phase::Search => transport.with_mtu_search(true).with_max_datagram(8_972),
            _ => transport,
        };
    })
}

/// A pair in a phase, its session, and what is on its way.
struct Scene {
    pair: Pair,
    left: SessionHandle,
    right: Option<SessionHandle>,
    stream: Option<StreamId>,
}

impl Scene {
    fn new(seed: u64, phase: Phase, idle: Duration, congestion: Congestion) -> Self {
        Self::begin(config(seed, phase, idle, congestion), phase)
    }

    fn begin(config: PairConfig, phase: Phase) -> Self {
        let mut pair = Pair::new(config);
        if let Phase::Handshake(after) = phase {
            let left = pair.dial().expect("a free session");
            pair.run_for(millis(after));
            return Self { pair, left, right: None, stream: None };
        }
        let (left, right) = pair.connect();
        let mut scene = Self { pair, left, right: Some(right), stream: None };
        match phase {
            Phase::Transfer | Phase::Rekey => scene.send(),
            Phase::Idle => scene.pair.run_for(SECOND),
            Phase::Closing => {
                let now = scene.pair.now();
                scene.pair.left.endpoint.session(left).expect("open").close(now, 0);
                scene.pair.run_for(millis(1));
            }
            Phase::Search | Phase::Handshake(_) => scene.pair.run_for(millis(70)),
        }
        scene
    }

    /// Begins a transfer from left to right, and runs into its middle.
    fn send(&mut self) {
        let mut session = self.pair.left.endpoint.session(self.left).expect("open");
        let stream = session.open(Dir::Uni).expect("a stream");
        session.attach(stream, content().len() as u64).expect("a fresh stream");
        self.pair.left.host.serve(self.left, stream, content());
        self.stream = Some(stream);
        self.pair.run_for(millis(110));
        assert!(!self.is_complete(), "in the middle");
    }

    fn is_complete(&self) -> bool {
        let stream = self.stream.expect("a transfer");
        let received = self.pair.right.host.stream(self.right.expect("a session"), stream);
        received.and_then(|received| received.complete()).is_some_and(|bytes| bytes == content())
    }

    fn sleep(&mut self, sleepers: &[Side], time: Duration) {
        for &side in sleepers {
            self.pair.suspend(side);
        }
        self.pair.run_for(time);
        for &side in sleepers {
            self.pair.wake(side);
        }
    }

    fn stats(&mut self) -> SessionStats {
        self.pair.left.endpoint.session(self.left).expect("open").stats()
    }
}

/// Whether a session is over, as its application was told.
fn is_over(node: &Node<Recorder>, session: SessionHandle) -> bool {
    events(node, session).iter().any(|event| matches!(event, Event::Closed(_)))
}

/// `PROTO §8.9`: whatever was going on when it fell asleep, whoever wakes after ten minutes can dial at once, and the
/// former session has ended at both ends.
#[test]
fn a_session_begun_right_after_waking_lives_whatever_came_before() {
    for (number, phase) in PHASES.into_iter().enumerate() {
        for sleepers in SLEEPERS {
            let what = format!("{phase:?}, {sleepers:?}");
            let mut scene = Scene::new(number as u64, phase, 30 * SECOND, Congestion::Bbr);
            scene.sleep(sleepers, 10 * MINUTE);
            let (fresh, right) = scene.pair.connect();
            scene.pair.right.host.datagrams.clear();
            // For longer than what lived before would have lived, and a handshake may take.
            for _ in 0..5 {
                assert_carries(&mut scene.pair, fresh, right);
            }
            assert!(!is_over(&scene.pair.left, fresh), "{what}");
            assert!(is_over(&scene.pair.left, scene.left), "{what}: {:?}", scene.pair.left.host.events);
            assert!(scene.right.is_none_or(|right| is_over(&scene.pair.right, right)), "{what}");
            assert_eq!(
                (scene.pair.left.endpoint.sessions(), scene.pair.right.endpoint.sessions()),
                (1, 1),
                "{what}"
            );
        }
    }
}

/// `PROTO §8.9`: without an idle time the session outlives the night, and what was on its way arrives.
#[test]
fn a_transfer_goes_on_after_ten_minutes_of_sleep() {
    for phase in [Phase::Transfer, Phase::Rekey] {
        for sleepers in SLEEPERS {
            for congestion in [Congestion::Bbr, Congestion::Cubic] {
                let mut scene = Scene::new(20, phase, Duration::ZERO, congestion);
                scene.sleep(sleepers, 10 * MINUTE);
                scene.pair.run_for(5 * SECOND);
                assert!(scene.is_complete(), "{phase:?}, {sleepers:?}, {congestion:?}");
                assert_eq!(scene.pair.left.closed() + scene.pair.right.closed(), 0);
            }
        }
    }
}

/// `PROTO §8.9`: nothing is lost, so nothing is declared lost, and no congestion either: what the socket kept is read first.
#[test]
fn a_sender_that_slept_declares_no_loss_and_no_congestion() {
    for sleepers in [&[Side::Left][..], &[Side::Left, Side::Right]] {
        for congestion in [Congestion::Bbr, Congestion::Cubic] {
            let mut scene = Scene::new(21, Phase::Transfer, Duration::ZERO, congestion);
            let before = scene.stats();
            // One acknowledgement for two packets: the socket keeps them all.
            assert!(before.bytes_in_flight > 10_000 && before.bytes_in_flight < 120 * 1200, "{before:?}");
            scene.sleep(sleepers, 10 * MINUTE);
            scene.pair.run_for(millis(100));
            let after = scene.stats();
            let what = format!("{sleepers:?}, {congestion:?}: {before:?}, {after:?}");
            assert_eq!(
                (after.packets_lost, after.congestion_events),
                (before.packets_lost, before.congestion_events),
                "{what}"
            );
            // BBR measures the shortest round trip anew after so long, for 200 ms and with little in flight.
            let bbr = congestion == Congestion::Bbr;
            assert!(bbr || after.congestion_window >= before.congestion_window, "{what}");
            assert!(after.rtt < SECOND, "{what}");
        }
    }
}

/// `PROTO §8.9`: the first datagrams after the sleep leave one by one, however fast the path was.
#[test]
fn a_sender_that_slept_begins_with_an_empty_pacer() {
    for congestion in [Congestion::Bbr, Congestion::Cubic] {
        let mut config = config(22, Phase::Transfer, Duration::ZERO, congestion);
        let link = LinkConfig::perfect().with_latency(ONE_WAY).with_rate(Some(500_000_000));
        (config.to_right, config.to_left) = (link, link);
        let mut scene = Scene::begin(config, Phase::Transfer);
        scene.pair.suspend(Side::Left);
        scene.pair.run_for(10 * MINUTE);
        let sent = scene.stats().packets_sent;
        scene.pair.wake(Side::Left);
        let burst = scene.stats().packets_sent - sent;
        assert!(burst <= 3, "{congestion:?}: {burst} packets at once");
        scene.pair.run_for(5 * SECOND);
        assert!(scene.is_complete());
    }
}

/// `PROTO §8.9`: a loop that comes every few seconds is slow, and takes nothing for loss.
#[test]
fn a_loop_that_is_always_late_by_seconds_loses_nothing() {
    for late in [&[Side::Left][..], &[Side::Right], &[Side::Left, Side::Right]] {
        let mut scene = Scene::new(23, Phase::Idle, 10 * MINUTE, Congestion::Bbr);
        let mut session = scene.pair.left.endpoint.session(scene.left).expect("open");
        let stream = session.open(Dir::Uni).expect("a stream");
        session.attach(stream, 30_000).expect("a fresh stream");
        scene.pair.left.host.serve(scene.left, stream, content()[..30_000].to_vec());
        for _ in 0..60 {
            scene.sleep(late, millis(2_500));
        }
        let received =
            scene.pair.right.host.stream(scene.right.expect("a session"), stream).expect("something came");
        assert!(received.complete() == Some(&content()[..30_000]), "{late:?}: {:?}", received.ranges());
        let stats = scene.stats();
        assert_eq!((stats.packets_lost, stats.congestion_events), (0, 0), "{late:?}: {stats:?}");
        assert_eq!(scene.pair.left.closed() + scene.pair.right.closed(), 0, "{late:?}");
    }
}

/// `PROTO §8.11`, `PROTO §8.9`: the search is not led astray.
#[test]
fn a_search_for_larger_datagrams_finds_what_it_would_have_found_awake() {
    for sleepers in SLEEPERS {
        let mut scene = Scene::new(24, Phase::Search, Duration::ZERO, Congestion::Bbr);
        assert!(scene.stats().datagram_size < 8_972, "in the middle");
        scene.sleep(sleepers, 10 * MINUTE);
        for _ in 0..20 {
            scene.pair.left.endpoint.session(scene.left).expect("open").ping().expect("open");
            scene.pair.run_for(SECOND);
        }
        assert_eq!(scene.stats().datagram_size, 8_972, "{sleepers:?}");
        scene.pair.run_for(MINUTE);
        assert_eq!(scene.pair.left.endpoint.poll_timeout(), None, "nothing is left to do");
    }
}

/// A clock that runs backwards is counted, and changes nothing.
#[test]
fn a_clock_that_jumps_back_is_counted_and_changes_nothing() {
    for (number, phase) in PHASES.into_iter().enumerate() {
        let mut scene = Scene::new(30 + number as u64, phase, 30 * SECOND, Congestion::Bbr);
        let before = scene.pair.now().saturating_sub(30 * MINUTE);
        for node in [&mut scene.pair.left, &mut scene.pair.right] {
            let deadline = node.endpoint.poll_timeout();
            for _ in 0..3 {
                assert_eq!(node.endpoint.handle_timeout(before, Budget::UNLIMITED), Progress::Done);
            }
            assert_eq!(node.endpoint.poll_timeout(), deadline, "{phase:?}");
            assert_eq!(node.endpoint.stats().clock_regressions, 3, "{phase:?}");
        }
        // As the dialling application has it, too.
        let peer = wraith_proto::Peer { addr: wraith_sim::RIGHT, id: Some(scene.pair.right.peer_id()) };
        let dialled =
            scene.pair.left.endpoint.connect(before, peer, wraith_proto::Via::default()).expect("room");
        scene.pair.run_for(5 * SECOND);
        assert_eq!(events(&scene.pair.left, dialled).first(), Some(&Event::Connected), "{phase:?}");
        assert!(!is_over(&scene.pair.left, dialled), "{phase:?}");
        assert_eq!(scene.pair.left.endpoint.stats().clock_regressions, 4, "{phase:?}");
        if scene.stream.is_some() {
            assert!(scene.is_complete(), "{phase:?}");
        }
    }
}

/// Hours without an answer: probes at a steady, slow rate, and nothing that grows.
#[test]
fn a_day_of_silence_costs_a_few_packets_in_two_seconds_and_then_the_data_arrive() {
    for congestion in [Congestion::Bbr, Congestion::Cubic] {
        let mut scene = Scene::new(40, Phase::Transfer, Duration::ZERO, congestion);
        let seen = watch(&mut scene.pair, |_| true);
        scene.pair.run_for(MINUTE);
        let in_flight = scene.stats().bytes_in_flight;
        let mut hours = Vec::new();
        for _ in 0..24 {
            seen.borrow_mut().clear();
            scene.pair.run_for(60 * MINUTE);
            hours.push(seen.borrow().len());
        }
        assert!(hours.iter().all(|&sent| sent == hours[0]) && hours[0] <= 4 * 1_800, "{hours:?}");
        assert!(scene.stats().bytes_in_flight <= in_flight + 2 * 1200, "{:?}", scene.stats());
        scene.pair.stop_intercepting();
        scene.pair.run_for(10 * SECOND);
        assert!(scene.is_complete(), "{congestion:?}: {:?}", scene.stats());
    }
}

/// What ends a session after a suspend is the idle time, and the application hears so.
#[test]
fn who_slept_for_longer_than_the_idle_time_hears_of_it_on_waking() {
    for sleepers in SLEEPERS {
        let mut scene = Scene::new(41, Phase::Idle, 30 * SECOND, Congestion::Bbr);
        scene.sleep(sleepers, 10 * MINUTE);
        scene.pair.run_for(millis(1));
        let ended = [Event::Connected, Event::Closed(CloseReason::IdleTimeout)];
        assert_eq!(events(&scene.pair.left, scene.left), ended, "{sleepers:?}");
        assert_eq!(events(&scene.pair.right, scene.right.expect("a session")), ended, "{sleepers:?}");
    }
}
