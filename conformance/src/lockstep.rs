//! Two sessions' ends stepped in turn over real drivers in virtual time: what they say depends on no clock, no address
//! and no scheduler, so every driver has to carry the same bytes as memory does.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant as Std};

use wraith_drivers::{App, Caps, Driver, ManualClock, Netem, RxReport, Turn, TxReport};
use wraith_proto::{
    Budget, Config, Ecn, Endpoint, Identity, Instant, Peer, RxMeta, TxMeta, TxQueue, Via, crypto,
};
use wraith_sim::{LEFT, LinkConfig, RIGHT, Rng, Transcript};

use crate::case::{Outcome, Verdict, ensure};
use crate::harness::{Link, Pair};
use crate::talk::{Plan, Role, Talk};

/// How long a turn of both ends takes at least.
const STEP: Duration = Duration::from_micros(50);
/// Virtual time after which a talk is taken to be stuck.
const LIMIT: Duration = Duration::from_mins(10);
/// Datagrams that an end sends in one turn.
const PER_TURN: usize = Link::WINDOW / 2;

/// What a talk said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    /// Hash over sender, time and bytes of every datagram that arrived.
    pub(crate) hash: String,
    /// How many they were.
    pub(crate) datagrams: u64,
}

/// Has the talk of `plan` over `pair`.
pub(crate) fn talk<D: Driver>(pair: Pair<D>, plan: Plan, seed: u64, patience: Duration) -> Outcome<Said> {
    let clock = ManualClock::new(Instant::from_nanos(1_000_000_000));
    let timed = |inner| Timed { inner, clock: clock.clone() };
    let drivers = [timed(pair.left), timed(pair.right)];
    let said = Lockstep::new(drivers, clock, plan, seed, patience)?.run()?;
    drop(pair.guard);
    Ok(said)
}

/// Has it over a bad network around `pair`.
pub(crate) fn talk_through_netem<D: Driver>(
    pair: Pair<D>,
    plan: Plan,
    seed: u64,
    patience: Duration,
) -> Outcome<Said> {
    let clock = ManualClock::new(Instant::from_nanos(1_000_000_000));
    let bad = LinkConfig::perfect()
        .with_latency(Duration::from_millis(5))
        .with_loss(20_000)
        .with_reorder(20_000, Duration::from_millis(3))
        .with_duplicate(10_000);
    let netem = |inner, seed| {
        // All that is bad happens on the way out, so that what is on a driver's own wire arrives at once.
        Netem::new(Timed { inner, clock: clock.clone() }, bad, LinkConfig::perfect(), seed)
    };
    let drivers = [netem(pair.left, seed), netem(pair.right, !seed)];
    let said = Lockstep::new(drivers, clock, plan, seed, patience)?.run()?;
    drop(pair.guard);
    Ok(said)
}

/// What a driver has put on its wire, beside what the core has committed.
trait Lane: Driver {
    /// Datagrams of `committed` that were handed to the network.
    fn handed_on(&self, committed: u64) -> u64;

    /// When it hands on more, or has something held back to lend.
    fn next(&self) -> Option<Instant>;
}

/// A driver with a clock that stands still in between.
#[derive(Debug)]
struct Timed<D> {
    inner: D,
    clock: ManualClock,
}

impl<D: Driver> Driver for Timed<D> {
    type Tx = D::Tx;

    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn recv(&mut self, budget: usize, on_datagram: impl FnMut(&RxMeta, &mut [u8])) -> io::Result<RxReport> {
        self.inner.recv(budget, on_datagram)
    }

    fn tx(&mut self) -> &mut Self::Tx {
        self.inner.tx()
    }

    fn flush(&mut self) -> io::Result<TxReport> {
        self.inner.flush()
    }
}

impl<D: Driver> Lane for Timed<D> {
    fn handed_on(&self, committed: u64) -> u64 {
        committed
    }

    fn next(&self) -> Option<Instant> {
        None
    }
}

impl<D: Driver> Lane for Netem<D> {
    fn handed_on(&self, _: u64) -> u64 {
        self.counters().0.delivered
    }

    fn next(&self) -> Option<Instant> {
        self.next_arrival()
    }
}

/// One end.
struct Station<L> {
    driver: L,
    endpoint: Endpoint,
    app: Talk,
    /// Where the core believes that it is, and that its peer is.
    addrs: [SocketAddr; 2],
    /// Where the peer really is, and the way there.
    peer: (SocketAddr, Via),
    committed: u64,
    received: u64,
    in_flight: usize,
    stopped: bool,
}

struct Lockstep<L> {
    stations: [Station<L>; 2],
    clock: ManualClock,
    transcript: Transcript,
    patience: Duration,
}

impl<L: Lane> Lockstep<L> {
    fn new(drivers: [L; 2], clock: ManualClock, plan: Plan, seed: u64, patience: Duration) -> Outcome<Self> {
        let mut rng = Rng::new(seed);
        let [left, right] = drivers;
        let real = [left.local_addr(), right.local_addr()];
        let now = clock.now();
        let mut station = |driver, end: usize| {
            let mut config = Config::new(Identity::from_seed(rng.bytes32()), b"conformance");
            // One size, so that no search for a larger one depends on what the path carries, and the suite that every
            // processor would take.
            let suites = &[crypto::Suite::XChaCha20Poly1305];
            config.transport = config.transport.with_max_datagram(1200).with_suites(suites);
            let endpoint = Endpoint::new(config, rng.bytes32(), now)
                .map_err(|error| Verdict::Fail(format!("no endpoint: {error}")))?;
            let addrs = if end == 0 { [LEFT, RIGHT] } else { [RIGHT, LEFT] };
            Ok::<_, Verdict>(Station {
                driver,
                endpoint,
                app: Talk::new(plan, if end == 0 { Role::Leader } else { Role::Follower }),
                addrs,
                peer: (real[1 - end], Via::default()),
                committed: 0,
                received: 0,
                in_flight: 0,
                stopped: false,
            })
        };
        let mut stations = [station(left, 0)?, station(right, 1)?];
        let peer = Peer { addr: RIGHT, id: Some(stations[1].endpoint.config().identity.peer_id()) };
        let dialled = stations[0].endpoint.connect(now, peer, Via::default());
        dialled.map_err(|error| Verdict::Fail(format!("no session: {error}")))?;
        Ok(Self { stations, clock, transcript: Transcript::new(), patience })
    }

    fn run(mut self) -> Outcome<Said> {
        let start = self.clock.now();
        while !self.stations.iter().all(|station| station.stopped) {
            let before = self.activity();
            for end in [0, 1] {
                self.receive(end)?;
                self.stations[end].turn(self.clock.now())?;
            }
            let now = self.clock.now();
            let soon = now.saturating_add(STEP);
            let deadlines = self.stations.iter().filter_map(|station| station.endpoint.poll_timeout());
            let waits = self.stations.iter().filter_map(|station| station.driver.next());
            let next = deadlines.map(|deadline| deadline.at).chain(waits).min();
            let next = if self.activity() == before { next } else { Some(soon) };
            let [left, right] = self.stations.each_ref().map(|station| station.app.progress());
            let Some(next) = next.filter(|_| now.saturating_since(start) < LIMIT) else {
                return Err(Verdict::Fail(format!("the sessions fall silent; left: {left}; right: {right}")));
            };
            self.clock.set(next.max(soon));
        }
        for station in &self.stations {
            station.app.verdict()?;
        }
        Ok(Said { hash: self.transcript.hex(), datagrams: self.transcript.datagrams() })
    }

    /// Takes in everything that the other end has put on the wire, however long the wire takes.
    fn receive(&mut self, end: usize) -> Outcome {
        let now = self.clock.now();
        let [left, right] = &mut self.stations;
        let (station, other) = if end == 0 { (left, right) } else { (right, left) };
        let mut since = Std::now();
        loop {
            let held = other.driver.next().is_some_and(|at| at <= now);
            if held || other.in_flight > 0 {
                other.in_flight = other.driver.flush()?.in_flight;
            }
            let due = other.driver.handed_on(other.committed);
            if station.received == due && !held && other.in_flight == 0 {
                return Ok(());
            }
            if station.recv(now, 1 - end as u32, &mut self.transcript)? {
                since = Std::now();
            }
            let (received, patience) = (station.received, self.patience);
            ensure!(received <= due, "{received} datagrams arrived of {due}");
            ensure!(
                since.elapsed() < patience,
                "datagram {received} of {due} did not arrive in {patience:?}"
            );
            std::thread::yield_now();
        }
    }

    fn activity(&self) -> [u64; 4] {
        let [left, right] = &self.stations;
        [left.committed, left.received, right.committed, right.received]
    }
}

impl<L: Lane> Station<L> {
    /// Hands what has arrived to the core, in the driver's own buffers; returns whether there was anything.
    fn recv(&mut self, now: Instant, sender: u32, transcript: &mut Transcript) -> Outcome<bool> {
        let Self { driver, endpoint, app, addrs, peer, received, .. } = self;
        let report = driver.recv(PER_TURN, |meta, data| {
            *received += 1;
            peer.1 = meta.via;
            transcript.record(sender, now, data);
            // Marks and local addresses are claims: a talk is the same without them.
            let meta =
                RxMeta { from: addrs[1], to: Some(addrs[0].ip()), via: Via::default(), ecn: Ecn::NotEct };
            let mut lent = endpoint.handle(now, &meta, data);
            while let Some(payload) = lent.next() {
                app.on_payload(payload);
            }
        })?;
        Ok(report.datagrams > 0)
    }

    /// Timers, events, the application's turn, then what may be sent now.
    fn turn(&mut self, now: Instant) -> Outcome {
        let _ = self.endpoint.handle_timeout(now, Budget::UNLIMITED);
        self.pass_events(now);
        self.stopped = self.app.on_turn(now, &mut self.endpoint) == Turn::Stop;
        let mut tap = Tap {
            queue: self.driver.tx(),
            from: self.addrs[1],
            to: self.peer,
            room: PER_TURN,
            committed: 0,
            starved: false,
        };
        let _ = self.endpoint.poll_transmit(now, &mut tap, &mut self.app, Budget::UNLIMITED);
        ensure!(!tap.starved, "reserve lends no room after {} commits", tap.committed);
        self.committed += tap.committed;
        self.in_flight = self.driver.flush()?.in_flight;
        self.pass_events(now);
        Ok(())
    }

    fn pass_events(&mut self, now: Instant) {
        while let Some((session, event)) = self.endpoint.poll_event() {
            self.app.on_event(now, &mut self.endpoint, session, event);
        }
    }
}

/// A driver's queue with the addresses of the talk, and as much room as every driver has.
struct Tap<'a, Q> {
    queue: &'a mut Q,
    from: SocketAddr,
    to: (SocketAddr, Via),
    room: usize,
    committed: u64,
    starved: bool,
}

impl<Q: TxQueue> TxQueue for Tap<'_, Q> {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        if self.room == 0 || meta.to != self.from {
            return None;
        }
        let (to, via) = self.to;
        let lent = self.queue.reserve(&TxMeta { to, from: None, via, ecn: Ecn::NotEct }, len);
        self.starved |= lent.is_none();
        lent
    }

    fn commit(&mut self, len: usize) {
        self.queue.commit(len);
        self.room -= 1;
        self.committed += 1;
    }
}
