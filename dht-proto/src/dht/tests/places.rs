//! Who gets a place in a table, and what that costs whom.

use wraith_proto::sealed::NOTE_OVERHEAD;

use super::*;

/// Requests of each kind that takes a long answer, to a node that gives it, over IPv6.
fn longest_answers(node: &mut Peer) -> Vec<Ask<'static>> {
    let value = &[5; crate::MAX_VALUE];
    let (identity, long) = (Identity::from_seed([3; 32]), [6; crate::MAX_SIGNED_VALUE]);
    let signature = crate::sign(&identity, 1, 1, &long).unwrap();
    let peer = *identity.peer_id().as_bytes();
    let signed = crate::Signed { peer: &peer, salt: 1, seq: 1, signature: &signature, value: &long };
    let [value, signed] = [Record::Value(value), Record::Signed(signed)].map(|record| {
        let kept = node.dht.store.put(&Keyed::new(record), None, None, 0);
        assert_eq!(kept.0, StoreResult::Stored);
        record.key()
    });
    for at in 1..=20 {
        let address = SocketAddr::from((core::net::Ipv6Addr::from([0x2a00, at, 0, 0, 0, 0, 0, 1]), 5));
        node.dht.table.answered(NodeRef { key: [at as u8; 32], address }.into(), [1; 16], 0);
    }
    assert_eq!(node.dht.contact_count(), 20);
    vec![
        Ask::Ping,
        Ask::FindNode(value),
        Ask::FindValue(value, Kind::Value),
        Ask::FindValue(signed, Kind::Signed),
        Ask::FindValue(value, Kind::Providers),
        Ask::Store { write_token: [1; 8], expected: None, offer: Offer::Provider(value) },
    ]
}

#[test]
fn a_forged_address_is_sent_no_more_bytes_than_came_from_there() {
    // PROTO §14.5, §14.8
    let mut node = Peer::new(0);
    let victim = |key| NodeRef { key: [key; 32], address: "[2b00::1]:5".parse().unwrap() };
    let sealed = |sent: &[(NodeRef, Vec<u8>)]| -> usize {
        let seals = sent.iter().filter(|(_, datagram)| datagram[0] != 0x64).count() * NOTE_OVERHEAD;
        sent.iter().map(|(_, datagram)| datagram.len()).sum::<usize>() + seals
    };
    let mut longest = 0;
    for (at, ask) in longest_answers(&mut node).iter().enumerate() {
        // The last is a byte too short to be answered, and gets a token at most.
        for (key, token, len) in
            [(100, [0; 16], MAX_UNSEALED), (120, [7; 16], MAX_UNSEALED), (140, [0; 16], MAX_UNSEALED - 1)]
        {
            let request = &request(token, ask, true)[..len];
            let from = victim(key + at as u8);
            node.handle(from, request).unwrap();
            let mut sent: Vec<_> = core::iter::from_fn(|| node.sends(NOW)).collect();
            // What it sends later for that counts as well.
            for _ in 0..4 {
                let due = node.dht.poll_timeout();
                node.dht.handle_timeout(due);
                let sends = core::iter::from_fn(|| node.sends(due));
                sent.extend(sends.filter(|(to, _)| to.address == from.address));
            }
            let (came, went) = (request.len() + NOTE_OVERHEAD, sealed(&sent));
            assert!(went <= came, "{ask:?}: {went} bytes for {came}");
            assert_eq!(sent.len(), 1, "{ask:?}");
            assert!(len == MAX_UNSEALED || went == 25);
            longest = longest.max(went);
        }
    }
    assert!(longest > crate::MAX_DATAGRAM - 25, "{longest} bytes are not the most");
}

#[test]
fn who_was_answered_without_a_token_comes_back_with_it_for_a_place() {
    // PROTO §14.8
    let (mut asks, mut other, request) = asking();
    let answer = answer_to(&mut other, asks.me, &request);
    asks.handle(other.me, &answer).unwrap();
    let (token, _) = read(&answer);
    let (to, ping) = asks.sends(NOW).unwrap();
    assert_eq!((to, &ping[9..25], &ping[25..]), (other.me, &token[..], &[1][..]));
    assert_eq!(other.handle(asks.me, &ping), Ok(()));
    let (_, pong) = other.sends(NOW).unwrap();
    asks.handle(other.me, &pong).unwrap();
    let (to, ping) = other.sends(NOW).unwrap();
    assert_eq!((to, ping.len()), (asks.me, MAX_UNSEALED));
    let pong = answer_to(&mut asks, other.me, &ping);
    other.handle(asks.me, &pong).unwrap();
    assert_eq!(other.dht.contacts().collect::<Vec<_>>(), [asks.me]);
    // Who asks with a token need not come back.
    asks.dht.find(Id::from_bytes([7; 32]), NOW).unwrap();
    let (_, request) = asks.sends(NOW).unwrap();
    assert_eq!(request[9..25], token);
    let answer = answer_to(&mut other, asks.me, &request);
    asks.handle(other.me, &answer).unwrap();
    assert!(asks.sends(NOW).is_none() && other.sends(NOW).is_none());
}

#[test]
fn who_only_waits_for_a_place_is_not_asked_for_one() {
    // PROTO §14.8
    let mut asks = Peer::new(1);
    let own = asks.dht.id.place();
    let node = |at: u8| NodeRef { key: [at; 32], address: SocketAddr::from(([30 + at, 1, 1, 1], 5)) };
    let (far, near): (Vec<_>, Vec<_>) =
        (0..100).map(node).partition(|node| own.bucket(Id::of_node(&node.key).place()) == Some(0));
    for node in &far[..crate::table::K] {
        asks.dht.table.answered((*node).into(), [1; 16], 0);
    }
    for (node, pings) in [(far[crate::table::K], false), (near[0], true)] {
        let search = asks.dht.find(Id::of_node(&node.key), NOW).unwrap();
        asks.dht.queries[usize::from(search.slot)].begin_with(core::iter::once(node.into()));
        let sent: Vec<_> = core::iter::from_fn(|| asks.sends(NOW)).collect();
        let (_, request) = sent.iter().find(|(to, _)| *to == node).unwrap();
        asks.handle(node, &forged(request, &[0, 0])).unwrap();
        let pinged = core::iter::from_fn(|| asks.sends(NOW)).any(|(to, sent)| to == node && sent[25] == 1);
        assert_eq!(pinged, pings);
    }
    assert_eq!(asks.dht.contact_count(), crate::table::K + 1);
}

#[test]
fn many_keys_at_one_place_do_not_keep_others_from_being_pinged() {
    let mut node = Peer::new(1);
    let mut pings = |at: u8, ip: [u8; 4]| {
        let from = NodeRef { key: [at; 32], address: SocketAddr::from((ip, 5)) };
        let token = node.dht.tokens.address(NOW, &Node::from(from).address);
        answer_to(&mut node, from, &request(token, &Ask::Ping, false));
        node.sends(NOW).is_some()
    };
    let crowd: Vec<_> = (10..30).map(|at| pings(at, [60, 1, 1, at])).collect();
    assert_eq!(crowd.iter().filter(|&&pings| pings).count(), 2);
    assert!(pings(30, [61, 1, 1, 1]));
}

#[test]
fn who_knows_few_nodes_looks_for_more_within_two_seconds_and_five_times() {
    // PROTO §14.8
    let mut peers = network(2);
    let joined = peers[1].me;
    let (mut now, mut searches) = (NOW, vec![0]);
    while now < NOW.saturating_add(Duration::from_mins(14)) {
        now = peers.iter().map(|peer| peer.dht.poll_timeout()).min().unwrap();
        for peer in &mut peers {
            peer.dht.handle_timeout(now);
        }
        while let Some((from, (to, sent))) =
            peers.iter_mut().find_map(|peer| Some((peer.me, peer.sends(now)?)))
        {
            if from == joined && sent[0] == 0x62 && sent[25] == 2 {
                searches.push(now.saturating_since(NOW).as_millis());
            }
            let peer = peers.iter_mut().find(|peer| peer.me == to).unwrap();
            peer.dht.handle_unsealed(now, from, &sent).unwrap();
        }
    }
    let waits: Vec<_> = searches.windows(2).map(|times| times[1] - times[0]).collect();
    assert_eq!(waits.len(), 5, "{waits:?}");
    for (at, wait) in waits.iter().enumerate() {
        let longest = 2_000 << at;
        assert!((longest / 2..longest).contains(wait), "{at}: {waits:?}");
    }
}
