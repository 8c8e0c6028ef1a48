//! Many nodes around one router.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use wraith_proto::{Config, ConnectError, Instant, Peer, SessionHandle, Via};

use crate::clock::Clock;
use crate::link::{Link, LinkConfig, LinkMeta};
use crate::node::{Flight, Host, Node};
use crate::outlet::{Outlet, Passing, Tap, Verdict};
use crate::recorder::Recorder;
use crate::rng::{Rng, SeedGuard};
use crate::transcript::Transcript;

/// Nodes in a star: each has a link to and one from a router that forwards at once.
///
/// A step costs the logarithm of the number of nodes; idle nodes cost nothing.
#[derive(Debug)]
pub struct Network<H = Recorder> {
    nodes: Vec<Node<H>>,
    to_router: Vec<Link<Flight>>,
    from_router: Vec<Link<Flight>>,
    /// When each node is to be looked at next; entries of `agenda` that disagree are outdated.
    planned: Vec<Option<Instant>>,
    agenda: BinaryHeap<Reverse<(Instant, u32)>>,
    addresses: BTreeMap<SocketAddr, u32>,
    clock: Clock,
    transcript: Transcript,
    tap: Tap,
    stray: u64,
    rng: Rng,
    seed: SeedGuard,
}

impl<H: Host> Network<H> {
    /// A network without nodes.
    pub fn new(seed: u64) -> Self {
        Self {
            nodes: Vec::new(),
            to_router: Vec::new(),
            from_router: Vec::new(),
            planned: Vec::new(),
            agenda: BinaryHeap::new(),
            addresses: BTreeMap::new(),
            clock: Clock::new(),
            transcript: Transcript::new(),
            tap: Tap::new(),
            stray: 0,
            rng: Rng::new(seed),
            seed: SeedGuard::new(seed),
        }
    }

    /// Adds a node whose two links are `link`; returns its number, counted from 0.
    ///
    /// # Panics
    /// If the endpoint refuses `config`, or at the 2^24th node.
    pub fn add(&mut self, config: Config, link: LinkConfig, host: H) -> u32 {
        let number = self.nodes.len() as u32;
        assert!(number < 1 << 24, "addresses are 10.x.y.z");
        let [_, x, y, z] = number.to_be_bytes();
        let addr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, x, y, z)), 40_000);
        let seed = self.rng.bytes32();
        self.nodes.push(Node::new(config, addr, host, seed, self.clock.now()));
        self.to_router.push(Link::new(link, self.rng.next_u64()));
        self.from_router.push(Link::new(link, self.rng.next_u64()));
        self.planned.push(None);
        self.addresses.insert(addr, number);
        number
    }

    /// Dials from node `from` to node `to`, pinning the identity.
    ///
    /// # Errors
    /// What the dialling endpoint says.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn dial(&mut self, from: u32, to: u32) -> Result<SessionHandle, ConnectError> {
        let (now, to) = (self.clock.now(), self.node(to));
        let peer = Peer { addr: to.addr(), id: Some(to.peer_id()) };
        self.node_mut(from).endpoint.connect(now, peer, Via::default())
    }

    /// A node, to act on; it is looked at in the next step.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node_mut(&mut self, number: u32) -> &mut Node<H> {
        self.plan(number, self.clock.now());
        &mut self.nodes[number as usize]
    }

    /// Moves to the next thing that happens, at one node; false if nothing ever will by itself.
    pub fn step(&mut self) -> bool {
        self.advance(Instant::from_nanos(u64::MAX))
    }

    /// Runs until `done`, which is asked after each step, at most for `limit`; returns whether it was done.
    pub fn run_until(&mut self, mut done: impl FnMut(&Self) -> bool, limit: Duration) -> bool {
        let end = self.clock.after(limit);
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

    /// Shows every datagram to `tap` before it enters its sender's link. Replaces the former tap.
    pub fn intercept(&mut self, tap: impl FnMut(Passing<'_>) -> Verdict + 'static) {
        self.tap.set(Some(Box::new(tap)));
    }

    /// A node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node(&self, number: u32) -> &Node<H> {
        &self.nodes[number as usize]
    }

    /// The nodes in order of their numbers.
    pub fn nodes(&self) -> &[Node<H>] {
        &self.nodes
    }

    /// The link from the router to a node.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn link_to(&self, number: u32) -> &Link<impl LinkMeta> {
        &self.from_router[number as usize]
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Everything that the endpoints sent.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Datagrams for an address at which nobody is.
    pub fn stray(&self) -> u64 {
        self.stray
    }

    /// The seed that repeats this run.
    pub fn seed(&self) -> u64 {
        self.seed.seed()
    }

    fn advance(&mut self, end: Instant) -> bool {
        while let Some(&Reverse((at, number))) = self.agenda.peek() {
            if at > end {
                return false;
            }
            self.agenda.pop();
            if self.planned[number as usize] == Some(at) {
                self.planned[number as usize] = None;
                self.clock.advance(at, (number, self.nodes[number as usize].endpoint.poll_timeout()));
                self.visit(number);
                return true;
            }
        }
        false
    }

    /// Forwards what has left a node, delivers what has reached it, and lets it act.
    fn visit(&mut self, number: u32) {
        let (now, index) = (self.clock.now(), number as usize);
        self.forward(number);
        let node = &mut self.nodes[index];
        while let Some((flight, datagram)) = self.from_router[index].pop(now) {
            node.deliver(now, &flight.meta, datagram);
        }
        let mut outlet = Outlet {
            sender: number,
            from: node.addr(),
            now,
            link: &mut self.to_router[index],
            transcript: &mut self.transcript,
            tap: &mut self.tap,
            reserved: None,
        };
        node.turn(now, &mut outlet);
        let deadline = node.endpoint.poll_timeout().map(|deadline| deadline.at);
        let arrivals = [self.to_router[index].next_arrival(), self.from_router[index].next_arrival()];
        if let Some(next) = arrivals.into_iter().chain([deadline]).flatten().min() {
            self.plan(number, next.max(now));
        }
    }

    fn forward(&mut self, number: u32) {
        let now = self.clock.now();
        while let Some((flight, datagram)) = self.to_router[number as usize].pop(now) {
            let Some(&receiver) = self.addresses.get(&flight.to) else {
                self.stray += 1;
                continue;
            };
            let link = &mut self.from_router[receiver as usize];
            link.push(now, &flight, datagram);
            let arrival = link.next_arrival();
            if let Some(at) = arrival {
                plan(&mut self.planned, &mut self.agenda, receiver, at);
            }
        }
    }

    fn plan(&mut self, number: u32, at: Instant) {
        plan(&mut self.planned, &mut self.agenda, number, at);
    }
}

/// Looks at a node at `at`, unless that happens earlier anyway.
fn plan(
    planned: &mut [Option<Instant>],
    agenda: &mut BinaryHeap<Reverse<(Instant, u32)>>,
    number: u32,
    at: Instant,
) {
    let entry = &mut planned[number as usize];
    if entry.is_none_or(|earlier| at < earlier) {
        *entry = Some(at);
        agenda.push(Reverse((at, number)));
    }
}
