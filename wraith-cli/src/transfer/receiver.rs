//! The application behind `receive`: one content from the first source that answers.

mod link;
mod search;

use std::time::Duration;

use wraith_drivers::{App, Clock, Turn};
use wraith_proto::crypto::Suite;
use wraith_proto::{CloseReason, Dir, Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId};
use wraith_transfer_proto::{Code, EndReason, FetchEvent, FetchId, FetchLimits, Fetcher, Request, Token};

use super::FAREWELL;
use super::dialer::Dialer;
use super::progress::Progress;
use super::quest::Quest;
use super::sink::{Kept, Sink, Wake};
use super::watch::{GIVE_UP, Stall};
use crate::address::Target;
use crate::cipher;
use crate::drive::Task;
use crate::failure::{Failure, Result, failed};
use crate::output::Output;

use link::Link;
use search::Search;

/// Buffers of 1 MiB: what is on its way and what is being written.
const BUFFERS: usize = 8;

/// How often to look whether chunks are written, when nothing else happens.
const LOOK: Duration = Duration::from_millis(1);

/// How long the source may take to say that it knows of the end; where the patience is longer, as long as that.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(5);

/// What to fetch, from whom, and where to.
pub(super) struct Order {
    pub(super) request: Request,
    /// That of the ticket; whoever has announced the content asks for none.
    pub(super) token: Option<Token>,
    pub(super) dialer: Dialer,
    /// Networks that may name others.
    pub(super) quest: Quest,
    /// How long to look for a source that does not answer or was lost; zero gives up at once.
    pub(super) patience: Duration,
    pub(super) sink: Sink,
    pub(super) wake: Wake,
}

/// A content that is verified and stored.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) bytes: u64,
    /// From the first `Get` to the confirmation.
    pub(super) took: Duration,
    pub(super) kept: Kept,
    pub(super) peer: String,
    pub(super) address: String,
    /// The suite that protected the session.
    pub(super) suite: &'static str,
}

/// Fetches one content.
pub(super) struct Receiver {
    output: Output,
    progress: Progress,
    fetcher: Fetcher<SessionHandle, StreamId>,
    fetch: FetchId,
    token: Option<Token>,
    dialer: Dialer,
    quest: Quest,
    patience: Duration,
    search: Option<Search>,
    sink: Sink,
    wake: Wake,
    link: Option<Link>,
    /// A session with a peer that has nothing, to be closed.
    left: Option<SessionHandle>,
    /// Whom the content came from, and the suite of that session.
    source: Option<(Target, &'static str)>,
    /// The source knows of the end, or cannot be told.
    told: bool,
    /// Bytes of the content, once they are all there.
    complete: Option<u64>,
    outcome: Option<Result<Received>>,
    /// Until when last words may take to be acknowledged, once the outcome is known.
    leave_at: Option<Instant>,
    /// When to look whether chunks are written.
    look_at: Option<Instant>,
    stopping: bool,
    /// The loop's clock stands still within a step; this one measures.
    clock: Clock,
    asked_at: Instant,
}

impl Receiver {
    pub(super) fn new(output: Output, progress: Progress, order: Order) -> Self {
        let Order { request, token, dialer, quest, patience, sink, wake } = order;
        let limits = FetchLimits { buffers: BUFFERS, per_source: BUFFERS, ..FetchLimits::default() };
        let mut fetcher = Fetcher::new(limits);
        let fetch = fetcher.fetch(request);
        Self {
            output,
            progress,
            fetcher,
            fetch,
            token,
            dialer,
            quest,
            patience,
            search: None,
            sink,
            wake,
            link: None,
            left: None,
            source: None,
            told: false,
            complete: None,
            outcome: None,
            leave_at: None,
            look_at: None,
            stopping: false,
            clock: Clock::new(),
            asked_at: Instant::MIN,
        }
    }

    /// How the command ends.
    pub(super) fn finish(self) -> Result<Received> {
        self.outcome.unwrap_or(Err(Failure::Interrupted))
    }

    /// The transfer has failed: nothing of it stays, and the source hears why.
    fn fail(&mut self, now: Instant, failure: Failure, code: Code) {
        if self.outcome.is_none() {
            self.progress.clear();
            self.sink.give_up();
            self.fetcher.cancel(self.fetch, code);
            self.outcome = Some(Err(failure));
            self.leave_at = Some(now.saturating_add(FAREWELL));
        }
    }

    /// Ctrl-C. What is just getting its name ends as it ends.
    fn interrupt(&mut self, now: Instant) {
        if self.outcome.is_some() {
            // Whoever stops it does not want to wait for a source that is silent.
            let by = now.saturating_add(FAREWELL);
            self.leave_at = self.leave_at.map(|at| at.min(by));
        } else if self.sink.give_up() {
            self.fail(now, Failure::Interrupted, Code::STOPPED);
        }
    }

    /// Whether there is something to fetch from the source, or to tell it.
    fn wants_source(&self) -> bool {
        !self.told && !matches!(self.outcome, Some(Err(_)))
    }

    fn on_connected(&mut self, now: Instant, endpoint: &mut Endpoint, session: SessionHandle) {
        let wanted = self.link.is_none() || self.search.is_some();
        if !wanted || !self.wants_source() {
            return;
        }
        let Some(candidate) = self.dialer.win(session, now, endpoint) else { return };
        self.leave_old_link(now, endpoint);
        self.quest.end_wait();
        let Some(mut view) = endpoint.session(session) else { return };
        // From here on it is the one that has answered, also if anybody might have.
        let Some(id) = candidate.id.or(view.peer()) else { return };
        let target = Target { id, addr: candidate.addr };
        // A fresh session has room for one stream, unless the peer allows none.
        let Ok(stream) = view.open(Dir::Bi) else {
            let message = format!("{target} takes no requests: use the same version at both ends");
            self.fail_at(now, target, failed(message));
            return;
        };
        let suite = view.suite().map_or("none", Suite::name);
        self.output.detail(format_args!("session with {target}, {}", cipher::described(suite)));
        self.link = Some(Link::new(session, target, stream, now));
        self.source = Some((target, suite));
        self.fetcher.add_source(session);
        if self.asked_at == Instant::MIN {
            self.asked_at = self.clock.now();
        }
        // The first request of a new source is always taken.
        let _ = self.fetcher.ask(self.fetch, session, self.token.unwrap_or_default());
    }

    fn on_closed(&mut self, now: Instant, endpoint: &Endpoint, session: SessionHandle, reason: CloseReason) {
        self.dialer.on_closed(now, session, reason, endpoint);
        if let Some(link) = self.link.take_if(|link| link.session == session) {
            let reason = if link.is_broken() { CloseReason::Violation } else { reason };
            self.fetcher.remove_source(session);
            if !self.may_return(now, link.target, reason) {
                self.fail_at(now, link.target, lost(&link.target.to_string(), reason));
            }
        } else if self.link.is_none()
            && let Some(failure) = self.dialer.failure()
        {
            self.fail_source(now, failure);
        }
    }

    /// Writes what is verified, and makes it last when it is all there.
    fn store(&mut self, now: Instant) {
        if self.outcome.is_none()
            && let Err(failure) = self.write_ready()
        {
            self.fail(now, failure, Code::NOT_STORED);
        }
        self.take_fetch_events(now);
        if self.outcome.is_none()
            && let Some(bytes) = self.complete
            && let Some(kept) = self.sink.finished()
        {
            match kept {
                Ok(kept) => self.confirm(now, bytes, kept),
                Err(failure) => {
                    let code = if failure == Failure::Interrupted { Code::STOPPED } else { Code::NOT_STORED };
                    self.fail(now, failure, code);
                }
            }
        }
    }

    fn write_ready(&mut self) -> Result<()> {
        while let Some(chunk) = self.fetcher.poll_ready() {
            self.sink.write(chunk)?;
        }
        while let Some(chunk) = self.sink.written()? {
            self.fetcher.written(chunk);
        }
        Ok(())
    }

    fn take_fetch_events(&mut self, now: Instant) {
        while let Some(event) = self.fetcher.poll_event() {
            match event {
                FetchEvent::SizeProven { size, .. } => {
                    if let Err(failure) = self.sink.set_len(size) {
                        self.fail(now, failure, Code::NOT_STORED);
                    }
                }
                FetchEvent::Complete { .. } => {
                    self.complete = self.fetcher.progress(self.fetch).map(|progress| progress.written);
                    self.sink.finish(std::sync::Arc::clone(&self.wake));
                }
                // Both ends know: nothing is left to say.
                FetchEvent::Acknowledged { .. } => self.told = true,
                // Sessions that are over are dealt with where they end.
                FetchEvent::SourceEnded { source, why, .. } => {
                    if let Some(target) =
                        self.link.as_ref().filter(|link| link.session == source).map(|link| link.target)
                    {
                        let failure = ended(&target.to_string(), why, self.token.is_some());
                        self.fail_at(now, target, failure);
                    }
                }
                _ => {}
            }
        }
    }

    /// Everything is verified and stored: says so.
    fn confirm(&mut self, now: Instant, bytes: u64, kept: Kept) {
        let took = self.clock.now().saturating_since(self.asked_at);
        self.progress.clear();
        // It is complete.
        let _ = self.fetcher.confirm(self.fetch);
        let names = |(target, suite): (Target, _)| (target.id.to_string(), target.addr.to_string(), suite);
        let (peer, address, suite) = self.source.map(names).unwrap_or_default();
        self.outcome = Some(Ok(Received { bytes, took, kept, peer, address, suite }));
        self.leave_at = Some(now.saturating_add(self.patience.max(ACKNOWLEDGEMENT)));
    }

    /// Names a source that does nothing, and gives it up.
    fn watch(&mut self, now: Instant) {
        let Some(link) = &mut self.link else { return };
        // Then it is this end that waits.
        if self.sink.is_busy() {
            link.watch.moved(now);
        }
        let name = link.target;
        match link.watch.check(now) {
            Stall::No => {}
            Stall::Warn => {
                self.progress.clear();
                self.output.note(format_args!("no data from {name} for 5 s"));
            }
            Stall::GiveUp => {
                let message = format!(
                    "no data from {name} for {} s: gave up; check the sender and retry",
                    GIVE_UP.as_secs()
                );
                self.fail_at(now, name, failed(message));
            }
        }
    }

    fn show_progress(&mut self, now: Instant) {
        if let Some(progress) = self.fetcher.progress(self.fetch) {
            self.quest.progress(now, progress.verified);
            let total = progress.size.filter(|_| progress.proven);
            self.progress.set(progress.verified, total);
        }
    }

    /// Writes what is due.
    fn talk(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let leaving = matches!(self.outcome, Some(Err(_)));
        let (Some(link), fetcher) = (&mut self.link, &mut self.fetcher) else { return };
        let session = link.session;
        if let Some(mut view) = endpoint.session(session) {
            link.turn(now, &mut view, |buffer| fetcher.poll_control(session, buffer), leaving);
        }
    }

    /// Whether the end is known, and the source knows it or has had its time.
    fn is_done(&self, now: Instant) -> bool {
        let heard = match &self.outcome {
            None => return false,
            Some(Ok(_)) => self.told,
            Some(Err(_)) => self.link.as_ref().is_none_or(Link::has_left),
        };
        heard || self.leave_at.is_some_and(|at| now >= at)
    }
}

/// What the end of the source's session means.
fn lost(name: &str, reason: CloseReason) -> Failure {
    failed(match reason {
        CloseReason::IdleTimeout => {
            format!(
                "{name} is gone before everything arrived: retry when it is back, with its new ticket if it was started again"
            )
        }
        CloseReason::Refused => {
            format!("{name} does not send to this identity: use --identity, or ask the sender")
        }
        CloseReason::Peer(_) => {
            format!("{name} closed the session before everything arrived: get a new ticket and retry")
        }
        // It answered the first message, and nothing since.
        CloseReason::HandshakeTimeout => {
            format!("{name} began a session and fell silent: it may serve as many as it can; retry later")
        }
        CloseReason::Violation => format!("{name} broke the protocol: use the same version at both ends"),
        _ => format!("the session with {name} ended before everything arrived: retry"),
    })
}

/// What the end of the source's work means.
fn ended(name: &str, why: EndReason, has_ticket: bool) -> Failure {
    let remedy = match why {
        EndReason::Refused(Code::BUSY) => "retry later",
        EndReason::Refused(_) if !has_ticket => {
            return failed(format!("{name} does not announce this content: get a ticket from its owner"));
        }
        EndReason::Refused(_) | EndReason::WrongSize => "get a new ticket from the sender",
        EndReason::Cancelled(Code::STOPPED) => "ask the sender to send it again",
        EndReason::Cancelled(_) => "ask the sender for a new ticket",
        EndReason::Violation(_) => "use the same version at both ends",
        _ => "do not trust this sender with this ticket; get a new one",
    };
    failed(format!("{name}: {why}; {remedy}"))
}

impl Source for Receiver {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl App for Receiver {
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn {
        if self.stopping {
            self.interrupt(now);
        }
        if let Some(mut session) = self.left.take().and_then(|session| endpoint.session(session)) {
            session.close(now, 0);
        }
        if self.wants_source() {
            self.look(now, endpoint);
        }
        self.store(now);
        self.look_at = self.sink.is_writing().then(|| now.saturating_add(LOOK));
        if self.outcome.is_none() && self.complete.is_none() {
            self.watch(now);
            self.show_progress(now);
        }
        self.talk(now, endpoint);
        // What follows from the last words comes out now.
        self.take_fetch_events(now);
        if !self.is_done(now) {
            return Turn::Continue;
        }
        if let Some(mut session) = self.link.as_ref().and_then(|link| endpoint.session(link.session)) {
            session.close(now, 0);
        }
        self.dialer.stop(now, endpoint);
        Turn::Stop
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        let Payload::Stream { session, stream, offset, data, fin } = payload else { return };
        let Some(link) = self.link.as_mut().filter(|link| link.session == session) else { return };
        let fetcher = &mut self.fetcher;
        link.moved = true;
        if stream.dir() == Dir::Bi {
            link.receive(stream, offset, data, |bytes| fetcher.handle_control(session, bytes));
        } else if !link.is_refused(stream)
            && let Err(error) = fetcher.on_stream_data(session, stream, offset, data, fin)
        {
            link.refuse(stream, error.code());
        }
    }

    fn on_event(&mut self, now: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        match event {
            Event::Connected => self.on_connected(now, endpoint, session),
            // Of a dial to whoever is there; nobody dials here.
            Event::Authorize if self.dialer.is_dialling(session) => {
                if let Some(mut view) = endpoint.session(session) {
                    // It may have ended meanwhile.
                    let _ = view.authorize(now);
                }
            }
            Event::Closed(reason) => self.on_closed(now, endpoint, session, reason),
            Event::PathChanged => {
                let address = endpoint.session(session).map(|view| view.remote());
                if let (Some(link), Some(address)) = (&mut self.link, address)
                    && link.session == session
                {
                    // There it has answered last, and there it is looked for if it is lost (`PROTO §11.8`).
                    link.target.addr = address;
                    self.source = self.source.map(|(_, suite)| (link.target, suite));
                }
            }
            Event::Reset { stream, .. } => self.fetcher.on_stream_end(session, stream),
            Event::Delivered(stream) => {
                if let Some(link) = self.link.as_mut().filter(|link| link.session == session) {
                    link.on_delivered(stream);
                }
            }
            _ => {}
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        let watching = self.outcome.is_none() && self.complete.is_none();
        let search = self.search_wake_at().filter(|_| self.wants_source());
        let watch = self.link.as_ref().filter(|_| watching).map(|link| link.watch.next());
        [search, watch, self.leave_at, self.look_at].into_iter().flatten().min()
    }
}

impl Task for Receiver {
    fn stop(&mut self) {
        self.stopping = true;
    }
}
