//! Ends that move on purpose.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use wraith_proto::wire::{ConnectionId, Frame, visible_destination};
use wraith_proto::{Budget, Ecn, Event, NoSource, OneShot, Outcome, RxMeta, SessionError, Via};
use wraith_sim::{LEFT, RIGHT, Side};

use crate::support::{Mobile, SECOND, Sent, addr, elsewhere, line, millis, next_port};

/// Moves one end, which knows of it.
fn migrate(mobile: &mut Mobile, side: Side, to: SocketAddr) -> Result<(), SessionError> {
    let now = mobile.pair.now();
    mobile.session(side).migrate(now, None, Via::default())?;
    mobile.pair.rebind(side, to);
    Ok(())
}

/// The ids that packets bear to or from the left end while it is at one address.
fn ids<'a>(sent: impl Iterator<Item = &'a Sent>) -> BTreeSet<ConnectionId> {
    sent.filter_map(|sent| visible_destination(&sent.bytes)).collect()
}

/// `PROTO §13.9`
#[test]
fn an_end_that_moves_on_purpose_shares_no_id_between_its_addresses() {
    for from in [Side::Left, Side::Right] {
        let mut mobile = Mobile::new(1);
        let receiver = if from == Side::Left { Side::Right } else { Side::Left };
        mobile.send(from, 8 << 20);
        mobile.run_until_received(receiver, 1 << 20, 5 * SECOND);
        let before = mobile.take_sent();
        migrate(&mut mobile, Side::Left, elsewhere()).expect("there are ids");
        let moved = mobile.pair.now();
        mobile.finish(from, 1, 5 * SECOND);
        assert_eq!((mobile.remote(Side::Right), mobile.checks(Side::Right)), (elsewhere(), [1, 1, 0]));
        let after = mobile.take_sent();
        let own = |sent: &&Sent| sent.sender == 0 || sent.to == elsewhere();
        let former = before.iter().chain(after.iter().filter(|sent| sent.to == LEFT || sent.at < moved));
        let (former, fresh) = (ids(former), ids(after.iter().filter(own).filter(|sent| sent.at >= moved)));
        assert_eq!((former.len(), fresh.len()), (2, 2), "one for each direction");
        assert!(former.is_disjoint(&fresh), "{former:?} {fresh:?}");
        assert_eq!(mobile.received(receiver), 8 << 20);
    }
}

/// `PROTO §6.6`, `PROTO §13.9`: retired ids are replaced, so that a session may move for ever.
#[test]
fn a_session_moves_again_and_again() {
    for side in [Side::Left, Side::Right] {
        let mut mobile = Mobile::new(2);
        let other = if side == Side::Left { Side::Right } else { Side::Left };
        for number in 0..12 {
            let to = addr(&format!("203.0.113.{}:4433", number % 3 + 1));
            mobile.take_sent();
            migrate(&mut mobile, side, to).expect("there are ids");
            mobile.pair.run_for(SECOND);
            assert_eq!(mobile.remote(other), to);
            let sent = mobile.take_sent();
            let count = |fits: fn(&Frame<'_>) -> bool| sent.iter().filter(|sent| sent.holds(fits)).count();
            let retired = count(|frame| matches!(frame, Frame::RetireConnectionId { .. }));
            let given = count(|frame| matches!(frame, Frame::NewConnectionId { .. }));
            // That of the peer's answer may have gone to the former address, and once more to this one.
            assert!((2..=3).contains(&retired) && (2..=3).contains(&given), "{retired} {given}");
        }
        assert_eq!(mobile.checks(other), [12, 12, 0]);
        assert_eq!(mobile.stats(side).dropped() + mobile.stats(other).dropped(), 0);
    }
}

/// `PROTO §13.9`
#[test]
fn without_a_fresh_id_a_session_stays_where_it_is() {
    let mut mobile = Mobile::new(3);
    mobile.drop_if(|sent| sent.sender == 1);
    migrate(&mut mobile, Side::Left, next_port()).expect("there are ids");
    mobile.pair.run_for(millis(300));
    mobile.take_sent();
    assert_eq!(migrate(&mut mobile, Side::Left, elsewhere()), Err(SessionError::NoConnectionId));
    mobile.session(Side::Left).ping().expect("it is open");
    mobile.pair.run_for(millis(300));
    assert_eq!(ids(mobile.take_sent().iter().filter(|sent| sent.sender == 0)).len(), 1);
    mobile.drop_if(|_| false);
    mobile.pair.run_for(5 * SECOND);
    assert_eq!(mobile.remote(Side::Right), next_port());
    migrate(&mut mobile, Side::Left, elsewhere()).expect("there are ids again");
    mobile.pair.run_for(SECOND);
    assert_eq!(mobile.remote(Side::Right), elsewhere());
}

#[test]
fn a_session_that_is_closed_does_not_move() {
    let mut mobile = Mobile::new(4);
    let now = mobile.pair.now();
    mobile.session(Side::Left).close(now, 0);
    assert_eq!(mobile.session(Side::Left).migrate(now, None, Via::default()), Err(SessionError::Closed));
}

/// `PROTO §13.7`: who moves begins anew, too.
#[test]
fn an_end_that_moves_begins_anew_with_its_window() {
    let mut mobile = Mobile::new(5);
    mobile.send(Side::Left, 8 << 20);
    mobile.run_until_received(Side::Right, 1 << 20, 5 * SECOND);
    assert!(mobile.session(Side::Left).stats().congestion_window > 20_000);
    migrate(&mut mobile, Side::Left, elsewhere()).expect("there are ids");
    let stats = mobile.session(Side::Left).stats();
    assert_eq!((stats.congestion_window, stats.bytes_in_flight), (12_000, 0));
    assert!(stats.rtt.is_zero());
    mobile.finish(Side::Left, 1, 5 * SECOND);
    assert_eq!(mobile.received(Side::Right), 8 << 20, "each byte once");
}

/// `PROTO §13.9`: the id that a check has used is not used beside another address of this end.
#[test]
fn an_end_that_moves_while_it_checks_where_its_peer_is_shares_no_id_between_ways() {
    let mut mobile = Mobile::new(7);
    let third = addr("198.51.100.7:4433");
    mobile.drop_if(|sent| sent.to == elsewhere());
    migrate(&mut mobile, Side::Right, elsewhere()).expect("there are ids");
    // It has asked there once; three times what came from there allows it to ask again.
    mobile.pair.run_for(millis(50));
    assert_eq!(mobile.checks(Side::Left), [1, 0, 0]);
    migrate(&mut mobile, Side::Left, third).expect("there are ids");
    let moved = mobile.pair.now();
    mobile.drop_if(|_| false);
    mobile.pair.run_for(5 * SECOND);
    assert_eq!((mobile.remote(Side::Left), mobile.remote(Side::Right)), (elsewhere(), third));

    let sent = mobile.take_sent();
    let of_left = |to: SocketAddr, after: bool| {
        ids(sent.iter().filter(|sent| sent.sender == 0 && sent.to == to && (sent.at >= moved) == after))
    };
    let ways = [(RIGHT, false), (elsewhere(), false), (RIGHT, true), (elsewhere(), true)]
        .map(|(to, after)| of_left(to, after));
    for (at, way) in ways.iter().enumerate() {
        assert!(!way.is_empty(), "nothing went there: {ways:?}");
        assert!(ways[..at].iter().all(|other| other.is_disjoint(way)), "{ways:?}");
    }
}

/// `PROTO §13.9`: nothing bears the new id beside the former address.
#[test]
fn an_answer_to_a_challenge_that_waits_leaves_from_where_the_end_has_moved_to() {
    let mut mobile = Mobile::new(8);
    mobile.drop_if(Sent::is_challenge);
    mobile.pair.rebind(Side::Left, next_port());
    mobile.session(Side::Left).ping().expect("it is open");
    mobile.pair.run_for(millis(100));
    let challenge = mobile.take_sent().into_iter().find(Sent::is_challenge).expect("a check");
    let (now, local) = (mobile.pair.now(), "198.51.100.7".parse().expect("an address"));
    let (node, session) = mobile.node(Side::Left);
    let meta = RxMeta { from: RIGHT, to: Some(LEFT.ip()), via: Via::default(), ecn: Ecn::NotEct };
    let outcome = node.endpoint.handle(now, &meta, &mut challenge.bytes.clone()).outcome();
    assert!(matches!(outcome, Outcome::Authenticated(_)), "{outcome:?}");
    node.endpoint.session(session).expect("open").migrate(now, Some(local), Via(3)).expect("there are ids");
    let mut left = 0;
    loop {
        let mut buffer = [0; 1500];
        let mut queue = OneShot::new(&mut buffer);
        let _ = node.endpoint.poll_transmit(now, &mut queue, &mut NoSource, Budget(1));
        let Some((meta, _)) = queue.take() else { break };
        assert_eq!((meta.from, meta.via), (Some(local), Via(3)));
        left += 1;
    }
    assert!(left >= 2, "the answer, and what says that it has moved");
}

/// `PROTO §13.9`: an id that was seen at an address which proved nothing is used no more.
#[test]
fn an_id_that_was_used_in_vain_is_retired() {
    let mut mobile = Mobile::with(6, line(), |_| {});
    mobile.drop_if(|sent| sent.to == elsewhere());
    migrate(&mut mobile, Side::Left, elsewhere()).expect("there are ids");
    mobile.pair.run_for(10 * SECOND);
    let sent = mobile.take_sent();
    let vain = ids(sent.iter().filter(|sent| sent.to == elsewhere()));
    assert!(!vain.is_empty());
    mobile.drop_if(|_| false);
    mobile.pair.rebind(Side::Left, LEFT);
    mobile.session(Side::Left).ping().expect("it is open");
    mobile.pair.run_for(SECOND);
    let later = mobile.take_sent();
    let used = ids(later.iter().filter(|sent| sent.sender == 1));
    assert!(!used.is_empty() && used.is_disjoint(&vain), "{used:?} {vain:?}");
    assert_eq!(mobile.pair.left.host.count(Event::PathChanged), 0);
    assert_eq!(mobile.remote(Side::Left), RIGHT);
}
