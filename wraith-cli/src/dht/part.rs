//! A node of the DHT beside an application's sessions, on the same port.

use std::collections::VecDeque;
use std::mem;
use std::net::SocketAddr;

use wraith_dht_proto::{Dht, Event, Header, Limits, MAX_DATAGRAM, NodeRef, SealedDht};
use wraith_drivers::{App, Turn};
use wraith_proto::{
    Ecn, Endpoint, Event as SessionEvent, Identity, Instant, Payload, PeerId, RxMeta, SessionHandle, Source,
    StreamId, TxMeta, TxQueue, Via,
};

use crate::address::Target;
use crate::cipher;
use crate::drive::Task;
use crate::failure::Result;
use crate::identity::random_seed;

/// Sealed datagrams that wait for the queue. The node itself has room for few answers, and a batch brings many requests.
const READY: usize = 64;

/// Nodes to begin with that are asked at one time, as long as there are some that were not asked yet: as many as a lookup
/// keeps in mind. Twelve of them may be silent in each 1.5 s.
const KNOCKS: usize = 50;

/// Nodes to begin with that are asked again at one time when none has answered.
const KNOCKS_AGAIN: usize = 8;

/// Whether a node answers others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// It does, and so gets into their tables.
    Node,
    /// It asks and goes: no table has any use for it.
    Client,
}

/// A node that lives in an [`App`].
pub(crate) struct DhtPart {
    node: SealedDht,
    role: Role,
    ready: VecDeque<Ready>,
    seeds: Vec<Target>,
    next_seed: usize,
    /// Whether each of them was asked.
    all_asked: bool,
    /// Something came or was due: whoever is written to may turn out to be nobody, and that is news without a datagram.
    stirred: bool,
    /// Something was written since the last turn, or could not be: what follows from that is due.
    sent: bool,
}

struct Ready {
    meta: TxMeta,
    len: usize,
    bytes: [u8; MAX_DATAGRAM],
}

impl DhtPart {
    /// The node of `identity`, which begins to join through `seeds`; itself and repetitions among them are left out.
    pub(crate) fn new(identity: Identity, role: Role, seeds: Vec<Target>, now: Instant) -> Result<Self> {
        let (limits, peers) = match role {
            Role::Node => (Limits::default(), 512),
            Role::Client => (Limits { records: 16, record_bytes: 32 << 10, ..Limits::default() }, 128),
        };
        let seeds = in_turn(seeds, &identity.peer_id());
        let node = SealedDht::new(&limits, identity, cipher::PROVIDER, peers, &random_seed()?, now);
        let mut part = Self {
            node,
            role,
            ready: VecDeque::with_capacity(READY),
            all_asked: seeds.is_empty(),
            seeds,
            next_seed: 0,
            stirred: false,
            sent: false,
        };
        part.knock(now);
        Ok(part)
    }

    /// The node: lookups, records, contacts.
    pub(crate) const fn dht(&self) -> &Dht {
        self.node.dht()
    }

    /// The node: lookups, records, contacts.
    pub(crate) const fn dht_mut(&mut self) -> &mut Dht {
        self.node.dht_mut()
    }

    /// The nodes that it was given to join through.
    pub(crate) fn seeds(&self) -> &[Target] {
        &self.seeds
    }

    /// What happened.
    pub(crate) fn poll_event(&mut self) -> Option<Event<'_>> {
        self.node.dht_mut().poll_event()
    }

    /// For [`App::on_sealed`].
    pub(crate) fn on_sealed(&mut self, now: Instant, meta: &RxMeta, datagram: &mut [u8]) -> bool {
        if !SealedDht::takes(datagram) {
            return false;
        }
        if self.role == Role::Client && matches!(Header::parse(datagram), Ok((Header::Request { .. }, _))) {
            return true;
        }
        // What is dropped is as if it had been lost.
        let _ = self.node.handle(now, meta.from, datagram);
        self.stirred = true;
        self.seal(now, Some(meta));
        true
    }

    /// For [`App::on_transmit`].
    pub(crate) fn on_transmit(&mut self, now: Instant, queue: &mut dyn TxQueue) {
        self.sent |= mem::take(&mut self.stirred);
        loop {
            if self.ready.is_empty() {
                self.seal(now, None);
            }
            let Some(Ready { meta, len, bytes }) = self.ready.front() else { return };
            let Some(room) = queue.reserve(meta, *len) else { return };
            room[..*len].copy_from_slice(&bytes[..*len]);
            queue.commit(*len);
            self.ready.pop_front();
        }
    }

    /// Does what is due, in each turn of the application, before it looks at the events.
    pub(crate) fn on_turn(&mut self, now: Instant) {
        self.sent = false;
        self.stirred |= self.node.dht().poll_timeout() <= now;
        self.node.dht_mut().handle_timeout(now);
        if self.node.dht().has_failed_to_join() {
            self.knock(now);
        }
    }

    /// For [`App::wake_at`].
    pub(crate) fn wake_at(&self) -> Instant {
        if self.sent {
            return Instant::MIN;
        }
        self.node.dht().poll_timeout()
    }

    /// Asks the next nodes to begin with.
    fn knock(&mut self, now: Instant) {
        let is_new = !self.all_asked;
        let seeds = self.next_seeds(if is_new { KNOCKS } else { KNOCKS_AGAIN });
        // In place of those that did not answer. Without more it tries again by itself, ever more seldom.
        for &seed in &seeds {
            self.node.dht_mut().keep_for_bootstrap(seed);
        }
        for seed in seeds.into_iter().filter(|_| is_new) {
            self.node.dht_mut().bootstrap(seed, now);
        }
    }

    /// The next of the nodes to begin with, all in turn, and no peer twice: a lookup asks it at one address alone.
    fn next_seeds(&mut self, most: usize) -> Vec<NodeRef> {
        let mut next: Vec<Target> = Vec::new();
        while let Some(&seed) = self.seeds.get(self.next_seed) {
            if next.len() == most || next.iter().any(|other| other.id == seed.id) {
                break;
            }
            next.push(seed);
            self.next_seed += 1;
        }
        if self.next_seed == self.seeds.len() {
            (self.next_seed, self.all_asked) = (0, true);
        }
        next.iter().map(|Target { id, addr }| NodeRef::new(id, *addr)).collect()
    }

    /// Seals what there is to send. What goes to who has just sent something goes back the same way.
    fn seal(&mut self, now: Instant, received: Option<&RxMeta>) {
        while self.ready.len() < READY {
            let mut bytes = [0; MAX_DATAGRAM];
            let Some((to, len)) = self.node.poll_transmit(now, &mut bytes) else { return };
            self.sent = true;
            let back = received.filter(|meta| canonical(meta.from) == to);
            let (from, via) = back.map_or((None, Via(0)), |meta| (meta.to, meta.via));
            self.ready.push_back(Ready { meta: TxMeta { to, from, via, ecn: Ecn::NotEct }, len, bytes });
        }
    }
}

/// `seeds` without `own` and repetitions, each peer at its first address before any at its second.
fn in_turn(seeds: Vec<Target>, own: &PeerId) -> Vec<Target> {
    let mut rounds: Vec<Vec<Target>> = Vec::new();
    for seed in seeds {
        if seed.id == *own || rounds.iter().flatten().any(|other| *other == seed) {
            continue;
        }
        match rounds.iter_mut().find(|round| round.iter().all(|other| other.id != seed.id)) {
            Some(round) => round.push(seed),
            None => rounds.push(vec![seed]),
        }
    }
    rounds.concat()
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// What a node of the DHT is run for.
pub(crate) trait Errand {
    /// Once in each turn: takes the events, starts lookups. [`Turn::Stop`] ends the whole application.
    fn on_turn(&mut self, now: Instant, dht: &mut DhtPart) -> Turn;

    /// When it wants its next turn at the latest.
    fn wake_at(&self) -> Option<Instant>;
}

/// An application with a node of the DHT beside it, if it has one.
pub(crate) struct WithDht<A, E> {
    pub(crate) app: A,
    pub(crate) dht: Option<(DhtPart, E)>,
}

impl<A: Source, E> Source for WithDht<A, E> {
    fn fill(&mut self, session: SessionHandle, stream: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        self.app.fill(session, stream, offset, buf)
    }

    fn lend(&mut self, session: SessionHandle, stream: StreamId, offset: u64, len: usize) -> Option<&[u8]> {
        self.app.lend(session, stream, offset, len)
    }
}

impl<A: App, E: Errand> App for WithDht<A, E> {
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn {
        let mut turn = Turn::Continue;
        if let Some((dht, errand)) = &mut self.dht {
            dht.on_turn(now);
            turn = errand.on_turn(now, dht);
        }
        // Both want their turn, whoever stops.
        let app = self.app.on_turn(now, endpoint);
        if app == Turn::Stop { app } else { turn }
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        self.app.on_payload(payload);
    }

    fn on_event(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        session: SessionHandle,
        event: SessionEvent,
    ) {
        self.app.on_event(now, endpoint, session, event);
    }

    fn on_sealed(&mut self, now: Instant, meta: &RxMeta, datagram: &mut [u8]) -> bool {
        self.dht.as_mut().is_some_and(|(dht, _)| dht.on_sealed(now, meta, datagram))
    }

    fn on_transmit(&mut self, now: Instant, queue: &mut dyn TxQueue) {
        if let Some((dht, _)) = &mut self.dht {
            dht.on_transmit(now, queue);
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let dht = self.dht.as_ref().map(|(dht, _)| dht.wake_at());
        let errand = self.dht.as_ref().and_then(|(_, errand)| errand.wake_at());
        [self.app.wake_at(), dht, errand].into_iter().flatten().min()
    }
}

impl<A: Task, E: Errand> Task for WithDht<A, E> {
    fn stop(&mut self) {
        self.app.stop();
    }
}

/// An application without sessions.
#[derive(Debug, Default)]
pub(crate) struct NoSessions {
    stopping: bool,
}

impl Source for NoSessions {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl App for NoSessions {
    fn on_turn(&mut self, _: Instant, _: &mut Endpoint) -> Turn {
        if self.stopping { Turn::Stop } else { Turn::Continue }
    }

    fn on_payload(&mut self, _: Payload<'_>) {}

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, _: SessionHandle, _: SessionEvent) {}
}

impl Task for NoSessions {
    fn stop(&mut self) {
        self.stopping = true;
    }
}

#[cfg(test)]
mod tests;
