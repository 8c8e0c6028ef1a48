//! The sending end of a benchmark: a session that is always full.

use std::time::Duration;

use bytes::Bytes;
use wraith_drivers::{App, Park, Runner, Turn};
use wraith_proto::crypto::Suite;
use wraith_proto::{
    CloseReason, Dir, Endpoint, Event, Instant, Limits, Payload, SessionHandle, Source, StreamId,
};

use super::Kind;
use super::counts::{ANSWER_LEN, Counts, Message};
use super::row::Run;
use crate::address::Target;
use crate::cipher::Offer;
use crate::cpu;
use crate::dial::{self, BENCH_PROTOCOL, CODE_DONE, CODE_INTERRUPTED};
use crate::drive::{Task, drive};
use crate::driver_pick::{Job, Picked};
use crate::failure::{Failure, Result, failed};
use crate::stop::Stop;

/// How long the receiver may take to tell its counts.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of datagrams that wait in the session: more than leave in one step, and little after the end.
const QUEUE_BYTES: u32 = 1 << 20;

/// An attached stream that never ends by itself.
const ENDLESS: u64 = 1 << 61;

/// Sends for a while and asks the receiver what arrived.
pub(super) struct LoadJob<'a> {
    pub(super) target: Target,
    pub(super) kind: Kind,
    pub(super) packet_size: u16,
    pub(super) duration: Duration,
    pub(super) identity: wraith_proto::Identity,
    pub(super) offer: Offer,
    pub(super) stop: &'a Stop,
}

impl Job for LoadJob<'_> {
    type Output = Run;

    fn run<D: Park>(self, driver: D, picked: Picked) -> Result<Run> {
        let now = driver.now();
        let size = self.packet_size;
        let most = driver.caps().max_datagram;
        if usize::from(size) > most {
            return Err(failed(format!(
                "packets of {size} bytes are longer than the driver {} carries here: use --packet-size {most} or less",
                picked.name
            )));
        }
        let transport = dial::transport(self.offer)
            .with_lone_datagrams(true)
            .with_min_datagram(size.max(wraith_proto::MIN_DATAGRAM))
            .with_max_datagram(size.max(wraith_proto::MIN_DATAGRAM));
        let mut limits = Limits::client();
        // A session may use a quarter of the pool.
        limits.datagrams = 4 * (QUEUE_BYTES / u32::from(size)).clamp(64, 512);
        let mut endpoint = dial::endpoint(self.identity, &[BENCH_PROTOCOL], limits, transport, now)?;
        let session = dial::connect(&mut endpoint, now, &self.target)?;
        let load = Load::new(session, self.target, self.kind, size, self.duration);
        let mut runner = Runner::new(driver, endpoint, load);
        drive(&mut runner, self.stop)?;
        let (driver, _, load) = runner.into_parts();
        load.finish(picked.after(&driver.caps()))
    }
}

/// Where the load is.
enum Phase {
    Connecting,
    Sending { until: Instant },
    Asking { question: StreamId, until: Instant },
    Over(Result<Counts>),
}

/// A session that is always full.
struct Load {
    session: SessionHandle,
    target: Target,
    kind: Kind,
    packet_size: u16,
    duration: Duration,
    phase: Phase,
    payload: Bytes,
    sent: u64,
    stream: Option<StreamId>,
    answer: Message<ANSWER_LEN>,
    /// When sending began, and the CPU time of this thread then.
    began: Option<(Instant, Option<Duration>)>,
    run: Run,
}

impl Load {
    fn new(session: SessionHandle, target: Target, kind: Kind, packet_size: u16, duration: Duration) -> Self {
        Self {
            session,
            target,
            kind,
            packet_size,
            duration,
            phase: Phase::Connecting,
            payload: Bytes::from(vec![0x5a; usize::from(u16::MAX)]),
            sent: 0,
            stream: None,
            answer: Message::default(),
            began: None,
            run: Run::default(),
        }
    }

    fn begin(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let Some(mut session) = endpoint.session(self.session) else { return };
        self.run.suite = session.suite().map(Suite::name);
        if self.kind == Kind::Stream {
            self.stream = session.open(Dir::Uni).ok();
            if let Some(stream) = self.stream {
                let _ = session.attach(stream, ENDLESS);
            }
        } else {
            // Smaller than the smallest path carries: leave out as much as that has too much.
            let spare = usize::from(wraith_proto::MIN_DATAGRAM.saturating_sub(self.packet_size));
            self.payload.truncate(session.max_datagram() - spare);
        }
        self.began = Some((now, cpu::of_thread()));
        self.phase = Phase::Sending { until: now.saturating_add(self.duration) };
    }

    fn send(&mut self, endpoint: &mut Endpoint) {
        let Some(mut session) = endpoint.session(self.session) else { return };
        if self.kind == Kind::Datagram {
            while session.send_datagram(self.payload.clone()).is_ok() {
                self.sent += 1;
            }
        }
    }

    /// Stops sending. Datagrams that wait leave before the question, which is on a stream.
    fn ask(&mut self, now: Instant, endpoint: &mut Endpoint) {
        if let Some((began, cpu)) = self.began {
            self.run.tx_time = now.saturating_since(began);
            self.run.tx_cpu = cpu::since(cpu);
        }
        let Some(mut session) = endpoint.session(self.session) else { return };
        if let Some(stream) = self.stream {
            let _ = session.reset(stream, CODE_DONE);
            self.run.lost = session.stats().packets_lost;
        }
        self.phase = match session.open(Dir::Bi) {
            Ok(question) => {
                let sent = Bytes::copy_from_slice(&self.sent.to_be_bytes());
                let _ = session.write(question, sent).and_then(|()| session.finish(question));
                Phase::Asking { question, until: now.saturating_add(ANSWER_TIMEOUT) }
            }
            Err(error) => {
                Phase::Over(Err(failed(format!("cannot ask {} for its counts: {error}", self.target.addr))))
            }
        };
    }

    fn finish(self, picked: Picked) -> Result<Run> {
        let Phase::Over(result) = self.phase else { return Err(Failure::Interrupted) };
        let counts = result?;
        if counts.packets == 0 {
            return Err(failed(format!(
                "nothing arrived at {}: packets of {} bytes may be too large for the path, try --packet-size 1200",
                self.target.addr, self.packet_size
            )));
        }
        let lost = if self.kind == Kind::Datagram {
            self.sent.saturating_sub(counts.packets)
        } else {
            self.run.lost
        };
        Ok(Run {
            bytes: counts.bytes,
            packets: counts.packets,
            lost,
            rx_time: counts.time,
            rx_cpu: counts.cpu,
            picked: Some(picked),
            ..self.run
        })
    }
}

impl Source for Load {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, buf: &mut [u8]) -> usize {
        buf.fill(0x5a);
        buf.len()
    }

    fn lend(&mut self, _: SessionHandle, _: StreamId, _: u64, len: usize) -> Option<&[u8]> {
        self.payload.get(..len)
    }
}

impl App for Load {
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn {
        match self.phase {
            Phase::Sending { until } if now < until => self.send(endpoint),
            Phase::Sending { .. } => self.ask(now, endpoint),
            Phase::Asking { until, .. } if now >= until => {
                let message =
                    format!("{} does not tell what arrived: check the network and retry", self.target.addr);
                self.phase = Phase::Over(Err(failed(message)));
            }
            _ => {}
        }
        if let Phase::Asking { .. } = self.phase
            && let Some(answer) = self.answer.bytes()
        {
            self.phase = Phase::Over(Ok(Counts::from_bytes(answer)));
        }
        let Phase::Over(result) = &self.phase else { return Turn::Continue };
        if let Some(mut session) = endpoint.session(self.session) {
            session
                .close(now, if *result == Err(Failure::Interrupted) { CODE_INTERRUPTED } else { CODE_DONE });
        }
        Turn::Stop
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        if let (Payload::Stream { stream, offset, data, .. }, Phase::Asking { question, .. }) =
            (payload, &self.phase)
            && stream == *question
        {
            self.answer.take(offset, data);
        }
    }

    fn on_event(&mut self, now: Instant, endpoint: &mut Endpoint, _: SessionHandle, event: Event) {
        match event {
            Event::Connected => self.begin(now, endpoint),
            Event::Closed(reason)
                if reason != CloseReason::Local && !matches!(self.phase, Phase::Over(_)) =>
            {
                self.phase = Phase::Over(Err(dial::ended(endpoint, &self.target, reason)));
            }
            _ => {}
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Sending { until } | Phase::Asking { until, .. } => Some(until),
            Phase::Connecting | Phase::Over(_) => None,
        }
    }
}

impl Task for Load {
    fn stop(&mut self) {
        self.phase = Phase::Over(Err(Failure::Interrupted));
    }
}
