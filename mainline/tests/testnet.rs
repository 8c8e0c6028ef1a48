//! Against nodes of the `BitTorrent` DHT on loopback, which are the crate's own.

#![forbid(unsafe_code)]

#[path = "testnet/net.rs"]
mod net;

use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use ed25519_dalek::{Signer as _, SigningKey};
use futures_lite::future::block_on;
use mainline::{Dht, MutableItem};
use net::Net;
use wraith_mainline::{FindError, GetError, Limit, Mainline, PublishError, PutError, record_key};
use wraith_proto::Identity;

/// Nothing here takes as long.
const PATIENCE: Duration = Duration::from_mins(1);

fn limit(patience: Duration) -> Limit<'static> {
    Limit { deadline: Instant::now() + patience, is_stopped: &|| false }
}

fn node(testnet: &Net) -> Mainline {
    Mainline::start(Ipv4Addr::LOCALHOST, &testnet.bootstrap).unwrap()
}

fn ports(found: &[std::net::SocketAddrV4]) -> Vec<u16> {
    let mut ports: Vec<_> = found.iter().map(std::net::SocketAddrV4::port).collect();
    ports.sort_unstable();
    ports
}

#[test]
fn content_is_found_where_it_was_published_and_other_content_is_not() {
    let testnet = Net::new();
    let (provider, finder) = (node(&testnet), node(&testnet));
    provider.publish_content(&[1; 32], 4_001, limit(PATIENCE)).unwrap();
    assert_eq!(finder.find_content(&[1; 32], limit(PATIENCE)), Ok(vec!["127.0.0.1:4001".parse().unwrap()]));
    assert_eq!(finder.find_content(&[2; 32], limit(PATIENCE)), Ok(Vec::new()));
}

#[test]
fn a_peer_that_moved_is_found_at_its_new_address_too_and_is_no_content() {
    let testnet = Net::new();
    let (before, after, finder) = (node(&testnet), node(&testnet), node(&testnet));
    let peer = Identity::from_seed([3; 32]).peer_id();
    before.publish_peer(&peer, 4_001, limit(PATIENCE)).unwrap();
    assert_eq!(ports(&finder.find_peer(&peer, limit(PATIENCE)).unwrap()), [4_001]);
    drop(before);
    after.publish_peer(&peer, 4_002, limit(PATIENCE)).unwrap();
    let late = node(&testnet);
    assert_eq!(ports(&late.find_peer(&peer, limit(PATIENCE)).unwrap()), [4_001, 4_002]);
    assert_eq!(late.find_content(peer.as_bytes(), limit(PATIENCE)), Ok(Vec::new()));
}

#[test]
fn a_record_is_got_by_its_key_and_salt_and_a_higher_sequence_number_replaces_it() {
    let testnet = Net::new();
    let (owner, reader) = (node(&testnet), node(&testnet));
    let identity = Identity::from_seed([4; 32]);
    let stored = owner.put_record(&identity, 7, 5, b"first", limit(PATIENCE)).unwrap();
    assert_eq!(stored.key, record_key(&identity));
    assert!(stored.nodes > 0);
    let record = reader.get_record(&stored.key, 7, limit(PATIENCE)).unwrap();
    assert_eq!((record.peer, record.salt, record.seq), (identity.peer_id(), 7, 5));
    assert_eq!(record.value, b"first");

    owner.put_record(&identity, 7, 6, b"second", limit(PATIENCE)).unwrap();
    let late = node(&testnet);
    let record = late.get_record(&stored.key, 7, limit(PATIENCE)).unwrap();
    assert_eq!((record.seq, &*record.value), (6, &b"second"[..]));
    let outdated = late.put_record(&identity, 7, 4, b"old", limit(PATIENCE));
    assert_eq!(outdated, Err(PutError::Outdated));

    assert_eq!(late.get_record(&stored.key, 8, limit(PATIENCE)), Err(GetError::NotFound), "another salt");
    let id = identity.peer_id();
    assert_eq!(late.get_record(id.as_bytes(), 7, limit(PATIENCE)), Err(GetError::NotFound), "not by the id");
}

#[test]
fn the_longest_value_is_stored_and_a_longer_one_is_not_even_sent() {
    let testnet = Net::new();
    let node = node(&testnet);
    let identity = Identity::from_seed([5; 32]);
    let value = vec![0x5a; wraith_mainline::MAX_VALUE + 1];
    let stored =
        node.put_record(&identity, 0, wraith_mainline::MAX_SEQ, &value[1..], limit(PATIENCE)).unwrap();
    let record = self::node(&testnet).get_record(&stored.key, 0, limit(PATIENCE)).unwrap();
    assert_eq!((record.seq, record.value), (wraith_mainline::MAX_SEQ, value[1..].to_vec()));
    assert_eq!(node.put_record(&identity, 1, 0, &value, limit(PATIENCE)), Err(PutError::TooLong));
    let too_high = node.put_record(&identity, 1, 1 << 63, b"", limit(PATIENCE));
    assert_eq!(too_high, Err(PutError::SeqTooHigh));
}

/// The item that carries a record with these parts.
fn item(identity: &Identity, certificate: [u8; 64], signature: [u8; 64], value: &[u8]) -> Vec<u8> {
    [&[1], &identity.peer_id().as_bytes()[..], &certificate, &signature, value].concat()
}

/// Items that BEP 44 finds good, since whoever has the derived key signed them, are refused one by one, and do not hide a
/// genuine one.
#[test]
fn a_record_with_a_wrong_certificate_a_wrong_signature_or_a_foreign_salt_is_refused() {
    let testnet = Net::new();
    let identity = Identity::from_seed([6; 32]);
    let derived = SigningKey::from_bytes(&blake3::derive_key("WRAITH v1 mainline", identity.seed()));
    let key = derived.verifying_key().to_bytes();
    assert_eq!(key, record_key(&identity));
    let own = SigningKey::from_bytes(identity.seed());
    let certificate = own.sign(&[b"WRAITH v1 mainline\0", &key[..]].concat()).to_bytes();
    let other = SigningKey::from_bytes(&[9; 32]);
    let false_certificate = other.sign(&[b"WRAITH v1 mainline\0", &key[..]].concat()).to_bytes();
    let signature = |salt, seq| wraith_dht_proto::sign(&identity, salt, seq, b"value").unwrap();
    let mut false_signature = signature(2, 1);
    false_signature[5] ^= 1;

    let raw = Dht::builder().bootstrap(&testnet.bootstrap).bind_address(Ipv4Addr::LOCALHOST).build().unwrap();
    let raw = raw.as_async();
    let put = |salt: u64, seq: i64, value: Vec<u8>| {
        let item = MutableItem::new(derived.clone(), &value, seq, Some(&salt.to_be_bytes()));
        block_on(raw.put_mutable(item, None)).unwrap()
    };
    put(1, 1, item(&identity, false_certificate, signature(1, 1), b"value"));
    put(2, 1, item(&identity, certificate, false_signature, b"value"));
    put(3, 1, item(&identity, certificate, signature(4, 1), b"value"));
    put(4, 2, item(&identity, certificate, signature(4, 1), b"value"));
    put(5, 1, item(&identity, certificate, signature(5, 1), b"value"));
    let reader = node(&testnet);
    let read = |salt| reader.get_record(&key, salt, limit(PATIENCE));
    assert_eq!(read(1), Err(GetError::Forged), "the certificate");
    assert_eq!(read(2), Err(GetError::Forged), "the signature");
    assert_eq!(read(3), Err(GetError::Forged), "the salt of another record");
    assert_eq!(read(4), Err(GetError::Forged), "the sequence number of another record");
    assert_eq!(read(5).unwrap().value, b"value");
}

#[test]
fn where_nobody_answers_each_verb_ends_by_saying_so() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let bootstrap = [silent.local_addr().unwrap().to_string()];
    let node = Mainline::start(Ipv4Addr::LOCALHOST, &bootstrap).unwrap();
    let identity = Identity::from_seed([7; 32]);
    let peer = identity.peer_id();
    // Each waits for an answer: side by side.
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(node.find_content(&[1; 32], limit(PATIENCE)), Err(FindError::NoNodes)));
        scope.spawn(|| assert_eq!(node.publish_peer(&peer, 1, limit(PATIENCE)), Err(PublishError::NoNodes)));
        scope.spawn(|| assert_eq!(node.get_record(&[1; 32], 0, limit(PATIENCE)), Err(GetError::NoNodes)));
        scope.spawn(|| {
            assert_eq!(node.put_record(&identity, 0, 0, b"", limit(PATIENCE)), Err(PutError::NoNodes));
        });
    });
    // A node waits for 2 s for an answer.
    let short = || limit(Duration::from_millis(100));
    assert_eq!(node.find_peer(&peer, short()), Err(FindError::Deadline));
    assert_eq!(node.publish_content(&[2; 32], 1, short()), Err(PublishError::Deadline));
    assert_eq!(node.get_record(&[2; 32], 0, short()), Err(GetError::Deadline));
    assert_eq!(node.put_record(&identity, 1, 0, b"", short()), Err(PutError::Deadline));
}

#[test]
fn who_stops_waits_no_longer() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let bootstrap = [silent.local_addr().unwrap().to_string()];
    let node = Mainline::start(Ipv4Addr::LOCALHOST, &bootstrap).unwrap();
    let stopped = Limit { deadline: Instant::now() + PATIENCE, is_stopped: &|| true };
    let begun = Instant::now();
    assert_eq!(node.find_content(&[1; 32], stopped), Err(FindError::Stopped));
    assert_eq!(node.publish_content(&[1; 32], 1, stopped), Err(PublishError::Stopped));
    assert!(begun.elapsed() < PATIENCE / 2);
}

#[test]
fn a_record_that_another_has_replaced_meanwhile_is_not_replaced() {
    let testnet = Net::new();
    let (owner, other) = (node(&testnet), node(&testnet));
    let identity = Identity::from_seed([8; 32]);
    let stored = owner.put_record(&identity, 1, 5, b"first", limit(PATIENCE)).unwrap();
    owner.replace_record(&identity, 1, 5, 7, b"second", limit(PATIENCE)).unwrap();
    let late = other.replace_record(&identity, 1, 5, 8, b"third", limit(PATIENCE));
    assert_eq!(late, Err(PutError::Conflict));
    let record = node(&testnet).get_record(&stored.key, 1, limit(PATIENCE)).unwrap();
    assert_eq!((record.seq, &*record.value), (7, &b"second"[..]));
    let never = other.replace_record(&identity, 1, 1 << 63, 9, b"", limit(PATIENCE));
    assert_eq!(never, Err(PutError::Conflict), "no record has that number");
}
