//! Two endpoints on a path: the fixture of most tests.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use wraith_proto::{Config, ConnectError, Ecn, Identity, Instant, Outcome, Peer, RxMeta, SessionHandle, Via};

use crate::clock::Clock;
use crate::link::{Link, LinkConfig, LinkMeta};
use crate::node::{Flight, Host, Node};
use crate::outlet::{Outlet, Passing, Tap, Verdict};
use crate::recorder::Recorder;
use crate::rng::{Rng, SeedGuard};
use crate::transcript::Transcript;

/// Address of the left node, out of the ranges for documentation (RFC 5737).
pub const LEFT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 40_001);
/// Address of the right node.
pub const RIGHT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), 40_002);

/// Two endpoints, `left` dialling and `right` answering, joined by two links in virtual time.
///
/// Equal configurations and calls give equal runs, byte for byte. A panic prints the seed.
#[derive(Debug)]
pub struct Pair<L = Recorder, R = Recorder> {
    /// The dialling node.
    pub left: Node<L>,
    /// The answering node.
    pub right: Node<R>,
    clock: Clock,
    to_right: Link<Flight>,
    to_left: Link<Flight>,
    transcript: Transcript,
    tap: Tap,
    stray: u64,
    /// Of each side: what arrived while it is not called at all.
    asleep: [Option<Socket>; 2],
    seed: SeedGuard,
}

/// Datagrams that nobody reads, in the order of arrival.
type Socket = VecDeque<(Flight, Vec<u8>)>;

/// Datagrams that a socket keeps while nobody reads it; later ones are lost.
const SOCKET: usize = 64;

/// What a pair is made of.
#[derive(Debug)]
pub struct PairConfig {
    /// Configuration of the dialling endpoint.
    pub left: Config,
    /// Configuration of the answering endpoint.
    pub right: Config,
    /// The link from left to right.
    pub to_right: LinkConfig,
    /// The link from right to left.
    pub to_left: LinkConfig,
    /// Seed of everything random.
    pub seed: u64,
    /// Keeps every datagram in the transcript.
    pub record: bool,
}

/// One of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The dialling end.
    Left,
    /// The answering end.
    Right,
}

impl PairConfig {
    /// Default endpoints with identities from `seed`, 10 ms apart on perfect links.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(!seed);
        let mut config = || Config::new(Identity::from_seed(rng.bytes32()), b"wraith-sim");
        let link = LinkConfig::perfect().with_latency(Duration::from_millis(10));
        Self { left: config(), right: config(), to_right: link, to_left: link, seed, record: false }
    }

    /// Uses `link` in both directions.
    #[must_use]
    pub fn with_link(mut self, link: LinkConfig) -> Self {
        self.to_right = link;
        self.to_left = link;
        self
    }

    /// Changes both endpoints' configurations.
    #[must_use]
    pub fn with_both(mut self, change: impl Fn(&mut Config)) -> Self {
        change(&mut self.left);
        change(&mut self.right);
        self
    }

    /// Keeps every datagram in the transcript.
    #[must_use]
    pub fn with_recording(mut self) -> Self {
        self.record = true;
        self
    }
}

impl Pair {
    /// A pair whose hosts record everything.
    ///
    /// # Panics
    /// If an endpoint refuses its configuration.
    pub fn new(config: PairConfig) -> Self {
        Self::with_hosts(config, Recorder::new(), Recorder::new())
    }
}

impl<L: Host, R: Host> Pair<L, R> {
    /// A pair with applications of its own.
    ///
    /// # Panics
    /// If an endpoint refuses its configuration.
    pub fn with_hosts(config: PairConfig, left: L, right: R) -> Self {
        let mut rng = Rng::new(config.seed);
        let clock = Clock::new();
        Self {
            left: Node::new(config.left, LEFT, left, rng.bytes32(), clock.now()),
            right: Node::new(config.right, RIGHT, right, rng.bytes32(), clock.now()),
            clock,
            to_right: Link::new(config.to_right, rng.next_u64()),
            to_left: Link::new(config.to_left, rng.next_u64()),
            transcript: if config.record { Transcript::recording() } else { Transcript::new() },
            tap: Tap::new(),
            stray: 0,
            asleep: [None, None],
            seed: SeedGuard::new(config.seed),
        }
    }

    /// Dials from left to right and runs until both ends are connected.
    ///
    /// # Panics
    /// If that takes more than 30 seconds of virtual time.
    pub fn connect(&mut self) -> (SessionHandle, SessionHandle) {
        let (left, before) = (self.dial().expect("a free session"), self.right.connected());
        let both = |pair: &Self| pair.left.last_connected() == Some(left) && pair.right.connected() > before;
        assert!(self.run_until(both, Duration::from_secs(30)), "the ends did not connect");
        (left, self.right.last_connected().expect("it connected"))
    }

    /// Dials from left to right, pinning the right end's identity.
    ///
    /// # Errors
    /// What the left endpoint says.
    pub fn dial(&mut self) -> Result<SessionHandle, ConnectError> {
        let peer = Peer { addr: self.right.addr(), id: Some(self.right.peer_id()) };
        self.left.endpoint.connect(self.clock.now(), peer, Via::default())
    }

    /// Lets both ends act at the present time, then moves on to the next arrival or deadline.
    ///
    /// Returns false if nothing will ever happen again by itself.
    pub fn step(&mut self) -> bool {
        self.turn();
        self.advance(Instant::from_nanos(u64::MAX))
    }

    /// Runs until `done`, at most for `limit`; returns whether it was done.
    pub fn run_until(&mut self, mut done: impl FnMut(&Self) -> bool, limit: Duration) -> bool {
        let end = self.clock.after(limit);
        self.turn();
        loop {
            if done(self) {
                return true;
            }
            if !self.advance(end) {
                self.clock.advance(end, ());
                return false;
            }
        }
    }

    /// Runs for `time`.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(|_| false, time);
    }

    /// Hands a datagram from `from` to the endpoint at `to`, now and past the link.
    pub fn inject(&mut self, to: Side, from: SocketAddr, datagram: &[u8]) -> Outcome {
        let now = self.clock.now();
        let mut bytes = datagram.to_vec();
        let meta = |ip| RxMeta { from, to: Some(ip), via: Via::default(), ecn: Ecn::NotEct };
        let outcome = match to {
            Side::Left => self.left.deliver(now, &meta(self.left.addr().ip()), &mut bytes),
            Side::Right => self.right.deliver(now, &meta(self.right.addr().ip()), &mut bytes),
        };
        self.turn();
        outcome
    }

    /// Shows every datagram to `tap` before it enters a link. Replaces the former tap.
    pub fn intercept(&mut self, tap: impl FnMut(Passing<'_>) -> Verdict + 'static) {
        self.tap.set(Some(Box::new(tap)));
    }

    /// Ends [`intercept`](Self::intercept).
    pub fn stop_intercepting(&mut self) {
        self.tap.set(None);
    }

    /// Gives one end another address, as a NAT does; what is on the way to the former one is lost.
    pub fn rebind(&mut self, side: Side, addr: SocketAddr) {
        match side {
            Side::Left => self.left.set_addr(addr),
            Side::Right => self.right.set_addr(addr),
        }
    }

    /// Calls an end no more, as when its machine is suspended. Its socket keeps the next 64 datagrams.
    pub fn suspend(&mut self, side: Side) {
        self.asleep[side as usize] = Some(Socket::new());
    }

    /// Calls an end again: it reads its socket, then all goes on.
    pub fn wake(&mut self, side: Side) {
        let now = self.clock.now();
        for (flight, mut datagram) in self.asleep[side as usize].take().unwrap_or_default() {
            match side {
                Side::Left => self.left.deliver(now, &flight.meta, &mut datagram),
                Side::Right => self.right.deliver(now, &flight.meta, &mut datagram),
            };
        }
        self.turn();
    }

    /// Changes the link that leads to `side` from the next datagram on.
    pub fn set_link(&mut self, side: Side, config: LinkConfig) {
        match side {
            Side::Left => self.to_left.set_config(config),
            Side::Right => self.to_right.set_config(config),
        }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The link that leads to `side`.
    pub fn link(&self, side: Side) -> &Link<impl LinkMeta> {
        match side {
            Side::Left => &self.to_left,
            Side::Right => &self.to_right,
        }
    }

    /// Everything that the endpoints sent.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Datagrams that arrived for an address at which nobody was.
    pub fn stray(&self) -> u64 {
        self.stray
    }

    /// The seed that repeats this run.
    pub fn seed(&self) -> u64 {
        self.seed.seed()
    }

    /// Moves to the next arrival or deadline by `end`, delivers, and lets both ends act.
    fn advance(&mut self, end: Instant) -> bool {
        let arrivals = [self.to_right.next_arrival(), self.to_left.next_arrival()];
        let deadlines = [
            self.left.endpoint.poll_timeout().filter(|_| self.asleep[0].is_none()),
            self.right.endpoint.poll_timeout().filter(|_| self.asleep[1].is_none()),
        ];
        let due = deadlines.iter().flatten().map(|deadline| deadline.at);
        let next = arrivals.into_iter().flatten().chain(due).min();
        let Some(next) = next.filter(|&next| next <= end) else {
            return false;
        };
        self.clock.advance(next, deadlines);
        let now = self.clock.now();
        self.stray += deliver(&mut self.to_right, &mut self.right, &mut self.asleep[1], now);
        self.stray += deliver(&mut self.to_left, &mut self.left, &mut self.asleep[0], now);
        self.turn();
        true
    }

    fn turn(&mut self) {
        let now = self.clock.now();
        let mut outlet = Outlet {
            sender: 0,
            from: self.left.addr(),
            now,
            link: &mut self.to_right,
            transcript: &mut self.transcript,
            tap: &mut self.tap,
            reserved: None,
        };
        if self.asleep[0].is_none() {
            self.left.turn(now, &mut outlet);
        }
        outlet = Outlet {
            sender: 1,
            from: self.right.addr(),
            now,
            link: &mut self.to_left,
            transcript: &mut self.transcript,
            tap: &mut self.tap,
            reserved: None,
        };
        if self.asleep[1].is_none() {
            self.right.turn(now, &mut outlet);
        }
    }
}

/// Delivers what has arrived; returns how many datagrams were for somebody else.
fn deliver<H: Host>(
    link: &mut Link<Flight>,
    node: &mut Node<H>,
    asleep: &mut Option<Socket>,
    now: Instant,
) -> u64 {
    let mut stray = 0;
    while let Some((flight, datagram)) = link.pop(now) {
        if flight.to != node.addr() {
            stray += 1;
        } else if let Some(socket) = asleep {
            if socket.len() < SOCKET {
                socket.push_back((flight, datagram.to_vec()));
            }
        } else {
            node.deliver(now, &flight.meta, datagram);
        }
    }
    stray
}
