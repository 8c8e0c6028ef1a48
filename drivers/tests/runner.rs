//! The loop around a driver, an endpoint and an application.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use wraith_drivers::{
    App, Caps, Driver, ManualClock, MemoryDriver, MemoryOptions, Park, Runner, RxReport, Slots, Turn,
    TxReport, Wake,
};
use wraith_proto::{
    CloseReason, Config, Dir, Endpoint, Event, Identity, Instant, Payload, Peer, RxMeta, SessionHandle,
    Source, StreamId, Transport, TxQueue, Via,
};

const LEN: u64 = 3_000_000;

/// Sends one stream, or receives one; stops when the session is over.
#[derive(Debug, Default)]
struct Transfer {
    sends: bool,
    events: Vec<Event>,
    received: u64,
    complete: bool,
    turns: usize,
}

impl Transfer {
    fn is_closed(&self) -> bool {
        self.events.iter().any(|event| matches!(event, Event::Closed(_)))
    }
}

fn byte_at(offset: u64) -> u8 {
    (offset ^ (offset >> 8) ^ (offset >> 16)) as u8
}

impl Source for Transfer {
    fn fill(&mut self, _: SessionHandle, _: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        let len = (LEN - offset).min(buf.len() as u64) as usize;
        for (index, byte) in buf[..len].iter_mut().enumerate() {
            *byte = byte_at(offset + index as u64);
        }
        len
    }
}

impl App for Transfer {
    fn on_turn(&mut self, _: Instant, _: &mut Endpoint) -> Turn {
        self.turns += 1;
        if self.is_closed() { Turn::Stop } else { Turn::Continue }
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        if let Payload::Stream { offset, data, fin, .. } = payload {
            assert!(data.iter().enumerate().all(|(index, byte)| *byte == byte_at(offset + index as u64)));
            self.received += data.len() as u64;
            self.complete |= fin && offset + data.len() as u64 == LEN;
        }
    }

    fn on_event(&mut self, now: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        self.events.push(event);
        match event {
            Event::Connected if self.sends => {
                let mut session = endpoint.session(session).unwrap();
                let stream = session.open(Dir::Uni).unwrap();
                session.attach(stream, LEN).unwrap();
            }
            Event::Delivered(_) => endpoint.session(session).unwrap().close(now, 7),
            _ => {}
        }
    }
}

fn runner<D: Driver>(driver: D, number: u8, sends: bool) -> Runner<D, Transfer> {
    runner_with(driver, number, sends, Transport::default())
}

/// One whose sessions search for datagrams of up to 9,000 bytes.
fn searching_runner<D: Driver>(driver: D, number: u8, sends: bool) -> Runner<D, Transfer> {
    let transport = Transport::default().with_max_datagram(9_000).with_mtu_search(true);
    runner_with(driver, number, sends, transport)
}

fn runner_with<D: Driver>(driver: D, number: u8, sends: bool, transport: Transport) -> Runner<D, Transfer> {
    let mut config = Config::new(Identity::from_seed([number; 32]), b"test");
    config.transport = transport;
    let endpoint = Endpoint::new(config, [number; 32], driver.now()).unwrap();
    Runner::new(driver, endpoint, Transfer { sends, ..Transfer::default() })
}

/// A sender that dials a receiver.
fn pair(options: &MemoryOptions) -> (Runner<MemoryDriver, Transfer>, Runner<MemoryDriver, Transfer>) {
    let (left, right) = MemoryDriver::pair(options);
    let peer = Peer { addr: right.local_addr(), id: Some(Identity::from_seed([2; 32]).peer_id()) };
    let now = left.now();
    let mut left = runner(left, 1, true);
    left.endpoint_mut().connect(now, peer, Via(0)).unwrap();
    (left, runner(right, 2, false))
}

fn assert_transferred(sender: &Transfer, receiver: &Transfer) {
    assert!(matches!(
        sender.events[..],
        [Event::Connected, Event::Delivered(_), Event::Closed(CloseReason::Local)]
    ));
    assert_eq!(receiver.events.first(), Some(&Event::Connected));
    assert_eq!(receiver.events.last(), Some(&Event::Closed(CloseReason::Peer(7))));
    assert!(receiver.complete);
    assert_eq!(receiver.received, LEN);
}

/// Steps both ends in turn until both stop, moving time only when both wait. Returns the time it took.
fn run_in_lock_step(options: &MemoryOptions) -> (Duration, [usize; 2]) {
    let start = Instant::from_nanos(1_000_000_000);
    let clock = ManualClock::new(start);
    let (mut left, mut right) = pair(&MemoryOptions { clock: Some(clock.clone()), ..options.clone() });
    while !(left.is_stopped() && right.is_stopped()) {
        let turns = [left.step().unwrap(), right.step().unwrap()];
        let next = turns.into_iter().flatten().min().expect("somebody waits for something");
        clock.set(next.max(clock.now().saturating_add(Duration::from_micros(10))));
        assert!(clock.now().saturating_since(start) < Duration::from_mins(1), "stuck: {left:?} {right:?}");
    }
    let (_, _, sender) = left.into_parts();
    let (_, _, receiver) = right.into_parts();
    assert_transferred(&sender, &receiver);
    (clock.now().saturating_since(start), [sender.turns, receiver.turns])
}

#[test]
fn two_runners_in_lock_step_transfer_a_stream_and_repeat_it_exactly() {
    let first = run_in_lock_step(&MemoryOptions::default());
    assert_eq!(first, run_in_lock_step(&MemoryOptions::default()));
}

#[test]
fn a_queue_of_one_slot_each_way_is_slow_but_enough() {
    run_in_lock_step(&MemoryOptions { tx_slots: 1, rx_slots: 1, ..MemoryOptions::default() });
}

#[test]
fn two_runners_on_two_threads_run_until_their_applications_stop() {
    let (mut left, mut right) = pair(&MemoryOptions::default());
    let receiver = thread::spawn(move || {
        right.run().unwrap();
        right.into_parts().2
    });
    left.run().unwrap();
    assert_transferred(&left.into_parts().2, &receiver.join().unwrap());
}

#[test]
fn an_idle_runner_has_no_deadline_and_does_nothing() {
    let (left, _right) = MemoryDriver::pair(&MemoryOptions::default());
    let mut left = runner(left, 1, false);
    assert_eq!(left.step().unwrap(), None);
    assert_eq!(left.app_mut().turns, 1);
    assert!(!left.is_stopped());
    assert_eq!(left.driver_mut().flush().unwrap().syscalls, 0);
    assert_eq!(left.driver().local_addr().port(), 1);
}

/// Whose network takes what is committed with every fifth flush.
struct Slow {
    inner: MemoryDriver,
    flushes: usize,
}

impl Driver for Slow {
    type Tx = <MemoryDriver as Driver>::Tx;

    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn recv(&mut self, budget: usize, on_datagram: impl FnMut(&RxMeta, &mut [u8])) -> io::Result<RxReport> {
        self.inner.recv(budget, on_datagram)
    }

    fn tx(&mut self) -> &mut Self::Tx {
        self.inner.tx()
    }

    fn flush(&mut self) -> io::Result<TxReport> {
        self.flushes += 1;
        if self.flushes.is_multiple_of(5) {
            self.inner.flush()
        } else {
            Ok(TxReport { in_flight: 1, ..TxReport::default() })
        }
    }
}

impl Park for Slow {
    type Unparker = <MemoryDriver as Park>::Unparker;

    fn park(&mut self, until: Option<Instant>) -> io::Result<Wake> {
        self.inner.park(until)
    }

    fn unparker(&self) -> Self::Unparker {
        self.inner.unparker()
    }
}

#[test]
fn the_news_of_the_end_leaves_although_the_network_takes_its_time() {
    let (left, right) = MemoryDriver::pair(&MemoryOptions::default());
    let peer = Peer { addr: right.local_addr(), id: Some(Identity::from_seed([2; 32]).peer_id()) };
    let mut left = runner(Slow { inner: left, flushes: 0 }, 1, false);
    let mut right = runner(right, 2, false);
    let now = left.driver().now();
    let session = left.endpoint_mut().connect(now, peer, Via(0)).unwrap();
    let receiver = thread::spawn(move || {
        let until = right.driver().now().saturating_add(Duration::from_secs(10));
        while right.driver().now() < until {
            let next = right.step().unwrap();
            if right.is_stopped() {
                break;
            }
            right.driver_mut().park(Some(next.unwrap_or(until).min(until))).unwrap();
        }
        right.into_parts().2
    });
    while !left.app_mut().events.contains(&Event::Connected) {
        let next = left.step().unwrap();
        left.driver_mut().park(next).unwrap();
    }
    let now = left.driver().now();
    left.endpoint_mut().session(session).unwrap().close(now, 7);
    left.run().unwrap();
    assert_eq!(receiver.join().unwrap().events.last(), Some(&Event::Closed(CloseReason::Peer(7))));
}

/// On a host whose interface carries datagrams of up to `carries` bytes, and less when 300,000 bytes have left.
struct Narrow {
    inner: MemoryDriver,
    tx: Slots,
    carries: usize,
    bytes: usize,
}

impl Driver for Narrow {
    type Tx = Slots;

    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn recv(&mut self, budget: usize, on_datagram: impl FnMut(&RxMeta, &mut [u8])) -> io::Result<RxReport> {
        self.inner.recv(budget, on_datagram)
    }

    fn tx(&mut self) -> &mut Self::Tx {
        &mut self.tx
    }

    fn flush(&mut self) -> io::Result<TxReport> {
        let mut report = TxReport::default();
        let mut done = 0;
        for (meta, datagram) in self.tx.committed() {
            if datagram.len() > self.carries {
                report.note_too_long(meta.to, datagram.len());
                report.dropped += 1;
            } else {
                let Some(room) = self.inner.tx().reserve(meta, datagram.len()) else { break };
                room[..datagram.len()].copy_from_slice(datagram);
                self.inner.tx().commit(datagram.len());
                self.bytes += datagram.len();
            }
            done += 1;
        }
        self.tx.retire(done);
        if self.bytes > 300_000 {
            self.carries = 1_252;
        }
        let passed = self.inner.flush()?;
        report.sent = passed.sent;
        report.in_flight = passed.in_flight + self.tx.committed().len();
        Ok(report)
    }
}

/// `PROTO §8.16`: what the driver says of a datagram that is too long reaches the session at once; losses alone would take
/// three probe timeouts to tell.
#[test]
fn a_session_follows_the_interface_of_its_host_at_once() {
    let start = Instant::from_nanos(1_000_000_000);
    let clock = ManualClock::new(start);
    let options = MemoryOptions {
        clock: Some(clock.clone()),
        mtu: 9_000,
        max_datagram: 9_000,
        ..MemoryOptions::default()
    };
    let (left, right) = MemoryDriver::pair(&options);
    let peer = Peer { addr: right.local_addr(), id: Some(Identity::from_seed([2; 32]).peer_id()) };
    let narrow = Narrow { inner: left, tx: Slots::new(64, 9_000), carries: 1_472, bytes: 0 };
    let mut left = searching_runner(narrow, 1, true);
    let mut right = searching_runner(right, 2, false);
    let session = left.endpoint_mut().connect(start, peer, Via(0)).unwrap();
    let mut sizes = Vec::new();
    while !right.app_mut().complete {
        // Answers arrive before time moves to a deadline.
        left.step().unwrap();
        let turns = [right.step().unwrap(), left.step().unwrap()];
        if let Some(session) = left.endpoint_mut().session(session) {
            sizes.push((session.stats().datagram_size, clock.now()));
            sizes.dedup_by_key(|size| size.0);
        }
        let next = turns.into_iter().flatten().min().expect("somebody waits for something");
        clock.set(next.max(clock.now().saturating_add(Duration::from_micros(100))));
        assert!(clock.now().saturating_since(start) < Duration::from_mins(1), "stuck: {sizes:?}");
    }
    let at =
        |size: u16| sizes.iter().find(|seen| seen.0 == size).unwrap_or_else(|| panic!("{size}: {sizes:?}")).1;
    let largest = sizes.iter().map(|seen| seen.0).max();
    assert_eq!((largest, sizes.last().map(|seen| seen.0)), (Some(1_472), Some(1_251)), "{sizes:?}");
    let fell = sizes.iter().rposition(|seen| seen.0 == 1_200).expect("it fell to the minimum");
    let found = at(1_251).saturating_since(sizes[fell].1);
    assert!(found < Duration::from_millis(100), "{sizes:?}");
    assert!(left.endpoint_mut().stats().datagrams_refused > 0);
    assert_eq!(right.app_mut().received, LEN);
}
