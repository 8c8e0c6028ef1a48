//! What bounds checks: bytes, repetitions, moves per second, and how many there are.

use wraith_proto::{Congestion, Event, Limits, Outcome};
use wraith_sim::{LEFT, Side};

use crate::support::{Mobile, SECOND, SMALL, addr, elsewhere, line, millis, next_port};

/// Lets the left end say something from where it is.
fn ping(mobile: &mut Mobile) {
    mobile.session(Side::Left).ping().expect("it is open");
    mobile.pair.run_for(millis(1));
}

/// `PROTO §13.4`, `PROTO §13.5`: three times the bytes, on the wire, and then silence.
#[test]
fn an_address_that_does_not_answer_gets_three_times_its_bytes_and_no_more() {
    let mut mobile = Mobile::new(1);
    ping(&mut mobile);
    mobile.drop_if(|sent| sent.sender == 0 || sent.to == elsewhere());
    let packet = mobile.take_sent().remove(0);
    assert!((30..=SMALL).contains(&packet.bytes.len()));
    mobile.pair.inject(Side::Right, elsewhere(), &packet.bytes);
    mobile.pair.run_for(20 * SECOND);
    let sent = mobile.take_sent();
    let got: Vec<_> =
        sent.iter().filter(|sent| sent.to == elsewhere()).map(|sent| sent.bytes.len()).collect();
    let most = 3 * packet.bytes.len() / SMALL;
    assert_eq!(got, vec![SMALL; most], "as many challenges as {} bytes pay for", packet.bytes.len());
    assert_eq!((mobile.checks(Side::Right), mobile.remote(Side::Right)), ([1, 0, 1], LEFT));
}

/// `PROTO §13.5`
#[test]
fn a_check_is_given_up_after_eight_challenges() {
    let mut mobile = Mobile::new(2);
    // Everything that the peer sends comes from elsewhere, where it hears nothing.
    mobile.drop_if(|sent| sent.to == elsewhere() || sent.sender == 0);
    for _ in 0..40 {
        mobile.send(Side::Left, 600);
        mobile.run_with(millis(100), |mobile, sent| {
            if sent.sender == 0 {
                mobile.pair.inject(Side::Right, elsewhere(), &sent.bytes);
            }
        });
    }
    let asked = |mobile: &Mobile, len| {
        let sent = mobile.sent.borrow();
        sent.iter().filter(|sent| sent.to == elsewhere() && sent.bytes.len() == len).count()
    };
    assert_eq!(mobile.checks(Side::Right), [1, 0, 0]);
    assert!(asked(&mobile, SMALL) <= 8);
    mobile.pair.run_for(10 * SECOND);
    assert_eq!(mobile.checks(Side::Right), [1, 0, 1]);
    assert_eq!((asked(&mobile, SMALL), asked(&mobile, 1200)), (8, 8));
}

/// `PROTO §13.6`
#[test]
fn a_third_move_within_a_second_waits() {
    let mut mobile = Mobile::new(3);
    let moved = |mobile: &mut Mobile, to, expected| {
        mobile.pair.rebind(Side::Left, to);
        ping(mobile);
        mobile.pair.run_for(millis(99));
        assert_eq!(mobile.remote(Side::Right), expected);
    };
    moved(&mut mobile, next_port(), next_port());
    moved(&mut mobile, elsewhere(), elsewhere());
    for _ in 0..7 {
        moved(&mut mobile, addr("203.0.113.9:7"), elsewhere());
    }
    assert_eq!(mobile.checks(Side::Right), [2, 2, 0]);
    assert!(mobile.stats(Side::Right).path_checks_refused >= 7);
    mobile.pair.run_for(millis(150));
    moved(&mut mobile, addr("203.0.113.9:7"), addr("203.0.113.9:7"));
    assert_eq!(mobile.checks(Side::Right), [3, 3, 0]);
}

/// `PROTO §13.6`
#[test]
fn another_address_takes_the_place_of_one_that_was_asked_twice_in_vain() {
    let mut mobile = Mobile::new(4);
    let (gone, last) = (addr("203.0.113.9:1"), addr("203.0.113.9:2"));
    mobile.pair.rebind(Side::Left, gone);
    ping(&mut mobile);
    mobile.pair.rebind(Side::Left, last);
    ping(&mut mobile);
    mobile.pair.run_for(millis(20));
    assert_eq!((mobile.checks(Side::Right), mobile.stats(Side::Right).path_checks_refused), ([1, 0, 0], 1));
    mobile.pair.run_for(millis(80));
    ping(&mut mobile);
    mobile.pair.run_for(millis(100));
    assert_eq!((mobile.checks(Side::Right), mobile.remote(Side::Right)), ([2, 1, 1], last));
}

/// Checks are a pool of as many as handshakes.
#[test]
fn sessions_wait_for_a_check_when_all_are_taken() {
    let mut mobile = Mobile::with(5, line(), |config| {
        config.limits = Limits { sessions: 4, handshakes: 1, ..Limits::client() };
    });
    let (other, other_right) = mobile.pair.connect();
    mobile.pair.run_for(SECOND);
    mobile.pair.rebind(Side::Left, next_port());
    let remotes = |mobile: &mut Mobile| {
        let other = mobile.pair.right.endpoint.session(other_right).expect("it is open").remote();
        (mobile.remote(Side::Right), other)
    };
    let both = |mobile: &mut Mobile| {
        mobile.session(Side::Left).ping().expect("it is open");
        mobile.pair.left.endpoint.session(other).expect("it is open").ping().expect("it is open");
        mobile.pair.run_for(millis(200));
    };
    both(&mut mobile);
    assert_eq!(remotes(&mut mobile), (next_port(), LEFT), "the second finds no room");
    assert!(mobile.stats(Side::Right).path_checks_refused > 0);
    // The first is remembered for a second after its move.
    for _ in 0..6 {
        both(&mut mobile);
    }
    assert_eq!(remotes(&mut mobile), (next_port(), next_port()));
}

#[test]
fn a_session_that_ends_gives_its_check_back() {
    let mut mobile = Mobile::with(6, line(), |config| {
        config.limits = Limits { sessions: 4, handshakes: 1, ..Limits::client() };
    });
    for round in 1..4 {
        let (left, right) = (mobile.left, mobile.right);
        let mut session = mobile.pair.left.endpoint.session(left).expect("it is open");
        session.ping().expect("it is open");
        mobile.pair.run_for(millis(1));
        let packet = mobile.take_sent().into_iter().rfind(|sent| sent.sender == 0).expect("a ping");
        let outcome = mobile.pair.inject(Side::Right, elsewhere(), &packet.bytes);
        assert_eq!(outcome, Outcome::Authenticated(right));
        assert_eq!(mobile.checks(Side::Right), [round, 0, round - 1]);
        let now = mobile.pair.now();
        mobile.pair.right.endpoint.session(right).expect("it is open").close(now, 7);
        mobile.pair.run_for(3 * SECOND);
        assert_eq!(mobile.checks(Side::Right), [round, 0, round]);
        (mobile.left, mobile.right) = mobile.pair.connect();
        mobile.pair.run_for(SECOND);
    }
    assert_eq!(mobile.pair.right.host.count(Event::PathChanged), 0);
}

/// `PROTO §13.8`: what arrives where the peer was says that the way there is the one in use, and its losses count.
#[test]
fn a_peer_that_is_heard_from_elsewhere_alone_does_not_make_losses_free() {
    let lost = |from| {
        let queue = line().with_queue_bytes(60_000);
        let mut mobile = Mobile::with(12, queue, |config| {
            config.transport = config.transport.with_congestion(Congestion::Cubic);
        });
        mobile.drop_if(|sent| sent.to == elsewhere() || sent.sender == 0);
        mobile.send(Side::Right, 1 << 30);
        mobile.run_with(millis(12_000), |mobile, sent| {
            if sent.sender == 0 {
                mobile.pair.inject(Side::Right, from, &sent.bytes);
            }
        });
        let stats = mobile.session(Side::Right).stats();
        stats.packets_lost
    };
    let (usual, diverted) = (lost(LEFT), lost(elsewhere()));
    assert!(diverted <= usual * 2, "{diverted} packets lost, {usual} without a check");
}
