//! The file that a node remembers its contacts in.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

use crate::node::{Node, error, put};
use crate::support::{Folder, PATIENCE, run};

#[test]
fn a_damaged_file_is_an_error_that_names_it() {
    let folder = Folder::new("damaged");
    let first = Node::start(&folder, "first", &[]);
    let second = Node::start(&folder, "second", &[&first]);
    second.joined();
    let good = fs::read_to_string(&second.state).unwrap();
    assert_eq!(good, format!("wraith-dht-1\n{}\nend 1\n", first.target));
    let (state, identity) = (folder.path("damaged.state"), folder.path("damaged.id"));
    let (state, identity) = (state.to_str().unwrap(), identity.to_str().unwrap());
    for damaged in
        ["", "nonsense", &good[..good.len() - 3], &good.replace("end 1", "end 2"), &"x".repeat(100_000)]
    {
        fs::write(state, damaged).unwrap();
        for verb in [&["node", "--identity", identity][..], &["put", "x"]] {
            let args = ["dht"].iter().chain(verb).copied().chain(["--bind", "127.0.0.1", "--state", state]);
            let (message, _) = error(args);
            assert!(message.starts_with(state) && message.contains("damaged"), "{message}");
            // It may be any other file, by mistake.
            assert!(
                message.contains("name another file with --state, or, if nothing else is in it, remove it")
            );
        }
        assert_eq!(fs::read_to_string(state).unwrap(), damaged, "nobody writes over it");
    }
    fs::write(state, &good).unwrap();
    let end = run(["dht", "put", "x", "--state", state]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

#[test]
fn a_file_belongs_to_one_node_at_a_time() {
    let folder = Folder::new("one");
    let node = Node::start(&folder, "node", &[]);
    let state = node.state.to_str().unwrap();
    let other = ["dht", "node", "--bind", "127.0.0.1", "--state", state, "--identity"];
    let other = other.into_iter().map(PathBuf::from).chain([folder.path("other.id")]);
    let (message, _) = error(other);
    assert!(message.starts_with(&format!("another node keeps its contacts in {state}")), "{message}");
    node.kill();
    Node::start(&folder, "node", &[]);
}

#[test]
fn what_is_no_file_is_an_error_at_once_and_what_is_not_there_is_named() {
    let folder = Folder::new("no-file");
    let (pipe, identity) = (folder.path("pipe"), folder.path("own.id"));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir(folder.path("folder")).unwrap();
    let identity = identity.to_str().unwrap();
    for path in [pipe, folder.path("folder"), PathBuf::from("/dev/null")] {
        let state = path.to_str().unwrap();
        for verb in [&["node", "--identity", identity, "-q"][..], &["put", "x"]] {
            let args = ["dht"].iter().chain(verb).copied().chain(["--bind", "127.0.0.1", "--state", state]);
            let (message, _) = error(args);
            assert!(
                message.starts_with(&format!("cannot read the contacts {state}: it is no file; name")),
                "{message}"
            );
        }
    }
    let missing = folder.path("missing");
    let missing = missing.to_str().unwrap();
    let end = run(["dht", "put", "x", "--state", missing]);
    assert!(end.error(2).contains(&format!("{missing} does not exist")), "{}", end.stderr);
}

#[test]
fn a_link_to_the_file_stays_a_link_and_is_the_same_file_to_another_node() {
    let folder = Folder::new("link");
    let first = Node::start(&folder, "first", &[]);
    let (real, link) = (folder.path("real"), folder.path("node.state"));
    fs::write(&real, format!("wraith-dht-1\n{}\nend 1\n", first.target)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let before = fs::metadata(&real).unwrap().ino();
    let node = Node::start(&folder, "node", &[]);
    assert_eq!(node.joined(), 1);
    assert!(link.is_symlink() && fs::metadata(&real).unwrap().ino() != before);
    let (real, other) = (real.to_str().unwrap(), folder.path("other.id"));
    let other = other.to_str().unwrap();
    let (message, _) = error(["dht", "node", "-q", "--identity", other, "--state", real]);
    assert!(message.starts_with(&format!("another node keeps its contacts in {real}")), "{message}");
}

/// Whether the file was replaced is seen by its number.
fn number(node: &Node) -> u64 {
    fs::metadata(&node.state).unwrap().ino()
}

#[test]
fn whoever_kills_a_node_while_it_writes_leaves_a_file_that_it_joins_by() {
    let folder = Folder::new("killed");
    let first = Node::start(&folder, "first", &[]);
    let mut seeds = vec![&*first.target];
    for round in 1..=10 {
        let node = Node::start_with(&folder, "node", &seeds, &["--save-every", "1us"]);
        assert_eq!(node.joined(), 1, "round {round}");
        // It writes without a pause; each time it is killed after another number of files.
        let until = Instant::now() + PATIENCE;
        for _ in 0..round {
            let before = number(&node);
            while number(&node) == before {
                assert!(Instant::now() < until);
                std::thread::yield_now();
            }
        }
        node.kill();
        seeds.clear();
    }
}

#[test]
fn a_node_that_cannot_write_for_a_while_goes_on_and_writes_again() {
    let folder = Folder::new("for-a-while");
    let first = Node::start(&folder, "first", &[]);
    let node = Node::start_with(&folder, "node", &[&first.target], &["--save-every", "1ms"]);
    assert_eq!(node.joined(), 1);
    // In the place of the new file that it writes next.
    let until = Instant::now() + PATIENCE;
    let obstacle = folder.path("node.state.new");
    while fs::create_dir(&obstacle).is_err() {
        assert!(Instant::now() < until);
        std::thread::yield_now();
    }
    let before = number(&node);
    assert_eq!(put("while it cannot", &node).1, 2);
    assert_eq!(number(&node), before);
    fs::remove_dir(&obstacle).unwrap();
    while number(&node) == before {
        assert!(Instant::now() < until);
        std::thread::yield_now();
    }
    assert_eq!(node.end().code, Some(130));

    // Who has never written has a file that is of no use.
    fs::create_dir(&obstacle).unwrap();
    let again = Node::start(&folder, "node", &[&first]);
    assert_eq!(again.joined(), 1);
    let end = again.finish();
    assert!(end.error(1).starts_with("cannot write the contacts to"), "{}", end.stderr);
}
