//! What a node does for itself: it joins, keeps its table full and alive, and its records stored.

use core::time::Duration;

use wraith_proto::Instant;

use super::Dht;
use crate::id::{Id, Place};
use crate::node::{Node, NodeRef};
use crate::query::{Goal, MAX_PENDING, Phase};
use crate::table::K;

/// The slot of the node's own lookups.
pub(super) const OWN_QUERY: usize = 0;

/// Nodes to begin with that are kept.
const SEEDS: usize = 8;

/// Distances from which the size of the network is estimated.
const SAMPLES: usize = 16;

/// Time between two looks at what is due.
const TICK: Duration = Duration::from_secs(10);

/// Time between two searches for more contacts.
const REFRESH: Duration = Duration::from_mins(15);

/// Milliseconds until a node that knows nobody, or few, tries again; twice as long each time, a minute at most.
const RETRY: u32 = 2_000;

/// How often that time doubles. Who knows few by then may know all that there are.
const DOUBLINGS: u32 = 5;

/// Random places that are looked up to find out how dense nodes lie, once there are more or fewer around this one.
const SURVEYS: u8 = 2;

/// What a node's own lookup is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Nothing before this time.
    Rest(Instant),
    /// The nodes around it.
    Own,
    /// Nodes of this bucket.
    Bucket(usize),
    /// Random places, so many after this one, so that the size of the network is known; then there is rest until then.
    Survey(u8, Instant),
    /// To store a record again; then there is rest until then.
    Store(Instant),
}

/// The state of all that.
#[derive(Debug)]
pub(super) struct Upkeep {
    seeds: heapless::Vec<Node, SEEDS>,
    stage: Stage,
    tick: Instant,
    /// What to report of the last time that it asked for its own place.
    joined: Option<usize>,
    /// Whether that was reported.
    is_member: bool,
    samples: heapless::Deque<u64, SAMPLES>,
    /// The next sample takes the place of all.
    is_outdated: bool,
    /// The reach of the table when the last samples were taken.
    reach: Option<u64>,
    /// Searches for the own place in a row after which too few are known.
    failures: u32,
}

impl Upkeep {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            seeds: heapless::Vec::new(),
            stage: Stage::Rest(now.saturating_add(REFRESH)),
            tick: now.saturating_add(TICK),
            joined: None,
            is_member: false,
            samples: heapless::Deque::new(),
            is_outdated: false,
            reach: None,
            failures: 0,
        }
    }

    pub(super) fn take_joined(&mut self) -> Option<usize> {
        self.joined.take()
    }

    /// Keeps a node to begin with, and forgets the oldest if there are too many. A lookup asks a node at one address alone, so
    /// the last one takes the place of those before.
    fn keep(&mut self, node: Node) {
        self.seeds.retain(|kept| kept.key != node.key);
        if self.seeds.is_full() {
            self.seeds.remove(0);
        }
        // There is room.
        let _ = self.seeds.push(node);
    }

    /// Takes note how far the k-th nearest node of some place is.
    pub(super) fn observe(&mut self, reach: u64) {
        if core::mem::take(&mut self.is_outdated) {
            self.samples.clear();
        } else if self.samples.is_full() {
            self.samples.pop_front();
        }
        // There is room.
        let _ = self.samples.push_back(reach);
    }

    pub(super) fn next(&self) -> Instant {
        match self.stage {
            Stage::Rest(until) => self.tick.min(until),
            _ => self.tick,
        }
    }

    /// How far the k-th nearest node of any place is to be expected: who grinds ids near one key does not change it.
    pub(super) fn radius(&self) -> u64 {
        let mut sorted: heapless::Vec<u64, SAMPLES> = self.samples.iter().copied().collect();
        sorted.sort_unstable();
        // Without a sample all that is known may be near.
        sorted.get(sorted.len() / 2).copied().unwrap_or(u64::MAX)
    }

    pub(super) fn network_size(&self) -> Option<u64> {
        let radius = Some(self.radius()).filter(|_| !self.samples.is_empty())?;
        Some(((K as u128) << 64).checked_div(u128::from(radius))?.try_into().unwrap_or(u64::MAX))
    }
}

impl Dht {
    /// Joins through `node`: asks it for its own place now, and again while nobody is known.
    pub fn bootstrap(&mut self, node: NodeRef, now: Instant) {
        let node = Node::from(node);
        if node.key == self.key || !node.address.is_usable() {
            return;
        }
        self.upkeep.keep(node);
        if matches!(self.upkeep.stage, Stage::Rest(_)) {
            self.look_around(now);
        } else {
            self.queries[OWN_QUERY].begin_with(core::iter::once(node));
        }
    }

    /// Keeps `node` to join through when it tries the next time, after a try that has failed. The last eight are kept.
    pub fn keep_for_bootstrap(&mut self, node: NodeRef) {
        let node = Node::from(node);
        if node.key != self.key && node.address.is_usable() {
            self.upkeep.keep(node);
        }
    }

    /// Whether the news that nobody has answered waits to be told.
    pub fn has_failed_to_join(&self) -> bool {
        self.upkeep.joined == Some(0)
    }

    /// Whether a lookup would begin with all nodes that there are to begin with: some have answered, and if it is still joining,
    /// it waits for silent ones alone, which may never answer.
    pub fn can_look_up(&self) -> bool {
        let joins = self.upkeep.stage == Stage::Own && !self.queries[OWN_QUERY].is_stalled();
        self.table.len() > 0 && !joins
    }

    /// Does what is due, at most one of each kind.
    pub(super) fn keep_up(&mut self, now: Instant) {
        self.go_on(now);
        if matches!(self.upkeep.stage, Stage::Rest(until) if until <= now) {
            self.look_around(now);
        }
        if now < self.upkeep.tick {
            return;
        }
        let seconds = self.seconds(now);
        self.upkeep.tick = now.saturating_add(TICK);
        self.store.expire(seconds);
        if let Some(stale) = self.table.stalest(seconds) {
            self.ping(stale, None);
        }
        if let Stage::Rest(until) = self.upkeep.stage {
            self.spend_rest(until, now);
        }
    }

    /// Takes note of what has ended, and the next step once the own lookup is done.
    pub(super) fn go_on(&mut self, now: Instant) {
        let seconds = self.seconds(now);
        for query in &mut self.queries {
            if let Some(reach) = query.take_reach() {
                self.upkeep.observe(reach);
            }
            if let (Phase::Done, Goal::Put(kind), 1..) = (query.phase, query.goal, query.stored) {
                self.store.published(&query.target, kind, seconds);
            }
        }
        if self.queries[OWN_QUERY].phase != Phase::Done {
            return;
        }
        self.queries[OWN_QUERY].phase = Phase::Idle;
        let from = match self.upkeep.stage {
            Stage::Rest(_) => return,
            Stage::Survey(0, until) | Stage::Store(until) => {
                self.upkeep.stage = Stage::Rest(until);
                return self.spend_rest(until, now);
            }
            Stage::Survey(more, until) => return self.survey(more - 1, until, now),
            Stage::Own => {
                let contacts = self.table.len();
                if !self.upkeep.is_member {
                    self.upkeep.joined = Some(contacts);
                }
                if let Some(wait) = self.tries_again_in(contacts) {
                    self.upkeep.stage = Stage::Rest(now.saturating_add(wait));
                    return;
                }
                0
            }
            Stage::Bucket(bucket) => bucket + 1,
        };
        if let Some(bucket) = self.table.sparse(from) {
            self.upkeep.stage = Stage::Bucket(bucket);
            let place = self.id.place().in_bucket(bucket, self.random.next_u64());
            self.search(place, now);
        } else {
            self.upkeep.reach = self.table.reach();
            // Not all at once, though they were started at once.
            let jitter = Duration::from_millis(u64::from(self.random.below(60_000)));
            self.upkeep.stage = Stage::Rest(now.saturating_add(REFRESH + jitter));
        }
    }

    /// Nodes that a lookup in `slot` begins with beside the contacts: those that this node waits for to join through. They
    /// may be the only ones that know of others.
    pub(super) fn awaited(&self, slot: usize) -> heapless::Vec<Node, MAX_PENDING> {
        let joins = slot != OWN_QUERY && self.upkeep.stage == Stage::Own && !self.upkeep.is_member;
        self.queries[OWN_QUERY].waiting().filter(|_| joins).collect()
    }

    /// How long to wait before the own place is searched for again, where so few nodes are known that others may have come
    /// at the same time, whom nobody could name yet.
    fn tries_again_in(&mut self, contacts: usize) -> Option<Duration> {
        let is_member = contacts > 0;
        let was_member = core::mem::replace(&mut self.upkeep.is_member, is_member);
        if was_member != is_member || contacts >= K {
            self.upkeep.failures = 0;
        }
        if contacts >= K || (is_member && self.upkeep.failures == DOUBLINGS) {
            return None;
        }
        let wait = RETRY << self.upkeep.failures;
        self.upkeep.failures = (self.upkeep.failures + 1).min(DOUBLINGS);
        // Who was turned away together does not come back together.
        Some(Duration::from_millis(u64::from(wait / 2 + self.random.below(wait / 2))))
    }

    /// Looks whether there is anything to do before the next search for contacts: records of this node are stored again,
    /// and the network is measured again once it has grown or shrunk to half.
    fn spend_rest(&mut self, until: Instant, now: Instant) {
        let seconds = self.seconds(now);
        if let Some((key, kind)) = self.store.due(seconds) {
            self.upkeep.stage = Stage::Store(until);
            self.start_in(OWN_QUERY, Goal::Put(kind), key, None, now);
            return;
        }
        // What is near is known from those who ask, but they may have chosen to be near: it tells when, and not how many.
        let (before, reach) = (self.upkeep.reach, self.table.reach());
        let has_changed = match (before, reach) {
            (Some(before), Some(reach)) => reach < before / 2 || reach / 2 > before,
            (before, reach) => before.is_some() != reach.is_some(),
        };
        if has_changed {
            self.upkeep.reach = reach;
            self.upkeep.is_outdated = true;
            self.survey(SURVEYS - 1, until, now);
        }
    }

    fn survey(&mut self, more: u8, until: Instant, now: Instant) {
        self.upkeep.stage = Stage::Survey(more, until);
        let place = Place(self.random.next_u64());
        self.search(place, now);
    }

    /// Begins an own lookup of the nodes around `place`.
    fn search(&mut self, place: Place, now: Instant) {
        let mut target = [0; 32];
        target[..8].copy_from_slice(&place.0.to_be_bytes());
        self.start_in(OWN_QUERY, Goal::Nodes, Id::from_bytes(target), None, now);
    }

    /// Asks for the own place.
    fn look_around(&mut self, now: Instant) {
        self.upkeep.stage = Stage::Own;
        self.start_in(OWN_QUERY, Goal::Nodes, self.id, None, now);
        let seeds = self.upkeep.seeds.clone();
        self.queries[OWN_QUERY].begin_with(seeds.into_iter());
        if self.queries[OWN_QUERY].phase == Phase::Done && !self.upkeep.seeds.is_empty() {
            self.queries[OWN_QUERY].phase = Phase::Searching;
        }
    }
}
