//! What a node does for itself: it joins, keeps its table full and alive, and its records stored.

use core::time::Duration;

use wraith_proto::Instant;

use super::Dht;
use crate::id::Id;
use crate::node::{Node, NodeRef};
use crate::query::{Goal, Phase};
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

/// Time until a node that knows nobody tries again.
const RETRY: Duration = Duration::from_mins(1);

/// What a node's own lookup is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Nothing before this time.
    Rest(Instant),
    /// The nodes around it.
    Own,
    /// Nodes of this bucket.
    Bucket(usize),
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
        }
    }

    pub(super) fn take_joined(&mut self) -> Option<usize> {
        self.joined.take()
    }

    /// Takes note how far the k-th nearest node of some place is.
    pub(super) fn observe(&mut self, reach: u64) {
        if self.samples.is_full() {
            self.samples.pop_front();
        }
        // There is room.
        let _ = self.samples.push_back(reach);
    }

    pub(super) const fn next(&self) -> Instant {
        self.tick
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
        if self.upkeep.seeds.is_full() {
            self.upkeep.seeds.remove(0);
        }
        // There is room.
        let _ = self.upkeep.seeds.push(node);
        if matches!(self.upkeep.stage, Stage::Rest(_)) {
            self.look_around(now);
        } else {
            self.queries[OWN_QUERY].begin_with(core::iter::once(node));
        }
    }

    /// Does what is due, at most one of each kind.
    pub(super) fn keep_up(&mut self, now: Instant) {
        self.go_on(now);
        if now < self.upkeep.tick {
            return;
        }
        let seconds = self.seconds(now);
        self.upkeep.tick = now.saturating_add(TICK);
        self.store.expire(seconds);
        if let Some(stale) = self.table.stalest(seconds) {
            self.ping(stale);
        }
        if let Some(slot) = self.free_slot()
            && let Some((key, kind)) = self.store.due(seconds)
        {
            self.start_in(slot, Goal::Put(kind), key, None, now);
        }
        if matches!(self.upkeep.stage, Stage::Rest(until) if until <= now) {
            self.look_around(now);
        }
    }

    /// Takes the next step once the own lookup is done.
    pub(super) fn go_on(&mut self, now: Instant) {
        if self.queries[OWN_QUERY].phase != Phase::Done {
            return;
        }
        self.queries[OWN_QUERY].phase = Phase::Idle;
        let from = match self.upkeep.stage {
            Stage::Rest(_) => return,
            Stage::Own => {
                let contacts = self.table.len();
                if !self.upkeep.is_member {
                    self.upkeep.joined = Some(contacts);
                }
                self.upkeep.is_member = contacts > 0;
                if contacts == 0 {
                    self.upkeep.stage = Stage::Rest(now.saturating_add(RETRY));
                    return;
                }
                0
            }
            Stage::Bucket(bucket) => bucket + 1,
        };
        if let Some(bucket) = self.table.sparse(from) {
            self.upkeep.stage = Stage::Bucket(bucket);
            let place = self.id.place().in_bucket(bucket, self.random.next_u64());
            let mut target = [0; 32];
            target[..8].copy_from_slice(&place.0.to_be_bytes());
            self.start_in(OWN_QUERY, Goal::Nodes, Id::from_bytes(target), None, now);
        } else {
            // Not all at once, though they were started at once.
            let jitter = Duration::from_millis(u64::from(self.random.below(60_000)));
            self.upkeep.stage = Stage::Rest(now.saturating_add(REFRESH + jitter));
        }
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
