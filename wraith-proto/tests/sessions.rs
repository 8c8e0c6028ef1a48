//! Idle sessions cost a fixed amount of memory and no work; `Limits::memory` prices an endpoint up front.
//!
//! `WRAITH_BUDGET=full` takes 100,000 sessions instead of 2,000.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use wraith_proto::crypto::{CryptoProvider, RustCrypto, Suite};
use wraith_proto::wire::HandshakeKind;
use wraith_proto::{
    Budget, Config, ConnectError, Deadline, DropReason, Ecn, Endpoint, Event, Identity, Instant, Limits,
    NoSource, Peer, Progress, RxMeta, SessionHandle, TimerKind, Transport, TxMeta, TxQueue, TxStatus, Via,
};
use wraith_sim::Transparent;
use wraith_sim::alloc::{Counting, live_bytes};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Bytes that an idle session may cost, its own records of sent packets (`PROTO §8.2`) and its keys included. Those that are
/// expanded belong to the sessions that have traffic (`Limits::expanded_keys`).
const PER_SESSION: u64 = 4096;

/// A provider, and the suites of it that are offered.
#[derive(Clone, Copy)]
struct Crypto(&'static dyn CryptoProvider, &'static [Suite]);

const TRANSPARENT: Crypto = Crypto(Transparent::CHECKED, &[]);
const XCHACHA: Crypto = Crypto(&RustCrypto, &[Suite::XChaCha20Poly1305]);
/// The suite whose expanded keys take more memory.
const AES: Crypto = Crypto(&RustCrypto, &[Suite::Aes256Gcm]);

fn many() -> u32 {
    if std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full") { 100_000 } else { 2_000 }
}

/// Two endpoints that hear each other at once. Each session has an address of its own, which stands for the peer at
/// both ends, so that no prefix is limited.
struct Ends {
    left: Endpoint,
    right: Endpoint,
    now: Instant,
    wire: Wire,
    /// FINISH does not arrive.
    deaf: bool,
}

/// What one endpoint has sent and the other has not received.
#[derive(Default)]
struct Wire {
    bytes: Vec<u8>,
    datagrams: Vec<(SocketAddr, usize)>,
    reserved: Option<SocketAddr>,
}

impl TxQueue for Wire {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        let start = self.datagrams.last().map_or(0, |&(_, end)| end);
        self.reserved = Some(meta.to);
        self.bytes.get_mut(start..start + len)
    }

    fn commit(&mut self, len: usize) {
        let start = self.datagrams.last().map_or(0, |&(_, end)| end);
        let peer = self.reserved.take().expect("a reservation");
        self.datagrams.push((peer, start + len));
    }
}

fn peer_addr(number: u32) -> SocketAddr {
    let [_, high, middle, low] = number.to_be_bytes();
    SocketAddr::new(Ipv4Addr::new(10 + high, middle, low, 1).into(), 4433)
}

fn endpoint(seed: u8, limits: Limits, Crypto(provider, suites): Crypto, now: Instant) -> Endpoint {
    let mut config = Config::new(Identity::from_seed([seed; 32]), b"test");
    config.limits = limits;
    config.crypto = provider;
    config.transport = Transport::default().with_idle_timeout(Duration::from_hours(24)).with_suites(suites);
    Endpoint::new(config, [seed; 32], now).unwrap()
}

impl Ends {
    fn new(left: Limits, right: Limits, crypto: Crypto) -> Self {
        let now = Instant::from_nanos(1 << 40);
        let wire = Wire { bytes: vec![0; 1 << 20], datagrams: Vec::with_capacity(4096), reserved: None };
        let (left, right) = (endpoint(1, left, crypto, now), endpoint(2, right, crypto, now));
        Self { left, right, now, wire, deaf: false }
    }

    fn dial(&mut self, number: u32) -> Result<SessionHandle, ConnectError> {
        let peer = Peer { addr: peer_addr(number), id: Some(self.right.config().identity.peer_id()) };
        self.left.connect(self.now, peer, Via::default())
    }

    /// Lets both ends act until neither has anything to say now.
    fn exchange(&mut self) {
        while self.pass(true) + self.pass(false) > 0 {}
    }

    /// Carries what one end has to say to the other; returns how many datagrams that were.
    fn pass(&mut self, from_left: bool) -> usize {
        let (from, to) =
            if from_left { (&mut self.left, &mut self.right) } else { (&mut self.right, &mut self.left) };
        while from.handle_timeout(self.now, Budget(64)) == Progress::More {}
        while from.poll_transmit(self.now, &mut self.wire, &mut NoSource, Budget(512)) == TxStatus::Budget {}
        let mut start = 0;
        for &(peer, end) in &self.wire.datagrams {
            let datagram = &mut self.wire.bytes[start..end];
            start = end;
            if self.deaf && HandshakeKind::of(datagram) == Some(HandshakeKind::Finish) {
                continue;
            }
            let meta = RxMeta { from: peer, to: None, via: Via::default(), ecn: Ecn::NotEct };
            let mut received = to.handle(self.now, &meta, datagram);
            while received.next().is_some() {}
        }
        let passed = self.wire.datagrams.len();
        self.wire.datagrams.clear();
        passed
    }

    /// Moves from deadline to deadline for `time`.
    fn run(&mut self, time: Duration) {
        let end = self.now.saturating_add(time);
        loop {
            self.exchange();
            let deadlines = [self.left.poll_timeout(), self.right.poll_timeout()];
            match deadlines.iter().flatten().map(|deadline| deadline.at).min() {
                Some(at) if at <= end => self.now = self.now.max(at),
                _ => break,
            }
        }
        self.now = end;
    }

    /// Makes sessions number `from` to `to`, 1 ms apart, and waits until they are idle. Returns the last one's
    /// handle at both ends.
    fn connect(&mut self, from: u32, to: u32) -> (SessionHandle, SessionHandle) {
        let mut last = (None, None);
        for number in from..to {
            let dialled = self.dial(number).unwrap();
            self.run(Duration::from_millis(1));
            assert_eq!(self.left.poll_event(), Some((dialled, Event::Connected)));
            let (answered, event) = self.right.poll_event().unwrap();
            assert_eq!(event, Event::Connected);
            last = (Some(dialled), Some(answered));
        }
        self.run(Duration::from_mins(1));
        assert_eq!((self.left.sessions(), self.right.sessions()), (to as usize, to as usize));
        (last.0.unwrap(), last.1.unwrap())
    }

    fn visited(&self) -> u64 {
        self.left.stats().sessions_visited + self.right.stats().sessions_visited
    }
}

/// Room for the endpoints of the tests about work: only the number of sessions varies.
fn limits(sessions: u32) -> Limits {
    Limits { sessions, handshakes: 64, handshake_rate: 100_000, ..Limits::embedded() }
}

/// Sessions visited by an exchange of datagrams on one session, call by call.
fn visits_of_an_exchange(ends: &mut Ends, (left, right): (SessionHandle, SessionHandle)) -> Vec<u64> {
    let mut visits = Vec::new();
    let data = Bytes::from_static(&[7; 1000]);
    for round in 0..200 {
        let before = ends.visited();
        ends.left.session(left).unwrap().send_datagram(data.clone()).unwrap();
        if round % 3 == 0 {
            ends.right.session(right).unwrap().send_datagram(data.clone()).unwrap();
        }
        ends.run(Duration::from_millis(100));
        visits.push(ends.visited() - before);
    }
    visits
}

#[test]
fn the_work_for_one_session_does_not_grow_with_the_idle_ones() {
    let visits = |sessions| {
        let mut ends = Ends::new(limits(sessions), limits(sessions), TRANSPARENT);
        let active = ends.connect(0, sessions);
        visits_of_an_exchange(&mut ends, active)
    };
    let (few, many) = (visits(10), visits(many()));
    // An acknowledgement is due at once where a packet number was skipped at random: one timer less.
    assert_eq!(few.iter().max(), many.iter().max());
    let (few, many) = (few.iter().sum::<u64>(), many.iter().sum::<u64>());
    assert!(few.abs_diff(many) <= 20, "{few} visits with few sessions, {many} with many");
}

#[test]
fn polling_with_idle_sessions_visits_none_of_them() {
    let sessions = many();
    let mut ends = Ends::new(limits(sessions), limits(sessions), TRANSPARENT);
    ends.connect(0, sessions);
    let (before, start) = (ends.visited(), ends.now);
    let deadline = ends.right.poll_timeout();
    assert!(matches!(deadline, Some(Deadline { reason: TimerKind::Idle, .. })), "{deadline:?}");
    let mut datagrams = Vec::new();
    for _ in 0..1000 {
        ends.now = ends.now.saturating_add(Duration::from_millis(17));
        assert_eq!(ends.right.poll_timeout(), deadline);
        assert_eq!(ends.right.handle_timeout(ends.now, Budget::UNLIMITED), Progress::Done);
        assert_eq!(ends.right.poll_event(), None);
        let status = ends.right.poll_transmit(ends.now, &mut ends.wire, &mut NoSource, Budget::UNLIMITED);
        assert_eq!(status, TxStatus::Idle);
        datagrams.extend_from_slice(&ends.wire.datagrams);
    }
    assert_eq!(ends.now.saturating_since(start), Duration::from_secs(17));
    assert_eq!(ends.visited(), before);
    assert_eq!(datagrams, []);
}

/// Neither a session nor an option makes an endpoint look at sessions that have nothing to say.
#[test]
fn sessions_without_idle_time_and_keep_alive_have_no_timer_at_all() {
    let sessions = many();
    let mut ends = Ends::new(limits(sessions), limits(sessions), TRANSPARENT);
    for end in [&mut ends.left, &mut ends.right] {
        let mut config =
            Config::new(Identity::from_seed(*end.config().identity.peer_id().as_bytes()), b"test");
        config.limits = limits(sessions);
        config.crypto = TRANSPARENT.0;
        config.transport = Transport::default().with_idle_timeout(Duration::ZERO).with_redial(true);
        *end = Endpoint::new(config, *end.config().identity.peer_id().as_bytes(), ends.now).unwrap();
    }
    ends.connect(0, sessions);
    let before = ends.visited();
    assert_eq!((ends.left.poll_timeout(), ends.right.poll_timeout()), (None, None));
    ends.now = ends.now.saturating_add(Duration::from_hours(24 * 365));
    assert_eq!(ends.pass(true) + ends.pass(false), 0);
    assert_eq!((ends.left.poll_event(), ends.right.poll_event()), (None, None));
    assert_eq!(ends.visited(), before);
    assert_eq!((ends.left.sessions(), ends.right.sessions()), (sessions as usize, sessions as usize));
}

/// Bytes that an endpoint with `limits` takes when it is made.
fn reserved(limits: Limits) -> u64 {
    let before = live_bytes();
    let endpoint = endpoint(2, limits, XCHACHA, Instant::MIN);
    let reserved = live_bytes() - before + size_of_val(&endpoint).cast_signed() as i64;
    drop(endpoint);
    assert_eq!(live_bytes(), before);
    reserved as u64
}

#[test]
fn an_idle_session_costs_at_most_four_kilobytes_with_either_suite() {
    let (sessions, half) = (many(), many() / 2);
    let reserved = (reserved(limits(sessions)) - reserved(limits(half))) / u64::from(half);

    let keys = |crypto| {
        let mut ends = Ends::new(limits(200), limits(200), crypto);
        ends.connect(0, 100);
        let before = live_bytes();
        ends.connect(100, 200);
        (live_bytes() - before) as u64 / 200
    };
    for (suite, keys) in [("XChaCha20-Poly1305", keys(XCHACHA)), ("AES-256-GCM", keys(AES))] {
        assert!((100..1000).contains(&keys), "{keys} bytes for keys of {suite}");
        let all = reserved + keys;
        assert!(all <= PER_SESSION, "{all} bytes with {suite}: {reserved} reserved, {keys} for keys");
    }
}

/// Sends datagrams on all sessions in turn; returns how many packets were sealed or opened, and for how many of these keys
/// were expanded.
fn take_turns(expanded_keys: u32, crypto: Crypto) -> (u64, u64) {
    const SESSIONS: u32 = 8;
    let limits = Limits { expanded_keys, ..limits(SESSIONS) };
    let mut ends = Ends::new(limits, limits, crypto);
    let pairs: Vec<_> = (0..SESSIONS).map(|number| ends.connect(number, number + 1)).collect();
    let figures = |ends: &Ends| {
        let figures = [&ends.left, &ends.right].map(|end| {
            let stats = end.stats();
            (stats.datagrams_sent + stats.packets_opened, stats.keys_missed)
        });
        (figures[0].0 + figures[1].0, figures[0].1 + figures[1].1)
    };
    let before = figures(&ends);
    for round in 0..50_u32 {
        let (left, right) = pairs[(round % SESSIONS) as usize];
        ends.left.session(left).unwrap().send_datagram(Bytes::from_static(b"to the right")).unwrap();
        ends.right.session(right).unwrap().send_datagram(Bytes::from_static(b"to the left")).unwrap();
        ends.run(Duration::from_millis(100));
    }
    for end in [&ends.left, &ends.right] {
        assert_eq!((end.stats().dropped(), end.stats().packets_lost), (0, 0));
    }
    let after = figures(&ends);
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn keys_are_expanded_for_packets_only_if_more_sessions_are_active_than_have_room() {
    for crypto in [XCHACHA, AES] {
        let (packets, missed) = take_turns(8, crypto);
        assert!(packets >= 200, "{packets}");
        assert_eq!(missed, 0);
        for room in [1, 2, 7] {
            let (packets, missed) = take_turns(room, crypto);
            // Once for each direction at each end in each round, whatever else is sent in it.
            assert!((150..=200).contains(&missed), "{missed} of {packets} packets, room for {room}");
        }
    }
}

/// Makes as many sessions as fit and as many handshakes as fit beside them, and compares with the price.
fn assert_answering_end_is_priced(limits: Limits) {
    let dialling = Limits { sessions: 2048, handshakes: 2048, ..Limits::client() };
    let answering = Limits { handshake_rate: 100_000, ..limits };
    let mut ends = Ends::new(dialling, answering, AES);
    ends.connect(0, limits.sessions);
    ends.deaf = true;
    for number in 0..limits.handshakes {
        ends.dial(limits.sessions + number).unwrap();
        ends.exchange();
    }
    assert_eq!(ends.right.stats().drops(DropReason::TableFull), 0);
    ends.dial(limits.sessions + limits.handshakes).unwrap();
    ends.exchange();
    assert_eq!(ends.right.stats().drops(DropReason::TableFull), 1);
    assert_eq!(ends.right.stats().handshakes_answered, u64::from(limits.sessions + limits.handshakes));
    assert_price(&limits, ends.right, 0);
}

/// Dials until nothing is free.
fn assert_dialling_end_is_priced(limits: Limits) {
    let mut ends = Ends::new(limits, Limits::client(), AES);
    let dials = (0..1000).take_while(|&number| ends.dial(number).is_ok()).count();
    assert_eq!(dials, limits.sessions.min(limits.handshakes) as usize);
    assert_eq!(ends.dial(0), Err(ConnectError::TableFull));
    // No handshake is done, so there are no keys yet.
    let parts = limits.memory_parts();
    assert_price(&limits, ends.left, (parts.keys + parts.expanded_keys) as u64);
}

/// What the endpoint has taken is at most its price, and without what it has no use for yet not much less.
fn assert_price(limits: &Limits, endpoint: Endpoint, unused: u64) {
    let before = live_bytes();
    let own = size_of_val(&endpoint);
    drop(endpoint);
    let taken = (before - live_bytes()) as usize + own;
    let price = limits.memory();
    assert!(
        taken <= price && price - unused as usize <= taken + taken / 4,
        "{taken} bytes taken at a price of {price}: {limits:?}"
    );
}

#[test]
fn limits_price_an_endpoint_whose_tables_are_full() {
    let lopsided = Limits { sessions: 256, handshakes: 2, ..Limits::embedded() };
    for limits in [Limits::embedded(), Limits::client(), Limits::server(128), lopsided] {
        assert_answering_end_is_priced(limits);
        assert_dialling_end_is_priced(limits);
    }
}

#[test]
fn an_endpoint_full_of_idle_sessions_takes_what_its_limits_price() {
    let limits = limits(many());
    let mut ends = Ends::new(limits, limits, AES);
    ends.connect(0, many());
    assert_price(&limits, ends.right, 0);
}

#[test]
fn the_price_grows_with_each_limit() {
    let base = Limits::client();
    assert!(base.memory() < 16 << 20, "{}", base.memory());
    assert!(Limits::embedded().memory() < 80 << 10, "{}", Limits::embedded().memory());
    assert!(Limits::server(10_000).memory() < 128 << 20, "{}", Limits::server(10_000).memory());
    let price = base.memory();
    assert!(Limits { sessions: base.sessions + 1, ..base }.memory() >= price + 2048);
    assert!(Limits { handshakes: base.handshakes + 1, ..base }.memory() >= price + 2048);
    assert!(Limits { streams: base.streams + 1, ..base }.memory() > price);
    assert!(Limits { sent_packets: base.sent_packets + 1, ..base }.memory() > price);
    assert!(Limits { holes: base.holes + 1, ..base }.memory() > price);
    assert!(Limits { datagrams: base.datagrams + 1, ..base }.memory() > price);
    assert!(Limits { expanded_keys: base.expanded_keys + 1, ..base }.memory() > price + 1024);
}
