//! The nodes and the datagrams between them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use wraith_dht_proto::{
    Ask, Dht, Event, Header, Id, Limits, MAX_UNSEALED, NodeRef, Outcome, QueryId, Transmit, write_ask,
};
use wraith_proto::wire::Writer;
use wraith_proto::{Identity, Instant};

use super::queue::{Messages, Queue};
use crate::Rng;

/// What a node does once it [turned](DhtNetwork::turn).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behaviour {
    /// As it should.
    Honest,
    /// It receives and sends nothing.
    Silent,
    /// It answers that it has no record, and names other liars only; what it is to store it forgets.
    Lying,
    /// It does as it should, and besides asks nodes at random, 20 times a second.
    Flooding,
}

struct Node {
    dht: Dht,
    me: NodeRef,
    behaviour: Behaviour,
    /// When its timer goes off, nanoseconds.
    armed: u64,
}

/// What comes to a node.
#[derive(Clone, Copy)]
enum Arrival {
    Timer,
    Join,
    Flood,
    /// From whom, and which of [`Messages`].
    Message(u32, u32),
}

/// How a lookup ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The value, and the steps to it.
    Found {
        /// Its bytes.
        value: Vec<u8>,
        /// Steps of the chain of queries.
        hops: u8,
    },
    /// Nodes that keep it.
    Stored(u8),
    /// Without a value.
    Nothing,
}

/// A lookup that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// Whose it was.
    pub node: u32,
    /// Which of that node's.
    pub query: QueryId,
    /// When.
    pub at: Instant,
    /// How.
    pub ended: Ended,
}

/// Many nodes, reproducible from one seed.
pub struct DhtNetwork {
    nodes: Vec<Node>,
    by_address: HashMap<SocketAddr, u32, BuildHasherDefault<AddressHasher>>,
    /// The first node of each family, through which others join.
    first: [Option<u32>; 2],
    liars: Vec<(Id, NodeRef)>,
    queue: Queue<(u32, Arrival)>,
    messages: Messages,
    now: Instant,
    rng: Rng,
    limits: Limits,
    /// Millionths of the datagrams that get lost.
    loss: u32,
    /// Millionths of the nodes that have IPv6.
    ipv6: u32,
    ended: Vec<End>,
    datagrams: u64,
}

impl DhtNetwork {
    /// A network without nodes, each of which will have `limits`.
    pub fn new(limits: Limits, seed: u64) -> Self {
        Self {
            nodes: Vec::new(),
            by_address: HashMap::default(),
            first: [None; 2],
            liars: Vec::new(),
            queue: Queue::new(),
            messages: Messages::default(),
            now: Instant::from_nanos(3_600_000_000_000),
            rng: Rng::new(seed),
            limits,
            loss: 0,
            ipv6: 0,
            ended: Vec::new(),
            datagrams: 0,
        }
    }

    /// From now on so many millionths of the datagrams get lost, each way.
    pub const fn lose(&mut self, ppm: u32) {
        self.loss = ppm;
    }

    /// From now on so many millionths of the nodes that are added have IPv6.
    pub const fn add_ipv6(&mut self, ppm: u32) {
        self.ipv6 = ppm;
    }

    /// Adds a node at a random public address, which joins through the first one of its family after `delay`.
    pub fn add(&mut self, delay: Duration) -> u32 {
        let address = loop {
            let address = self.draw_address();
            if !self.by_address.contains_key(&address) {
                break address;
            }
        };
        let peer = Identity::from_seed(self.rng.bytes32()).peer_id();
        let at = self.nodes.len() as u32;
        let dht = Dht::new(&self.limits, &peer, &self.rng.bytes32(), self.now);
        let me = NodeRef::new(&peer, address);
        self.nodes.push(Node { dht, me, behaviour: Behaviour::Honest, armed: u64::MAX });
        self.by_address.insert(address, at);
        self.first[usize::from(address.is_ipv6())].get_or_insert(at);
        self.schedule(self.now.saturating_add(delay), at, Arrival::Join);
        at
    }

    fn draw_address(&mut self) -> SocketAddr {
        let random = self.rng.next_u64();
        let [a, b, c, d, ..] = random.to_be_bytes();
        if self.ipv6 > 0 && self.rng.chance(self.ipv6) {
            let high =
                u64::from(u32::from_be_bytes([0x2a, a, b, c])) << 32 | u64::from(self.rng.next_u64() as u32);
            let ip = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(random));
            return SocketAddr::from((ip, 7_000));
        }
        SocketAddr::from((Ipv4Addr::new(11 + a % 80, b, c, d), 7_000))
    }

    /// From now on the node behaves so.
    pub fn turn(&mut self, node: u32, behaviour: Behaviour) {
        self.nodes[node as usize].behaviour = behaviour;
        match behaviour {
            Behaviour::Lying => {
                let me = self.nodes[node as usize].me;
                self.liars.push((Id::of_node(&me.key), me));
            }
            Behaviour::Flooding => self.schedule(self.now, node, Arrival::Flood),
            _ => {}
        }
    }

    /// Adds a node with a key of the attacker's choice, which lies and asks nodes at random, so that they come to know it.
    ///
    /// The key need not be a point: to make one costs the attacker four microseconds, and here nobody seals to it.
    pub fn add_liar(&mut self, key: [u8; 32], address: SocketAddr) -> u32 {
        let peer = Identity::from_seed(self.rng.bytes32()).peer_id();
        let at = self.nodes.len() as u32;
        let dht = Dht::new(&self.limits, &peer, &self.rng.bytes32(), self.now);
        self.nodes.push(Node {
            dht,
            me: NodeRef { key, address },
            behaviour: Behaviour::Honest,
            armed: u64::MAX,
        });
        self.by_address.insert(address, at);
        self.turn(at, Behaviour::Lying);
        self.schedule(self.now, at, Arrival::Flood);
        at
    }

    /// Lets `time` pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now.saturating_add(time);
        while let Some(event) = self.queue.pop(end.as_nanos()) {
            self.now = Instant::from_nanos(event.when);
            let (node, arrival) = event.what;
            self.arrive(node, arrival);
        }
        self.now = end;
    }

    /// Calls a node, as its application would.
    pub fn call<R>(&mut self, node: u32, call: impl FnOnce(&mut Dht, Instant) -> R) -> R {
        let result = call(&mut self.nodes[node as usize].dht, self.now);
        self.pump(node);
        result
    }

    /// A node.
    pub fn node(&self, node: u32) -> &Dht {
        &self.nodes[node as usize].dht
    }

    /// How a node behaves.
    pub fn behaviour(&self, node: u32) -> Behaviour {
        self.nodes[node as usize].behaviour
    }

    /// Nodes, those that are gone among them.
    pub fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Datagrams that were sent.
    pub const fn datagrams(&self) -> u64 {
        self.datagrams
    }

    /// The generator of the network, for what a plan draws.
    pub const fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Whether a node has IPv6.
    pub fn is_ipv6(&self, node: u32) -> bool {
        self.nodes[node as usize].me.address.is_ipv6()
    }

    /// Whether others join through a node.
    pub fn is_first(&self, node: u32) -> bool {
        self.first.contains(&Some(node))
    }

    /// The lookups that have ended since the last call.
    pub fn take_ended(&mut self) -> Vec<End> {
        std::mem::take(&mut self.ended)
    }

    fn arrive(&mut self, at: u32, arrival: Arrival) {
        if let Arrival::Message(from, message) = arrival {
            let bytes = self.messages.take(message);
            self.receive(at, from, &bytes);
            return self.messages.give_back(message, bytes);
        }
        let now = self.now;
        let first = self.first[usize::from(self.is_ipv6(at))].map(|first| self.nodes[first as usize].me);
        let node = &mut self.nodes[at as usize];
        if node.behaviour == Behaviour::Silent {
            return;
        }
        match arrival {
            Arrival::Join => {
                if let Some(first) = first {
                    node.dht.bootstrap(first, now);
                }
            }
            Arrival::Timer => {
                if now.as_nanos() < node.armed {
                    return;
                }
                node.armed = u64::MAX;
                node.dht.handle_timeout(now);
            }
            Arrival::Flood => return self.flood(at),
            Arrival::Message(..) => {}
        }
        self.pump(at);
    }

    fn receive(&mut self, at: u32, from: u32, message: &[u8]) {
        let now = self.now;
        match (self.nodes[at as usize].behaviour, Header::parse(message)) {
            (Behaviour::Silent, _) => return,
            (Behaviour::Lying, Ok((Header::Request { transaction, .. }, len))) => {
                return self.lie(at, from, transaction, &message[len..]);
            }
            _ => {}
        }
        let from = self.nodes[from as usize].me;
        // What is dropped is the node's business.
        let _ = self.nodes[at as usize].dht.handle_unsealed(now, from, message);
        self.pump(at);
    }

    /// Sends what a node has to say, and keeps its timer.
    fn pump(&mut self, at: u32) {
        let mut buffer = [0; MAX_UNSEALED];
        while let Some(transmit) = self.nodes[at as usize].dht.poll_transmit(self.now, &mut buffer) {
            self.send(at, &transmit, &buffer[..transmit.len]);
        }
        let node = &mut self.nodes[at as usize];
        while let Some(event) = node.dht.poll_event() {
            let Event::Ended(query, outcome) = event else { continue };
            let ended = match outcome {
                Outcome::Found { record, hops } => Ended::Found { value: record.value().to_vec(), hops },
                Outcome::Stored { nodes, .. } => Ended::Stored(nodes),
                _ => Ended::Nothing,
            };
            self.ended.push(End { node: at, query, at: self.now, ended });
        }
        let due = node.dht.poll_timeout().max(self.now);
        if due.as_nanos() < node.armed {
            node.armed = due.as_nanos();
            self.schedule(due, at, Arrival::Timer);
        }
    }

    fn send(&mut self, from: u32, transmit: &Transmit, message: &[u8]) {
        self.datagrams += 1;
        let delay = self.delay();
        let Some(&at) = self.by_address.get(&transmit.to) else { return };
        let reaches =
            self.is_ipv6(from) == transmit.to.is_ipv6() && !(self.loss > 0 && self.rng.chance(self.loss));
        // Sealed to another key, nobody there could open it.
        if reaches && transmit.key.is_none_or(|key| self.nodes[at as usize].me.key == key) {
            let message = self.messages.keep(message);
            self.schedule(self.now.saturating_add(delay), at, Arrival::Message(from, message));
        }
    }

    /// 10 to 60 ms: the second smallest of four even draws, whose mean is two fifths.
    fn delay(&mut self) -> Duration {
        let mut draws: [u64; 4] = std::array::from_fn(|_| self.rng.below(50_001));
        draws.sort_unstable();
        Duration::from_micros(10_000 + draws[1])
    }

    /// Answers a request with nothing but other liars, those nearest to what was asked for.
    fn lie(&mut self, at: u32, from: u32, transaction: [u8; 8], request: &[u8]) {
        let mut answer = vec![0x63];
        answer.extend_from_slice(&transaction);
        let header = answer.len();
        answer.extend_from_slice(&[1; 16]);
        let NodeRef { key, address } = self.nodes[from as usize].me;
        match Ask::parse(request) {
            Ok(Ask::FindNode(target) | Ask::FindValue(target, _)) => {
                answer.push(2);
                answer.extend_from_slice(&[1; 8]);
                answer.push(0);
                self.name_liars(&target, address.is_ipv6(), &mut answer);
            }
            Ok(Ask::Store { .. }) => {
                answer.push(4);
                answer.extend_from_slice(&[0; 9]);
            }
            _ => answer.push(1),
        }
        let transmit = Transmit { to: address, header, len: answer.len(), key: Some(key) };
        self.send(at, &transmit, &answer);
    }

    fn name_liars(&self, target: &Id, ipv6: bool, answer: &mut Vec<u8>) {
        let near = |&at: &u32| self.liars[at as usize].0.distance(target);
        let reachable = |&at: &u32| self.liars[at as usize].1.address.is_ipv6() == ipv6;
        let mut liars: Vec<u32> = (0..self.liars.len() as u32).filter(reachable).collect();
        let named = liars.len().min(20);
        if named > 0 {
            liars.select_nth_unstable_by_key(named - 1, near);
        }
        answer.push(named as u8);
        for &liar in &liars[..named] {
            let NodeRef { key, address } = self.liars[liar as usize].1;
            match address {
                SocketAddr::V4(address) => {
                    answer.push(4);
                    answer.extend_from_slice(&address.ip().octets());
                }
                SocketAddr::V6(address) => {
                    answer.push(6);
                    answer.extend_from_slice(&address.ip().octets());
                }
            }
            answer.extend_from_slice(&address.port().to_be_bytes());
            answer.extend_from_slice(&key);
        }
    }

    /// Asks a node at random for a random place, without a token, and goes on.
    fn flood(&mut self, at: u32) {
        let victim = self.rng.below(self.nodes.len() as u64) as usize;
        let (mut transaction, mut request) = ([0; 8], [0; MAX_UNSEALED]);
        self.rng.fill(&mut transaction);
        let target = Id::from_bytes(self.rng.bytes32());
        let mut w = Writer::new(&mut request);
        // There is room for both.
        let _ = Header::Request { transaction, token: [0; 16] }.write(&mut w);
        let header = w.len();
        let _ = write_ask(&mut w, &Ask::FindNode(target));
        let NodeRef { key, address } = self.nodes[victim].me;
        let transmit = Transmit { to: address, header, len: request.len(), key: Some(key) };
        self.send(at, &transmit, &request);
        let lies = self.nodes[at as usize].behaviour == Behaviour::Lying;
        let pause = Duration::from_millis(if lies { 1_000 } else { 50 });
        self.schedule(self.now.saturating_add(pause), at, Arrival::Flood);
    }

    fn schedule(&mut self, when: Instant, node: u32, arrival: Arrival) {
        self.queue.push(when.as_nanos(), (node, arrival));
    }
}

/// Mixes the bytes of an address: fast, and without a key, which simulations do not need.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = Rng::new(self.0 ^ word).next_u64();
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl std::fmt::Debug for DhtNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DhtNetwork")
            .field("nodes", &self.nodes.len())
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}
