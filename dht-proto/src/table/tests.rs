use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::id::Id;
use crate::node::{NodeRef, PER_REGION, PER_SITE};

const OWN: Place = Place(0);

/// Node number `at`, each at a site and in a region of its own.
fn node(at: u32) -> Node {
    node_in(at, [1 + (at >> 8) as u8, at as u8, 1])
}

fn node_in(at: u32, site: [u8; 3]) -> Node {
    let mut key = [0; 32];
    key[..4].copy_from_slice(&at.to_be_bytes());
    let [a, b, c] = site;
    NodeRef { key, address: SocketAddr::from(([a, b, c, 1], 9)) }.into()
}

/// Nodes of one bucket.
fn of_bucket(bucket: usize) -> impl Iterator<Item = Node> {
    (0..).map(node).filter(move |node| OWN.bucket(node.id().place()) == Some(bucket))
}

fn nodes(table: &Table) -> Vec<Node> {
    table.live().map(|contact| contact.node).collect()
}

#[test]
fn a_full_bucket_keeps_its_nodes_and_eight_spares() {
    let mut table = Table::new(OWN, 512);
    let nodes: Vec<Node> = of_bucket(0).take(K + SPARES + 1).collect();
    for node in &nodes {
        assert_eq!(table.answered(*node, [1; 16], 5), None);
    }
    assert_eq!((table.len(), table.len), (K, K + SPARES));
    assert_eq!(self::nodes(&table), nodes[..K]);
    assert!(!table.wants(&nodes[K + SPARES]) && table.wants(&of_bucket(1).next().unwrap()));
}

#[test]
fn the_oldest_of_a_full_bucket_is_asked_once_it_was_silent_for_long() {
    let mut table = Table::new(OWN, 512);
    let nodes: Vec<Node> = of_bucket(0).take(K + 2).collect();
    for (at, node) in nodes[..K].iter().enumerate() {
        table.answered(*node, [1; 16], 10 - u32::from(at == 7));
    }
    assert_eq!(table.answered(nodes[K], [1; 16], 9 + STALE), None);
    assert_eq!(table.answered(nodes[K + 1], [1; 16], 10 + STALE), Some(nodes[7]));
    assert_eq!(table.stalest(9 + STALE), None);
    assert_eq!(table.stalest(10 + STALE), Some(nodes[7]));
    // The one that answered last takes its place.
    table.failed(&nodes[7]);
    let live = self::nodes(&table);
    assert!(!live.contains(&nodes[7]) && live.contains(&nodes[K + 1]) && !live.contains(&nodes[K]));
    assert_eq!(table.len(), K);
}

#[test]
fn without_a_spare_a_node_goes_after_two_failures_in_a_row() {
    let mut table = Table::new(OWN, 512);
    let node = node(1);
    table.answered(node, [1; 16], 1);
    table.failed(&node);
    assert_eq!(table.len(), 1);
    // Nobody is told of it meanwhile.
    assert!(table.nearest(OWN, None).is_empty());
    table.answered(node, [1; 16], 2);
    assert_eq!(table.nearest(OWN, None).len(), 1);
    table.failed(&node);
    table.failed(&node);
    assert_eq!((table.len(), table.len), (0, 0));
}

#[test]
fn a_failure_at_a_former_address_is_no_failure() {
    let mut table = Table::new(OWN, 512);
    let (old, new) = (node_in(1, [1, 1, 1]), node_in(1, [2, 2, 2]));
    table.answered(old, [1; 16], 1);
    table.answered(new, [2; 16], 2);
    table.failed(&old);
    table.failed(&old);
    assert_eq!(nodes(&table), [new]);
    assert_eq!((table.token(&new, 301), table.token(&old, 3)), ([2; 16], [0; 16]));
    assert_eq!(table.token(&new, 302), [0; 16], "it may be too old");
}

#[test]
fn a_prefix_gets_two_places_and_its_region_four() {
    // PROTO §14.9
    let mut table = Table::new(OWN, 512);
    let sites = [[7, 7, 1], [7, 7, 1], [7, 7, 1], [7, 7, 2], [7, 7, 3], [7, 7, 4], [7, 8, 1]];
    for (at, site) in sites.into_iter().enumerate() {
        table.answered(node_in(at as u32, site), [1; 16], 1);
    }
    let taken: Vec<Node> = [0, 1, 3, 4, 6].map(|at| node_in(at as u32, sites[at])).to_vec();
    assert_eq!(nodes(&table), taken);
}

#[test]
fn a_spare_leaves_a_full_pool_to_a_node_with_a_place() {
    let mut table = Table::new(OWN, 22);
    let near: Vec<Node> = of_bucket(0).take(K + 2).collect();
    for node in &near {
        table.answered(*node, [1; 16], 1);
    }
    assert_eq!(table.len, 22);
    for node in of_bucket(1).take(2) {
        table.answered(node, [1; 16], 2);
    }
    assert_eq!((table.len(), table.len), (22, 22));
    // Nobody waits any more.
    table.answered(of_bucket(2).next().unwrap(), [1; 16], 3);
    assert_eq!(table.len(), 22);
}

#[test]
fn the_families_have_tables_of_their_own() {
    let mut table = Table::new(OWN, 512);
    let v4: Vec<Node> = of_bucket(0).take(K).collect();
    for node in &v4 {
        table.answered(*node, [1; 16], 1);
    }
    let v6 = Node {
        address: "[2001:db8::1]:9".parse::<SocketAddr>().unwrap().into(),
        ..of_bucket(0).nth(K).unwrap()
    };
    assert!(table.wants(&v6));
    table.answered(v6, [1; 16], 1);
    assert_eq!(table.len(), K + 1);
    let only = table.nearest(OWN, Some(Family::V6));
    assert_eq!(only.iter().map(|&(_, at)| table.contact(at).node).collect::<Vec<_>>(), [v6]);
    assert!(table.nearest(OWN, Some(Family::V4)).iter().all(|&(_, at)| table.contact(at).node != v6));
}

#[test]
fn sparse_buckets_are_those_less_than_half_full() {
    let mut table = Table::new(OWN, 512);
    assert_eq!(table.sparse(0), None);
    for node in of_bucket(0).take(9).chain(of_bucket(1).take(10)).chain(of_bucket(3).take(20)) {
        table.answered(node, [1; 16], 1);
    }
    assert_eq!(
        (table.sparse(0), table.sparse(1)),
        (Some(0), None),
        "the search for the own place found the nearest 20"
    );
    table.answered(of_bucket(4).next().unwrap(), [1; 16], 1);
    assert_eq!((table.sparse(1), table.sparse(3)), (Some(2), None));
    table.answered(of_bucket(0).nth(9).unwrap(), [1; 16], 1);
    assert_eq!(table.sparse(0), Some(2));
}

#[test]
fn the_reach_is_where_the_twentieth_contact_is() {
    let mut table = Table::new(OWN, 512);
    let mut places: Vec<u64> = (0..30).map(|at| node(at).id().place().0).collect();
    for at in 0..30 {
        assert_eq!(table.reach().is_some(), at >= 20);
        table.answered(node(at), [1; 16], 1);
    }
    places.sort_unstable();
    assert_eq!(table.reach(), Some(places[19]));
}

/// One call, for the comparison with a model.
#[derive(Clone, Copy, Debug)]
enum Call {
    Answered(u32, u8),
    Failed(u32),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        3 => (0_u32..400, 0_u8..60).prop_map(|(node, site)| Call::Answered(node, site)),
        1 => (0_u32..400).prop_map(Call::Failed),
    ]
}

proptest! {
    /// The model: who answered from where. The table holds some of these and nobody else, within all limits.
    #[test]
    fn whatever_answers_and_fails_the_limits_hold(calls in proptest::collection::vec(call(), 0..800), capacity in 1_u16..80, target: u64) {
        let mut table = Table::new(OWN, capacity);
        let mut model = BTreeMap::<_, Vec<Node>>::new();
        for (now, call) in (0..).zip(calls) {
            match call {
                Call::Answered(at, site) => {
                    let node = node_in(at, [50 + site / 20, site / 4, site]);
                    model.entry(node.key).or_default().push(node);
                    table.answered(node, [1; 16], now);
                }
                Call::Failed(at) => {
                    if let Some(node) = model.get(&node(at).key).and_then(|nodes| nodes.last()) {
                        table.failed(node);
                    }
                }
            }
        }
        let contacts = &table.contacts[..table.len];
        prop_assert!(table.len <= usize::from(capacity));
        let mut keys: Vec<_> = contacts.iter().map(|contact| contact.node.key).collect();
        keys.sort_unstable();
        keys.dedup();
        prop_assert_eq!(keys.len(), table.len, "twice in the table");
        for (at, contact) in contacts.iter().enumerate() {
            prop_assert!(model[&contact.node.key].contains(&contact.node));
            prop_assert_eq!(table.places[at], Id::of_node(&contact.node.key).place());
            let same = |prefix: fn(&Address) -> &[u8]| {
                contacts.iter().filter(|other| prefix(&other.node.address) == prefix(&contact.node.address)).count()
            };
            prop_assert!(same(Address::site) <= PER_SITE, "site");
            prop_assert!(same(Address::region) <= PER_REGION, "region");
        }
        for bucket in 0..BUCKETS {
            let of = |spare: bool| {
                (0..table.len)
                    .filter(|&at| OWN.bucket(table.places[at]) == Some(bucket) && table.contacts[at].spare == spare)
                    .count()
            };
            prop_assert_eq!(of(false), usize::from(table.live[0][bucket]));
            prop_assert!(of(false) <= K && of(true) <= SPARES);
        }
        let target = Place(target);
        let mut expected: Vec<_> = (0..table.len)
            .filter(|&at| !table.contacts[at].spare && table.contacts[at].failures == 0)
            .map(|at| (table.places[at].distance(target), at as u16))
            .collect();
        expected.sort_unstable();
        expected.truncate(K);
        prop_assert_eq!(&table.nearest(target, None)[..], expected);
    }
}
