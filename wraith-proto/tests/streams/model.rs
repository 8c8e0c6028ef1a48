//! Any calls in any order over any link deliver what an ideal session would.

use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use wraith_proto::{
    Budget, Config, Dir, Endpoint, Event, Identity, Instant, OpenError, Peer, Progress, RxMeta,
    SessionHandle, StreamId, TxMeta, TxQueue, TxStatus, Via,
};
use wraith_sim::{Host, LEFT, Link, LinkConfig, Model, RIGHT, Recorder, Rng, Transparent};

use crate::support::{MS, byte_at, full};

/// What a test does at one of the two ends.
#[derive(Clone, Copy, Debug)]
enum Step {
    Open(bool),
    Write(usize, usize),
    Attach(usize, usize),
    Finish(usize),
    Reset(usize),
    Stop(usize),
    Grant(usize),
    Priority(usize, u8),
    Datagram(usize),
    /// So many of the next datagrams are not read, or only their first payload is.
    Refuse(u8, bool),
    /// The queue takes so many datagrams in all until further notice.
    Queue(usize),
    Budget(u32),
    /// Nobody calls for so many milliseconds, while datagrams arrive.
    Sleep(u64),
    Run(u64),
}

fn steps() -> impl Strategy<Value = Vec<(bool, Step)>> {
    let stream = 0usize..12;
    let step = prop_oneof![
        4 => any::<bool>().prop_map(Step::Open),
        6 => (stream.clone(), 0usize..5_000).prop_map(|(at, len)| Step::Write(at, len)),
        3 => (stream.clone(), 0usize..40_000).prop_map(|(at, len)| Step::Attach(at, len)),
        3 => stream.clone().prop_map(Step::Finish),
        1 => stream.clone().prop_map(Step::Reset),
        1 => stream.clone().prop_map(Step::Stop),
        2 => stream.clone().prop_map(Step::Grant),
        1 => (stream, 0u8..9).prop_map(|(at, level)| Step::Priority(at, level)),
        1 => (0usize..1_300).prop_map(Step::Datagram),
        2 => (1u8..20, any::<bool>()).prop_map(|(count, some)| Step::Refuse(count, some)),
        1 => (0usize..4).prop_map(Step::Queue),
        1 => (1u32..5).prop_map(Step::Budget),
        1 => (100u64..6_000).prop_map(Step::Sleep),
        8 => (1u64..80).prop_map(Step::Run),
    ];
    prop::collection::vec((any::<bool>(), step), 1..120)
}

struct End {
    endpoint: Endpoint,
    addr: SocketAddr,
    host: Recorder,
    session: Option<SessionHandle>,
    /// Streams that this end knows, its own and the peer's.
    streams: Vec<StreamId>,
    /// What an ideal session would deliver at the other end.
    model: Model,
    written: Vec<(StreamId, u64)>,
    refuse: u8,
    refuse_some: bool,
    queue: usize,
    budget: u32,
    rng: Rng,
}

struct Queue<'a> {
    link: &'a mut Link<RxMeta>,
    now: Instant,
    from: SocketAddr,
    left: usize,
    room: Vec<u8>,
    meta: Option<TxMeta>,
}

impl TxQueue for Queue<'_> {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        if self.left == 0 {
            return None;
        }
        self.meta = Some(*meta);
        self.room.resize(len.max(self.room.len()), 0);
        Some(&mut self.room[..len])
    }

    fn commit(&mut self, len: usize) {
        let meta = self.meta.take().expect("a reservation");
        self.left -= 1;
        let rx = RxMeta { from: self.from, to: Some(meta.to.ip()), via: meta.via, ecn: meta.ecn };
        self.link.push(self.now, &rx, &self.room[..len]);
    }
}

impl End {
    fn new(addr: SocketAddr, rng: &mut Rng, now: Instant) -> Self {
        let mut config = Config::new(Identity::from_seed(rng.bytes32()), b"model");
        config.crypto = Transparent::CHECKED;
        let window = 3_000 << rng.below(5);
        config.transport = config
            .transport
            .with_stream_window(window)
            .with_max_window(window * 4)
            .with_manual_credit(rng.chance(250_000))
            .with_peer_streams(2 + rng.below(10) as u16)
            .with_idle_timeout(Duration::from_hours(1));
        config.limits.streams = 40;
        config.limits.holes = 1 + rng.below(8) as u32;
        config.limits.sent_packets = 1 + rng.below(40) as u32;
        config.limits.datagrams = 4;
        Self {
            endpoint: Endpoint::new(config, rng.bytes32(), now).expect("a good configuration"),
            addr,
            host: Recorder::new(),
            session: None,
            streams: Vec::new(),
            model: Model::new(),
            written: Vec::new(),
            refuse: 0,
            refuse_some: false,
            queue: usize::MAX,
            budget: u32::MAX,
            rng: rng.fork(),
        }
    }

    fn take(&mut self, now: Instant, meta: &RxMeta, datagram: &mut [u8]) {
        let mut received = self.endpoint.handle(now, meta, datagram);
        let refuses = self.refuse > 0;
        if refuses {
            self.refuse -= 1;
            if !self.refuse_some {
                return;
            }
        }
        while let Some(payload) = received.next() {
            self.host.on_payload(now, payload);
            if refuses {
                return;
            }
        }
    }

    fn turn(&mut self, now: Instant, link: &mut Link<RxMeta>) {
        for _ in 0..1_000 {
            if self.endpoint.handle_timeout(now, Budget(self.budget)) == Progress::Done {
                break;
            }
        }
        while let Some((session, event)) = self.endpoint.poll_event() {
            self.host.on_event(now, &mut self.endpoint, session, event);
            match event {
                Event::Connected => self.session = Some(session),
                Event::StreamOpened(stream) => self.streams.push(stream),
                Event::Closed(reason) => panic!("closed: {reason:?}"),
                _ => {}
            }
        }
        let (from, left) = (self.addr, self.queue);
        let mut queue = Queue { link, now, from, left, room: Vec::new(), meta: None };
        for _ in 0..10_000 {
            match self.endpoint.poll_transmit(now, &mut queue, &mut self.host, Budget(self.budget)) {
                TxStatus::Budget => {}
                TxStatus::Idle | TxStatus::QueueFull => return,
            }
        }
        panic!("it does not stop sending");
    }

    /// Makes a call; its effect on an ideal session goes to `self.model`, a stop to `peer`.
    fn call(&mut self, step: Step, peer: &mut Model) {
        let handle = self.session.expect("connected");
        let Some(mut session) = self.endpoint.session(handle) else { panic!("the session is gone") };
        match step {
            Step::Open(bi) => match session.open(if bi { Dir::Bi } else { Dir::Uni }) {
                Ok(id) => self.streams.push(id),
                Err(error) => assert!(matches!(error, OpenError::PeerLimit | OpenError::LocalLimit)),
            },
            Step::Datagram(len) => {
                let mut data = vec![0; len];
                self.rng.fill(&mut data);
                if session.send_datagram(data.clone().into()).is_ok() {
                    self.model.datagram(&data);
                }
            }
            Step::Refuse(count, some) => (self.refuse, self.refuse_some) = (count, some),
            Step::Queue(room) => self.queue = if room == 0 { usize::MAX } else { room },
            Step::Budget(budget) => self.budget = budget,
            Step::Sleep(_) | Step::Run(_) => {}
            Step::Write(at, _)
            | Step::Attach(at, _)
            | Step::Finish(at)
            | Step::Reset(at)
            | Step::Stop(at)
            | Step::Grant(at)
            | Step::Priority(at, _) => {
                if let Some(&id) = self.streams.get(at % self.streams.len().max(1)) {
                    self.call_on_stream(step, id, peer);
                }
            }
        }
    }

    fn call_on_stream(&mut self, step: Step, id: StreamId, peer: &mut Model) {
        let handle = self.session.expect("connected");
        let Some(mut session) = self.endpoint.session(handle) else { panic!("the session is gone") };
        let bytes = |start: u64, len: usize| (start..start + len as u64).map(byte_at).collect::<Vec<u8>>();
        match step {
            Step::Write(_, len) => {
                let start = self.written.iter().find(|(stream, _)| *stream == id).map_or(0, |&(_, end)| end);
                let data = bytes(start, len);
                if session.write(id, data.clone().into()).is_ok() {
                    self.model.write(id, &data);
                    self.written.retain(|(stream, _)| *stream != id);
                    self.written.push((id, start + len as u64));
                }
            }
            Step::Attach(_, len) if session.attach(id, len as u64).is_ok() => {
                let data = bytes(0, len);
                self.model.write(id, &data);
                self.model.finish(id);
                self.host.serve(handle, id, data);
            }
            Step::Finish(_) if session.finish(id).is_ok() => self.model.finish(id),
            Step::Reset(_) if session.reset(id, 9).is_ok() => self.model.reset(id),
            Step::Stop(_) if session.stop(id, 8).is_ok() => peer.reset(id),
            Step::Grant(_) => {
                let _ = session.grant(id, self.rng.below(60_000));
            }
            Step::Priority(_, level) => {
                let _ = session.set_priority(id, level);
            }
            _ => {}
        }
    }
}

struct World {
    now: Instant,
    left: End,
    right: End,
    to_right: Link<RxMeta>,
    to_left: Link<RxMeta>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let now = Instant::from_nanos(1_000_000_000_000);
        let link = LinkConfig::perfect()
            .with_latency(MS(1 + rng.below(40)))
            .with_jitter(MS(rng.below(4)))
            .with_loss(rng.below(150_000) as u32)
            .with_reorder(rng.below(100_000) as u32, MS(1 + rng.below(30)))
            .with_duplicate(rng.below(50_000) as u32);
        let mut world = Self {
            now,
            left: End::new(LEFT, &mut rng, now),
            right: End::new(RIGHT, &mut rng, now),
            to_right: Link::new(link, rng.next_u64()),
            to_left: Link::new(link, rng.next_u64()),
        };
        let peer = Peer { addr: RIGHT, id: Some(world.right.endpoint.config().identity.peer_id()) };
        world.left.endpoint.connect(now, peer, Via::default()).expect("room");
        // The dial goes on until the initiator hears of its FINISH; an end that sleeps before may give up.
        while world.right.session.is_none() || world.left.endpoint.stats().packets_opened == 0 {
            world.run(MS(10));
        }
        world
    }

    /// Both ends act whenever something is due.
    fn run(&mut self, time: Duration) {
        let end = self.now.saturating_add(time);
        loop {
            self.left.turn(self.now, &mut self.to_right);
            self.right.turn(self.now, &mut self.to_left);
            let due = [&self.left, &self.right].map(|end| end.endpoint.poll_timeout().map(|due| due.at));
            let arrivals = [self.to_left.next_arrival(), self.to_right.next_arrival()];
            let next = due.into_iter().chain(arrivals).flatten().min();
            // A full queue leaves work that no deadline tells of; a driver would look again soon.
            let again = self.now.saturating_add(MS(1));
            let next =
                next.map_or(again, |next| next.max(self.now.saturating_add(Duration::from_micros(20))));
            let next = if self.left.queue.min(self.right.queue) < 9 { next.min(again) } else { next };
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            self.deliver();
        }
    }

    fn deliver(&mut self) {
        while let Some((meta, datagram)) = self.to_right.pop(self.now) {
            self.right.take(self.now, &meta, datagram);
        }
        while let Some((meta, datagram)) = self.to_left.pop(self.now) {
            self.left.take(self.now, &meta, datagram);
        }
    }

    fn step(&mut self, left: bool, step: Step) {
        match step {
            Step::Run(millis) => self.run(MS(millis)),
            Step::Sleep(millis) => self.now = self.now.saturating_add(MS(millis)),
            step if left => self.left.call(step, &mut self.right.model),
            step => self.right.call(step, &mut self.left.model),
        }
    }

    fn take(&mut self, steps: &[(bool, Step)]) {
        for &(left, step) in steps {
            self.step(left, step);
        }
    }

    /// Lets everything that waits arrive: the links are well again, and all credit is given.
    fn come_to_rest(&mut self) {
        let link = LinkConfig::perfect().with_latency(MS(10));
        self.to_right.set_config(link);
        self.to_left.set_config(link);
        for end in [&mut self.left, &mut self.right] {
            (end.refuse, end.queue, end.budget) = (0, usize::MAX, u32::MAX);
        }
        for _ in 0..150 {
            self.run(MS(400));
            if self.check().is_ok() {
                break;
            }
            for end in [&mut self.left, &mut self.right] {
                let mut session = end.endpoint.session(end.session.expect("connected")).expect("it lives");
                for &stream in &end.streams {
                    let _ = session.grant(stream, 1 << 30);
                }
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let (left, right) = (&self.left, &self.right);
        let check = |from: &End, to: &End| {
            from.model.check_all(&to.host, to.session.expect("connected")).map_err(|error| error.to_string())
        };
        check(left, right).map_err(|error| format!("to the right: {error}"))?;
        check(right, left).map_err(|error| format!("to the left: {error}"))
    }
}

/// After these steps everything arrives as the model says, within four seconds.
fn assert_rests_soon(seed: u64, steps: &[(bool, Step)]) {
    let mut world = World::new(seed);
    world.take(steps);
    let start = world.now;
    world.come_to_rest();
    assert_eq!(world.check(), Ok(()));
    let rest = world.now.saturating_since(start);
    assert!(rest < Duration::from_secs(4), "{rest:?}");
}

fn cases() -> u32 {
    if full() { 4_096 } else { 64 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_delivers_what_the_model_does(seed in any::<u64>(), steps in steps()) {
        let _guard = wraith_sim::SeedGuard::new(seed);
        let mut world = World::new(seed);
        world.take(&steps);
        world.come_to_rest();
        prop_assert_eq!(world.check(), Ok(()));
    }
}

/// `PROTO §7.5`: the last step stops a stream whose end was refused, after the report of that left. The reset ends the
/// wait for an answer to the report, and the acknowledgements that it holds back.
#[test]
fn a_stream_stopped_behind_a_report_lets_acknowledgements_flow() {
    use Step::{Attach, Datagram, Finish, Open, Refuse, Run, Sleep, Stop, Write};
    let steps = [
        (false, Open(true)),
        (true, Open(true)),
        (false, Run(34)),
        (false, Open(true)),
        (true, Attach(0, 16284)),
        (false, Open(true)),
        (true, Open(false)),
        (false, Run(34)),
        (true, Write(5, 3491)),
        (false, Run(5)),
        (false, Finish(3)),
        (false, Sleep(4470)),
        (false, Open(false)),
        (false, Sleep(3370)),
        (false, Attach(5, 3720)),
        (false, Attach(2, 3429)),
        (false, Open(false)),
        (true, Refuse(7, false)),
        (false, Run(35)),
        (true, Finish(8)),
        (true, Datagram(0)),
        (false, Refuse(2, false)),
        (false, Write(4, 3516)),
        (true, Open(true)),
        (false, Write(4, 913)),
        (false, Run(16)),
        (false, Stop(1)),
    ];
    assert_rests_soon(10_847_290_917_903_170_799, &steps);
}

/// `PROTO §7.5`: both ends refuse and withhold each other's acknowledgements, reports and answers are lost, and records
/// and windows are used up.
#[test]
fn two_ends_that_refuse_at_the_same_time_come_to_rest_soon() {
    use Step::{Attach, Finish, Grant, Open, Refuse, Run, Sleep, Write};
    let steps = [
        (true, Refuse(3, true)),
        (true, Open(false)),
        (true, Open(false)),
        (false, Open(true)),
        (false, Grant(0)),
        (false, Run(41)),
        (true, Attach(3, 9250)),
        (false, Open(true)),
        (false, Write(8, 2323)),
        (false, Sleep(3665)),
        (false, Finish(5)),
        (false, Run(47)),
        (false, Sleep(4625)),
        (true, Write(10, 1203)),
        (true, Write(10, 3447)),
        (false, Sleep(1204)),
        (true, Refuse(11, false)),
        (false, Sleep(2596)),
        (false, Write(3, 1164)),
        (false, Open(false)),
        (false, Run(61)),
        (false, Run(26)),
        (false, Refuse(6, false)),
        (false, Run(46)),
        (false, Write(11, 3181)),
        (false, Refuse(3, false)),
        (false, Open(false)),
        (true, Write(1, 3590)),
        (false, Run(26)),
        (false, Sleep(3303)),
        (false, Write(4, 305)),
        (false, Run(42)),
        (false, Run(76)),
    ];
    assert_rests_soon(5_289_051_381_823_513_221, &steps);
}

/// `PROTO §8.9`
#[test]
fn an_absence_is_no_round_trip() {
    let mut world = World::new(1);
    world.take(&[(true, Step::Open(true)), (true, Step::Run(500))]);
    world.take(&[(true, Step::Write(0, 3_000)), (true, Step::Run(1)), (true, Step::Sleep(5_000))]);
    world.run(MS(500));
    let handle = world.left.session.expect("connected");
    let stats = world.left.endpoint.session(handle).expect("it lives").stats();
    assert!(stats.rtt < MS(200), "{:?}", stats.rtt);
}
