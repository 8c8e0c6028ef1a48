//! Properties of a whole endpoint that only its inside shows.

use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use bytes::Bytes;

use super::*;
use crate::config::Limits;
use crate::config::{Peer, Policy, Transport};
use crate::crypto::{Identity, Suite};
use crate::error::CloseReason;
use crate::event::Payload;
use crate::meta::{Ecn, RxMeta, Via};
use crate::queue::{NoSource, OneShot};
use crate::stream::{Dir, StreamId};

#[test]
fn an_address_has_one_spelling_and_keeps_its_interface() {
    let canonical = |text: &str| canonical(text.parse().unwrap());
    assert_eq!(canonical("[::ffff:192.0.2.1]:5"), "192.0.2.1:5".parse().unwrap());
    assert_eq!(canonical("192.0.2.1:5"), "192.0.2.1:5".parse().unwrap());
    assert_eq!(canonical("[2001:db8::1]:5"), "[2001:db8::1]:5".parse().unwrap());
    assert_eq!(canonical("[fe80::1%3]:5"), "[fe80::1%3]:5".parse().unwrap());
    assert_ne!(canonical("[fe80::1%3]:5"), canonical("[fe80::1%4]:5"));
}

#[test]
fn answers_go_the_way_that_the_newest_authentic_packet_came() {
    let now = Instant::from_nanos(1_000_000_000);
    let [mut left, mut right] = [1, 2].map(|name| End::new(name, now, |config| config.limits.streams = 8));
    left.endpoint.connect(now, right.peer(true), Via(0)).unwrap();
    while right.sessions.is_empty() || left.sessions.is_empty() {
        exchange(now, &mut left, &mut right);
    }
    let via = |end: &mut End| end.endpoint.sessions[end.sessions[0].index].path.via;
    let packets: Vec<_> = (0..3)
        .map(|byte| {
            let mut session = left.endpoint.session(left.sessions[0]).unwrap();
            session.send_datagram(Bytes::from(vec![byte])).unwrap();
            left.turn(now);
            left.wire.pop().unwrap()
        })
        .collect();
    let (from, elsewhere) = (left.addr, SocketAddr::new(left.addr.ip(), 7));
    let mut forged = packets[2].clone();
    *forged.last_mut().unwrap() ^= 1;
    for (packet, from, token, expected) in [
        (&packets[0], from, 5, 5),
        (&forged, from, 6, 5),
        (&packets[0], from, 7, 5),
        (&packets[2], from, 8, 8),
        // It comes late: its way may be another's.
        (&packets[1], from, 9, 8),
    ] {
        let meta = RxMeta { from, to: Some(right.addr.ip()), via: Via(token), ecn: Ecn::NotEct };
        let _ = right.endpoint.handle(now, &meta, &mut packet.clone()).outcome();
        assert_eq!(via(&mut right), Via(expected), "token {token}");
    }
    let mut session = left.endpoint.session(left.sessions[0]).unwrap();
    session.send_datagram(Bytes::from_static(b"moved")).unwrap();
    left.turn(now);
    let meta = RxMeta { from: elsewhere, to: Some(right.addr.ip()), via: Via(10), ecn: Ecn::NotEct };
    let _ = right.endpoint.handle(now, &meta, &mut left.wire.pop().unwrap()).outcome();
    assert_eq!(via(&mut right), Via(8), "another address");
}

/// Both ends take their turn, and what they say arrives.
fn exchange(now: Instant, left: &mut End, right: &mut End) {
    left.turn(now);
    for mut datagram in core::mem::take(&mut left.wire) {
        right.take(now, left.addr, &mut datagram);
    }
    right.turn(now);
    for mut datagram in core::mem::take(&mut right.wire) {
        left.take(now, right.addr, &mut datagram);
    }
}

/// One end: what it received, and the sessions that came up.
struct End {
    endpoint: Endpoint,
    addr: SocketAddr,
    sessions: Vec<SessionHandle>,
    opened: Vec<(SessionHandle, StreamId)>,
    closed: Vec<(SessionHandle, CloseReason)>,
    bytes: u64,
    /// One in so many packets with payload is refused; 0 for none.
    refuse: u64,
    handled: u64,
    wire: Vec<Vec<u8>>,
}

impl End {
    fn new(name: u8, now: Instant, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(Identity::from_seed([name; 32]), b"soak");
        config.limits = Limits::embedded();
        change(&mut config);
        Self {
            endpoint: Endpoint::new(config, [name; 32], now).unwrap(),
            addr: SocketAddr::new(Ipv4Addr::new(192, 0, 2, name).into(), 1000),
            sessions: Vec::new(),
            opened: Vec::new(),
            closed: Vec::new(),
            bytes: 0,
            refuse: 0,
            handled: 0,
            wire: Vec::new(),
        }
    }

    fn peer(&self, pinned: bool) -> Peer {
        Peer { addr: self.addr, id: pinned.then(|| self.endpoint.config().identity.peer_id()) }
    }

    fn turn(&mut self, now: Instant) {
        while self.endpoint.handle_timeout(now, Budget(3)) == Progress::More {}
        while let Some((handle, event)) = self.endpoint.poll_event() {
            match event {
                Event::Authorize => self.endpoint.session(handle).unwrap().authorize(now).unwrap(),
                Event::Connected => self.sessions.push(handle),
                Event::Closed(reason) => {
                    self.sessions.retain(|&session| session != handle);
                    self.closed.push((handle, reason));
                }
                Event::StreamOpened(stream) => self.opened.push((handle, stream)),
                _ => {}
            }
        }
        loop {
            let mut buffer = [0; 1500];
            let mut queue = OneShot::new(&mut buffer);
            let _ = self.endpoint.poll_transmit(now, &mut queue, &mut NoSource, Budget(1));
            let Some((_, datagram)) = queue.take() else { break };
            self.wire.push(datagram.to_vec());
        }
    }

    fn take(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        self.handled += 1;
        let meta = RxMeta { from, to: Some(self.addr.ip()), via: Via(0), ecn: Ecn::NotEct };
        let mut received = self.endpoint.handle(now, &meta, datagram);
        if self.refuse > 0 && self.handled.is_multiple_of(self.refuse) {
            return;
        }
        while let Some(payload) = received.next() {
            if let Payload::Stream { data, .. } = payload {
                self.bytes += data.len() as u64;
            }
        }
        drop(received);
        if self.refuse > 0 {
            for (session, stream) in self.opened.clone() {
                if let Some(mut session) = self.endpoint.session(session) {
                    let _ = session.grant(stream, 0);
                }
            }
        }
    }

    /// What the pools still hold.
    fn leftovers(&mut self) -> Vec<(&'static str, u32)> {
        let it = &mut self.endpoint;
        let all = [
            ("sessions", it.sessions.len()),
            ("routes", it.routes.len()),
            ("peers", it.peers.len()),
            ("handshakes", it.handshakes.len()),
            ("ready", it.ready.len()),
            ("news", it.news.len()),
            ("streams", it.streams.len()),
            ("ranges", it.streams.ranges.used()),
            ("records", it.sent.len()),
            ("datagrams", it.datagrams.len()),
            ("starved", it.starved.len()),
            ("closes", it.closes_due),
            ("timers", u32::from(it.wheel.next().is_some())),
        ];
        all.into_iter().filter(|&(_, count)| count != 0).collect()
    }
}

struct Soak {
    now: Instant,
    left: End,
    right: End,
    random: u64,
    /// Of 256 datagrams so many are lost.
    loss: u64,
}

impl Soak {
    fn new(change: impl Fn(&mut Config)) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let (left, right) = (End::new(1, now, &change), End::new(2, now, &change));
        Self { now, left, right, random: 1, loss: 0 }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    /// Both ends act, what they sent arrives after 1 ms, or time moves on to the next deadline; `false` at rest.
    fn step(&mut self) -> bool {
        self.left.turn(self.now);
        self.right.turn(self.now);
        let mut sent = [core::mem::take(&mut self.left.wire), core::mem::take(&mut self.right.wire)];
        if sent.iter().all(Vec::is_empty) {
            let ends = [&self.left, &self.right];
            let Some(next) =
                ends.iter().filter_map(|end| end.endpoint.poll_timeout()).map(|due| due.at).min()
            else {
                return false;
            };
            self.now = next.max(self.now);
            return true;
        }
        self.now = self.now.saturating_add(Duration::from_millis(1));
        let loss = self.loss;
        for sent in &mut sent {
            sent.retain(|_| self.draw(256) >= loss);
        }
        let (from_left, from_right) = (self.left.addr, self.right.addr);
        sent[0].iter_mut().for_each(|bytes| self.right.take(self.now, from_left, bytes));
        sent[1].iter_mut().for_each(|bytes| self.left.take(self.now, from_right, bytes));
        true
    }

    fn run_until(&mut self, steps: u32, mut done: impl FnMut(&Self) -> bool) -> bool {
        (0..steps).any(|_| done(self) || !self.step()) && done(self)
    }

    /// One session from dial to end, in one of many ways.
    fn cycle(&mut self) {
        let (pinned, crossing) = (self.draw(2) == 0, self.draw(8) == 0);
        let peer = self.right.peer(pinned);
        self.left.endpoint.connect(self.now, peer, Via(0)).unwrap();
        if crossing {
            let _ = self.right.endpoint.connect(self.now, self.left.peer(true), Via(0));
        }
        if self.draw(16) == 0 {
            // Given up at once.
            let dialled = self.left.endpoint.sessions.generation(0);
            let handle = SessionHandle { index: 0, generation: dialled };
            if let Some(mut session) = self.left.endpoint.session(handle) {
                session.close(self.now, 9);
            }
        }
        let up = |it: &Self| !it.left.sessions.is_empty() && !it.right.sessions.is_empty();
        if self.run_until(400, up) {
            self.talk();
        }
        self.finish();
    }

    fn talk(&mut self) {
        let (streams, len) = (1 + self.draw(4), self.draw(6000) as usize);
        for _ in 0..streams {
            let dir = if self.draw(2) == 0 { Dir::Bi } else { Dir::Uni };
            let what = self.draw(8);
            let Some(mut session) = self.left.endpoint.session(self.left.sessions[0]) else { return };
            let Ok(stream) = session.open(dir) else { continue };
            session.write(stream, Bytes::from(vec![7; len])).unwrap();
            match what {
                0 => session.reset(stream, 3).unwrap(),
                1 => {}
                _ => session.finish(stream).unwrap(),
            }
            let _ = session.send_datagram(Bytes::from_static(b"datagram"));
        }
        for _ in 0..self.draw(120) {
            self.step();
            if self.draw(40) == 0
                && let Some(&(session, stream)) = self.right.opened.last()
                && let Some(mut session) = self.right.endpoint.session(session)
            {
                let _ = session.stop(stream, 1);
            }
            while let Some((session, stream)) = self.right.opened.pop() {
                if let Some(mut session) = self.right.endpoint.session(session) {
                    let _ = session.write(stream, Bytes::from_static(b"answer"));
                    let _ = session.finish(stream);
                }
            }
        }
    }

    /// Ends all sessions, by either end, both, or by silence.
    fn finish(&mut self) {
        let who = self.draw(8);
        let now = self.now;
        for (end, bit) in [(&mut self.left, 1), (&mut self.right, 2)] {
            for handle in core::mem::take(&mut end.sessions) {
                if who & bit != 0
                    && let Some(mut session) = end.endpoint.session(handle)
                {
                    session.close(now, 5);
                }
            }
            end.opened.clear();
        }
        assert!(self.run_until(100_000, |it| !it.busy()), "the ends do not come to rest");
        // Sessions that came up only after the decision.
        self.left.sessions.clear();
        self.right.sessions.clear();
    }

    fn busy(&self) -> bool {
        [&self.left, &self.right]
            .iter()
            .any(|end| end.endpoint.sessions() > 0 || end.endpoint.poll_timeout().is_some())
    }
}

/// Thousands of sessions come and go on the smallest pools, in good and bad ways: nothing is left of them.
#[test]
fn nothing_is_left_of_sessions_that_are_over() {
    let cycles =
        if std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full") { 20_000 } else { 1_000 };
    for policy in [Policy::All, Policy::Ask] {
        let mut soak = Soak::new(|config| {
            config.policy = policy.clone();
            config.transport = Transport::default().with_idle_timeout(Duration::from_secs(3));
        });
        for cycle in 0..cycles / 2 {
            soak.loss = [0, 0, 8, 40][cycle % 4];
            soak.right.refuse = [0, 0, 3, 0, 5][cycle % 5];
            soak.cycle();
            assert_eq!(
                (soak.left.leftovers(), soak.right.leftovers()),
                (Vec::new(), Vec::new()),
                "cycle {cycle}"
            );
        }
        assert!(soak.right.bytes > cycles as u64 * 500, "{} bytes", soak.right.bytes);
    }
}

/// A connected pair with one session at each end, protected by `suite`.
fn connected(suite: &'static [Suite]) -> Soak {
    let mut soak = Soak::new(|config| config.transport = Transport::default().with_suites(suite));
    soak.left.endpoint.connect(soak.now, soak.right.peer(true), Via(0)).unwrap();
    assert!(soak.run_until(400, |it| !it.left.sessions.is_empty() && !it.right.sessions.is_empty()));
    soak
}

fn ping(end: &mut End) {
    end.endpoint.session(end.sessions[0]).unwrap().ping().unwrap();
}

/// `PROTO §5.12`: no timer fires, nothing arrives, and still the last number is the last.
#[test]
fn at_the_last_packet_number_the_session_ends_as_exhausted() {
    assert_ends_at(&[Suite::XChaCha20Poly1305], (1 << 62) - 1);
    assert_ends_at(&[Suite::Aes256Gcm], 1 << 23);
}

fn assert_ends_at(suite: &'static [Suite], limit: u64) {
    let mut soak = connected(suite);
    let now = soak.now;
    let left = &mut soak.left;
    let index = left.sessions[0].index;
    left.endpoint.sessions[index].recovery.set_packet_number(limit - 65);
    ping(left);
    left.turn(now);
    assert_eq!(left.closed, []);
    ping(left);
    left.turn(now);
    left.turn(now);
    assert_eq!(left.closed.len(), 1);
    assert_eq!(left.closed[0].1, CloseReason::KeysExhausted);
}

/// `PROTO §5.12`
#[test]
fn a_session_ends_as_exhausted_at_exactly_the_last_packet_that_may_fail_to_open() {
    assert_ends_after(&[Suite::XChaCha20Poly1305], 1 << 36);
    assert_ends_after(&[Suite::Aes256Gcm], 1 << 52);
}

fn assert_ends_after(suite: &'static [Suite], failures: u64) {
    let mut soak = connected(suite);
    let (now, from) = (soak.now, soak.left.addr);
    ping(&mut soak.left);
    soak.left.turn(now);
    let mut forged = soak.left.wire.pop().expect("a packet");
    *forged.last_mut().unwrap() ^= 1;
    let right = &mut soak.right;
    let index = right.sessions[0].index;
    let keys = right.endpoint.sessions[index].keys.as_mut().unwrap();
    keys.failures = failures - 2;
    right.take(now, from, &mut forged.clone());
    right.turn(now);
    assert_eq!(right.closed, []);
    right.take(now, from, &mut forged.clone());
    right.turn(now);
    assert_eq!(right.closed.len(), 1);
    assert_eq!(right.closed[0].1, CloseReason::KeysExhausted);
    assert_eq!(right.endpoint.stats().drops(crate::error::DropReason::BadTag), 2);
}

/// `PROTO §5.14`: keys of a session that is over need no successors.
#[test]
fn a_closed_session_says_so_without_an_exchange() {
    let mut soak = connected(&[Suite::XChaCha20Poly1305]);
    let index = soak.left.sessions[0].index;
    assert!(soak.run_until(100, |it| it.left.endpoint.sessions[index].recovery.largest_acked().is_some()));
    let (left, now) = (&mut soak.left, soak.now);
    let before = left.endpoint.stats().dh_operations;
    left.endpoint.config.transport.rekey_packets = 1;
    left.endpoint.session(left.sessions[0]).unwrap().close(now, 7);
    left.turn(now);
    assert!(!left.wire.is_empty(), "CLOSE left");
    assert_eq!(left.endpoint.stats().dh_operations, before);
}
