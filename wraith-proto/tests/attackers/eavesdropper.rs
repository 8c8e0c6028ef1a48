//! The eavesdropper sends nothing and sees every byte.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wraith_proto::crypto::{
    BadTag, CryptoProvider, HeaderKey, KeyMaterial, PacketKey, RustCrypto, Suite, TAG_LEN, X25519Key,
};
use wraith_proto::sealed::{Letter, Mailbox, MessageId};
use wraith_proto::wire::{HandshakeKind, PACKET_HEADER_LEN, is_handshake};
use wraith_proto::{Dir, Event, Identity, Limits, PeerId, Shard};
use wraith_sim::{Pair, Rng, Side};

use crate::support::{Attacker, Budget, Reach, Strangers, foreign, full, play, victims};

struct Eavesdropper;

impl Attacker for Eavesdropper {
    fn act(&mut self, _: &mut Reach<'_>) {}
}

/// Real cryptography that keeps what it encrypted.
#[derive(Debug, Default)]
struct Confidant(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    plaintexts: Vec<Vec<u8>>,
    /// The difference of plaintext and ciphertext: the first 8 bytes of each packet's key stream.
    streams: Vec<u64>,
}

struct ConfidentKey {
    key: Box<dyn PacketKey>,
    heard: Arc<Mutex<Heard>>,
}

impl CryptoProvider for Confidant {
    fn suites(&self) -> &[Suite] {
        RustCrypto.suites()
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        Box::new(ConfidentKey { key: RustCrypto.key(suite, material), heard: Arc::clone(&self.0) })
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        RustCrypto.header_key(suite, key)
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        RustCrypto.x25519_key(secret)
    }
}

impl PacketKey for ConfidentKey {
    fn seal_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) {
        let plaintext = packet[..packet.len() - TAG_LEN].to_vec();
        self.key.seal_in_place(packet_number, header, packet);
        let mut heard = self.heard.lock().expect("one thread");
        if let (Some(plain), Some(sealed)) = (plaintext.first_chunk(), packet.first_chunk()) {
            heard.streams.push(u64::from_be_bytes(*plain) ^ u64::from_be_bytes(*sealed));
        }
        heard.plaintexts.push(plaintext);
    }

    fn open_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        self.key.open_in_place(packet_number, header, packet)
    }
}

/// Every piece of `N` bytes.
fn pieces<'a, const N: usize>(texts: impl IntoIterator<Item = &'a [u8]>) -> HashSet<[u8; N]> {
    texts.into_iter().flat_map(|text| text.array_windows().copied().collect::<Vec<_>>()).collect()
}

fn finds<const N: usize>(wire: &[u8], pieces: &HashSet<[u8; N]>) -> bool {
    wire.array_windows().any(|piece| pieces.contains(piece))
}

/// Budget: no datagrams, all bytes. It must not find 16 bytes of what was said or exported, of either `PeerId` or the keys
/// that belong to it; nor 8 bytes of a packet's plaintext, with which it would know streams, offsets and lengths; nor two
/// packets under one key stream.
///
/// `PROTO §3.5, §3.6, §3.9, §5.4`
#[test]
fn an_eavesdropper_finds_no_piece_of_what_is_said_and_by_whom() {
    let confidant: &'static Confidant = Box::leak(Box::default());
    let mut config = victims(31).with_both(|config| config.crypto = confidant);
    let identities = [config.left.identity.clone(), config.right.identity.clone()];
    config.record = false;
    let aftermath = play(config, Budget { datagrams: 0, bytes: u64::MAX }, &mut Eavesdropper);
    aftermath.assert_untouched();
    let mut secrets = aftermath.secrets.clone();
    for identity in identities {
        secrets.push(identity.peer_id().as_bytes().to_vec());
        secrets.push(identity.peer_id().static_public().to_vec());
        secrets.push(identity.seed().to_vec());
    }
    let secret: HashSet<[u8; 16]> = pieces(secrets.iter().map(|secret| &secret[..]));
    let Heard { plaintexts: heard, mut streams } =
        std::mem::take(&mut *confidant.0.lock().expect("one thread"));
    let plain: HashSet<[u8; 8]> = pieces(heard.iter().map(|plain| &plain[..]));
    assert!(secret.len() > 160_000 && plain.len() > 160_000, "{} and {}", secret.len(), plain.len());
    let mut protected = 0;
    for sent in &aftermath.seen {
        assert!(!finds(&sent.bytes, &secret), "{:?}", sent.kind());
        if !is_handshake(&sent.bytes) {
            protected += 1;
            assert!(!finds(&sent.bytes[9..], &plain));
        }
    }
    assert!(protected > 300, "{protected}");
    // No two packets are under the same key stream, of which each would tell the other.
    let packets = streams.len();
    streams.sort_unstable();
    streams.dedup();
    assert!(packets > 300 && streams.len() == packets, "{packets} packets, {} key streams", streams.len());
    // The same search finds what is there: packets before they were encrypted, in pieces of either size.
    assert!(heard.iter().filter(|plain| finds(plain, &secret)).count() > 100);
}

/// Chi-square of bytes against the even distribution over `values` values: its mean is `values - 1`, its variance twice that.
fn is_even(bytes: impl IntoIterator<Item = u8>, values: usize) -> bool {
    let mut counts = vec![0_u32; values];
    let mut total = 0_u32;
    for byte in bytes {
        counts[usize::from(byte)] += 1;
        total += 1;
    }
    let expected = f64::from(total) / values as f64;
    assert!(expected > 2.0, "too few bytes to tell");
    let square: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    let freedom = values as f64 - 1.0;
    (square - freedom).abs() < 6.0 * (2.0 * freedom).sqrt()
}

/// Protected packets from left to right in one session of one suite.
fn packets(suite: &'static [Suite], wanted: usize) -> Vec<Vec<u8>> {
    let mut config = victims(32).with_recording().with_both(|config| {
        config.transport = config.transport.with_suites(suite).with_rekey_packets(4096);
    });
    config.left.limits.sent_packets = 16_384;
    let mut pair = Pair::new(config);
    let (left, _) = pair.connect();
    let len = wanted * 1180;
    let mut session = pair.left.endpoint.session(left).expect("open");
    let stream = session.open(Dir::Uni).expect("the peer allows it");
    session.attach(stream, len as u64).expect("the stream is new");
    pair.left.host.serve(left, stream, vec![0; len]);
    let done = |pair: &Pair| pair.left.host.saw(left, Event::Delivered(stream));
    assert!(pair.run_until(done, Duration::from_mins(5)), "the stream arrives");
    let sent = pair.transcript().entries().filter(|sent| sent.sender == 0 && !is_handshake(sent.bytes));
    sent.map(|sent| sent.bytes.to_vec()).collect()
}

/// Budget: no datagrams, 10,000 packets of one session in each suite, full of zeros. It must not tell a packet number from
/// random bytes: no fixed bytes, no counter, no difference that comes again, and nothing of the plaintext behind it.
///
/// `PROTO §5.2, §5.7`
#[test]
fn packet_numbers_and_bodies_look_random() {
    for suite in [&[Suite::XChaCha20Poly1305][..], &[Suite::Aes256Gcm, Suite::XChaCha20Poly1305]] {
        let packets = packets(suite, 10_000);
        assert!(packets.len() >= 10_000, "{}", packets.len());
        assert!(packets.iter().all(|packet| packet[0] >> 5 == 0b010));
        assert!(is_even(packets.iter().map(|packet| packet[0] & 0x1f), 32), "{suite:?}: first bytes");
        for at in 9..PACKET_HEADER_LEN + 16 {
            assert!(is_even(packets.iter().map(|packet| packet[at]), 256), "{suite:?}: bytes {at}");
        }
        let number = |packet: &[u8]| u32::from_be_bytes(*packet[9..].first_chunk().expect("4 bytes"));
        let mut steps = BTreeMap::<u32, u32>::new();
        for pair in packets.windows(2) {
            *steps.entry(number(&pair[1]).wrapping_sub(number(&pair[0]))).or_default() += 1;
        }
        assert!(steps.values().all(|&times| times <= 2), "{suite:?}: a step that comes again");
    }
}

/// The counterpart: the same measure tells a counter and a constant.
#[test]
fn a_counter_in_the_clear_does_not_look_random() {
    assert!(!is_even((0..10_000_u32).map(|number| (number >> 8) as u8), 256));
    assert!(!is_even((0..10_000_u32).map(|_| 7), 256));
    let mut rng = Rng::new(1);
    assert!(is_even((0..10_000).map(|_| rng.next_u64() as u8), 256));
}

/// Budget: the second messages of one endpoint to 1,000 strangers. It must not find anything in connection ids of different
/// handshakes that they share but the shard.
///
/// `PROTO §5.11`
#[test]
fn connection_ids_share_nothing_but_the_shard() {
    let mut config = victims(33).with_recording();
    config.right.shard = Shard { index: 3, count: 8 };
    config.right.limits = Limits { handshakes: 8000, handshake_rate: 100_000, ..config.right.limits };
    let mut pair = Pair::new(config);
    let mut strangers = Strangers::new(34);
    for stranger in 0..1000_u16 {
        // Each from a prefix of its own, so that nobody is asked for a cookie.
        let mut from = foreign(1, 1);
        from.set_ip(std::net::Ipv4Addr::new(11, (stranger >> 8) as u8, stranger as u8, 1).into());
        let init = strangers.next(&[0; 16]);
        pair.inject(Side::Right, from, &init);
        pair.run_for(Duration::from_millis(1));
    }
    let responses = pair
        .transcript()
        .entries()
        .filter(|sent| HandshakeKind::of(sent.bytes) == Some(HandshakeKind::Response));
    let ids: BTreeSet<[u8; 8]> =
        responses.map(|sent| *sent.bytes[13..].first_chunk().expect("8 bytes")).collect();
    assert_eq!(ids.len(), 1000);
    assert!(ids.iter().all(|id| id[0] >> 5 == 3));
    assert!(is_even(ids.iter().map(|id| id[0] - 96), 32));
    for at in 1..8 {
        assert!(is_even(ids.iter().map(|id| id[at]), 256), "byte {at}");
    }
}

/// Budget: sealed datagrams and messages of several senders to several recipients, and every `PeerId` that there is. It must
/// not find out sender or recipient: no 16 bytes of them, of id or body, and nothing that messages of one sender or to one
/// recipient share but the prefix and the header of the segment.
///
/// `PROTO §12.2, §12.10`
#[test]
fn sealed_messages_tell_neither_sender_nor_recipient() {
    let mut mailboxes: Vec<_> =
        (1..=3_u8).map(|seed| Mailbox::new(Identity::from_seed([seed; 32]), &RustCrypto, 3)).collect();
    let peers: Vec<PeerId> = mailboxes.iter().map(Mailbox::peer_id).collect();
    let mut rng = Rng::new(35);
    let body = rng.bytes32();
    let mut secrets = vec![body.to_vec()];
    let mut wire: Vec<(bool, usize, usize, Vec<u8>)> = Vec::new();
    for round in 0..if full() { 600 } else { 120 } {
        let (from, to, sign) = (round % 3, (round / 3) % 3, round % 2 == 1);
        let id = *rng.bytes32().first_chunk().expect("32 bytes");
        secrets.push(id.to_vec());
        let letter = Letter { to: peers[to], id: MessageId(id), time: 1_800_000_000_000, sign };
        let mut datagram = vec![0; 1200];
        let len = mailboxes[from].seal_datagram(&letter, &rng.bytes32(), &body, &mut datagram).expect("room");
        datagram.truncate(len);
        wire.push((true, from, to, datagram));
        let mut message = Vec::new();
        mailboxes[from].seal(&letter, &rng.bytes32(), &body, &mut message).expect("it is sealed");
        wire.push((false, from, to, message));
    }
    for peer in &peers {
        secrets.push(peer.as_bytes().to_vec());
        secrets.push(peer.static_public().to_vec());
    }
    let secret: HashSet<[u8; 16]> = pieces(secrets.iter().map(|secret| &secret[..]));
    assert!(wire.iter().all(|(.., bytes)| !finds(bytes, &secret)));
    // Behind what all have in common no two share 8 bytes at any place.
    let mut seen = HashSet::<[u8; 8]>::new();
    for (is_datagram, from, to, bytes) in &wire {
        let (prefix, rest) = bytes.split_at(if *is_datagram { 1 } else { 8 });
        assert_eq!(prefix, if *is_datagram { &b"a"[..] } else { b"WRAITHS\x01" });
        let head = if *is_datagram { rest.len() } else { 161 - 8 };
        for part in [&rest[..head], &rest[(head + 4).min(rest.len())..]] {
            for piece in part.array_windows() {
                assert!(seen.insert(*piece), "of {from} to {to}");
            }
        }
    }
}
