//! A session that is always full: AES-256-GCM, one datagram a packet.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use wraith_benches::default_provider;
use wraith_drivers::{App, Park, Runner, Turn};
use wraith_proto::crypto::Suite;
use wraith_proto::{
    Config, Endpoint, Event, Identity, Instant, Limits, MIN_DATAGRAM, Payload, Peer, SessionHandle, Source,
    StreamId, Via,
};

use super::meter::{Meter, Watch};
use super::{DRAIN, Job, LOOK, Measured, Result, WARM_UP};

/// Both ends have fixed keys: they talk on a line of their own.
const SENDER: [u8; 32] = [1; 32];
const RECEIVER: [u8; 32] = [2; 32];
/// What every datagram begins with.
static PAYLOAD: [u8; 2048] = [0x5a; 2048];
/// Datagrams that wait in the session: more than leave in one step.
const QUEUED: u32 = 512;

pub(super) struct Send {
    pub(super) meter: Arc<Meter>,
    pub(super) to: SocketAddr,
    pub(super) size: u16,
    pub(super) duration: Duration,
}

pub(super) struct Receive {
    pub(super) meter: Arc<Meter>,
    pub(super) ready: mpsc::Sender<SocketAddr>,
}

struct Sender {
    job: Send,
    session: SessionHandle,
    payload: Bytes,
    phase: Phase,
    sent: u64,
    watch: Watch,
    error: Option<Error>,
}

enum Phase {
    Connecting,
    Sending { start: Instant, end: Instant },
    Draining { until: Instant },
    Over,
}

struct Receiver {
    meter: Arc<Meter>,
    received: u64,
    look_at: Instant,
    watch: Watch,
    error: Option<Error>,
}

type Error = String;

impl Job for Send {
    type Output = Measured;

    fn run<D: Park>(self, driver: D) -> Result<Measured> {
        let mut config = config(SENDER);
        let size = self.size.max(MIN_DATAGRAM);
        config.transport =
            config.transport.with_lone_datagrams(true).with_min_datagram(size).with_max_datagram(size);
        // A session may use a quarter of the pool.
        config.limits.datagrams = 4 * QUEUED;
        let now = driver.now();
        let mut endpoint = Endpoint::new(config, SENDER, now)?;
        let peer = Peer { addr: self.to, id: Some(Identity::from_seed(RECEIVER).peer_id()) };
        let session = endpoint.connect(now, peer, Via(0))?;
        let app = Sender {
            job: self,
            session,
            payload: Bytes::from_static(&PAYLOAD),
            phase: Phase::Connecting,
            sent: 0,
            watch: Watch::default(),
            error: None,
        };
        let mut runner = Runner::new(driver, endpoint, app);
        runner.run()?;
        let (driver, _, app) = runner.into_parts();
        app.error.map_or(Ok(()), Err)?;
        Ok((app.watch.seen(app.sent)?, driver.caps().mode))
    }
}

impl Job for Receive {
    type Output = Measured;

    fn run<D: Park>(self, driver: D) -> Result<Measured> {
        let endpoint = Endpoint::new(config(RECEIVER), RECEIVER, driver.now())?;
        self.ready.send(driver.local_addr())?;
        let app = Receiver {
            meter: self.meter,
            received: 0,
            look_at: driver.now(),
            watch: Watch::default(),
            error: None,
        };
        let mut runner = Runner::new(driver, endpoint, app);
        runner.run()?;
        let (driver, _, app) = runner.into_parts();
        app.error.map_or(Ok(()), Err)?;
        Ok((app.watch.seen(app.received)?, driver.caps().mode))
    }
}

/// Fixed keys and one suite.
fn config(seed: [u8; 32]) -> Config {
    let mut config = Config::new(Identity::from_seed(seed), b"wraith-veth/1");
    config.crypto = default_provider().1;
    config.limits = Limits::client();
    config.transport = config.transport.with_suites(&[Suite::Aes256Gcm]);
    config
}

impl Sender {
    fn begin(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let Some(session) = endpoint.session(self.session) else { return };
        // Smaller than the smallest path carries: leave out as much as that has too much.
        let spare = usize::from(MIN_DATAGRAM.saturating_sub(self.job.size));
        self.payload.truncate(session.max_datagram() - spare);
        let start = now.saturating_add(WARM_UP);
        self.phase = Phase::Sending { start, end: start.saturating_add(self.job.duration) };
    }

    fn fill(&mut self, endpoint: &mut Endpoint) {
        let Some(mut session) = endpoint.session(self.session) else { return };
        while session.send_datagram(self.payload.clone()).is_ok() {
            self.sent += 1;
        }
    }
}

impl App for Sender {
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn {
        match self.phase {
            Phase::Sending { end, .. } if now >= end => {
                self.job.meter.stop();
                self.phase = Phase::Draining { until: now.saturating_add(DRAIN) };
            }
            Phase::Sending { start, .. } => {
                if now >= start {
                    self.job.meter.start();
                }
                self.fill(endpoint);
            }
            Phase::Draining { until } if now >= until => self.phase = Phase::Over,
            _ => {}
        }
        note(&mut self.error, self.watch.look(&self.job.meter, self.sent));
        let over = matches!(self.phase, Phase::Over) || self.error.is_some();
        if over { Turn::Stop } else { Turn::Continue }
    }

    fn on_payload(&mut self, _: Payload<'_>) {}

    fn on_event(&mut self, now: Instant, endpoint: &mut Endpoint, _: SessionHandle, event: Event) {
        match event {
            Event::Connected => self.begin(now, endpoint),
            Event::Closed(reason) => self.error = Some(format!("the session ended: {reason:?}")),
            _ => {}
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Sending { end, .. } => Some(end),
            Phase::Draining { until } => Some(until),
            Phase::Connecting | Phase::Over => None,
        }
    }
}

impl Source for Sender {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl App for Receiver {
    fn on_turn(&mut self, now: Instant, _: &mut Endpoint) -> Turn {
        note(&mut self.error, self.watch.look(&self.meter, self.received));
        self.look_at = now.saturating_add(LOOK);
        let over = self.meter.is_finished() || self.error.is_some();
        if over { Turn::Stop } else { Turn::Continue }
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        self.received += u64::from(matches!(payload, Payload::Datagram { .. }));
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, _: SessionHandle, _: Event) {}

    fn wake_at(&self) -> Option<Instant> {
        Some(self.look_at)
    }
}

impl Source for Receiver {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

/// Keeps the first error.
fn note(kept: &mut Option<Error>, result: Result<()>) {
    if let (None, Err(error)) = (&kept, result) {
        *kept = Some(error.to_string());
    }
}
