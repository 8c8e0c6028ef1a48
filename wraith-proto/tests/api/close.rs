//! How sessions end.

use bytes::Bytes;
use wraith_proto::wire::HandshakeKind;
use wraith_proto::{CloseReason, DatagramError, Event};
use wraith_sim::{LEFT, LinkConfig, Pair, RIGHT, Side};

use crate::common::{ONE_WAY, SECOND, assert_carries, events, millis, pair_with, small, watch};

#[test]
fn the_peer_learns_the_code_of_a_close() {
    for code in [0, 7, u32::MAX] {
        let mut pair = Pair::new(small(1));
        let (left, right) = pair.connect();
        pair.run_for(SECOND);
        let now = pair.now();
        assert!(pair.left.endpoint.is_drained());
        pair.left.endpoint.session(left).expect("open").close(now, code);
        assert!(!pair.left.endpoint.is_drained(), "CLOSE has not left");
        pair.run_for(ONE_WAY);
        assert!(pair.left.endpoint.is_drained());
        assert_eq!(events(&pair.left, left), [Event::Connected, Event::Closed(CloseReason::Local)]);
        assert_eq!(events(&pair.right, right), [Event::Connected, Event::Closed(CloseReason::Peer(code))]);
        assert!(pair.right.endpoint.session(right).is_none(), "the handle is invalid once the end is known");
        pair.run_for(10 * SECOND);
        assert!(pair.left.endpoint.session(left).is_none());
        assert_eq!((pair.left.endpoint.sessions(), pair.right.endpoint.sessions()), (0, 0));
        assert_eq!((pair.left.endpoint.poll_timeout(), pair.right.endpoint.poll_timeout()), (None, None));
    }
}

#[test]
fn a_closed_session_takes_nothing_more_and_closes_once() {
    let mut pair = Pair::new(small(2));
    let (left, _) = pair.connect();
    let now = pair.now();
    pair.left.endpoint.session(left).expect("open").close(now, 1);
    let mut session = pair.left.endpoint.session(left).expect("its end was not polled");
    session.close(now, 2);
    assert_eq!(session.send_datagram(Bytes::new()), Err(DatagramError::Closed));
    assert!(session.ping().is_err() && session.authorize(now).is_err());
    pair.run_for(SECOND);
    assert_eq!(
        pair.right.host.events.last().map(|(_, event)| *event),
        Some(Event::Closed(CloseReason::Peer(1)))
    );
}

/// `PROTO §9.3`
#[test]
fn a_lost_close_is_said_again_when_the_peer_goes_on() {
    let mut pair = Pair::new(small(3));
    let (left, right) = pair.connect();
    // Many packets before the end do not make the answers rarer.
    for _ in 0..40 {
        pair.right
            .endpoint
            .session(right)
            .expect("open")
            .send_datagram(Bytes::from_static(b"x"))
            .expect("room");
        pair.run_for(ONE_WAY);
    }
    let seen = watch(&mut pair, |sent| sent.sender == 0);
    let now = pair.now();
    pair.left.endpoint.session(left).expect("open").close(now, 5);
    pair.run_for(ONE_WAY);
    seen.borrow_mut().clear();
    pair.stop_intercepting();
    pair.right
        .endpoint
        .session(right)
        .expect("open")
        .send_datagram(Bytes::from_static(b"still here"))
        .expect("room");
    pair.run_for(2 * ONE_WAY);
    assert_eq!(events(&pair.right, right).last(), Some(&Event::Closed(CloseReason::Peer(5))));
}

/// `PROTO §9.3`: ever more seldom, and the receiver of CLOSE says nothing at all.
#[test]
fn close_is_answered_with_silence_and_repeated_ever_more_seldom() {
    let mut pair = Pair::new(small(4));
    let (left, right) = pair.connect();
    pair.run_for(SECOND);
    let seen = watch(&mut pair, |sent| sent.sender == 0);
    let now = pair.now();
    pair.left.endpoint.session(left).expect("open").close(now, 5);
    for _ in 0..14 {
        pair.right
            .endpoint
            .session(right)
            .expect("open")
            .send_datagram(Bytes::from_static(b"x"))
            .expect("room");
        pair.run_for(millis(2));
    }
    let from = |sender| seen.borrow().iter().filter(|sent| sent.sender == sender).count();
    assert_eq!(from(1), 14);
    // The first, and those for the packets 1, 2, 4 and 8.
    pair.run_for(ONE_WAY);
    let closes = from(0);
    assert!((4..=6).contains(&closes), "{closes}");

    let last = seen.borrow().iter().rev().find(|sent| sent.sender == 0).map(|sent| sent.bytes.clone());
    seen.borrow_mut().clear();
    pair.inject(Side::Right, LEFT, &last.expect("a CLOSE"));
    assert_eq!(events(&pair.right, right).last(), Some(&Event::Closed(CloseReason::Peer(5))));
    pair.run_for(10 * SECOND);
    assert_eq!(from(1), 0, "no answer to CLOSE");
}

/// `PROTO §9.3`
#[test]
fn both_ends_may_close_at_once() {
    let mut pair = Pair::new(small(5));
    let (left, right) = pair.connect();
    pair.run_for(SECOND);
    let seen = watch(&mut pair, |_| false);
    let now = pair.now();
    pair.left.endpoint.session(left).expect("open").close(now, 1);
    pair.right.endpoint.session(right).expect("open").close(now, 2);
    pair.run_for(10 * SECOND);
    assert_eq!(seen.borrow().len(), 2, "one CLOSE each");
    assert_eq!(events(&pair.left, left).last(), Some(&Event::Closed(CloseReason::Local)));
    assert_eq!(events(&pair.right, right).last(), Some(&Event::Closed(CloseReason::Local)));
    assert_eq!((pair.left.endpoint.sessions(), pair.right.endpoint.sessions()), (0, 0));
}

/// `PROTO §9.1`
#[test]
fn silence_ends_a_session_at_both_ends() {
    let mut pair = Pair::new(small(6));
    let (left, right) = pair.connect();
    pair.run_for(SECOND);
    let start = pair.now();
    assert_carries(&mut pair, left, right);
    let quiet = pair.now().saturating_since(start);
    assert!(pair.run_until(|pair| pair.left.closed() + pair.right.closed() == 2, 31 * SECOND), "{quiet:?}");
    for (node, session) in [(&pair.left, left), (&pair.right, right)] {
        assert_eq!(events(node, session), [Event::Connected, Event::Closed(CloseReason::IdleTimeout)]);
        assert_eq!(node.endpoint.sessions(), 0);
    }
}

/// `PROTO §9.1`: the shorter of both timeouts, zero meaning none.
#[test]
fn the_shorter_idle_timeout_holds_for_both_ends() {
    let lives = |left: u32, right: u32, time| {
        let mut config = small(7);
        config.left.transport = config.left.transport.with_idle_timeout(left * SECOND);
        config.right.transport = config.right.transport.with_idle_timeout(right * SECOND);
        let mut pair = Pair::new(config);
        pair.connect();
        pair.run_for(time);
        assert_eq!(pair.left.closed(), pair.right.closed());
        pair.left.closed() == 0
    };
    assert!(lives(5, 50, 4 * SECOND) && !lives(5, 50, 7 * SECOND));
    assert!(lives(50, 5, 4 * SECOND) && !lives(50, 5, 7 * SECOND));
    assert!(lives(0, 5, 4 * SECOND) && !lives(0, 5, 7 * SECOND));
    assert!(lives(5, 0, 4 * SECOND) && !lives(5, 0, 7 * SECOND));
    assert!(lives(0, 0, 100_000 * SECOND));
}

/// `PROTO §9.1`: three probe timeouts are the least.
#[test]
fn a_tiny_idle_timeout_leaves_time_for_probes() {
    let mut pair = pair_with(8, |config| config.transport = config.transport.with_idle_timeout(millis(1)));
    let (left, _) = pair.connect();
    let start = pair.now();
    assert!(pair.run_until(|pair| pair.left.closed() == 1, SECOND));
    assert_eq!(events(&pair.left, left), [Event::Connected, Event::Closed(CloseReason::IdleTimeout)]);
    assert!(pair.now().saturating_since(start) > 3 * 2 * ONE_WAY);
}

/// `PROTO §9.2`
#[test]
fn keep_alive_keeps_a_session_past_its_idle_timeout() {
    let mut pair = Pair::new({
        let mut config = small(9);
        config.left.transport = config.left.transport.with_keep_alive(Some(10 * SECOND));
        config
    });
    let (left, right) = pair.connect();
    pair.run_for(SECOND);
    let before = pair.left.endpoint.stats().datagrams_sent;
    pair.run_for(300 * SECOND);
    assert_eq!((pair.left.closed(), pair.right.closed()), (0, 0));
    let sent = pair.left.endpoint.stats().datagrams_sent - before;
    assert!((29..=32).contains(&sent), "{sent}");
    assert_carries(&mut pair, left, right);
}

/// `PROTO §9.2`: traffic makes a PING needless.
#[test]
fn no_keep_alive_is_sent_while_data_flow() {
    let mut pair = pair_with(10, |config| config.transport = config.transport.with_keep_alive(Some(SECOND)));
    let (left, _) = pair.connect();
    pair.run_for(SECOND / 2);
    let before = pair.left.endpoint.stats().datagrams_sent;
    for _ in 0..20 {
        pair.left
            .endpoint
            .session(left)
            .expect("open")
            .send_datagram(Bytes::from_static(b"x"))
            .expect("room");
        pair.run_for(SECOND / 2);
    }
    assert_eq!(pair.left.endpoint.stats().datagrams_sent - before, 20);
}

#[test]
fn a_dial_may_be_closed_before_anything_came_back() {
    let mut pair = Pair::new(small(11));
    let seen = watch(&mut pair, |_| false);
    let left = pair.dial().expect("a free session");
    let now = pair.now();
    pair.left.endpoint.session(left).expect("dialling").close(now, 3);
    assert!(pair.left.endpoint.is_drained(), "nobody can be told");
    pair.run_for(30 * SECOND);
    assert_eq!(events(&pair.left, left), [Event::Closed(CloseReason::Local)]);
    assert!(seen.borrow().is_empty(), "INIT had not left");
    assert!(pair.left.endpoint.session(left).is_none());

    let left = pair.dial().expect("a free session");
    pair.run_for(ONE_WAY);
    let now = pair.now();
    pair.left.endpoint.session(left).expect("dialling").close(now, 3);
    pair.run_for(30 * SECOND);
    assert!(seen.borrow().iter().all(|sent| sent.kind() != Some(HandshakeKind::Finish)));
    assert!(pair.right.host.events.is_empty());
    assert_eq!((pair.left.endpoint.sessions(), pair.left.endpoint.poll_timeout()), (0, None));
}

/// `PROTO §4.18`: CLOSE travels with FINISH, so that the responder hears of both.
#[test]
fn a_session_may_be_closed_as_soon_as_it_is_connected() {
    let mut pair = Pair::new(small(12));
    let left = pair.dial().expect("a free session");
    assert!(pair.run_until(|pair| pair.left.connected() == 1, SECOND));
    let now = pair.now();
    pair.left.endpoint.session(left).expect("open").close(now, 4);
    pair.run_for(10 * SECOND);
    assert_eq!(events(&pair.left, left), [Event::Connected, Event::Closed(CloseReason::Local)]);
    let right = pair.right.host.events[0].0;
    assert_eq!(events(&pair.right, right).last(), Some(&Event::Closed(CloseReason::Peer(4))));
    assert_eq!((pair.left.endpoint.sessions(), pair.right.endpoint.sessions()), (0, 0));
}

#[test]
fn a_session_that_is_closed_while_finish_is_lost_leaves_nothing_behind() {
    let mut pair = Pair::new(small(13).with_link(LinkConfig::perfect().with_latency(ONE_WAY)));
    watch(&mut pair, |sent| sent.kind() == Some(HandshakeKind::Finish));
    let left = pair.dial().expect("a free session");
    assert!(pair.run_until(|pair| pair.left.connected() == 1, SECOND));
    let now = pair.now();
    pair.left.endpoint.session(left).expect("open").close(now, 4);
    pair.run_for(60 * SECOND);
    assert_eq!(events(&pair.left, left), [Event::Connected, Event::Closed(CloseReason::Local)]);
    assert!(pair.right.host.events.is_empty());
    assert_eq!((pair.left.endpoint.sessions(), pair.right.endpoint.sessions()), (0, 0));
    assert_eq!((pair.left.endpoint.poll_timeout(), pair.right.endpoint.poll_timeout()), (None, None));
    assert_ne!(LEFT, RIGHT);
}

#[test]
fn a_handle_never_names_a_later_session() {
    let mut pair = pair_with(14, |config| config.limits.sessions = 1);
    let mut handles = Vec::new();
    for _ in 0..5 {
        let (left, right) = pair.connect();
        assert!(!handles.contains(&left));
        handles.push(left);
        let now = pair.now();
        pair.right.endpoint.session(right).expect("open").close(now, 0);
        pair.run_for(10 * SECOND);
        assert!(handles.iter().all(|handle| pair.left.endpoint.session(*handle).is_none()));
    }
}
