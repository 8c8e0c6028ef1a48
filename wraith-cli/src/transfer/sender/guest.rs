//! One session of a sender: its control stream and the chunks on their way.

use wraith_proto::{Dir, Instant, OpenError, Session, SessionHandle, StreamId};
use wraith_transfer_proto::{Delivery, Provider, Violation};

use crate::transfer::control::Control;
use crate::transfer::watch::{IDLE, Stall, Watch};

/// Levels of the delivery that began first and of the next: chunks complete one after the other.
const LEVELS: (u8, u8) = (3, 4);

/// A session as its sender sees it.
#[derive(Debug, Default)]
pub(super) struct Guest {
    pub(super) peer: String,
    pub(super) address: String,
    control: Option<Control>,
    /// The control stream's end has arrived there.
    heard: bool,
    flights: Vec<Flight>,
    /// Came when no stream could be opened.
    waiting: Option<Delivery>,
    /// Streams that have no place in this protocol.
    refused: Vec<StreamId>,
    /// Streams of transfers that have ended.
    abandoned: Vec<StreamId>,
    violation: Option<Violation>,
    running: Vec<Running>,
    watch: Option<Watch>,
    /// Since when it asks for nothing.
    idle_since: Option<Instant>,
    /// What was known when it was checked last: bytes that arrived, and bytes on their way that have left.
    known: (u64, u64),
}

/// A transfer of the peer.
#[derive(Clone, Copy, Debug)]
struct Running {
    transfer: u32,
    started: Instant,
}

/// A chunk on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    stream: StreamId,
    pub(super) delivery: Delivery,
    /// Bytes of the stream that were pulled at least once, which are the first ones.
    pulled: u64,
}

impl Flight {
    /// Bytes up to `end` of the stream were pulled; whether the last one was, for the first time.
    pub(super) fn pulled(&mut self, end: u64) -> bool {
        let whole = !self.is_pulled() && end >= self.delivery.stream_len();
        self.pulled = self.pulled.max(end);
        whole
    }

    fn is_pulled(&self) -> bool {
        self.pulled >= self.delivery.stream_len()
    }
}

impl Guest {
    /// The peer asked for the content.
    pub(super) fn begin(&mut self, transfer: u32, started: Instant, now: Instant) {
        self.running.push(Running { transfer, started });
        self.watch = Some(Watch::new(now));
        self.idle_since = None;
    }

    /// A transfer has ended; when it began.
    pub(super) fn end(&mut self, transfer: u32) -> Option<Instant> {
        let at = self.running.iter().position(|running| running.transfer == transfer)?;
        let ended = self.running.swap_remove(at);
        if self.running.is_empty() {
            self.watch = None;
        }
        Some(ended.started)
    }

    /// Nothing more of a transfer is to be sent.
    pub(super) fn drop_transfer(&mut self, transfer: u32) {
        self.waiting = self.waiting.take().filter(|delivery| delivery.transfer() != transfer);
        let (gone, stay): (Vec<_>, Vec<_>) =
            self.flights.drain(..).partition(|flight| flight.delivery.transfer() == transfer);
        self.flights = stay;
        self.abandoned.extend(gone.iter().map(|flight| flight.stream));
    }

    /// A piece of a stream that the peer sends on.
    pub(super) fn receive(
        &mut self,
        stream: StreamId,
        offset: u64,
        data: &[u8],
        handle: impl FnMut(&[u8]) -> Result<(), Violation>,
    ) {
        let control = match &mut self.control {
            None if stream.dir() == Dir::Bi => self.control.insert(Control::new(stream)),
            Some(control) if control.stream() == stream => control,
            _ => return self.refuse(stream),
        };
        if self.violation.is_none()
            && let Err(violation) = control.receive(offset, data, handle)
        {
            self.violation = Some(violation);
        }
        self.watch_moved();
    }

    /// A stream that has no place here is not read.
    pub(super) fn refuse(&mut self, stream: StreamId) {
        if !self.refused.contains(&stream) {
            self.refused.push(stream);
        }
    }

    pub(super) fn flight(&mut self, stream: StreamId) -> Option<&mut Flight> {
        self.flights.iter_mut().find(|flight| flight.stream == stream)
    }

    /// A stream arrived whole.
    pub(super) fn on_delivered(&mut self, now: Instant, stream: StreamId, report: impl FnOnce(&Delivery)) {
        if self.control.as_ref().is_some_and(|control| control.stream() == stream) {
            self.heard = true;
        }
        if let Some(flight) = self.take_flight(stream) {
            report(&flight.delivery);
            if let Some(watch) = &mut self.watch {
                watch.moved(now);
            }
        }
    }

    /// The peer wants no more of a stream.
    pub(super) fn on_stopped(&mut self, stream: StreamId, report: impl FnOnce(&Delivery)) {
        if let Some(flight) = self.take_flight(stream) {
            report(&flight.delivery);
        }
    }

    /// Closes, refuses, writes and opens what is due; only writes if the sender is `leaving`.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        session: &mut Session<'_>,
        handle: SessionHandle,
        provider: &mut Provider<SessionHandle>,
        leaving: bool,
    ) {
        if let Some(violation) = self.violation {
            session.close(now, violation.code());
            return;
        }
        for stream in self.refused.drain(..) {
            // Over already, or one of this end's own.
            let _ = session.stop(stream, 0);
            let _ = session.reset(stream, 0);
        }
        for stream in self.abandoned.drain(..) {
            let _ = session.reset(stream, 0);
        }
        if let Some(control) = &mut self.control {
            control.send(session, |buffer| provider.poll_control(handle, buffer));
            if leaving {
                control.finish(session);
            }
        }
        if !leaving {
            self.open_deliveries(session, handle, provider);
        }
    }

    /// Whether the transfer moves; `delivered` counts a transfer's bytes.
    pub(super) fn check(&mut self, now: Instant, delivered: impl Fn(u32) -> Option<u64>) -> Stall {
        let Some(running) = self.running.first() else { return Stall::No };
        let pulled = self.flights.iter().map(|flight| flight.pulled).sum();
        let known = (delivered(running.transfer).unwrap_or(0), pulled);
        let idle = self.flights.is_empty() && self.waiting.is_none();
        self.judge(now, known, idle)
    }

    /// More leaves only as what left before arrives, so either counts: a chunk may take minutes on a slow way.
    /// Who asks for nothing stores, or waits for whoever reads its stdout; if it is gone, its session ends.
    fn judge(&mut self, now: Instant, known: (u64, u64), idle: bool) -> Stall {
        let Some(watch) = &mut self.watch else { return Stall::No };
        if idle || known != self.known {
            self.known = known;
            watch.moved(now);
        }
        watch.check(now)
    }

    /// Whether it takes up a session and asks for nothing.
    pub(super) fn is_idle(&mut self, now: Instant) -> bool {
        self.running.is_empty() && now >= self.idle_since.get_or_insert(now).saturating_add(IDLE)
    }

    /// When to look at the guest again.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let idle_until = self.idle_since.map(|since| since.saturating_add(IDLE));
        self.watch.as_ref().map(Watch::next).or(idle_until)
    }

    /// The numbers of its transfers.
    pub(super) fn transfers(&self) -> impl Iterator<Item = u32> + '_ {
        self.running.iter().map(|running| running.transfer)
    }

    /// Whether it fetches something.
    pub(super) fn is_fetching(&self) -> bool {
        !self.running.is_empty()
    }

    /// Whether nothing was said to it that it has not heard.
    pub(super) fn has_left(&self) -> bool {
        self.control.is_none() || self.heard
    }

    /// Who it is, for people.
    pub(super) fn name(&self) -> String {
        if self.peer.is_empty() { "a peer".to_owned() } else { format!("{} ({})", self.peer, self.address) }
    }

    fn open_deliveries(
        &mut self,
        session: &mut Session<'_>,
        handle: SessionHandle,
        provider: &mut Provider<SessionHandle>,
    ) {
        while let Some(delivery) = self.waiting.take().or_else(|| provider.next_delivery(handle)) {
            let stream = match session.open(Dir::Uni) {
                Ok(stream) => stream,
                Err(OpenError::PeerLimit | OpenError::LocalLimit) => {
                    self.waiting = Some(delivery);
                    return;
                }
                // The session is over, which is told elsewhere.
                Err(_) => return,
            };
            for older in self.flights.iter().filter(|flight| !flight.is_pulled()) {
                let _ = session.set_priority(older.stream, LEVELS.0);
            }
            let first = self.flights.iter().all(Flight::is_pulled);
            // A fresh stream takes both.
            let _ = session.set_priority(stream, if first { LEVELS.0 } else { LEVELS.1 });
            let _ = session.attach(stream, delivery.stream_len());
            self.flights.push(Flight { stream, delivery, pulled: 0 });
        }
    }

    fn take_flight(&mut self, stream: StreamId) -> Option<Flight> {
        let at = self.flights.iter().position(|flight| flight.stream == stream)?;
        Some(self.flights.swap_remove(at))
    }

    /// The time comes with the next check.
    fn watch_moved(&mut self) {
        self.known = (u64::MAX, u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_guest_is_idle_when_it_asks_for_nothing_for_ten_seconds() {
        let at = |seconds| Instant::MIN.saturating_add(Duration::from_secs(seconds));
        let mut guest = Guest::default();
        assert!(!guest.is_idle(at(0)) && !guest.is_idle(at(9)));
        assert_eq!(guest.wake_at(), Some(at(10)));
        assert!(guest.is_idle(at(10)));
        guest.begin(3, at(11), at(11));
        assert!(!guest.is_idle(at(40)));
        assert_eq!((guest.end(3), guest.end(3)), (Some(at(11)), None));
        assert!(!guest.is_idle(at(41)) && guest.is_idle(at(51)));
    }

    #[test]
    fn a_chunk_of_which_more_leaves_now_and_then_is_not_given_up_and_one_that_stands_still_is() {
        let at = |seconds| Instant::MIN.saturating_add(Duration::from_secs(seconds));
        let mut guest = Guest::default();
        guest.begin(0, at(0), at(0));
        for step in 1..10 {
            assert_eq!(guest.judge(at(20 * step), (0, 1200 * step), false), Stall::No);
        }
        assert_eq!(guest.judge(at(185), (0, 10_800), false), Stall::Warn);
        assert_eq!(guest.judge(at(210), (0, 10_800), false), Stall::GiveUp);
        assert_eq!(guest.judge(at(211), (1_048_576, 0), false), Stall::No, "it arrived");
    }

    #[test]
    fn a_guest_that_asks_for_nothing_may_take_long_to_store_or_to_read() {
        let at = |seconds| Instant::MIN.saturating_add(Duration::from_secs(seconds));
        let mut guest = Guest::default();
        guest.begin(0, at(0), at(0));
        for second in [4, 34, 300] {
            assert_eq!(guest.check(at(second), |_| Some(5)), Stall::No);
        }
    }
}
