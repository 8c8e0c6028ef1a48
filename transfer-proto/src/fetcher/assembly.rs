//! One chunk on its way in: bytes in any order, each once, into one buffer.

use super::StreamError;
use crate::delivery::{DELIVERY_HEADER, DeliveryHeader};
use crate::tree::CHUNK;
use alloc::boxed::Box;

#[derive(Debug)]
pub(super) struct Assembly<S, K> {
    pub(super) source: S,
    pub(super) stream: K,
    pub(super) buffer: Box<[u8]>,
    head: [u8; DELIVERY_HEADER],
    /// Bytes of the header that are there.
    head_len: usize,
    /// Bytes of the stream that are there.
    received: u64,
    /// The end of the furthest piece.
    reach: u64,
    /// Where the stream ends, once that is known.
    end: Option<u64>,
}

impl<S, K> Assembly<S, K> {
    pub(super) fn new(source: S, stream: K, buffer: Box<[u8]>) -> Self {
        Self {
            source,
            stream,
            buffer,
            head: [0; DELIVERY_HEADER],
            head_len: 0,
            received: 0,
            reach: 0,
            end: None,
        }
    }

    /// Puts a piece of the stream where it belongs.
    pub(super) fn put(&mut self, offset: u64, data: &[u8], fin: bool) -> Result<(), StreamError> {
        const LONGEST: u64 = (DELIVERY_HEADER + CHUNK) as u64;
        let end = offset.saturating_add(data.len() as u64);
        if end > LONGEST {
            return Err(StreamError::WrongLength);
        }
        if fin {
            self.end = Some(end);
        }
        self.reach = self.reach.max(end);
        self.received += data.len() as u64;
        let at = offset as usize;
        let in_head = DELIVERY_HEADER.saturating_sub(at).min(data.len());
        let (head, rest) = data.split_at(in_head);
        if !head.is_empty() {
            self.head[at..at + in_head].copy_from_slice(head);
            self.head_len += in_head;
        }
        if !rest.is_empty() {
            let at = at + in_head - DELIVERY_HEADER;
            self.buffer[at..at + rest.len()].copy_from_slice(rest);
        }
        self.check_ends()
    }

    /// The header, once all of it is there.
    pub(super) fn header(&self) -> Option<DeliveryHeader> {
        (self.head_len >= DELIVERY_HEADER).then(|| DeliveryHeader::decode(&self.head))
    }

    /// Whether header and chunk are all there.
    pub(super) fn is_whole(&self) -> bool {
        self.stream_len().is_some_and(|len| self.received >= len)
    }

    /// The length that the header gives the stream.
    fn stream_len(&self) -> Option<u64> {
        self.header().map(|header| DELIVERY_HEADER as u64 + u64::from(header.len))
    }

    /// No byte may lie behind the end, and the end must be where the header puts it.
    fn check_ends(&self) -> Result<(), StreamError> {
        if self.end.is_some_and(|end| end < self.reach) {
            return Err(StreamError::WrongLength);
        }
        match (self.stream_len(), self.end) {
            (Some(len), _) if self.reach > len => Err(StreamError::WrongLength),
            (Some(len), Some(end)) if end < len => Err(StreamError::Short),
            (None, Some(end)) if end < DELIVERY_HEADER as u64 => Err(StreamError::Short),
            _ => Ok(()),
        }
    }
}
