//! Attackers who see packets and send copies of them from an address of their own.

use std::time::Duration;

use wraith_proto::{DropReason, Event, Outcome};
use wraith_sim::{LEFT, RIGHT, Side};

use crate::support::{Mobile, SECOND, Sent, attacker, millis};

/// Lets both ends say a little ten times a second: the attacker's way has no limit that a transfer would find.
fn chat(mobile: &mut Mobile, seconds: u32, mut meddle: impl FnMut(&mut Mobile, &Sent)) {
    for _ in 0..10 * seconds {
        mobile.send(Side::Left, 3000);
        mobile.send(Side::Right, 3000);
        mobile.run_with(millis(100), &mut meddle);
    }
}

/// What the attacker was sent, by what the right end was sent by it: asserts that it got challenges alone, and no more
/// than three times its own bytes.
fn assert_nothing_diverted(sent: &[Sent], copied: usize) {
    let to_attacker: Vec<_> = sent.iter().filter(|sent| sent.to == attacker()).collect();
    assert!(to_attacker.iter().all(|sent| sent.is_challenge() && !sent.has_data()));
    let bytes: usize = to_attacker.iter().map(|sent| sent.bytes.len()).sum();
    assert!(bytes > 0 && bytes <= 3 * copied, "{bytes} bytes for {copied}");
}

/// `PROTO §13.3`: the next packet of the peer ends the check.
#[test]
fn a_copy_that_overtakes_its_original_diverts_nothing() {
    let mut mobile = Mobile::new(1);
    mobile.send(Side::Left, 4 << 20);
    mobile.send(Side::Right, 4 << 20);
    mobile.run_until_received(Side::Right, 1 << 20, 5 * SECOND);
    mobile.take_sent();
    let mut copied = 0;
    mobile.run_with(millis(1000), |mobile, sent| {
        if sent.sender == 0 && copied == 0 {
            copied = sent.bytes.len();
            assert!(matches!(
                mobile.pair.inject(Side::Right, attacker(), &sent.bytes),
                Outcome::Authenticated(_)
            ));
        }
    });
    assert_eq!(mobile.checks(Side::Right), [1, 0, 1]);
    assert_eq!(mobile.remote(Side::Right), LEFT);
    assert_nothing_diverted(&mobile.sent.borrow(), copied);
    mobile.finish(Side::Left, 1, 5 * SECOND);
    assert_eq!(mobile.pair.right.host.count(Event::PathChanged), 0);
}

/// `PROTO §13.3`, `PROTO §13.4`: on the path and faster in every race, but without the answer to a challenge.
#[test]
fn an_attacker_whose_copies_are_always_first_gets_challenges_alone() {
    let mut mobile = Mobile::new(2);
    let mut copied = 0;
    chat(&mut mobile, 10, |mobile, sent| {
        if sent.sender == 0 {
            copied += sent.bytes.len();
            mobile.pair.inject(Side::Right, attacker(), &sent.bytes);
        }
    });
    let [begun, validated, given_up] = mobile.checks(Side::Right);
    assert!(validated == 0 && (2..=4).contains(&begun) && begun - given_up <= 1, "{begun} {given_up}");
    assert_eq!(mobile.remote(Side::Right), LEFT);
    assert_nothing_diverted(&mobile.sent.borrow(), copied);
    let (left, right) = (mobile.received(Side::Left), mobile.received(Side::Right));
    assert!(left >= 297_000 && right >= 297_000, "traffic goes on: {left} and {right} bytes");
}

/// `PROTO §13.1`, `PROTO §13.3`: who answers for the peer is a part of the way, as long as it goes on.
#[test]
fn an_attacker_who_forwards_both_ways_loses_the_traffic_when_it_stops() {
    let mut mobile = Mobile::new(3);
    chat(&mut mobile, 2, |mobile, sent| {
        if sent.sender == 0 {
            mobile.pair.inject(Side::Right, attacker(), &sent.bytes);
        } else if sent.to == attacker() {
            mobile.pair.inject(Side::Left, RIGHT, &sent.bytes);
        }
    });
    assert_eq!(mobile.remote(Side::Right), attacker());
    chat(&mut mobile, 1, |_, _| {});
    assert_eq!(mobile.remote(Side::Right), LEFT);
    chat(&mut mobile, 2, |_, _| {});
    assert_eq!(mobile.received(Side::Left), 5 * 30_000, "all of it arrived");
    assert_eq!((mobile.remote(Side::Right), mobile.checks(Side::Right)[1]), (LEFT, 2));
}

/// `PROTO §13.1`
#[test]
fn packets_that_are_old_repeated_or_altered_begin_no_check() {
    let mut mobile = Mobile::new(4);
    mobile.send(Side::Left, 1 << 20);
    mobile.finish(Side::Left, 1, 5 * SECOND);
    let mut packets: Vec<_> = mobile.take_sent().into_iter().filter(|sent| sent.sender == 0).collect();
    let mut last = packets.pop().expect("a packet");
    for packet in packets.iter().rev().take(50) {
        let outcome = mobile.pair.inject(Side::Right, attacker(), &packet.bytes);
        assert_eq!(outcome, Outcome::Dropped(DropReason::Replayed));
    }
    *last.bytes.last_mut().expect("a tag") ^= 1;
    assert_eq!(
        mobile.pair.inject(Side::Right, attacker(), &last.bytes),
        Outcome::Dropped(DropReason::BadTag)
    );
    // Authentic and new, but not the newest.
    let mut dropped = false;
    mobile.drop_if(move |sent| sent.sender == 0 && !std::mem::replace(&mut dropped, true));
    for _ in 0..2 {
        mobile.session(Side::Left).ping().expect("it is open");
        mobile.pair.run_for(millis(15));
    }
    let late = mobile.take_sent().into_iter().find(|sent| sent.sender == 0).expect("the first ping");
    let outcome = mobile.pair.inject(Side::Right, attacker(), &late.bytes);
    assert!(matches!(outcome, Outcome::Authenticated(_)), "{outcome:?}");
    mobile.pair.run_for(SECOND);
    assert_eq!(mobile.checks(Side::Right), [0; 3]);
    assert!(mobile.sent.borrow().iter().all(|sent| sent.to != attacker()));
}

/// An address that nobody can have is asked nothing.
#[test]
fn a_copy_from_a_group_address_is_not_answered() {
    for from in ["224.0.0.1:5000", "255.255.255.255:5000", "0.0.0.0:5000", "203.0.113.66:0"] {
        let mut mobile = Mobile::new(5);
        mobile.session(Side::Left).ping().expect("it is open");
        mobile.pair.run_for(Duration::from_micros(1));
        let ping = mobile.take_sent().remove(0);
        let from = from.parse().expect("an address");
        assert!(matches!(mobile.pair.inject(Side::Right, from, &ping.bytes), Outcome::Authenticated(_)));
        mobile.pair.run_for(SECOND);
        assert_eq!(mobile.checks(Side::Right), [0; 3]);
        assert!(mobile.sent.borrow().iter().all(|sent| sent.to != from));
    }
}
