//! A host that keeps all that happens, for tests to look at.

use std::collections::BTreeMap;

use wraith_proto::{Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId};

use crate::node::Host;

/// Records events and data, authorises everybody, and serves the content of attached streams.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Leaves [`Event::Authorize`] to the test.
    pub ask: bool,
    /// Every event, in order.
    pub events: Vec<(SessionHandle, Event)>,
    /// Every unreliable datagram, in order.
    pub datagrams: Vec<(SessionHandle, Vec<u8>)>,
    streams: BTreeMap<(SessionHandle, StreamId), ReceivedStream>,
    sources: BTreeMap<(SessionHandle, StreamId), Vec<u8>>,
}

/// What arrived of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReceivedStream {
    bytes: Vec<u8>,
    /// Received ranges, sorted and apart from each other.
    ranges: Vec<(u64, u64)>,
    end: Option<u64>,
    repeated: u64,
}

impl Recorder {
    /// An empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves `content` for an attached stream.
    pub fn serve(&mut self, session: SessionHandle, stream: StreamId, content: Vec<u8>) {
        self.sources.insert((session, stream), content);
    }

    /// What arrived of a stream, if anything did.
    pub fn stream(&self, session: SessionHandle, stream: StreamId) -> Option<&ReceivedStream> {
        self.streams.get(&(session, stream))
    }

    /// The streams of which anything arrived.
    pub fn streams(&self) -> impl Iterator<Item = (SessionHandle, StreamId, &ReceivedStream)> {
        self.streams.iter().map(|(&(session, stream), received)| (session, stream, received))
    }

    /// True if the event happened.
    pub fn saw(&self, session: SessionHandle, event: Event) -> bool {
        self.events.contains(&(session, event))
    }
}

impl ReceivedStream {
    /// Adds a piece.
    pub fn add(&mut self, offset: u64, data: &[u8], fin: bool) {
        let end = offset + data.len() as u64;
        if fin {
            self.end = Some(end);
        }
        if data.is_empty() {
            return;
        }
        if self.bytes.len() < end as usize {
            self.bytes.resize(end as usize, 0);
        }
        self.bytes[offset as usize..end as usize].copy_from_slice(data);
        self.cover(offset, end);
    }

    /// All bytes if the stream is complete.
    pub fn complete(&self) -> Option<&[u8]> {
        let end = self.end?;
        let whole = end == 0 || self.ranges == [(0, end)];
        (whole && self.bytes.len() as u64 == end).then_some(&self.bytes)
    }

    /// The bytes so far, zero where nothing arrived yet.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Received ranges, from and to, in order.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// Length of the stream, once its end is known.
    pub fn end(&self) -> Option<u64> {
        self.end
    }

    /// Bytes that arrived more than once; the core promises none.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    fn cover(&mut self, mut from: u64, mut to: u64) {
        let first = self.ranges.partition_point(|&(_, end)| end < from);
        let behind = self.ranges.partition_point(|&(start, _)| start <= to);
        for &(start, end) in &self.ranges[first..behind] {
            self.repeated += end.min(to).saturating_sub(start.max(from));
        }
        if let (Some(&(start, _)), Some(&(_, end))) = (self.ranges.get(first), self.ranges[..behind].last())
            && first < behind
        {
            from = from.min(start);
            to = to.max(end);
        }
        self.ranges.splice(first..behind, [(from, to)]);
    }
}

impl Host for Recorder {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        match payload {
            Payload::Stream { session, stream, offset, data, fin } => {
                self.streams.entry((session, stream)).or_default().add(offset, data, fin);
            }
            Payload::Datagram { session, data } => self.datagrams.push((session, data.to_vec())),
            _ => {}
        }
    }

    fn on_event(&mut self, now: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        self.events.push((session, event));
        if event == Event::Authorize
            && !self.ask
            && let Some(mut session) = endpoint.session(session)
        {
            session.authorize(now).expect("the session waits for it");
        }
    }
}

impl Source for Recorder {
    fn fill(&mut self, session: SessionHandle, stream: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        let Some(rest) = self.sources.get(&(session, stream)).and_then(|bytes| bytes.get(offset as usize..))
        else {
            return 0;
        };
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        len
    }

    fn lend(&mut self, session: SessionHandle, stream: StreamId, offset: u64, len: usize) -> Option<&[u8]> {
        let offset = offset as usize;
        self.sources.get(&(session, stream))?.get(offset..offset.checked_add(len)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_make_the_stream() {
        let mut stream = ReceivedStream::default();
        stream.add(4, b"efg", false);
        stream.add(8, b"i", true);
        stream.add(0, b"ab", false);
        assert_eq!(stream.ranges(), [(0, 2), (4, 7), (8, 9)]);
        assert_eq!(stream.complete(), None);
        stream.add(2, b"cd", false);
        assert_eq!(stream.ranges(), [(0, 7), (8, 9)]);
        stream.add(7, b"h", false);
        assert_eq!(stream.complete(), Some(&b"abcdefghi"[..]));
        assert_eq!((stream.end(), stream.repeated()), (Some(9), 0));
    }

    #[test]
    fn repeated_bytes_are_counted() {
        let mut stream = ReceivedStream::default();
        stream.add(0, b"abcd", false);
        stream.add(6, b"gh", false);
        stream.add(2, b"cdefgh", false);
        assert_eq!(stream.repeated(), 4);
        stream.add(3, b"d", false);
        assert_eq!(stream.repeated(), 5);
        assert_eq!(stream.ranges(), [(0, 8)]);
    }

    #[test]
    fn an_empty_stream_is_complete_with_its_end() {
        let mut stream = ReceivedStream::default();
        assert_eq!(stream.complete(), None);
        stream.add(0, b"", true);
        assert_eq!(stream.complete(), Some(&b""[..]));
    }
}
