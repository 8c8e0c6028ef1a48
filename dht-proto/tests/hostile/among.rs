//! Hostile datagrams among genuine ones, from addresses that the network lets them forge.

use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use wraith_dht_proto::{
    Conflict, Event, Id, Kind, Limits, MAX_DATAGRAM, NodeRef, Outcome, Record, SealedDht, Signed, sign,
    signed_key,
};
use wraith_proto::crypto::RustCrypto;
use wraith_proto::{Identity, Instant};

const START: Instant = Instant::from_nanos(3_600_000_000_000);

/// Time between two things that happen.
const STEP: Duration = Duration::from_millis(1);

/// What somebody does before the datagram on the way arrives: it sees it, and may send from any address, but has no key
/// of either node. It hands neither node another token than
/// it was given: tokens are not authenticated, and who sees a request can spoil it (`PROTO §14.6`).
#[derive(Clone, Debug)]
enum Hostile {
    /// Random bytes that begin as one of the DHT, from either node.
    Noise { to: usize, first: u8, bytes: Vec<u8> },
    /// The one on the way, with another byte somewhere.
    Altered { at: usize, bits: u8 },
    /// The one on the way, shorter, and then with bytes behind it.
    Resized { cut: usize, more: usize },
    /// The one on the way once more, from its own address or another one.
    Again { elsewhere: bool },
    /// The one on the way back to its sender.
    Reflected,
    /// The header of the one on the way with something else behind it.
    Spliced { bytes: Vec<u8> },
    /// A genuine request of a third node, from anywhere.
    Stranger { to: usize, from: u8 },
}

/// An answer is given up after four that do not open, so there are fewer for each that is on the way.
fn hostile() -> impl Strategy<Value = Vec<Hostile>> {
    let bytes = || proptest::collection::vec(any::<u8>(), 1..1_300);
    let one = prop_oneof![
        (0..2_usize, 0x62..0x65_u8, bytes()).prop_map(|(to, first, bytes)| Hostile::Noise {
            to,
            first,
            bytes
        }),
        (any::<usize>(), 1..=255_u8).prop_map(|(at, bits)| Hostile::Altered { at, bits }),
        (1..200_usize, 0..20_usize).prop_map(|(cut, more)| Hostile::Resized { cut, more }),
        any::<bool>().prop_map(|elsewhere| Hostile::Again { elsewhere }),
        Just(Hostile::Reflected),
        bytes().prop_map(|bytes| Hostile::Spliced { bytes }),
        (0..2_usize, any::<u8>()).prop_map(|(to, from)| Hostile::Stranger { to, from }),
    ];
    proptest::collection::vec(one, 0..=3)
}

/// What became of something.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Ended {
    Joined(usize),
    Stored(u8, Option<Conflict>),
    Found(u64, Vec<u8>),
    Providers(Vec<NodeRef>),
    Otherwise(String),
}

impl From<Event<'_>> for Ended {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Joined(contacts) => Self::Joined(contacts),
            Event::Ended(_, Outcome::Stored { nodes, conflict }) => Self::Stored(nodes, conflict),
            Event::Ended(_, Outcome::Found { record, .. }) => {
                Self::Found(record.seq(), record.value().to_vec())
            }
            Event::Ended(_, Outcome::Providers { providers, .. }) => {
                Self::Providers(providers.iter().collect())
            }
            other => Self::Otherwise(format!("{other:?}")),
        }
    }
}

struct Host {
    node: SealedDht,
    me: NodeRef,
}

impl Host {
    fn new(at: u8) -> Self {
        let identity = Identity::from_seed([at; 32]);
        let me = NodeRef::new(&identity.peer_id(), SocketAddr::from(([9, at, 1, 1], 5)));
        Self { node: SealedDht::new(&Limits::default(), identity, &RustCrypto, 8, &[at; 32], START), me }
    }

    fn sends(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        let mut buffer = [0; MAX_DATAGRAM];
        let (to, len) = self.node.poll_transmit(now, &mut buffer)?;
        Some((to, buffer[..len].to_vec()))
    }
}

/// Two nodes, and what is done between their datagrams.
struct Network {
    hosts: [Host; 2],
    now: Instant,
    hostile: std::vec::IntoIter<Vec<Hostile>>,
    /// What a third node asks, sealed to either.
    strange: [Vec<u8>; 2],
}

impl Network {
    fn new(hostile: Vec<Vec<Hostile>>) -> Self {
        let hosts = [Host::new(1), Host::new(2)];
        let strange = [0, 1].map(|at: usize| {
            let mut third = Host::new(3);
            third.node.dht_mut().bootstrap(hosts[at].me, START);
            third.sends(START).unwrap().1
        });
        Self { hosts, now: START, hostile: hostile.into_iter(), strange }
    }

    /// Carries datagrams until a node has news.
    fn news(&mut self, of: usize) -> Ended {
        for _ in 0..20_000 {
            self.now = self.now.saturating_add(STEP);
            for at in 0..2 {
                self.hosts[at].node.dht_mut().handle_timeout(self.now);
                while let Some((to, datagram)) = self.hosts[at].sends(self.now) {
                    self.carry(self.hosts[at].me.address, to, &datagram);
                }
            }
            if let Some(event) = self.hosts[of].node.dht_mut().poll_event() {
                return event.into();
            }
        }
        panic!("nothing ended")
    }

    fn carry(&mut self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        // Pings of the third node go nowhere.
        let Some(at) = self.hosts.iter().position(|host| host.me.address == to) else { return };
        for hostile in self.hostile.next().unwrap_or_default() {
            self.attack(&hostile, from, at, datagram);
        }
        // Whether it still counts shows in what comes of it.
        let _ = self.hosts[at].node.handle(self.now, from, &mut datagram.to_vec());
    }

    fn attack(&mut self, hostile: &Hostile, from: SocketAddr, at: usize, datagram: &[u8]) {
        let elsewhere = SocketAddr::from(([61, 1, 1, 1], 9));
        let (forged, back) =
            if datagram[0] == 0x64 { (elsewhere, elsewhere) } else { (from, self.hosts[at].me.address) };
        let (from, to, mut bytes) = match hostile {
            Hostile::Noise { to, first, bytes } => {
                (self.hosts[1 - to].me.address, *to, [&[*first], &bytes[..]].concat())
            }
            Hostile::Altered { at: place, bits } => {
                let mut bytes = datagram.to_vec();
                bytes[place % datagram.len()] ^= bits;
                (forged, at, bytes)
            }
            Hostile::Resized { cut, more } => {
                let rest = datagram.len().saturating_sub(*cut);
                (forged, at, [&datagram[..rest], &vec![7; *more]].concat())
            }
            Hostile::Again { elsewhere: true } => (elsewhere, at, datagram.to_vec()),
            Hostile::Again { elsewhere: false } => (from, at, datagram.to_vec()),
            Hostile::Reflected => (back, 1 - at, datagram.to_vec()),
            Hostile::Spliced { bytes } => {
                let header = if datagram[0] == 0x63 { 9 } else { 25 };
                (forged, at, [&datagram[..header], &bytes[..]].concat())
            }
            Hostile::Stranger { to, from } => {
                (SocketAddr::from(([62, *from, 1, 1], 9)), *to, self.strange[*to].clone())
            }
        };
        // What it is dropped for is its own affair.
        let _ = self.hosts[to].node.handle(self.now, from, &mut bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// PROTO §14.2, §14.6, §14.7, §14.8, §14.12 and §14.13
    #[test]
    fn hostile_datagrams_do_not_change_what_becomes_of_a_put_or_a_get(
        hostile in proptest::collection::vec(hostile(), 0..40),
    ) {
        let owner = Identity::from_seed([77; 32]);
        let (peer, signature) = (owner.peer_id(), sign(&owner, 4, 5, b"signed").unwrap());
        let signed =
            Signed { peer: peer.as_bytes(), salt: 4, seq: 5, signature: &signature, value: b"signed" };
        let (value, topic) = ([5; 700], Id::from_bytes([6; 32]));
        let mut network = Network::new(hostile);
        let [one, other] = [0, 1].map(|at: usize| network.hosts[at].me);

        // The other one has the record before it knows anybody.
        let now = network.now;
        network.hosts[1].node.dht_mut().put(&Record::Signed(signed), None, now).unwrap();
        prop_assert_eq!(network.news(1), Ended::Stored(0, None));
        let now = network.now;
        network.hosts[0].node.dht_mut().bootstrap(other, now);
        prop_assert_eq!(network.news(0), Ended::Joined(1));
        let now = network.now;
        network.hosts[0].node.dht_mut().get(signed_key(&peer, 4), Kind::Signed, now).unwrap();
        prop_assert_eq!(network.news(0), Ended::Found(5, b"signed".to_vec()));

        let (record, now) = (Record::Value(&value), network.now);
        network.hosts[0].node.dht_mut().put(&record, None, now).unwrap();
        prop_assert_eq!(network.news(0), Ended::Stored(1, None));
        prop_assert!(network.hosts[1].node.dht().holds(&record.key(), Kind::Value, network.now));
        let now = network.now;
        network.hosts[0].node.dht_mut().announce(topic, now).unwrap();
        prop_assert_eq!(network.news(0), Ended::Stored(1, None));
        let now = network.now;
        network.hosts[0].node.dht_mut().get(topic, Kind::Providers, now).unwrap();
        prop_assert_eq!(network.news(0), Ended::Providers(vec![one]));

        // Nobody else has come in by it.
        for (at, contact) in [(0, other), (1, one)] {
            let contacts: Vec<NodeRef> = network.hosts[at].node.dht().contacts().collect();
            prop_assert!(contacts.iter().all(|known| *known == contact), "{:?}", contacts);
        }
        prop_assert_eq!(network.hosts[1].node.dht().record_count(), 3);
    }
}
