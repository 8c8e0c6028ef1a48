//! Fifty nodes.

use crate::node::{Node, asking, brought, stored};
use crate::support::{Folder, Running, program};

const NODES: usize = 50;
const VALUES: usize = 20;

/// Clients that run at a time.
const AT_ONCE: usize = 20;

fn value(at: usize) -> String {
    format!("value {at} of {VALUES}")
}

/// Gets every value by `get`, a few at a time.
fn get_all(keys: &[String], get: impl Fn(usize, &str) -> Running) {
    let all: Vec<_> = keys.iter().enumerate().collect();
    for some in all.chunks(AT_ONCE) {
        let running: Vec<_> = some.iter().map(|&(at, key)| (at, get(at, key))).collect();
        for (at, get) in running {
            brought(get, &value(at));
        }
    }
}

#[test]
fn fifty_nodes_keep_what_is_stored_though_half_of_them_die_and_come_back_from_what_they_remember() {
    let folder = Folder::new("fifty");
    let mut nodes = vec![Some(Node::start(&folder, "0", &[]))];
    for at in 1..NODES {
        let first = nodes[0].as_ref().unwrap();
        let node = Node::start(&folder, &at.to_string(), &[first]);
        nodes.push(Some(node));
    }
    for node in nodes.iter().flatten() {
        assert!(node.joined() > 0);
    }

    let mut keys = Vec::new();
    for some in (0..VALUES).collect::<Vec<_>>().chunks(AT_ONCE) {
        let through = |at: usize| nodes[2 * at % NODES].as_ref().unwrap();
        let puts: Vec<_> = some.iter().map(|&at| asking("put", &[&value(at)], through(at))).collect();
        for put in puts {
            let (key, kept) = stored(put);
            assert!(kept >= 10, "{kept} nodes keep it");
            keys.push(key);
        }
    }
    get_all(&keys, |at, key| asking("get", &[key], nodes[(2 * at + 7) % NODES].as_ref().unwrap()));

    for at in (1..NODES).step_by(2) {
        nodes[at].take().unwrap().kill();
    }
    get_all(&keys, |at, key| asking("get", &[key], nodes[(2 * at + 10) % NODES].as_ref().unwrap()));

    for at in (1..NODES).step_by(2) {
        nodes[at] = Some(Node::start(&folder, &at.to_string(), &[]));
    }
    for at in (1..NODES).step_by(2) {
        assert!(nodes[at].as_ref().unwrap().joined() > 0);
    }
    get_all(&keys, |at, key| {
        // Contacts of a node that came back, in a file: no address is given.
        let state = &nodes[(2 * at + 1) % NODES].as_ref().unwrap().state;
        Running::start(program(["dht", "get", "--json", key, "--state"]).arg(state))
    });
}
