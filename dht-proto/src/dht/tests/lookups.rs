//! How many nodes a lookup asks, how long it waits for them, and which answer it takes.

use super::*;
use crate::message::{write_nodes, write_record};

/// A node of a private network: no prefix is full there.
fn private(at: u16) -> NodeRef {
    let [high, low] = at.to_be_bytes();
    let mut key = [9; 32];
    key[..2].copy_from_slice(&[high, low]);
    NodeRef { key, address: SocketAddr::from(([10, 0, high, low], 5)) }
}

/// Whoever knows the first `count` of them.
fn who_knows(count: u16) -> Peer {
    let mut peer = Peer::new(1);
    for at in 0..count {
        peer.dht.table.answered(private(at).into(), [1; 16], 0);
    }
    peer
}

#[test]
fn a_lookup_makes_120_requests_whatever_the_answers_say() {
    // PROTO §14.11
    let (mut asks, target) = (who_knows(1), Id::from_bytes([7; 32]));
    asks.dht.get(target, Kind::Value, NOW).unwrap();
    // Each answer names nodes that are nearer than all before.
    let mut named: Vec<Node> = (1..4_000).map(|at| private(at).into()).collect();
    named.sort_by_key(|node| core::cmp::Reverse(node.id().place().distance(target.place())));
    let mut named = named.chunks(20);
    let mut asked = 0;
    // Pings among them wait.
    while let Some((to, request)) = core::iter::from_fn(|| asks.sends(NOW)).find(|(_, sent)| sent[25] == 3) {
        let mut list = [0; MAX_UNSEALED];
        let mut w = Writer::new(&mut list);
        write_nodes(&mut w, named.next().unwrap().iter().copied()).unwrap();
        asks.handle(to, &forged(&request, &[&[0], w.written()].concat())).unwrap();
        asked += 1;
    }
    assert_eq!(asked, 120);
    assert!(matches!(asks.dht.poll_event(), Some(Event::Ended(_, Outcome::NotFound))));
}

#[test]
fn another_is_asked_beside_a_silent_node_after_300_ms_and_in_its_place_after_1500() {
    // PROTO §14.7, §14.11
    let mut asks = who_knows(15);
    asks.dht.find(Id::from_bytes([7; 32]), NOW).unwrap();
    let (mut now, mut sent) = (NOW, vec![]);
    while now <= NOW.saturating_add(Duration::from_millis(1_500)) {
        while asks.sends(now).is_some() {
            sent.push(now.saturating_since(NOW).as_millis());
        }
        now = asks.dht.poll_timeout();
        asks.dht.handle_timeout(now);
    }
    assert_eq!(sent, [0, 300, 600, 900, 1_500].map(|at| [at; 3]).concat(), "three paths, and 12 that wait");
}

#[test]
fn of_signed_records_the_highest_number_that_verifies_is_taken_once_all_have_answered() {
    // PROTO §14.13
    let (mut asks, owner) = (who_knows(4), Identity::from_seed([99; 32]));
    let peer = owner.peer_id();
    asks.dht.get(crate::signed_key(&peer, 0), Kind::Signed, NOW).unwrap();
    for seq in [5, 7, 9, 6] {
        let (to, request) = asks.sends(NOW).unwrap();
        let mut signature = crate::sign(&owner, 0, seq, b"value").unwrap();
        signature[0] ^= u8::from(seq == 9);
        let signed =
            crate::Signed { peer: peer.as_bytes(), salt: 0, seq, signature: &signature, value: b"value" };
        let mut found = [0; MAX_UNSEALED];
        let mut w = Writer::new(&mut found);
        write_record(&mut w, &Record::Signed(signed)).unwrap();
        // It names no nodes.
        w.u8(0).unwrap();
        asks.handle(to, &forged(&request, w.written())).unwrap();
    }
    match asks.dht.poll_event() {
        Some(Event::Ended(_, Outcome::Found { record, .. })) => assert_eq!(record.seq(), 7),
        other => panic!("{other:?}"),
    }
}
