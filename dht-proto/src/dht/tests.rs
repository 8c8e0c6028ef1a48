use core::net::SocketAddr;
use core::time::Duration;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use wraith_proto::Identity;

use super::*;
use crate::config::Limits;
use crate::event::Outcome;
use crate::header::Header;
use crate::message::{Held, Nodes, Offer, write_ask};
use crate::record::value_key;
use wraith_proto::wire::Writer;

mod lookups;
mod places;
mod silent;

const NOW: Instant = Instant::from_nanos(3_600_000_000_000);

/// A node with its name.
struct Peer {
    dht: Dht,
    me: NodeRef,
}

impl Peer {
    fn new(at: u8) -> Self {
        let peer = Identity::from_seed([at; 32]).peer_id();
        let dht = Dht::new(&Limits::default(), &peer, &[at; 32], NOW);
        Self { dht, me: NodeRef::new(&peer, SocketAddr::from(([9, at, 1, 1], 5))) }
    }

    fn sends(&mut self, now: Instant) -> Option<(NodeRef, Vec<u8>)> {
        let mut buffer = [0; MAX_UNSEALED];
        let Transmit { to, len, key, .. } = self.dht.poll_transmit(now, &mut buffer)?;
        Some((NodeRef { key: key.unwrap_or_default(), address: to }, buffer[..len].to_vec()))
    }

    fn handle(&mut self, from: NodeRef, datagram: &[u8]) -> Result<(), DropReason> {
        self.dht.handle_unsealed(NOW, from, datagram)
    }
}

/// A request of [`MAX_UNSEALED`] bytes, or one that is as short as it can be.
fn request(token: Token, ask: &Ask<'_>, padded: bool) -> Vec<u8> {
    let mut bytes = [0; MAX_UNSEALED];
    let mut w = Writer::new(&mut bytes);
    Header::Request { transaction: [1; 8], token }.write(&mut w).unwrap();
    write_ask(&mut w, ask).unwrap();
    let len = if padded { MAX_UNSEALED } else { w.len() };
    bytes[..len].to_vec()
}

/// Asks with the token that it has just been given, so that it is pinged: the ping.
fn pinged(other: &mut Peer, from: NodeRef) -> Vec<u8> {
    let token = other.dht.tokens.address(NOW, &Node::from(from).address);
    answer_to(other, from, &request(token, &Ask::Ping, false));
    let (to, ping) = other.sends(NOW).unwrap();
    assert_eq!(to, from);
    assert_eq!(Ask::parse(&ping[25..]), Ok(Ask::Ping));
    ping
}

/// What an answer says.
fn read(answer: &[u8]) -> (Token, Reply<'_>) {
    assert!(matches!(Header::parse(answer), Ok((Header::Answer { .. }, 9))), "{answer:?}");
    Reply::parse(&answer[9..]).unwrap()
}

/// The answer to `request` that begins so behind the tokens.
fn forged(request: &[u8], message: &[u8]) -> Vec<u8> {
    [&[0x63], &request[1..9], &[1; 16], &[2], &[1; 8], message].concat()
}

/// Carries datagrams at once until nobody has one.
fn carry(peers: &mut [Peer], now: Instant) {
    while let Some((from, (to, datagram))) =
        peers.iter_mut().find_map(|peer| Some((peer.me, peer.sends(now)?)))
    {
        if let Some(peer) = peers.iter_mut().find(|peer| peer.me.address == to.address) {
            peer.dht.handle_unsealed(now, from, &datagram).unwrap();
        }
    }
}

/// Some nodes that know each other.
fn network(count: u8) -> Vec<Peer> {
    let mut peers: Vec<Peer> = (0..count).map(Peer::new).collect();
    let first = peers[0].me;
    for at in 1..peers.len() {
        peers[at].dht.bootstrap(first, NOW);
        carry(&mut peers, NOW);
        assert!(matches!(peers[at].dht.poll_event(), Some(Event::Joined(1..))));
    }
    peers
}

/// A node that has just asked another, the other, and the question.
fn asking() -> (Peer, Peer, Vec<u8>) {
    let (mut asks, other) = (Peer::new(1), Peer::new(2));
    asks.dht.bootstrap(other.me, NOW);
    let (to, request) = asks.sends(NOW).unwrap();
    assert_eq!(to, other.me);
    (asks, other, request)
}

fn answer_to(other: &mut Peer, from: NodeRef, request: &[u8]) -> Vec<u8> {
    other.handle(from, request).unwrap();
    let (to, answer) = other.sends(NOW).unwrap();
    // A token is for whoever is there.
    let key = if answer[0] == 0x64 { [0; 32] } else { from.key };
    assert_eq!(to, NodeRef { key, ..from });
    answer
}

#[test]
fn a_default_node_takes_64_kib_at_most() {
    let limits = Limits::default();
    assert!(limits.memory() <= 64 << 10, "{}", limits.memory());
    assert!(limits.contacts == 512 && limits.record_memory() < 5_100_000, "{}", limits.record_memory());
}

#[test]
fn only_the_asked_node_at_the_asked_address_answers_and_only_once() {
    // PROTO §14.7
    let (mut asks, mut other, request) = asking();
    let answer = answer_to(&mut other, asks.me, &request);
    let moved = NodeRef { address: "9.2.1.1:6".parse().unwrap(), ..other.me };
    let impostor = NodeRef { address: other.me.address, ..Peer::new(3).me };
    for from in [moved, impostor] {
        assert_eq!(asks.handle(from, &answer), Err(DropReason::Unasked));
    }
    for at in 1..9 {
        let mut forged = answer.clone();
        forged[at] ^= 1;
        assert_eq!(asks.handle(other.me, &forged), Err(DropReason::Unasked));
    }
    assert_eq!(asks.dht.contact_count(), 0);
    // None of these took the place of the right one.
    assert_eq!(asks.handle(other.me, &answer), Ok(()));
    assert_eq!(asks.dht.contacts().collect::<Vec<_>>(), [other.me]);
    assert_eq!(asks.handle(other.me, &answer), Err(DropReason::Unasked));
}

#[test]
fn an_answer_of_another_kind_leaves_the_request_waiting() {
    // PROTO §14.7
    let mut peers = network(2);
    let (me, other) = (peers[0].me, peers[1].me);
    let pong = |request: &[u8]| [&[0x63], &request[1..9], &[1; 16], &[1]].concat();
    let stored = |request: &[u8]| [&[0x63], &request[1..9], &[1; 16], &[4, 0], &[0; 8]].concat();
    peers[0].dht.put(&Record::Value(b"hello"), None, NOW).unwrap();
    let (_, search) = peers[0].sends(NOW).unwrap();
    for wrong in [pong(&search), stored(&search)] {
        assert_eq!(peers[0].handle(other, &wrong), Err(DropReason::Unasked));
    }
    let answer = answer_to(&mut peers[1], me, &search);
    peers[0].handle(other, &answer).unwrap();
    let (_, store) = peers[0].sends(NOW).unwrap();
    for wrong in [pong(&store), forged(&store, &[0, 0])] {
        assert_eq!(peers[0].handle(other, &wrong), Err(DropReason::Unasked));
    }
    let answer = answer_to(&mut peers[1], me, &store);
    peers[0].handle(other, &answer).unwrap();
    let ended = peers[0].dht.poll_event();
    assert!(matches!(ended, Some(Event::Ended(_, Outcome::Stored { nodes: 1, .. }))), "{ended:?}");
}

#[test]
fn who_only_asks_does_not_enter_the_table() {
    // PROTO §14.8
    let (asks, mut other, request) = asking();
    answer_to(&mut other, asks.me, &request);
    assert_eq!(other.dht.contact_count(), 0);
    assert!(other.sends(NOW).is_none(), "its address may be forged");
    pinged(&mut other, asks.me);
    assert_eq!(other.dht.contact_count(), 0);
}

#[test]
fn who_has_no_token_gets_no_more_bytes_than_it_sent() {
    // PROTO §14.5
    let mut peers = network(30);
    let stranger = Peer::new(99);
    let ask = Ask::FindNode(Id::from_bytes([7; 32]));
    let token_of = |answer: &[u8]| match Header::parse(answer) {
        Ok((Header::Token { transaction: [1, 1, 1, 1, 1, 1, 1, 1], token }, 25)) => token,
        other => panic!("{other:?}"),
    };
    let nodes = |answer: &[u8]| match read(answer) {
        (token, Reply::Found { nodes, .. }) => (token, nodes.len()),
        other => panic!("{other:?}"),
    };
    // One byte less than the longest, and all that it gets is a token.
    let short = request([0; 16], &ask, true);
    let token = token_of(&answer_to(&mut peers[0], stranger.me, &short[..MAX_UNSEALED - 1]));
    let answer = answer_to(&mut peers[1], stranger.me, &request([0; 16], &ask, true));
    assert_eq!(nodes(&answer).1, 20);
    assert!(answer.len() <= MAX_UNSEALED);
    // With its token a short request has a long answer; with the token of another address, or a wrong one, it has not.
    let short = request(token, &ask, false);
    let (given, count) = nodes(&answer_to(&mut peers[0], stranger.me, &short));
    assert_eq!((given, count), (token, 20));
    let elsewhere = NodeRef { address: "9.99.1.1:6".parse().unwrap(), ..stranger.me };
    assert_ne!(token_of(&answer_to(&mut peers[0], elsewhere, &short)), token);
    assert_eq!(token_of(&answer_to(&mut peers[0], stranger.me, &request([3; 16], &ask, false))), token);
}

#[test]
fn too_many_strangers_get_tokens_and_who_comes_back_with_one_is_answered() {
    // PROTO §14.6
    let mut node = Peer::new(1);
    let stranger = |at: u16| {
        let [high, low] = at.to_be_bytes();
        NodeRef { key: [7; 32], address: SocketAddr::from(([60, high, low, 1], 5)) }
    };
    let ping = |token| request(token, &Ask::Ping, true);
    let mut tokens = Vec::new();
    let budget = Limits::default().strangers.all;
    for at in 0..budget + 50 {
        node.handle(stranger(at), &ping([0; 16])).unwrap();
        let (to, answer) = node.sends(NOW).unwrap();
        assert_eq!(to.address, stranger(at).address);
        if let Ok((Header::Token { token, .. }, _)) = Header::parse(&answer) {
            tokens.push((at, token));
        } else {
            assert!(matches!(read(&answer), (_, Reply::Pong)));
            assert!(at < budget);
        }
        // The pings that follow are not of interest.
        while node.sends(NOW).is_some() {}
    }
    assert_eq!(tokens.len(), 50);
    for (at, token) in tokens {
        let answer = answer_to(&mut node, stranger(at), &ping(token));
        assert!(matches!(read(&answer), (_, Reply::Pong)));
        while node.sends(NOW).is_some() {}
    }
}

#[test]
fn who_gets_a_token_instead_of_an_answer_asks_again_with_it_and_once() {
    // PROTO §14.5, §14.6
    let (mut asks, other, first) = asking();
    assert_eq!(first.len(), MAX_UNSEALED);
    let token = |request: &[u8], token: u8| [&[0x64], &request[1..9], &[token; 16]].concat();
    let impostor = NodeRef { address: "9.2.1.1:6".parse().unwrap(), ..other.me };
    assert_eq!(asks.handle(impostor, &token(&first, 7)), Err(DropReason::Unasked));
    assert_eq!(asks.handle(other.me, &token(&[0; 9], 7)), Err(DropReason::Unasked));
    assert_eq!(asks.handle(other.me, &token(&first, 0)), Err(DropReason::Malformed));
    assert_eq!(asks.handle(other.me, &token(&first, 7)), Ok(()));
    let (to, second) = asks.sends(NOW).unwrap();
    assert_eq!(to, other.me);
    // The same question in a transaction of its own, and short, since it has a token.
    assert_eq!((&second[9..25], &second[25..58], second.len()), (&[7; 16][..], &first[25..58], 58));
    assert_ne!(second[1..9], first[1..9]);
    assert_eq!(asks.handle(other.me, &token(&second, 8)), Err(DropReason::Unasked));
    assert!(asks.sends(NOW).is_none());
}

#[test]
fn four_answers_to_one_request_are_opened_at_most() {
    // PROTO §14.6
    let (mut asks, other, request) = asking();
    let junk = [&[0x63], &request[1..9], &[0xff; 100]].concat();
    // None that comes from elsewhere, and none of these counts.
    let elsewhere = NodeRef { address: "9.2.1.1:6".parse().unwrap(), ..other.me };
    for _ in 0..5 {
        assert_eq!(asks.handle(elsewhere, &junk), Err(DropReason::Unasked));
    }
    for _ in 0..4 {
        assert_eq!(asks.handle(other.me, &junk), Err(DropReason::Malformed));
    }
    assert_eq!(asks.handle(other.me, &junk), Err(DropReason::Unasked));
}

#[test]
fn a_ping_is_asked_again_and_answered_within_the_same_limits() {
    // PROTO §14.6
    let (asks, mut other) = (Peer::new(1), Peer::new(2));
    let ping = pinged(&mut other, asks.me);
    let token = |of: &[u8], token: u8| [&[0x64], &of[1..9], &[token; 16]].concat();
    let elsewhere = NodeRef { address: "9.1.1.1:6".parse().unwrap(), ..asks.me };
    assert_eq!(other.handle(elsewhere, &token(&ping, 7)), Err(DropReason::Unasked));
    assert_eq!(other.handle(asks.me, &token(&ping, 0)), Err(DropReason::Malformed));
    assert_eq!(other.handle(asks.me, &token(&ping, 7)), Ok(()));
    let (_, second) = other.sends(NOW).unwrap();
    assert_eq!((&second[9..25], &second[25..]), (&[7; 16][..], &[1][..]));
    assert_eq!(other.handle(asks.me, &token(&second, 8)), Err(DropReason::Unasked));
    // Three were looked at in all, so one more may be.
    let pong = [&[0x63], &second[1..9], &[1; 16], &[1]].concat();
    let impostor = NodeRef { key: [9; 32], ..asks.me };
    assert_eq!(other.handle(impostor, &pong), Err(DropReason::Unasked));
    assert_eq!(other.handle(asks.me, &pong), Err(DropReason::Unasked));
    assert_eq!(other.dht.contact_count(), 0);
}

#[test]
fn who_does_not_see_a_ping_pass_cannot_use_up_its_answers() {
    // PROTO §14.6
    let (asks, mut other) = (Peer::new(1), Peer::new(2));
    let ping = pinged(&mut other, asks.me);
    let elsewhere = NodeRef { address: "9.1.1.1:6".parse().unwrap(), ..asks.me };
    for at in 0..=255 {
        // Without its transaction from where it went, and with it from elsewhere.
        let guess = [at, ping[2], ping[3], ping[4], ping[5], ping[6], ping[7], ping[8] ^ 1];
        for (from, transaction) in [(asks.me, &guess[..]), (elsewhere, &ping[1..9])] {
            for behind in [&[7; 16][..], &[0; 16]] {
                let token = [&[0x64], transaction, behind].concat();
                assert_eq!(other.handle(from, &token), Err(DropReason::Unasked));
            }
            let pong = [&[0x63], transaction, &[1; 16], &[1]].concat();
            assert_eq!(other.handle(from, &pong), Err(DropReason::Unasked));
        }
    }
    let pong = [&[0x63], &ping[1..9], &[1; 16], &[1]].concat();
    assert_eq!(other.handle(asks.me, &pong), Ok(()));
    assert_eq!(other.dht.contacts().collect::<Vec<_>>(), [asks.me]);
}

#[test]
fn a_node_that_cannot_be_sealed_to_is_given_up_at_once() {
    let mut alone = Peer::new(1);
    alone.dht.bootstrap(Peer::new(2).me, NOW);
    let (_, request) = alone.sends(NOW).unwrap();
    alone.dht.give_up(&request);
    assert!(matches!(alone.dht.poll_event(), None | Some(Event::Joined(0))));
    alone.dht.handle_timeout(NOW);
    assert!(matches!(alone.dht.poll_event(), Some(Event::Joined(0))));
}

#[test]
fn nothing_is_stored_with_the_token_of_another_node_key_or_time() {
    // PROTO §14.12
    let (asks, mut other, first) = asking();
    let answer = answer_to(&mut other, asks.me, &first);
    let (_, Reply::Found { write_token, .. }) = read(&answer) else { panic!() };
    let key = asks.dht.id();
    let mut store = |from: NodeRef, key: Id, after| {
        let ask = Ask::Store { write_token, expected: None, offer: Offer::Provider(key) };
        let now = NOW.saturating_add(after);
        other.dht.handle_unsealed(now, from, &request([0; 16], &ask, true)).unwrap();
        let answer = other.sends(now).unwrap().1;
        match read(&answer) {
            (_, Reply::Stored { result, .. }) => result,
            other => panic!("{other:?}"),
        }
    };
    let moved = NodeRef { address: "9.1.1.1:6".parse().unwrap(), ..asks.me };
    assert_eq!(store(moved, key, Duration::ZERO), StoreResult::BadToken);
    assert_eq!(store(asks.me, Id::from_bytes([1; 32]), Duration::ZERO), StoreResult::BadToken);
    assert_eq!(store(asks.me, key, Duration::from_mins(10)), StoreResult::BadToken);
    assert_eq!(store(asks.me, key, Duration::ZERO), StoreResult::Stored);
}

#[test]
fn two_nodes_store_find_and_announce() {
    let mut peers = network(2);
    let put = peers[0].dht.put(&Record::Value(b"hello"), None, NOW).unwrap();
    carry(&mut peers, NOW);
    match peers[0].dht.poll_event() {
        Some(Event::Ended(id, Outcome::Stored { nodes: 1, conflict: None })) => assert_eq!(id, put),
        other => panic!("{other:?}"),
    }
    assert!(peers[1].dht.holds(&value_key(b"hello"), Kind::Value, NOW));
    peers[0].dht.announce(Id::from_bytes([4; 32]), NOW).unwrap();
    carry(&mut peers, NOW);
    assert!(matches!(peers[0].dht.poll_event(), Some(Event::Ended(_, Outcome::Stored { nodes: 1, .. }))));
    assert_eq!(peers[1].dht.record_count(), 2);
}

#[test]
fn a_network_finds_providers_and_the_newest_signed_record() {
    // PROTO §14.13
    let mut peers = network(30);
    let (owner, key) = (Identity::from_seed([200; 32]), Id::from_bytes([4; 32]));
    let peer = owner.peer_id();
    for (at, seq) in [(3, 1), (4, 2)] {
        let signature = crate::sign(&owner, 0, seq, &[seq as u8]).unwrap();
        let signed =
            crate::Signed { peer: peer.as_bytes(), salt: 0, seq, signature: &signature, value: &[seq as u8] };
        peers[at].dht.put(&Record::Signed(signed), None, NOW).unwrap();
        peers[at].dht.announce(key, NOW).unwrap();
        carry(&mut peers, NOW);
    }
    peers[25].dht.get(crate::signed_key(&peer, 0), Kind::Signed, NOW).unwrap();
    peers[25].dht.get(key, Kind::Providers, NOW).unwrap();
    carry(&mut peers, NOW);
    match peers[25].dht.poll_event() {
        Some(Event::Ended(_, Outcome::Found { record, .. })) => {
            assert_eq!((record.seq(), record.value()), (2, &[2][..]));
        }
        other => panic!("{other:?}"),
    }
    let expected = [peers[3].me, peers[4].me];
    match peers[25].dht.poll_event() {
        Some(Event::Ended(_, Outcome::Providers { providers, .. })) => {
            let found: Vec<_> = providers.iter().collect();
            assert!(found.len() == 2 && expected.iter().all(|node| found.contains(node)), "{found:?}");
        }
        other => panic!("{other:?}"),
    }
    peers[25].dht.get(Id::from_bytes([5; 32]), Kind::Value, NOW).unwrap();
    carry(&mut peers, NOW);
    assert!(matches!(peers[25].dht.poll_event(), Some(Event::Ended(_, Outcome::NotFound))));
}

#[test]
fn who_puts_learns_how_many_refused_the_record_and_the_highest_number_that_they_named() {
    let mut peers = network(30);
    let owner = Identity::from_seed([99; 32]);
    let peer = owner.peer_id();
    let put = |peers: &mut [Peer], at: usize, seq| {
        let signature = crate::sign(&owner, 0, seq, b"value").unwrap();
        let signed =
            crate::Signed { peer: peer.as_bytes(), salt: 0, seq, signature: &signature, value: b"value" };
        peers[at].dht.put(&Record::Signed(signed), None, NOW).unwrap();
        carry(peers, NOW);
        match peers[at].dht.poll_event() {
            Some(Event::Ended(_, Outcome::Stored { nodes, conflict })) => (nodes, conflict),
            other => panic!("{other:?}"),
        }
    };
    let (keep, conflict) = put(&mut peers, 3, 7);
    assert!(keep >= 8 && conflict.is_none(), "{keep}");
    let other = peers.iter().position(|peer| peer.dht.record_count() == 0).unwrap();
    let (took, conflict) = put(&mut peers, other, 6);
    let refused = conflict.unwrap();
    assert_eq!(refused.seq, 7);
    assert!(refused.nodes >= 8 && refused.nodes > took, "{refused:?}, {took}");
}

#[test]
fn a_silent_bootstrap_node_ends_in_joined_by_nobody_and_is_asked_again() {
    let mut alone = Peer::new(1);
    alone.dht.bootstrap(Peer::new(2).me, NOW);
    assert!(alone.sends(NOW).is_some());
    let mut now = NOW;
    while alone.dht.poll_event().is_none() {
        now = alone.dht.poll_timeout();
        alone.dht.handle_timeout(now);
        assert!(now <= NOW.saturating_add(Duration::from_millis(1_500)));
        assert!(alone.sends(now).is_none());
    }
    assert_eq!(alone.dht.contact_count(), 0);
    let end = now.saturating_add(Duration::from_secs(80));
    while now < end && alone.sends(now).is_none() {
        now = alone.dht.poll_timeout();
        alone.dht.handle_timeout(now);
    }
    assert!(now < end);
}

#[test]
fn nodes_to_begin_with_that_are_named_one_by_one_share_the_paths() {
    let mut alone = Peer::new(1);
    for at in 2..8 {
        alone.dht.bootstrap(Peer::new(at).me, NOW);
    }
    assert_eq!(core::iter::from_fn(|| alone.sends(NOW)).count(), 3);
    // Silent ones are passed by on all three at a time.
    let stalled = alone.dht.poll_timeout();
    alone.dht.handle_timeout(stalled);
    assert_eq!(core::iter::from_fn(|| alone.sends(stalled)).count(), 3);
}

#[test]
fn a_node_to_begin_with_is_asked_again_at_the_address_that_was_named_last() {
    let (mut alone, other) = (Peer::new(1), Peer::new(2));
    let elsewhere = NodeRef { address: Peer::new(3).me.address, ..other.me };
    alone.dht.bootstrap(other.me, NOW);
    assert_eq!(alone.sends(NOW).unwrap().0, other.me);
    let mut now = NOW;
    while !alone.dht.has_failed_to_join() {
        now = alone.dht.poll_timeout();
        alone.dht.handle_timeout(now);
    }
    alone.dht.bootstrap(elsewhere, now);
    assert_eq!(alone.sends(now).unwrap().0, elsewhere);
}

/// Lets `time` pass at a network, whose messages take none.
fn pass(peers: &mut [Peer], from: Instant, time: Duration) -> Instant {
    let end = from.saturating_add(time);
    loop {
        carry(peers, from);
        let next = peers.iter().map(|peer| peer.dht.poll_timeout()).min().unwrap_or(end);
        if next > end {
            return end;
        }
        for peer in peers.iter_mut().filter(|peer| peer.dht.poll_timeout() <= next) {
            peer.dht.handle_timeout(next);
        }
        carry(peers, next);
    }
}

#[test]
fn who_was_not_answered_asks_again_within_two_seconds_and_then_ever_more_rarely() {
    let mut alone = Peer::new(1);
    alone.dht.bootstrap(Peer::new(2).me, NOW);
    let (mut now, mut asked) = (NOW, vec![]);
    while now < NOW.saturating_add(Duration::from_mins(10)) {
        while alone.sends(now).is_some() {
            asked.push(now.saturating_since(NOW).as_millis());
        }
        now = alone.dht.poll_timeout();
        alone.dht.handle_timeout(now);
    }
    let waits: Vec<_> = asked.windows(2).map(|times| times[1] - times[0] - 1_500).collect();
    for (at, &wait) in waits.iter().enumerate() {
        let longest = 2_000 << at.min(5);
        assert!((longest / 2..longest).contains(&wait), "{at}: {waits:?}");
    }
    assert!(waits.len() > 10);
}

#[test]
fn who_knows_one_node_asks_over_all_paths_what_it_names() {
    let mut peers = network(30);
    let mut joins = Peer::new(30);
    joins.dht.bootstrap(peers[0].me, NOW);
    let (to, request) = joins.sends(NOW).unwrap();
    assert!(joins.sends(NOW).is_none());
    let answer = answer_to(&mut peers[0], joins.me, &request);
    joins.handle(to, &answer).unwrap();
    let sent = core::iter::from_fn(|| joins.sends(NOW)).filter(|(_, sent)| sent[25] == 2);
    let asked: Vec<_> = sent.map(|(to, _)| to).collect();
    assert_eq!(asked.len(), 3);
    // A path goes on with what it was told: the others wait for their own answers.
    let at = peers.iter().position(|peer| peer.me == asked[1]).unwrap();
    let mut again = vec![];
    peers[at].handle(joins.me, &request).unwrap();
    core::iter::from_fn(|| peers[at].sends(NOW)).for_each(|sent| again.push(sent));
    assert_eq!(joins.handle(asked[1], &again[0].1), Err(DropReason::Unasked), "it has another transaction");
    assert!(joins.sends(NOW).is_none());
}

#[test]
fn records_are_stored_again_without_the_slots_of_the_caller() {
    let mut peers = network(3);
    let put = peers[0].dht.put(&Record::Value(b"hello"), None, NOW).unwrap();
    carry(&mut peers, NOW);
    assert!(matches!(peers[0].dht.poll_event(), Some(Event::Ended(id, _)) if id == put));
    // A node that comes later has the record within the hour, though the caller's lookups have not been collected.
    let mut late = Peer::new(3);
    late.dht.bootstrap(peers[1].me, NOW);
    peers.push(late);
    carry(&mut peers, NOW);
    for _ in 0..Limits::default().queries {
        peers[0].dht.find(Id::from_bytes([5; 32]), NOW).unwrap();
    }
    let key = value_key(b"hello");
    let mut now = pass(&mut peers, NOW, Duration::from_mins(59));
    assert!(!peers[3].dht.holds(&key, Kind::Value, now));
    now = pass(&mut peers, now, Duration::from_mins(2));
    assert!(peers[3].dht.holds(&key, Kind::Value, now));
    let events =
        core::iter::from_fn(|| peers[0].dht.poll_event().map(|event| matches!(event, Event::Ended(..))));
    let ended = events.filter(|&ended| ended).count();
    assert_eq!(ended, usize::from(Limits::default().queries), "what the node does for itself is no news");
}

#[test]
fn a_record_that_nobody_took_is_stored_within_two_minutes_once_somebody_is_there() {
    let mut peers = vec![Peer::new(0)];
    peers[0].dht.put(&Record::Value(b"hello"), None, NOW).unwrap();
    assert!(matches!(peers[0].dht.poll_event(), Some(Event::Ended(_, Outcome::Stored { nodes: 0, .. }))));
    let mut now = pass(&mut peers, NOW, Duration::from_mins(3));
    let mut late = Peer::new(1);
    late.dht.bootstrap(peers[0].me, now);
    peers.push(late);
    now = pass(&mut peers, now, Duration::from_mins(2));
    assert!(peers[1].dht.holds(&value_key(b"hello"), Kind::Value, now));
}

#[test]
fn a_lookup_without_contacts_ends_at_once_and_slots_are_limited() {
    let mut alone = Peer::new(1);
    let queries = usize::from(Limits::default().queries);
    for _ in 0..queries {
        alone.dht.get(Id::from_bytes([5; 32]), Kind::Value, NOW).unwrap();
    }
    assert_eq!(alone.dht.find(Id::from_bytes([5; 32]), NOW), Err(StartError::Busy));
    for _ in 0..queries {
        assert!(matches!(alone.dht.poll_event(), Some(Event::Ended(_, Outcome::NotFound))));
    }
    assert!(alone.dht.poll_event().is_none());
    assert!(alone.dht.find(Id::from_bytes([5; 32]), NOW).is_ok());
}

#[test]
fn a_public_node_does_not_make_others_send_to_private_addresses() {
    // PROTO §14.10
    let (mut asks, other, request) = asking();
    let mut answer = forged(&request, &[0, 3]);
    for ip in [[127, 0, 0, 1], [192, 168, 1, 1], [9, 50, 1, 1]] {
        answer.extend_from_slice(&[4, ip[0], ip[1], ip[2], ip[3], 0, 5]);
        answer.extend_from_slice(&[ip[0]; 32]);
    }
    asks.handle(other.me, &answer).unwrap();
    let (to, ping) = asks.sends(NOW).unwrap();
    assert_eq!((to, ping[25]), (other.me, 1));
    let (to, _) = asks.sends(NOW).unwrap();
    assert_eq!(to.address, "9.50.1.1:5".parse().unwrap());
    assert!(asks.sends(NOW).is_none());
}

#[test]
fn who_asks_is_told_of_others_alone() {
    // PROTO §14.10
    let mut peers = network(3);
    let (asks, other) = (peers[1].me, peers[2].me);
    assert!(peers[0].dht.contacts().any(|node| node == asks));
    let ask = Ask::FindNode(Id::of_node(&asks.key));
    let answer = answer_to(&mut peers[0], asks, &request([0; 16], &ask, true));
    let (_, Reply::Found { nodes, .. }) = read(&answer) else { panic!("{answer:?}") };
    assert_eq!(nodes.iter().collect::<Vec<_>>(), [other]);
}

#[test]
fn private_nodes_and_providers_are_named_on_private_networks_alone() {
    // PROTO §14.10
    let mut node = Peer::new(1);
    let key = Id::from_bytes([4; 32]);
    let [lan, other_lan, public, outside] = [[192, 168, 1, 2], [192, 168, 1, 3], [9, 2, 1, 1], [9, 3, 1, 1]]
        .map(|ip| NodeRef { key: [ip[3] + ip[1]; 32], address: SocketAddr::from((ip, 5)) });
    for provider in [lan, public] {
        let write_token = node.dht.tokens.write(NOW, &provider.into(), &key);
        let ask = Ask::Store { write_token, expected: None, offer: Offer::Provider(key) };
        answer_to(&mut node, provider, &request([0; 16], &ask, true));
        node.dht.table.answered(provider.into(), [1; 16], 0);
    }
    let mut named = |to: NodeRef| {
        while node.sends(NOW).is_some() {}
        let ask = Ask::FindValue(key, Kind::Providers);
        let answer = answer_to(&mut node, to, &request([0; 16], &ask, true));
        let (_, Reply::Found { record: Held::Providers(providers), nodes, .. }) = read(&answer) else {
            panic!("{answer:?}")
        };
        [providers, nodes].map(|list| {
            let mut addresses: Vec<_> = list.iter().map(|node| node.address).collect();
            addresses.sort();
            addresses
        })
    };
    let both = [public.address, lan.address].to_vec();
    assert_eq!(named(other_lan), [both.clone(), both]);
    assert_eq!(named(outside), [[public.address], [public.address]]);
}

#[test]
fn a_forged_record_in_an_answer_is_not_taken() {
    let mut peers = network(2);
    let key = value_key(b"right");
    peers[0].dht.get(key, Kind::Value, NOW).unwrap();
    let (to, request) = peers[0].sends(NOW).unwrap();
    assert_eq!(to, peers[1].me);
    let answer = forged(&request, b"\x01\x00\x05wrong\x00");
    assert!(matches!(
        read(&answer),
        (_, Reply::Found { record: Held::Record(Record::Value(b"wrong")), nodes, .. }) if nodes == Nodes::default()
    ));
    peers[0].handle(to, &answer).unwrap();
    assert!(matches!(peers[0].dht.poll_event(), Some(Event::Ended(_, Outcome::NotFound))));
}

#[test]
fn a_prefix_that_asks_too_much_is_not_answered() {
    // PROTO §14.6
    let mut node = Peer::new(1);
    let at = |at: u8| NodeRef { key: [at; 32], address: SocketAddr::from(([9, 9, 9, at], 5)) };
    let mut answers = |token, expected| {
        let mut pongs = 0;
        for host in 0..200 {
            let token =
                if token { node.dht.tokens.address(NOW, &Node::from(at(host)).address) } else { [0; 16] };
            let admitted = node.handle(at(host), &request(token, &Ask::Ping, true));
            assert!(matches!(admitted, Ok(()) | Err(DropReason::TooMany)));
            while let Some((_, sent)) = node.sends(NOW) {
                pongs += u16::from(sent[0] == 0x63);
            }
        }
        assert_eq!(pongs, expected);
    };
    let Limits { rate, strangers, .. } = Limits::default();
    answers(false, strangers.per_prefix);
    answers(true, rate.per_prefix);
}

proptest! {
    #[test]
    fn random_datagrams_change_nothing_that_matters(datagrams in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..200), 0_u8..4, 0_u8..5, any::<bool>()), 0..50)) {
        let mut node = Peer::new(1);
        for (mut datagram, form, kind, padded) in datagrams {
            if padded {
                datagram.resize(MAX_UNSEALED, 0);
            }
            if let Some(first) = datagram.first_mut() {
                *first = 0x61 + form;
            }
            if let Some(first) = datagram.get_mut(25) {
                *first = kind;
            }
            let _ = node.handle(Peer::new(2).me, &datagram);
            if let Some((_, sent)) = node.sends(NOW) {
                prop_assert!(Header::parse(&sent).is_ok());
            }
        }
        prop_assert_eq!((node.dht.contact_count(), node.dht.record_count()), (0, 0));
    }
}
