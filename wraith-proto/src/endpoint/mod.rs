//! The endpoint: every session of one shard, behind five verbs.

mod admit;
mod build;
mod calls;
mod dial;
mod egress;
mod frames;
mod handshake;
mod hello;
mod ingress;
mod lifecycle;
mod memory;
mod paths;
mod received;
mod redial;
mod refused;
mod rekey;
mod respond;
mod scope;
mod timers;
#[cfg_attr(not(feature = "trace"), path = "untraced.rs")]
mod traced;

use core::net::{IpAddr, SocketAddr};

use heapless::Deque;

use crate::config::Config;
use crate::crypto::{Rng, StaticKey};
use crate::error::{ConfigError, DropReason};
use crate::event::Event;
use crate::recovery::SentPool;
use crate::session::{KeyPool, Session, SessionHandle, SessionState};
use crate::stats::Stats;
use crate::stream::{DatagramPool, StreamPool};
use crate::time::Instant;
use crate::util::{KeyTable, Links, List, Slab, Wheel};
use crate::wire::ConnectionId;

pub use memory::Memory;
pub use received::Received;

use admit::Admission;
use egress::Answer;
use handshake::Handshakes;
use memory::{routes, timers};
use paths::Paths;
use redial::Redials;
use refused::LargeSenders;
use traced::Hook;

/// Connection ids that each session may have in the table.
const IDS_PER_SESSION: u32 = 4;

/// Answers without state that wait to be sent.
const ANSWERS: usize = 64;

/// How much work one call may do: sessions for timers, datagrams for sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget(pub u32);

impl Budget {
    /// No bound.
    pub const UNLIMITED: Self = Self(u32::MAX);
}

/// Whether `handle_timeout` did everything that was due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Progress {
    /// Nothing is left that was due.
    Done,
    /// The budget ended first; come back.
    More,
}

/// Why `poll_transmit` stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum TxStatus {
    /// There is nothing to send now.
    Idle,
    /// The queue had no room.
    QueueFull,
    /// The budget is spent.
    Budget,
}

/// When and why to call `handle_timeout`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// When; never before the `now` of the last call.
    pub at: Instant,
    /// Why.
    pub reason: TimerKind,
}

/// What a deadline is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TimerKind {
    /// A packet may be lost.
    Loss,
    /// An acknowledgement is due.
    Ack,
    /// The pacer lets more data leave.
    Pacing,
    /// A session would fall silent.
    KeepAlive,
    /// Keys of a former epoch can be forgotten.
    Rekey,
    /// A session has been silent for too long.
    Idle,
    /// A closed session can be forgotten.
    Close,
    /// A probe of what the path carries is lost, or the next one is due.
    Mtu,
    /// An address that a peer may have moved to has to be asked again, or is given up.
    Path,
    /// A handshake message has to be repeated, or a handshake has failed.
    Handshake,
    /// Work was left over when a budget ended.
    Backlog,
}

impl TimerKind {
    /// The kinds that sessions have timers for.
    pub(crate) const ALL: [Self; 8] = [
        Self::Loss,
        Self::Ack,
        Self::Pacing,
        Self::KeepAlive,
        Self::Rekey,
        Self::Idle,
        Self::Close,
        Self::Mtu,
    ];
}

/// Whom a connection id belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    Session(u32),
    Handshake(u32),
}

impl Route {
    const HANDSHAKE: u32 = 1 << 31;

    const fn pack(self) -> u32 {
        match self {
            Self::Session(index) => index,
            Self::Handshake(slot) => slot | Self::HANDSHAKE,
        }
    }

    const fn unpack(value: u32) -> Self {
        if value & Self::HANDSHAKE == 0 {
            Self::Session(value)
        } else {
            Self::Handshake(value & !Self::HANDSHAKE)
        }
    }
}

/// Every session of one shard.
///
/// ```text
/// datagrams ─▶ handle ──▶ payloads, lent          poll_event ──▶ news
/// time      ─▶ handle_timeout                     poll_transmit ─▶ datagrams, in your memory
///                                                 poll_timeout ──▶ when to come back
/// ```
pub struct Endpoint {
    config: Config,
    now: Instant,
    rng: Rng,
    instance: [u8; 16],
    static_key: StaticKey,
    sessions: Slab<SessionState>,
    expanded: KeyPool,
    routes: KeyTable,
    peers: KeyTable,
    peers_key: [u8; 16],
    handshakes: Handshakes,
    redials: Redials,
    wheel: Wheel,
    ready_links: Links,
    ready: List,
    event_links: Links,
    news: List,
    streams: StreamPool,
    sent: SentPool,
    datagrams: DatagramPool,
    /// Sessions whose first datagram found the pool full of those of others.
    starved: List,
    starved_links: Links,
    admission: Admission,
    paths: Paths,
    answers: Deque<Answer, ANSWERS>,
    large_senders: LargeSenders,
    /// Sessions whose CLOSE has not left.
    closes_due: u32,
    stats: Stats,
    hook: Hook,
}

impl Endpoint {
    /// An endpoint that draws all its randomness from `seed`: 32 fresh bytes of the operating system for each
    /// endpoint; a fixed one only in tests.
    ///
    /// # Errors
    /// Names the part of the configuration that does not fit.
    pub fn new(config: Config, seed: [u8; 32], now: Instant) -> Result<Self, ConfigError> {
        config.validate()?;
        let limits = config.limits;
        let mut rng = Rng::new(&seed, &config.identity, config.shard.index);
        let static_key = StaticKey::new(&config.identity, config.crypto);
        let sessions = limits.sessions;
        Ok(Self {
            now,
            instance: rng.array(),
            static_key,
            sessions: Slab::new(sessions),
            expanded: KeyPool::new(&limits, config.crypto),
            routes: KeyTable::new(routes(&limits), &rng.array()),
            peers: KeyTable::new(sessions, &rng.array()),
            peers_key: rng.array(),
            handshakes: Handshakes::new(limits.handshakes, rng.array()),
            redials: Redials::new(limits.handshakes),
            wheel: Wheel::new(timers(&limits), now),
            ready_links: Links::new(sessions),
            ready: List::EMPTY,
            event_links: Links::new(sessions),
            news: List::EMPTY,
            streams: StreamPool::new(limits.streams, limits.holes, rng.array()),
            sent: SentPool::new(limits.sent_packets, sessions),
            datagrams: DatagramPool::new(limits.datagrams),
            starved: List::EMPTY,
            starved_links: Links::new(sessions),
            admission: Admission::new(&limits, &seed, &config.identity, rng.array()),
            paths: Paths::new(&limits),
            answers: Deque::new(),
            large_senders: LargeSenders::NONE,
            closes_due: 0,
            stats: Stats::default(),
            hook: Hook::NONE,
            rng,
            config,
        })
    }

    /// When and why to call [`Endpoint::handle_timeout`]; changes only with calls that change state.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let (at, id) = self.wheel.next()?;
        if at <= self.now {
            return Some(Deadline { at: self.now, reason: TimerKind::Backlog });
        }
        let granularity = self.config.transport.timer_granularity;
        let reason = match self.sessions.get(id) {
            Some(session) if id < self.config.limits.sessions => {
                session.timers.next(granularity).map_or(TimerKind::Backlog, |(_, kind)| kind)
            }
            _ if id < self.config.limits.sessions + self.config.limits.handshakes => TimerKind::Handshake,
            _ => TimerKind::Path,
        };
        Some(Deadline { at, reason })
    }

    /// The next news of a session, if any.
    pub fn poll_event(&mut self) -> Option<(SessionHandle, Event)> {
        loop {
            let index = self.news.front()?;
            let handle = self.handle_of(index);
            if let Some(event) = self.take_event(index) {
                return Some((handle, event));
            }
            self.event_links.remove(&mut self.news, index);
            self.free_if_over(index);
        }
    }

    /// The session behind `handle`, until it is over and its end was polled.
    pub fn session(&mut self, handle: SessionHandle) -> Option<Session<'_>> {
        self.sessions.lookup(handle.index, handle.generation)?;
        Some(Session::new(self, handle))
    }

    /// Whether every CLOSE has left: the program may exit.
    pub fn is_drained(&self) -> bool {
        self.closes_due == 0
    }

    /// Sessions that exist, in any phase.
    pub fn sessions(&self) -> usize {
        self.sessions.len() as usize
    }

    /// Counters since the endpoint was made.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Which of `shards` endpoints a datagram belongs to; `None` for handshakes, which stay where they arrive
    /// (`PROTO §5.11`).
    pub fn shard_of(datagram: &[u8], shards: u8) -> Option<u8> {
        let id = crate::wire::visible_destination(datagram)?;
        Some(shard_of_id(id, shards))
    }

    /// Takes the caller's time; it never runs backwards here.
    fn advance(&mut self, now: Instant) {
        if now < self.now {
            self.stats.clock_regressions += 1;
        } else {
            self.now = now;
        }
    }

    fn handle_of(&self, index: u32) -> SessionHandle {
        SessionHandle { index, generation: self.sessions.generation(index) }
    }

    /// A fresh connection id of this shard that leads to `route`.
    fn new_id(&mut self, route: Route) -> Option<ConnectionId> {
        let shard = self.config.shard;
        loop {
            let id = ConnectionId(self.rng.array());
            if shard_of_id(id, shard.count) != shard.index || self.routes.get(id.as_u64()).is_some() {
                continue;
            }
            self.routes.insert(id.as_u64(), route.pack()).ok()?;
            return Some(id);
        }
    }

    fn route(&self, id: ConnectionId) -> Result<Route, DropReason> {
        if let Some(value) = self.routes.get(id.as_u64()) {
            return Ok(Route::unpack(value));
        }
        let shard = self.config.shard;
        let foreign = shard_of_id(id, shard.count) != shard.index;
        Err(if foreign { DropReason::WrongShard } else { DropReason::UnknownSession })
    }
}

impl core::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint")
            .field("peer_id", &self.config.identity.peer_id())
            .field("sessions", &self.sessions.len())
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

fn shard_of_id(id: ConnectionId, shards: u8) -> u8 {
    ((u16::from(id.0[0]) * u16::from(shards)) >> 8) as u8
}

/// Whether an address can be one peer's.
fn is_peer_address(address: SocketAddr) -> bool {
    let ip = address.ip();
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !broadcast
}

/// One spelling for each address: IPv4 inside IPv6 is plain IPv4. A link-local address keeps its interface.
fn canonical(address: SocketAddr) -> SocketAddr {
    let mut canonical = SocketAddr::new(canonical_ip(address.ip()), address.port());
    if let (SocketAddr::V6(canonical), SocketAddr::V6(address)) = (&mut canonical, address) {
        canonical.set_scope_id(address.scope_id());
    }
    canonical
}

fn canonical_ip(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

#[cfg(test)]
mod tests;
