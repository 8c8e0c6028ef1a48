//! Nodes to join through that are not there, or not where they are said to be.

use std::net::UdpSocket;

use wraith_proto::Identity;

use crate::node::{Node, error, stored};
use crate::support::{Folder, Running, program, run};

const HASH: &str = "abababababababababababababababababababababababababababababababab";

/// `PEER@ADDR` of nodes that never answer, and the sockets that keep others from their ports.
fn silent(count: u8) -> (Vec<UdpSocket>, Vec<String>) {
    let socket = |at: u8| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let target = format!("{}@{}", Identity::from_seed([at; 32]).peer_id(), socket.local_addr().unwrap());
        (socket, target)
    };
    (1..=count).map(socket).unzip()
}

fn put_through(targets: &[String]) -> Running {
    let mut put = program(["dht", "put", "x", "--json"]);
    for target in targets {
        put.args(["--bootstrap", target]);
    }
    Running::start(&mut put)
}

#[test]
fn one_node_behind_a_hundred_silent_ones_is_found_in_time() {
    let folder = Folder::new("hundred");
    let node = Node::start(&folder, "node", &[]);
    let (_sockets, mut targets) = silent(100);
    targets.push(node.target.clone());
    assert_eq!(stored(put_through(&targets)).1, 1);
}

#[test]
fn a_peer_at_several_addresses_is_found_at_the_one_where_it_is() {
    let folder = Folder::new("addresses");
    let node = Node::start(&folder, "node", &[]);
    let (sockets, _) = silent(2);
    let at = |socket: &UdpSocket| format!("{}@{}", node.peer, socket.local_addr().unwrap());
    let mut targets: Vec<_> = sockets.iter().map(at).collect();
    targets.push(node.target.clone());
    assert_eq!(stored(put_through(&targets)).1, 1);
}

#[test]
fn a_node_that_names_itself_is_the_first_one_and_joins_whoever_comes() {
    let folder = Folder::new("itself");
    let identity = folder.path("first.id");
    let peer = run(["id".as_ref(), "--identity".as_ref(), identity.as_os_str()]).stdout.pop().unwrap();
    let first = Node::start_with(&folder, "first", &[&format!("{peer}@127.0.0.1:9")], &[]);
    assert_eq!(first.peer, peer);
    let second = Node::start(&folder, "second", &[&first]);
    assert_eq!((second.joined(), first.joined(), first.published()), (1, 1, 1));
}

#[test]
fn what_cannot_be_joined_through_is_told_at_once() {
    let folder = Folder::new("cannot");
    let node = Node::start(&folder, "node", &[]);
    let v6 = format!("{}@[::1]:9", node.peer);
    let other = folder.path("other.id");
    let other = other.to_str().unwrap();
    for args in [&["put", "x"][..], &["node", "--identity", other, "-q"]] {
        let end = run(["dht"].iter().chain(args).copied().chain(["--bind", "127.0.0.1", "--bootstrap", &v6]));
        assert!(end.error(2).starts_with("[::1]:9 cannot be reached from 127.0.0.1:0"), "{}", end.stderr);
    }
    let identity = folder.path("node.id");
    let end = run(["dht", "announce", HASH, "--bootstrap", &node.target, "--identity"]
        .map(AsRef::as_ref)
        .into_iter()
        .chain([identity.as_os_str()]));
    assert!(end.error(2).starts_with("the only node that is known here has the identity"), "{}", end.stderr);
    let wrong = node.target.replace(&node.peer, &Identity::from_seed([3; 32]).peer_id().to_string());
    let (message, _) = error(["dht", "get", HASH, "--timeout", "2s", "--bootstrap", &wrong]);
    assert!(message.contains("by the peer id that it has there"), "{message}");
}

#[test]
fn nodes_of_ipv6_are_a_network() {
    let folder = Folder::new("ipv6");
    let target = |node: &Running| {
        let event = node.event("node");
        let address = event["addresses"].as_array().unwrap().last().unwrap().as_str().unwrap();
        assert!(address.starts_with("[::1]:"), "{event}");
        format!("{}@{address}", event["peer"].as_str().unwrap())
    };
    let start = |name: &str, more: &[&str]| {
        let (identity, state) = (folder.path(name), folder.path(&format!("{name}.state")));
        let mut command = program(["dht", "node", "--json", "-q", "--bind", "[::1]:0", "--identity"]);
        Running::start(command.arg(identity).arg("--state").arg(state).args(more))
    };
    let first = start("first", &[]);
    let first_target = target(&first);
    let second = start("second", &["--bootstrap", &first_target]);
    let second_target = target(&second);
    assert_eq!(second.event("joined")["contacts"], 1);
    let (key, nodes) = stored(put_through(&[first_target]));
    assert_eq!(nodes, 2);
    let get = run(["dht", "get", &key, "--bootstrap", &second_target]);
    assert_eq!((get.code, get.stdout), (Some(0), vec!["x".to_owned()]), "{}", get.stderr);
}
