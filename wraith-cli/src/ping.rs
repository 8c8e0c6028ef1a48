//! `ping`: round trips of a session, measured by datagrams that the peer echoes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use wraith_drivers::{App, Clock, Park, Runner, Turn};
use wraith_proto::{
    CloseReason, DatagramError, Endpoint, Event, Identity, Instant, Limits, Payload, SessionHandle, Source,
    StreamId,
};

use crate::address::bind_for;
use crate::args::{self, Common};
use crate::cipher::Offer;
use crate::dial::{self, CODE_DONE, CODE_INTERRUPTED, PING_PROTOCOL};
use crate::drive::{Task, drive};
use crate::driver_pick::{Job, Picked, with_driver};
use crate::failure::{Failure, Result, failed};
use crate::identity;
use crate::output::Output;
use crate::stop::Stop;

/// A probe that is not back after this long is lost.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// When to try again while the queue is full.
const RETRY: Duration = Duration::from_millis(1);

/// Keeps a session alive between probes that are far apart.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

#[derive(Serialize)]
#[serde(tag = "event", rename = "pong")]
struct Pong {
    seq: u32,
    rtt_ms: f64,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "ping")]
struct Summary {
    sent: u32,
    received: u32,
    lost: u32,
    min_ms: Option<f64>,
    avg_ms: Option<f64>,
    median_ms: Option<f64>,
    max_ms: Option<f64>,
}

/// Probes a peer and prints each answer and a summary.
pub(crate) fn run(common: &Common, args: &args::Ping, stop: &Stop) -> Result<()> {
    let output = common.output();
    let bind = bind_for(&args.target, common.bind)?;
    let identity = identity::for_run(output, common.identity.as_deref())?;
    let job = PingJob { output, identity, offer: common.suite, args, stop };
    with_driver(output, common.driver, &common.device.host(), bind, job)
}

struct PingJob<'a> {
    output: Output,
    identity: Identity,
    offer: Offer,
    args: &'a args::Ping,
    stop: &'a Stop,
}

impl Job for PingJob<'_> {
    type Output = ();

    fn run<D: Park>(self, driver: D, _: Picked) -> Result<()> {
        let now = driver.now();
        let transport = dial::transport(self.offer).with_keep_alive(Some(KEEP_ALIVE));
        let mut endpoint = dial::endpoint(self.identity, &[PING_PROTOCOL], Limits::client(), transport, now)?;
        let session = dial::connect(&mut endpoint, now, &self.args.target)?;
        let mut runner = Runner::new(driver, endpoint, Pinger::new(self.output, *self.args, session));
        drive(&mut runner, self.stop)?;
        runner.into_parts().2.finish()
    }
}

/// Sends probes and waits for their echoes.
struct Pinger {
    output: Output,
    args: args::Ping,
    session: SessionHandle,
    connected: bool,
    stopping: bool,
    ended: Option<Failure>,
    /// The driver's clock stands still within a step; this one measures.
    clock: Clock,
    next_at: Instant,
    sent: u32,
    lost: u32,
    /// When the probes left that are on their way: as the session counts time, and as `clock` does.
    outstanding: BTreeMap<u32, (Instant, Instant)>,
    round_trips: Vec<Duration>,
}

impl Pinger {
    fn new(output: Output, args: args::Ping, session: SessionHandle) -> Self {
        Self {
            output,
            args,
            session,
            connected: false,
            stopping: false,
            ended: None,
            clock: Clock::new(),
            next_at: Instant::MIN,
            sent: 0,
            lost: 0,
            outstanding: BTreeMap::new(),
            round_trips: Vec::new(),
        }
    }

    fn send_due(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let Some(mut session) = endpoint.session(self.session) else { return };
        while self.connected && self.sent < self.args.count && now >= self.next_at {
            let mut probe = vec![0; usize::from(self.args.size)];
            probe[..4].copy_from_slice(&self.sent.to_be_bytes());
            match session.send_datagram(Bytes::from(probe)) {
                Ok(()) => {}
                Err(DatagramError::TooLarge { max }) => {
                    let message =
                        format!("a probe of {} bytes does not fit: use -s {max} or less", self.args.size);
                    self.ended = Some(failed(message));
                    return;
                }
                // Full, or over.
                Err(_) => {
                    self.next_at = now.saturating_add(RETRY);
                    return;
                }
            }
            self.outstanding.insert(self.sent, (now, self.clock.now()));
            self.sent += 1;
            let due = if self.sent == 1 { now } else { self.next_at };
            self.next_at = due.saturating_add(self.args.interval);
        }
    }

    fn give_up_late(&mut self, now: Instant) {
        while let Some(probe) = self.outstanding.first_entry()
            && probe.get().0.saturating_add(PROBE_TIMEOUT) <= now
        {
            self.output.note(format_args!("probe {} is lost", probe.key() + 1));
            probe.remove();
            self.lost += 1;
        }
    }

    fn is_done(&self) -> bool {
        self.stopping || self.ended.is_some() || (self.sent == self.args.count && self.outstanding.is_empty())
    }

    fn on_echo(&mut self, data: &[u8]) {
        let Some(seq) = data.first_chunk().map(|seq| u32::from_be_bytes(*seq)) else { return };
        let Some((_, sent_at)) = self.outstanding.remove(&seq) else { return };
        let rtt = self.clock.now().saturating_since(sent_at);
        self.round_trips.push(rtt);
        let (seq, rtt_ms) = (seq + 1, millis(rtt));
        let text =
            format_args!("{} bytes from {}: seq {seq}, {rtt_ms:.3} ms", data.len(), self.args.target.addr);
        self.output.result(&Pong { seq, rtt_ms }, text);
    }

    /// Prints the summary and says how the command ends.
    fn finish(mut self) -> Result<()> {
        if self.sent == 0 {
            return Err(if self.stopping { Failure::Interrupted } else { self.no_session() });
        }
        self.round_trips.sort_unstable();
        let summary = self.summary();
        self.output.result(&summary, summary.text());
        match self.ended {
            _ if self.stopping => Err(Failure::Interrupted),
            Some(failure) => Err(failure),
            None if summary.received == 0 => Err(failed(format!(
                "none of {} probes came back from {}: check the network and retry",
                summary.sent, self.args.target.addr
            ))),
            None => Ok(()),
        }
    }

    fn no_session(self) -> Failure {
        self.ended.unwrap_or_else(|| failed("the session ended before it began: retry"))
    }

    fn summary(&self) -> Summary {
        let rtts = &self.round_trips;
        let received = rtts.len() as u32;
        let average = rtts.iter().sum::<Duration>().checked_div(received);
        Summary {
            sent: self.sent,
            received,
            lost: self.sent - received,
            min_ms: rtts.first().copied().map(millis),
            avg_ms: average.map(millis),
            median_ms: median(rtts).map(millis),
            max_ms: rtts.last().copied().map(millis),
        }
    }
}

impl Summary {
    fn text(&self) -> String {
        let mut text = format!("{} sent, {} received, {} lost", self.sent, self.received, self.lost);
        if let (Some(min), Some(avg), Some(median), Some(max)) =
            (self.min_ms, self.avg_ms, self.median_ms, self.max_ms)
        {
            let _ = write!(text, "; ms: min {min:.3}, avg {avg:.3}, median {median:.3}, max {max:.3}");
        }
        text
    }
}

impl Source for Pinger {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl App for Pinger {
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn {
        self.give_up_late(now);
        self.send_due(now, endpoint);
        if !self.is_done() {
            return Turn::Continue;
        }
        if let Some(mut session) = endpoint.session(self.session) {
            session.close(now, if self.stopping { CODE_INTERRUPTED } else { CODE_DONE });
        }
        Turn::Stop
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        if let Payload::Datagram { data, .. } = payload {
            self.on_echo(data);
        }
    }

    fn on_event(&mut self, _: Instant, endpoint: &mut Endpoint, _: SessionHandle, event: Event) {
        match event {
            Event::Connected => {
                self.connected = true;
                self.output.detail(format_args!("session with {}", self.args.target));
            }
            Event::Closed(reason) if reason != CloseReason::Local && self.ended.is_none() => {
                self.ended = Some(dial::ended(endpoint, &self.args.target, reason));
            }
            _ => {}
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let next = (self.connected && self.sent < self.args.count).then_some(self.next_at);
        let timeout =
            self.outstanding.values().next().map(|(sent_at, _)| sent_at.saturating_add(PROBE_TIMEOUT));
        [next, timeout].into_iter().flatten().min()
    }
}

impl Task for Pinger {
    fn stop(&mut self) {
        self.stopping = true;
    }
}

/// The middle one, or the mean of the two in the middle.
fn median(sorted: &[Duration]) -> Option<Duration> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len() - 1) / 2)?;
    Some((*upper + *lower) / 2)
}

fn millis(duration: Duration) -> f64 {
    // Whole nanoseconds, without the digits that a float adds.
    (duration.as_secs_f64() * 1e9).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        let [a, b, c] = [1, 2, 30].map(Duration::from_millis);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[a]), Some(a));
        assert_eq!(median(&[a, b]), Some(Duration::from_micros(1500)));
        assert_eq!(median(&[a, b, c]), Some(b));
        assert_eq!(millis(Duration::from_nanos(110_065)).to_string(), "0.110065");
    }
}
