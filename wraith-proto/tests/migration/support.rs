//! Pairs whose datagrams are kept, and can be read, repeated and redirected.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use wraith_proto::wire::{Frame, Frames, HandshakeKind, split_body};
use wraith_proto::{Config, Dir, Instant, SessionHandle, Stats};
use wraith_sim::{LinkConfig, Node, Pair, PairConfig, Side, Transparent, Verdict};

use crate::bulk::Bulk;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// One way over the links.
pub(crate) const ONE_WAY: Duration = Duration::from_millis(10);
/// Bytes of a packet with a challenge, an answer to one, or with PING and up to eight bytes more.
pub(crate) const SMALL: usize = 40;

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn addr(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// The left node behind its NAT's next port.
pub(crate) fn next_port() -> SocketAddr {
    addr("192.0.2.1:50005")
}

/// The left node in another network.
pub(crate) fn elsewhere() -> SocketAddr {
    addr("203.0.113.9:4433")
}

pub(crate) fn attacker() -> SocketAddr {
    addr("203.0.113.66:666")
}

/// A datagram that was sent: by whom (0 left, 1 right), when, where to, and its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) sender: u32,
    pub(crate) at: Instant,
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
}

impl Sent {
    /// Whether it is a packet with a frame that `fits`.
    pub(crate) fn holds(&self, mut fits: impl FnMut(&Frame<'_>) -> bool) -> bool {
        if HandshakeKind::of(&self.bytes).is_some() {
            return false;
        }
        let mut body = self.bytes[13..self.bytes.len() - 16].to_vec();
        let (_, frames) = split_body(&mut body).expect("a body");
        Frames::new(frames).flatten().any(|frame| fits(&frame))
    }

    pub(crate) fn is_challenge(&self) -> bool {
        self.holds(|frame| matches!(frame, Frame::PathChallenge { .. }))
    }

    pub(crate) fn is_response(&self) -> bool {
        self.holds(|frame| matches!(frame, Frame::PathResponse { .. }))
    }

    pub(crate) fn has_data(&self) -> bool {
        self.holds(|frame| matches!(frame, Frame::Stream { .. }))
    }
}

/// A connected pair and everything that its ends have sent since.
pub(crate) struct Mobile {
    pub(crate) pair: Pair<Bulk, Bulk>,
    pub(crate) left: SessionHandle,
    pub(crate) right: SessionHandle,
    pub(crate) sent: Rc<RefCell<Vec<Sent>>>,
    taken: usize,
}

/// 50 Mbit/s, 10 ms each way.
pub(crate) fn line() -> LinkConfig {
    LinkConfig::perfect().with_latency(ONE_WAY).with_rate(Some(50_000_000)).with_queue_bytes(250_000)
}

impl Mobile {
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(seed, line(), |_| {})
    }

    pub(crate) fn with(seed: u64, link: LinkConfig, change: impl Fn(&mut Config)) -> Self {
        let config = PairConfig::new(seed).with_link(link).with_both(|config| {
            config.crypto = Transparent::CHECKED;
            change(config);
        });
        let mut pair = Pair::with_hosts(config, Bulk::default(), Bulk::default());
        let (left, right) = pair.connect();
        pair.run_for(SECOND);
        let mut mobile = Self { pair, left, right, sent: Rc::default(), taken: 0 };
        mobile.drop_if(|_| false);
        mobile
    }

    /// Keeps every datagram, and loses those that `drops` says.
    pub(crate) fn drop_if(&mut self, mut drops: impl FnMut(&Sent) -> bool + 'static) {
        let keep = Rc::clone(&self.sent);
        self.pair.intercept(move |passing| {
            let (sender, at, to) = (passing.sender, passing.at, passing.to);
            let sent = Sent { sender, at, to, bytes: passing.bytes.clone() };
            let dropped = drops(&sent);
            keep.borrow_mut().push(sent);
            if dropped { Verdict::Drop } else { Verdict::Pass }
        });
    }

    /// What was sent since the last call.
    pub(crate) fn take_sent(&mut self) -> Vec<Sent> {
        let sent = self.sent.borrow();
        let news = sent[self.taken..].to_vec();
        self.taken = sent.len();
        news
    }

    pub(crate) fn node(&mut self, side: Side) -> (&mut Node<Bulk>, SessionHandle) {
        match side {
            Side::Left => (&mut self.pair.left, self.left),
            Side::Right => (&mut self.pair.right, self.right),
        }
    }

    pub(crate) fn session(&mut self, side: Side) -> wraith_proto::Session<'_> {
        let (node, session) = self.node(side);
        node.endpoint.session(session).expect("the session lives")
    }

    pub(crate) fn stats(&self, side: Side) -> &Stats {
        match side {
            Side::Left => self.pair.left.endpoint.stats(),
            Side::Right => self.pair.right.endpoint.stats(),
        }
    }

    /// Checks of one end: begun, validated, given up.
    pub(crate) fn checks(&self, side: Side) -> [u64; 3] {
        let stats = self.stats(side);
        [stats.path_checks_begun, stats.paths_validated, stats.path_checks_given_up]
    }

    pub(crate) fn remote(&mut self, side: Side) -> SocketAddr {
        self.session(side).remote()
    }

    pub(crate) fn received(&self, side: Side) -> u64 {
        match side {
            Side::Left => self.pair.left.host.received,
            Side::Right => self.pair.right.host.received,
        }
    }

    /// Offers `len` bytes for the other end.
    pub(crate) fn send(&mut self, side: Side, len: u64) {
        let mut session = self.session(side);
        let stream = session.open(Dir::Uni).expect("the peer allows it");
        session.attach(stream, len).expect("the stream is new");
    }

    /// Runs until `bytes` arrived at `side`, at most `limit`; returns how long it took.
    pub(crate) fn run_until_received(&mut self, side: Side, bytes: u64, limit: Duration) -> Duration {
        let start = self.pair.now();
        let received = move |pair: &Pair<Bulk, Bulk>| match side {
            Side::Left => pair.left.host.received,
            Side::Right => pair.right.host.received,
        };
        let done = self.pair.run_until(|pair| received(pair) >= bytes, limit);
        assert!(done, "{} of {bytes} bytes after {limit:?}", self.received(side));
        self.pair.now().saturating_since(start)
    }

    /// Runs until every stream of `side` was delivered.
    pub(crate) fn finish(&mut self, side: Side, streams: usize, limit: Duration) {
        let delivered = move |pair: &Pair<Bulk, Bulk>| match side {
            Side::Left => pair.left.host.delivered(),
            Side::Right => pair.right.host.delivered(),
        };
        assert!(self.pair.run_until(|pair| delivered(pair) >= streams, limit), "not done after {limit:?}");
    }

    /// Runs for `time` in steps of a millisecond, and lets `meddle` see what was sent after each.
    pub(crate) fn run_with(&mut self, time: Duration, mut meddle: impl FnMut(&mut Self, &Sent)) {
        for _ in 0..time.as_millis() {
            self.pair.run_for(millis(1));
            for sent in self.take_sent() {
                meddle(self, &sent);
            }
        }
    }
}
