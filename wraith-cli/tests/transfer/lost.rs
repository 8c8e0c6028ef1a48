//! Peers that go away on the way and come back, or do not.
//!
//! In the full form they stay away for longer than sessions live; otherwise only until they are looked for.

use std::io::Read as _;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::network::{LARGE, Network};
use crate::support::{Done, Running, program};
use crate::transfer::{Scene, content, done, error, finish, wait_for_middle};

/// How long a process stands still: longer than sessions live, or than a peer is waited for.
fn standstill() -> Duration {
    let full = std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full");
    Duration::from_secs(if full { 20 } else { 7 })
}

/// The same command without `-q`.
fn aloud(command: &Command) -> Command {
    program(command.get_args().filter(|arg| *arg != "-q"))
}

/// Lines on stderr that say that the sender is looked for.
fn searches(end: &Done) -> usize {
    end.stderr.lines().filter(|line| line.contains("does not answer: looking for it")).count()
}

fn stand_still(process: &Running, duration: Duration) {
    process.signal(Signal::SIGSTOP);
    thread::sleep(duration);
    process.signal(Signal::SIGCONT);
}

#[test]
fn a_sender_that_stood_still_is_found_again_and_the_file_arrives_once() {
    let scene = Scene::sparse("still-sender", LARGE);
    let sender = scene.send(&[]);
    let (_network, ticket) = Network::of(&sender);
    let receiver = Running::start(&mut aloud(&scene.receive(&ticket, &[])));
    wait_for_middle(&receiver);
    stand_still(&sender.process, standstill());
    let end = receiver.finish();
    assert_eq!(done(&end)["bytes"], LARGE);
    assert_eq!(searches(&end), 1, "{}", end.stderr);
    assert_eq!(scene.names(), ["file.bin"]);
    let end = sender.process.finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert_eq!(
        end.json().iter().filter(|event| event["event"] == "confirmed").count(),
        1,
        "{:?}",
        end.stdout
    );
}

#[test]
fn a_receiver_that_stood_still_goes_on_where_it_was() {
    let scene = Scene::sparse("still-receiver", LARGE);
    let sender = scene.send(&[]);
    let (_network, ticket) = Network::of(&sender);
    let receiver = Running::start(&mut scene.receive(&ticket, &[]));
    wait_for_middle(&receiver);
    stand_still(&receiver, standstill());
    let end = receiver.finish();
    assert_eq!(done(&end)["bytes"], LARGE);
    let end = sender.process.finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

#[test]
fn a_transfer_outlives_a_network_that_was_gone() {
    let scene = Scene::sparse("gone", LARGE);
    let sender = scene.send(&[]);
    let (network, ticket) = Network::of(&sender);
    let receiver = Running::start(&mut aloud(&scene.receive(&ticket, &[])));
    wait_for_middle(&receiver);
    network.gone.store(true, Ordering::Relaxed);
    thread::sleep(standstill());
    network.gone.store(false, Ordering::Relaxed);
    let end = receiver.finish();
    assert_eq!(done(&end)["bytes"], LARGE);
    assert_eq!(searches(&end), 1, "{}", end.stderr);
    assert!(
        end.stdout.windows(2).all(|lines| lines[0] != lines[1]),
        "progress without any: {:?}",
        end.stdout
    );
    let end = sender.process.finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

/// Receives into a pipe, which the test holds full until the network is gone: the last chunk arrives before that, and the
/// receiver's last word after it.
///
/// `PROTO §10.12`
#[test]
fn a_sender_hears_of_the_end_from_a_network_that_comes_back_after_it() {
    let bytes = content(1 << 20);
    let scene = Scene::new("last-word", &bytes);
    let sender = scene.send(&[]);
    let (network, ticket) = Network::of(&sender);
    let mut receiver = program(["receive", &ticket, "--stdout"]).spawn().unwrap();
    let mut pipe = receiver.stdout.take().unwrap();
    let mut arrived = vec![0; bytes.len()];
    let (first, others) = arrived.split_at_mut(1);
    pipe.read_exact(first).unwrap();
    network.gone.store(true, Ordering::Relaxed);
    pipe.read_exact(others).unwrap();
    thread::sleep(standstill());
    network.gone.store(false, Ordering::Relaxed);
    let end = sender.process.finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert_eq!(end.json().last().unwrap()["event"], "confirmed");
    let end = receiver.wait_with_output().unwrap();
    let said = String::from_utf8(end.stderr).unwrap();
    assert_eq!(end.status.code(), Some(0), "{said}");
    assert!(said.contains("does not answer: all has arrived, telling it so for up to 60 s"), "{said}");
    assert!(arrived == bytes, "the bytes are others");
}

/// `PROTO §11.7`
#[test]
fn a_sender_whose_network_comes_up_late_is_dialled_again() {
    let scene = Scene::new("late", b"content");
    let sender = scene.send(&[]);
    let (network, ticket) = Network::of(&sender);
    network.gone.store(true, Ordering::Relaxed);
    let receiver = Running::start(&mut aloud(&scene.receive(&ticket, &[])));
    thread::sleep(Duration::from_secs(3));
    network.gone.store(false, Ordering::Relaxed);
    let end = receiver.finish();
    assert_eq!(done(&end)["bytes"], 7);
    let silent = format!("no answer from {}: trying for up to 60 s", network.address);
    assert_eq!(end.stderr.matches(&silent).count(), 1, "{}", end.stderr);
    let end = sender.process.finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

#[test]
fn who_has_moved_is_named_by_the_address_where_it_is() {
    let scene = Scene::sparse("moved", LARGE);
    let sender = scene.send(&[]);
    let (network, ticket) = Network::of(&sender);
    let receiver = Running::start(&mut scene.receive(&ticket, &[]));
    wait_for_middle(&receiver);
    network.forgotten.store(true, Ordering::Relaxed);
    assert_eq!(done(&receiver.finish())["address"], network.address.to_string());
    let confirmed = sender.process.finish().json().pop().unwrap();
    assert_eq!(confirmed["event"], "confirmed");
    assert_eq!(confirmed["address"], network.ports[1].to_string(), "before it moved {}", network.ports[0]);
}

#[test]
fn a_sender_started_anew_is_found_within_seconds_and_says_that_it_needs_a_new_ticket() {
    let scene = Scene::sparse("anew", LARGE);
    let identity = scene.target.join("identity");
    let identity = identity.to_str().unwrap();
    let sender = scene.send(&["--identity", identity]);
    let address = sender.event["addresses"][0].as_str().unwrap().to_owned();
    let (_network, ticket) = Network::of(&sender);
    let receiver = Running::start(&mut scene.receive(&ticket, &[]));
    wait_for_middle(&receiver);
    drop(sender);
    let anew = scene.send_from(&address, &["--identity", identity]);
    let there = Instant::now();
    let end = receiver.finish();
    assert!(there.elapsed() < Duration::from_secs(14), "{:?}", there.elapsed());
    assert!(error(&end).contains("get a new ticket from the sender"), "{}", end.stderr);
    assert_eq!(scene.names(), ["identity"]);
    let end = finish(&mut scene.receive(&anew.ticket(), &[]));
    assert_eq!(done(&end)["bytes"], LARGE);
}

#[test]
fn the_help_says_how_much_patience_a_receiver_has() {
    let help = crate::support::run(["receive", "--help"]).stdout.join("\n");
    assert!(help.contains("--patience <TIME>") && help.contains("[default: 60s]"), "{help}");
    let end = crate::support::run(["receive", "wraith1", "--patience", "a while"]);
    assert_eq!(end.code, Some(2));
    assert!(end.stderr.contains("for '--patience <TIME>': write a duration like"), "{}", end.stderr);
}
