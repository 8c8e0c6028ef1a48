//! Delivery streams: which chunk they carry, and what becomes of it.

use super::assembly::Assembly;
use super::source::State;
use super::{EndReason, FetchEvent, FetchId, Fetcher, ReadyChunk, StreamError};
use crate::code::Code;
use crate::delivery::DeliveryHeader;

/// Resets of deliveries in one transfer without the Cancel that they announce (`PROTO §10.8`).
const MAX_RESETS: u8 = 16;

impl<S: Copy + Ord, K: Copy + Eq> Fetcher<S, K> {
    /// Takes bytes of a unidirectional stream that `source` opened, from `offset` of the stream on; each byte
    /// once, in any order. `fin` says that the stream ends behind them.
    ///
    /// # Errors
    ///
    /// Why the stream is refused; the caller stops it with [`StreamError::code`] and passes no more of it. What
    /// that means for the source is told by [`FetchEvent::SourceEnded`], or the chunk is wanted again.
    pub fn on_stream_data(
        &mut self,
        source: S,
        stream: K,
        offset: u64,
        data: &[u8],
        fin: bool,
    ) -> Result<(), StreamError> {
        let Some(at) = self.find_or_bind(source, stream, data)? else {
            return Ok(());
        };
        let assembly = &mut self.assemblies[at];
        let known = assembly.header().is_some();
        let put = assembly.put(offset, data, fin);
        let header = assembly.header();
        let whole = assembly.is_whole();
        let result = match (put, header) {
            // The header first: only what was asked for can be a fault of length.
            (put, Some(header)) if !known => self.identify(source, &header).and(put),
            (put, _) => put,
        };
        let result = match result {
            Ok(()) if whole => self.finish(at),
            Ok(()) => return Ok(()),
            Err(error) => {
                self.refuse(at, error);
                Err(error)
            }
        };
        self.schedule();
        result
    }

    /// A unidirectional stream of `source` was reset. That is no fault by itself: a Cancel follows that says why
    /// (`PROTO §10.13`), and may be overtaken by several resets. Its chunk is wanted again, a bounded number of times.
    pub fn on_stream_end(&mut self, source: S, stream: K) {
        let Some(at) = self.position(source, stream) else {
            return;
        };
        let assembly = self.assemblies.swap_remove(at);
        self.stats.short += 1;
        let header = assembly.header();
        self.pool.push(assembly.buffer);
        if let Some(header) = header {
            self.want_again(source, &header);
            let ask = self.sources.get_mut(&source).and_then(|state| state.ask_mut(header.transfer));
            let resets = ask.map_or(0, |ask| {
                ask.resets += 1;
                ask.resets
            });
            if resets > MAX_RESETS {
                let code = Some(Code::BAD_DELIVERY);
                self.end_ask(source, header.transfer, EndReason::ShortDelivery, code);
            }
        }
        self.schedule();
    }

    fn position(&self, source: S, stream: K) -> Option<usize> {
        self.assemblies.iter().position(|assembly| assembly.source == source && assembly.stream == stream)
    }

    /// The assembly of the stream. A new one needs a debt of the source that no stream has claimed; what is
    /// empty needs none, as a bare end may follow a chunk that is already whole.
    fn find_or_bind(&mut self, source: S, stream: K, data: &[u8]) -> Result<Option<usize>, StreamError> {
        if let Some(at) = self.position(source, stream) {
            return Ok(Some(at));
        }
        if data.is_empty() {
            return Ok(None);
        }
        let buffer = if self.headless(source) < self.owes(source) { self.pool.pop() } else { None };
        let Some(buffer) = buffer else {
            self.stats.unsolicited += 1;
            return Err(StreamError::Unsolicited);
        };
        self.assemblies.push(Assembly::new(source, stream, buffer));
        Ok(Some(self.assemblies.len() - 1))
    }

    /// Whether the source owes the chunk that `header` names, in this length; if so, it has begun to arrive.
    fn identify(&mut self, source: S, header: &DeliveryHeader) -> Result<(), StreamError> {
        let fetch = self.fetch_of(source, header.transfer).ok_or(StreamError::Unsolicited)?;
        let content = self.contents.get_mut(&fetch).ok_or(StreamError::Unsolicited)?;
        let wanted = content
            .wanted
            .iter_mut()
            .find(|wanted| wanted.source == source && wanted.chunk == header.chunk && !wanted.arriving)
            .ok_or(StreamError::Unsolicited)?;
        wanted.arriving = true;
        let len = content.verifier.as_ref().map_or(0, |verifier| verifier.chunk_len(header.chunk));
        if len == header.len as usize { Ok(()) } else { Err(StreamError::WrongLength) }
    }

    fn fetch_of(&self, source: S, transfer: u32) -> Option<FetchId> {
        let asks = &self.sources.get(&source)?.asks;
        let ask = asks.iter().find(|ask| ask.transfer == transfer)?;
        matches!(ask.state, State::Offered { .. }).then_some(ask.fetch)
    }

    /// Verifies a chunk that is all there.
    fn finish(&mut self, at: usize) -> Result<(), StreamError> {
        let (source, Some(header)) = (self.assemblies[at].source, self.assemblies[at].header()) else {
            return Ok(());
        };
        let Some(fetch) = self.fetch_of(source, header.transfer) else {
            self.refuse(at, StreamError::Unsolicited);
            return Err(StreamError::Unsolicited);
        };
        let Some(content) = self.contents.get_mut(&fetch) else {
            self.refuse(at, StreamError::Unsolicited);
            return Err(StreamError::Unsolicited);
        };
        let len = header.len as usize;
        let owed =
            content.wanted.iter().find(|wanted| wanted.source == source && wanted.chunk == header.chunk);
        let good = owed
            .is_some_and(|wanted| wanted.expected.matches(header.chunk, &self.assemblies[at].buffer[..len]));
        if !good {
            self.refuse(at, StreamError::BadChunk);
            return Err(StreamError::BadChunk);
        }
        content.settle(source, header.chunk);
        content.verified += u64::from(header.len);
        let buffer = self.assemblies.swap_remove(at).buffer;
        content.ready.push_back(ReadyChunk { fetch, chunk: header.chunk, len, buffer });
        self.stats.chunks += 1;
        if !content.proven && content.last_chunk() == Some(header.chunk) {
            content.proven = true;
            let size = content.size().unwrap_or(0);
            self.events.push_back(FetchEvent::SizeProven { fetch, size });
            self.end_other_sizes(fetch, size);
        }
        Ok(())
    }

    /// Who offered another size than the proven one was wrong.
    fn end_other_sizes(&mut self, fetch: FetchId, size: u64) {
        let wrong = |state: State| matches!(state, State::Offered { size: other } if other != size);
        while let Some((source, transfer)) = self.find_ask(|ask| ask.fetch == fetch && wrong(ask.state)) {
            self.end_ask(source, transfer, EndReason::WrongSize, Some(Code::WRONG_SIZE));
        }
    }

    /// Drops a stream that cannot be used. A fault of length ends the transfer; a bad or short chunk is wanted
    /// once more, and the second one ends it (`PROTO §10.8`).
    fn refuse(&mut self, at: usize, error: StreamError) {
        let assembly = self.assemblies.swap_remove(at);
        let (source, header) = (assembly.source, assembly.header());
        self.pool.push(assembly.buffer);
        match error {
            StreamError::Unsolicited => self.stats.unsolicited += 1,
            StreamError::WrongLength => self.stats.wrong_length += 1,
            StreamError::Short => self.stats.short += 1,
            StreamError::BadChunk => self.stats.bad_chunks += 1,
        }
        if error == StreamError::Unsolicited {
            return;
        }
        let Some(header) = header else {
            // It broke the form of every delivery, and hides whose chunk it owed.
            self.end_asks(source, EndReason::BadDelivery, Some(Code::BAD_DELIVERY));
            return;
        };
        self.want_again(source, &header);
        let ask = self.sources.get_mut(&source).and_then(|state| state.ask_mut(header.transfer));
        let strikes = ask.map_or(0, |ask| {
            ask.strikes += 1;
            ask.strikes
        });
        let (why, code) = match error {
            StreamError::WrongLength => (EndReason::BadDelivery, Code::BAD_DELIVERY),
            StreamError::Short => (EndReason::ShortDelivery, Code::BAD_DELIVERY),
            _ => (EndReason::BadChunk, Code::BAD_CHUNK),
        };
        if strikes >= 2 || error == StreamError::WrongLength {
            self.end_ask(source, header.transfer, why, Some(code));
        }
    }

    /// The source does not owe the chunk any more; it is missing again.
    fn want_again(&mut self, source: S, header: &DeliveryHeader) {
        let fetch = self.fetch_of(source, header.transfer);
        if let Some(content) = fetch.and_then(|fetch| self.contents.get_mut(&fetch))
            && content.settle(source, header.chunk).is_some()
        {
            content.missing.insert(header.chunk..header.chunk + 1);
        }
    }
}
