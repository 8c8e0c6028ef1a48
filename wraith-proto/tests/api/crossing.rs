//! Both ends dial each other.

use wraith_proto::{CloseReason, Event, Identity, Peer, SessionHandle, Via};
use wraith_sim::{LEFT, LinkConfig, Node, Pair, PairConfig, Recorder};

use crate::common::{ONE_WAY, SECOND, assert_carries, events, full, millis, small, watch};

/// Dials from right to left, pinning the left end's identity.
pub(crate) fn dial_back(pair: &mut Pair) -> SessionHandle {
    let (now, peer) = (pair.now(), Peer { addr: LEFT, id: Some(pair.left.peer_id()) });
    pair.right.endpoint.connect(now, peer, Via::default()).expect("a free session")
}

/// The session that has to stay at each end, and checks that nothing else did.
pub(crate) fn assert_one_stays(pair: &mut Pair, dials: [SessionHandle; 2], what: &str) -> [SessionHandle; 2] {
    let left_wins = pair.left.peer_id() < pair.right.peer_id();
    [
        the_one_that_stays(&mut pair.left, dials[0], left_wins, what),
        the_one_that_stays(&mut pair.right, dials[1], !left_wins, what),
    ]
}

fn the_one_that_stays(
    node: &mut Node<Recorder>,
    dial: SessionHandle,
    wins: bool,
    what: &str,
) -> SessionHandle {
    assert_eq!(node.endpoint.sessions(), 1, "{what}: {:?}", node.host.events);
    let connected =
        |(of, event): &&(SessionHandle, Event)| *event == Event::Connected && (*of == dial) == wins;
    let session = node.host.events.iter().find(connected).map(|(session, _)| *session);
    let kept = session.unwrap_or_else(|| panic!("{what}: {:?}", node.host.events));
    assert!(node.endpoint.session(kept).is_some(), "{what}");
    assert_eq!(events(node, kept), [Event::Connected], "{what}");
    let others = node.host.events.iter().filter(|(of, _)| *of != kept);
    let ends: Vec<_> = others.map(|(_, event)| *event).collect();
    let superseded = Event::Closed(CloseReason::Superseded);
    let allowed = [&[][..], &[superseded][..], &[Event::Connected, superseded][..]];
    assert!(allowed.contains(&&ends[..]), "{what}: {ends:?}");
    kept
}

/// `PROTO §4.9`
#[test]
fn of_two_crossing_dials_the_one_of_the_smaller_id_stays() {
    for seed in 0..8 {
        let mut pair = Pair::new(small(seed));
        let dials = [pair.dial().expect("a free session"), dial_back(&mut pair)];
        pair.run_for(SECOND);
        let [left, right] = assert_one_stays(&mut pair, dials, &format!("seed {seed}"));
        assert_carries(&mut pair, left, right);
    }
}

/// `PROTO §4.9`: at every offset within the handshake, and after it.
#[test]
fn the_second_dial_may_come_at_any_time() {
    for offset in 0..=60 {
        for seed in [1, 2] {
            let mut pair = Pair::new(small(seed));
            let left = pair.dial().expect("a free session");
            pair.run_for(millis(offset));
            let right = dial_back(&mut pair);
            pair.run_for(SECOND);
            assert_one_stays(&mut pair, [left, right], &format!("seed {seed}, offset {offset} ms"));
        }
    }
}

/// `PROTO §4.9`: a session whose end was not heard does not keep the peer from coming back, whoever dials.
#[test]
fn a_dial_long_after_a_session_does_not_cross_it() {
    for seed in [1, 2] {
        let mut pair = Pair::new(small(seed));
        let (stale, left_behind) = pair.connect();
        pair.run_for(11 * SECOND);
        watch(&mut pair, |sent| sent.sender == 1);
        let now = pair.now();
        pair.right.endpoint.session(left_behind).expect("open").close(now, 0);
        pair.run_for(millis(1));
        pair.stop_intercepting();
        let right = dial_back(&mut pair);
        pair.run_for(SECOND);
        let left = pair.left.last_connected().expect("it connected");
        assert_ne!(left, stale);
        assert_eq!(events(&pair.left, stale), [Event::Connected], "seed {seed}");
        assert_carries(&mut pair, left, right);
    }
}

/// `PROTO §4.9`: sessions that one side began stand side by side.
#[test]
fn sessions_of_the_same_side_stand_side_by_side() {
    let mut pair = Pair::new(small(3));
    let first = pair.dial().expect("a free session");
    let second = pair.dial().expect("a free session");
    pair.run_for(SECOND);
    assert_eq!((pair.left.endpoint.sessions(), pair.right.endpoint.sessions()), (2, 2));
    assert!(pair.left.host.saw(first, Event::Connected) && pair.left.host.saw(second, Event::Connected));
    assert_eq!(pair.left.closed() + pair.right.closed(), 0);
}

/// `PROTO §4.9`: endpoints of one identity file are told apart by their instance.
#[test]
fn two_endpoints_of_one_identity_keep_both_sessions() {
    let identity = || Identity::from_seed([5; 32]);
    let mut pair = Pair::new(small(4).with_both(|config| config.identity = identity()));
    pair.dial().expect("a free session");
    dial_back(&mut pair);
    pair.run_for(SECOND);
    assert_eq!((pair.left.connected(), pair.right.connected()), (2, 2));
    assert_eq!((pair.left.endpoint.sessions(), pair.right.endpoint.sessions()), (2, 2));
}

/// `PROTO §4.9`: a session that is being closed does not hide later ones.
#[test]
fn dials_may_cross_again_right_after_a_session_was_closed() {
    for seed in 0..4 {
        let mut pair = Pair::new(small(seed));
        let (left, _) = pair.connect();
        pair.run_for(SECOND);
        let now = pair.now();
        pair.left.endpoint.session(left).expect("open").close(now, 0);
        pair.run_for(2 * ONE_WAY);
        pair.left.host.events.clear();
        pair.right.host.events.clear();
        let dials = [pair.dial().expect("a free session"), dial_back(&mut pair)];
        pair.run_for(10 * SECOND);
        assert_one_stays(&mut pair, dials, &format!("seed {seed}"));
    }
}

/// A link that loses 30 % of all datagrams, and doubles and reorders others.
pub(crate) fn lossy(seed: u64) -> PairConfig {
    let link = LinkConfig::perfect()
        .with_latency(ONE_WAY)
        .with_jitter(millis(3))
        .with_loss(300_000)
        .with_duplicate(50_000)
        .with_reorder(100_000, millis(400));
    small(seed).with_link(link).with_both(|config| {
        config.transport = config.transport.with_idle_timeout(120 * SECOND);
    })
}

/// `PROTO §4.9`: 200 seeds, or 1,000 on a full budget.
#[test]
fn crossing_dials_over_a_link_that_loses_a_third_leave_one_session() {
    for seed in 0..if full() { 1000 } else { 200 } {
        let mut pair = Pair::new(lossy(seed));
        let dials = [pair.dial().expect("a free session"), dial_back(&mut pair)];
        pair.run_for(60 * SECOND);
        assert_one_stays(&mut pair, dials, &format!("seed {seed}"));
    }
}
