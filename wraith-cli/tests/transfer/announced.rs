//! Content that is served to everybody who knows its hash.

use std::fs;

use wraith_transfer_proto::{CHUNK, Tree};

use crate::hostile::WrongChunk;
use crate::liar::Liar;
use crate::support::{Running, program, run};
use crate::transfer::{Scene, Sender, content, done, error, finish, wait_for_middle};

/// `PEER@ADDR` of a sender.
fn at(sender: &Sender) -> String {
    let event = &sender.event;
    format!("{}@{}", event["peer"].as_str().unwrap(), event["addresses"][0].as_str().unwrap())
}

fn hash(sender: &Sender) -> String {
    sender.event["hash"].as_str().unwrap().to_owned()
}

/// PROTO §10.7
#[test]
fn announced_content_is_fetched_by_its_hash_alone_and_takes_its_name_from_it() {
    let bytes = content(2_500_000);
    let scene = Scene::new("announced", &bytes);
    let sender = scene.send(&["--announce"]);
    let end = done(&finish(&mut scene.receive(&hash(&sender), &["--from", &at(&sender)])));
    assert_eq!((end["hash"].as_str(), end["verified"].as_bool()), (Some(&*hash(&sender)), Some(true)));
    assert_eq!(scene.names(), [hash(&sender)]);
    assert!(fs::read(scene.target.join(hash(&sender))).unwrap() == bytes);
    let end = sender.process.finish();
    assert_eq!((end.code, end.json().pop().unwrap()["event"].as_str()), (Some(0), Some("confirmed")));
}

/// PROTO §10.7
#[test]
fn content_that_is_not_announced_takes_its_ticket_and_the_announced_one_may_be_fetched_with_it() {
    let scene = Scene::new("unannounced", &content(10_000));
    let sender = scene.send(&[]);
    let end = finish(&mut scene.receive(&hash(&sender), &["--from", &at(&sender)]));
    assert!(error(&end).ends_with("does not announce this content: get a ticket from its owner"));
    assert_eq!(scene.names(), Vec::<String>::new());
    done(&finish(&mut scene.receive(&sender.ticket(), &[])));

    let sender = scene.send(&["--announce", "--keep"]);
    let any_token = sender.changed(|ticket| ticket.token[0] ^= 1);
    for ticket in [sender.ticket(), any_token] {
        done(&finish(&mut scene.receive(&ticket, &["--overwrite"])));
    }
    assert_eq!(scene.names(), ["file.bin"]);
}

#[test]
fn after_a_source_that_lies_the_next_one_is_asked() {
    let bytes = content(2 * CHUNK + 1000);
    let scene = Scene::new("next", &bytes);
    let sender = scene.send(&["--announce"]);
    let liar = Liar::start(bytes.clone(), WrongChunk);
    let lying = format!("{}@{}", liar.peer, liar.address);
    assert_eq!(Tree::of(&bytes).unwrap().hash(), *blake3::hash(&bytes).as_bytes());
    let end = finish(&mut scene.receive(&hash(&sender), &["--from", &lying, "--from", &at(&sender)]));
    assert_eq!(done(&end)["peer"], sender.event["peer"]);
    assert!(fs::read(scene.target.join(hash(&sender))).unwrap() == bytes);
    drop(liar);
    assert_eq!(sender.process.finish().code, Some(0));
}

#[test]
fn a_source_of_the_other_ip_version_is_left_out_aloud_and_the_others_are_asked() {
    let scene = Scene::new("version", &content(10_000));
    let sender = scene.send(&["--announce"]);
    let far = format!("{}@[::1]:9", sender.event["peer"].as_str().unwrap());
    let mut receive = program(["receive", "--json", &hash(&sender), "--bind", "127.0.0.1", "--output"]);
    let end = finish(receive.arg(&scene.target).args(["--from", &far, "--from", &at(&sender)]));
    assert_eq!(done(&end)["bytes"], 10_000);
    assert!(end.stderr.contains(&format!("{far} cannot be reached from here")), "{}", end.stderr);
}

#[cfg(unix)]
#[test]
fn a_stranger_that_stops_does_not_end_an_announced_sender() {
    use crate::network::{LARGE, Network};

    let scene = Scene::sparse("stranger", LARGE);
    let sender = scene.send(&["--announce"]);
    let (network, _) = Network::of(&sender);
    let from = |target: &str| scene.receive(&hash(&sender), &["--from", target]);
    let slow = format!("{}@{}", sender.event["peer"].as_str().unwrap(), network.address);
    let stranger = Running::start(&mut from(&slow));
    wait_for_middle(&stranger);
    stranger.interrupt();
    assert_eq!(stranger.finish().code, Some(130));
    assert_eq!(done(&finish(&mut from(&at(&sender))))["bytes"], LARGE);
    assert_eq!(sender.process.finish().code, Some(0));
}

#[test]
fn a_hash_without_a_source_and_announcing_to_one_peer_are_wrong_usage() {
    let end = run(["receive", &"ab".repeat(32)]);
    assert!(end.error(2).contains("name somebody with --from PEER@ADDR"), "{}", end.stderr);
    let peer = wraith_proto::Identity::from_seed([9; 32]).peer_id().to_string();
    let end = run(["send", "--announce", "--to", &peer, "file"]);
    assert_eq!(end.code, Some(2), "{}", end.stderr);
}
