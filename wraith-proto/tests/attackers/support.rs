//! The scene that every attacker finds: two sessions from their dials over a transfer both ways and fresh keys to their ends.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use wraith_proto::crypto::{CryptoProvider, HeaderKey, KeyMaterial, PacketKey, RustCrypto, Suite, X25519Key};
use wraith_proto::wire::{HandshakeKind, INIT_COOKIE_OFFSET, INIT_MESSAGE_OFFSET, InitPacket};
use wraith_proto::{
    CloseReason, Config, Dir, DropReason, Endpoint, Event, Identity, Instant, Limits, Outcome, SessionHandle,
    Stats, StreamId,
};
use wraith_sim::alloc::live_bytes;
use wraith_sim::{LEFT, Node, Pair, PairConfig, RIGHT, Recorder, Rng, Side, Verdict};

/// Sessions of the scene.
pub(crate) const SESSIONS: usize = 2;

/// How long the scene goes on after the sessions have ended, with the attacker.
pub(crate) const AFTERMATH: Duration = Duration::from_secs(32);

/// An attacker sees a datagram at least this long before it arrives: half the way over the links.
const TICK: Duration = Duration::from_millis(5);

/// Datagrams that each end of each session sends.
const DATAGRAMS: usize = 40;

/// Bytes of the stream that each end of each session sends.
const STREAM: usize = 40_000;

/// The codes that the sessions are closed with: the first by the left end, the second by the right.
const CODES: [u32; SESSIONS] = [7, 9];

const LIMITS: Limits = Limits {
    sessions: 8,
    handshakes: 16,
    handshake_rate: 1000,
    streams: 32,
    sent_packets: 256,
    holes: 32,
    datagrams: 64,
    expanded_keys: 8,
};

/// What an attacker may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Datagrams that it may send.
    pub(crate) datagrams: u64,
    /// Bytes that it may see of what the victims send.
    pub(crate) bytes: u64,
}

/// Acts between the steps of the scene: every 5 ms until the sessions have ended, then every second for [`AFTERMATH`].
pub(crate) trait Attacker {
    /// Sends what it likes.
    fn act(&mut self, reach: &mut Reach<'_>);
}

/// How far the scene has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Two dials are under way.
    Dial,
    /// Data flow, and keys are renewed.
    Transfer,
    /// All has arrived; the next act belongs to another stage.
    Transferred,
    /// The sessions end.
    Close,
    /// They have ended.
    Over,
}

/// A datagram that a victim sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) sender: Side,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

impl Sent {
    pub(crate) fn kind(&self) -> Option<HandshakeKind> {
        HandshakeKind::of(&self.bytes)
    }

    /// The end that it goes to; `None` if that is nobody of the scene.
    pub(crate) fn receiver(&self) -> Option<Side> {
        match self.to {
            LEFT => Some(Side::Left),
            RIGHT => Some(Side::Right),
            _ => None,
        }
    }
}

/// All that an attacker has: the wire, within its budget.
pub(crate) struct Reach<'a> {
    pair: &'a mut Pair,
    wire: &'a RefCell<Wire>,
    spent: &'a mut Spent,
    pub(crate) stage: Stage,
}

impl Reach<'_> {
    /// Hands a datagram to one end; `None` if the budget is spent.
    ///
    /// # Panics
    /// If a drop is not counted once, under its reason.
    pub(crate) fn send(&mut self, to: Side, from: SocketAddr, datagram: &[u8]) -> Option<Outcome> {
        self.spent.budget.datagrams = self.spent.budget.datagrams.checked_sub(1)?;
        *self.spent.claimed.entry(from).or_default() += datagram.len() as u64;
        let before = *node(self.pair, to).endpoint.stats();
        let outcome = self.pair.inject(to, from, datagram);
        let after = node(self.pair, to).endpoint.stats();
        let dropped = u64::from(matches!(outcome, Outcome::Dropped(_)));
        assert_eq!(after.dropped() - before.dropped(), dropped, "{outcome:?}");
        assert_eq!(after.datagrams_received - before.datagrams_received, 1);
        match outcome {
            Outcome::Dropped(reason) => {
                assert_eq!(after.drops(reason) - before.drops(reason), 1, "{reason:?}");
                *self.spent.drops.entry(format!("{reason:?}")).or_default() += 1;
            }
            Outcome::Authenticated(_) => {
                self.spent.authenticated += 1;
                *self.spent.authentic.entry(from).or_default() += datagram.len() as u64;
            }
            _ => self.spent.answered += 1,
        }
        Some(outcome)
    }

    /// What the victims sent since `seen` datagrams, which it counts on.
    pub(crate) fn news(&self, seen: &mut usize) -> Vec<Sent> {
        let wire = self.wire.borrow();
        let news = wire.seen[*seen..].to_vec();
        *seen = wire.seen.len();
        news
    }

    /// The time.
    pub(crate) fn now(&self) -> Instant {
        self.pair.now()
    }
}

/// What an attacker did.
pub(crate) struct Spent {
    budget: Budget,
    /// Bytes that came from each address, as their datagrams claimed.
    claimed: BTreeMap<SocketAddr, u64>,
    /// The same of those that were authentic.
    authentic: BTreeMap<SocketAddr, u64>,
    /// Drops by reason.
    pub(crate) drops: BTreeMap<String, u64>,
    /// Datagrams that were taken for authentic.
    pub(crate) authenticated: u64,
    /// Handshake messages that were taken.
    pub(crate) answered: u64,
}

impl Spent {
    fn new(budget: Budget) -> Self {
        let (claimed, authentic, drops) = Default::default();
        Self { budget, claimed, authentic, drops, authenticated: 0, answered: 0 }
    }

    /// Datagrams that the attacker might still have sent.
    pub(crate) fn left(&self) -> u64 {
        self.budget.datagrams
    }
}

/// What went over the wire, as far as the budget let the attacker see it.
struct Wire {
    seen: Vec<Sent>,
    may_see: u64,
    /// Bytes sent to each address.
    sent_to: BTreeMap<SocketAddr, u64>,
}

/// What one end of the scene is to receive.
#[derive(Default)]
struct Promised {
    datagrams: Vec<(SessionHandle, Vec<u8>)>,
    streams: Vec<(SessionHandle, Vec<u8>)>,
}

struct Scene {
    pair: Pair,
    wire: Rc<RefCell<Wire>>,
    spent: Spent,
    stage: Stage,
    rng: Rng,
    /// The sessions, as each end calls them.
    sessions: Vec<[SessionHandle; 2]>,
    promised: [Promised; 2],
}

/// The scene when it is over.
pub(crate) struct Aftermath {
    pub(crate) pair: Pair,
    pub(crate) spent: Spent,
    /// What the attacker saw.
    pub(crate) seen: Vec<Sent>,
    /// What applications said to each other, and what they exported.
    pub(crate) secrets: Vec<Vec<u8>>,
    /// How long the dials took until both ends knew of all sessions.
    pub(crate) dialled_in: Duration,
    sent_to: BTreeMap<SocketAddr, u64>,
    sessions: Vec<[SessionHandle; 2]>,
    promised: [Promised; 2],
}

/// The victims: small endpoints 10 ms apart that renew their keys every 16 packets.
pub(crate) fn victims(seed: u64) -> PairConfig {
    PairConfig::new(seed).with_both(|config| {
        config.limits = LIMITS;
        config.transport = config.transport.with_rekey_packets(16);
    })
}

/// Plays the scene with an attacker in it.
///
/// # Panics
/// If a dial, a transfer or an end was stopped.
pub(crate) fn play(config: PairConfig, budget: Budget, attacker: &mut impl Attacker) -> Aftermath {
    let mut scene = Scene::new(config, budget);
    let start = scene.pair.now();
    let mut secrets = scene.dial(attacker);
    let dialled_in = scene.pair.now().saturating_since(start);
    secrets.extend(scene.transfer(attacker));
    scene.close(attacker);
    scene.end(attacker);
    let Wire { seen, sent_to, .. } =
        std::mem::replace(&mut *scene.wire.borrow_mut(), Wire::new(Budget { datagrams: 0, bytes: 0 }));
    let Scene { pair, spent, sessions, promised, .. } = scene;
    Aftermath { pair, spent, seen, secrets, dialled_in, sent_to, sessions, promised }
}

impl Scene {
    fn new(config: PairConfig, budget: Budget) -> Self {
        let rng = Rng::new(!config.seed);
        let mut pair = Pair::new(config);
        let wire = Rc::new(RefCell::new(Wire::new(budget)));
        let keep = Rc::clone(&wire);
        pair.intercept(move |passing| {
            let sender = if passing.sender == 0 { Side::Left } else { Side::Right };
            keep.borrow_mut().show(sender, passing.to, passing.bytes);
            Verdict::Pass
        });
        let spent = Spent::new(budget);
        Self {
            pair,
            wire,
            spent,
            stage: Stage::Dial,
            rng,
            sessions: Vec::new(),
            promised: [Promised::default(), Promised::default()],
        }
    }

    /// Two dials; returns what the sessions export.
    fn dial(&mut self, attacker: &mut impl Attacker) -> Vec<Vec<u8>> {
        let lefts: Vec<_> = (0..SESSIONS).map(|_| self.pair.dial().expect("a free session")).collect();
        let both = |pair: &Pair| pair.left.connected() + pair.right.connected() == 2 * SESSIONS as u64;
        self.until(attacker, both, "the dials were stopped");
        let mut rights: Vec<_> = self.pair.right.host.events.iter().map(|&(session, _)| session).collect();
        rights.dedup();
        let mut exported = Vec::new();
        for left in lefts {
            let secret = export(&mut self.pair.left, left);
            let right = rights.iter().find(|&&right| export(&mut self.pair.right, right) == secret);
            self.sessions.push([left, *right.expect("both ends export the same")]);
            exported.push(secret.to_vec());
        }
        exported
    }

    /// Streams and datagrams both ways, over some epochs; returns what was said.
    fn transfer(&mut self, attacker: &mut impl Attacker) -> Vec<Vec<u8>> {
        self.stage = Stage::Transfer;
        for session in self.sessions.clone() {
            for sender in [0, 1] {
                let content = self.random(STREAM);
                let node = if sender == 0 { &mut self.pair.left } else { &mut self.pair.right };
                let mut open = node.endpoint.session(session[sender]).expect("open");
                let stream: StreamId = open.open(Dir::Uni).expect("the peer allows it");
                open.attach(stream, STREAM as u64).expect("the stream is new");
                node.host.serve(session[sender], stream, content.clone());
                self.promised[1 - sender].streams.push((session[1 - sender], content));
            }
        }
        for _ in 0..DATAGRAMS {
            for session in self.sessions.clone() {
                for sender in [0, 1] {
                    let said = self.random(48);
                    let node = if sender == 0 { &mut self.pair.left } else { &mut self.pair.right };
                    let mut open = node.endpoint.session(session[sender]).expect("open");
                    open.send_datagram(Bytes::from(said.clone())).expect("room for a datagram");
                    self.promised[1 - sender].datagrams.push((session[1 - sender], said));
                }
            }
            self.tick(attacker, TICK);
        }
        let whole = |pair: &Pair| {
            [&pair.left, &pair.right].iter().all(|node| {
                let streams = node.host.streams().filter(|(.., stream)| stream.complete().is_some()).count();
                streams == SESSIONS && node.host.datagrams.len() >= SESSIONS * DATAGRAMS
            })
        };
        self.until(attacker, whole, "the transfer was stopped");
        for session in &self.sessions {
            let left = self.pair.left.endpoint.session(session[0]).expect("open").stats().epoch;
            let right = self.pair.right.endpoint.session(session[1]).expect("open").stats().epoch;
            assert!(left >= 1 && right >= 1, "epochs {left} and {right}");
        }
        self.stage = Stage::Transferred;
        self.tick(attacker, TICK);
        let said = self.promised.iter().flat_map(|end| end.datagrams.iter().chain(&end.streams));
        said.map(|(_, bytes)| bytes.clone()).collect()
    }

    /// Each end closes one of the sessions.
    fn close(&mut self, attacker: &mut impl Attacker) {
        self.stage = Stage::Close;
        let (now, sessions) = (self.pair.now(), self.sessions.clone());
        self.pair.left.endpoint.session(sessions[0][0]).expect("open").close(now, CODES[0]);
        self.pair.right.endpoint.session(sessions[1][1]).expect("open").close(now, CODES[1]);
        let both = |pair: &Pair| pair.left.closed() + pair.right.closed() == 2 * SESSIONS as u64;
        self.until(attacker, both, "the ends were stopped");
        let done = |pair: &Pair| pair.left.endpoint.sessions() + pair.right.endpoint.sessions() == 0;
        self.until(attacker, done, "the sessions stay");
    }

    /// The time after the sessions, at last without the attacker: what it began has to pass.
    fn end(&mut self, attacker: &mut impl Attacker) {
        self.stage = Stage::Over;
        let over = self.pair.now();
        while self.pair.now().saturating_since(over) < AFTERMATH {
            self.tick(attacker, Duration::from_secs(1));
        }
        self.pair.run_for(Duration::from_secs(15));
    }

    fn until(&mut self, attacker: &mut impl Attacker, done: impl Fn(&Pair) -> bool, what: &str) {
        let start = self.pair.now();
        while !done(&self.pair) {
            assert!(self.pair.now().saturating_since(start) < Duration::from_secs(10), "{what}");
            self.tick(attacker, TICK);
        }
    }

    fn tick(&mut self, attacker: &mut impl Attacker, time: Duration) {
        self.pair.run_for(time);
        let Self { pair, wire, spent, stage, .. } = self;
        attacker.act(&mut Reach { pair, wire, spent, stage: *stage });
    }

    fn random(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.rng.fill(&mut bytes);
        bytes
    }
}

impl Aftermath {
    /// Asserts that the victims have what they would have without the attacker, and nobody else anything.
    pub(crate) fn assert_untouched(&self) {
        for (at, node) in [(0, &self.pair.left), (1, &self.pair.right)] {
            let (connected, closed) = (node.connected(), node.closed());
            assert_eq!((connected, closed), (SESSIONS as u64, SESSIONS as u64), "sessions and ends");
            for (number, session) in self.sessions.iter().enumerate() {
                let owner = number == at;
                let reason = if owner { CloseReason::Local } else { CloseReason::Peer(CODES[number]) };
                assert!(node.host.saw(session[at], Event::Closed(reason)), "{:?}", node.host.events);
            }
            self.assert_whole_and_once(at, node);
            let stats = node.endpoint.stats();
            assert_eq!(stats.paths_validated, 0, "nobody moved");
            assert!(node.host.events.iter().all(|(_, event)| *event != Event::PathChanged));
            assert_eq!(stats.handshakes_initiated, if at == 0 { SESSIONS as u64 } else { 0 });
            assert_eq!((node.endpoint.sessions(), node.endpoint.poll_timeout()), (0, None), "nothing stays");
        }
        for (addr, sent) in &self.sent_to {
            let claimed = self.spent.claimed.get(addr).copied().unwrap_or_default();
            let proven = [LEFT, RIGHT].contains(addr);
            assert!(proven || *sent <= 3 * claimed, "{addr}: {sent} bytes for {claimed}");
        }
    }

    /// Bytes that both endpoints hold, beside themselves.
    fn held(mut self) -> i64 {
        let now = self.pair.now();
        let spare = || {
            let config = Config::new(Identity::from_seed([0; 32]), b"spare");
            Endpoint::new(config, [0; 32], now).expect("the configuration is good")
        };
        let (left, right) = (spare(), spare());
        let before = live_bytes();
        drop(std::mem::replace(&mut self.pair.left.endpoint, left));
        drop(std::mem::replace(&mut self.pair.right.endpoint, right));
        before - live_bytes()
    }

    fn assert_whole_and_once(&self, at: usize, node: &Node<Recorder>) {
        let promised = &self.promised[at];
        let sorted = |datagrams: &[(SessionHandle, Vec<u8>)]| {
            let mut sorted: Vec<_> =
                datagrams.iter().map(|(session, bytes)| (format!("{session:?}"), bytes.clone())).collect();
            sorted.sort();
            sorted
        };
        assert!(sorted(&node.host.datagrams) == sorted(&promised.datagrams), "each datagram once");
        let streams: Vec<_> = node.host.streams().collect();
        assert_eq!(streams.len(), promised.streams.len());
        for (session, _, stream) in streams {
            let content =
                promised.streams.iter().find(|(of, _)| *of == session).map(|(_, content)| &content[..]);
            assert!(stream.complete() == content, "the stream is whole");
            assert_eq!(stream.repeated(), 0, "each byte once");
        }
    }

    /// Counters of one end.
    pub(crate) fn stats(&self, side: Side) -> &Stats {
        let node = if side == Side::Left { &self.pair.left } else { &self.pair.right };
        node.endpoint.stats()
    }

    /// Asserts that addresses of others got no more than three times the authentic bytes that came from them.
    pub(crate) fn assert_checks_were_small(&self) {
        for (addr, sent) in self.sent_to.iter().filter(|(addr, _)| ![LEFT, RIGHT].contains(addr)) {
            let authentic = self.spent.authentic.get(addr).copied().unwrap_or_default();
            assert!(*sent <= 3 * authentic, "{addr}: {sent} bytes for {authentic}");
        }
    }

    /// Addresses of others that got an answer.
    pub(crate) fn answered_strangers(&self) -> usize {
        self.sent_to.keys().filter(|addr| ![LEFT, RIGHT].contains(addr)).count()
    }

    /// What of the attacker's was dropped for `reason`.
    pub(crate) fn drops(&self, reason: DropReason) -> u64 {
        self.spent.drops.get(&format!("{reason:?}")).copied().unwrap_or_default()
    }
}

impl Wire {
    fn new(budget: Budget) -> Self {
        Self { seen: Vec::new(), may_see: budget.bytes, sent_to: BTreeMap::new() }
    }

    fn show(&mut self, sender: Side, to: SocketAddr, bytes: &[u8]) {
        *self.sent_to.entry(to).or_default() += bytes.len() as u64;
        if let Some(rest) = self.may_see.checked_sub(bytes.len() as u64) {
            self.may_see = rest;
            self.seen.push(Sent { sender, to, bytes: bytes.to_vec() });
        }
    }
}

/// Asserts that endpoints hold the same after a short attack and a long one, and that nothing was lost on the way.
pub(crate) fn assert_nothing_grows<T>(lengths: [T; 2], mut attack: impl FnMut(T) -> Aftermath) {
    let held = lengths.map(|length| {
        let before = live_bytes();
        let held = attack(length).held();
        assert_eq!(live_bytes(), before, "bytes that nobody holds any more");
        held
    });
    assert_eq!(held[0], held[1], "bytes held after a short and a long attack");
}

/// An address of the attackers, out of the third range for documentation (RFC 5737).
pub(crate) const fn foreign(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, host)), port)
}

/// Where an end of the scene is.
pub(crate) const fn address(side: Side) -> SocketAddr {
    match side {
        Side::Left => LEFT,
        Side::Right => RIGHT,
    }
}

/// The other end.
pub(crate) const fn other(side: Side) -> Side {
    match side {
        Side::Left => Side::Right,
        Side::Right => Side::Left,
    }
}

/// Whether attackers have their large budgets: `WRAITH_BUDGET=full`.
pub(crate) fn full() -> bool {
    std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full")
}

fn node(pair: &Pair, side: Side) -> &Node<Recorder> {
    if side == Side::Left { &pair.left } else { &pair.right }
}

fn export(node: &mut Node<Recorder>, session: SessionHandle) -> [u8; 32] {
    node.endpoint.session(session).and_then(|session| session.export("attackers")).expect("established")
}

/// First messages of strangers, as good as those of endpoints.
pub(crate) struct Strangers {
    init: Vec<u8>,
    /// Where the initiator id stands in the payload.
    inside: usize,
    rng: Rng,
}

impl Strangers {
    pub(crate) fn new(seed: u64) -> Self {
        let mut pair = Pair::new(victims(seed).with_recording());
        pair.dial().expect("a free session");
        pair.run_for(TICK);
        let init = pair.transcript().entries().next().expect("an INIT").bytes.to_vec();
        let id = InitPacket::parse(&init).expect("an INIT").source().0;
        let inside = init[INIT_MESSAGE_OFFSET..].windows(8).position(|bytes| bytes == id);
        let inside = INIT_MESSAGE_OFFSET + inside.expect("the id is repeated inside");
        Self { init, inside, rng: Rng::new(seed) }
    }

    /// A first message that nobody has seen before, with this cookie.
    pub(crate) fn next(&mut self, cookie: &[u8; 16]) -> Vec<u8> {
        let id = self.rng.next_u64().to_be_bytes();
        self.with_id(id, cookie)
    }

    /// The same with this connection id.
    pub(crate) fn with_id(&mut self, id: [u8; 8], cookie: &[u8; 16]) -> Vec<u8> {
        let mut init = self.init.clone();
        self.rng.fill(&mut init[INIT_MESSAGE_OFFSET..INIT_MESSAGE_OFFSET + 32]);
        init[13..21].copy_from_slice(&id);
        init[self.inside..self.inside + 8].copy_from_slice(&id);
        init[INIT_COOKIE_OFFSET..INIT_COOKIE_OFFSET + 16].copy_from_slice(cookie);
        init
    }

    pub(crate) fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }
}

/// Real cryptography that counts X25519 operations with the keys of others.
#[derive(Debug, Default)]
pub(crate) struct Toll(Arc<AtomicU64>);

struct TolledKey {
    key: Box<dyn X25519Key>,
    toll: Arc<AtomicU64>,
}

impl Toll {
    /// A configuration borrows its provider for ever.
    pub(crate) fn leak() -> &'static Self {
        Box::leak(Box::default())
    }

    /// Operations so far.
    pub(crate) fn agreements(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl CryptoProvider for Toll {
    fn suites(&self) -> &[Suite] {
        RustCrypto.suites()
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        RustCrypto.key(suite, material)
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        RustCrypto.header_key(suite, key)
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        Box::new(TolledKey { key: RustCrypto.x25519_key(secret), toll: Arc::clone(&self.0) })
    }
}

impl X25519Key for TolledKey {
    fn public(&self) -> [u8; 32] {
        self.key.public()
    }

    fn agree(&self, public: &[u8; 32]) -> [u8; 32] {
        self.toll.fetch_add(1, Ordering::Relaxed);
        self.key.agree(public)
    }
}
