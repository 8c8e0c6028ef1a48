//! Every command ends, with a result that says what it is.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::time::Duration;

use crate::node::{Node, asking, brought, error, put};
use crate::support::{Folder, PATIENCE, Running, program, run};

const NOTHING: &str = "abababababababababababababababababababababababababababababababab";

#[test]
fn a_silent_node_to_join_through_is_an_error_when_the_time_is_over() {
    let folder = Folder::new("silent");
    // Bound and never read: nobody answers, and nobody else gets the port.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let peer = wraith_proto::Identity::from_seed([3; 32]).peer_id();
    let target = format!("{peer}@{silent}");
    let commands: [&[&str]; 4] =
        [&["get", NOTHING], &["put", "x"], &["find", NOTHING], &["find", "--peer", &peer.to_string()]];
    for args in commands {
        let all = ["dht"].iter().chain(args).copied().chain(["--bootstrap", &target, "--timeout", "2s"]);
        let (message, end) = error(all);
        assert!(
            message.starts_with(&format!("no node of the DHT answered within 2 s, tried {silent}")),
            "{message}"
        );
        assert!(message.contains("--bootstrap") && end.stdout.is_empty(), "{message}");
        assert!((1_900..12_000).contains(&end.took.as_millis()), "{:?}", end.took);
    }
    // A node waits for others all the same.
    let node = Node::start_with(&folder, "node", &[&target], &[]);
    let (_, nodes) = put("x", &node);
    assert_eq!((nodes, node.end().code), (1, Some(130)));
}

#[test]
fn what_nobody_has_is_an_error_before_the_time_is_over() {
    let folder = Folder::new("nothing");
    let node = Node::start(&folder, "node", &[]);
    let peer = wraith_proto::Identity::from_seed([3; 32]).peer_id().to_string();
    for (args, expected) in [
        (&["get", NOTHING][..], "no node of the DHT has a record under that key"),
        (&["get", "--peer", &peer], "no node of the DHT has such a record of that peer"),
        (&["find", NOTHING], "nobody announces abababab"),
        (&["find", "--peer", &peer], "the DHT does not know where"),
    ] {
        let end = asking(args[0], &args[1..], &node).finish();
        let text = if args[0] == "get" { end.stderr.clone() } else { end.stdout.join("\n") };
        let event: serde_json::Value = serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{text}"));
        assert!(end.code == Some(1) && event["message"].as_str().unwrap().starts_with(expected), "{text}");
        assert!(end.took < Duration::from_secs(15), "{:?}", end.took);
    }
    let receive = run(["receive", NOTHING, "--patience", "0", "--bootstrap", &node.target]);
    assert!(receive.stderr.contains("announces this content on the DHT"), "{}", receive.stderr);
    assert_eq!(receive.code, Some(1));
}

#[test]
fn two_nodes_are_a_network() {
    let folder = Folder::new("two");
    let first = Node::start(&folder, "first", &[]);
    let second = Node::start(&folder, "second", &[&first]);
    assert_eq!((second.joined(), second.published()), (1, 1));
    assert_eq!((first.joined(), first.published()), (1, 1));
    let (key, nodes) = put("of two", &first);
    assert_eq!(nodes, 2);
    brought(asking("get", &[&key], &second), "of two");
    first.kill();
    brought(asking("get", &[&key], &second), "of two");
}

#[test]
fn ctrl_c_ends_a_question_and_what_stays_and_what_stayed_is_still_there() {
    let folder = Folder::new("stays");
    let node = Node::start(&folder, "node", &[]);
    let put = asking("put", &["kept", "--keep"], &node);
    let stored = put.event("stored");
    // One that stays is a node, too, and there to be known.
    assert_eq!((stored["nodes"].as_u64(), node.joined()), (Some(1), 1));
    let identity = folder.path("own.id");
    let identity = identity.to_str().unwrap();
    let announce = asking("announce", &[NOTHING, "--keep", "--identity", identity], &node);
    assert_eq!(announce.event("announced")["nodes"], 2);

    // Its question arrives, so it waits for the answer when it is stopped.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    let target = format!("{}@{}", node.peer, silent.local_addr().unwrap());
    let question = Running::start(&mut program(["dht", "get", NOTHING, "--bootstrap", &target]));
    assert_eq!(silent.recv(&mut [0; 1_500]).unwrap(), 1_200);
    for process in [put, announce, question] {
        process.interrupt();
        let end = process.finish();
        assert!(end.code == Some(130) && end.stdout.is_empty(), "{:?} {}", end.code, end.stderr);
    }
    brought(asking("get", &[stored["key"].as_str().unwrap()], &node), "kept");
    assert_eq!(asking("find", &[NOTHING], &node).finish().json().len(), 1);
}

#[test]
fn wrong_usage_and_values_that_are_too_long_are_told_apart() {
    for args in [
        &["dht", "get", NOTHING][..],
        &["dht", "get"],
        &["dht", "get", "abc"],
        &["dht", "find"],
        &["dht", "put", "x", "--seq", "1"],
        &["receive", NOTHING],
    ] {
        let end = run(args);
        assert_eq!(end.code, Some(2), "{args:?}: {}", end.stderr);
    }
    let end = run(["dht", "get", NOTHING]);
    assert!(end.error(2).contains("name one with --bootstrap PEER@ADDR"), "{}", end.stderr);
    let peer = wraith_proto::Identity::from_seed([3; 32]).peer_id();
    let (message, _) =
        error(["dht", "put", &"x".repeat(1_001), "--bootstrap", &format!("{peer}@127.0.0.1:9")]);
    assert!(message.starts_with("the value is too long: a record carries 1000 bytes, a signed one 900"));
}

#[test]
fn a_signal_ends_a_simulation_as_it_ends_all_else() {
    use nix::sys::signal::Signal;

    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut sim = program(["dht", "sim", "-v", "--nodes", "1000000"]).spawn().unwrap();
        let mut begun = String::new();
        BufReader::new(sim.stderr.take().unwrap()).read_line(&mut begun).unwrap();
        assert!(begun.contains("join and store"), "{begun}");
        let pid = nix::unistd::Pid::from_raw(sim.id().try_into().unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
        let end = sim.wait_with_output().unwrap();
        assert_eq!((end.status.code(), &*end.stdout), (Some(130), &b""[..]));
    }
}
