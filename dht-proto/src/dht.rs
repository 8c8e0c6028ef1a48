//! The node: messages in, messages out, time in, deadline out, news out.

use alloc::boxed::Box;
use core::net::SocketAddr;

use wraith_proto::{Instant, PeerId};

use crate::config::Limits;
use crate::event::{Event, QueryId, StartError};
use crate::header::{MAX_UNSEALED, Transaction};
use crate::id::Id;
use crate::message::{Ask, Reply, StoreResult};
use crate::node::{Node, NodeRef, has_room_for};
use crate::query::{Goal, Phase, Query};
use crate::random::Random;
use crate::rate::Rate;
use crate::record::{Keyed, Kind, Record};
use crate::shortlist::Entry;
use crate::store::Store;
use crate::table::Table;
use crate::token::{Token, Tokens};

mod admit;
mod answer;
mod ask;
mod upkeep;

pub use admit::Admitted;
use answer::Outgoing;
use upkeep::{OWN_QUERY, Upkeep};

/// Answers that wait to be sent.
const OUTBOX: usize = 8;

/// Nodes that are pinged at one time.
const PINGS: usize = 8;

/// Why a message was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DropReason {
    /// It is no message.
    Malformed,
    /// Its sender cannot be: an address that nobody has, or this node's own key.
    BadSender,
    /// The sender's prefix, or all together, ask too much.
    TooMany,
    /// An answer to nothing that was asked, or from another than was asked, or one too many.
    Unasked,
    /// It does not open, or its sender is not who it says.
    NotGenuine,
    /// Answers wait to be sent; call [`Dht::poll_transmit`] after each message.
    Busy,
}

/// A request that is no part of a lookup: is the node still there?
#[derive(Clone, Copy, Debug)]
struct Ping {
    node: Node,
    /// What it gave when it wanted to be asked again.
    token: Option<Token>,
    /// What its answer repeats, and when it counts no more; `None` until it is sent.
    sent: Option<(Transaction, Instant)>,
    /// Answers that were opened, or tried to.
    answers: u8,
}

/// A datagram to be sent, as it lies in the buffer of [`Dht::poll_transmit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Where to.
    pub to: SocketAddr,
    /// Bytes of the header, which travels as it is.
    pub header: usize,
    /// Bytes in all. What is behind the header is to be sealed to `key`.
    pub len: usize,
    /// The bytes of the recipient's `PeerId`, which need not be one: [`Dht::give_up`] then. [`None`] where nothing is
    /// behind the header.
    pub key: Option<[u8; 32]>,
}

/// A node of the DHT. The verbs may be called in any order; the cheap one is `handle`, `handle_timeout`, `poll_event`,
/// `poll_transmit` until it has nothing, `poll_timeout`.
pub struct Dht {
    key: [u8; 32],
    id: Id,
    start: Instant,
    table: Table,
    store: Store,
    queries: Box<[Query]>,
    outbox: heapless::Deque<Outgoing, OUTBOX>,
    pings: heapless::Vec<Ping, PINGS>,
    tokens: Tokens,
    rate: Rate,
    strangers: Rate,
    random: Random,
    upkeep: Upkeep,
}

impl Dht {
    /// A node without contacts: see [`Dht::bootstrap`]. All that is random follows from `seed`, which is secret.
    pub fn new(limits: &Limits, peer: &PeerId, seed: &[u8; 32], now: Instant) -> Self {
        let key = *peer.as_bytes();
        let id = Id::of_node(&key);
        let mut random = Random::new(seed, &key);
        let queries = (0..=limits.queries.max(1)).map(|_| Query::new()).collect();
        Self {
            key,
            id,
            start: now,
            table: Table::new(id.place(), limits.contacts),
            store: Store::new(limits.records, limits.record_bytes, random.array()),
            queries,
            outbox: heapless::Deque::new(),
            pings: heapless::Vec::new(),
            tokens: Tokens::new(random.array()),
            rate: Rate::new(limits.rate, random.array(), now),
            strangers: Rate::new(limits.strangers, random.array(), now),
            upkeep: Upkeep::new(now),
            random,
        }
    }

    /// Takes the message of a datagram that was [admitted](Dht::admit), and whose sender has proven to hold `key`.
    ///
    /// # Errors
    /// Why it was dropped; it changed nothing then.
    pub fn handle(
        &mut self,
        now: Instant,
        admitted: Admitted,
        key: &[u8; 32],
        message: &[u8],
    ) -> Result<(), DropReason> {
        let from = Node { key: *key, address: admitted.from };
        if from.key == self.key {
            return Err(DropReason::BadSender);
        }
        if admitted.is_request {
            let ask = Ask::parse(message).map_err(|_| DropReason::Malformed)?;
            self.answer(now, from, &admitted, &ask)
        } else {
            let (token, reply) = Reply::parse(message).map_err(|_| DropReason::Malformed)?;
            self.answered(now, from, admitted.transaction, token, &reply)
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        for slot in 0..self.queries.len() {
            if self.queries[slot].deadline().is_some_and(|deadline| deadline <= now) {
                while let Some(node) = self.queries[slot].expire(now) {
                    self.failed(&node);
                }
            }
        }
        let late = |ping: &Ping| ping.sent.is_some_and(|(_, deadline)| deadline <= now);
        while let Some(at) = self.pings.iter().position(late) {
            let ping = self.pings.swap_remove(at);
            self.failed(&ping.node);
        }
        self.keep_up(now);
    }

    /// Writes the next datagram into `buffer`, which has at least [`MAX_UNSEALED`] bytes, before it is sealed.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        if buffer.len() < MAX_UNSEALED {
            return None;
        }
        while let Some(outgoing) = self.outbox.pop_front() {
            if let Some(transmit) = self.write_outgoing(now, &outgoing, buffer) {
                return Some(transmit);
            }
        }
        self.transmit_ping(now, buffer).or_else(|| self.transmit_query(now, buffer))
    }

    /// When to call [`Dht::handle_timeout`].
    pub fn poll_timeout(&self) -> Instant {
        let queries = self.queries.iter().filter_map(Query::deadline);
        let pings = self.pings.iter().filter_map(|ping| ping.sent.map(|(_, deadline)| deadline));
        queries.chain(pings).fold(self.upkeep.next(), Instant::min)
    }

    /// What happened. What it lends is gone with the next call that changes the node.
    pub fn poll_event(&mut self) -> Option<Event<'_>> {
        if let Some(contacts) = self.upkeep.take_joined() {
            return Some(Event::Joined(contacts));
        }
        let (_, public) = self.queries.split_at_mut(OWN_QUERY + 1);
        let slot = public.iter().position(|query| query.phase == Phase::Done)?;
        let query = &mut public[slot];
        query.phase = Phase::Reported;
        let slot = (slot + OWN_QUERY + 1) as u8;
        Some(Event::Ended(QueryId { slot, generation: query.generation }, query.outcome()))
    }

    /// Looks for the nodes nearest to `target`.
    ///
    /// # Errors
    /// [`StartError::Busy`].
    pub fn find(&mut self, target: Id, now: Instant) -> Result<QueryId, StartError> {
        self.start(Goal::Nodes, target, now)
    }

    /// Looks for the record of `kind` under `key`.
    ///
    /// # Errors
    /// [`StartError::Busy`].
    pub fn get(&mut self, key: Id, kind: Kind, now: Instant) -> Result<QueryId, StartError> {
        let id = self.start(Goal::Get(kind), key, now)?;
        let seconds = self.seconds(now);
        let query = &mut self.queries[usize::from(id.slot)];
        // What cannot be replaced has no better copy elsewhere.
        if kind != Kind::Providers
            && self.store.read(&key, kind, seconds, &mut query.record)
            && kind == Kind::Value
        {
            query.phase = Phase::Done;
        }
        Ok(id)
    }

    /// Stores a record on the nodes nearest to its key, and again every hour until [`Dht::unpublish`]; with `expected`
    /// only where the sequence number is that.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn put(
        &mut self,
        record: &Record<'_>,
        expected: Option<u64>,
        now: Instant,
    ) -> Result<QueryId, StartError> {
        let (keyed, kind) = (Keyed::new(*record), record.kind());
        let slot = self.free_slot().ok_or(StartError::Busy)?;
        let result = self.store.put(&keyed, None, None, self.seconds(now)).0;
        if result != StoreResult::Stored {
            return Err(StartError::Refused(result));
        }
        self.store.publish(keyed.key(), kind, self.seconds(now));
        Ok(self.start_in(slot, Goal::Put(kind), *keyed.key(), expected, now))
    }

    /// Tells the nodes nearest to `key` that this node provides what it names. They forget it after two hours.
    ///
    /// # Errors
    /// [`StartError::Busy`].
    pub fn announce(&mut self, key: Id, now: Instant) -> Result<QueryId, StartError> {
        self.start(Goal::Put(Kind::Providers), key, now)
    }

    /// Ends the hourly storing of a record.
    pub fn unpublish(&mut self, key: &Id, kind: Kind, now: Instant) {
        let now = self.seconds(now);
        self.store.unpublish(key, kind, now);
    }

    /// This node's id.
    pub const fn id(&self) -> Id {
        self.id
    }

    /// The nodes that it knows, to be saved and given to [`Dht::bootstrap`] the next time.
    pub fn contacts(&self) -> impl Iterator<Item = NodeRef> {
        self.table.live().map(|contact| contact.node.into())
    }

    /// How many nodes it knows.
    pub fn contact_count(&self) -> usize {
        self.table.len()
    }

    /// Records that it keeps, its own among them.
    pub const fn record_count(&self) -> usize {
        self.store.len()
    }

    /// Whether it keeps a record of `kind` under `key` itself.
    pub fn holds(&self, key: &Id, kind: Kind, now: Instant) -> bool {
        self.store.contains(key, kind, self.seconds(now))
    }

    /// How many nodes the network has, as far as can be told from how dense they lie; [`None`] before it has looked.
    pub fn network_size(&self) -> Option<u64> {
        self.upkeep.network_size()
    }

    fn start(&mut self, goal: Goal, target: Id, now: Instant) -> Result<QueryId, StartError> {
        let slot = self.free_slot().ok_or(StartError::Busy)?;
        Ok(self.start_in(slot, goal, target, None, now))
    }

    fn free_slot(&self) -> Option<usize> {
        (OWN_QUERY + 1..self.queries.len())
            .find(|&slot| matches!(self.queries[slot].phase, Phase::Idle | Phase::Reported))
    }

    fn start_in(
        &mut self,
        slot: usize,
        goal: Goal,
        target: Id,
        expected: Option<u64>,
        now: Instant,
    ) -> QueryId {
        let nearest = self.table.nearest(target.place(), None);
        let awaited = self.awaited(slot);
        let radius = if goal == Goal::Nodes { 0 } else { self.upkeep.radius() };
        let seconds = self.seconds(now);
        let query = &mut self.queries[slot];
        query.begin(goal, target, radius, now);
        query.expected = expected;
        query.begin_with(nearest.iter().map(|&(_, at)| self.table.contact(at).node).chain(awaited));
        if let Goal::Put(kind) = goal {
            // Announcements have no record.
            self.store.read(&target, kind, seconds, &mut query.record);
        }
        query.settle();
        QueryId { slot: slot as u8, generation: query.generation }
    }

    /// `node` did not answer in time: other lookups that have asked it wait for it no longer.
    fn failed(&mut self, node: &Node) {
        self.table.failed(node);
        self.queries.iter_mut().for_each(|query| query.suspect(node, true));
    }

    fn answered(
        &mut self,
        now: Instant,
        from: Node,
        transaction: Transaction,
        token: Token,
        reply: &Reply<'_>,
    ) -> Result<(), DropReason> {
        let seconds = self.seconds(now);
        let mut comes_back = false;
        let is_its =
            |ping: &Ping| ping.node == from && ping.sent.is_some_and(|(sent, _)| sent == transaction);
        if let Some(at) = self.pings.iter().position(is_its) {
            if *reply != Reply::Pong {
                return Err(DropReason::Unasked);
            }
            self.pings.swap_remove(at);
        } else {
            let running = self.queries.iter_mut().filter(|query| query.is_running() && query.expects(reply));
            let mut taken =
                running.filter_map(|query| query.take(transaction, &from).map(|asked| (query, asked)));
            let (query, asked) = taken.next().ok_or(DropReason::Unasked)?;
            let had_token =
                asked.0.token != Token::default() || self.table.token(&from, seconds) != Token::default();
            comes_back = !had_token;
            apply(query, asked, &self.key, token, reply);
        }
        self.queries.iter_mut().for_each(|query| query.suspect(&from, false));
        if let Some(oldest) = self.table.answered(from, token, seconds) {
            self.ping(oldest, None);
        }
        // It pings nobody who may have forged its address. Who has a place here may have one there, for both share as many
        // bits with the other: so it is shown that this node receives what it sends.
        if comes_back && self.table.has_placed(&from) {
            self.ping(from, Some(token));
        }
        self.go_on(now);
        Ok(())
    }

    /// Asks a node whether it is there, if not too many are asked already; with `token` if it has just given one.
    fn ping(&mut self, node: Node, token: Option<Token>) {
        let mut asked = self.pings.iter().map(|ping| &ping.node.address);
        // Nobody keeps others from being asked by many keys in one place.
        let has_room = has_room_for(&mut asked, &node.address);
        if has_room && !self.pings.iter().any(|ping| ping.node.key == node.key) {
            // If there is no room it is asked another time.
            let _ = self.pings.push(Ping { node, token, sent: None, answers: 0 });
        }
    }

    /// 32 bytes that nobody can foretell, for an ephemeral key.
    pub(crate) fn randomness(&mut self) -> [u8; 32] {
        self.random.array()
    }

    /// Seconds since the start.
    fn seconds(&self, now: Instant) -> u32 {
        now.saturating_since(self.start).as_secs() as u32
    }
}

impl core::fmt::Debug for Dht {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Dht")
            .field("id", &self.id)
            .field("contacts", &self.table.len())
            .finish_non_exhaustive()
    }
}

fn apply(query: &mut Query, asked: (Entry, u8), own: &[u8; 32], token: Token, reply: &Reply<'_>) {
    match reply {
        Reply::Found { write_token, record, nodes } => {
            query.found(asked, own, (token, *write_token), record, nodes);
        }
        Reply::Stored { result, seq } => query.stored(*result, *seq),
        Reply::Pong => {}
    }
}

/// Bytes of a node apart from its pools.
pub(crate) const fn fixed_memory() -> usize {
    size_of::<Dht>()
}

#[cfg(test)]
mod tests;
