//! Two and more endpoints in virtual time.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use wraith_proto::{Config, Event, Identity, Outcome};
use wraith_sim::{
    LEFT, LinkConfig, Model, Network, Pair, PairConfig, RIGHT, Recorder, Rng, Side, Transparent, Verdict,
};

const SECOND: Duration = Duration::from_secs(1);

fn pair(seed: u64) -> Pair {
    Pair::new(PairConfig::new(seed))
}

#[test]
fn two_ends_connect_and_exchange_datagrams() {
    let mut pair = pair(1);
    let (left, right) = pair.connect();
    assert!(pair.left.host.saw(left, Event::Connected));
    assert!(pair.right.host.saw(right, Event::Connected));

    let sent = pair.now();
    pair.left.endpoint.session(left).unwrap().send_datagram(Bytes::from_static(b"ping")).unwrap();
    assert!(pair.run_until(|pair| !pair.right.host.datagrams.is_empty(), SECOND));
    assert_eq!(pair.right.host.datagrams, [(right, b"ping".to_vec())]);
    assert_eq!(pair.now().saturating_since(sent), Duration::from_millis(10));

    pair.right.endpoint.session(right).unwrap().send_datagram(Bytes::from_static(b"pong")).unwrap();
    assert!(pair.run_until(|pair| !pair.left.host.datagrams.is_empty(), SECOND));
    assert_eq!(pair.left.host.datagrams, [(left, b"pong".to_vec())]);
}

#[test]
fn a_transparent_provider_connects_as_well() {
    let config = PairConfig::new(2).with_both(|config| config.crypto = Transparent::CHECKED);
    let mut pair = Pair::new(config);
    let (left, _) = pair.connect();
    pair.intercept(move |passing| {
        let readable = passing.bytes.windows(8).any(|window| window == b"in clear");
        if readable { Verdict::Pass } else { Verdict::Drop }
    });
    pair.left.endpoint.session(left).unwrap().send_datagram(Bytes::from_static(b"in clear")).unwrap();
    assert!(pair.run_until(|pair| !pair.right.host.datagrams.is_empty(), SECOND));
}

#[test]
fn a_tap_sees_alters_and_drops() {
    let mut pair = pair(3);
    let (left, _) = pair.connect();
    pair.run_for(SECOND);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let keep = Rc::clone(&seen);
    pair.intercept(move |passing| {
        assert_eq!((passing.sender, passing.to), (0, RIGHT));
        keep.borrow_mut().push(passing.bytes.clone());
        Verdict::Drop
    });
    pair.left.endpoint.session(left).unwrap().send_datagram(Bytes::from_static(b"lost")).unwrap();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(seen.borrow().len(), 1);
    assert_eq!(pair.link(Side::Right).in_flight(), 0);

    pair.stop_intercepting();
    let datagram = seen.borrow()[0].clone();
    assert!(matches!(pair.inject(Side::Right, LEFT, &datagram), Outcome::Authenticated(_)));
    assert_eq!(pair.right.host.datagrams.len(), 1);
}

#[test]
fn datagrams_to_a_former_address_are_lost() {
    let mut pair = pair(4);
    let (left, right) = pair.connect();
    pair.run_for(SECOND);
    pair.rebind(Side::Left, "203.0.113.9:5000".parse().unwrap());
    let stray = pair.stray();
    pair.right.endpoint.session(right).unwrap().send_datagram(Bytes::from_static(b"late")).unwrap();
    pair.run_for(Duration::from_millis(15));
    assert_eq!(pair.stray(), stray + 1);
    assert!(pair.left.host.datagrams.is_empty());
    assert!(pair.left.endpoint.session(left).is_some());
}

#[test]
fn the_same_seed_sends_the_same_bytes_at_the_same_times() {
    let run = |seed| {
        let mut pair = Pair::new(PairConfig::new(seed).with_link(LinkConfig::hostile()).with_recording());
        let (left, _) = pair.connect();
        for number in 0..50_u8 {
            pair.left.endpoint.session(left).unwrap().send_datagram(vec![number; 100].into()).unwrap();
            pair.run_for(Duration::from_millis(3));
        }
        pair.run_for(SECOND);
        assert_eq!(pair.transcript().entries().count() as u64, pair.transcript().datagrams());
        (pair.transcript().hex(), pair.right.host.datagrams)
    };
    assert_eq!(run(77), run(77));
    assert_ne!(run(77).0, run(78).0);
}

#[test]
fn datagrams_over_a_hostile_link_arrive_as_the_model_allows() {
    for seed in 0..10 {
        let mut pair = Pair::new(PairConfig::new(seed).with_link(LinkConfig::hostile()));
        let (left, right) = pair.connect();
        let mut model = Model::new();
        for number in 0..200_u8 {
            let data = vec![number; 1 + usize::from(number)];
            model.datagram(&data);
            pair.left.endpoint.session(left).unwrap().send_datagram(data.into()).unwrap();
            pair.run_for(Duration::from_millis(1));
        }
        pair.run_for(SECOND);
        assert_eq!(model.check_all(&pair.right.host, right), Ok(()), "seed {seed}");
        assert!(pair.right.host.datagrams.len() > 150, "seed {seed}");
    }
}

#[test]
fn running_for_a_time_ends_exactly_then() {
    let mut pair = pair(5);
    let start = pair.now();
    pair.run_for(SECOND);
    assert_eq!(pair.now().saturating_since(start), SECOND);
    assert!(!pair.run_until(|_| false, SECOND));
    assert_eq!(pair.now().saturating_since(start), 2 * SECOND);
}

#[test]
fn many_nodes_connect_to_one() {
    let mut network = Network::new(6);
    let mut rng = Rng::new(6);
    let mut config = || Config::new(Identity::from_seed(rng.bytes32()), b"wraith-sim");
    let link = LinkConfig::perfect().with_latency(Duration::from_millis(5));
    let server = network.add(config(), link, Recorder::new());
    for _ in 0..20 {
        let client = network.add(config(), link, Recorder::new());
        let session = network.dial(client, server).unwrap();
        assert!(network.node_mut(client).endpoint.session(session).is_some());
    }
    assert!(network.run_until(|network| network.node(server).connected() == 20, 10 * SECOND));
    assert!(
        network.run_until(|network| network.nodes()[1..].iter().all(|node| node.connected() == 1), SECOND)
    );
    assert_eq!(network.stray(), 0);

    let client = network.node_mut(7);
    let session = client.last_connected().unwrap();
    client.endpoint.session(session).unwrap().send_datagram(Bytes::from_static(b"seven")).unwrap();
    let sent = network.now();
    assert!(network.run_until(|network| !network.node(server).host.datagrams.is_empty(), SECOND));
    assert_eq!(network.now().saturating_since(sent), Duration::from_millis(10));
    assert_eq!(network.node(server).host.datagrams[0].1, b"seven");
}
