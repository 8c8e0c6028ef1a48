//! What the tests share: small pairs, taps that keep, budgets.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use wraith_proto::wire::HandshakeKind;
use wraith_proto::{Config, Event, Instant, Limits, SessionHandle};
use wraith_sim::{Node, Pair, PairConfig, Recorder, Verdict};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// One way over the links of a default pair.
pub(crate) const ONE_WAY: Duration = Duration::from_millis(10);

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A datagram that was sent: by whom (0 left, 1 right), when, and its bytes.
pub(crate) struct Sent {
    pub(crate) sender: u32,
    pub(crate) at: Instant,
    pub(crate) bytes: Vec<u8>,
}

impl Sent {
    pub(crate) fn kind(&self) -> Option<HandshakeKind> {
        HandshakeKind::of(&self.bytes)
    }
}

/// What a tap has seen.
pub(crate) type Seen = Rc<RefCell<Vec<Sent>>>;

/// Endpoints that are made quickly.
pub(crate) const SMALL: Limits = Limits {
    sessions: 4,
    handshakes: 16,
    handshake_rate: 1000,
    streams: 16,
    sent_packets: 64,
    holes: 16,
    datagrams: 16,
    expanded_keys: 4,
};

/// A pair of small endpoints, 10 ms apart.
pub(crate) fn small(seed: u64) -> PairConfig {
    PairConfig::new(seed).with_both(|config| config.limits = SMALL)
}

/// A small pair whose endpoints were changed.
pub(crate) fn pair_with(seed: u64, change: impl Fn(&mut Config)) -> Pair {
    Pair::new(small(seed).with_both(change))
}

/// Keeps every datagram, and loses those that `drops` says.
pub(crate) fn watch(pair: &mut Pair, mut drops: impl FnMut(&Sent) -> bool + 'static) -> Seen {
    let seen = Seen::default();
    let keep = Rc::clone(&seen);
    pair.intercept(move |passing| {
        let sent = Sent { sender: passing.sender, at: passing.at, bytes: passing.bytes.clone() };
        let dropped = drops(&sent);
        keep.borrow_mut().push(sent);
        if dropped { Verdict::Drop } else { Verdict::Pass }
    });
    seen
}

/// The datagrams of one type, in the order of sending.
pub(crate) fn of_kind(seen: &Seen, kind: HandshakeKind) -> Vec<Vec<u8>> {
    let seen = seen.borrow();
    seen.iter().filter(|sent| sent.kind() == Some(kind)).map(|sent| sent.bytes.clone()).collect()
}

/// Whether each end has connected once.
pub(crate) fn both_connected(pair: &Pair) -> bool {
    pair.left.connected() == 1 && pair.right.connected() == 1
}

/// Asserts that both ends have one session that carries data both ways.
pub(crate) fn assert_carries(pair: &mut Pair, left: SessionHandle, right: SessionHandle) {
    let before = (pair.left.host.datagrams.len(), pair.right.host.datagrams.len());
    for _ in 0..20 {
        for (node, session) in [(&mut pair.left, left), (&mut pair.right, right)] {
            let mut session = node.endpoint.session(session).expect("the session is open");
            session.send_datagram(Bytes::from_static(b"are you there?")).expect("room for a datagram");
        }
        pair.run_for(millis(500));
    }
    assert!(pair.left.host.datagrams.len() > before.0, "nothing reached the left end");
    assert!(pair.right.host.datagrams.len() > before.1, "nothing reached the right end");
    assert!(pair.left.host.datagrams.iter().all(|(session, _)| *session == left));
    assert!(pair.right.host.datagrams.iter().all(|(session, _)| *session == right));
}

/// The events of a session, in order.
pub(crate) fn events(node: &Node<Recorder>, session: SessionHandle) -> Vec<Event> {
    node.host.events.iter().filter(|(of, _)| *of == session).map(|(_, event)| *event).collect()
}

/// Whether long checks run in full: `WRAITH_BUDGET=full`; anything else is short.
pub(crate) fn full() -> bool {
    std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full")
}
