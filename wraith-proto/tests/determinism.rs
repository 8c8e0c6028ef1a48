//! The same seed, calls and times give the same bytes; another shard layout gives the application the same.
//!
//! The hashes are committed in `determinism/transcripts.txt`. After a change that is meant to alter what is sent,
//! `WRAITH_BLESS=1 cargo test -p wraith-proto --test determinism` writes them anew.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use wraith_proto::crypto::{RustCrypto, Suite};
use wraith_proto::{Dir, Endpoint, Event, SessionHandle, Shard, StreamId, WriteError};
use wraith_sim::{LinkConfig, Model, Pair, PairConfig, Rng};

const SECOND: Duration = Duration::from_secs(1);

/// One shard of several, as the layout that is compared with the only one.
const ONE_OF_FOUR: Shard = Shard { index: 1, count: 4 };

/// The committed hashes, one `name hash` a line.
const TRANSCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/determinism/transcripts.txt");

/// What a run did: bytes on the wire, and what the applications saw.
#[derive(PartialEq, Eq, Debug)]
struct Run {
    transcript: String,
    datagrams: u64,
    seen: Seen,
}

/// What the applications at both ends saw of one session each.
#[derive(PartialEq, Eq, Debug)]
struct Seen {
    events: [Vec<Event>; 2],
    datagrams: [Vec<Vec<u8>>; 2],
    streams: [Vec<(StreamId, Vec<u8>)>; 2],
}

impl Seen {
    fn of(pair: &Pair) -> Self {
        let hosts = [&pair.left.host, &pair.right.host];
        Self {
            events: hosts.map(|host| host.events.iter().map(|&(_, event)| event).collect()),
            datagrams: hosts.map(|host| host.datagrams.iter().map(|(_, data)| data.clone()).collect()),
            streams: hosts.map(|host| {
                let complete = |stream: &wraith_sim::ReceivedStream| stream.complete().unwrap().to_vec();
                host.streams().map(|(_, id, stream)| (id, complete(stream))).collect()
            }),
        }
    }

    /// The events of one end without their order, which depends on what a link loses.
    fn events_of(&self, end: usize) -> BTreeSet<String> {
        self.events[end].iter().map(|event| format!("{event:?}")).collect()
    }
}

/// A pair whose bytes depend on nothing but `seed`: not on what this processor is best at. The shard is that of the answering end, whose ids the dialling end puts on the wire.
fn pair(seed: u64, link: LinkConfig, shard: Shard) -> (Pair, SessionHandle, SessionHandle) {
    let mut config = PairConfig::new(seed).with_link(link).with_recording();
    config = config.with_both(|config| {
        config.crypto = &RustCrypto;
        config.transport = config.transport.with_suites(&[Suite::XChaCha20Poly1305]);
    });
    config.right.shard = shard;
    let mut pair = Pair::new(config);
    let (left, right) = pair.connect();
    let suite = pair.left.endpoint.session(left).unwrap().suite();
    assert_eq!(suite, Some(Suite::XChaCha20Poly1305));
    (pair, left, right)
}

fn finish(pair: &mut Pair, left: SessionHandle, shard: Shard) -> Run {
    pair.run_for(SECOND);
    let now = pair.now();
    pair.left.endpoint.session(left).unwrap().close(now, 7);
    pair.run_for(SECOND);
    assert_eq!((pair.left.endpoint.sessions(), pair.right.endpoint.sessions()), (0, 0));
    for entry in pair.transcript().entries().filter(|entry| entry.sender == 0) {
        let owner = Endpoint::shard_of(entry.bytes, shard.count);
        assert!(owner.is_none_or(|owner| owner == shard.index), "a packet for shard {owner:?}");
    }
    Run {
        transcript: pair.transcript().hex(),
        datagrams: pair.transcript().datagrams(),
        seen: Seen::of(pair),
    }
}

/// Datagrams both ways on links that lose nothing.
fn datagrams(seed: u64, shard: Shard) -> Run {
    let link = LinkConfig::perfect().with_latency(Duration::from_millis(7));
    let (mut pair, left, right) = pair(seed, link, shard);
    let mut rng = Rng::new(seed);
    for _ in 0..300 {
        let mut data = vec![0; rng.below(1100) as usize];
        rng.fill(&mut data);
        pair.left.endpoint.session(left).unwrap().send_datagram(data.clone().into()).unwrap();
        pair.right.endpoint.session(right).unwrap().send_datagram(data.into()).unwrap();
        pair.run_for(Duration::from_millis(2));
    }
    finish(&mut pair, left, shard)
}

/// Streams both ways, written and attached, on links that lose, reorder and repeat.
fn streams(seed: u64, shard: Shard) -> Run {
    let (mut pair, left, right) = pair(seed, LinkConfig::hostile(), shard);
    let mut rng = Rng::new(seed);
    let mut content = vec![0; 300_000];
    rng.fill(&mut content);
    let content = Bytes::from(content);

    let (mut to_right, mut to_left) = (Model::new(), Model::new());
    let mut expected = [0, 0];
    for number in 0..8_usize {
        let (node, session, model) = if number % 2 == 0 {
            (&mut pair.left, left, &mut to_right)
        } else {
            (&mut pair.right, right, &mut to_left)
        };
        let mut view = node.endpoint.session(session).unwrap();
        let stream = view.open(if number < 4 { Dir::Bi } else { Dir::Uni }).unwrap();
        let data = content.slice(number * 1000..number * 1000 + 100_000);
        if number < 2 {
            view.attach(stream, data.len() as u64).unwrap();
            node.host.serve(session, stream, data.to_vec());
        } else {
            // More than one chunk, and one refusal at the edge of the queue.
            let chunks = data.len().div_ceil(6_250);
            for at in 0..chunks {
                view.write(stream, data.slice(at * 6_250..data.len().min((at + 1) * 6_250))).unwrap();
            }
            assert_eq!(view.write(stream, data.slice(..1)), Err(WriteError::Blocked));
            view.finish(stream).unwrap();
        }
        model.write(stream, &data);
        model.finish(stream);
        expected[number % 2] += 1;
    }
    let delivered = |events: &[(SessionHandle, Event)]| {
        events.iter().filter(|(_, event)| matches!(event, Event::Delivered(_))).count()
    };
    let done = pair.run_until(
        |pair| {
            delivered(&pair.left.host.events) == expected[0]
                && delivered(&pair.right.host.events) == expected[1]
        },
        600 * SECOND,
    );
    assert!(done, "every stream is delivered");
    assert_eq!(to_right.check_all(&pair.right.host, right), Ok(()));
    assert_eq!(to_left.check_all(&pair.left.host, left), Ok(()));
    assert!(pair.left.endpoint.stats().packets_lost > 0);
    finish(&mut pair, left, shard)
}

/// Compares with the committed hash, or commits it.
fn assert_committed(name: &str, run: &Run) {
    let path = Path::new(TRANSCRIPTS);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = format!("{name} {}", run.transcript);
    let old = text.lines().find(|line| line.split(' ').next() == Some(name));
    if old == Some(&line) {
        return;
    }
    assert!(
        std::env::var_os("WRAITH_BLESS").is_some(),
        "what is sent has changed: {old:?} is now {line:?} ({} datagrams); if that is meant, run\n\
         WRAITH_BLESS=1 cargo test -p wraith-proto --test determinism",
        run.datagrams
    );
    let others = text.lines().filter(|line| line.split(' ').next() != Some(name));
    let mut lines: Vec<&str> = others.chain([line.as_str()]).collect();
    lines.sort_unstable();
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// Both in one test, so that blessing never writes the file from two threads.
#[test]
fn the_same_seed_calls_and_times_send_the_committed_bytes() {
    let (first, second) = (datagrams(1, Shard::ONLY), streams(2, Shard::ONLY));
    assert_eq!(first, datagrams(1, Shard::ONLY));
    assert_eq!(second, streams(2, Shard::ONLY));
    assert_ne!(first.transcript, datagrams(3, Shard::ONLY).transcript);
    assert_committed("datagrams", &first);
    assert_committed("streams", &second);
}

/// Ids, and with them keys and every byte behind, belong to the shard; so do the packet numbers that are skipped at
/// random. Without loss the applications see the same events and the same data in the same order.
#[test]
fn another_shard_layout_changes_the_bytes_and_nothing_that_the_application_sees() {
    let (only, sharded) = (datagrams(1, Shard::ONLY), datagrams(1, ONE_OF_FOUR));
    assert_ne!(only.transcript, sharded.transcript);
    assert_eq!(only.seen, sharded.seen);
    assert_eq!(only.seen.datagrams.each_ref().map(Vec::len), [300, 300]);
}

/// With loss, which packet is lost depends on how many were sent before, so the order between streams may differ;
/// the events themselves, the streams' ids and all of their bytes may not.
#[test]
fn another_shard_layout_delivers_the_same_streams_over_a_lossy_link() {
    let (only, sharded) = (streams(2, Shard::ONLY), streams(2, ONE_OF_FOUR));
    assert_ne!(only.transcript, sharded.transcript);
    assert_eq!(only.seen.streams, sharded.seen.streams);
    assert_eq!(only.seen.streams.each_ref().map(Vec::len), [4, 4]);
    for end in 0..2 {
        assert_eq!(only.seen.events_of(end), sharded.seen.events_of(end));
    }
}
