//! Ends before the end: killed, interrupted, changed under way.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::network::{LARGE, Network};
use crate::support::{Done, Running};
use crate::transfer::{Scene, Sender, WAYS, done, error, finish, wait_for_middle};

/// A transfer in its middle.
struct Middle {
    scene: Scene,
    sender: Sender,
    receiver: Running,
    _network: Network,
}

fn middle(name: &str) -> Middle {
    middle_with(name, "auto")
}

/// The same with files read and written in this way.
fn middle_with(name: &str, files: &str) -> Middle {
    let scene = Scene::sparse(name, LARGE);
    let sender = scene.send(&["--files", files]);
    let (network, ticket) = Network::of(&sender);
    let receiver = Running::start(&mut scene.receive(&ticket, &["--files", files, "--patience", "1s"]));
    wait_for_middle(&receiver);
    Middle { scene, sender, receiver, _network: network }
}

fn in_one_line(end: &Done) -> &str {
    assert!(end.took < Duration::from_secs(25), "{:?}", end.took);
    error(end)
}

#[test]
fn a_killed_sender_ends_the_receiver_in_one_line_and_leaves_nothing() {
    let Middle { scene, sender, receiver, _network } = middle("kill-sender");
    drop(sender);
    let end = receiver.finish();
    assert!(
        in_one_line(&end).contains("is gone before everything arrived, and did not come back in 1 s"),
        "{}",
        end.stderr
    );
    assert_eq!(scene.names(), Vec::<String>::new());
}

#[test]
fn a_killed_receiver_leaves_nothing_under_the_final_name_and_the_sender_serves_the_next_one() {
    for files in WAYS {
        let Middle { scene, sender, receiver, _network } = middle_with("kill-receiver", files);
        drop(receiver);
        assert!(!scene.received().exists());
        let names = scene.names();
        assert!(names.len() == 1 && names[0].starts_with(".file.bin."), "{names:?}");
        // It takes the hidden file over, once the kernel has ended what the killed process had in its ring.
        let until = Instant::now() + Duration::from_secs(15);
        let end = loop {
            let end = finish(&mut scene.receive(&sender.ticket(), &["--files", files]));
            if !end.stderr.contains("another `wraith-cli receive` writes") || Instant::now() > until {
                break end;
            }
        };
        assert_eq!(done(&end)["bytes"], LARGE);
        assert_eq!(scene.names(), ["file.bin"]);
        let end = sender.process.finish();
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert_eq!(end.json().iter().filter(|event| event["event"] == "confirmed").count(), 1);
    }
}

#[test]
fn a_peer_that_stands_still_is_named_within_seconds() {
    use nix::sys::signal::Signal;

    let scene = Scene::sparse("stall", LARGE);
    let sender = scene.send(&[]);
    let (_network, ticket) = Network::of(&sender);
    let mut command = scene.receive(&ticket, &["--patience", "1s"]);
    // Without -q, and its JSON aside.
    command = {
        let args: Vec<_> = command.get_args().filter(|arg| *arg != "-q").map(ToOwned::to_owned).collect();
        crate::support::program(args)
    };
    let receiver = Running::start(&mut command);
    wait_for_middle(&receiver);
    sender.process.signal(Signal::SIGSTOP);
    let end = receiver.finish();
    assert_eq!(end.code, Some(1));
    let peer = sender.event["peer"].as_str().unwrap();
    let named = end
        .stderr
        .lines()
        .any(|line| line.starts_with(&format!("no data from {peer}@")) && line.ends_with("for 5 s"));
    assert!(named, "{}", end.stderr);
    assert!(end.stderr.lines().last().unwrap().starts_with("error: "), "{}", end.stderr);
    assert_eq!(scene.names(), Vec::<String>::new());
}

#[test]
fn ctrl_c_at_the_receiver_ends_both_at_once_and_leaves_nothing() {
    for files in WAYS {
        let Middle { scene, sender, receiver, _network } = middle_with("int-receiver", files);
        receiver.interrupt();
        let end = receiver.finish();
        assert_eq!((end.code, &*end.stderr), (Some(130), ""));
        assert_eq!(scene.names(), Vec::<String>::new());
        let end = sender.process.finish();
        assert!(in_one_line(&end).contains("stopped the transfer"), "{}", end.stderr);
    }
}

#[test]
fn ctrl_c_at_the_sender_ends_both_at_once_and_leaves_nothing() {
    let Middle { scene, sender, receiver, _network } = middle("int-sender");
    sender.process.interrupt();
    let end = sender.process.finish();
    assert_eq!((end.code, &*end.stderr), (Some(130), ""));
    let end = receiver.finish();
    assert!(in_one_line(&end).contains("stopped by the other side"), "{}", end.stderr);
    assert_eq!(scene.names(), Vec::<String>::new());
}

#[test]
fn ctrl_c_before_anybody_came_ends_the_sender() {
    let scene = Scene::new("int-alone", b"x");
    let sender = scene.send(&[]);
    sender.process.interrupt();
    let end = sender.process.finish();
    assert_eq!((end.code, &*end.stderr), (Some(130), ""));
}

/// PROTO §10.13
#[test]
fn a_file_that_shrinks_or_grows_while_it_is_sent_ends_both_sides_with_the_cause() {
    for (files, grow) in WAYS.iter().flat_map(|files| [(files, false), (files, true)]) {
        let Middle { scene, sender, receiver, _network } = middle_with("changed", files);
        let mut file = OpenOptions::new().append(true).open(&scene.source).unwrap();
        if grow {
            file.write_all(b"more").unwrap();
        } else {
            file.set_len(LARGE / 2).unwrap();
        }
        let end = receiver.finish();
        assert!(in_one_line(&end).contains("the content changed while it was sent"), "{}", end.stderr);
        assert_eq!(scene.names(), Vec::<String>::new());
        let end = sender.process.finish();
        assert!(in_one_line(&end).contains("changed while it was sent: run `wraith-cli send` again"));
    }
}
