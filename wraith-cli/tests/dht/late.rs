//! Providers that come while somebody waits for them, and nodes that come late.

use std::fs;
use std::net::UdpSocket;
use std::process::Command;

use serde_json::Value;

use crate::heard::Heard;
use crate::node::Node;
use crate::support::{Folder, Running, program, run};

/// `send --announce` of a file through `node`, without `-q`.
fn send(file: &std::path::Path, target: &str) -> Command {
    let mut send = program(["send", "--json", "--announce", "--bind", "127.0.0.1", "--bootstrap", target]);
    send.arg(file);
    send
}

/// `receive` of a hash through `node`.
fn receive(hash: &str, target: &std::path::Path, node: &Node) -> Command {
    let mut receive = program(["receive", "--json", hash, "--bootstrap", &node.target, "--output"]);
    receive.arg(target);
    receive
}

fn is(name: &str) -> impl Fn(&Value) -> bool {
    move |event| event["event"] == name
}

#[test]
fn a_receiver_waits_for_a_provider_and_goes_on_with_the_next_when_that_one_dies() {
    let folder = Folder::new("late");
    let node = Node::start(&folder, "node", &[]);
    let (file, target) = (folder.path("file"), folder.path("target"));
    fs::File::create(&file).unwrap().set_len(1 << 28).unwrap();
    fs::create_dir(&target).unwrap();
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(fs::File::open(&file).unwrap()).unwrap();
    let hash = hasher.finalize().to_string();

    let receiver = Heard::start(&receive(&hash, &target, &node));
    receiver.hear("announces this content on the DHT");
    // So that it takes long enough to be caught in the middle.
    let first = Heard::start(send(&file, &node.target).args(["--packet-size", "1200"]));
    let died = first.wait(is("ticket"))["peer"].clone();
    receiver.wait(|event| event["event"] == "progress" && event["bytes"].as_u64() > Some(0));
    drop(first);
    receiver.hear("does not answer: looking for it");
    let second = Heard::start(&send(&file, &node.target));
    let peer = second.wait(is("ticket"))["peer"].clone();
    assert_ne!(peer, died);
    let done = receiver.wait(is("done"));
    assert_eq!((&done["peer"], &done["bytes"]), (&peer, &(1_u64 << 28).into()));
    assert_eq!((receiver.finish().0, second.finish().0), (Some(0), Some(0)));
}

#[test]
fn a_receiver_ends_with_its_patience_and_says_that_nobody_came() {
    let folder = Folder::new("nobody");
    let node = Node::start(&folder, "node", &[]);
    let target = folder.path("target");
    fs::create_dir(&target).unwrap();
    let mut receive = receive(&"ab".repeat(32), &target, &node);
    let end = Running::start(receive.args(["-q", "--patience", "5s"])).finish();
    assert!(end.error(1).starts_with("nobody who can be reached from here announces"), "{}", end.stderr);
    assert!(end.took.as_secs() >= 5, "{:?}", end.took);
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "it has left something behind");
}

#[test]
fn a_sender_whose_node_comes_late_is_announced_all_the_same() {
    let folder = Folder::new("late-node");
    let (file, identity) = (folder.path("file"), folder.path("node.id"));
    fs::write(&file, "content").unwrap();
    let identity = identity.to_str().unwrap();
    assert_eq!(run(["keygen", "--identity", identity]).code, Some(0));
    let peer = run(["id", "--identity", identity]).stdout.pop().unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let sender = Heard::start(&send(&file, &format!("{peer}@{address}")));
    sender.hear("no node of the DHT answers: trying again");
    drop(silent);
    let state = folder.path("node.state");
    let mut node = program(["dht", "node", "-q", "--bind", &address, "--identity", identity, "--state"]);
    let _node = Running::start(node.arg(state));
    assert_eq!(sender.wait(is("announced"))["nodes"], 1);
}
