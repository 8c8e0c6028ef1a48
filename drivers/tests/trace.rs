//! Traces and key logs of sessions in virtual time, read back.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use wraith_drivers::trace::{KeyLog, Qlog, Tee};
use wraith_proto::crypto::{CryptoProvider, KeyMaterial, RustCrypto, Suite};
use wraith_proto::trace::Tracer;
use wraith_proto::wire::{
    Frames, PACKET_HEADER_LEN, PacketHeader, ProtectedPacket, apply_mask, is_handshake, split_body,
};
use wraith_proto::{Dir, SessionHandle};
use wraith_sim::{LEFT, LinkConfig, Pair, PairConfig, Side};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Memory that a tracer writes to and the test reads.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8(bytes.clone()).unwrap()
    }

    /// The records of a trace: the header and the events.
    fn records(&self) -> (Value, Vec<Value>) {
        let text = self.text();
        let mut parts = text.split('\u{1e}');
        assert_eq!(parts.next(), Some(""), "each record begins with a separator");
        let mut records = parts.map(|record| {
            assert!(record.ends_with('\n') && record.lines().count() == 1, "{record:?}");
            serde_json::from_str::<Value>(record).unwrap()
        });
        (records.next().unwrap(), records.collect())
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lossy() -> LinkConfig {
    LinkConfig::perfect().with_latency(MS(10)).with_rate(Some(20_000_000)).with_loss(20_000)
}

/// Sends `len` bytes from left to right, to the last acknowledgement.
fn send(pair: &mut Pair, (left, right): (SessionHandle, SessionHandle), len: usize) {
    let mut session = pair.left.endpoint.session(left).unwrap();
    let stream = session.open(Dir::Uni).unwrap();
    session.attach(stream, len as u64).unwrap();
    pair.left.host.serve(left, stream, vec![7; len]);
    let complete =
        |pair: &Pair| pair.right.host.stream(right, stream).is_some_and(|stream| stream.complete().is_some());
    assert!(pair.run_until(complete, Duration::from_mins(5)), "the stream did not arrive");
    pair.run_for(MS(500));
}

fn close(pair: &mut Pair, session: SessionHandle) {
    let now = pair.now();
    pair.left.endpoint.session(session).unwrap().close(now, 3);
    pair.run_for(MS(200));
}

/// A piece of a stream: the stream, its first byte, and the byte behind it.
type Piece = (u64, u64, u64);

fn pieces(event: &Value) -> Vec<Piece> {
    let frames = event["data"]["frames"].as_array().unwrap().iter();
    let streams = frames.filter(|frame| frame["frame_type"] == "stream");
    let number = |value: &Value| value.as_u64().unwrap();
    streams
        .map(|frame| {
            let (id, offset) = (number(&frame["stream_id"]), number(&frame["offset"]));
            (id, offset, offset + number(&frame["raw"]["length"]))
        })
        .collect()
}

fn number(event: &Value) -> u64 {
    event["data"]["header"]["packet_number"].as_u64().unwrap()
}

fn time(event: &Value) -> f64 {
    event["time"].as_f64().unwrap()
}

/// Where the packet was acknowledged, among the events from `from` on.
fn acked_at(events: &[Value], from: usize, packet: u64) -> Option<usize> {
    events[from..].iter().position(|event| {
        event["name"] == "quic:packets_acked"
            && event["data"]["packet_numbers"].as_array().unwrap().contains(&packet.into())
    })
}

/// `PROTO §8.1`
#[test]
fn a_lost_packet_can_be_followed_from_its_sending_to_the_acknowledgement_of_its_bytes_in_another() {
    let mut pair = Pair::new(PairConfig::new(1).with_link(lossy()));
    let trace = Shared::default();
    pair.left.endpoint.set_tracer(Box::new(Qlog::new(trace.clone())));
    let sessions = pair.connect();
    send(&mut pair, sessions, 400_000);
    let (_, events) = trace.records();

    let is_lost = |event: &&Value| event["name"] == "quic:packet_lost";
    let overtaken = |event: &&Value| event["data"]["trigger"] == "reordering_threshold";
    let lost = events.iter().find(|event| is_lost(event) && overtaken(event)).unwrap();
    let lost_at = events.iter().position(|event| event == lost).unwrap();
    let lost_number = number(lost);

    // Sent as number N …
    let sent: Vec<_> = events.iter().filter(|event| event["name"] == "quic:packet_sent").collect();
    let first = sent.iter().find(|event| number(event) == lost_number).unwrap();
    assert!(time(first) < time(lost));
    let lost_pieces = pieces(first);
    assert!(!lost_pieces.is_empty());

    // … lost by the packet threshold when M was acknowledged …
    let overtaker = lost["data"]["largest_acked"].as_u64().unwrap();
    assert!(overtaker >= lost_number + 3);
    let earlier = acked_at(&events[..lost_at], 0, overtaker).unwrap();
    assert_eq!(time(&events[earlier]).to_bits(), time(lost).to_bits());
    assert_eq!(acked_at(&events, 0, lost_number), None);

    // … its frames sent again in other packets, which are acknowledged.
    for (stream, mut from, to) in lost_pieces {
        while from < to {
            let (again, end) = events[lost_at..]
                .iter()
                .filter(|event| event["name"] == "quic:packet_sent")
                .find_map(|event| {
                    let piece = pieces(event)
                        .into_iter()
                        .find(|&(id, at, end)| id == stream && at <= from && from < end)?;
                    acked_at(&events, lost_at, number(event))?;
                    Some((number(event), piece.2))
                })
                .unwrap_or_else(|| panic!("byte {from} of packet {lost_number} was not sent again"));
            assert!(again > lost_number);
            from = end;
        }
    }
}

/// Events that every session with losses and fresh keys has.
const NAMES: [&str; 12] = [
    "quic:connection_closed",
    "quic:key_updated",
    "quic:packet_dropped",
    "quic:packet_lost",
    "quic:packet_received",
    "quic:packet_sent",
    "quic:packets_acked",
    "quic:recovery_metrics_updated",
    "wraith:congestion_event",
    "wraith:handshake_received",
    "wraith:handshake_sent",
    "wraith:session_established",
];

#[test]
fn a_file_begins_with_its_schema_and_each_event_has_time_name_group_and_data() {
    let mut pair = Pair::new(PairConfig::new(2).with_link(lossy()).with_both(|config| {
        config.transport = config.transport.with_rekey_packets(64);
    }));
    let traces = [Shared::default(), Shared::default()];
    pair.left.endpoint.set_tracer(Box::new(Qlog::new(traces[0].clone())));
    pair.right.endpoint.set_tracer(Box::new(Qlog::new(traces[1].clone())));
    let sessions = pair.connect();
    send(&mut pair, sessions, 600_000);
    pair.inject(Side::Right, LEFT, &[0x40; 40]);
    close(&mut pair, sessions.0);

    let begin = &traces[0].text()[..256];
    assert!(begin.contains(r#""file_schema":"urn:ietf:params:qlog:file:sequential""#));
    assert!(begin.contains(r#""serialization_format":"application/qlog+json-seq""#));
    let logs = traces.map(|trace| trace.records());
    let schemas = &logs[0].0["trace"]["event_schemas"];
    assert_eq!(*schemas, serde_json::json!(["urn:ietf:params:qlog:events:quic-12"]));
    let mut names = BTreeSet::new();
    let mut groups = BTreeSet::new();
    for (_, events) in &logs {
        let mut before = 0.0;
        for event in events {
            assert!(time(event) >= before && event["data"].is_object(), "{event}");
            before = time(event);
            names.insert(event["name"].as_str().unwrap().to_owned());
            groups.insert(event["group_id"].as_str().unwrap().to_owned());
        }
    }
    // Both ends name the session alike; what belongs to none has a group of its own.
    assert_eq!(groups.len(), 2, "{groups:?}");
    assert!(groups.remove("endpoint"));
    let id = groups.pop_first().unwrap();
    let established = logs[0].1.iter().find(|event| event["name"] == "wraith:session_established").unwrap();
    assert_eq!(
        (&established["data"]["initiator_id"], &established["data"]["role"]),
        (&id.into(), &"initiator".into())
    );
    for name in NAMES {
        assert!(names.contains(name), "{name}");
    }
    let closed = |at: usize| {
        let events: &Vec<Value> = &logs[at].1;
        events.iter().find(|event| event["name"] == "quic:connection_closed").unwrap()["data"].clone()
    };
    assert_eq!((&closed(0)["initiator"], &closed(0)["trigger"]), (&"local".into(), &"application".into()));
    assert_eq!((&closed(1)["initiator"], &closed(1)["error_code"]), (&"remote".into(), &3.into()));
}

/// Metrics are written when they change, and only those that did.
#[test]
fn metrics_add_up_to_what_the_session_says() {
    let mut pair = Pair::new(PairConfig::new(3).with_link(lossy()));
    let trace = Shared::default();
    pair.left.endpoint.set_tracer(Box::new(Qlog::new(trace.clone())));
    let sessions = pair.connect();
    send(&mut pair, sessions, 200_000);
    let stats = pair.left.endpoint.session(sessions.0).unwrap().stats();
    let (_, events) = trace.records();
    let mut metrics = BTreeMap::new();
    for event in events.iter().filter(|event| event["name"] == "quic:recovery_metrics_updated") {
        for (key, value) in event["data"].as_object().unwrap() {
            let former = metrics.insert(key.clone(), value.clone());
            assert_ne!(former.as_ref(), Some(value), "{key} did not change");
        }
    }
    let number = |key: &str| metrics[key].as_f64().unwrap();
    let millis = |duration: Duration| duration.as_nanos() as f64 / 1e6;
    for (key, value) in [
        ("smoothed_rtt", millis(stats.rtt)),
        ("latest_rtt", millis(stats.latest_rtt)),
        ("min_rtt", millis(stats.min_rtt)),
        ("congestion_window", stats.congestion_window as f64),
        ("bytes_in_flight", 0.0),
        ("packets_in_flight", 0.0),
    ] {
        assert!((number(key) - value).abs() < 1e-9, "{key}: {} is not {value}", number(key));
    }
    let congestion = events.iter().rfind(|event| event["name"] == "wraith:congestion_event").unwrap();
    assert_eq!(congestion["data"]["count"], stats.congestion_events);
}

#[test]
fn events_keep_their_group_however_many_sessions_came_and_went() {
    let mut pair = Pair::new(PairConfig::new(4));
    let trace = Shared::default();
    pair.left.endpoint.set_tracer(Box::new(Qlog::new(trace.clone())));
    let (first, _) = pair.connect();
    for _ in 0..70 {
        let (session, _) = pair.connect();
        close(&mut pair, session);
    }
    pair.left.endpoint.session(first).unwrap().ping().unwrap();
    pair.run_for(Duration::from_secs(1));
    let (_, events) = trace.records();
    let groups: BTreeSet<_> = events.iter().map(|event| event["group_id"].as_str().unwrap()).collect();
    assert_eq!(groups.len(), 71);
    let last = events.iter().rfind(|event| event["name"] == "quic:packet_sent").unwrap();
    assert_eq!(last["group_id"], events[0]["group_id"]);
}

/// The secrets of a key log.
#[derive(Default)]
struct Secrets {
    ids: BTreeSet<(String, String)>,
    suite: Option<Suite>,
    /// By direction.
    headers: BTreeMap<String, [u8; 32]>,
    /// By direction and epoch.
    packets: BTreeMap<(String, u32), KeyMaterial>,
}

impl Secrets {
    /// Reads a log as `docs/TRACING.md` describes it.
    fn parse(text: &str) -> Self {
        let mut secrets = Self::default();
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            secrets.ids.insert((words[1].to_owned(), words[2].to_owned()));
            let direction = words[3].to_owned();
            let suites = [Suite::XChaCha20Poly1305, Suite::Aes256Gcm];
            secrets.suite = suites.into_iter().find(|suite| suite.name() == words[4]);
            match (words[0], words.len()) {
                ("WRAITH_HEADER_KEY", 6) => {
                    assert!(secrets.headers.insert(direction, bytes(words[5])).is_none());
                }
                ("WRAITH_PACKET_KEY", 8) => {
                    let material = KeyMaterial { key: bytes(words[6]), prefix: bytes(words[7]) };
                    let at = (direction, words[5].parse().unwrap());
                    assert!(secrets.packets.insert(at, material).is_none());
                }
                _ => panic!("{line}"),
            }
        }
        secrets
    }

    /// Opens a captured packet; returns its number, its epoch, and its body.
    fn open(&self, captured: &[u8]) -> (u64, u32, Vec<u8>) {
        let mut packet = captured.to_vec();
        let visible = ProtectedPacket::parse(&packet).unwrap();
        let (destination, sample) = (format!("{:?}", visible.destination()), *visible.sample());
        let (initiator, responder) = self.ids.first().unwrap();
        let direction = if destination == *responder { "to_responder" } else { "to_initiator" };
        assert!(direction == "to_responder" || destination == *initiator);
        let suite = self.suite.unwrap();
        let mask = RustCrypto.header_key(suite, &self.headers[direction]).mask(&sample);
        apply_mask(&mut packet, mask);
        let header = PacketHeader::parse(&packet).unwrap();
        let (aad, body) = packet.split_at_mut(PACKET_HEADER_LEN);
        let sealed = body.to_vec();
        for ((way, epoch), material) in &self.packets {
            body.copy_from_slice(&sealed);
            if way == direction
                && epoch % 4 == u32::from(header.phase)
                && let Ok(len) =
                    RustCrypto.key(suite, material).open_in_place(header.number.into(), aad, body)
            {
                return (header.number.into(), *epoch, body[..len].to_vec());
            }
        }
        panic!("nothing opens packet {} to {destination}", header.number);
    }
}

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    assert_eq!(hex.len(), 2 * N);
    std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..][..2], 16).unwrap())
}

/// `PROTO §5.1` to `§5.7`
#[test]
fn a_captured_packet_is_read_with_the_key_log_alone() {
    let all: &[_] = &[Suite::Aes256Gcm, Suite::XChaCha20Poly1305];
    for suites in [&all[1..], all] {
        let config = PairConfig::new(5).with_link(lossy()).with_recording().with_both(|config| {
            config.transport = config.transport.with_suites(suites).with_rekey_packets(64);
        });
        let mut pair = Pair::new(config);
        let [log, theirs, trace] = std::array::from_fn(|_| Shared::default());
        let both: Vec<Box<dyn Tracer>> =
            vec![Box::new(Qlog::new(trace.clone())), Box::new(KeyLog::new(log.clone()))];
        pair.left.endpoint.set_tracer(Box::new(Tee::new(both)));
        pair.right.endpoint.set_tracer(Box::new(KeyLog::new(theirs.clone())));
        let sessions = pair.connect();
        send(&mut pair, sessions, 600_000);

        assert_eq!(sorted(&log.text()), sorted(&theirs.text()), "both ends write the same lines");
        let secrets = Secrets::parse(&log.text());
        assert_eq!(secrets.suite, Some(suites[0]));
        assert!(secrets.packets.len() >= 4 && secrets.packets.len().is_multiple_of(2));
        let (_, events) = trace.records();
        let sent: BTreeMap<_, _> = events
            .iter()
            .filter(|event| event["name"] == "quic:packet_sent")
            .map(|event| (number(event), event))
            .collect();
        let mut opened = [0, 0];
        for entry in pair.transcript().entries().filter(|entry| !is_handshake(entry.bytes)) {
            let (number, epoch, mut body) = secrets.open(entry.bytes);
            opened[entry.sender as usize] += 1;
            let (payload, frames) = split_body(&mut body).unwrap();
            assert!(Frames::new(frames).all(|frame| frame.is_ok()));
            if entry.sender == 0 {
                assert!(payload.iter().all(|&byte| byte == 7), "the stream is all sevens");
                let data = &sent[&number]["data"];
                assert_eq!(
                    (&data["header"]["key_phase"], &data["raw"]["length"]),
                    (&epoch.into(), &entry.bytes.len().into())
                );
                assert_eq!(data["frames"].as_array().unwrap().len(), Frames::new(frames).count());
            }
        }
        assert!(opened[0] > 500 && opened[1] > 30, "{opened:?}");
    }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_trace_has_no_secrets_even_beside_a_key_log() {
    let mut pair = Pair::new(PairConfig::new(6));
    let [log, trace] = std::array::from_fn(|_| Shared::default());
    let both: Vec<Box<dyn Tracer>> =
        vec![Box::new(KeyLog::new(log.clone())), Box::new(Qlog::new(trace.clone()))];
    pair.left.endpoint.set_tracer(Box::new(Tee::new(both)));
    let sessions = pair.connect();
    send(&mut pair, sessions, 20_000);
    let (log, trace) = (log.text(), trace.text());
    let keys: Vec<_> = log.split_whitespace().filter(|word| word.len() == 64).collect();
    assert_eq!(keys.len(), 4);
    assert!(keys.iter().all(|key| !trace.contains(key)));
}

/// Takes some bytes, then no more.
struct Full(Arc<Mutex<usize>>);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *calls += 1;
        if *calls > 20 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_trace_and_not_the_session() {
    let mut pair = Pair::new(PairConfig::new(7));
    let calls: [Arc<Mutex<usize>>; 2] = Default::default();
    pair.left.endpoint.set_tracer(Box::new(Qlog::new(Full(Arc::clone(&calls[0])))));
    let log = KeyLog::new(Full(Arc::clone(&calls[1])));
    assert!(log.wants_secrets());
    pair.right.endpoint.set_tracer(Box::new(log));
    for _ in 0..10 {
        let sessions = pair.connect();
        send(&mut pair, sessions, 20_000);
    }
    let calls = calls.map(|calls| *calls.lock().unwrap());
    assert_eq!(calls, [21, 21], "nobody tries again");
}

#[test]
fn the_sizes_of_datagrams_are_in_the_trace() {
    let mut config = PairConfig::new(5).with_link(lossy().with_loss(0).with_mtu(1_472));
    config.left.transport = config.left.transport.with_mtu_search(true);
    let mut pair = Pair::new(config);
    let out = Shared::default();
    pair.left.endpoint.set_tracer(Box::new(Qlog::new(out.clone())));
    pair.connect();
    pair.run_for(Duration::from_secs(2));
    let (_, events) = out.records();
    let sizes: Vec<_> = events.iter().filter(|event| event["name"] == "quic:mtu_updated").collect();
    assert_eq!(sizes.len(), 1, "{sizes:?}");
    assert_eq!(sizes[0]["data"], serde_json::json!({ "old": 1_200, "new": 1_472, "done": false }));
}
