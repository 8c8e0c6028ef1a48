//! Core endpoints against the vectors: what they take, and which keys they derive.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wraith_conformance::peer::{
    Answer, Channel, Dial, Direction, Identity, KeyPair, Profile, Reception, Root,
};
use wraith_conformance::vectors::{array, bytes};
use wraith_proto::crypto::{
    BadTag, CryptoProvider, HeaderKey, KeyMaterial, PacketKey, RustCrypto, Suite, X25519Key,
};
use wraith_proto::wire::{ConnectionId, CookiePacket, Frame, HandshakeKind, KeyShare, is_handshake};
use wraith_proto::{
    Budget, Config, Ecn, Endpoint, Identity as CoreIdentity, Instant, Limits, NoSource, OneShot, Outcome,
    Peer, PeerId, Progress, RxMeta, SessionHandle, Via,
};

use super::vectors;

const NOW: Instant = Instant::from_nanos(1_000_000_000_000);
const ADDR: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4001);
const PROTOCOL: &[u8] = b"example/1";

/// A core endpoint that is called by hand.
struct Core {
    endpoint: Endpoint,
    now: Instant,
}

impl Core {
    fn new(seed: [u8; 32], change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(CoreIdentity::from_seed(seed), PROTOCOL);
        change(&mut config);
        Self { endpoint: Endpoint::new(config, [7; 32], NOW).unwrap(), now: NOW }
    }

    fn take(&mut self, from: SocketAddr, datagram: &[u8]) -> Outcome {
        let meta = RxMeta { from, to: None, via: Via(0), ecn: Ecn::NotEct };
        let mut copy = datagram.to_vec();
        let mut received = self.endpoint.handle(self.now, &meta, &mut copy);
        while received.next().is_some() {}
        received.outcome()
    }

    /// What it sends by now.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        assert_eq!(self.endpoint.handle_timeout(self.now, Budget::UNLIMITED), Progress::Done);
        let mut sent = Vec::new();
        loop {
            let mut buffer = [0; 2048];
            let mut queue = OneShot::new(&mut buffer);
            let _ = self.endpoint.poll_transmit(self.now, &mut queue, &mut NoSource, Budget(1));
            let Some((_, datagram)) = queue.take() else { return sent };
            sent.push(datagram.to_vec());
        }
    }

    fn of_kind(&mut self, kind: HandshakeKind) -> Vec<u8> {
        let sent = self.sent();
        let found = sent.into_iter().find(|datagram| HandshakeKind::of(datagram) == Some(kind));
        found.unwrap_or_else(|| panic!("no {kind:?}"))
    }
}

/// `PROTO §4.1`: the core takes each INIT and answers it.
#[test]
fn the_core_answers_the_inits_of_the_vectors() {
    for vector in vectors("handshake.json").iter().filter(|vector| vector["gives"].get("init").is_some()) {
        for key in ["init", "init_with_cookie"] {
            let init = bytes(&vector["gives"][key]);
            let mut core = Core::new([1; 32], |_| ());
            assert_eq!(core.take(ADDR, &init), Outcome::Handshaking, "{}", vector["name"]);
            let response = core.of_kind(HandshakeKind::Response);
            let given = &vector["given"];
            let mut profile = Profile::new(Identity::from_seed(&array(&given["initiator_seed"])), PROTOCOL);
            profile.suites = vec![u16::try_from(vector["gives"]["suite"].as_u64().unwrap()).unwrap()];
            let ephemeral = KeyPair::new(array(&given["initiator_ephemeral"]));
            let dial = Dial::new(&profile, ConnectionId(array(&given["initiator_id"])), ephemeral).unwrap();
            assert!(matches!(dial.read(&response), Ok(Answer::Met(_))));
        }
    }
}

/// `PROTO §4.14`
#[test]
fn the_core_makes_the_cookies_of_the_vectors() {
    for vector in vectors("cookie.json") {
        let given = &vector["given"];
        let mut config = Config::new(CoreIdentity::from_seed(array(&given["identity_seed"])), PROTOCOL);
        // One handshake that waits is a crowd.
        config.limits = Limits { handshakes: 1, ..Limits::client() };
        let period = Duration::from_secs(10) * u32::try_from(given["period"].as_u64().unwrap()).unwrap();
        let now = Instant::from_nanos(1).saturating_add(period);
        let endpoint = Endpoint::new(config, array(&given["endpoint_seed"]), now).unwrap();
        let mut core = Core { endpoint, now };
        let profile = Profile::new(Identity::from_seed(&[3; 32]), PROTOCOL);
        let first = Dial::new(&profile, ConnectionId([1; 8]), KeyPair::new([4; 32])).unwrap();
        assert_eq!(core.take("198.51.100.1:1".parse().unwrap(), first.init()), Outcome::Handshaking);
        let id = ConnectionId(array(&given["id"]));
        let second = Dial::new(&profile, id, KeyPair::new([5; 32])).unwrap();
        let port = u16::try_from(given["port"].as_u64().unwrap()).unwrap();
        let from = SocketAddr::new(given["address"].as_str().unwrap().parse().unwrap(), port);
        core.take(from, second.init());
        let cookie = core.of_kind(HandshakeKind::Cookie);
        let packet = CookiePacket::parse(&cookie).unwrap();
        assert_eq!((packet.destination(), *packet.cookie()), (id, array(&vector["gives"]["cookie"])));
    }
}

/// Notes every key that it is asked to expand.
#[derive(Clone, Debug, Default)]
struct Spy(Arc<Mutex<BTreeSet<Vec<u8>>>>);

impl Spy {
    fn saw(&self, secret: &[u8]) -> bool {
        self.0.lock().unwrap().contains(secret)
    }
}

impl CryptoProvider for Spy {
    fn suites(&self) -> &[Suite] {
        &[Suite::Aes256Gcm, Suite::XChaCha20Poly1305]
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        self.0.lock().unwrap().insert([&material.key[..], &material.prefix].concat());
        Box::new(SpiedKey(RustCrypto.key(suite, material)))
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        self.0.lock().unwrap().insert(key.to_vec());
        RustCrypto.header_key(suite, key)
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        RustCrypto.x25519_key(secret)
    }
}

/// A key that cannot become another one unseen: the core has to ask for that one.
struct SpiedKey(Box<dyn PacketKey>);

impl PacketKey for SpiedKey {
    fn seal_in_place(&self, number: u64, header: &[u8], packet: &mut [u8]) {
        self.0.seal_in_place(number, header, packet);
    }

    fn open_in_place(&self, number: u64, header: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        self.0.open_in_place(number, header, packet)
    }
}

/// Whether the core derived the keys of an epoch, in both directions.
fn derived(spy: &Spy, root: &Root, epoch: u32, suite: u16) -> bool {
    [Direction::ToResponder, Direction::ToInitiator].into_iter().all(|direction| {
        let material = root.packet(epoch, direction, suite);
        let header = epoch > 0 || spy.saw(&root.header(direction, suite));
        header && spy.saw(&[&material.key[..], &material.prefix].concat())
    })
}

/// A core and a channel of the second implementation, in one session of this suite; the core answers or dials.
fn session(spy: &Spy, suite: u16, dials: bool) -> (Core, SessionHandle, Channel) {
    // The test is short, and the provider has to live for ever.
    let crypto: &'static Spy = Box::leak(Box::new(spy.clone()));
    let mut core = Core::new([1; 32], |config| config.crypto = crypto);
    let mut profile = Profile::new(Identity::from_seed(&[2; 32]), PROTOCOL);
    profile.suites = vec![suite];
    let (id, ephemeral) = (ConnectionId([3; 8]), KeyPair::new([4; 32]));
    let (session, mut channel) = if dials {
        let peer = Peer { addr: ADDR, id: PeerId::from_bytes(profile.identity.id).ok() };
        let session = core.endpoint.connect(core.now, peer, Via(0)).unwrap();
        let init = core.of_kind(HandshakeKind::Init);
        let response = Reception::new(&profile, &init).unwrap().respond(id, ephemeral).unwrap();
        core.take(ADDR, response.datagram());
        let finish = core.of_kind(HandshakeKind::Finish);
        let (channel, behind) = response.read(&finish).unwrap();
        let mut channel = channel;
        channel.open(behind).unwrap();
        (session, channel)
    } else {
        let dial = Dial::new(&profile, id, ephemeral).unwrap();
        core.take(ADDR, dial.init());
        let Ok(Answer::Met(met)) = dial.read(&core.of_kind(HandshakeKind::Response)) else {
            panic!("refused")
        };
        let (finish, channel) = met.finish().unwrap();
        core.take(ADDR, &finish);
        let (session, _) = core.endpoint.poll_event().unwrap();
        (session, channel)
    };
    let ping = channel.seal(&[Frame::Ping], &[]);
    assert_eq!(core.take(ADDR, &ping), Outcome::Authenticated(session));
    heard(&mut core, &mut channel);
    (core, session, channel)
}

/// The shares in what the core sends by now.
fn heard(core: &mut Core, channel: &mut Channel) -> Vec<[u8; 32]> {
    let mut shares = Vec::new();
    for packet in core.sent().iter().filter(|datagram| !is_handshake(datagram)) {
        let opened = channel.open(packet).unwrap();
        shares.extend(opened.frames().unwrap().iter().filter_map(|(frame, _)| match frame {
            Frame::KeyShare(share) => share.as_x25519().copied(),
            _ => None,
        }));
    }
    shares
}

/// `PROTO §3.5, §3.6, §3.9, §5.15`: in a live session, the core derives what the second implementation derives.
#[test]
fn the_core_derives_the_same_keys_in_both_roles_and_suites() {
    for (suite, dials) in [(1, false), (1, true), (2, false), (2, true)] {
        let spy = Spy::default();
        let (mut core, session, mut channel) = session(&spy, suite, dials);
        let root = channel.root();
        assert!(derived(&spy, &root, 0, suite), "suite {suite}, dials {dials}");
        let label = "EXAMPLE v1 channel binding";
        let exported = core.endpoint.session(session).unwrap().export(label);
        assert_eq!(exported, Some(blake3::derive_key(label, &root.exporter(suite))));
        let own = KeyPair::new([9; 32]);
        let (epoch, share) = channel.offer(own);
        let packet = channel.seal(&[Frame::KeyShare(KeyShare::x25519(epoch, &share))], &[]);
        core.take(ADDR, &packet);
        let theirs = heard(&mut core, &mut channel).pop().expect("the core answers with its share");
        let shared = own.agree(&theirs).unwrap();
        let (initiator, responder) = if dials { (&theirs, &share) } else { (&share, &theirs) };
        let next = root.next(&shared, initiator, responder, epoch);
        channel.take(&theirs).unwrap();
        channel.send_in(epoch);
        // Keys to seal with are expanded for the first packet of the epoch: the acknowledgement, which two ask for at once.
        for _ in 0..2 {
            core.take(ADDR, &channel.seal(&[Frame::Ping], &[]));
        }
        core.sent();
        assert!(derived(&spy, &next, epoch, suite), "epoch 1, suite {suite}, dials {dials}");
    }
}
