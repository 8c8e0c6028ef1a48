//! Every limit holds at its edge, says so, and lets go again.

use std::time::Duration;

use bytes::Bytes;
use wraith_proto::crypto::{CryptoProvider, HeaderKey, KeyMaterial, PacketKey, RustCrypto, Suite, X25519Key};
use wraith_proto::{
    Budget, Config, ConfigError, ConnectError, DatagramError, Deadline, Dir, DropReason, Ecn, Endpoint,
    Event, Identity, Instant, Limits, NoSource, OneShot, OpenError, Outcome, Peer, Progress, RxMeta, Shard,
    Transport, TxStatus, Via,
};
use wraith_sim::{LEFT, LinkConfig, Pair, PairConfig, RIGHT, Side, Transparent, Verdict};

const SECOND: Duration = Duration::from_secs(1);
const NOW: Instant = Instant::from_nanos(1 << 40);

fn config() -> Config {
    Config::new(Identity::from_seed([7; 32]), b"test")
}

fn refusal(change: impl FnOnce(&mut Config)) -> Option<ConfigError> {
    let mut config = config();
    change(&mut config);
    let validated = config.validate();
    let made = Endpoint::new(config, [1; 32], NOW).map(drop);
    assert_eq!(made, validated);
    made.err()
}

#[test]
fn a_shard_must_be_below_the_count() {
    let shard = |index, count| refusal(|config| config.shard = Shard { index, count });
    assert_eq!(shard(0, 0), Some(ConfigError::ShardOutOfRange));
    assert_eq!(shard(1, 1), Some(ConfigError::ShardOutOfRange));
    assert_eq!(shard(255, 255), Some(ConfigError::ShardOutOfRange));
    assert_eq!(shard(0, 1), None);
    assert_eq!(shard(254, 255), None);
}

#[test]
fn no_limit_may_be_zero_or_huge() {
    let fields: [fn(&mut Limits) -> &mut u32; 8] = [
        |limits| &mut limits.sessions,
        |limits| &mut limits.handshakes,
        |limits| &mut limits.handshake_rate,
        |limits| &mut limits.streams,
        |limits| &mut limits.sent_packets,
        |limits| &mut limits.holes,
        |limits| &mut limits.datagrams,
        |limits| &mut limits.expanded_keys,
    ];
    for field in fields {
        let limited = |value| {
            refusal(|config| {
                config.limits = Limits::embedded();
                *field(&mut config.limits) = value;
            })
        };
        assert_eq!(limited(0), Some(ConfigError::LimitZero));
        assert_eq!(limited(1), None);
        assert_eq!(limited((1 << 24) + 1), Some(ConfigError::LimitTooLarge));
        assert_eq!(limited(u32::MAX), Some(ConfigError::LimitTooLarge));
    }
}

#[test]
fn datagram_sizes_must_be_in_order() {
    let sizes = |min, max| {
        refusal(|config| {
            config.transport = Transport::default().with_min_datagram(min).with_max_datagram(max);
        })
    };
    assert_eq!(sizes(1199, 1500), Some(ConfigError::DatagramTooSmall));
    assert_eq!(sizes(1201, 1200), Some(ConfigError::DatagramTooSmall));
    assert_eq!(sizes(1200, 1199), Some(ConfigError::DatagramTooSmall));
    assert_eq!(sizes(1200, 1200), None);
    assert_eq!(sizes(1200, u16::MAX), None);
}

#[test]
fn application_protocols_are_counted_and_measured() {
    let protocols = |names: &[&[u8]]| {
        refusal(|config| config.protocols = names.iter().map(|&name| name.into()).collect())
    };
    assert_eq!(protocols(&[]), Some(ConfigError::BadProtocols));
    assert_eq!(protocols(&[b"a", b""]), Some(ConfigError::BadProtocols));
    assert_eq!(protocols(&[&[b'a'; 33]]), Some(ConfigError::BadProtocols));
    assert_eq!(protocols(&[&b"a"[..]; 9]), Some(ConfigError::BadProtocols));
    assert_eq!(protocols(&[&[b'a'; 32][..]; 8]), None);
}

/// Offers AES alone.
#[derive(Debug)]
struct AesOnly;

impl CryptoProvider for AesOnly {
    fn suites(&self) -> &[Suite] {
        &[Suite::Aes256Gcm]
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        RustCrypto.key(suite, material)
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        RustCrypto.header_key(suite, key)
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        RustCrypto.x25519_key(secret)
    }
}

#[test]
fn a_provider_without_the_mandatory_suite_is_refused() {
    assert_eq!(refusal(|config| config.crypto = &AesOnly), Some(ConfigError::NoSuite));
}

#[test]
fn suites_are_those_of_the_provider_and_each_is_listed_once() {
    let suites = |suites| refusal(|config| config.transport = Transport::default().with_suites(suites));
    const X: Suite = Suite::XChaCha20Poly1305;
    const A: Suite = Suite::Aes256Gcm;
    assert_eq!(suites(&[]), None);
    assert_eq!(suites(&[A]), None);
    assert_eq!(suites(&[X, A]), None);
    assert_eq!(suites(&[X, A, X]), Some(ConfigError::BadSuites));
    let of_transparent = refusal(|config| {
        config.crypto = Transparent::CHECKED;
        config.transport = Transport::default().with_suites(&[X, A]);
    });
    assert_eq!(of_transparent, Some(ConfigError::BadSuites));
}

#[test]
fn an_address_that_cannot_be_a_peer_is_refused() {
    let mut endpoint = Endpoint::new(config(), [1; 32], NOW).unwrap();
    let mut dial = |addr: &str| {
        let peer = Peer { addr: addr.parse().unwrap(), id: None };
        endpoint.connect(NOW, peer, Via::default()).map(drop)
    };
    for addr in
        ["192.0.2.1:0", "0.0.0.0:4433", "[::]:4433", "224.0.0.1:4433", "[ff02::1]:4433", "255.255.255.255:1"]
    {
        assert_eq!(dial(addr), Err(ConnectError::NoRoute), "{addr}");
    }
    assert_eq!(dial("192.0.2.1:4433"), Ok(()));
    assert_eq!(endpoint.sessions(), 1);
}

#[test]
fn a_full_table_refuses_to_dial_and_takes_the_next_after_a_session_ended() {
    let mut config = PairConfig::new(1);
    config.left.limits = Limits { sessions: 2, ..Limits::client() };
    let mut pair = Pair::new(config);
    let (first, _) = pair.connect();
    pair.connect();
    assert_eq!(pair.dial(), Err(ConnectError::TableFull));

    let now = pair.now();
    pair.left.endpoint.session(first).unwrap().close(now, 0);
    // The closed session holds its place until late packets of the peer can be answered no more.
    assert_eq!(pair.dial(), Err(ConnectError::TableFull));
    pair.run_for(SECOND);
    let (third, _) = pair.connect();
    assert_ne!(third, first);
    assert!(pair.left.endpoint.session(first).is_none(), "a stale handle misses");
}

#[test]
fn dials_beyond_the_handshake_limit_are_refused_until_one_has_ended() {
    let mut config = PairConfig::new(2);
    config.left.limits = Limits { handshakes: 2, ..Limits::client() };
    let mut pair = Pair::new(config);
    pair.dial().unwrap();
    pair.dial().unwrap();
    assert_eq!(pair.dial(), Err(ConnectError::TableFull));
    assert!(pair.run_until(|pair| pair.left.connected() == 2, SECOND));
    pair.run_for(SECOND);
    pair.connect();
}

#[test]
fn an_answering_end_without_a_free_session_drops_finish_and_takes_it_later() {
    let mut config = PairConfig::new(3);
    config.right.limits = Limits { sessions: 1, ..Limits::client() };
    let mut pair = Pair::new(config);
    let (first, _) = pair.connect();

    pair.dial().unwrap();
    pair.run_for(SECOND);
    let drops = pair.right.endpoint.stats().drops(DropReason::TableFull);
    assert!(drops >= 1, "FINISH was dropped");
    assert_eq!((pair.right.connected(), pair.right.endpoint.sessions()), (1, 1));

    let now = pair.now();
    pair.left.endpoint.session(first).unwrap().close(now, 0);
    assert!(pair.run_until(|pair| pair.right.connected() == 2, 10 * SECOND), "FINISH came again");
    assert_eq!(pair.right.endpoint.sessions(), 1);
}

#[test]
fn an_answering_end_without_a_free_handshake_drops_init_and_takes_it_later() {
    let mut config = PairConfig::new(4);
    config.right.limits = Limits { handshakes: 1, ..Limits::client() };
    config.right.transport = config.right.transport.with_handshake_timeout(5 * SECOND);
    let mut pair = Pair::new(config);
    // The first dial goes no further than INIT.
    pair.intercept(|passing| {
        if passing.sender == 1 && passing.bytes.len() == 1200 { Verdict::Drop } else { Verdict::Pass }
    });
    let first = pair.dial().unwrap();
    pair.run_for(Duration::from_millis(100));
    pair.stop_intercepting();
    let now = pair.now();
    pair.left.endpoint.session(first).unwrap().close(now, 0);

    pair.dial().unwrap();
    pair.run_for(SECOND);
    assert!(pair.right.endpoint.stats().drops(DropReason::TableFull) >= 1);
    assert_eq!(pair.right.connected(), 0);
    assert!(
        pair.run_until(|pair| pair.right.connected() == 1, 20 * SECOND),
        "the slot was freed by its timeout"
    );
}

#[test]
fn a_full_datagram_queue_blocks_and_says_when_it_no_longer_does() {
    let mut config = PairConfig::new(5);
    config.left.limits = Limits { datagrams: 8, ..Limits::client() };
    let mut pair = Pair::new(config);
    let (left, _) = pair.connect();
    let data = Bytes::from_static(b"datagram");
    let mut session = pair.left.endpoint.session(left).unwrap();
    // One session takes a quarter of the pool.
    assert_eq!(session.send_datagram(data.clone()), Ok(()));
    assert_eq!(session.send_datagram(data.clone()), Ok(()));
    assert_eq!(session.send_datagram(data.clone()), Err(DatagramError::Blocked));
    assert!(!pair.left.host.saw(left, Event::DatagramsUnblocked));
    assert!(pair.run_until(|pair| pair.left.host.saw(left, Event::DatagramsUnblocked), SECOND));
    assert_eq!(pair.left.endpoint.session(left).unwrap().send_datagram(data), Ok(()));
    pair.run_for(SECOND);
    assert_eq!(pair.right.host.datagrams.len(), 3);
}

/// A session that found no room because of others, and has nothing queued itself, hears when there is.
#[test]
fn a_session_that_others_left_no_room_is_told_of_it() {
    let mut config = PairConfig::new(31);
    config.left.limits = Limits { datagrams: 4, ..Limits::client() };
    let mut pair = Pair::new(config);
    let sessions: Vec<_> = (0..6).map(|_| pair.connect().0).collect();
    pair.run_for(SECOND);
    let results: Vec<_> = sessions
        .iter()
        .map(|&session| pair.left.endpoint.session(session).unwrap().send_datagram(Bytes::from_static(b"x")))
        .collect();
    assert_eq!(results[..4], [Ok(()); 4]);
    assert_eq!(results[4..], [Err(DatagramError::Blocked); 2]);
    // One of those who wait ends: its place in the line goes to nobody who is gone.
    let now = pair.now();
    pair.left.endpoint.session(sessions[4]).unwrap().close(now, 0);
    pair.run_for(SECOND);
    let unblocked: Vec<_> =
        pair.left.host.events.iter().filter(|(_, event)| *event == Event::DatagramsUnblocked).collect();
    assert_eq!(unblocked, [&(sessions[5], Event::DatagramsUnblocked)]);
}

#[test]
fn a_datagram_fits_up_to_the_size_that_the_session_names() {
    let mut pair = Pair::new(PairConfig::new(6));
    let (left, _) = pair.connect();
    let mut session = pair.left.endpoint.session(left).unwrap();
    let max = session.max_datagram();
    assert_eq!(session.send_datagram(vec![1; max + 1].into()), Err(DatagramError::TooLarge { max }));
    assert_eq!(session.send_datagram(vec![2; max].into()), Ok(()));
    assert_eq!(session.send_datagram(Bytes::new()), Ok(()));
    pair.run_for(SECOND);
    let lens: Vec<usize> = pair.right.host.datagrams.iter().map(|(_, data)| data.len()).collect();
    assert_eq!(lens, [max, 0]);
}

#[test]
fn streams_are_limited_by_the_own_pool_and_by_the_peer() {
    let mut config = PairConfig::new(7);
    config.left.limits = Limits { streams: 3, ..Limits::client() };
    config.right.transport = config.right.transport.with_peer_streams(2);
    let mut pair = Pair::new(config);
    let (left, _) = pair.connect();
    let mut session = pair.left.endpoint.session(left).unwrap();
    let uni = [session.open(Dir::Uni).unwrap(), session.open(Dir::Uni).unwrap()];
    assert_eq!(session.open(Dir::Uni), Err(OpenError::PeerLimit));
    session.open(Dir::Bi).unwrap();
    assert_eq!(session.open(Dir::Bi), Err(OpenError::LocalLimit));

    for stream in uni {
        session.write(stream, Bytes::from_static(b"all")).unwrap();
        session.finish(stream).unwrap();
    }
    assert!(pair.run_until(|pair| pair.left.host.saw(left, Event::StreamsUnblocked), SECOND));
    pair.run_for(SECOND);
    let mut session = pair.left.endpoint.session(left).unwrap();
    assert!(session.open(Dir::Uni).is_ok() && session.open(Dir::Bi).is_ok());
}

#[test]
fn a_clock_that_goes_backwards_is_counted_and_does_no_harm() {
    let mut endpoint = Endpoint::new(config(), [1; 32], NOW).unwrap();
    let peer = Peer { addr: RIGHT, id: None };
    endpoint.connect(NOW, peer, Via::default()).unwrap();
    let mut buffer = [0; 1200];
    let _ = endpoint.poll_transmit(NOW, &mut OneShot::new(&mut buffer), &mut NoSource, Budget(1));
    let deadline = endpoint.poll_timeout();
    assert_eq!(endpoint.stats().clock_regressions, 0);

    let earlier = NOW.saturating_sub(SECOND);
    assert_eq!(endpoint.handle_timeout(earlier, Budget::UNLIMITED), Progress::Done);
    let mut queue = OneShot::new(&mut buffer);
    assert_eq!(endpoint.poll_transmit(earlier, &mut queue, &mut NoSource, Budget(1)), TxStatus::Idle);
    assert_eq!(queue.take(), None);
    let meta = RxMeta { from: RIGHT, to: None, via: Via::default(), ecn: Ecn::NotEct };
    assert_eq!(
        endpoint.handle(Instant::MIN, &meta, &mut []).outcome(),
        Outcome::Dropped(DropReason::Malformed)
    );
    assert_eq!(endpoint.stats().clock_regressions, 3);
    assert_eq!(endpoint.poll_timeout(), deadline);
    assert!(deadline.is_some_and(|Deadline { at, .. }| at > NOW));
}

/// Packets that each end of a session sends to the other, after the handshake.
fn protected_packets(pair: &Pair, sender: u32) -> Vec<Vec<u8>> {
    let entries = pair.transcript().entries().filter(|entry| entry.sender == sender);
    entries.map(|entry| entry.bytes.to_vec()).filter(|bytes| Endpoint::shard_of(bytes, 1).is_some()).collect()
}

/// `PROTO §5.11`
#[test]
fn every_shard_draws_ids_that_lead_back_to_it_and_no_other() {
    for count in 1..=u8::MAX {
        let (left, right) = (Shard { index: count - 1, count }, Shard { index: count / 2, count });
        let mut config = PairConfig::new(u64::from(count)).with_recording();
        (config.left.shard, config.right.shard) = (left, right);
        let mut pair = Pair::new(config);
        let (session, _) = pair.connect();
        for _ in 0..3 {
            pair.left.endpoint.session(session).unwrap().ping().unwrap();
            pair.run_for(Duration::from_millis(50));
        }
        for (sender, receiver) in [(0, right), (1, left)] {
            let packets = protected_packets(&pair, sender);
            assert!(packets.len() >= 3, "{} packets", packets.len());
            for packet in packets {
                assert_eq!(Endpoint::shard_of(&packet, count), Some(receiver.index));
            }
        }
        assert_eq!(pair.right.endpoint.stats().drops(DropReason::WrongShard), 0);
    }
}

/// `PROTO §5.11`
#[test]
fn a_packet_for_another_shard_is_counted_as_such() {
    let config = |index| {
        let mut config = PairConfig::new(9).with_recording();
        config.right.shard = Shard { index, count: 2 };
        config
    };
    let (mut pair, mut other) = (Pair::new(config(0)), Pair::new(config(1)));
    let (session, _) = pair.connect();
    pair.left.endpoint.session(session).unwrap().ping().unwrap();
    pair.run_for(SECOND);
    let packet = protected_packets(&pair, 0).pop().unwrap();
    assert_eq!(Endpoint::shard_of(&packet, 2), Some(0));
    assert_eq!(other.inject(Side::Right, LEFT, &packet), Outcome::Dropped(DropReason::WrongShard));
    assert_eq!(other.right.endpoint.stats().drops(DropReason::WrongShard), 1);
    assert_eq!(pair.inject(Side::Right, LEFT, &packet), Outcome::Dropped(DropReason::Replayed));

    // The same shard, but nobody's.
    let mut unknown = packet;
    unknown[1..9].fill(0xff);
    assert_eq!(other.inject(Side::Right, LEFT, &unknown), Outcome::Dropped(DropReason::UnknownSession));
}

#[test]
fn handshakes_belong_to_no_shard() {
    let mut pair = Pair::new(PairConfig::new(10).with_recording().with_link(LinkConfig::perfect()));
    pair.dial().unwrap();
    pair.step();
    let first = pair.transcript().entries().next().unwrap();
    assert_eq!((first.sender, first.bytes.len()), (0, 1200));
    assert_eq!(Endpoint::shard_of(first.bytes, 4), None);
    assert_eq!(Endpoint::shard_of(&[], 4), None);
}

/// `PROTO §8.3`: whatever is set, an acknowledgement comes before the peer takes the packet for lost.
#[test]
fn acknowledgements_wait_no_longer_than_the_longest_delay() {
    let config = PairConfig::new(32).with_both(|config| {
        config.transport =
            config.transport.with_max_ack_delay(Duration::MAX).with_idle_timeout(Duration::ZERO);
    });
    let mut pair = Pair::new(config);
    let (left, _) = pair.connect();
    pair.run_for(60 * SECOND);
    let before = pair.right.endpoint.stats().acks_sent;
    pair.left.endpoint.session(left).unwrap().send_datagram(Bytes::from_static(b"x")).unwrap();
    pair.run_for(Duration::from_millis(10 + (1 << 14) - 2));
    assert_eq!(pair.right.endpoint.stats().acks_sent, before);
    pair.run_for(Duration::from_millis(4));
    assert_eq!(pair.right.endpoint.stats().acks_sent, before + 1);
}
