//! Pools that run out: progress is slower, and certain.

use std::time::Duration;

use wraith_proto::{Config, Dir, DropReason, Identity, Limits, OpenError};
use wraith_sim::{LinkConfig, Network, PairConfig, Rng, Side, Transparent};

use crate::support::{Bulk, MS, connected, send, transfer};

const SECOND: Duration = Duration::from_secs(1);

fn disorderly() -> LinkConfig {
    LinkConfig::perfect()
        .with_latency(MS(10))
        .with_loss(20_000)
        .with_reorder(50_000, MS(8))
        .with_duplicate(10_000)
}

#[test]
fn one_small_device_makes_progress_in_both_directions() {
    let config = PairConfig::new(1).with_link(disorderly()).with_both(|config| {
        config.limits = Limits::embedded();
    });
    let (mut pair, left, right) = connected(config);
    transfer(&mut pair, left, 500_000, 60 * SECOND);
    let mut session = pair.right.endpoint.session(right).unwrap();
    let stream = session.open(Dir::Uni).unwrap();
    session.attach(stream, 500_000).unwrap();
    assert!(pair.run_until(|pair| pair.right.host.delivered == 1, 60 * SECOND));
    assert_eq!(pair.left.host.received, 500_000);
}

/// `PROTO §8.2`: a session without any shared records sends with its own eight.
#[test]
fn eight_records_are_enough_to_get_everything_through() {
    let config = PairConfig::new(2).with_link(disorderly()).with_both(|config| {
        config.limits.sent_packets = 1;
    });
    let (mut pair, left, _) = connected(config);
    transfer(&mut pair, left, 200_000, 60 * SECOND);
    assert!(pair.left.endpoint.stats().records_exhausted > 0);
}

/// `PROTO §8.2`: when all records are lost packets', these are sent again with them.
#[test]
fn a_session_whose_every_record_is_lost_recovers() {
    let link = LinkConfig::perfect().with_latency(MS(10));
    let config = PairConfig::new(3).with_link(link).with_both(|config| config.limits.sent_packets = 1);
    let (mut pair, left, _) = connected(config);
    pair.run_for(SECOND);
    pair.set_link(Side::Right, link.with_loss(1_000_000));
    send(&mut pair, left, 100_000);
    pair.run_for(3 * SECOND);
    pair.set_link(Side::Right, link);
    assert!(pair.run_until(|pair| pair.left.host.delivered == 1, 10 * SECOND));
    assert_eq!(pair.right.host.received, 100_000);
}

/// `PROTO §7.6`: data at the front of a stream are taken even when the pool of gaps is empty.
#[test]
fn streams_make_progress_with_one_descriptor_for_gaps() {
    for holes in [1, 2] {
        let link = LinkConfig::perfect().with_latency(MS(10)).with_loss(20_000).with_reorder(50_000, MS(8));
        let config = PairConfig::new(4).with_link(link).with_both(|config| config.limits.holes = holes);
        let (mut pair, left, _) = connected(config);
        for _ in 0..3 {
            send(&mut pair, left, 300_000);
        }
        let done = pair.run_until(|pair| pair.left.host.delivered == 3, 120 * SECOND);
        assert!(done, "{} bytes with {holes}", pair.right.host.received);
        assert_eq!(pair.right.host.received, 900_000);
        assert!(pair.right.endpoint.stats().bytes_refused > 0);
    }
}

/// `PROTO §7.7`: a packet that would open streams for which there is no room comes again.
#[test]
fn streams_beyond_the_receivers_pool_wait_for_room() {
    let mut network: Network<Bulk> = Network::new(5);
    let mut rng = Rng::new(5);
    let mut config = || {
        let mut config = Config::new(Identity::from_seed(rng.bytes32()), b"room");
        config.crypto = Transparent::CHECKED;
        config
    };
    let mut small = config();
    small.limits.streams = 4;
    let server = network.add(small, disorderly(), Bulk::new());
    let clients: Vec<u32> = (0..4).map(|_| network.add(config(), disorderly(), Bulk::new())).collect();
    for &client in &clients {
        network.dial(client, server).unwrap();
    }
    network.run_for(3 * SECOND);
    // Twice as many streams as there is room for, each larger than a packet.
    for &client in &clients {
        let node = network.node_mut(client);
        let mut session = node.endpoint.session(node.last_connected().unwrap()).unwrap();
        for _ in 0..2 {
            let stream = session.open(Dir::Uni).unwrap();
            session.attach(stream, 20_000).unwrap();
        }
        assert_eq!(
            session.open(Dir::Uni),
            Err(OpenError::PeerLimit),
            "one session is offered half of the pool"
        );
    }
    let delivered = |network: &Network<Bulk>| {
        clients.iter().map(|&client| network.node(client).host.delivered).sum::<u64>()
    };
    assert!(
        network.run_until(|network| delivered(network) == 8, 60 * SECOND),
        "{} of 8",
        delivered(&network)
    );
    assert_eq!(network.node(server).host.received, 160_000);
    assert!(network.node(server).endpoint.stats().drops(DropReason::TableFull) > 0);
}

#[test]
fn an_end_without_room_opens_no_stream() {
    let mut config = PairConfig::new(6);
    config.left.limits.streams = 2;
    let (mut pair, left, _) = connected(config);
    send(&mut pair, left, 10);
    send(&mut pair, left, 10);
    assert_eq!(pair.left.endpoint.session(left).unwrap().open(Dir::Uni), Err(OpenError::LocalLimit));
    assert!(pair.run_until(|pair| pair.left.host.delivered == 2, SECOND));
    assert!(pair.left.endpoint.session(left).unwrap().open(Dir::Uni).is_ok());
}
