//! Senders that are announced while a receiver waits for them, and networks that come late.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};

use mainline::Dht;

use crate::heard::Heard;
use crate::support::Running;
use crate::transfer::{Scene, content, error, finish};
use crate::{Network, options};

#[test]
fn a_receiver_that_was_there_before_its_sender_waits_and_gets_the_content() {
    let network = Network::new();
    let bytes = content(100_000);
    let scene = Scene::new("before", &bytes);
    let hash = blake3::hash(&bytes).to_string();
    let receiver = Heard::start(&scene.receive(&hash, &network.options(&[])));
    receiver.hear("nobody is known to have it: check the hash");
    let sender = network.send(&scene, &[]);
    let done = receiver.wait(|event| event["event"] == "done");
    assert_eq!((&done["peer"], &done["hash"]), (&sender.event["peer"], &hash.as_str().into()));
    assert_eq!(receiver.finish().0, Some(0));
    assert!(fs::read(scene.target.join(&hash)).unwrap() == bytes);
}

#[test]
fn a_receiver_whose_sender_died_goes_on_with_one_that_was_announced_later() {
    let network = Network::new();
    let scene = Scene::sparse("died", 1 << 28);
    // So that it takes long enough to be caught in the middle.
    let first = network.send(&scene, &["--packet-size", "1200"]);
    let hash = crate::hash(&first);
    let receiver = Heard::start(&scene.receive(&hash, &network.options(&[])));
    receiver.wait(|event| event["event"] == "progress" && event["bytes"].as_u64() > Some(0));
    let died = first.event["peer"].clone();
    drop(first);
    receiver.hear("does not answer: looking for it");
    let second = network.send(&scene, &[]);
    let done = receiver.wait(|event| event["event"] == "done");
    assert_ne!(done["peer"], died);
    assert_eq!((&done["peer"], &done["bytes"]), (&second.event["peer"], &(1_u64 << 28).into()));
    assert_eq!(receiver.finish().0, Some(0));
}

#[test]
fn a_receiver_for_whom_nobody_comes_ends_with_its_patience_and_says_why() {
    let network = Network::new();
    let scene = Scene::empty("never");
    let end = finish(&mut scene.receive(&"ab".repeat(32), &network.options(&["--patience", "5s"])));
    assert!(error(&end).starts_with("nobody is known to have it: check the hash"), "{}", end.stderr);
    assert!(end.took.as_secs() >= 5, "{:?}", end.took);
    assert_eq!(scene.names(), Vec::<String>::new());
}

#[test]
fn a_sender_whose_network_comes_late_is_announced_all_the_same() {
    let network = Network::new();
    let scene = Scene::new("late-network", b"content");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let bootstrap = silent.local_addr().unwrap();
    let options = options(&[bootstrap.to_string()]);
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let sender = Heard::start(&scene.send_command("127.0.0.1:0", &[&["--announce"], &options[..]].concat()));
    sender.hear("not announced: no node of the BitTorrent DHT answers");
    drop(silent);
    let node = Dht::builder()
        .bootstrap(&network.testnet.bootstrap)
        .bind_address(Ipv4Addr::LOCALHOST)
        .port(bootstrap.port())
        .server_mode()
        .build()
        .unwrap();
    let announced = sender.wait(|event| event["event"] == "announced");
    let hash = announced["hash"].as_str().unwrap();
    let end = Running::start(&mut scene.receive(hash, &network.options(&[]))).finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    drop(node);
}
