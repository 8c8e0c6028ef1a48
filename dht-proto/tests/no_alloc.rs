//! A node allocates when it is made and never again: neither for messages nor for time.

use std::net::SocketAddr;
use std::time::Duration;

use wraith_dht_proto::{
    Dht, Event, Kind, Limits, MAX_UNSEALED, NodeRef, Outcome, Record, Transmit, value_key,
};
use wraith_proto::{Identity, Instant};
use wraith_sim::alloc::{Counting, live_bytes, measure};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const NODES: usize = 40;

struct Network {
    nodes: Vec<(Dht, NodeRef)>,
    now: Instant,
}

impl Network {
    /// Carries messages at once until nobody has one.
    fn carry(&mut self) {
        let mut buffer = [0; MAX_UNSEALED];
        let mut quiet = 0;
        for at in (0..NODES).cycle() {
            let from = self.nodes[at].1;
            quiet += 1;
            while let Some(Transmit { to, len, .. }) = self.nodes[at].0.poll_transmit(self.now, &mut buffer) {
                quiet = 0;
                if let Some((node, _)) = self.nodes.iter_mut().find(|(_, me)| me.address == to) {
                    // An answer to a lookup that has ended is dropped.
                    let _ = node.handle_unsealed(self.now, from, &buffer[..len]);
                }
            }
            if quiet > NODES {
                return;
            }
        }
    }
}

#[test]
fn a_node_that_was_made_allocates_nothing() {
    let now = Instant::from_nanos(3_600_000_000_000);
    let limits = Limits::default();
    let before = live_bytes();
    let make = |at: usize| {
        let peer = Identity::from_seed([at as u8; 32]).peer_id();
        let me = NodeRef::new(&peer, SocketAddr::from(([9, at as u8, 1, 1], 5)));
        (Dht::new(&limits, &peer, &[at as u8; 32], now), me)
    };
    let nodes: Vec<_> = (0..NODES).map(make).collect();
    let each = (live_bytes() - before) as usize / NODES;
    // The list of nodes counts the nodes themselves, and a name beside each.
    assert!(each <= limits.memory() + limits.record_memory() + size_of::<NodeRef>(), "{each}");
    let mut network = Network { nodes, now };
    let first = network.nodes[0].1;
    let (found, counts) = measure(|| {
        let mut found = 0;
        for at in 1..NODES {
            network.nodes[at].0.bootstrap(first, network.now);
            network.carry();
        }
        for at in 0..NODES {
            let value = [at as u8; 256];
            network.nodes[at].0.put(&Record::Value(&value), None, network.now).unwrap();
            network.carry();
            network.nodes[(at + 7) % NODES].0.get(value_key(&value), Kind::Value, network.now).unwrap();
            network.carry();
            for (node, _) in &mut network.nodes {
                while let Some(event) = node.poll_event() {
                    found += u32::from(matches!(event, Event::Ended(_, Outcome::Found { .. })));
                }
            }
            network.now = network.now.saturating_add(Duration::from_mins(10));
            network.nodes.iter_mut().for_each(|(node, _)| node.handle_timeout(network.now));
            network.carry();
        }
        found
    });
    assert_eq!((counts.allocations, counts.deallocations), (0, 0));
    assert_eq!(found, NODES as u32);
}
