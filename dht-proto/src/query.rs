//! One lookup: whom to ask next, until nobody nearer is left, and where to store what.

use wraith_proto::Instant;

use crate::event::Conflict;
use crate::header::Transaction;
use crate::id::Id;
use crate::message::{Held, MAX_NODE, Nodes, Reply, StoreResult, write_node, write_record};
use crate::node::{Address, Node};
use crate::record::{Kind, Record};
use crate::shortlist::{Entry, PATHS, Shortlist, State};
use crate::store::RecordBytes;
use crate::table::K;
use crate::token::{Token, WriteToken};

/// Milliseconds after which another node is asked beside one that has not answered.
const STALL: u32 = 300;

/// Milliseconds after which an answer counts no more.
pub(crate) const TIMEOUT: u32 = 1_500;

/// Seconds after the start of a lookup for which a node that did not answer it is not waited for as long again.
const MEMORY: u64 = 60;

/// Requests of one lookup at most, so that it ends whatever the answers say.
const MAX_ASKED: u16 = 120;

/// Requests that wait for an answer at once: one for each path, and those that stalled.
pub(crate) const MAX_PENDING: usize = 12;

/// What a lookup is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Goal {
    /// The nearest nodes.
    Nodes,
    /// A record.
    Get(Kind),
    /// To store `record`, or to announce this node.
    Put(Kind),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Idle,
    Searching,
    Storing,
    Done,
    /// Its event was lent out; the slot is free when the caller comes back.
    Reported,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    transaction: Transaction,
    distance: u64,
    /// Milliseconds since the start of the lookup.
    sent: u32,
    path: u8,
    stalled: bool,
    /// The node has left another request without an answer: it is waited for no longer than until this one stalls.
    silent: bool,
    /// Answers that were opened, or tried to.
    answers: u8,
}

/// Answers to one request that are opened: others know its transaction if they see it pass, and each costs an X25519.
pub(crate) const MAX_ANSWERS: u8 = 4;

/// What to send.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Search,
    Store(WriteToken),
}

/// A lookup in a slot that is used again.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) phase: Phase,
    pub(crate) goal: Goal,
    pub(crate) target: Id,
    pub(crate) generation: u32,
    started: Instant,
    pub(crate) list: Shortlist,
    pending: heapless::Vec<Pending, MAX_PENDING>,
    asked: u16,
    radius: u64,
    /// See [`take_reach`](Self::take_reach).
    reach: Option<u64>,
    /// What is stored, or was found.
    pub(crate) record: RecordBytes,
    /// Providers in `record`.
    pub(crate) providers: u8,
    pub(crate) expected: Option<u64>,
    /// Steps to the answer with the record.
    pub(crate) hops: u8,
    /// Nodes that keep the record.
    pub(crate) stored: u8,
    /// What nodes refused it for.
    pub(crate) conflict: Option<Conflict>,
}

impl Query {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Idle,
            goal: Goal::Nodes,
            target: Id::from_bytes([0; 32]),
            generation: 0,
            started: Instant::MIN,
            list: Shortlist::default(),
            pending: heapless::Vec::new(),
            asked: 0,
            radius: 0,
            reach: None,
            record: RecordBytes::new(),
            providers: 0,
            expected: None,
            hops: 0,
            stored: 0,
            conflict: None,
        }
    }

    /// Begins a lookup; the nodes to start from are [learnt](Self::begin_with) next.
    pub(crate) fn begin(&mut self, goal: Goal, target: Id, radius: u64, now: Instant) {
        self.phase = Phase::Searching;
        self.goal = goal;
        self.target = target;
        self.generation = self.generation.wrapping_add(1);
        self.started = now;
        self.radius = radius;
        self.reach = None;
        self.list.clear();
        self.pending.clear();
        self.record.clear();
        (self.asked, self.providers, self.hops, self.stored) = (0, 0, 0, 0);
        (self.expected, self.conflict) = (None, None);
    }

    /// Gives the paths their first nodes in turn, also those that come later.
    pub(crate) fn begin_with(&mut self, nodes: impl Iterator<Item = Node>) {
        for (at, node) in (self.list.beginnings()..).zip(nodes) {
            self.list.hear(node, self.target.place(), (at % PATHS) as u8, 1);
        }
    }

    /// Whom to send what now.
    pub(crate) fn next(&mut self, now: Instant, transaction: Transaction) -> Option<(Entry, Step)> {
        let sent = self.elapsed(now);
        if self.pending.is_full() {
            return None;
        }
        let (entry, path, step) = match self.phase {
            Phase::Searching => {
                let (path, entry) = self.candidate()?;
                (entry, path, Step::Search)
            }
            Phase::Storing if self.live() < MAX_PENDING / 2 => {
                let (entry, token) = self.list.chosen()?;
                (entry, 0, Step::Store(token))
            }
            _ => return None,
        };
        let pending = Pending {
            transaction,
            distance: entry.distance,
            sent,
            path,
            stalled: false,
            silent: false,
            answers: 0,
        };
        self.list.at(entry.distance)?.state = match step {
            Step::Search => State::Asked,
            Step::Store(token) => State::Offered(token),
        };
        self.asked += 1;
        self.pending.push(pending).ok()?;
        Some((entry, step))
    }

    /// Whether a node at `address` was asked by `transaction`, and its answer may be opened, which is counted.
    pub(crate) fn admits(&mut self, transaction: Transaction, address: &Address) -> bool {
        let Some(asked) = self.pending.iter_mut().find(|pending| pending.transaction == transaction) else {
            return false;
        };
        let asks_there = self.list.get(asked.distance).is_some_and(|entry| entry.node.address == *address);
        let admitted = asks_there && asked.answers < MAX_ANSWERS;
        asked.answers += u8::from(admitted);
        admitted
    }

    /// Asks again with `token`, for which it was asked, unless that happened before. Says whether it did.
    pub(crate) fn ask_again(&mut self, transaction: Transaction, token: Token) -> bool {
        let Some(at) = self.pending.iter().position(|pending| pending.transaction == transaction) else {
            return false;
        };
        let Some(entry) = self.list.at(self.pending[at].distance).filter(|entry| !entry.asked_again) else {
            return false;
        };
        (entry.asked_again, entry.token) = (true, token);
        entry.state = match entry.state {
            State::Offered(token) => State::Chosen(token),
            _ => State::New,
        };
        self.pending.swap_remove(at);
        true
    }

    /// Counts a request as failed without waiting for its answer; the node that it went to.
    pub(crate) fn give_up(&mut self, transaction: Transaction) -> Option<Node> {
        let at = self.pending.iter().position(|pending| pending.transaction == transaction)?;
        let failed = self.fail(at);
        self.settle();
        failed
    }

    fn fail(&mut self, at: usize) -> Option<Node> {
        let Pending { distance, .. } = self.pending.swap_remove(at);
        self.list.fail(distance)
    }

    /// Takes the request that `transaction` answers, if it went to `from`; [`None`] counts for nothing.
    pub(crate) fn take(&mut self, transaction: Transaction, from: &Node) -> Option<(Entry, u8)> {
        let at = self.pending.iter().position(|pending| pending.transaction == transaction)?;
        let Pending { distance, path, .. } = self.pending[at];
        let entry = *self.list.at(distance).filter(|entry| entry.node == *from)?;
        self.pending.swap_remove(at);
        Some((entry, path))
    }

    /// Whether an answer is of the kind that this phase asks for.
    pub(crate) const fn expects(&self, reply: &Reply<'_>) -> bool {
        match reply {
            Reply::Found { .. } => matches!(self.phase, Phase::Searching),
            Reply::Stored { .. } => matches!(self.phase, Phase::Storing),
            Reply::Pong => false,
        }
    }

    /// An answer to a search, with its address token and write token.
    pub(crate) fn found(
        &mut self,
        asked: (Entry, u8),
        own: &[u8; 32],
        tokens: (Token, WriteToken),
        record: &Held<'_>,
        nodes: &Nodes<'_>,
    ) {
        let (entry, path) = asked;
        if let Some(entry) = self.list.at(entry.distance) {
            let (address_token, write_token) = tokens;
            entry.token = address_token;
            entry.state = State::Answered(write_token);
        }
        let depth = entry.depth.saturating_add(1);
        // Where there were fewer nodes to begin with than paths, these share what they name among all paths.
        let share = entry.depth == 1 && self.list.beginnings() < PATHS;
        for (at, node) in nodes.compact().enumerate() {
            if node.key != *own && means_something(&node, &entry.node) {
                let path = if share { (usize::from(path) + at) % PATHS } else { usize::from(path) };
                self.list.hear(node, self.target.place(), path as u8, depth);
            }
        }
        self.take_record(&entry, record);
        self.settle();
    }

    /// An answer to a store request.
    pub(crate) fn stored(&mut self, result: StoreResult, seq: u64) {
        match result {
            StoreResult::Stored => self.stored += 1,
            StoreResult::Conflict | StoreResult::Outdated => {
                let before = self.conflict.unwrap_or(Conflict { nodes: 0, seq });
                self.conflict = Some(Conflict { nodes: before.nodes + 1, seq: before.seq.max(seq) });
            }
            _ => {}
        }
        self.settle();
    }

    /// Takes note whether `node` has left another request without an answer.
    pub(crate) fn suspect(&mut self, node: &Node, silent: bool) {
        for pending in &mut self.pending {
            if self.list.get(pending.distance).is_some_and(|entry| entry.node == *node) {
                pending.silent = silent;
            }
        }
        self.settle();
    }

    /// A request that has waited for too long is given up; the node that did not answer.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Node> {
        let now = self.elapsed(now);
        for pending in &mut self.pending {
            pending.stalled |= now.saturating_sub(pending.sent) >= STALL;
        }
        let late = |pending: &Pending| now.saturating_sub(pending.sent) >= TIMEOUT;
        let failed = self.pending.iter().position(late).and_then(|at| self.fail(at));
        self.settle();
        failed
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let wait =
            |pending: &Pending| pending.sent.saturating_add(if pending.stalled { TIMEOUT } else { STALL });
        let first = self.pending.iter().map(wait).min().filter(|_| self.is_running())?;
        Some(self.started.saturating_add(core::time::Duration::from_millis(u64::from(first))))
    }

    /// Goes on to the next phase if there is nothing left to do in this one.
    pub(crate) fn settle(&mut self) {
        if self.phase == Phase::Searching && self.is_covered() {
            self.reach = self.list.answered().nth(K - 1).map(|entry| entry.distance);
            if matches!(self.goal, Goal::Put(_)) {
                self.phase = Phase::Storing;
                self.list.choose(self.radius);
                self.pending.clear();
            } else {
                self.phase = Phase::Done;
            }
        }
        if self.phase == Phase::Storing && self.pending.is_empty() && self.list.chosen().is_none() {
            self.phase = Phase::Done;
        }
    }

    pub(crate) const fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Searching | Phase::Storing)
    }

    /// The distance of the last of [`K`] nodes around the target, if so many answered; once, when the search is over.
    pub(crate) const fn take_reach(&mut self) -> Option<u64> {
        self.reach.take()
    }

    /// Whether `node` did not answer this lookup, which may be over, a short while ago.
    pub(crate) fn has_missed(&self, node: &Node, now: Instant) -> bool {
        let is_recent = now.saturating_since(self.started).as_secs() < MEMORY;
        is_recent && self.list.has_failed(node)
    }

    /// Whether all that it waits for are nodes that have stalled.
    pub(crate) fn is_stalled(&self) -> bool {
        let all = self.pending.iter().all(|pending| pending.stalled);
        self.phase == Phase::Searching && all && !self.pending.is_empty() && self.candidate().is_none()
    }

    /// The nodes that it waits for.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Node> {
        self.pending.iter().filter_map(|pending| Some(self.list.get(pending.distance)?.node))
    }

    fn is_covered(&self) -> bool {
        let enough = self.list.answered().nth(K - 1).is_some();
        let any = self.list.answered().next().is_some();
        let matters = |pending: &Pending| !pending.stalled || !(enough || (any && pending.silent));
        let waits = self.pending.iter().any(matters);
        !waits && self.candidate().is_none()
    }

    /// The path that may ask, and whom.
    fn candidate(&self) -> Option<(u8, Entry)> {
        if self.asked >= MAX_ASKED {
            return None;
        }
        let busy = |path: u8| self.pending.iter().any(|pending| pending.path == path && !pending.stalled);
        let free = (0..PATHS as u8).filter(|&path| !busy(path));
        free.into_iter().find_map(|path| Some((path, self.list.candidate(path, self.radius)?)))
    }

    fn live(&self) -> usize {
        self.pending.iter().filter(|pending| !pending.stalled).count()
    }

    fn elapsed(&self, now: Instant) -> u32 {
        now.saturating_since(self.started).as_millis() as u32
    }

    /// Keeps what was found if it is genuine and better than what there is. What cannot be replaced ends the lookup.
    fn take_record(&mut self, entry: &Entry, held: &Held<'_>) {
        match (self.goal, held) {
            (Goal::Get(Kind::Providers), Held::Providers(nodes)) => self.take_providers(entry, nodes),
            (Goal::Get(kind), Held::Record(record)) if record.kind() == kind => {
                self.take_value(entry, record);
            }
            _ => {}
        }
    }

    fn take_value(&mut self, entry: &Entry, record: &Record<'_>) {
        let known = crate::store::record(&self.record).map(|known| known.seq());
        if known.is_some_and(|known| known >= record.seq()) || !record.is_genuine(&self.target) {
            return;
        }
        let mut bytes = [0; crate::message::MAX_RECORD];
        let mut w = wraith_proto::wire::Writer::new(&mut bytes);
        if write_record(&mut w, record).is_ok() {
            self.record.clear();
            // It has room for every record.
            let _ = self.record.extend_from_slice(w.written());
            self.hops = entry.depth;
        }
        if record.kind() == Kind::Value {
            self.phase = Phase::Done;
        }
    }

    fn take_providers(&mut self, entry: &Entry, nodes: &Nodes<'_>) {
        for node in nodes.compact().filter(|node| means_something(node, &entry.node)) {
            let known = crate::message::nodes(&self.record, self.providers).any(|known| known == node);
            let mut bytes = [0; MAX_NODE];
            let mut w = wraith_proto::wire::Writer::new(&mut bytes);
            if !known
                && usize::from(self.providers) < K
                && write_node(&mut w, &node).is_ok()
                && self.record.extend_from_slice(w.written()).is_ok()
            {
                self.hops = if self.providers == 0 { entry.depth } else { self.hops };
                self.providers += 1;
            }
        }
    }
}

/// Whether the address of a node that `from` names may be sent to: who is at a public address knows no private ones that
/// mean the same here (`PROTO §14.10`).
const fn means_something(node: &Node, from: &Node) -> bool {
    node.address.is_usable() && (node.address.is_public() || !from.address.is_public())
}
