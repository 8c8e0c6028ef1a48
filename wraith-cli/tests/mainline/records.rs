//! `dht put`, `get`, `announce` and `find` over the DHT of `BitTorrent`.

use std::net::UdpSocket;

use serde_json::{Value, json};

use crate::support::{Done, Folder, PATIENCE, Running, program, run};
use crate::{Network, options};

/// An identity of its own.
fn identity(folder: &Folder) -> (String, String) {
    let path = folder.path("identity").to_str().unwrap().to_owned();
    let end = run(["keygen", "--identity", &path]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let peer = run(["id", "--identity", &path]).stdout.pop().unwrap();
    (path, peer)
}

/// `dht ARGS --json` over that network, not finished.
fn asking(network: &Network, args: &[&str]) -> Running {
    let all = [&["dht", args[0], "--json", "--bind", "127.0.0.1"], &args[1..]].concat();
    Running::start(&mut program(all.into_iter().chain(network.options(&[]))))
}

fn ask(network: &Network, args: &[&str]) -> Done {
    asking(network, args).finish()
}

/// The one line of a command that has succeeded.
fn only(end: &Done) -> Value {
    assert_eq!((end.code, end.stdout.len()), (Some(0), 1), "{}", end.stderr);
    end.json().pop().unwrap()
}

/// The error of a command that has failed.
fn refused(end: &Done) -> &str {
    end.error(1)
}

#[test]
fn a_signed_record_is_got_by_its_key_and_replaced_as_on_our_own_dht() {
    let network = Network::new();
    let folder = Folder::new("records");
    let (path, peer) = identity(&folder);
    let put = |value: &str, more: &[&str]| {
        ask(&network, &[&["put", value, "--sign", "--salt", "9", "--identity", &path], more].concat())
    };
    let stored = only(&put("one", &["--seq", "5"]));
    let key = stored["key"].as_str().unwrap().to_owned();
    assert!(stored["nodes"].as_u64().unwrap() > 0, "{stored}");
    assert_eq!(
        stored,
        json!({"event": "stored", "key": key, "nodes": stored["nodes"], "peer": peer, "salt": 9, "seq": 5})
    );
    let get = |more: &[&str]| ask(&network, &[&["get", &key], more].concat());
    let brought = |end: &Done, value: &str, seq: u64| {
        assert_eq!((end.code, end.stdout.join("\n").as_str()), (Some(0), value), "{}", end.stderr);
        let event: Value = serde_json::from_str(end.stderr.trim()).unwrap();
        let bytes = value.len();
        assert_eq!(
            event,
            json!({"event": "value", "key": key, "bytes": bytes, "hops": null, "peer": peer, "salt": 9, "seq": seq})
        );
    };
    brought(&get(&["--salt", "9"]), "one", 5);
    brought(&get(&["--salt", "9", "--peer", &peer]), "one", 5);

    let there = "a record with sequence number 5 is there";
    assert!(refused(&put("two", &["--seq", "5"])).starts_with(there));
    assert!(refused(&put("two", &["--seq", "4"])).starts_with(there));
    assert!(refused(&put("two", &["--seq", "7", "--expected", "4"])).starts_with(there));
    only(&put("one", &["--seq", "5"]));
    brought(&get(&["--salt", "9"]), "one", 5);
    assert_eq!(only(&put("two", &["--seq", "7", "--expected", "5"]))["key"], *key);
    brought(&get(&["--salt", "9"]), "two", 7);
}

#[test]
fn what_is_not_there_or_somebody_elses_is_an_error_of_one_line() {
    let network = Network::new();
    let folder = Folder::new("refused");
    let (path, _) = identity(&folder);
    let other = wraith_proto::Identity::from_seed([3; 32]).peer_id().to_string();
    let stored = only(&ask(&network, &["put", "x", "--sign", "--identity", &path]));
    let key = stored["key"].as_str().unwrap();
    // Data has stdout to itself, so the errors of `get` are JSON on stderr.
    for (args, expected) in [
        (&["get", key, "--salt", "1"][..], "the BitTorrent DHT has no record under this key and salt"),
        (&["get", key, "--peer", &other], "the record is of "),
        (&["find", key], "nobody announces "),
        (&["find", "--peer", &other], "the BitTorrent DHT does not know where "),
        (&["put", "y", "--sign", "--expected", "1", "--salt", "2", "--identity", &path], "no record with "),
        (
            &["put", &"y".repeat(836), "--sign", "--identity", &path],
            "a record on the BitTorrent DHT carries 835",
        ),
        (
            &["put", "y", "--sign", "--seq", "9223372036854775808", "--identity", &path],
            "a record on the BitTorrent",
        ),
    ] {
        let end = ask(&network, args);
        let text = if args[0] == "get" { &end.stderr } else { &end.stdout.join("\n") };
        let event: Value = serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{args:?} {text}"));
        assert!(end.code == Some(1) && event["message"].as_str().unwrap().starts_with(expected), "{text}");
    }
}

#[test]
fn what_is_announced_is_found_and_a_peer_by_its_id_where_it_is_now() {
    let network = Network::new();
    let folder = Folder::new("announced");
    let (path, peer) = identity(&folder);
    let hash = "ab".repeat(32);
    let announce = |port: u16, more: &[&str]| {
        let bind = format!("127.0.0.1:{port}");
        let all =
            [&["dht", "announce", &hash, "--json", "--identity", &path, "--bind", &bind], more].concat();
        Running::start(&mut program(all.into_iter().chain(network.options(&[]))))
    };
    // Nobody has to be there; so nobody else gets these ports meanwhile.
    let [before, after] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let [before, after] = [before, after].map(|socket| socket.local_addr().unwrap());
    assert_eq!(
        only(&announce(before.port(), &[]).finish()),
        json!({"event": "announced", "hash": hash, "nodes": null})
    );
    let found = |args: &[&str]| -> Vec<Value> {
        let end = ask(&network, &[&["find"], args].concat());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        end.json()
    };
    assert_eq!(
        found(&[&hash]),
        [
            json!({"event": "found", "peer": null, "address": before.to_string(), "target": null, "answered": false})
        ]
    );
    let at = |addr: std::net::SocketAddr| {
        let target = format!("{peer}@{addr}");
        json!({"event": "found", "peer": peer, "address": addr.to_string(), "target": target, "answered": false})
    };
    assert_eq!(found(&["--peer", &peer]), [at(before)]);
    // It moves, and stays.
    let stays = announce(after.port(), &["--keep"]);
    assert_eq!(stays.event("announced")["hash"], *hash);
    assert!(found(&["--peer", &peer]).contains(&at(after)));
    #[cfg(unix)]
    {
        stays.interrupt();
        assert_eq!(stays.finish().code, Some(130));
    }
}

#[test]
fn what_that_network_cannot_do_is_wrong_usage_and_says_so() {
    let hash = "ab".repeat(32);
    let peer = wraith_proto::Identity::from_seed([3; 32]).peer_id().to_string();
    let node = format!("{peer}@127.0.0.1:9");
    for (args, expected) in [
        (&["put", "x"][..], "sign it with --sign"),
        (&["get", "--peer", &peer], "give the KEY that `dht put` printed"),
        (&["announce", &hash], "with --bind :PORT"),
        (&["announce", &hash, "--bind", "127.0.0.1"], "with --bind :PORT"),
        (&["find", &hash, "--bootstrap", &node], "lead to WRAITH's own DHT"),
        (&["find", &hash, "--state", "file"], "lead to WRAITH's own DHT"),
        (&["find", &hash, "--bind", "::1"], "knows IPv4 alone, not ::1"),
        (&["find"], "<HASH>"),
    ] {
        let end = run(["dht"].iter().chain(args).chain(&["--discovery", "mainline"]));
        assert!(end.code == Some(2) && end.stderr.contains(expected), "{args:?} {}", end.stderr);
    }
    for args in [&["get", &hash, "--peer", &peer][..], &["get", &hash, "--salt", "1"]] {
        let end = run(["dht"].iter().chain(args).chain(&["--bootstrap", &node]));
        assert!(end.error(2).contains("--peer"), "{args:?} {}", end.stderr);
    }
}

#[test]
fn without_an_answer_each_verb_ends_within_the_time() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = options(&[silent.local_addr().unwrap().to_string()]);
    let folder = Folder::new("unanswered");
    let (path, peer) = identity(&folder);
    let hash = "ab".repeat(32);
    for args in [
        &["get", &hash][..],
        &["find", &hash],
        &["find", "--peer", &peer],
        &["put", "x", "--sign", "--identity", &path],
        &["announce", &hash, "--bind", "127.0.0.1:9", "--identity", &path],
    ] {
        let all = ["dht"].iter().chain(args).map(ToString::to_string).chain(options.iter().cloned());
        let end = run(all.chain(["--timeout".to_owned(), "1s".to_owned()]));
        let expected = "the BitTorrent DHT has not answered in time: check";
        assert!(end.error(1).starts_with(expected), "{args:?} {}", end.stderr);
        assert!(end.took < PATIENCE / 2, "{:?}", end.took);
    }
}
