//! Files found by way of a DHT of `BitTorrent` on loopback, between processes of the real binary.

#![forbid(unsafe_code)]

#[path = "../cli/heard.rs"]
mod heard;
mod late;
#[path = "../../../mainline/tests/testnet/net.rs"]
mod net;
mod records;
#[path = "../cli/support.rs"]
#[expect(dead_code, reason = "these tests need no listener")]
mod support;
#[path = "../transfer/transfer.rs"]
#[expect(dead_code, reason = "these tests read and write files in one way")]
mod transfer;

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use mainline::{Dht, Id};

use net::Net;
use support::run;
use transfer::{Scene, Sender, content, done, error, finish};

/// A DHT, and the options that lead there.
struct Network {
    testnet: Net,
    options: Vec<String>,
}

impl Network {
    fn new() -> Self {
        let testnet = Net::new();
        let options = options(&testnet.bootstrap);
        Self { testnet, options }
    }

    fn options<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        self.options.iter().map(String::as_str).chain(more.iter().copied()).collect()
    }

    /// Starts a sender, and waits until it is announced.
    fn send(&self, scene: &Scene, more: &[&str]) -> Sender {
        let sender = scene.send(&self.options(&[&["--announce"], more].concat()));
        assert_eq!(sender.process.event("announced")["hash"], sender.event["hash"]);
        sender
    }

    /// Says in somebody's name that `port` has the content.
    fn lie(&self, hash: &str, port: u16) {
        let hash: Vec<_> = (0..32).map(|at| u8::from_str_radix(&hash[2 * at..][..2], 16).unwrap()).collect();
        let info_hash = blake3::derive_key("WRAITH v1 mainline content", &hash);
        let liar =
            Dht::builder().bootstrap(&self.testnet.bootstrap).bind_address(Ipv4Addr::LOCALHOST).build();
        let announced = liar.unwrap().as_async();
        let announced = announced.announce_peer(Id::from_bytes(&info_hash[..20]).unwrap(), Some(port));
        futures_lite::future::block_on(announced).unwrap();
    }
}

fn options(bootstrap: &[String]) -> Vec<String> {
    let nodes = bootstrap.iter().flat_map(|node| ["--mainline-bootstrap".to_owned(), node.clone()]);
    ["--discovery", "mainline"].map(str::to_owned).into_iter().chain(nodes).collect()
}

fn hash(sender: &Sender) -> String {
    sender.event["hash"].as_str().unwrap().to_owned()
}

#[test]
fn who_knows_the_hash_alone_finds_the_sender_and_gets_the_content() {
    let network = Network::new();
    let bytes = content(2_500_000);
    let scene = Scene::new("found", &bytes);
    let sender = network.send(&scene, &[]);
    let hash = hash(&sender);
    let end = done(&finish(&mut scene.receive(&hash, &network.options(&[]))));
    assert_eq!((&end["peer"], &end["verified"]), (&sender.event["peer"], &true.into()));
    assert_eq!(end["address"], sender.event["addresses"][0]);
    assert!(fs::read(scene.target.join(&hash)).unwrap() == bytes);
    assert_eq!(sender.process.finish().code, Some(0));
}

#[test]
fn a_sender_that_was_started_anew_elsewhere_is_found_with_its_old_ticket() {
    let network = Network::new();
    let bytes = content(100_000);
    let scene = Scene::new("moved", &bytes);
    let identity = scene.target.join("identity");
    let identity = ["--identity", identity.to_str().unwrap()];
    let before = network.send(&scene, &identity);
    let (ticket, address) = (before.ticket(), before.event["addresses"][0].clone());
    drop(before);
    // Nobody else gets its port.
    let silent = UdpSocket::bind(address.as_str().unwrap()).unwrap();
    let after = network.send(&scene, &identity);
    assert_ne!(after.event["addresses"][0], address);
    let end = finish(&mut scene.receive(&ticket, &["--patience", "0"]));
    assert!(error(&end).starts_with(&format!("no answer from {}", silent.local_addr().unwrap())));
    let end = done(&finish(&mut scene.receive(&ticket, &network.options(&[]))));
    assert_eq!((&end["peer"], &end["address"]), (&after.event["peer"], &after.event["addresses"][0]));
    assert!(fs::read(scene.received()).unwrap() == bytes);
}

/// PROTO §11.7
#[test]
fn who_is_named_and_never_answers_gets_three_datagrams_and_does_not_hide_the_sender() {
    let network = Network::new();
    let bytes = content(100_000);
    let scene = Scene::new("lies", &bytes);
    let sender = scene.send(&["--announce"]);
    let (hash, own) = (hash(&sender), sender.event["addresses"][0].as_str().unwrap());
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    network.lie(&hash, silent.local_addr().unwrap().port());
    let alone = finish(&mut scene.receive(&hash, &network.options(&["--patience", "0"])));
    assert!(error(&alone).starts_with("no answer from 127.0.0.1:"), "{}", alone.stderr);
    let mut buffer = [0; 2000];
    assert_eq!(std::iter::from_fn(|| silent.recv(&mut buffer).ok()).count(), 3);

    network.lie(&hash, own.rsplit_once(':').unwrap().1.parse().unwrap());
    let end = done(&finish(&mut scene.receive(&hash, &network.options(&[]))));
    assert_eq!(end["address"], own);
    assert!(fs::read(scene.target.join(&hash)).unwrap() == bytes);
}

#[test]
fn what_nobody_has_and_a_network_that_is_not_there_end_in_one_line_within_the_time() {
    let network = Network::new();
    let scene = Scene::empty("nobody");
    let begun = Instant::now();
    let end = finish(&mut scene.receive(&"ab".repeat(32), &network.options(&["--patience", "0"])));
    assert!(error(&end).starts_with("nobody is known to have it: check the hash"), "{}", end.stderr);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = options(&[silent.local_addr().unwrap().to_string()]);
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let options = [&options[..], &["--patience", "0"]].concat();
    let end = finish(&mut scene.receive(&"ab".repeat(32), &options));
    assert!(error(&end).starts_with("no node of the BitTorrent DHT answers: check"), "{}", end.stderr);
    assert!(begun.elapsed() < support::PATIENCE);
    assert_eq!(scene.names(), Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_question_that_is_not_answered() {
    let scene = Scene::empty("interrupted");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(support::PATIENCE)).unwrap();
    let options = options(&[silent.local_addr().unwrap().to_string()]);
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let receiver = support::Running::start(&mut scene.receive(&"ab".repeat(32), &options));
    silent.recv(&mut [0; 2000]).unwrap();
    receiver.interrupt();
    assert_eq!(receiver.finish().code, Some(130));
}

#[test]
fn a_sender_and_a_receiver_with_other_sources_go_on_without_the_network() {
    let bytes = content(1_000);
    let scene = Scene::new("without", &bytes);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = options(&[silent.local_addr().unwrap().to_string()]);
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let sender = scene.send(&[&["--announce"], &options[..]].concat());
    let end = done(&finish(&mut scene.receive(&sender.ticket(), &options)));
    assert_eq!(end["bytes"], 1_000);
    let end = sender.process.finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

#[test]
fn discovery_takes_ipv4_and_on_the_senders_side_an_announcement() {
    let end = run(["send", "--discovery", "mainline", "file"]);
    assert!(end.error(2).ends_with("add --announce"), "{}", end.stderr);
    for command in [["send", "--announce", "file"], ["receive", &"ab".repeat(32), "--json"]] {
        let end = run(command.iter().chain(&["--discovery", "mainline", "--bind", "::1"]));
        assert!(end.error(2).contains("knows IPv4 alone, not ::1"), "{}", end.stderr);
    }
    let end = run(["receive", &"ab".repeat(32), "--mainline-bootstrap", "127.0.0.1:1"]);
    assert!(end.code == Some(2) && end.stderr.contains("--discovery"), "{}", end.stderr);
}
