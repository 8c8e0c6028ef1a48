//! What an ideal session would have delivered, to be compared with what a real one did.

use std::collections::BTreeMap;
use std::fmt;

use wraith_proto::{SessionHandle, StreamId};

use crate::recorder::{ReceivedStream, Recorder};

/// One direction of an ideal session. Tell it all that the sender does, then compare with the receiver's record.
///
/// An ideal session delivers each stream byte once and unaltered, and each datagram once or not at all.
#[derive(Clone, Debug, Default)]
pub struct Model {
    streams: BTreeMap<StreamId, Sent>,
    datagrams: BTreeMap<Vec<u8>, u64>,
}

#[derive(Clone, Debug, Default)]
struct Sent {
    bytes: Vec<u8>,
    finished: bool,
    reset: bool,
}

/// How a real session differed from the ideal one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Divergence {
    /// Data arrived on a stream that was never written.
    UnknownStream(StreamId),
    /// Bytes arrived that were never written.
    BeyondEnd(StreamId),
    /// The byte at this offset is not the one written.
    WrongByte(StreamId, u64),
    /// This many bytes arrived more than once.
    Repeated(StreamId, u64),
    /// The stream ended where it was not finished.
    WrongEnd(StreamId, u64),
    /// The first missing byte, or the end, did not arrive.
    Missing(StreamId, u64),
    /// A datagram that was never sent, or arrived more often than sent.
    UnknownDatagram(Vec<u8>),
}

impl Model {
    /// A session on which nothing was sent.
    pub fn new() -> Self {
        Self::default()
    }

    /// The sender wrote to a stream, or attached this content to it.
    pub fn write(&mut self, stream: StreamId, data: &[u8]) {
        self.streams.entry(stream).or_default().bytes.extend_from_slice(data);
    }

    /// The sender finished a stream.
    pub fn finish(&mut self, stream: StreamId) {
        self.streams.entry(stream).or_default().finished = true;
    }

    /// The sender reset a stream, or the receiver stopped it: what is missing may stay so.
    pub fn reset(&mut self, stream: StreamId) {
        self.streams.entry(stream).or_default().reset = true;
    }

    /// The sender sent a datagram.
    pub fn datagram(&mut self, data: &[u8]) {
        *self.datagrams.entry(data.to_vec()).or_default() += 1;
    }

    /// Compares with what arrived so far, while more may be on its way.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, record: &Recorder, session: SessionHandle) -> Result<(), Divergence> {
        for (_, stream, received) in record.streams().filter(|&(owner, ..)| owner == session) {
            self.check_stream(stream, received)?;
        }
        let mut left = self.datagrams.clone();
        for (_, data) in record.datagrams.iter().filter(|&&(owner, _)| owner == session) {
            match left.get_mut(data) {
                Some(count) if *count > 0 => *count -= 1,
                _ => return Err(Divergence::UnknownDatagram(data.clone())),
            }
        }
        Ok(())
    }

    /// Compares after the session came to rest: everything written to a stream must have arrived, too.
    ///
    /// # Errors
    /// The first difference.
    pub fn check_all(&self, record: &Recorder, session: SessionHandle) -> Result<(), Divergence> {
        self.check(record, session)?;
        let nothing = ReceivedStream::default();
        for (&stream, sent) in self.streams.iter().filter(|(_, sent)| !sent.reset) {
            let received = record.stream(session, stream).unwrap_or(&nothing);
            let reached = match received.ranges().first() {
                Some(&(0, end)) => end,
                _ => 0,
            };
            let ended = !sent.finished || received.end().is_some();
            if reached < sent.bytes.len() as u64 || !ended {
                return Err(Divergence::Missing(stream, reached));
            }
        }
        Ok(())
    }

    fn check_stream(&self, stream: StreamId, received: &ReceivedStream) -> Result<(), Divergence> {
        let sent = self.streams.get(&stream).ok_or(Divergence::UnknownStream(stream))?;
        if received.repeated() > 0 {
            return Err(Divergence::Repeated(stream, received.repeated()));
        }
        for &(from, to) in received.ranges() {
            let range = from as usize..to as usize;
            let ideal = sent.bytes.get(range.clone()).ok_or(Divergence::BeyondEnd(stream))?;
            let real = &received.bytes()[range];
            if let Some(at) = ideal.iter().zip(real).position(|(ideal, real)| ideal != real) {
                return Err(Divergence::WrongByte(stream, from + at as u64));
            }
        }
        match received.end() {
            Some(end) if !sent.finished || end != sent.bytes.len() as u64 => {
                Err(Divergence::WrongEnd(stream, end))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownStream(stream) => write!(f, "{stream:?} was never written"),
            Self::BeyondEnd(stream) => write!(f, "{stream:?} has bytes that were never written"),
            Self::WrongByte(stream, at) => write!(f, "{stream:?} has a wrong byte at {at}"),
            Self::Repeated(stream, bytes) => write!(f, "{stream:?} delivered {bytes} bytes twice"),
            Self::WrongEnd(stream, at) => write!(f, "{stream:?} ended at {at}, where it was not finished"),
            Self::Missing(stream, at) => write!(f, "{stream:?} is incomplete from {at} on"),
            Self::UnknownDatagram(data) => write!(f, "a datagram of {} bytes was not sent", data.len()),
        }
    }
}

impl std::error::Error for Divergence {}
