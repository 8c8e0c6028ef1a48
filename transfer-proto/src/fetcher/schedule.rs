//! What to want next, and of whom.

use super::source::{Source, State};
use super::{Content, FetchId, Fetcher};
use crate::message::{ChunkBits, Message};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// How far ahead of the next chunk its list is asked for.
const AHEAD: u64 = 256;

impl<S: Copy + Ord, K: Copy + Eq> Fetcher<S, K> {
    /// Wants as many chunks as there are free buffers, the last chunk of each content first.
    ///
    /// Runs whenever a buffer or a list comes free, so its work is bounded by the buffers.
    pub(super) fn schedule(&mut self) {
        // Each chunk that has not begun to arrive has a buffer set aside, or has one before its header came.
        let busy = self.sources.iter().filter(|(_, state)| !state.asks.is_empty());
        let aside = busy.map(|(&source, _)| self.owes(source).saturating_sub(self.headless(source))).sum();
        let mut free = self.pool.len().saturating_sub(aside);
        let per_source = self.limits.per_source.max(1);
        for (&fetch, content) in &mut self.contents {
            if content.verifier.is_none() || content.complete {
                continue;
            }
            let mut picks = Vec::new();
            while free > 0
                && let Some(source) = least_busy(&self.sources, fetch, content, per_source)
            {
                let Some(chunk) = content.next_chunk() else {
                    break;
                };
                if !content.want(chunk, source) {
                    break;
                }
                picks.push((source, chunk));
                free -= 1;
            }
            ask_for_lists(&mut self.sources, fetch, content);
            send_wants(&mut self.sources, fetch, &picks);
        }
    }
}

impl<S: Copy + Eq> Content<S> {
    /// The last chunk while it has not proven the size, then the first that is missing.
    fn next_chunk(&self) -> Option<u64> {
        let last = self.last_chunk()?;
        if !self.proven && self.missing.contains(last) { Some(last) } else { self.missing.first() }
    }

    /// Makes `chunk` a debt of `source`, if the list above it is there.
    fn want(&mut self, chunk: u64, source: S) -> bool {
        let Some(Ok(expected)) = self.verifier.as_mut().map(|verifier| verifier.expected(chunk)) else {
            return false;
        };
        self.missing.remove(chunk..chunk + 1);
        self.wanted.push(super::content::Wanted { chunk, expected, source, arriving: false });
        true
    }
}

/// The source that offers the size in use and owes least, if that is less than `most`.
fn least_busy<S: Copy + Ord>(
    sources: &BTreeMap<S, Source>,
    fetch: FetchId,
    content: &Content<S>,
    most: usize,
) -> Option<S> {
    let size = content.size()?;
    let offers = |state: &Source| {
        state.asks.iter().any(|ask| ask.fetch == fetch && ask.state == State::Offered { size })
    };
    let owes = |source: S| content.wanted.iter().filter(|wanted| wanted.source == source).count();
    sources
        .iter()
        .filter(|(_, state)| offers(state))
        .map(|(&source, _)| (owes(source), source))
        .filter(|(owes, _)| *owes < most)
        .min()
        .map(|(_, source)| source)
}

/// Asks for the lists above the next chunk, the first missing one and one further on, each once.
fn ask_for_lists<S: Copy + Ord>(sources: &mut BTreeMap<S, Source>, fetch: FetchId, content: &mut Content<S>) {
    let first = content.missing.first();
    let ahead = first.map(|chunk| chunk + AHEAD).filter(|chunk| content.missing.contains(*chunk));
    for chunk in [content.next_chunk(), first, ahead].into_iter().flatten() {
        let Some(Err(list)) = content.verifier.as_mut().map(|verifier| verifier.expected(chunk)) else {
            continue;
        };
        if content.lists.iter().any(|(asked, _)| *asked == list) {
            continue;
        }
        let Some(source) = least_busy(sources, fetch, content, usize::MAX) else {
            return;
        };
        content.lists.push((list, source));
        if let Some(state) = sources.get_mut(&source)
            && let Some(transfer) = state.asks.iter().find(|ask| ask.fetch == fetch).map(|ask| ask.transfer)
        {
            state.writer.push(&Message::GetList { transfer, list });
        }
    }
}

/// Tells each source what it owes now: as few messages as reach over the chunks in their order.
fn send_wants<S: Copy + Ord>(sources: &mut BTreeMap<S, Source>, fetch: FetchId, picks: &[(S, u64)]) {
    for (source, state) in sources {
        let Some(transfer) = state.asks.iter().find(|ask| ask.fetch == fetch).map(|ask| ask.transfer) else {
            continue;
        };
        let mut open: Option<ChunkBits> = None;
        for (_, chunk) in picks.iter().filter(|(picked, _)| picked == source) {
            let fits = open.as_mut().is_some_and(|chunks| chunks.insert(*chunk));
            if !fits && let Some(chunks) = open.replace(ChunkBits::of(*chunk)) {
                state.writer.push(&Message::Want { transfer, chunks });
            }
        }
        if let Some(chunks) = open {
            state.writer.push(&Message::Want { transfer, chunks });
        }
    }
}
