//! The application behind `send`: serves one file to whoever has the ticket, or to everybody who knows its hash.

mod guest;

use std::collections::BTreeMap;
use std::time::Duration;

use wraith_drivers::{App, Clock, Turn};
use wraith_proto::{CloseReason, Dir, Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId};
use wraith_transfer_proto::{Code, ContentKey, DELIVERY_HEADER, Failure as Why, Provider, ProviderEvent};

use super::progress::Progress;
use super::report::{Announced, Confirmed};
use super::source::FileSource;
use super::watch::{GIVE_UP, Stall};
use super::{FAREWELL, memory, size};
use crate::discovery::Announcer;
use crate::drive::Task;
use crate::failure::{Failure, Result, failed};
use crate::output::Output;

use guest::Guest;

/// How long the answer to a confirmation may take to arrive: a receiver that does not hear it looks for its sender.
const LAST_ANSWER: Duration = Duration::from_secs(3);

/// What is served, and for how long.
pub(super) struct Serving {
    pub(super) provider: Provider<SessionHandle>,
    pub(super) content: ContentKey,
    pub(super) size: u64,
    pub(super) hash: String,
    /// How the file is read.
    pub(super) files: &'static str,
    /// Beyond the first delivery.
    pub(super) keep: bool,
    /// To strangers, of whom no one that gives up ends it.
    pub(super) announced: bool,
    /// Tells a network of it.
    pub(super) announcer: Option<Announcer>,
}

/// Serves one file.
pub(super) struct Sender {
    output: Output,
    driver: &'static str,
    source: FileSource,
    serving: Serving,
    guests: BTreeMap<SessionHandle, Guest>,
    progress: Progress,
    /// The loop's clock stands still within a step; this one measures.
    clock: Clock,
    /// A delivery was pulled whole: another one may begin at once.
    hungry: bool,
    /// How the command ends, and until when its last words may take to be acknowledged.
    outcome: Option<(Result<()>, Instant)>,
    stopping: bool,
    /// That the last announcement failed.
    said_unannounced: bool,
}

impl Sender {
    pub(super) fn new(output: Output, driver: &'static str, source: FileSource, serving: Serving) -> Self {
        Self {
            output,
            driver,
            source,
            serving,
            guests: BTreeMap::new(),
            progress: Progress::new(output, "sending"),
            clock: Clock::new(),
            hungry: false,
            outcome: None,
            stopping: false,
            said_unannounced: false,
        }
    }

    /// How the command ends.
    pub(super) fn finish(self) -> Result<()> {
        self.outcome.map_or(Err(Failure::Interrupted), |(outcome, _)| outcome)
    }

    /// The session's guest, made known to the provider when it first says something.
    fn guest(&mut self, session: SessionHandle) -> &mut Guest {
        self.guests.entry(session).or_insert_with(|| {
            // There are as many places as sessions.
            let _ = self.serving.provider.open(session);
            Guest::default()
        })
    }

    /// Begins to end: the last messages still leave.
    fn end(&mut self, now: Instant, outcome: Result<()>) {
        if self.outcome.is_none() {
            self.progress.clear();
            let farewell = if outcome.is_ok() { LAST_ANSWER } else { FAREWELL };
            self.outcome = Some((outcome, now.saturating_add(farewell)));
        }
    }

    fn take_provider_events(&mut self, now: Instant, reason: Option<CloseReason>) {
        while let Some((session, event)) = self.serving.provider.poll_event() {
            match event {
                ProviderEvent::Started { transfer, .. } => self.on_started(now, session, transfer),
                ProviderEvent::Confirmed { transfer, .. } => self.on_confirmed(now, session, transfer),
                ProviderEvent::Failed { transfer, failure, .. } => {
                    self.on_failed(now, session, transfer, failure, reason);
                }
                _ => {}
            }
        }
    }

    fn on_started(&mut self, now: Instant, session: SessionHandle, transfer: u32) {
        let started = self.clock.now();
        let guest = self.guest(session);
        guest.begin(transfer, started, now);
        let line = format!("sending to {}", guest.name());
        self.note(&line);
    }

    fn on_confirmed(&mut self, now: Instant, session: SessionHandle, transfer: u32) {
        let Some(guest) = self.guests.get_mut(&session) else { return };
        let took =
            guest.end(transfer).map(|started| self.clock.now().saturating_since(started)).unwrap_or_default();
        self.progress.clear();
        let event = Confirmed {
            bytes: self.serving.size,
            seconds: took.as_secs_f64(),
            hash: &self.serving.hash,
            driver: self.driver,
            peer: &guest.peer,
            address: &guest.address,
            peak_rss: memory::peak(),
            files: self.serving.files,
        };
        self.output.event(&event);
        let line = format!(
            "delivered to {}: {} in {:.2} s",
            guest.name(),
            size::shown(self.serving.size),
            took.as_secs_f64()
        );
        if !self.output.json {
            self.note(&line);
        }
        if !self.serving.keep {
            self.end(now, Ok(()));
        }
    }

    fn on_failed(
        &mut self,
        now: Instant,
        session: SessionHandle,
        transfer: u32,
        why: Why,
        reason: Option<CloseReason>,
    ) {
        let guest = self.guest(session);
        guest.end(transfer);
        guest.drop_transfer(transfer);
        let name = guest.name();
        let line = match why {
            Why::Ended(Code::CHANGED) => {
                let changed = self.source.changed();
                self.serving.provider.remove(self.serving.content, Code::CHANGED);
                self.end(now, Err(changed));
                return;
            }
            Why::Cancelled(Code::STOPPED) => {
                format!("{name} stopped the transfer: send again if that was a mistake")
            }
            Why::Cancelled(code) => format!("{name} ended the transfer: {code}; send again"),
            // It may come back.
            Why::SessionClosed => {
                let how = match reason {
                    Some(CloseReason::IdleTimeout) => "is gone",
                    Some(CloseReason::Peer(_)) => "closed the session",
                    _ => "lost its session",
                };
                self.note(&format!("{name} {how} before it had everything: still serving"));
                return;
            }
            _ => format!("the transfer to {name} failed: send again"),
        };
        let Serving { keep, announced, .. } = self.serving;
        if keep || announced || self.guests.values().any(Guest::is_fetching) {
            self.note(&line);
        } else {
            self.end(now, Err(failed(line)));
        }
    }

    /// Names who does nothing, and gives it up.
    fn watch(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let provider = &self.serving.provider;
        let mut lines = Vec::new();
        let mut gone = Vec::new();
        for (&session, guest) in &mut self.guests {
            match guest.check(now, |transfer| provider.delivered(session, transfer)) {
                Stall::No if guest.is_idle(now) => {
                    if let Some(mut session) = endpoint.session(session) {
                        session.close(now, 0);
                    }
                }
                Stall::No => {}
                Stall::Warn => lines.push(format!("nothing from {} for 5 s", guest.name())),
                Stall::GiveUp => gone.push(session),
            }
        }
        for line in lines {
            self.note(&line);
        }
        for session in gone {
            self.give_up(now, session, endpoint);
        }
    }

    fn give_up(&mut self, now: Instant, session: SessionHandle, endpoint: &mut Endpoint) {
        let Some(guest) = self.guests.remove(&session) else { return };
        self.serving.provider.close(session);
        while self.serving.provider.poll_event().is_some() {}
        if let Some(mut session) = endpoint.session(session) {
            session.close(now, 0);
        }
        let line =
            format!("nothing from {} for {} s: gave it up; still serving", guest.name(), GIVE_UP.as_secs());
        self.note(&line);
    }

    /// What became of announcements.
    fn tell_news(&mut self) {
        while let Some(news) = self.serving.announcer.as_ref().and_then(Announcer::news) {
            match news {
                Ok(()) => {
                    self.said_unannounced = false;
                    self.output.event(&Announced { hash: &self.serving.hash });
                    self.note("announced: others find it by its hash");
                }
                // Once, and not at each try.
                Err(failure) if !std::mem::replace(&mut self.said_unannounced, true) => {
                    self.note(&format!("not announced: {failure}; trying again"));
                }
                Err(_) => {}
            }
        }
    }

    fn show_progress(&mut self) {
        let delivered = |(session, guest): (&SessionHandle, &Guest)| {
            guest.transfers().filter_map(|transfer| self.serving.provider.delivered(*session, transfer)).max()
        };
        if let Some(most) = self.guests.iter().filter_map(delivered).max() {
            self.progress.set(most, Some(self.serving.size));
        }
    }

    fn note(&mut self, line: &str) {
        self.progress.clear();
        self.output.note(line);
    }

    /// Whether every last word has arrived, or has had its time.
    fn has_left(&self, now: Instant) -> bool {
        let Some((_, until)) = &self.outcome else { return false };
        now >= *until || self.guests.values().all(Guest::has_left)
    }
}

impl Source for Sender {
    fn fill(&mut self, session: SessionHandle, stream: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        let Self { guests, source, serving, hungry, .. } = self;
        let Some(flight) = guests.get_mut(&session).and_then(|guest| guest.flight(stream)) else { return 0 };
        let delivery = flight.delivery;
        let filled = delivery.fill(offset, buf, |offset, buf| source.read(offset, buf));
        if filled < buf.len() {
            serving.provider.on_failed(session, &delivery, Code::CHANGED);
            return 0;
        }
        if flight.pulled(offset + filled as u64) {
            serving.provider.on_pulled(session, &delivery);
            *hungry = true;
        }
        filled
    }

    fn lend(&mut self, session: SessionHandle, stream: StreamId, offset: u64, len: usize) -> Option<&[u8]> {
        let Self { guests, source, serving, hungry, .. } = self;
        let flight = guests.get_mut(&session)?.flight(stream)?;
        let in_chunk = offset.checked_sub(DELIVERY_HEADER as u64)?;
        let delivery = flight.delivery;
        let lent = source.lend(delivery.offset() + in_chunk, len)?;
        if flight.pulled(offset + len as u64) {
            serving.provider.on_pulled(session, &delivery);
            *hungry = true;
        }
        Some(lent)
    }
}

impl App for Sender {
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn {
        self.hungry = false;
        if self.stopping && self.outcome.is_none() {
            self.serving.provider.remove(self.serving.content, Code::STOPPED);
            self.end(now, Err(Failure::Interrupted));
        }
        self.take_provider_events(now, None);
        self.tell_news();
        let leaving = self.outcome.is_some();
        for (&session, guest) in &mut self.guests {
            if let Some(mut view) = endpoint.session(session) {
                guest.turn(now, &mut view, session, &mut self.serving.provider, leaving);
            }
        }
        if !leaving {
            self.watch(now, endpoint);
            self.show_progress();
        }
        if !self.has_left(now) {
            return Turn::Continue;
        }
        for session in self.guests.keys() {
            if let Some(mut session) = endpoint.session(*session) {
                session.close(now, 0);
            }
        }
        Turn::Stop
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        let Payload::Stream { session, stream, offset, data, .. } = payload else { return };
        self.guest(session);
        let provider = &mut self.serving.provider;
        if let Some(guest) = self.guests.get_mut(&session) {
            guest.receive(stream, offset, data, |bytes| provider.handle(session, bytes));
        }
    }

    fn on_event(&mut self, now: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        match event {
            Event::Connected => {
                let view = endpoint.session(session);
                let known =
                    view.map(|view| (view.peer().map(|peer| peer.to_string()), view.remote().to_string()));
                let guest = self.guest(session);
                if let Some((Some(peer), address)) = known {
                    (guest.peer, guest.address) = (peer, address);
                }
                let line = format!("session with {}", guest.name());
                self.output.detail(line);
            }
            Event::PathChanged => {
                let address = endpoint.session(session).map(|view| view.remote().to_string());
                if let (Some(guest), Some(address)) = (self.guests.get_mut(&session), address) {
                    guest.address = address;
                }
            }
            Event::Closed(reason) => {
                self.serving.provider.close(session);
                self.take_provider_events(now, Some(reason));
                self.guests.remove(&session);
            }
            Event::Delivered(stream) => {
                if let Some(guest) = self.guests.get_mut(&session) {
                    guest.on_delivered(now, stream, |delivery| {
                        self.serving.provider.on_delivered(session, delivery);
                    });
                }
            }
            Event::Stopped { stream, code } => {
                if let Some(mut view) = endpoint.session(session) {
                    // Nothing more of it is wanted; a second reset changes nothing.
                    let _ = view.reset(stream, code);
                }
                if let Some(guest) = self.guests.get_mut(&session) {
                    guest.on_stopped(stream, |delivery| self.serving.provider.on_pulled(session, delivery));
                }
            }
            Event::StreamOpened(stream) if stream.dir() == Dir::Uni => self.guest(session).refuse(stream),
            _ => {}
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        if self.hungry {
            return Some(Instant::MIN);
        }
        // Who leaves looks at nobody any more: a check that is overdue would keep the loop awake.
        match &self.outcome {
            Some((_, until)) => Some(*until),
            None => self.guests.values().filter_map(Guest::wake_at).min(),
        }
    }
}

impl Task for Sender {
    fn stop(&mut self) {
        self.stopping = true;
    }
}

#[cfg(test)]
mod tests {
    use wraith_proto::{Config, Identity, Peer, Via};
    use wraith_transfer_proto::{Access, Kind, ProviderLimits, Tree};

    use super::*;
    use crate::transfer::files::Files;

    /// Serves a file of seven bytes.
    fn sender() -> (Sender, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"content").unwrap();
        let mut provider = Provider::new(ProviderLimits::default(), [1; 32]);
        let content = provider.add(Tree::of(b"content").unwrap(), Kind::File, Access::Announced).unwrap();
        let (hash, files, keep, announced) = (String::new(), "std", false, false);
        let serving = Serving { provider, content, size: 7, hash, files, keep, announced, announcer: None };
        let source = FileSource::open(&path, Files::Std).unwrap();
        (Sender::new(Output::SILENT, "none", source, serving), folder)
    }

    fn session() -> SessionHandle {
        let identity = Identity::from_seed([1; 32]);
        let peer = Peer { addr: "127.0.0.1:9".parse().unwrap(), id: None };
        let mut endpoint = Endpoint::new(Config::new(identity, b"test"), [1; 32], Instant::MIN).unwrap();
        endpoint.connect(Instant::MIN, peer, Via(0)).unwrap()
    }

    fn at(millis: u64) -> Instant {
        Instant::MIN.saturating_add(Duration::from_millis(millis))
    }

    #[test]
    fn a_sender_that_leaves_is_not_kept_awake_by_checks_of_its_guests() {
        let (mut sender, _folder) = sender();
        sender.guest(session()).begin(0, at(0), at(0));
        assert_eq!(sender.wake_at(), Some(at(5_000)));
        sender.end(at(4_900), Ok(()));
        assert_eq!(sender.wake_at(), Some(at(7_900)));
    }

    #[test]
    fn a_receiver_that_is_lost_may_come_back_and_one_that_stops_ends_the_sender() {
        let (mut sender, _folder) = sender();
        let session = session();
        for reason in [CloseReason::IdleTimeout, CloseReason::Peer(0), CloseReason::Violation] {
            sender.guest(session).begin(0, at(0), at(0));
            sender.on_failed(at(1), session, 0, Why::SessionClosed, Some(reason));
            assert!(sender.outcome.is_none(), "{reason:?}");
        }
        sender.guest(session).begin(1, at(2), at(2));
        sender.on_failed(at(3), session, 1, Why::Cancelled(Code::STOPPED), None);
        assert!(matches!(sender.outcome, Some((Err(Failure::Failed(_)), _))));
    }
}
