//! Receiving contents: what to ask of whom, and which bytes are good.
//!
//! One fetcher serves any number of contents from any number of sources (sessions). The caller opens one
//! bidirectional control stream in each session, writes what [`Fetcher::poll_control`] gives, feeds what
//! comes back to [`Fetcher::handle_control`], and feeds the unidirectional streams that the source opens to
//! [`Fetcher::on_stream_data`]. Verified chunks come out of [`Fetcher::poll_ready`], in buffers that go back
//! with [`Fetcher::written`].

mod assembly;
mod content;
mod control;
mod schedule;
mod source;
mod stream;
mod types;

use crate::code::Code;
use crate::message::{MAX_REQUESTS, MAX_WANTED, Message, Token};
use crate::tree::CHUNK;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use assembly::Assembly;
use content::{Content, End};
use source::{Ask, Source, State};

pub use types::{
    AskError, EndReason, FetchEvent, FetchId, FetchLimits, FetchProgress, FetchStats, NotComplete,
    ReadyChunk, Request, Resume, StreamError,
};

/// Receives contents from the sources `S`, whose streams are named by `K`.
#[derive(Debug)]
pub struct Fetcher<S, K> {
    limits: FetchLimits,
    /// Buffers that nothing is in.
    pool: Vec<Box<[u8]>>,
    contents: BTreeMap<FetchId, Content<S>>,
    sources: BTreeMap<S, Source>,
    assemblies: Vec<Assembly<S, K>>,
    events: VecDeque<FetchEvent<S>>,
    stats: FetchStats,
    next: u32,
}

impl<S: Copy + Ord, K: Copy + Eq> Fetcher<S, K> {
    /// A fetcher with all its buffers, [`FetchLimits::buffers`] MiB.
    pub fn new(limits: FetchLimits) -> Self {
        let buffers = limits.buffers.clamp(1, MAX_WANTED);
        Self {
            limits,
            pool: (0..buffers).map(|_| vec![0; CHUNK].into_boxed_slice()).collect(),
            contents: BTreeMap::new(),
            sources: BTreeMap::new(),
            assemblies: Vec::with_capacity(buffers),
            events: VecDeque::new(),
            stats: FetchStats::default(),
            next: 0,
        }
    }

    /// Begins a content; [`Fetcher::ask`] then says from whom.
    ///
    /// Each costs a look whenever a buffer comes free: begin a folder's files as their turn comes.
    pub fn fetch(&mut self, request: Request) -> FetchId {
        let id = FetchId(self.next);
        self.next = self.next.wrapping_add(1);
        self.contents.insert(id, Content::new(request));
        id
    }

    /// Takes a session as a source, with a control stream that has not carried anything yet.
    pub fn add_source(&mut self, source: S) {
        self.sources.entry(source).or_default();
    }

    /// Forgets a source whose session ended; what it owed is asked of others.
    pub fn remove_source(&mut self, source: S) {
        self.drop_source(source, EndReason::SessionClosed);
        self.schedule();
    }

    /// Asks `source` for the content `fetch`; `token` is the one of its ticket, zero for announced content.
    ///
    /// # Errors
    ///
    /// If there is no such content or source, it was asked already, or it is asked for too much at once.
    pub fn ask(&mut self, fetch: FetchId, source: S, token: Token) -> Result<(), AskError> {
        let content = self.contents.get(&fetch).ok_or(AskError::UnknownFetch)?;
        let state = self.sources.get_mut(&source).ok_or(AskError::UnknownSource)?;
        if state.asks.iter().any(|ask| ask.fetch == fetch) {
            return Err(AskError::AskedAlready);
        }
        if state.asks.len() >= self.limits.transfers.clamp(1, MAX_REQUESTS / 4) {
            return Err(AskError::TooMany);
        }
        let transfer = u32::try_from(state.next_transfer).map_err(|_| AskError::TooMany)?;
        state.next_transfer += 1;
        let Request { kind, hash, .. } = content.request;
        state.writer.push(&Message::Get { transfer, kind, hash, token });
        state.asks.push(Ask { transfer, fetch, state: State::Asked, strikes: 0, resets: 0 });
        Ok(())
    }

    /// The next verified chunk to write, once the content's size is proven; the buffer comes along.
    ///
    /// Every chunk goes back with [`Fetcher::written`]: the number of buffers is fixed.
    pub fn poll_ready(&mut self) -> Option<ReadyChunk> {
        let content =
            self.contents.values_mut().find(|content| content.proven && !content.ready.is_empty())?;
        let ready = content.ready.pop_front()?;
        content.writing += 1;
        Some(ready)
    }

    /// `chunk` is written: its buffer is free, and it counts. If its buffer was taken out and did not come back, it gets
    /// another one.
    pub fn written(&mut self, chunk: ReadyChunk) {
        if let Some(content) = self.contents.get_mut(&chunk.fetch) {
            content.writing = content.writing.saturating_sub(1);
            content.have.insert(chunk.chunk..chunk.chunk + 1);
            content.written += chunk.len as u64;
        }
        let fetch = chunk.fetch;
        let whole = chunk.buffer.len() == CHUNK;
        self.pool.push(if whole { chunk.buffer } else { vec![0; CHUNK].into_boxed_slice() });
        self.report_completion(fetch);
        self.schedule();
    }

    /// The content is stored for good: tells every source. Ends with [`FetchEvent::Acknowledged`] or
    /// [`FetchEvent::SourceEnded`] for each of them, and the content is forgotten if one has acknowledged it. If none has,
    /// it stays until [`Fetcher::cancel`]: a source that is asked in another session is told when it offers.
    ///
    /// # Errors
    ///
    /// If not every chunk is written, or there is no such content.
    pub fn confirm(&mut self, fetch: FetchId) -> Result<(), NotComplete> {
        let content = self.contents.get_mut(&fetch).filter(|content| content.complete).ok_or(NotComplete)?;
        let hash = content.request.hash;
        for state in self.sources.values_mut() {
            let Some(ask) = state.asks.iter_mut().find(|ask| ask.fetch == fetch) else {
                continue;
            };
            // Who has not answered yet is told when the offer comes.
            if matches!(ask.state, State::Offered { .. }) {
                ask.state = State::Confirming;
                let transfer = ask.transfer;
                state.writer.push(&Message::Done { transfer, hash });
            }
        }
        content.end = End::Confirmed;
        Ok(())
    }

    /// Gives a content up and tells its sources why; [`FetchEvent::SourceEnded`] follows for each.
    pub fn cancel(&mut self, fetch: FetchId, code: Code) {
        while let Some((source, transfer)) = self.find_ask(|ask| ask.fetch == fetch) {
            self.end_ask(source, transfer, EndReason::Stopped, Some(code));
        }
        if let Some(content) = self.contents.remove(&fetch) {
            self.pool.extend(content.ready.into_iter().map(|ready| ready.buffer));
        }
        self.schedule();
    }

    /// What happened, oldest first. Two events for each source that is asked, four for each content, at most.
    pub fn poll_event(&mut self) -> Option<FetchEvent<S>> {
        self.events.pop_front()
    }

    /// How far a content is; `None` if there is no such content.
    pub fn progress(&self, fetch: FetchId) -> Option<FetchProgress> {
        let content = self.contents.get(&fetch)?;
        let asks = self.sources.values().flat_map(|state| &state.asks);
        Some(FetchProgress {
            size: content.size(),
            proven: content.proven,
            verified: content.verified,
            written: content.written,
            wanted: content.wanted.len(),
            sources: asks.filter(|ask| ask.fetch == fetch).count(),
        })
    }

    /// The chunks of a content that are written, for a journal; `None` if there is no such content.
    pub fn have(&self, fetch: FetchId) -> Option<&crate::ChunkSet> {
        self.contents.get(&fetch).map(|content| &content.have)
    }

    /// Counters over all contents and sources.
    pub const fn stats(&self) -> &FetchStats {
        &self.stats
    }

    fn drop_source(&mut self, source: S, why: EndReason) {
        self.end_asks(source, why, None);
        self.sources.remove(&source);
        self.drop_assemblies(|assembly| assembly.source == source);
    }

    /// Ends everything that `source` does.
    fn end_asks(&mut self, source: S, why: EndReason, tell: Option<Code>) {
        while let Some(ask) = self.sources.get(&source).and_then(|state| state.asks.last()) {
            self.end_ask(source, ask.transfer, why, tell);
        }
    }

    /// Ends what `source` does for one content: its chunks go back to be wanted from others, and the caller
    /// hears why.
    fn end_ask(&mut self, source: S, transfer: u32, why: EndReason, tell: Option<Code>) {
        let Some(state) = self.sources.get_mut(&source) else {
            return;
        };
        let Some(place) = state.asks.iter().position(|ask| ask.transfer == transfer) else {
            return;
        };
        let fetch = state.asks.remove(place).fetch;
        if let Some(code) = tell {
            state.writer.push(&Message::Cancel { transfer, code });
        }
        if let Some(content) = self.contents.get_mut(&fetch) {
            content.give_back(source);
        }
        // Without any debt left, streams whose header is still to come cannot carry anything wanted either.
        let owes = self.owes(source) > 0;
        self.drop_assemblies(|assembly| {
            assembly.source == source && assembly.header().map_or(!owes, |header| header.transfer == transfer)
        });
        self.events.push_back(FetchEvent::SourceEnded { fetch, source, why });
        self.drop_claim_without_backer(fetch);
        self.forget_if_known(fetch);
    }

    /// A size that nobody claims any more, and that was never proven, is forgotten; another may be claimed.
    fn drop_claim_without_backer(&mut self, fetch: FetchId) {
        let Some(content) = self.contents.get_mut(&fetch) else {
            return;
        };
        let Some(size) = content.size().filter(|_| !content.proven) else {
            return;
        };
        let offered = |ask: &Ask| match ask.state {
            State::Offered { size } if ask.fetch == fetch => Some(size),
            _ => None,
        };
        let mut offers = self.sources.values().flat_map(|state| &state.asks).filter_map(offered);
        if offers.clone().any(|other| other == size) {
            return;
        }
        let next = offers.next();
        self.pool.extend(content.drop_claim().map(|ready| ready.buffer));
        if let Some(size) = next
            && content.claim(size, self.limits.lists).is_ok()
        {
            self.events.push_back(FetchEvent::Offered { fetch, size });
        }
    }

    fn report_completion(&mut self, fetch: FetchId) {
        if let Some(content) = self.contents.get_mut(&fetch)
            && !content.complete
            && content.is_whole()
        {
            content.complete = true;
            self.events.push_back(FetchEvent::Complete { fetch });
        }
    }

    fn forget_if_known(&mut self, fetch: FetchId) {
        let known = self.contents.get(&fetch).is_some_and(|content| content.end == End::Acknowledged);
        if known && self.find_ask(|ask| ask.fetch == fetch).is_none() {
            self.contents.remove(&fetch);
        }
    }

    /// Chunks that `source` owes and whose streams have not told their header.
    fn owes(&self, source: S) -> usize {
        let wanted = self.contents.values().flat_map(|content| &content.wanted);
        wanted.filter(|wanted| wanted.source == source && !wanted.arriving).count()
    }

    /// Streams of `source` whose header is still to come.
    fn headless(&self, source: S) -> usize {
        self.assemblies
            .iter()
            .filter(|assembly| assembly.source == source && assembly.header().is_none())
            .count()
    }

    fn find_ask(&self, wanted: impl Fn(&Ask) -> bool) -> Option<(S, u32)> {
        self.sources
            .iter()
            .find_map(|(&source, state)| Some((source, state.asks.iter().find(|ask| wanted(ask))?.transfer)))
    }

    /// Buffers of dropped assemblies go back to the pool.
    fn drop_assemblies(&mut self, goes: impl Fn(&Assembly<S, K>) -> bool) {
        let mut at = 0;
        while at < self.assemblies.len() {
            if goes(&self.assemblies[at]) {
                self.pool.push(self.assemblies.swap_remove(at).buffer);
            } else {
                at += 1;
            }
        }
    }
}
