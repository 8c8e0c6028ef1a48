//! Nothing allocates per packet: the counting allocator sees a handshake and then silence.

use std::time::Duration;

use bytes::Bytes;
use wraith_proto::crypto::{CryptoProvider, KeyMaterial, RustCrypto, Suite};
use wraith_proto::{
    DatagramError, Dir, Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId, Via, WriteError,
};
use wraith_sim::alloc::{Counting, Counts, measure};
use wraith_sim::{Host, LinkConfig, Pair, PairConfig, Side};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Packets each way that must pass without an allocation.
const PACKETS: u64 = 100_000;

/// Virtual time in which every run here is done many times over.
const LIMIT: Duration = Duration::from_mins(10);

/// 100 Mbit/s and 4 ms each way, with memory for all that can be in flight.
fn link() -> LinkConfig {
    LinkConfig::perfect()
        .with_latency(Duration::from_millis(4))
        .with_rate(Some(100_000_000))
        .with_queue_bytes(200_000)
        .with_slots(4096)
}

/// Bytes of which every piece of 256 differs from its neighbours, in memory that clones share.
fn shared_bytes(len: usize) -> Bytes {
    let bytes: Bytes = (0..len).map(|at| (at ^ (at >> 8)) as u8).collect::<Vec<_>>().into();
    // The first clone makes the reference count.
    drop(bytes.clone());
    bytes
}

/// Sends datagrams of all sizes as fast as the session takes them.
struct Chatter {
    data: Bytes,
    session: Option<SessionHandle>,
    blocked: bool,
    sent: u64,
    received: u64,
    refusals: u64,
}

impl Chatter {
    fn new() -> Self {
        let data = shared_bytes(1024);
        Self { data, session: None, blocked: false, sent: 0, received: 0, refusals: 0 }
    }
}

impl Host for Chatter {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        if let Payload::Datagram { data, .. } = payload {
            assert_eq!(data, &self.data[..data.len()]);
            self.received += 1;
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, session: SessionHandle, event: Event) {
        match event {
            Event::Connected => self.session = Some(session),
            Event::DatagramsUnblocked => self.blocked = false,
            _ => {}
        }
    }

    fn on_turn(&mut self, _: Instant, endpoint: &mut Endpoint) {
        let Some(mut session) = self.session.and_then(|session| endpoint.session(session)) else { return };
        while !self.blocked {
            let len = 1 + self.sent as usize % self.data.len();
            match session.send_datagram(self.data.slice(..len)) {
                Ok(()) => self.sent += 1,
                Err(error) => {
                    assert_eq!(error, DatagramError::Blocked);
                    self.blocked = true;
                    self.refusals += 1;
                }
            }
        }
    }
}

impl Source for Chatter {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

/// Sends one stream after the other of each kind: lent, filled, and written in chunks.
struct Streamer {
    content: Bytes,
    session: Option<SessionHandle>,
    open: [Option<Sending>; 3],
    delivered: u64,
    received_bytes: u64,
    received_ends: u64,
    filled: u64,
    lent: u64,
}

#[derive(Clone, Copy)]
struct Sending {
    stream: StreamId,
    written: usize,
    blocked: bool,
}

/// Places in `Streamer::open`; the one between is filled.
const LENT: usize = 0;
const CHUNKS: usize = 2;
const CHUNK: usize = 10_000;

impl Streamer {
    fn new() -> Self {
        Self {
            content: shared_bytes(500_000),
            session: None,
            open: [None; 3],
            delivered: 0,
            received_bytes: 0,
            received_ends: 0,
            filled: 0,
            lent: 0,
        }
    }

    fn kind(&self, stream: StreamId) -> Option<usize> {
        self.open.iter().position(|sending| sending.is_some_and(|sending| sending.stream == stream))
    }
}

impl Host for Streamer {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        if let Payload::Stream { offset, data, fin, .. } = payload {
            assert_eq!(data, &self.content[offset as usize..][..data.len()]);
            self.received_bytes += data.len() as u64;
            self.received_ends += u64::from(fin);
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, session: SessionHandle, event: Event) {
        match event {
            Event::Connected => self.session = Some(session),
            Event::Delivered(stream) => {
                if let Some(kind) = self.kind(stream) {
                    self.open[kind] = None;
                    self.delivered += 1;
                }
            }
            Event::Writable(stream) => {
                let sending = self.open[CHUNKS].as_mut().filter(|sending| sending.stream == stream);
                sending.expect("only the written stream blocks").blocked = false;
            }
            _ => {}
        }
    }

    fn on_turn(&mut self, _: Instant, endpoint: &mut Endpoint) {
        let Some(mut session) = self.session.and_then(|session| endpoint.session(session)) else { return };
        for (kind, place) in self.open.iter_mut().enumerate() {
            let sending = place.get_or_insert_with(|| {
                let stream = session.open(if kind == LENT { Dir::Bi } else { Dir::Uni }).unwrap();
                if kind != CHUNKS {
                    session.attach(stream, self.content.len() as u64).unwrap();
                }
                Sending { stream, written: 0, blocked: kind != CHUNKS }
            });
            while !sending.blocked {
                let end = (sending.written + CHUNK).min(self.content.len());
                match session.write(sending.stream, self.content.slice(sending.written..end)) {
                    Ok(()) => sending.written = end,
                    Err(error) => {
                        assert_eq!(error, WriteError::Blocked);
                        sending.blocked = true;
                    }
                }
                if sending.written == self.content.len() {
                    session.finish(sending.stream).unwrap();
                    sending.blocked = true;
                }
            }
        }
    }
}

impl Source for Streamer {
    fn fill(&mut self, _: SessionHandle, _: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        self.filled += 1;
        buf.copy_from_slice(&self.content[offset as usize..][..buf.len()]);
        buf.len()
    }

    fn lend(&mut self, _: SessionHandle, stream: StreamId, offset: u64, len: usize) -> Option<&[u8]> {
        let lends = self.kind(stream) == Some(LENT);
        self.lent += u64::from(lends);
        lends.then(|| &self.content[offset as usize..][..len])
    }
}

fn opened<L: Host, R: Host>(pair: &Pair<L, R>) -> (u64, u64) {
    (pair.left.endpoint.stats().packets_opened, pair.right.endpoint.stats().packets_opened)
}

#[test]
fn a_hundred_thousand_datagrams_each_way_allocate_nothing() {
    let config = PairConfig::new(1).with_link(link());
    let mut pair = Pair::with_hosts(config, Chatter::new(), Chatter::new());
    pair.connect();
    pair.run_for(Duration::from_secs(2));
    let (left, right) = (pair.left.host.received, pair.right.host.received);

    let (done, counts) = measure(|| {
        pair.run_until(
            |pair| pair.left.host.received >= left + PACKETS && pair.right.host.received >= right + PACKETS,
            LIMIT,
        )
    });
    assert!(done, "{} and {} datagrams", pair.left.host.received, pair.right.host.received);
    assert_eq!(counts, Counts::default());
    assert!(pair.left.host.refusals > 100, "the queue was full again and again");
}

#[test]
fn streams_both_ways_over_a_lossy_link_allocate_nothing() {
    let config = PairConfig::new(2).with_link(link().with_loss(5_000));
    let mut pair = Pair::with_hosts(config, Streamer::new(), Streamer::new());
    pair.connect();
    pair.run_for(Duration::from_secs(2));
    let before = opened(&pair);
    let (delivered, lost) = (pair.left.host.delivered, pair.left.endpoint.stats().packets_lost);

    let (done, counts) = measure(|| {
        pair.run_until(
            |pair| {
                let now = opened(pair);
                now.0 >= before.0 + PACKETS && now.1 >= before.1 + PACKETS
            },
            LIMIT,
        )
    });
    let after = opened(&pair);
    assert!(done, "{before:?} to {after:?} packets");
    assert_eq!(counts, Counts::default());
    let left = &pair.left.host;
    assert!(left.delivered - delivered >= 60, "{} streams", left.delivered - delivered);
    assert!(left.lent > 1000 && left.filled > 1000, "{} lent, {} filled", left.lent, left.filled);
    assert!(pair.left.endpoint.stats().packets_lost - lost > 200);
    assert!(pair.right.host.received_ends >= left.delivered);
    assert!(pair.link(Side::Right).counters().lost > 200);
}

#[test]
fn a_search_for_larger_datagrams_allocates_nothing() {
    let config = PairConfig::new(6).with_link(link().with_mtu(1_472)).with_both(|config| {
        config.transport = config.transport.with_mtu_search(true);
    });
    let mut pair = Pair::with_hosts(config, Streamer::new(), Streamer::new());
    let (left, _) = pair.connect();
    pair.run_for(Duration::from_secs(2));
    let (before, probes) = (opened(&pair).1, pair.left.endpoint.stats().mtu_probes_sent);
    let size = |pair: &mut Pair<Streamer, Streamer>| {
        pair.left.endpoint.session(left).expect("it lives").stats().datagram_size
    };
    assert_eq!(size(&mut pair), 1_472);

    let ((done, sizes), counts) = measure(|| {
        // A black hole, a search, a word of the own host, and another search.
        pair.set_link(Side::Right, link().with_mtu(1_300));
        pair.run_for(Duration::from_secs(5));
        let found = size(&mut pair);
        let to = pair.left.endpoint.session(left).expect("it lives").remote();
        pair.left.endpoint.too_large(pair.now(), to, found.into());
        let fell = size(&mut pair);
        let done = pair.run_until(|pair| opened(pair).1 >= before + PACKETS, LIMIT);
        (done, [found, fell, size(&mut pair)])
    });
    assert!(done);
    assert_eq!(counts, Counts::default());
    let [found, fell, again] = sizes;
    assert!((1_280..=1_300).contains(&found) && fell == 1_200, "{sizes:?}");
    assert!((found - 40..found).contains(&again), "{sizes:?}");
    let probes = pair.left.endpoint.stats().mtu_probes_sent - probes;
    assert!(probes >= 8, "{probes} probes");
}

#[test]
fn a_peer_that_moves_again_and_again_allocates_nothing() {
    let config = PairConfig::new(5).with_link(link());
    let mut pair = Pair::with_hosts(config, Streamer::new(), Streamer::new());
    let (left, _) = pair.connect();
    pair.run_for(Duration::from_secs(2));
    let ((), counts) = measure(|| {
        for number in 1..=12 {
            let host = if number % 3 == 0 { 2 } else { 1 };
            let now = pair.now();
            if number % 2 == 0 {
                pair.left.endpoint.session(left).unwrap().migrate(now, None, Via::default()).unwrap();
            }
            pair.rebind(Side::Left, std::net::SocketAddr::from(([192, 0, 2, host], 1000 + number)));
            pair.run_for(Duration::from_secs(1));
        }
    });
    assert_eq!(counts, Counts::default());
    assert_eq!(pair.right.endpoint.stats().paths_validated, 12);
}

#[cfg(feature = "trace")]
#[test]
fn a_tracer_that_counts_is_told_of_every_packet_and_nothing_allocates() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use wraith_proto::trace::{TraceEvent, Tracer};

    /// Sent, received, acknowledged, lost, and changes of metrics.
    struct Count(Arc<[AtomicU64; 5]>);

    impl Tracer for Count {
        fn event(&mut self, _: Instant, _: Option<SessionHandle>, event: &TraceEvent<'_>) {
            let place = match event {
                TraceEvent::PacketSent(packet) => {
                    assert!(packet.frames.clone().all(|frame| frame.is_ok()));
                    0
                }
                TraceEvent::PacketReceived(_) => 1,
                TraceEvent::PacketAcked { .. } => 2,
                TraceEvent::PacketLost { .. } => 3,
                TraceEvent::Metrics(_) => 4,
                _ => return,
            };
            self.0[place].fetch_add(1, Ordering::Relaxed);
        }
    }

    let config = PairConfig::new(2).with_link(link().with_loss(5_000));
    let mut pair = Pair::with_hosts(config, Streamer::new(), Streamer::new());
    let counts: Arc<[AtomicU64; 5]> = Arc::default();
    pair.left.endpoint.set_tracer(Box::new(Count(Arc::clone(&counts))));
    pair.right.endpoint.set_tracer(Box::new(Count(Arc::default())));
    pair.connect();
    pair.run_for(Duration::from_secs(2));
    let told = || counts.each_ref().map(|count| count.load(Ordering::Relaxed));
    let (before, opened_before) = (told(), opened(&pair));

    let (done, allocated) = measure(|| {
        let enough = |pair: &Pair<Streamer, Streamer>| opened(pair).1 >= opened_before.1 + PACKETS;
        pair.run_until(enough, LIMIT)
    });
    assert!(done);
    assert_eq!(allocated, Counts::default());
    let [sent, received, acked, lost, metrics] = std::array::from_fn(|place| told()[place] - before[place]);
    assert_eq!(received, opened(&pair).0 - opened_before.0);
    assert!(sent > PACKETS && acked > PACKETS * 9 / 10 && lost > 200, "{sent} {acked} {lost}");
    assert!(metrics > PACKETS, "{metrics}");
}

/// Calls of the allocator in one handshake, both ends together.
const MAX_ALLOCATIONS: u64 = 72;
/// Bytes that they ask for; not all are held at the same time.
const MAX_BYTES: u64 = 12_288;
/// Blocks that a session keeps: the key schedule and the key to open packets with at each end.
const KEPT: u64 = 4;
/// Blocks of a session's expanded keys, which its endpoints keep for others: two packet keys and two header keys at each.
const EXPANDED: u64 = 8;

#[test]
fn a_handshake_allocates_a_bounded_amount_and_gives_it_back() {
    let mut pair = Pair::with_hosts(PairConfig::new(3).with_link(link()), Quiet, Quiet);
    for round in 0..20 {
        let (left, begun) = measure(|| {
            let (left, _) = pair.connect();
            pair.run_for(Duration::from_secs(1));
            left
        });
        assert!(begun.allocations <= MAX_ALLOCATIONS && begun.bytes <= MAX_BYTES, "{begun:?}");
        let expanded = if round == 0 { EXPANDED } else { 0 };
        assert_eq!(begun.allocations - begun.deallocations, KEPT + expanded);

        let ((), ended) = measure(|| {
            let now = pair.now();
            pair.left.endpoint.session(left).unwrap().close(now, 0);
            pair.run_for(Duration::from_mins(1));
        });
        assert_eq!((pair.left.endpoint.sessions(), pair.right.endpoint.sessions()), (0, 0));
        assert_eq!(ended, Counts { allocations: 0, deallocations: KEPT, bytes: 0 });
    }
}

/// Blocks that an epoch makes, both ends together: a key to open packets with, the exchange and its secret at each.
const PER_EPOCH: u64 = 6;

/// `PROTO §5.13`
#[test]
fn an_epoch_allocates_its_keys_and_gives_the_former_ones_back() {
    let config = PairConfig::new(5).with_link(link()).with_both(|config| {
        config.transport = config.transport.with_rekey_packets(4096);
    });
    let mut pair = Pair::with_hosts(config, Chatter::new(), Chatter::new());
    let (left, _) = pair.connect();
    pair.run_for(Duration::from_secs(5));
    let epoch = |pair: &mut Pair<Chatter, Chatter>| pair.left.endpoint.session(left).unwrap().stats().epoch;
    // Between two exchanges, so that none is cut in two.
    let settled = |pair: &mut Pair<Chatter, Chatter>| {
        let begun = epoch(pair);
        while epoch(pair) == begun {
            pair.step();
        }
        pair.run_for(Duration::from_millis(250));
        epoch(pair)
    };
    let before = settled(&mut pair);
    let (after, counts) = measure(|| {
        while epoch(&mut pair) < before + 9 {
            pair.step();
        }
        settled(&mut pair)
    });
    assert_eq!(after, before + 10);
    assert_eq!((counts.allocations, counts.deallocations), (10 * PER_EPOCH, 10 * PER_EPOCH));
    assert!(counts.bytes <= 10 * PER_EPOCH * 512, "{counts:?}");
}

/// Sends datagrams on many sessions in turn.
struct Turns {
    sessions: Vec<SessionHandle>,
    data: Bytes,
    turn: usize,
    received: u64,
}

impl Turns {
    const SESSIONS: usize = 6;

    fn new() -> Self {
        Self { sessions: Vec::with_capacity(Self::SESSIONS), data: shared_bytes(100), turn: 0, received: 0 }
    }
}

impl Host for Turns {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        if let Payload::Datagram { data, .. } = payload {
            assert_eq!(data, &self.data[..]);
            self.received += 1;
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, session: SessionHandle, event: Event) {
        if event == Event::Connected {
            self.sessions.push(session);
        }
    }

    fn on_turn(&mut self, _: Instant, endpoint: &mut Endpoint) {
        if self.sessions.len() == Self::SESSIONS {
            self.turn += 1;
            let session = self.sessions[self.turn % Self::SESSIONS];
            let _ = endpoint.session(session).unwrap().send_datagram(self.data.clone());
        }
    }
}

impl Source for Turns {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

#[test]
fn sessions_in_turn_whose_keys_make_room_for_each_other_allocate_nothing() {
    for suite in [&[Suite::XChaCha20Poly1305], &[Suite::Aes256Gcm]] {
        let config = PairConfig::new(7).with_link(link()).with_both(|config| {
            config.limits.expanded_keys = 2;
            config.transport = config.transport.with_suites(suite);
        });
        let mut pair = Pair::with_hosts(config, Turns::new(), Turns::new());
        for _ in 0..Turns::SESSIONS {
            pair.connect();
        }
        pair.run_for(Duration::from_secs(2));
        let missed = |pair: &Pair<Turns, Turns>| pair.right.endpoint.stats().keys_missed;
        let (before, goal) = (missed(&pair), pair.right.host.received + PACKETS / 4);
        let (done, counts) = measure(|| pair.run_until(|pair| pair.right.host.received >= goal, LIMIT));
        assert!(done, "{} datagrams", pair.right.host.received);
        assert_eq!(counts, Counts::default());
        let missed = missed(&pair) - before;
        assert!(missed > PACKETS / 8, "keys were expanded for {missed} packets");
    }
}

#[test]
fn keys_of_either_suite_take_the_place_of_keys_of_the_other_without_memory() {
    const SUITES: [Suite; 2] = [Suite::XChaCha20Poly1305, Suite::Aes256Gcm];
    let material = KeyMaterial { key: [3; 32], prefix: [4; 16] };
    let mut key = RustCrypto.key(SUITES[0], &material);
    let mut header_key = RustCrypto.header_key(SUITES[0], &[5; 32]);
    let ((), counts) = measure(|| {
        for round in 0..100 {
            assert!(key.rekey(SUITES[round % 2], &material));
            assert!(header_key.rekey(SUITES[round % 3 % 2], &[6; 32]));
        }
    });
    assert_eq!(counts, Counts::default());
}

#[test]
fn a_handshake_that_nobody_answers_gives_everything_back() {
    let config = PairConfig::new(4).with_link(link().with_loss(1_000_000));
    let mut pair = Pair::with_hosts(config, Quiet, Quiet);
    let ((), counts) = measure(|| {
        pair.dial().unwrap();
        pair.run_for(Duration::from_mins(1));
    });
    assert_eq!(pair.left.endpoint.sessions(), 0);
    assert_eq!(counts.allocations, counts.deallocations);
    assert!(counts.allocations > 0 && counts.bytes <= MAX_BYTES, "{counts:?}");
}

/// Does nothing.
struct Quiet;

impl Host for Quiet {
    fn on_payload(&mut self, _: Instant, _: Payload<'_>) {}

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, _: SessionHandle, _: Event) {}
}

impl Source for Quiet {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}
