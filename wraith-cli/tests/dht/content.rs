//! Content that is announced, and found by its hash.

use std::fs;

use crate::node::{Node, asking, found};
use crate::support::{Folder, Running, program, run};

#[test]
fn announced_content_is_found_by_its_hash_and_fetched_from_whom_the_dht_names() {
    let folder = Folder::new("content");
    let first = Node::start(&folder, "first", &[]);
    let second = Node::start(&folder, "second", &[&first]);
    assert_eq!(second.joined(), 1);
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at >> 3) as u8).collect();
    let (file, target) = (folder.path("file"), folder.path("target"));
    fs::write(&file, &bytes).unwrap();
    fs::create_dir(&target).unwrap();

    let mut send = program(["send", "--json", "-q", "--announce", "--bind", "127.0.0.1", "--bootstrap"]);
    let sender = Running::start(send.arg(&first.target).arg(&file));
    let ticket = sender.event("ticket");
    let announced = sender.event("announced");
    let hash = ticket["hash"].as_str().unwrap();
    assert_eq!((announced["hash"].as_str(), announced["nodes"].as_u64()), (Some(hash), Some(2)));
    let at = format!("{}@{}", ticket["peer"].as_str().unwrap(), ticket["addresses"][0].as_str().unwrap());
    assert_eq!(found(&[hash], &second), [(at, false)]);

    let with_ticket = run(["receive", ticket["ticket"].as_str().unwrap(), "--bootstrap", &second.target]);
    assert!(with_ticket.error(2).starts_with("a ticket says itself who has the content"));

    let mut receive = program(["receive", "--json", "-q", hash, "--bootstrap", &second.target, "--output"]);
    let end = Running::start(receive.arg(&target)).finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let done = end.json().pop().unwrap();
    assert_eq!((&done["event"], &done["peer"]), (&"done".into(), &ticket["peer"]));
    assert_eq!((&done["hash"], &done["verified"]), (&hash.into(), &true.into()));
    assert!(fs::read(target.join(hash)).unwrap() == bytes);
    assert_eq!(sender.finish().code, Some(0));
}

#[test]
fn what_announce_says_is_found_with_the_identity_that_said_it() {
    let folder = Folder::new("announce");
    let node = Node::start(&folder, "node", &[]);
    let hash = "ab".repeat(32);
    let identity = folder.path("own.id");
    let identity = identity.to_str().unwrap();
    let end = asking("announce", &[&hash, "--identity", identity, "--bind", "127.0.0.1:0"], &node).finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert_eq!(
        end.json().pop().unwrap(),
        serde_json::json!({"event": "announced", "hash": hash, "nodes": 1})
    );
    let peer = run(["id", "--identity", identity]).stdout.pop().unwrap();
    let found = found(&[&hash], &node);
    assert!(found.len() == 1 && found[0].0.starts_with(&format!("{peer}@127.0.0.1:")), "{found:?}");
}
