//! Peers that move, and records that they replace.

use crate::heard::Heard;
use crate::node::{Node, asking, brought, found, stored};
use crate::support::{Folder, Listener, PATIENCE, program, run};

#[test]
fn a_peer_that_comes_back_at_another_port_is_found_by_its_id() {
    let folder = Folder::new("moved");
    let first = Node::start(&folder, "first", &[]);
    let second = Node::start(&folder, "second", &[&first]);
    second.joined();
    let peer = Node::start(&folder, "peer", &[&second]);
    assert_eq!((peer.joined(), peer.published()), (2, 2));
    let (id, before) = (peer.peer.clone(), peer.target.clone());
    assert_eq!(found(&["--peer", &id], &first), [(before.clone(), true)]);

    let end = peer.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(130), ""));
    assert_eq!(found(&["--peer", &id], &first), [(before.clone(), false)], "its record is still there");

    let peer = Node::start(&folder, "peer", &[]);
    assert_eq!((peer.joined(), peer.published()), (2, 2));
    assert!(peer.peer == id && peer.target != before);
    for node in [&first, &second] {
        let found = found(&["--peer", &id], node);
        assert_eq!(found.iter().map(|(target, _)| target).collect::<Vec<_>>(), [&peer.target]);
    }
}

#[test]
fn a_listener_that_is_a_node_too_is_found_by_its_id_and_answers_pings_on_that_port() {
    let folder = Folder::new("listener");
    let node = Node::start(&folder, "node", &[]);
    let listener = Listener::start_with("127.0.0.1", &["--bootstrap", &node.target]);
    assert_eq!(listener.process.event("joined")["contacts"], 1);
    assert_eq!(listener.process.event("published")["nodes"], 1);
    let target = listener.at("127.0.0.1");
    assert_eq!(found(&["--peer", &listener.peer], &node), [(target.clone(), true)]);
    let ping = run(["ping", "-q", "-c", "1", &target]);
    assert_eq!(ping.code, Some(0), "{}", ping.stderr);
    assert_eq!(listener.process.event("connected")["protocol"], "wraith-ping/1");
}

#[test]
fn a_node_whose_clock_was_far_ahead_says_that_others_go_on_naming_its_old_address() {
    let folder = Folder::new("ahead");
    let node = Node::start(&folder, "node", &[]);
    let (identity, state) = (folder.path("own.id"), folder.path("own.state"));
    let identity = identity.to_str().unwrap();
    // The year 2286, in milliseconds.
    let far = ["--sign", "--identity", identity, "--salt", "1", "--seq", "9999999999999", "192.0.2.1:5"];
    assert_eq!(stored(asking("put", &far, &node)).1, 1);
    let mut own = program(["dht", "node", "--json", "--bind", "127.0.0.1", "--identity", identity]);
    let own = Heard::start(own.arg("--state").arg(state).args(["--bootstrap", &node.target]));
    own.hear("sequence number 9999999999999, far ahead of this machine's clock");
}

#[test]
fn of_signed_records_the_highest_number_wins_and_may_be_asked_for() {
    let folder = Folder::new("signed");
    let first = Node::start(&folder, "first", &[]);
    let second = Node::start(&folder, "second", &[&first]);
    second.joined();
    let identity = folder.path("owner");
    let identity = identity.to_str().unwrap();
    let put = |value: &str, args: &[&str]| {
        let all = [&["--sign", "--identity", identity, "--salt", "9", value], args].concat();
        asking("put", &all, &first)
    };
    let (key, nodes) = stored(put("one", &["--seq", "5"]));
    assert_eq!(nodes, 2);
    let peer = run(["id", "--identity", identity]).stdout.pop().unwrap();
    brought(asking("get", &["--peer", &peer, "--salt", "9"], &second), "one");
    brought(asking("get", &[&key], &second), "one");

    let refused = put("two", &["--seq", "5"]).finish();
    assert!(refused.error(1).starts_with("a record with sequence number 5 is there"), "{}", refused.stderr);
    let refused = put("two", &["--seq", "7", "--expected", "4"]).finish();
    assert!(refused.error(1).starts_with("a record with sequence number 5 is there"), "{}", refused.stderr);
    brought(asking("get", &[&key], &second), "one");
    assert_eq!(stored(put("two", &["--seq", "7", "--expected", "5"])), (key.clone(), 2));
    brought(asking("get", &[&key], &second), "two");
    // Without a number it is the time, which is later.
    assert_eq!(stored(put("three", &[])), (key.clone(), 2));
    brought(asking("get", &[&key], &second), "three");
    let other = asking("get", &["--peer", &peer], &second).finish();
    assert!(other.took < PATIENCE && other.code == Some(1) && other.stdout.is_empty(), "{}", other.stderr);
}
