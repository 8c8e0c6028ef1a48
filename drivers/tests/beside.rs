//! Datagrams of no session beside sessions, in the loop.

#[path = "beside/app.rs"]
mod app;

use std::time::Duration;

use app::{Beside, LEN, end, meta_to, write};
use wraith_drivers::{App, Driver, ManualClock, MemoryDriver, MemoryOptions, Runner, Turn};
use wraith_proto::{
    Config, DropReason, Endpoint, Event, Identity, Instant, Payload, SessionHandle, Source, StreamId,
    Transport, TxQueue,
};

const START: Instant = Instant::from_nanos(1_000_000_000);

fn options(clock: &ManualClock) -> MemoryOptions {
    MemoryOptions { clock: Some(clock.clone()), ..MemoryOptions::default() }
}

/// Steps both ends in turn until the sender has what it wants, moving time only when both wait.
fn run(
    clock: &ManualClock,
    left: &mut Runner<MemoryDriver, Beside>,
    right: &mut Runner<MemoryDriver, Beside>,
) {
    while !left.is_stopped() {
        let turns = [left.step().unwrap(), right.step().unwrap()];
        let next = turns.into_iter().flatten().min().expect("somebody waits for something");
        clock.set(next.max(clock.now().saturating_add(Duration::from_micros(10))));
        assert!(clock.now().saturating_since(START) < Duration::from_mins(1), "{left:?} {right:?}");
    }
}

/// Returns how often the queue of each end had no room for a question or an answer.
fn ask_beside_a_stream(tx_slots: usize, rx_slots: usize) -> [usize; 2] {
    let clock = ManualClock::new(START);
    let (left, right) = MemoryDriver::pair(&MemoryOptions { tx_slots, rx_slots, ..options(&clock) });
    let mut left = end(left, 1, Some(right.local_addr()), 500, Transport::default());
    let mut right = end(right, 2, None, 1, Transport::default());
    run(&clock, &mut left, &mut right);
    assert_eq!((left.app_mut().answered, right.app_mut().received), (500, LEN));
    for end in [&mut left, &mut right] {
        assert_eq!(end.endpoint_mut().stats().dropped(), 0);
    }
    [left.app_mut().refused, right.app_mut().refused]
}

#[test]
fn questions_of_no_session_are_answered_beside_a_stream() {
    assert_eq!(ask_beside_a_stream(1_000, 10_000), [0, 0]);
}

#[test]
fn what_a_full_queue_refuses_leaves_when_there_is_room() {
    let [asking, _] = ask_beside_a_stream(1, 1);
    assert!(asking > 100, "{asking}");
    let [asking, answering] = ask_beside_a_stream(1, 64);
    assert!(asking > 100 && answering > 100, "{asking} {answering}");
}

/// Has the methods that it must have and no other.
#[derive(Debug)]
struct Plain;

impl Source for Plain {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl App for Plain {
    fn on_turn(&mut self, _: Instant, _: &mut Endpoint) -> Turn {
        Turn::Continue
    }

    fn on_payload(&mut self, _: Payload<'_>) {}

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, _: SessionHandle, _: Event) {}
}

/// What is not taken is the endpoint's to drop and count; a packet of a session is offered to nobody.
#[test]
fn an_application_that_takes_none_leaves_them_to_the_endpoint_which_counts() {
    let (left, mut right) = MemoryDriver::pair(&MemoryOptions::default());
    let config = Config::new(Identity::from_seed([1; 32]), b"plain");
    let endpoint = Endpoint::new(config, [1; 32], left.now()).unwrap();
    let meta = meta_to(left.local_addr());
    let mut left = Runner::new(left, endpoint, Plain);
    for first in [0x40, 0x5f, 0x60, 0x61, 0x62, 0x6f, 0x70, 0x80] {
        assert!(write(right.tx(), &meta, &[first; 40]));
    }
    right.flush().unwrap();
    assert_eq!(left.step().unwrap(), None);
    let stats = left.endpoint_mut().stats();
    assert_eq!((stats.drops(DropReason::Sealed), stats.dropped(), stats.datagrams_received), (4, 8, 8));
}

/// Always has more to say, and may have something to wait for.
#[derive(Debug)]
struct Endless {
    inner: Beside,
    len: usize,
    left: usize,
    wake_at: Option<Instant>,
    stops: bool,
}

impl Endless {
    fn new(inner: Beside, left: usize) -> Self {
        Self { inner, len: 900, left, wake_at: None, stops: false }
    }
}

impl Source for Endless {
    fn fill(&mut self, session: SessionHandle, stream: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        self.inner.fill(session, stream, offset, buf)
    }
}

impl App for Endless {
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn {
        if self.stops { Turn::Stop } else { self.inner.on_turn(now, endpoint) }
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        self.inner.on_payload(payload);
    }

    fn on_event(&mut self, now: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        self.inner.on_event(now, endpoint, session, event);
    }

    fn on_transmit(&mut self, _: Instant, queue: &mut dyn TxQueue) {
        // The other end of every pair here.
        let meta = meta_to(MemoryOptions::default().addrs[1]);
        while self.left > 0 && write(queue, &meta, &vec![0x64; self.len]) {
            self.left -= 1;
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.wake_at
    }
}

fn endless(driver: MemoryDriver, peer: Option<&MemoryDriver>, left: usize) -> Runner<MemoryDriver, Endless> {
    let peer = peer.map(Driver::local_addr);
    let (driver, endpoint, inner) = end(driver, 1, peer, 0, Transport::default()).into_parts();
    Runner::new(driver, endpoint, Endless::new(inner, left))
}

#[test]
fn a_step_takes_64_datagrams_of_the_applications_own() {
    let clock = ManualClock::new(START);
    let (left, mut right) =
        MemoryDriver::pair(&MemoryOptions { tx_slots: 1_000, rx_slots: 1_000, ..options(&clock) });
    let mut left = endless(left, None, 150);
    for (arrive, next) in [(64, Some(START)), (64, Some(START)), (22, None), (0, None)] {
        assert_eq!(left.step().unwrap(), next);
        assert_eq!(right.recv(1_000, |_, _| {}).unwrap().datagrams, arrive);
    }
}

/// The network gives few places at a time, and both the session and the application want it always.
#[test]
fn a_session_and_the_application_alternate_where_the_network_takes_little() {
    for slots in [1, 2] {
        let clock = ManualClock::new(START);
        let (left, right) =
            MemoryDriver::pair(&MemoryOptions { tx_slots: slots, rx_slots: slots, ..options(&clock) });
        let mut left = endless(left, Some(&right), usize::MAX);
        let mut right = end(right, 2, None, 1, Transport::default());
        while !left.is_stopped() {
            left.step().unwrap();
            right.step().unwrap();
            clock.set(clock.now().saturating_add(Duration::from_millis(1)));
            assert!(clock.now().saturating_since(START) < Duration::from_mins(5), "{slots}");
        }
        let own = right.endpoint_mut().stats().drops(DropReason::Sealed);
        let packets = left.endpoint_mut().stats().datagrams_sent;
        let share = own as f64 / (own + packets) as f64;
        assert!((0.4..0.6).contains(&share), "{slots} places: {own} beside {packets}");
    }
}

#[test]
fn a_step_names_the_applications_deadline_until_it_has_stopped() {
    let clock = ManualClock::new(START);
    let (left, _right) = MemoryDriver::pair(&options(&clock));
    let mut left = endless(left, None, 0);
    assert_eq!(left.step().unwrap(), None);
    let wish = START.saturating_add(Duration::from_secs(3));
    left.app_mut().wake_at = Some(wish);
    assert_eq!(left.step().unwrap(), Some(wish));
    left.app_mut().stops = true;
    assert_eq!((left.step().unwrap(), left.is_stopped()), (None, true));
}

/// `PROTO §8.16`: the host refuses the application's own, which says nothing about what fits.
#[test]
fn a_datagram_of_its_own_that_is_too_long_leaves_a_session_its_size() {
    let clock = ManualClock::new(START);
    let (left, right) =
        MemoryDriver::pair(&MemoryOptions { max_datagram: 9_000, tx_slots: 1_000, ..options(&clock) });
    let transport = Transport::default().with_max_datagram(9_000).with_mtu_search(true);
    let peer = right.local_addr();
    let mut left = end(left, 1, Some(peer), 1, transport);
    let mut right = end(right, 2, None, 1, transport);
    run(&clock, &mut left, &mut right);
    let session = left.app_mut().session.unwrap();
    assert_eq!(left.endpoint_mut().session(session).unwrap().stats().datagram_size, 1_472);
    let refused = left.endpoint_mut().stats().datagrams_refused;
    let (driver, endpoint, inner) = left.into_parts();
    let mut left = Runner::new(driver, endpoint, Endless { len: 1_473, ..Endless::new(inner, 10) });
    left.step().unwrap();
    assert_eq!(left.app_mut().left, 0);
    assert_eq!(left.endpoint_mut().stats().datagrams_refused, refused + 1);
    assert_eq!(left.endpoint_mut().session(session).unwrap().stats().datagram_size, 1_472);
}
