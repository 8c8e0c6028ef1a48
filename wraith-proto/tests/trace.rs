//! What a tracer is told of sessions in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wraith_proto::crypto::{CryptoProvider, KeyMaterial, RustCrypto, Suite};
use wraith_proto::trace::{Direction, LossCause, Metrics, Role, SessionIds, TraceEvent, Tracer};
use wraith_proto::wire::{Frame, HandshakeKind, ProtectedPacket, apply_mask, is_handshake};
use wraith_proto::{CloseReason, Dir, DropReason, Instant, Policy, SessionHandle};
use wraith_sim::{LEFT, LinkConfig, Pair, PairConfig, RIGHT, Side};

const MS: fn(u64) -> Duration = Duration::from_millis;
const LIMIT: Duration = Duration::from_mins(5);

/// What a tracer kept.
#[derive(Default)]
struct Log {
    handshakes: Vec<(&'static str, HandshakeKind, u64)>,
    established: Vec<(SessionIds, Role, Suite, Vec<u8>)>,
    packet_keys: BTreeMap<(u32, bool), (KeyMaterial, SessionIds)>,
    header_keys: BTreeMap<bool, [u8; 32]>,
    epochs: Vec<(u32, u64)>,
    /// Numbers with epoch, size, payload, and the streams' pieces.
    sent: BTreeMap<u64, Sent>,
    received: BTreeMap<u64, Sent>,
    acked: Vec<u64>,
    lost: Vec<(u64, LossCause, Option<u64>)>,
    spurious: Vec<(u64, u64)>,
    dropped: Vec<(DropReason, usize)>,
    metrics: Vec<Metrics>,
    sizes: Vec<(u16, u16, bool)>,
    closed: Vec<CloseReason>,
    /// Events of no known session.
    strange: usize,
    last: Option<Instant>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Sent {
    epoch: u32,
    size: usize,
    payload: usize,
    /// Stream, offset, length.
    pieces: Vec<(u32, u64, u16)>,
}

/// Keeps everything; shared with the test.
#[derive(Clone, Default)]
struct Keeper {
    log: Arc<Mutex<Log>>,
    secrets: bool,
}

impl Keeper {
    fn knowing_secrets() -> Self {
        Self { secrets: true, ..Self::default() }
    }

    fn with<T>(&self, look: impl FnOnce(&mut Log) -> T) -> T {
        look(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tracer for Keeper {
    fn event(&mut self, now: Instant, session: Option<SessionHandle>, event: &TraceEvent<'_>) {
        self.with(|log| log.take(now, session, event));
    }

    fn wants_secrets(&self) -> bool {
        self.secrets
    }
}

impl Log {
    fn take(&mut self, now: Instant, session: Option<SessionHandle>, event: &TraceEvent<'_>) {
        assert!(self.last.is_none_or(|last| last <= now), "time runs backwards");
        self.last = Some(now);
        self.strange += usize::from(session.is_none());
        match event {
            TraceEvent::HandshakeSent(message) => {
                self.handshakes.push(("sent", message.header.kind, message.initiator().as_u64()));
            }
            TraceEvent::HandshakeReceived(message) => {
                self.handshakes.push(("received", message.header.kind, message.initiator().as_u64()));
            }
            TraceEvent::Established(it) => {
                self.established.push((it.ids, it.role, it.suite, it.protocol.to_vec()));
            }
            TraceEvent::PacketKey(it) => {
                let material = KeyMaterial { key: *it.key, prefix: *it.prefix };
                let outward = it.direction == Direction::ToResponder;
                assert!(self.packet_keys.insert((it.epoch, outward), (material, it.ids)).is_none());
            }
            TraceEvent::HeaderKey(it) => {
                let outward = it.direction == Direction::ToResponder;
                assert!(self.header_keys.insert(outward, *it.key).is_none());
            }
            TraceEvent::EpochBegun { epoch, first } => self.epochs.push((*epoch, *first)),
            TraceEvent::PacketSent(packet) => {
                assert!(self.sent.insert(packet.number, sent(packet)).is_none(), "a number twice");
            }
            TraceEvent::PacketReceived(packet) => {
                assert!(self.received.insert(packet.number, sent(packet)).is_none(), "a number twice");
            }
            TraceEvent::PacketAcked { number } => self.acked.push(*number),
            TraceEvent::PacketLost { number, cause, largest_acked } => {
                self.lost.push((*number, *cause, *largest_acked));
            }
            TraceEvent::SpuriousLoss { first, last } => self.spurious.push((*first, *last)),
            TraceEvent::DatagramDropped { reason, size } => self.dropped.push((*reason, *size)),
            TraceEvent::Metrics(metrics) => {
                assert_ne!(self.metrics.last(), Some(metrics), "told without a change");
                self.metrics.push(*metrics);
            }
            TraceEvent::MtuUpdated { old, new, done } => self.sizes.push((*old, *new, *done)),
            TraceEvent::Closed { reason } => self.closed.push(*reason),
            event => panic!("unexpected {event:?}"),
        }
    }
}

fn sent(packet: &wraith_proto::trace::Packet<'_>) -> Sent {
    let frames: Vec<_> = packet.frames.clone().map(Result::unwrap).collect();
    assert_eq!(packet.payload, frames.iter().map(Frame::data_len).sum::<usize>());
    let pieces = frames.iter().filter_map(|frame| match *frame {
        Frame::Stream { stream, offset, len, .. } => Some((stream, offset, len)),
        _ => None,
    });
    Sent { epoch: packet.epoch, size: packet.size, payload: packet.payload, pieces: pieces.collect() }
}

/// A pair whose ends are traced from the beginning.
fn traced(config: PairConfig, keeper: impl Fn() -> Keeper) -> (Pair, Keeper, Keeper) {
    let mut pair = Pair::new(config);
    let (left, right) = (keeper(), keeper());
    pair.left.endpoint.set_tracer(Box::new(left.clone()));
    pair.right.endpoint.set_tracer(Box::new(right.clone()));
    (pair, left, right)
}

/// Connects and sends `len` bytes from left to right.
fn transfer(pair: &mut Pair, len: usize) -> (SessionHandle, SessionHandle) {
    let (left, right) = pair.connect();
    send(pair, (left, right), len);
    (left, right)
}

fn send(pair: &mut Pair, (left, right): (SessionHandle, SessionHandle), len: usize) {
    let mut session = pair.left.endpoint.session(left).unwrap();
    let stream = session.open(Dir::Uni).unwrap();
    session.attach(stream, len as u64).unwrap();
    let content: Vec<u8> = (0..len).map(|at| (at ^ (at >> 8)) as u8).collect();
    pair.left.host.serve(left, stream, content.clone());
    let complete =
        |pair: &Pair| pair.right.host.stream(right, stream).is_some_and(|stream| stream.complete().is_some());
    assert!(pair.run_until(complete, LIMIT), "the stream did not arrive");
    assert_eq!(pair.right.host.stream(right, stream).unwrap().complete(), Some(&content[..]));
    pair.run_for(MS(500));
}

fn lossy() -> LinkConfig {
    LinkConfig::perfect().with_latency(MS(5)).with_rate(Some(20_000_000)).with_loss(20_000)
}

#[test]
fn a_tracer_changes_nothing_on_the_wire() {
    let run = |trace: bool| {
        let config = PairConfig::new(11).with_link(lossy()).with_both(|config| {
            config.transport = config.transport.with_rekey_packets(64);
        });
        let mut pair = Pair::new(config);
        if trace {
            pair.left.endpoint.set_tracer(Box::new(Keeper::knowing_secrets()));
            pair.right.endpoint.set_tracer(Box::new(Keeper::knowing_secrets()));
        }
        transfer(&mut pair, 300_000);
        (pair.transcript().hex(), pair.transcript().datagrams())
    };
    let (plain, traced) = (run(false), run(true));
    assert!(plain.1 > 300);
    assert_eq!(plain, traced);
}

#[test]
fn a_handshake_is_three_messages_with_one_id_and_both_ends_name_the_session_alike() {
    let (mut pair, left, right) = traced(PairConfig::new(1), Keeper::default);
    let (session, _) = pair.connect();
    let ids = left.with(|log| log.established[0].0);
    let id = ids.initiator.as_u64();
    let kinds = [HandshakeKind::Init, HandshakeKind::Response, HandshakeKind::Finish];
    let expected = |ways: [&'static str; 3]| -> Vec<_> {
        ways.into_iter().zip(kinds).map(|(way, kind)| (way, kind, id)).collect()
    };
    left.with(|log| assert_eq!(log.handshakes, expected(["sent", "received", "sent"])));
    right.with(|log| assert_eq!(log.handshakes, expected(["received", "sent", "received"])));

    let protocol = b"wraith-sim".to_vec();
    let suite = pair.left.endpoint.session(session).unwrap().suite().unwrap();
    left.with(|log| assert_eq!(log.established, [(ids, Role::Initiator, suite, protocol.clone())]));
    right.with(|log| assert_eq!(log.established, [(ids, Role::Responder, suite, protocol)]));
    // At the responder no session is known before FINISH; the initiator has one from the beginning.
    assert_eq!((left.with(|log| log.strange), right.with(|log| log.strange)), (0, 3));
}

#[test]
fn each_packet_is_told_from_sending_to_its_end_and_the_counts_are_those_of_the_statistics() {
    let (mut pair, left, right) = traced(PairConfig::new(2).with_link(lossy()), Keeper::default);
    let (session, peer) = transfer(&mut pair, 400_000);
    let stats = pair.left.endpoint.session(session).unwrap().stats();
    let received = pair.right.endpoint.session(peer).unwrap().stats().packets_received;
    let dropped = pair.left.endpoint.stats().dropped();
    right.with(|log| assert_eq!(log.received.len() as u64, received));
    left.with(|log| {
        assert_eq!(log.sent.len() as u64, stats.packets_sent);
        assert_eq!(log.dropped.len() as u64, dropped);
        let declared = log.lost.iter().filter(|(_, cause, _)| *cause != LossCause::Probe);
        assert_eq!(declared.count() as u64, stats.packets_lost);
        assert!(stats.packets_lost > 5);
        let numbers: BTreeSet<_> =
            log.acked.iter().chain(log.lost.iter().map(|(number, ..)| number)).collect();
        assert_eq!(numbers.len(), log.acked.len() + log.lost.len(), "a packet had two ends");
        assert!(numbers.iter().all(|number| log.sent.contains_key(number)));
        let last = log.metrics.last().unwrap();
        assert_eq!(last.smoothed_rtt, stats.rtt);
        assert_eq!(last.latest_rtt, stats.latest_rtt);
        assert_eq!(last.min_rtt, stats.min_rtt);
        assert_eq!(last.congestion_window, stats.congestion_window);
        assert_eq!((last.bytes_in_flight, last.packets_in_flight), (0, 0));
        assert_eq!(last.congestion_events, stats.congestion_events);
        assert!(last.ssthresh.is_some() && !last.rtt_variation.is_zero());
        assert!(log.metrics.iter().any(|metrics| metrics.bytes_in_flight > 5_000));
    });
}

/// What is told of a packet at both ends is the same.
#[test]
fn a_packet_arrives_as_it_was_sent() {
    let (mut pair, left, right) = traced(PairConfig::new(3).with_link(lossy()), Keeper::default);
    transfer(&mut pair, 100_000);
    left.with(|left| {
        right.with(|right| {
            assert!(right.received.len() > 80);
            for (number, packet) in &right.received {
                assert_eq!(left.sent.get(number), Some(packet), "packet {number}");
            }
            for (number, packet) in &left.received {
                assert_eq!(right.sent.get(number), Some(packet), "packet {number}");
            }
        });
    });
}

/// `PROTO §8.1`
#[test]
fn a_loss_says_what_overtook_the_packet_and_its_bytes_are_in_a_later_one() {
    let (mut pair, left, _) = traced(PairConfig::new(4).with_link(lossy()), Keeper::default);
    transfer(&mut pair, 1_200_000);
    left.with(|log| {
        let overtaken: Vec<_> =
            log.lost.iter().filter(|(_, cause, _)| *cause == LossCause::PacketThreshold).collect();
        assert!(overtaken.len() > 3, "{:?}", log.lost);
        let acked: BTreeSet<u64> = log.acked.iter().copied().collect();
        for (number, _, largest) in overtaken {
            assert!(largest.unwrap() >= number + 3, "{number} by {largest:?}");
            for &(stream, offset, len) in &log.sent[number].pieces {
                let later = log.sent.range(number + 1..).filter(|(number, _)| acked.contains(number));
                let mut pieces: Vec<_> = later
                    .flat_map(|(_, packet)| &packet.pieces)
                    .filter(|(id, ..)| *id == stream)
                    .map(|&(_, at, len)| (at, at + u64::from(len)))
                    .collect();
                pieces.sort_unstable();
                let covered =
                    pieces.iter().fold(offset, |to, &(at, end)| if at <= to { to.max(end) } else { to });
                assert!(covered >= offset + u64::from(len), "packet {number}: nothing again from {covered}");
            }
        }
    });
}

#[test]
fn a_probe_says_which_packet_it_replaces_and_that_counts_as_no_loss() {
    let (mut pair, left, _) = traced(PairConfig::new(5), Keeper::default);
    let (session, _) = pair.connect();
    pair.run_for(MS(200));
    let last = left.with(|log| *log.sent.last_key_value().unwrap().0);
    pair.set_link(Side::Right, LinkConfig::perfect().with_loss(1_000_000));
    pair.left.endpoint.session(session).unwrap().ping().unwrap();
    pair.run_for(MS(400));
    left.with(|log| {
        let (number, cause, largest) = log.lost[0];
        assert_eq!(cause, LossCause::Probe);
        assert!(number > last && largest.is_some_and(|largest| largest <= last), "{number} {largest:?}");
        assert!(log.metrics.last().unwrap().pto_count > 0);
    });
    assert_eq!(pair.left.endpoint.session(session).unwrap().stats().packets_lost, 0);
}

/// `PROTO §8.6`
#[test]
fn losses_that_were_none_are_named_when_the_late_packets_arrive() {
    let link =
        LinkConfig::perfect().with_latency(MS(5)).with_rate(Some(20_000_000)).with_reorder(20_000, MS(8));
    let (mut pair, left, _) = traced(PairConfig::new(6).with_link(link), Keeper::default);
    transfer(&mut pair, 400_000);
    let spurious = pair.left.endpoint.stats().spurious_losses;
    assert!(spurious > 0);
    left.with(|log| {
        assert_eq!(log.spurious.iter().map(|(first, last)| last - first + 1).sum::<u64>(), spurious);
        let given_up: BTreeSet<u64> = log.lost.iter().map(|&(number, ..)| number).collect();
        for number in log.spurious.iter().flat_map(|&(first, last)| first..=last) {
            assert!(given_up.contains(&number), "{number} was not given up");
        }
    });
}

/// `PROTO §5.16`
#[test]
fn epochs_are_told_with_their_first_packet_and_their_keys() {
    let config = PairConfig::new(7).with_link(lossy().with_loss(0)).with_both(|config| {
        config.transport = config.transport.with_rekey_packets(32);
    });
    let (mut pair, left, right) = traced(config, Keeper::knowing_secrets);
    transfer(&mut pair, 2_000_000);
    left.with(|left| {
        assert!(left.epochs.len() >= 3, "{:?}", left.epochs);
        for (at, &(epoch, first)) in left.epochs.iter().enumerate() {
            assert_eq!(epoch as usize, at + 1);
            assert!(left.sent.range(..first).all(|(_, packet)| packet.epoch < epoch));
            assert!(left.sent.range(first..).next().is_none_or(|(_, packet)| packet.epoch == epoch));
        }
        right.with(|right| {
            let known = |log: &Log| -> Vec<_> {
                log.packet_keys
                    .iter()
                    .map(|(at, (material, ids))| (*at, material.key, material.prefix, *ids))
                    .collect()
            };
            assert_eq!(known(left), known(right), "both ends have the same secrets");
            assert_eq!(left.header_keys, right.header_keys);
            assert_eq!((left.packet_keys.len(), left.header_keys.len()), (2 * (left.epochs.len() + 1), 2));
        });
    });
}

/// `PROTO §5.1` to `§5.7`
#[test]
fn the_told_keys_open_the_packets_of_both_directions() {
    let config = PairConfig::new(8).with_recording().with_link(lossy()).with_both(|config| {
        config.transport = config.transport.with_rekey_packets(32);
    });
    let (mut pair, left, right) = traced(config, Keeper::knowing_secrets);
    transfer(&mut pair, 1_000_000);
    assert!(left.with(|log| log.epochs.len()) > 1);
    let mut opened = [0, 0];
    for entry in pair.transcript().entries().filter(|entry| !is_handshake(entry.bytes)) {
        let mut bytes = entry.bytes.to_vec();
        let outward = entry.sender == 0;
        let (number, epoch) = left.with(|log| open(log, outward, &mut bytes));
        let sender = if outward { &left } else { &right };
        sender.with(|log| assert_eq!(log.sent[&number].epoch, epoch));
        opened[entry.sender as usize] += 1;
    }
    assert!(opened[0] > 80 && opened[1] > 10, "{opened:?}");
}

/// Opens a packet by the secrets alone; returns its number and epoch.
fn open(log: &Log, outward: bool, packet: &mut [u8]) -> (u64, u32) {
    let suite = log.established[0].2;
    let sample = *ProtectedPacket::parse(packet).unwrap().sample();
    let mask = RustCrypto.header_key(suite, &log.header_keys[&outward]).mask(&sample);
    apply_mask(packet, mask);
    let phase = u32::from(packet[0] & 3);
    let number = u64::from(u32::from_be_bytes(packet[9..13].try_into().unwrap()));
    let (header, body) = packet.split_at_mut(13);
    let ciphertext = body.to_vec();
    let keys = log.packet_keys.iter().filter(|((epoch, way), _)| epoch % 4 == phase && *way == outward);
    for ((epoch, _), (material, _)) in keys {
        body.copy_from_slice(&ciphertext);
        if RustCrypto.key(suite, material).open_in_place(number, header, body).is_ok() {
            return (number, *epoch);
        }
    }
    panic!("no key opens packet {number}");
}

#[test]
fn nobody_is_told_secrets_who_does_not_want_them() {
    let (mut pair, left, _) = traced(PairConfig::new(9), Keeper::default);
    transfer(&mut pair, 10_000);
    left.with(|log| {
        assert_eq!(log.established.len(), 1);
        assert_eq!((log.packet_keys.len(), log.header_keys.len()), (0, 0));
    });
}

#[test]
fn debug_shows_no_secrets() {
    #[derive(Clone, Default)]
    struct Print(Arc<Mutex<Vec<(String, String)>>>);
    impl Tracer for Print {
        fn event(&mut self, _: Instant, _: Option<SessionHandle>, event: &TraceEvent<'_>) {
            let key = match event {
                TraceEvent::PacketKey(it) => it.key,
                TraceEvent::HeaderKey(it) => it.key,
                _ => return,
            };
            assert!(event.is_secret());
            self.0.lock().unwrap().push((format!("{event:?}"), format!("{key:?}")));
        }

        fn wants_secrets(&self) -> bool {
            true
        }
    }
    let mut pair = Pair::new(PairConfig::new(10));
    let print = Print::default();
    pair.left.endpoint.set_tracer(Box::new(print.clone()));
    pair.connect();
    let printed = print.0.lock().unwrap();
    assert_eq!(printed.len(), 4);
    for (text, key) in &*printed {
        assert!(!text.contains(&key[1..key.len() - 1]), "{text}");
        assert!(text.contains("Key { ids:") && text.ends_with(".. })"), "{text}");
    }
}

#[test]
fn dropped_datagrams_and_the_end_of_a_session_are_told() {
    let config = PairConfig::new(12).with_recording();
    let (mut pair, left, right) = traced(config, Keeper::default);
    let (session, _) = pair.connect();
    pair.run_for(MS(200));
    let packet: Vec<u8> = {
        let from_left = pair.transcript().entries().filter(|entry| entry.sender == 0);
        from_left.filter(|entry| !is_handshake(entry.bytes)).last().unwrap().bytes.to_vec()
    };
    let strange = right.with(|log| log.strange);
    pair.inject(Side::Right, LEFT, &packet);
    right.with(|log| assert_eq!(log.dropped, [(DropReason::Replayed, packet.len())]));
    let mut altered = packet.clone();
    *altered.last_mut().unwrap() ^= 1;
    pair.inject(Side::Right, LEFT, &altered);
    right.with(|log| assert_eq!(log.dropped[1..], [(DropReason::BadTag, packet.len())]));
    right.with(|log| assert_eq!(log.strange, strange, "both are of a known session"));
    pair.inject(Side::Left, RIGHT, &[0x40; 40]);
    left.with(|log| assert_eq!(log.dropped, [(DropReason::UnknownSession, 40)]));

    let now = pair.now();
    pair.left.endpoint.session(session).unwrap().close(now, 7);
    pair.run_for(Duration::from_secs(1));
    left.with(|log| assert_eq!(log.closed, [CloseReason::Local]));
    right.with(|log| assert_eq!(log.closed, [CloseReason::Peer(7)]));
}

/// `PROTO §4.17`
#[test]
fn a_session_that_is_refused_for_want_of_room_has_its_end_told() {
    let mut config = PairConfig::new(13);
    config.right.policy = Policy::Set([].into());
    config.right.limits.sessions = 1;
    let (mut pair, _, right) = traced(config, Keeper::default);
    pair.dial().unwrap();
    pair.run_for(MS(100));
    assert_eq!(pair.right.endpoint.sessions(), 0);
    right.with(|log| {
        assert_eq!((log.established.len(), &log.closed[..]), (1, &[CloseReason::Refused][..]));
        assert_eq!(log.dropped[0].0, DropReason::Refused);
    });
}

#[test]
fn each_change_of_the_datagram_size_is_told_and_whether_it_is_the_last() {
    let config = PairConfig::new(9).with_link(lossy().with_loss(0).with_mtu(8_972)).with_both(|config| {
        config.transport = config.transport.with_mtu_search(true).with_max_datagram(8_972);
    });
    let (mut pair, left, right) = traced(config, Keeper::default);
    let (session, _) = transfer(&mut pair, 100_000);
    pair.run_for(MS(2_000));
    for keeper in [&left, &right] {
        let sizes = keeper.with(|log| std::mem::take(&mut log.sizes));
        assert_eq!(sizes, [(1_200, 1_472, false), (1_472, 8_972, true)]);
    }
    let now = pair.now();
    pair.left.endpoint.session(session).unwrap().path_mtu_hint(now, 1_500);
    assert_eq!(left.with(|log| std::mem::take(&mut log.sizes)), [(8_972, 1_500, true)]);
    let now = pair.now();
    pair.left.endpoint.session(session).unwrap().path_mtu_hint(now, 0);
    assert_eq!(left.with(|log| std::mem::take(&mut log.sizes)), [(1_500, 1_200, true)]);
}
