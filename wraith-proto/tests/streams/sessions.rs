//! What a packet costs does not depend on how many sessions there are.

use std::time::Duration;

use wraith_proto::{Config, Dir, Identity, Limits, SessionHandle};
use wraith_sim::{LinkConfig, Network, Rng, Transparent};

use crate::support::{Bulk, MS, full};

const SECOND: Duration = Duration::from_secs(1);

/// Sessions visited and datagrams handled by a server of `sessions` sessions of which `active` send.
fn visits(sessions: u32, active: u32) -> (u64, u64) {
    let mut network: Network<Bulk> = Network::new(u64::from(sessions));
    let mut rng = Rng::new(1);
    let mut config = |limits| {
        let mut config = Config::new(Identity::from_seed(rng.bytes32()), b"sessions");
        (config.limits, config.crypto) = (limits, Transparent::CHECKED);
        config.limits.handshake_rate = 1 << 20;
        config.transport = config.transport.with_idle_timeout(Duration::from_mins(10));
        config
    };
    let link = LinkConfig::perfect().with_latency(MS(5));
    let mut limits = Limits::server(sessions);
    limits.handshakes = 4 * sessions.max(64);
    let server = network.add(config(limits), link, Bulk::new());
    for _ in 0..sessions {
        let client = network.add(config(Limits::embedded()), link, Bulk::new());
        network.dial(client, server).unwrap();
        network.run_for(Duration::from_micros(500));
    }
    let connected = |network: &Network<Bulk>| network.node(server).connected() == u64::from(sessions);
    assert!(network.run_until(connected, 30 * SECOND), "{} connected", network.node(server).connected());
    network.run_for(2 * SECOND);
    let before = *network.node(server).endpoint.stats();
    let handles: Vec<SessionHandle> =
        (1..=active).map(|client| network.node(client).last_connected().unwrap()).collect();
    for (client, &session) in (1..).zip(&handles) {
        let mut session = network.node_mut(client).endpoint.session(session).unwrap();
        let stream = session.open(Dir::Uni).unwrap();
        session.attach(stream, 100_000).unwrap();
    }
    network.run_for(3 * SECOND);
    let server = network.node(server);
    assert_eq!(server.host.received, 100_000 * u64::from(active));
    let after = server.endpoint.stats();
    let datagrams = |stats: &wraith_proto::Stats| stats.datagrams_received + stats.datagrams_sent;
    (after.sessions_visited - before.sessions_visited, datagrams(after) - datagrams(&before))
}

#[test]
fn idle_sessions_cost_active_ones_nothing() {
    let many = if full() { 10_000 } else { 1_000 };
    let (few, few_datagrams) = visits(10, 10);
    let (lots, lots_datagrams) = visits(many, 100);
    let per_thousand = |visits: u64, datagrams: u64| visits * 1000 / datagrams;
    let (before, after) = (per_thousand(few, few_datagrams), per_thousand(lots, lots_datagrams));
    assert!(
        after <= before + before / 10,
        "{after} visits per 1,000 datagrams of {many} sessions, {before} of 10"
    );
}
