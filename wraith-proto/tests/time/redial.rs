//! Peers that fell silent are dialled beside their session.

use std::time::Duration;

use bytes::Bytes;
use wraith_proto::wire::{HandshakeKind, is_handshake};
use wraith_proto::{
    CloseReason, Config, Endpoint, Event, Identity, Instant, Payload, Policy, SessionHandle, Source, StreamId,
};
use wraith_sim::{Host, LinkConfig, Node, Pair, PairConfig, Recorder, Side};

use crate::common::{SECOND, Seen, Sent, assert_carries, events, full, millis, small, watch};

const MINUTE: Duration = Duration::from_mins(1);

/// The greatest pause between two dials, and what a handshake takes.
const ROUND: Duration = Duration::from_secs(70);

fn config(seed: u64) -> PairConfig {
    small(seed).with_both(|config| config.transport = config.transport.with_redial(true))
}

/// A pair that is connected and at rest.
fn pair(seed: u64) -> (Pair, SessionHandle, SessionHandle) {
    rested(config(seed))
}

fn rested(config: PairConfig) -> (Pair, SessionHandle, SessionHandle) {
    let mut pair = Pair::new(config);
    let (left, right) = pair.connect();
    pair.run_for(11 * SECOND);
    (pair, left, right)
}

/// The machine of the right end starts anew with the same identity, and `change`.
fn restart(pair: &mut Pair, seed: u64, change: impl Fn(&mut Config)) {
    let mut config = config(seed).right;
    change(&mut config);
    pair.right.endpoint = Endpoint::new(config, [seed as u8 + 100; 32], pair.now()).expect("it fits");
}

fn send(node: &mut Node<Recorder>, session: SessionHandle) {
    let data = Bytes::from_static(b"are you there?");
    node.endpoint.session(session).expect("open").send_datagram(data).expect("room");
}

fn redials(pair: &Pair) -> [u64; 2] {
    [pair.left.endpoint.stats().redials, pair.right.endpoint.stats().redials]
}

fn sessions(pair: &Pair) -> [usize; 2] {
    [pair.left.endpoint.sessions(), pair.right.endpoint.sessions()]
}

fn closed(reason: CloseReason) -> Event {
    Event::Closed(reason)
}

fn end_of(node: &Node<Recorder>, session: SessionHandle) -> Option<Event> {
    events(node, session).into_iter().find(|event| matches!(event, Event::Closed(_)))
}

/// INITs by one end.
fn inits(seen: &Seen, sender: u32) -> usize {
    let init = Some(HandshakeKind::Init);
    seen.borrow().iter().filter(|sent| sent.sender == sender && sent.kind() == init).count()
}

/// `PROTO §9.20`, `PROTO §9.21`: within seconds of the first data after the peer forgot everything.
#[test]
fn a_peer_that_started_anew_is_found_within_seconds_of_the_first_data() {
    let (mut pair, old, _) = pair(1);
    restart(&mut pair, 1, |_| {});
    pair.run_for(5 * SECOND);
    assert_eq!(redials(&pair), [0, 0], "nothing to send");
    send(&mut pair.left, old);
    let start = pair.now();
    assert!(pair.run_until(|pair| pair.left.connected() == 2, MINUTE));
    let took = pair.now().saturating_since(start);
    assert!(took > SECOND && took < 3 * SECOND, "{took:?}");
    let new = pair.left.last_connected().expect("it connected");
    assert_eq!(end_of(&pair.left, old), Some(closed(CloseReason::Replaced)));
    let right = pair.right.last_connected().expect("it connected");
    pair.run_for(SECOND);
    assert_carries(&mut pair, new, right);
    assert_eq!((sessions(&pair), redials(&pair)), ([1, 1], [1, 0]));
}

/// Asks a session that was replaced for its successor, as soon as it hears of the end.
#[derive(Default)]
struct Follower {
    successors: Vec<Option<SessionHandle>>,
    connected: Vec<SessionHandle>,
}

impl Source for Follower {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl Host for Follower {
    fn on_payload(&mut self, _: Instant, _: Payload<'_>) {}

    fn on_event(&mut self, _: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        match event {
            Event::Closed(CloseReason::Replaced) => {
                let session = endpoint.session(session).expect("until the next poll");
                self.successors.push(session.successor());
            }
            Event::Connected => self.connected.push(session),
            _ => {}
        }
    }
}

/// `PROTO §9.21`
#[test]
fn the_session_that_ends_names_the_one_that_takes_its_place() {
    let mut pair = Pair::with_hosts(config(2), Follower::default(), Recorder::new());
    let (old, _) = pair.connect();
    pair.run_for(11 * SECOND);
    let fresh = Endpoint::new(config(2).right, [9; 32], pair.now()).expect("it fits");
    pair.right.endpoint = fresh;
    assert_eq!(pair.left.endpoint.session(old).expect("open").successor(), None);
    pair.left.endpoint.session(old).expect("open").ping().expect("open");
    pair.run_for(5 * SECOND);
    let Follower { successors, connected } = &pair.left.host;
    assert_eq!((successors.len(), connected.len()), (1, 2));
    assert_eq!(successors[0], Some(connected[1]));
}

/// `PROTO §9.20`: either role.
#[test]
fn the_end_that_answered_once_dials_where_it_heard_the_peer_last() {
    let (mut pair, _, old) = pair(3);
    let mut fresh = config(3).left;
    fresh.transport = fresh.transport.with_redial(false);
    pair.left.endpoint = Endpoint::new(fresh, [8; 32], pair.now()).expect("it fits");
    send(&mut pair.right, old);
    pair.run_for(5 * SECOND);
    assert_eq!(end_of(&pair.right, old), Some(closed(CloseReason::Replaced)));
    let (left, right) = (pair.left.last_connected().unwrap(), pair.right.last_connected().unwrap());
    assert_carries(&mut pair, left, right);
}

#[test]
fn without_the_option_nobody_dials_and_the_session_idles_out() {
    let mut config = small(4);
    config.left.transport = config.left.transport.with_idle_timeout(20 * SECOND);
    let (mut pair, old, _) = rested(config);
    restart(&mut pair, 4, |_| {});
    send(&mut pair.left, old);
    pair.run_for(MINUTE);
    assert_eq!((redials(&pair), pair.left.connected()), ([0, 0], 1));
    assert_eq!(end_of(&pair.left, old), Some(closed(CloseReason::IdleTimeout)));
}

/// `PROTO §9.22`: the network was gone, and only the old session comes through: it goes on, and no other is left.
#[test]
fn a_session_that_comes_back_to_life_ends_the_dial() {
    for (outage, seed) in [(3, 5), (7, 6), (20, 7)] {
        let (mut pair, old, right) = rested(config(seed).with_both(|config| {
            config.transport = config.transport.with_idle_timeout(2 * MINUTE);
        }));
        let _lost = watch(&mut pair, |_| true);
        send(&mut pair.left, old);
        pair.run_for(outage * SECOND);
        assert!(redials(&pair)[0] >= 1, "{outage} s");
        let _lost = watch(&mut pair, |sent| is_handshake(&sent.bytes));
        pair.run_for(4 * SECOND);
        assert_eq!(sessions(&pair), [1, 1], "{outage} s");
        assert_eq!(
            (events(&pair.left, old), events(&pair.right, right)),
            (vec![Event::Connected], vec![Event::Connected])
        );
        pair.stop_intercepting();
        assert_carries(&mut pair, old, right);
        assert_eq!(redials(&pair)[0], 1 + u64::from(outage > 16), "{outage} s");
    }
}

/// `PROTO §9.22`: pauses between dials are those of one silence.
#[test]
fn a_peer_that_was_heard_again_is_dialled_as_soon_as_the_first_time() {
    let (mut pair, old, right) = rested(config(20).with_both(|config| {
        config.transport = config.transport.with_idle_timeout(2 * MINUTE);
    }));
    for (outage, dials) in [(28, 2), (4, 3)] {
        let _lost = watch(&mut pair, |_| true);
        send(&mut pair.left, old);
        pair.run_for(outage * SECOND);
        assert_eq!(redials(&pair)[0], dials);
        let _lost = watch(&mut pair, |sent| is_handshake(&sent.bytes));
        send(&mut pair.right, right);
        pair.run_for(3 * SECOND);
        assert_eq!(sessions(&pair), [1, 1]);
    }
}

/// `PROTO §9.22`: the answer to the dial is on its way when the old session answers.
#[test]
fn a_dial_that_is_half_done_when_the_session_lives_again_leaves_nothing_behind() {
    for drops in [HandshakeKind::Response, HandshakeKind::Finish] {
        let (mut pair, old, right) = pair(8);
        let _lost = watch(&mut pair, move |sent| !is_handshake(&sent.bytes) || sent.kind() == Some(drops));
        send(&mut pair.left, old);
        pair.run_for(4 * SECOND);
        assert_eq!(redials(&pair), [1, 0]);
        let _lost = watch(&mut pair, |sent| is_handshake(&sent.bytes));
        pair.run_for(20 * SECOND);
        assert_eq!(sessions(&pair), [1, 1], "{drops:?}");
        assert_eq!(events(&pair.left, old), [Event::Connected], "{drops:?}");
        pair.stop_intercepting();
        assert_carries(&mut pair, old, right);
    }
}

/// `PROTO §9.22`: something on the way forgets the flow of the old session; both ends have data.
#[test]
fn crossing_dials_of_both_ends_leave_one_session() {
    for seed in 0..if full() { 400 } else { 40 } {
        let (mut pair, left, right) = pair(seed);
        let seen = watch(&mut pair, |_| false);
        assert_carries(&mut pair, left, right);
        let id = |sent: &Sent| sent.bytes[1..9].to_vec();
        let old: Vec<_> = seen.borrow().iter().map(id).collect();
        let _lost = watch(&mut pair, move |sent| !is_handshake(&sent.bytes) && old.contains(&id(sent)));
        send(&mut pair.left, left);
        pair.run_for(millis(seed * 7 % 60));
        send(&mut pair.right, right);
        pair.run_for(30 * SECOND);
        assert_eq!(sessions(&pair), [1, 1], "seed {seed}: {:?}", pair.left.host.events);
        let ends = [end_of(&pair.left, left), end_of(&pair.right, right)];
        assert_eq!(ends, [Some(closed(CloseReason::Replaced)); 2], "seed {seed}");
        let (left, right) = (living(&mut pair.left), living(&mut pair.right));
        pair.left.host.datagrams.clear();
        pair.right.host.datagrams.clear();
        assert_carries(&mut pair, left, right);
    }
}

/// The session that is left.
fn living(node: &mut Node<Recorder>) -> SessionHandle {
    let connected: Vec<_> = node.host.events.iter().filter(|(_, event)| *event == Event::Connected).collect();
    let living: Vec<_> = connected
        .iter()
        .map(|(session, _)| *session)
        .filter(|session| node.endpoint.session(*session).is_some())
        .collect();
    assert_eq!(living.len(), 1, "{:?}", node.host.events);
    living[0]
}

/// `PROTO §9.21`: a peer that lives, and only is not heard, does not keep the former session until its idle time.
#[test]
fn the_peer_hears_that_its_session_was_replaced() {
    let (mut pair, old, right) = pair(18);
    let seen = watch(&mut pair, |_| false);
    assert_carries(&mut pair, old, right);
    let id = |sent: &Sent| sent.bytes[1..9].to_vec();
    let back: Vec<_> = seen.borrow().iter().filter(|sent| sent.sender == 1).map(id).collect();
    let _lost = watch(&mut pair, move |sent| !is_handshake(&sent.bytes) && back.contains(&id(sent)));
    send(&mut pair.left, old);
    pair.run_for(4 * SECOND);
    assert_eq!(end_of(&pair.left, old), Some(closed(CloseReason::Replaced)));
    assert_eq!(end_of(&pair.right, right), Some(closed(CloseReason::Replaced)));
    assert_eq!((pair.right.connected(), redials(&pair)), (2, [1, 0]));
}

/// `PROTO §9.22`: hours of silence, one dial at a time, ever more seldom, and nothing that grows.
#[test]
fn a_peer_that_stays_away_is_dialled_ever_more_seldom() {
    let (mut pair, old, _) = rested(config(9).with_both(|config| {
        config.transport = config.transport.with_idle_timeout(Duration::ZERO);
    }));
    let seen = watch(&mut pair, |_| true);
    send(&mut pair.left, old);
    let mut most = 0;
    let mut dials = Vec::new();
    for _ in 0..3 * 60 {
        pair.run_for(MINUTE);
        most = most.max(pair.left.endpoint.sessions());
        dials.push(redials(&pair)[0]);
    }
    assert_eq!(most, 2);
    assert!((3..=5).contains(&dials[0]), "{dials:?}");
    let last_hour = dials[179] - dials[119];
    let expected = 3600 / ROUND.as_secs();
    assert!((expected - 2..=expected).contains(&last_hour), "{last_hour}");
    assert!(inits(&seen, 0) as u64 <= 12 * dials[179]);
    assert_eq!(events(&pair.left, old), [Event::Connected], "without an idle time it waits");
    pair.stop_intercepting();
    pair.run_for(2 * SECOND);
    assert_eq!(sessions(&pair), [1, 1], "it lives, or its successor does");
}

/// `PROTO §9.22`: while many peers are silent, most of the room for handshakes is left to others.
#[test]
fn dials_of_silent_peers_take_a_quarter_of_the_room_for_handshakes() {
    let mut config = config(10);
    config.left.limits.sessions = 32;
    config.right.limits.sessions = 32;
    let mut pair = Pair::new(config);
    let all: Vec<_> = (0..12).map(|_| pair.connect().0).collect();
    pair.run_for(SECOND);
    let _lost = watch(&mut pair, |_| true);
    for &session in &all {
        send(&mut pair.left, session);
    }
    pair.run_for(8 * SECOND);
    assert_eq!(redials(&pair), [4, 0], "of 16 slots");
    assert_eq!(sessions(&pair)[0], 16);
    pair.stop_intercepting();
    pair.run_for(20 * SECOND);
    assert_eq!(sessions(&pair)[0], 12);
}

/// `PROTO §9.23`: a proven refusal ends the session with its reason, whether it comes before the session or in it.
#[test]
fn a_peer_that_refuses_ends_the_session_with_a_clear_reason() {
    type Change = fn(&mut Config);
    let changes: [Change; 2] = [
        |config| config.policy = Policy::Set([].into()),
        |config| config.protocols = vec![(*b"another")[..].into()],
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let (mut pair, old, _) = pair(11);
        restart(&mut pair, 11, change);
        send(&mut pair.left, old);
        pair.run_for(5 * SECOND);
        assert_eq!(events(&pair.left, old), [Event::Connected, closed(CloseReason::Refused)], "{number}");
        assert_eq!((sessions(&pair)[0], redials(&pair)[0], pair.left.connected()), (0, 1, 1), "{number}");
    }
}

/// `PROTO §9.23`: somebody else at that address proves nothing.
#[test]
fn an_impostor_at_the_peers_address_ends_nothing() {
    let (mut pair, old, _) = pair(12);
    restart(&mut pair, 12, |config| config.identity = Identity::from_seed([77; 32]));
    send(&mut pair.left, old);
    pair.run_for(5 * SECOND);
    assert_eq!(events(&pair.left, old), [Event::Connected]);
    assert_eq!(redials(&pair)[0], 1);
    restart(&mut pair, 12, |_| {});
    pair.run_for(10 * SECOND);
    assert_eq!(end_of(&pair.left, old), Some(closed(CloseReason::Replaced)));
}

/// `PROTO §9.21`: a peer whose application is asked first has answered when that has admitted this end.
#[test]
fn a_peer_that_asks_its_application_takes_over_when_that_admits() {
    let (mut pair, old, _) = pair(13);
    restart(&mut pair, 13, |config| config.policy = Policy::Ask);
    pair.right.host.ask = true;
    send(&mut pair.left, old);
    pair.run_for(4 * SECOND);
    assert_eq!(events(&pair.left, old), [Event::Connected]);
    let (waiting, _) =
        *pair.right.host.events.iter().find(|(_, event)| *event == Event::Authorize).expect("asked");
    let now = pair.now();
    pair.right.endpoint.session(waiting).expect("it waits").authorize(now).expect("it waits");
    pair.run_for(SECOND);
    assert_eq!(end_of(&pair.left, old), Some(closed(CloseReason::Replaced)));
    assert_eq!(pair.left.connected(), 2);
}

/// `PROTO §9.20`: only silence makes an end dial, whatever arrives that proves nothing.
#[test]
fn nothing_that_is_not_authentic_makes_an_end_dial_or_keeps_it_from_that() {
    let (mut pair, old, right) = pair(14);
    let forged = |pair: &mut Pair| {
        for byte in [0x40, 0x81, 0x82, 0x83, 0x84, 0x85] {
            pair.inject(Side::Left, wraith_sim::RIGHT, &[byte; 1200]);
        }
    };
    for _ in 0..100 {
        forged(&mut pair);
        send(&mut pair.left, old);
        pair.run_for(millis(100));
    }
    assert_eq!((redials(&pair), events(&pair.right, right)), ([0, 0], vec![Event::Connected]));
    restart(&mut pair, 14, |_| {});
    send(&mut pair.left, old);
    for _ in 0..50 {
        forged(&mut pair);
        pair.run_for(millis(100));
    }
    assert_eq!(end_of(&pair.left, old), Some(closed(CloseReason::Replaced)));
}

/// `PROTO §9.20`: a way that loses all in one direction is no silence, as long as the peer speaks.
#[test]
fn a_peer_that_is_heard_is_not_dialled_whatever_gets_lost() {
    let (mut pair, left, right) = pair(19);
    let _lost = watch(&mut pair, |sent| sent.sender == 0);
    send(&mut pair.left, left);
    for _ in 0..40 {
        send(&mut pair.right, right);
        pair.run_for(millis(500));
    }
    assert_eq!(redials(&pair)[0], 0);
}

/// `PROTO §9.20`: bursts of losses are shorter than what makes an end dial.
#[test]
fn a_path_that_loses_a_third_for_minutes_makes_nobody_leave_its_session() {
    for seed in 0..if full() { 100 } else { 10 } {
        let link = LinkConfig::perfect().with_latency(millis(10)).with_loss(300_000);
        let mut pair = Pair::new(config(seed).with_link(link));
        let (left, right) = pair.connect();
        for _ in 0..600 {
            send(&mut pair.left, left);
            pair.run_for(millis(200));
        }
        assert_eq!(
            (events(&pair.left, left), events(&pair.right, right)),
            (vec![Event::Connected], vec![Event::Connected])
        );
    }
}

/// `PROTO §9.20`: a suspend that outlasts the idle time.
#[test]
fn who_wakes_with_something_to_send_dials_at_once_and_who_has_nothing_hears_of_the_end() {
    for (says, keeps_alive) in [(true, false), (false, true), (false, false)] {
        let (mut pair, old, right) = rested(config(15).with_both(|config| {
            config.transport = config.transport.with_keep_alive(keeps_alive.then_some(5 * SECOND));
        }));
        pair.suspend(Side::Left);
        pair.run_for(10 * MINUTE);
        assert_eq!(end_of(&pair.right, right), Some(closed(CloseReason::IdleTimeout)));
        if says {
            send(&mut pair.left, old);
        }
        pair.wake(Side::Left);
        // Of a peer that kept its session alive for a while, old packets lie in the socket.
        pair.run_for(if keeps_alive { 10 * SECOND } else { SECOND });
        let dials = says || keeps_alive;
        let end = if dials { CloseReason::Replaced } else { CloseReason::IdleTimeout };
        assert_eq!(end_of(&pair.left, old), Some(closed(end)), "{says} {keeps_alive}");
        assert_eq!((redials(&pair)[0], pair.left.connected()), (u64::from(dials), 1 + u64::from(dials)));
    }
}

/// `PROTO §9.23`: the idle time is over, and the dial finds nobody.
#[test]
fn who_wakes_and_finds_nobody_hears_of_the_silence_after_one_dial() {
    let (mut pair, old, _) = pair(16);
    pair.suspend(Side::Left);
    pair.run_for(10 * MINUTE);
    let _lost = watch(&mut pair, |_| true);
    send(&mut pair.left, old);
    pair.wake(Side::Left);
    pair.run_for(9 * SECOND);
    assert_eq!(events(&pair.left, old), [Event::Connected]);
    pair.run_for(2 * SECOND);
    assert_eq!(events(&pair.left, old), [Event::Connected, closed(CloseReason::IdleTimeout)]);
    assert_eq!((sessions(&pair)[0], redials(&pair)[0]), (0, 1));
}

/// An application that ends its session ends the dial, too.
#[test]
fn a_session_closed_while_its_peer_is_dialled_leaves_nothing() {
    let (mut pair, old, _) = pair(17);
    let seen = watch(&mut pair, |_| true);
    send(&mut pair.left, old);
    pair.run_for(3 * SECOND);
    assert_eq!(sessions(&pair)[0], 2);
    let now = pair.now();
    pair.left.endpoint.session(old).expect("open").close(now, 3);
    pair.run_for(10 * SECOND);
    assert_eq!((sessions(&pair)[0], pair.left.endpoint.is_drained()), (0, true));
    let before = inits(&seen, 0);
    pair.run_for(MINUTE);
    assert_eq!(inits(&seen, 0), before);
    assert_eq!(events(&pair.left, old), [Event::Connected, closed(CloseReason::Local)]);
}
