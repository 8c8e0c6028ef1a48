use super::*;
use crate::crypto::{Role, Root, RustCrypto, TAG_LEN};
use crate::time::Instant;

const CHACHA: Suite = Suite::XChaCha20Poly1305;
const AES: Suite = Suite::Aes256Gcm;
const NOW: Instant = Instant::MIN;

/// Pure Rust, and keys that cannot be made anew in place.
#[derive(Debug)]
struct Rigid;

struct RigidKey(Box<dyn PacketKey>);

impl PacketKey for RigidKey {
    fn seal_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) {
        self.0.seal_in_place(packet_number, header, packet);
    }

    fn open_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        self.0.open_in_place(packet_number, header, packet)
    }
}

struct RigidHeaderKey(Box<dyn HeaderKey>);

impl HeaderKey for RigidHeaderKey {
    fn mask(&self, sample: &[u8; 16]) -> [u8; 5] {
        self.0.mask(sample)
    }
}

impl CryptoProvider for Rigid {
    fn suites(&self) -> &[Suite] {
        RustCrypto.suites()
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        Box::new(RigidKey(RustCrypto.key(suite, material)))
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        Box::new(RigidHeaderKey(RustCrypto.header_key(suite, key)))
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn crate::crypto::X25519Key> {
        RustCrypto.x25519_key(secret)
    }
}

/// A pool, and the keys of sessions that were admitted to it.
struct Sessions {
    pool: KeyPool,
    keys: Vec<Keys>,
    /// Those of their peers.
    peers: Vec<Keys>,
    stats: Stats,
}

fn keys(session: u8, suite: Suite, role: Role) -> Keys {
    Keys::new(suite, role, Root::new(&[session; 32], &[2; 32], &[3; 32]), NOW)
}

impl Sessions {
    /// Sessions of these suites, and room for the expanded keys of `room`.
    fn new(crypto: &'static dyn CryptoProvider, room: u32, suites: &[Suite]) -> Self {
        let limits = Limits { expanded_keys: room, ..Limits::embedded() };
        let mut it = Self {
            pool: KeyPool::new(&limits, crypto),
            keys: Vec::new(),
            peers: Vec::new(),
            stats: Stats::default(),
        };
        for (session, &suite) in suites.iter().enumerate() {
            it.keys.push(keys(session as u8, suite, Role::Initiator));
            it.peers.push(keys(session as u8, suite, Role::Responder));
            it.pool.admit(session as u32, &mut it.keys[session]);
        }
        it
    }

    /// A packet of the session is what keys of the default provider make of it; returns how many were expanded for it.
    fn seal(&mut self, session: usize) -> u64 {
        let (keys, before) = (&mut self.keys[session], self.stats.keys_missed);
        let mut packet = [7; 40 + TAG_LEN];
        let place = self.pool.sealing(session as u32, keys, &mut self.stats);
        place.packet().seal_in_place(9, b"header", &mut packet);
        let sample: [u8; 16] = packet[..16].try_into().unwrap();
        let mask = place.header().mask(&sample);
        let mut expected = [7; 40 + TAG_LEN];
        RustCrypto.key(keys.suite, keys.sealing()).seal_in_place(9, b"header", &mut expected);
        assert_eq!(packet, expected);
        assert_eq!(mask, RustCrypto.header_key(keys.suite, keys.header(true)).mask(&sample));
        self.stats.keys_missed - before
    }

    /// A packet of the session's peer opens, or one that anybody made does not; returns how many keys were expanded for it.
    fn open(&mut self, session: usize, authentic: bool) -> u64 {
        let (keys, peer) = (&mut self.keys[session], &self.peers[session]);
        let before = self.stats.keys_missed;
        let mut packet = [7; 40 + TAG_LEN];
        RustCrypto.key(peer.suite, peer.sealing()).seal_in_place(9, b"header", &mut packet);
        let sample: [u8; 16] = packet[..16].try_into().unwrap();
        packet[0] ^= u8::from(!authentic);
        let at = self.pool.opening(session as u32, keys, &mut self.stats);
        let expected = RustCrypto.header_key(peer.suite, peer.header(true)).mask(&sample);
        assert_eq!(self.pool.mask(at, &sample), expected);
        let opened = self.pool.open(at, keys, peer.phase(), 9, b"header", &mut packet);
        assert_eq!(opened, if authentic { Ok(40) } else { Err(BadTag) });
        if authentic {
            keys.on_opened(peer.phase());
        }
        self.stats.keys_missed - before
    }

    /// Both ends of a session get the keys of the next epoch. The peer sends with them.
    fn exchange(&mut self, session: usize, byte: u8) {
        let (keys, peer) = (&mut self.keys[session], &mut self.peers[session]);
        peer.begin(&RustCrypto, &[byte; 32]);
        let share = |keys: &Keys| keys.share().map(|(epoch, share)| (epoch, *share)).unwrap();
        let (epoch, theirs) = share(peer);
        let secret = || zeroize::Zeroizing::new([byte + 1; 32]);
        assert_eq!(keys.take_share(&RustCrypto, epoch, &theirs, secret), Ok(true));
        let (epoch, theirs) = share(keys);
        assert_eq!(peer.take_share(&RustCrypto, epoch, &theirs, || panic!("there is one")), Ok(true));
        peer.on_share_acked(epoch as u16);
        assert!(peer.advance(5, NOW));
    }

    /// Whose place each is, in the order in which they are given away.
    fn owners(&self) -> Vec<u32> {
        core::iter::successors(self.pool.order.front(), |&at| self.pool.links.next(at))
            .map(|at| self.pool.places[at as usize].owner)
            .collect()
    }
}

#[test]
fn keys_of_sessions_that_fit_are_expanded_once() {
    for crypto in [&RustCrypto as &dyn CryptoProvider, &Rigid] {
        let mut it = Sessions::new(crypto, 2, &[AES, CHACHA]);
        for round in 0..50 {
            let expanded = [it.seal(round % 2), it.open(1 - round % 2, true), it.open(0, round % 3 == 0)];
            assert_eq!(expanded, [0; 3]);
        }
        assert_eq!(it.pool.clock, 0, "and nobody has moved");
    }
}

#[test]
fn with_more_sessions_than_room_a_packet_costs_at_most_one_expansion() {
    for crypto in [&RustCrypto as &dyn CryptoProvider, &Rigid] {
        let mut it = Sessions::new(crypto, 2, &[AES, CHACHA, AES, AES, CHACHA]);
        for round in 0..50 {
            assert_eq!((it.seal(round % 5), it.open((round + 2) % 5, true)), (1, 1));
        }
        // Whoever goes on has its keys.
        assert_eq!((it.seal(4), it.open(1, true)), (0, 0));
        assert_eq!(it.pool.places.len(), 4);
        assert_eq!(it.stats.keys_missed, 100);
    }
}

#[test]
fn the_direction_that_was_used_least_recently_makes_room() {
    let mut it = Sessions::new(&RustCrypto, 2, &[AES, AES, AES]);
    // The first session's keys have made room for the last one's.
    assert_eq!([it.seal(2), it.open(2, true), it.seal(1), it.open(1, true)], [0; 4]);
    assert_eq!([it.seal(0), it.seal(0)], [1, 0]);
    // The place that was used first had to go.
    assert_eq!(it.owners(), [owner(2, INWARD), owner(1, OUTWARD), owner(1, INWARD), owner(0, OUTWARD)]);
    assert_eq!([it.open(2, true), it.open(0, true)], [0, 1]);
    assert_eq!(it.owners(), [owner(1, INWARD), owner(0, OUTWARD), owner(2, INWARD), owner(0, INWARD)]);
}

#[test]
fn what_anybody_may_send_displaces_the_keys_of_one_direction_and_no_more() {
    let mut it = Sessions::new(&RustCrypto, 2, &[AES, AES, AES, AES]);
    assert_eq!([it.seal(2), it.open(2, true), it.seal(3), it.open(3, true)], [0; 4]);
    for round in 0..100 {
        it.open(round % 2, false);
    }
    let before = it.stats.keys_missed;
    assert_eq!(before, 100);
    assert_eq!([it.seal(2), it.open(2, true), it.seal(3), it.open(3, true)].iter().sum::<u64>(), 1);
    // A packet of the peer's counts.
    assert_eq!([it.open(1, true), it.open(1, true)], [1, 0]);
}

#[test]
fn the_end_of_a_session_wipes_its_keys_and_leaves_its_places() {
    for (crypto, suite) in [(&RustCrypto as &dyn CryptoProvider, AES), (&RustCrypto, CHACHA), (&Rigid, AES)] {
        let mut it = Sessions::new(crypto, 3, &[suite, suite]);
        it.pool.release(0, &it.keys[0]);
        assert_eq!(it.owners()[..2], [NOBODY; 2]);
        let nothing = KeyMaterial { key: [0; 32], prefix: [0; 16] };
        for place in it.pool.places.iter().filter(|place| place.owner == NOBODY) {
            let mut packets = [[7; 40]; 2];
            place.packet.seal_in_place(1, b"", &mut packets[0]);
            RustCrypto.key(suite, &nothing).seal_in_place(1, b"", &mut packets[1]);
            assert_eq!(packets[0], packets[1]);
            let mask = RustCrypto.header_key(suite, &[0; 32]).mask(&[5; 16]);
            assert_eq!(place.header.mask(&[5; 16]), mask);
        }
        // Once more, when the places are others': nothing happens.
        it.keys[0] = keys(7, suite, Role::Initiator);
        it.peers[0] = keys(7, suite, Role::Responder);
        let mut former = keys(0, suite, Role::Initiator);
        former.places = it.keys[0].places;
        it.pool.admit(0, &mut it.keys[0]);
        it.pool.release(0, &former);
        assert_eq!((it.seal(0), it.open(0, true), it.seal(1), it.open(1, true)), (0, 0, 0, 0));
        assert_eq!(it.pool.places.len(), 4, "free places come first");
    }
}

/// `PROTO §5.16, §5.17`
#[test]
fn a_place_follows_the_epochs_of_its_direction() {
    for room in [1, 2] {
        let mut it = Sessions::new(&RustCrypto, room, &[AES, AES]);
        for epoch in 1..=5 {
            it.open(0, true);
            it.exchange(0, 10 * epoch);
            // This end still sends in the former epoch.
            it.seal(0);
            it.seal(1);
            it.open(1, true);
            // The first packet of the new one; then one of the former, which was on its way for longer.
            it.open(0, true);
            let late = core::mem::replace(&mut it.peers[0], keys(0, AES, Role::Responder));
            if epoch == 1 {
                it.open(0, true);
            }
            it.peers[0] = late;
            it.open(0, true);
            assert!(it.keys[0].advance(7, NOW));
            it.seal(0);
            assert_eq!(it.keys[0].epoch(), epoch.into());
            it.keys[0].forget_former();
            let phase = it.keys[0].phase();
            it.peers[0].on_opened(phase);
            it.peers[0].forget_former();
        }
        assert_eq!(it.stats.keys_missed > 0, room == 1);
    }
}

#[test]
fn a_pool_is_priced_with_all_its_places() {
    let limits = |expanded_keys| Limits { expanded_keys, ..Limits::embedded() };
    let each = KeyPool::memory(&limits(11)) - KeyPool::memory(&limits(10));
    assert_eq!(each % 2, 0);
    assert!((1200..=1600).contains(&each), "{each} bytes for a session");
}
