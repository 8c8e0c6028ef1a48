//! Nodes whose messages are sealed: what is carried is what was meant, and nothing else.

use std::net::SocketAddr;
use std::time::Duration;

use wraith_dht_proto::{
    DropReason, Event, Header, Kind, Limits, MAX_DATAGRAM, MAX_SIGNED_VALUE, MAX_VALUE, NodeRef, Outcome,
    Record, SealedDht, Signed, sign, signed_key, value_key,
};
use wraith_proto::crypto::RustCrypto;
use wraith_proto::{Identity, Instant};

const NOW: Instant = Instant::from_nanos(3_600_000_000_000);

struct Host {
    node: SealedDht,
    me: NodeRef,
}

impl Host {
    fn new(at: u8) -> Self {
        let identity = Identity::from_seed([at; 32]);
        let me = NodeRef::new(&identity.peer_id(), SocketAddr::from(([9, at, 1, 1], 5)));
        let node = SealedDht::new(&Limits::default(), identity, &RustCrypto, 512, &[at; 32], NOW);
        Self { node, me }
    }

    fn sends(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let mut buffer = [0; MAX_DATAGRAM];
        let (to, len) = self.node.poll_transmit(NOW, &mut buffer)?;
        Some((to, buffer[..len].to_vec()))
    }

    fn takes(&mut self, from: SocketAddr, datagram: &[u8]) -> Result<(), DropReason> {
        assert!(SealedDht::takes(datagram));
        self.node.handle(NOW, from, &mut datagram.to_vec())
    }
}

/// Carries datagrams until nobody has one, and says how long the longest was.
fn carry(hosts: &mut [Host]) -> usize {
    let mut longest = 0;
    while let Some((from, (to, datagram))) =
        hosts.iter_mut().find_map(|host| Some((host.me.address, host.sends()?)))
    {
        longest = longest.max(datagram.len());
        if let Some(host) = hosts.iter_mut().find(|host| host.me.address == to) {
            host.takes(from, &datagram).unwrap();
        }
    }
    longest
}

fn network(count: u8) -> Vec<Host> {
    let mut hosts: Vec<Host> = (0..count).map(Host::new).collect();
    let first = hosts[0].me;
    for at in 1..hosts.len() {
        hosts[at].node.dht_mut().bootstrap(first, NOW);
        carry(&mut hosts);
        assert!(matches!(hosts[at].node.dht_mut().poll_event(), Some(Event::Joined(1..))));
    }
    hosts
}

#[test]
fn the_longest_records_are_stored_and_found_within_datagrams_that_every_path_carries() {
    // PROTO §14.2, §14.5
    let owner = Identity::from_seed([77; 32]);
    let (value, signed_value) = ([5; MAX_VALUE], [6; MAX_SIGNED_VALUE]);
    let (peer, signature) = (owner.peer_id(), sign(&owner, 1, 2, &signed_value).unwrap());
    let signed =
        Signed { peer: peer.as_bytes(), salt: 1, seq: 2, signature: &signature, value: &signed_value };
    for (record, key, kind) in [
        (Record::Value(&value), value_key(&value), Kind::Value),
        (Record::Signed(signed), signed_key(&peer, 1), Kind::Signed),
    ] {
        let mut hosts = network(12);
        hosts[3].node.dht_mut().put(&record, None, NOW).unwrap();
        assert!(carry(&mut hosts) <= MAX_DATAGRAM);
        match hosts[3].node.dht_mut().poll_event() {
            Some(Event::Ended(_, Outcome::Stored { nodes: 11, conflict: None })) => {}
            other => panic!("{other:?}"),
        }
        let mut late = Host::new(100);
        late.node.dht_mut().bootstrap(hosts[0].me, NOW);
        hosts.push(late);
        carry(&mut hosts);
        let late = hosts.last_mut().unwrap();
        assert!(matches!(late.node.dht_mut().poll_event(), Some(Event::Joined(12))));
        late.node.dht_mut().get(key, kind, NOW).unwrap();
        assert!(carry(&mut hosts) <= MAX_DATAGRAM);
        match hosts.pop().unwrap().node.dht_mut().poll_event() {
            Some(Event::Ended(_, Outcome::Found { record: found, .. })) => assert_eq!(found, record),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_altered_or_foreign_datagram_changes_nothing_and_the_genuine_one_counts() {
    // PROTO §14.2, §14.6
    let (mut asks, mut other) = (Host::new(1), Host::new(2));
    asks.node.dht_mut().bootstrap(other.me, NOW);
    let (_, request) = asks.sends().unwrap();
    assert_eq!(request.len(), MAX_DATAGRAM);
    let longer = [&request[..], &[0]].concat();
    assert_eq!(other.takes(asks.me.address, &longer), Err(DropReason::Malformed));
    let mut third = Host::new(3);
    assert_eq!(third.takes(asks.me.address, &request), Err(DropReason::NotGenuine));
    for at in [1, 9, 25, 57, 105, request.len() - 1] {
        let mut altered = request.clone();
        altered[at] ^= 1;
        assert_eq!(other.takes(asks.me.address, &altered), Err(DropReason::NotGenuine), "{at}");
        assert!(other.sends().is_none());
    }
    assert_eq!(other.takes(asks.me.address, &request[..request.len() - 1]), Ok(()));
    let (_, token) = other.sends().unwrap();
    assert!(matches!(Header::parse(&token), Ok((Header::Token { .. }, _))));
    other.takes(asks.me.address, &request).unwrap();
    let (_, answer) = other.sends().unwrap();
    for at in [9, 41, answer.len() - 1] {
        let mut altered = answer.clone();
        altered[at] ^= 1;
        assert_eq!(asks.takes(other.me.address, &altered), Err(DropReason::NotGenuine));
    }
    assert_eq!(asks.takes(asks.me.address, &answer), Err(DropReason::Unasked));
    assert_eq!(asks.node.dht().contact_count(), 0);
    asks.takes(other.me.address, &answer).unwrap();
    assert_eq!(asks.node.dht().contacts().collect::<Vec<_>>(), [other.me]);
}

#[test]
fn a_request_that_is_played_back_from_elsewhere_is_answered_there_with_no_more_bytes() {
    // PROTO §14.5: who replays cannot make a node send more than was sent to it.
    let mut hosts = network(30);
    let target = hosts[7].node.dht().id();
    hosts[5].node.dht_mut().find(target, NOW).unwrap();
    let (to, request) = hosts[5].sends().unwrap();
    let victim = SocketAddr::from(([60, 1, 1, 1], 9));
    let host = hosts.iter_mut().find(|host| host.me.address == to).unwrap();
    host.takes(victim, &request).unwrap();
    let (to, answer) = host.sends().unwrap();
    assert_eq!(to, victim);
    assert!(answer.len() <= request.len());
}

#[test]
fn a_named_node_without_a_valid_key_is_given_up_without_waiting() {
    let mut alone = Host::new(1);
    let nobody = NodeRef { key: [2; 32], address: SocketAddr::from(([9, 2, 1, 1], 5)) };
    alone.node.dht_mut().bootstrap(nobody, NOW);
    assert!(alone.sends().is_none());
    alone.node.dht_mut().handle_timeout(NOW.saturating_add(Duration::from_millis(1)));
    assert!(matches!(alone.node.dht_mut().poll_event(), Some(Event::Joined(0))));
}
