//! A loop around a driver, an endpoint and an application.

use std::io;
use std::time::Duration;

use wraith_proto::{Budget, Endpoint, Event, Instant, Payload, Progress, SessionHandle, Source, TxStatus};

use crate::{Driver, Park, TooLong, TxReport};

/// Datagrams received in one step, before anything is sent.
const RX_BUDGET: usize = 256;
/// Sessions whose timers are served in one step.
const TIMER_BUDGET: Budget = Budget(1024);
/// Datagrams built between two flushes, if the queue has room for so many.
const TX_BUDGET: Budget = Budget(256);
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
}

impl<D: Driver, A: App> Runner<D, A> {
    /// Joins the parts; nothing is received or sent yet.
    pub fn new(driver: D, endpoint: Endpoint, app: A) -> Self {
        Self { driver, endpoint, app, stopped: false }
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
        for _ in 0..FLUSHES {
            let status = self.endpoint.poll_transmit(now, self.driver.tx(), &mut self.app, TX_BUDGET);
            let report = self.driver.flush()?;
            if let Some(TooLong { to, len }) = report.too_long {
                self.endpoint.too_large(now, to, len);
            }
            match status {
                TxStatus::Idle if report.in_flight == 0 => return Ok(Sending::Done),
                TxStatus::Idle => return Ok(Sending::Stalled),
                // A socket that takes nothing, or a datagram that even an empty queue cannot hold.
                TxStatus::QueueFull if moved_nothing(&report) => return Ok(Sending::Stalled),
                TxStatus::QueueFull | TxStatus::Budget => {}
            }
        }
        Ok(Sending::More)
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
