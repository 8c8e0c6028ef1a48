use std::time::Duration;

use wraith_dht_proto::{Id, Kind, Outcome, Record, value_key};

use super::*;

const NOW: Instant = Instant::from_nanos(3_600_000_000_000);

/// A queue with room for so many datagrams.
struct Wire {
    room: usize,
    sent: Vec<(TxMeta, Vec<u8>)>,
}

impl Wire {
    fn new(room: usize) -> Self {
        Self { room, sent: Vec::new() }
    }
}

impl TxQueue for Wire {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        if self.sent.len() == self.room {
            return None;
        }
        self.sent.push((*meta, vec![0; len]));
        self.sent.last_mut().map(|(_, bytes)| &mut bytes[..])
    }

    fn commit(&mut self, len: usize) {
        assert_eq!(self.sent.last().map(|(_, bytes)| bytes.len()), Some(len));
    }
}

struct Host {
    part: DhtPart,
    me: Target,
}

impl Host {
    fn new(at: u8, role: Role, seeds: &[&Self]) -> Self {
        let identity = Identity::from_seed([at; 32]);
        let me = Target { id: identity.peer_id(), addr: SocketAddr::from(([127, 0, 0, at], 5)) };
        let seeds = seeds.iter().map(|host| host.me).collect();
        Self { part: DhtPart::new(identity, role, seeds, NOW).unwrap(), me }
    }

    fn meta(&self) -> RxMeta {
        RxMeta { from: self.me.addr, to: None, via: Via(0), ecn: Ecn::NotEct }
    }

    fn sends(&mut self, room: usize) -> Vec<(TxMeta, Vec<u8>)> {
        let mut wire = Wire::new(room);
        self.part.on_transmit(NOW, &mut wire);
        wire.sent
    }

    fn takes(&mut self, meta: RxMeta, datagram: &[u8]) {
        assert!(self.part.on_sealed(NOW, &meta, &mut datagram.to_vec()));
    }
}

/// Carries datagrams, as many at a time as there are, until nobody has one.
fn carry(hosts: &mut [Host]) {
    loop {
        let mut any = false;
        for at in 0..hosts.len() {
            hosts[at].part.on_turn(NOW);
            let meta = hosts[at].meta();
            for (to, datagram) in hosts[at].sends(usize::MAX) {
                any = true;
                if let Some(host) = hosts.iter_mut().find(|host| host.me.addr == to.to) {
                    host.takes(meta, &datagram);
                }
            }
        }
        if !any {
            return;
        }
    }
}

#[test]
fn a_batch_of_requests_is_answered_though_the_node_itself_has_room_for_few() {
    let mut node = Host::new(1, Role::Node, &[]);
    let mut others: Vec<_> = (2..62).map(|at| Host::new(at, Role::Client, &[&node])).collect();
    for other in &mut others {
        let meta = other.meta();
        for (_, datagram) in other.sends(usize::MAX) {
            node.takes(meta, &datagram);
        }
    }
    let first = node.sends(7);
    let rest = node.sends(usize::MAX);
    assert_eq!(first.len(), 7, "what has no room waits");
    // Between them the node asks whom it would like to know.
    let answers = first.iter().chain(&rest).filter(|(_, datagram)| datagram[0] != 0x62);
    let answered: Vec<_> = answers.map(|(meta, _)| meta.to).collect();
    assert_eq!(answered, others.iter().map(|other| other.me.addr).collect::<Vec<_>>());
}

#[test]
fn an_answer_leaves_by_the_address_and_the_way_that_the_request_came_by() {
    let mut node = Host::new(1, Role::Node, &[]);
    let mut client = Host::new(2, Role::Client, &[&node]);
    let request = client.sends(1).pop().unwrap();
    let own = "127.0.0.9".parse().unwrap();
    let mapped = "[::ffff:127.0.0.2]:5".parse().unwrap();
    node.takes(RxMeta { from: mapped, to: Some(own), via: Via(3), ecn: Ecn::Ce }, &request.1);
    let (meta, _) = node.sends(1).pop().unwrap();
    assert_eq!(meta, TxMeta { to: client.me.addr, from: Some(own), via: Via(3), ecn: Ecn::NotEct });
}

#[test]
fn a_client_asks_and_gets_into_no_table() {
    let mut hosts = vec![Host::new(1, Role::Node, &[])];
    let node = Host::new(2, Role::Node, &[&hosts[0]]);
    hosts.push(node);
    carry(&mut hosts);
    let client = Host::new(3, Role::Client, &[&hosts[0]]);
    hosts.push(client);
    carry(&mut hosts);
    assert!(matches!(hosts[2].part.poll_event(), Some(Event::Joined(2))));
    let id = hosts[2].part.dht_mut().put(&Record::Value(b"x"), None, NOW).unwrap();
    carry(&mut hosts);
    match hosts[2].part.poll_event() {
        Some(Event::Ended(ended, Outcome::Stored { nodes: 2, conflict: None })) => assert_eq!(ended, id),
        other => panic!("{other:?}"),
    }
    let client = NodeRef::new(&hosts[2].me.id, hosts[2].me.addr);
    for host in &hosts[..2] {
        assert!(host.part.dht().holds(&value_key(b"x"), Kind::Value, NOW));
        assert!(host.part.dht().contacts().all(|contact| contact != client));
    }
}

#[test]
fn nodes_that_do_not_answer_are_asked_again_ever_more_seldom_and_all_in_turn() {
    let silent: Vec<_> = (10..60).map(|at| Host::new(at, Role::Node, &[])).collect();
    let mut node = Host::new(1, Role::Node, &silent.iter().collect::<Vec<_>>());
    let (mut asked, mut begun, mut now) = (std::collections::BTreeSet::new(), Vec::new(), NOW);
    let end = NOW.saturating_add(Duration::from_mins(10));
    let mut alone = true;
    while now < end {
        node.part.on_turn(now);
        while let Some(event) = node.part.poll_event() {
            assert!(matches!(event, Event::Joined(0)), "{event:?}");
            alone = true;
        }
        let mut wire = Wire::new(usize::MAX);
        node.part.on_transmit(now, &mut wire);
        if alone && !wire.sent.is_empty() {
            begun.push(now.saturating_since(NOW));
            alone = false;
        }
        asked.extend(wire.sent.iter().map(|(meta, _)| meta.to));
        now = node.part.wake_at().max(now.saturating_add(Duration::from_millis(1)));
    }
    assert_eq!(asked.len(), silent.len());
    assert!((8..20).contains(&begun.len()), "{begun:?}");
    let last = begun[begun.len() - 1].saturating_sub(begun[begun.len() - 2]);
    assert!(begun[1] < Duration::from_secs(15) && last >= Duration::from_secs(32), "{begun:?}");
}

/// Whom `node` asks until it has asked all, and when it last asked somebody for the first time.
fn asks(node: &mut Host, others: usize) -> (Vec<SocketAddr>, Duration) {
    let (mut asked, mut now) = (Vec::new(), NOW);
    while asked.len() < others && now < NOW.saturating_add(Duration::from_mins(1)) {
        node.part.on_turn(now);
        while node.part.poll_event().is_some() {}
        let mut wire = Wire::new(usize::MAX);
        node.part.on_transmit(now, &mut wire);
        for (meta, _) in wire.sent {
            if !asked.contains(&meta.to) {
                asked.push(meta.to);
            }
        }
        now = node.part.wake_at().max(now.saturating_add(Duration::from_millis(1)));
    }
    (asked, now.saturating_since(NOW))
}

#[test]
fn a_hundred_silent_nodes_are_all_asked_before_a_question_is_given_up() {
    let silent: Vec<_> = (10..110).map(|at| Host::new(at, Role::Node, &[])).collect();
    let mut client = Host::new(1, Role::Client, &silent.iter().collect::<Vec<_>>());
    let (asked, took) = asks(&mut client, silent.len());
    assert_eq!(asked.len(), silent.len());
    assert!(took < Duration::from_secs(16), "{took:?}");
}

#[test]
fn a_peer_is_asked_at_its_next_address_at_once_when_the_one_before_is_silent() {
    let other = Host::new(2, Role::Node, &[]).me;
    let at = |host: u8| Target { addr: SocketAddr::from(([127, 0, 0, host], 5)), ..other };
    let seeds = vec![at(7), at(8), at(9)];
    let part = DhtPart::new(Identity::from_seed([1; 32]), Role::Client, seeds.clone(), NOW).unwrap();
    let mut client = Host { part, me: at(1) };
    let (asked, took) = asks(&mut client, 3);
    assert_eq!(asked, seeds.iter().map(|seed| seed.addr).collect::<Vec<_>>());
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn nodes_to_begin_with_come_once_the_first_addresses_first_and_without_the_own() {
    let [own, a, b, c] = [1, 2, 3, 4].map(|at| Host::new(at, Role::Node, &[]).me);
    let elsewhere = |target: Target| Target { addr: SocketAddr::from(([127, 9, 9, 9], 5)), ..target };
    let named = vec![a, elsewhere(a), a, own, elsewhere(own), b, elsewhere(b), c];
    assert_eq!(in_turn(named, &own.id), [a, b, c, elsewhere(a), elsewhere(b)]);
    assert_eq!(in_turn(vec![own], &own.id), []);
}

#[test]
fn datagrams_of_others_are_left_to_the_endpoint() {
    let mut node = Host::new(1, Role::Node, &[]);
    let meta = node.meta();
    for first in [0x60, 0x61, 0x65, 0xc0] {
        assert!(!node.part.on_sealed(NOW, &meta, &mut [first; 100]));
    }
    // Junk of the DHT's form is taken, and changes nothing.
    assert!(node.part.on_sealed(NOW, &meta, &mut [0x62; 1_201]));
    assert!(node.sends(usize::MAX).is_empty());
    assert!(node.part.dht_mut().find(Id::from_bytes([1; 32]), NOW).is_ok());
}
