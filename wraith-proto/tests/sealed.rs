//! Sealed messages by the public interface: what they allocate, what an endpoint makes of them, and the fuzzer's seeds.

#[path = "sealed/check.rs"]
mod check;
#[path = "../../fuzz/seeds.rs"]
mod seeds;

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use wraith_proto::crypto::RustCrypto;
use wraith_proto::sealed::{Letter, Mailbox, MessageId, SEGMENT_LEN, has_sealed_form, is_datagram};
use wraith_proto::{DropReason, Identity, Outcome};
use wraith_sim::alloc::{Counting, measure};
use wraith_sim::{LEFT, Pair, PairConfig, Side};

use seeds::{folder, seeds};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

fn mailbox(seed: u8, peers: u32) -> Mailbox {
    Mailbox::new(Identity::from_seed([seed; 32]), &RustCrypto, peers)
}

fn letter(to: &Mailbox) -> Letter {
    Letter { to: to.peer_id(), id: MessageId([7; 16]), time: 0, sign: false }
}

/// Keys alone, and the same number whether peers are new, remembered or forgotten again.
#[test]
fn a_message_allocates_its_keys_and_nothing_for_the_memory_of_peers() {
    let mut one = mailbox(0, 10);
    let mut others: Vec<Mailbox> = (1..=30).map(|seed| mailbox(seed, 10)).collect();
    let mut datagram = [0; 200];
    for round in 0..3_u8 {
        for other in &mut others {
            let letter = letter(other);
            let (sealed, counts) =
                measure(|| one.seal_datagram(&letter, &[round; 32], b"hello", &mut datagram));
            assert_eq!((counts.allocations, counts.deallocations), (3, 3));
            let len = sealed.unwrap();
            let (opened, counts) =
                measure(|| other.open_datagram(&mut datagram[..len]).map(|(opened, _)| opened.from));
            assert_eq!((counts.allocations, counts.deallocations), (2, 2));
            assert_eq!(opened, Ok(one.peer_id()));
        }
    }
    assert_eq!(one.known_peers(), 10);
}

/// `PROTO §2.2`: before and in a session, and without reading more than the first byte.
#[test]
fn an_endpoint_drops_and_counts_sealed_datagrams() {
    let mut pair = Pair::new(PairConfig::new(1));
    let identity = pair.right.endpoint.config().identity.clone();
    let mut to = Mailbox::new(identity, &RustCrypto, 0);
    let mut datagram = vec![0; 1200];
    mailbox(9, 0).seal_datagram(&letter(&to), &[1; 32], &[0; 1046], &mut datagram).unwrap();
    assert!(is_datagram(&datagram));
    for run in [Duration::ZERO, Duration::from_secs(1)] {
        pair.run_for(run);
        for datagram in [&datagram[..], &datagram[..1]] {
            let outcome = pair.inject(Side::Right, LEFT, datagram);
            assert_eq!(outcome, Outcome::Dropped(DropReason::Sealed));
        }
        pair.dial().unwrap();
    }
    let stats = pair.right.endpoint.stats();
    assert_eq!((stats.drops(DropReason::Sealed), stats.dropped()), (4, 4));
    // It was for a mailbox.
    assert!(to.open_datagram(&mut datagram).is_ok());
}

/// `PROTO §2.2`: whatever the type, and not what stands beside it.
#[test]
fn an_endpoint_drops_every_type_of_the_sealed_form_and_counts_no_other_as_such() {
    let mut pair = Pair::new(PairConfig::new(1));
    pair.dial().unwrap();
    pair.run_for(Duration::from_secs(1));
    for first in 0..=255_u8 {
        let sealed = first >> 4 == 0b0110;
        assert_eq!((has_sealed_form(&[first]), is_datagram(&[first])), (sealed, first == 0x61));
        for len in [1, 29, 1200] {
            let mut datagram = vec![7; len];
            datagram[0] = first;
            let outcome = pair.inject(Side::Right, LEFT, &datagram);
            assert_eq!(outcome == Outcome::Dropped(DropReason::Sealed), sealed, "{first:#04x}: {outcome:?}");
        }
    }
    assert!(!has_sealed_form(&[]) && !is_datagram(&[]));
    assert_eq!(pair.right.endpoint.stats().drops(DropReason::Sealed), 16 * 3);
}

#[test]
fn every_seed_of_the_fuzzer_is_read_without_harm() {
    for (name, bytes) in seeds("sealed") {
        println!("{name}");
        check::check(&bytes);
    }
}

#[test]
fn the_seeds_reach_every_outcome() {
    let mut outcomes = BTreeSet::new();
    for (_, bytes) in seeds("sealed") {
        let message = check::pieces(&check::Readable, &bytes).1.map(|opened| opened.signed);
        let datagram = check::mailbox(2, &check::Readable)
            .open_datagram(&mut bytes.clone())
            .map(|(opened, _)| opened.signed);
        outcomes.extend([format!("message {message:?}"), format!("datagram {datagram:?}")]);
    }
    // A segment and the head fail under no provider that takes every tag, but by a secret that is zero.
    let errors =
        ["Malformed", "NotForUs", "NotSealed", "Sender", "Signature", "Trailing", "Truncated", "Version"];
    let mut expected: BTreeSet<String> = BTreeSet::new();
    expected.extend(["false", "true"].map(|signed| format!("message Ok({signed})")));
    expected.extend(["false", "true"].map(|signed| format!("datagram Ok({signed})")));
    expected.extend(errors.map(|error| format!("message Err({error})")));
    expected.extend(errors[..5].iter().map(|error| format!("datagram Err({error})")));
    assert_eq!(outcomes, expected);
}

/// What the seeds are made of; an input that fails goes among them as it is.
#[test]
fn the_seeds_are_what_is_sealed_here() {
    for (name, bytes) in made() {
        let path = folder("sealed").join(&name);
        assert!(fs::read(&path).is_ok_and(|found| found == bytes), "{name}");
    }
}

/// Messages and datagrams that anybody can read, whole and spoiled.
fn made() -> Vec<(String, Vec<u8>)> {
    let mut made = vec![("empty".to_owned(), vec![]), ("edits".to_owned(), vec![0, 0, 0, 200, 9, 1, 0])];
    let changed = |bytes: &[u8], at: usize, byte: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] = byte;
        bytes
    };
    for sign in [false, true] {
        let kind = if sign { "signed" } else { "plain" };
        let message = check::message(&check::Readable, sign, b"hello");
        let mut datagram = vec![0; 300];
        let len = check::mailbox(1, &check::Readable)
            .seal_datagram(&check::letter(sign), &[3; 32], b"hello", &mut datagram)
            .unwrap();
        datagram.truncate(len);
        let mut add = |what: &str, bytes: Vec<u8>| made.push((format!("{kind}-{what}"), bytes));
        add("message-cut", message[..message.len() - 1].to_vec());
        add("message-version", changed(&message, 7, 2));
        add("message-flags", changed(&message, 8 + 80 + 56, 3));
        add("message-sender", changed(&message, 8 + 80, 1));
        add("message-low-order", [&message[..8], &[0; 32], &message[40..]].concat());
        add("message-length", changed(&message, 162, 1));
        add("message-more", [&message[..], &[0; 4]].concat());
        add("message-body", changed(&message, 165, 0));
        add("datagram-flags", changed(&datagram, 1 + 80 + 56, 3));
        add("datagram-sender", changed(&datagram, 1 + 80, 1));
        add("datagram-low-order", [&datagram[..1], &[0; 32], &datagram[33..]].concat());
        add("datagram-body", changed(&datagram, len - 17, 0));
        add("datagram", datagram);
        add("message", message);
    }
    let long = check::message(&check::Readable, false, &vec![0; SEGMENT_LEN + 1]);
    made.push(("long".to_owned(), long));
    made
}
