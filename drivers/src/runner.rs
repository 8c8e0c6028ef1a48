//! A loop around a driver, an endpoint and an application.

use std::io;
use std::mem;
use std::time::Duration;

use wraith_proto::sealed::has_sealed_form;
use wraith_proto::{
    Budget, Endpoint, Event, Instant, Payload, Progress, RxMeta, SessionHandle, Source, TxMeta, TxQueue,
    TxStatus,
};

use crate::{Driver, Park, TooLong, TxReport};

/// Datagrams received in one step, before anything is sent.
const RX_BUDGET: usize = 256;
/// Sessions whose timers are served in one step.
const TIMER_BUDGET: Budget = Budget(1024);
/// Datagrams built between two flushes, if the queue has room for so many.
const TX_BUDGET: Budget = Budget(256);
/// Datagrams of the application's own in one step, so that its answers to a flood leave sessions their time.
const OWN_BUDGET: usize = 64;
/// Flushes in one step; then it is time to receive again.
const FLUSHES: usize = 8;
/// When to look again at datagrams that a flush left, should nothing report that they can go (ENOBUFS).
const STALL: Duration = Duration::from_millis(1);
/// How long [`Runner::run`] stays for datagrams that the network does not take when the application has stopped.
const LAST_FLUSHES: Duration = Duration::from_millis(100);

/// What a [`Runner`] drives.
pub trait App: Source {
    /// Called once per step, after payloads and events: the place to open, write and close.
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn;

    /// Decrypted data, lent for the call.
    fn on_payload(&mut self, payload: Payload<'_>);

    /// Something happened to a session.
    fn on_event(&mut self, now: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event);

    /// A received datagram of the form that belongs to no session (`PROTO §2.2`), lent for the call: takes it or not.
    ///
    /// What it does not take the endpoint drops and counts as `DropReason::Sealed`: by default everything. Anybody can send
    /// such datagrams, up to 256 a step: bound what one costs.
    fn on_sealed(&mut self, now: Instant, meta: &RxMeta, datagram: &mut [u8]) -> bool {
        let _ = (now, meta, datagram);
        false
    }

    /// The place to write datagrams of the application's own, beside those of sessions; by default none.
    ///
    /// Called up to 8 times in a step, which takes 64 of them in all. If `queue` has no room, keep what is left: the next
    /// call comes when some may have gone. What is longer than the driver's `Caps::max_datagram` never fits. Neither
    /// sessions nor the application wait for each other: on a network that takes less than both have, they alternate.
    fn on_transmit(&mut self, now: Instant, queue: &mut dyn TxQueue) {
        let _ = (now, queue);
    }

    /// When the application wants its next turn at the latest, even if nothing happens. Asked at the end of each step that
    /// was not the last.
    fn wake_at(&self) -> Option<Instant> {
        None
    }
}

/// Whether to go on after this step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Turn {
    /// Go on.
    Continue,
    /// [`Runner::run`] returns at the end of the step.
    Stop,
}

/// A driver, an endpoint and an application, joined by a loop that is short enough to read.
#[derive(Debug)]
pub struct Runner<D, A> {
    driver: D,
    endpoint: Endpoint,
    app: A,
    stopped: bool,
    /// The application writes before the sessions, where both write.
    own_first: bool,
}

impl<D: Driver, A: App> Runner<D, A> {
    /// Joins the parts; nothing is received or sent yet.
    pub fn new(driver: D, endpoint: Endpoint, app: A) -> Self {
        Self { driver, endpoint, app, stopped: false, own_first: true }
    }

    /// Does what can be done now, without blocking, and says when to come back at the latest.
    ///
    /// Come back earlier on traffic or when the application has something new. An instant that has passed
    /// means at once; `None` means no deadline.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn step(&mut self) -> io::Result<Option<Instant>> {
        let now = self.driver.now();
        // Acknowledgements are built by `transmit`, hence once for the whole batch that comes in here.
        let mut again = self.receive(now)?;
        again |= self.endpoint.handle_timeout(now, TIMER_BUDGET) == Progress::More;
        self.deliver_events(now);
        self.stopped = self.app.on_turn(now, &mut self.endpoint) == Turn::Stop;
        // The application may have taken long: pacing wants the present.
        let now = self.driver.now();
        let sending = self.transmit(now)?;
        // Sending makes news, too. The application answers in its next turn.
        again |= self.deliver_events(now);

        let deadline = self.endpoint.poll_timeout().map(|deadline| deadline.at);
        let wish = if self.stopped { None } else { self.app.wake_at() };
        let deadline = [deadline, wish].into_iter().flatten().min();
        let next = match sending {
            _ if again => Some(now),
            Sending::More => Some(now),
            Sending::Stalled => {
                let retry = now.saturating_add(STALL);
                Some(deadline.map_or(retry, |deadline| deadline.min(retry)))
            }
            Sending::Done => deadline,
        };
        Ok(next)
    }

    /// Steps and parks until the application stops. Then datagrams that the network has not taken have 100 ms to leave.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn run(&mut self) -> io::Result<()>
    where
        D: Park,
    {
        loop {
            let next = self.step()?;
            if self.stopped {
                return self.finish();
            }
            if next.is_none_or(|next| next > self.driver.now()) {
                self.driver.park(next)?;
            }
        }
    }

    /// Hands over what the last flush had to keep: the news of the end may be among it.
    fn finish(&mut self) -> io::Result<()>
    where
        D: Park,
    {
        let until = self.driver.now().saturating_add(LAST_FLUSHES);
        while self.driver.flush()?.in_flight > 0 {
            let now = self.driver.now();
            if now >= until {
                break;
            }
            self.driver.park(Some(now.saturating_add(STALL).min(until)))?;
        }
        Ok(())
    }

    /// The endpoint.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// The application.
    pub fn app_mut(&mut self) -> &mut A {
        &mut self.app
    }

    /// The driver.
    pub fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// The driver.
    pub fn driver(&self) -> &D {
        &self.driver
    }

    /// Whether the application's last turn was [`Turn::Stop`].
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Gives everything back.
    pub fn into_parts(self) -> (D, Endpoint, A) {
        (self.driver, self.endpoint, self.app)
    }

    /// Returns whether there may be more to receive.
    fn receive(&mut self, now: Instant) -> io::Result<bool> {
        let Self { driver, endpoint, app, .. } = self;
        let report = driver.recv(RX_BUDGET, |meta, datagram| {
            if has_sealed_form(datagram) && app.on_sealed(now, meta, datagram) {
                return;
            }
            let mut received = endpoint.handle(now, meta, datagram);
            while let Some(payload) = received.next() {
                app.on_payload(payload);
            }
        })?;
        Ok(report.budget_hit)
    }

    /// Returns whether there was any event.
    fn deliver_events(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((session, event)) = self.endpoint.poll_event() {
            self.app.on_event(now, &mut self.endpoint, session, event);
            any = true;
        }
        any
    }

    fn transmit(&mut self, now: Instant) -> io::Result<Sending> {
        let mut own_left = OWN_BUDGET;
        for _ in 0..FLUSHES {
            let (sessions, own) = self.write(now, &mut own_left);
            let report = self.driver.flush()?;
            if let Some(TooLong { to, len }) = report.too_long {
                self.endpoint.too_large(now, to, len);
            }
            match (sessions, own) {
                // A socket that takes nothing, or a datagram that even an empty queue cannot hold.
                (TxStatus::QueueFull, _) | (_, TxStatus::QueueFull) if moved_nothing(&report) => {
                    return Ok(Sending::Stalled);
                }
                (TxStatus::Idle, TxStatus::Budget) => return Ok(Sending::More),
                (TxStatus::Idle, TxStatus::Idle) if report.in_flight == 0 => return Ok(Sending::Done),
                (TxStatus::Idle, TxStatus::Idle) => return Ok(Sending::Stalled),
                _ => {}
            }
        }
        Ok(Sending::More)
    }

    /// Fills the queue with what sessions and the application have, and says what ended the one and the other.
    ///
    /// Whoever was first, and wrote something, is second the next time: so each gets room where the network gives little.
    fn write(&mut self, now: Instant, own_left: &mut usize) -> (TxStatus, TxStatus) {
        let Self { driver, endpoint, app, own_first, .. } = self;
        let queue = driver.tx();
        let sent = endpoint.stats().datagrams_sent;
        if *own_first {
            let left = *own_left;
            let own = write_own(now, app, queue, own_left);
            let sessions = endpoint.poll_transmit(now, queue, app, TX_BUDGET);
            *own_first = *own_left == left;
            (sessions, own)
        } else {
            let sessions = endpoint.poll_transmit(now, queue, app, TX_BUDGET);
            *own_first = endpoint.stats().datagrams_sent != sent;
            (sessions, write_own(now, app, queue, own_left))
        }
    }
}

/// Lets the application write up to `left` datagrams of its own, and says what ended that.
fn write_own<A: App, Q: TxQueue>(now: Instant, app: &mut A, queue: &mut Q, left: &mut usize) -> TxStatus {
    let mut own = Own { queue, left, reserved: false, status: TxStatus::Idle };
    app.on_transmit(now, &mut own);
    own.status
}

/// The driver's queue as the application sees it: with an end.
struct Own<'q, Q> {
    queue: &'q mut Q,
    left: &'q mut usize,
    reserved: bool,
    /// What ended it so far.
    status: TxStatus,
}

impl<Q: TxQueue> TxQueue for Own<'_, Q> {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        self.reserved = false;
        if *self.left == 0 {
            self.status = TxStatus::Budget;
            return None;
        }
        let room = self.queue.reserve(meta, len);
        self.reserved = room.is_some();
        self.status = if self.reserved { TxStatus::Idle } else { TxStatus::QueueFull };
        room
    }

    fn commit(&mut self, len: usize) {
        if mem::take(&mut self.reserved) {
            *self.left -= 1;
            self.queue.commit(len);
        }
    }
}

/// How a step's sending ended.
enum Sending {
    /// There is nothing more to build.
    Done,
    /// There is, but it is time to receive.
    More,
    /// The network takes no more now.
    Stalled,
}

/// Whether a flush brought nothing about, so that more calls now are in vain.
fn moved_nothing(report: &TxReport) -> bool {
    report.sent == 0 && report.dropped == 0
}
