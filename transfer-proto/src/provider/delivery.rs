//! One chunk on its way out.

use super::ContentKey;
use crate::delivery::{DELIVERY_HEADER, DeliveryHeader};

/// One chunk to send: its stream is a header and then bytes of the content (`PROTO §10.11`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery {
    pub(super) header: DeliveryHeader,
    pub(super) content: ContentKey,
    pub(super) offset: u64,
}

impl Delivery {
    /// Gives bytes of the stream from `stream_offset` on: the header from here, the chunk from
    /// `read(offset in the content, buffer)`, which returns how many bytes there were. How many bytes of
    /// `buffer` are filled; less than asked and not the end of the stream means that `read` fell short.
    pub fn fill(
        &self,
        stream_offset: u64,
        buffer: &mut [u8],
        read: impl FnOnce(u64, &mut [u8]) -> usize,
    ) -> usize {
        let left = self.stream_len().saturating_sub(stream_offset);
        let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer = &mut buffer[..wanted];
        let header = self.header.encode();
        let skipped = usize::try_from(stream_offset).unwrap_or(usize::MAX).min(DELIVERY_HEADER);
        let from_header = (DELIVERY_HEADER - skipped).min(wanted);
        buffer[..from_header].copy_from_slice(&header[skipped..skipped + from_header]);
        let rest = &mut buffer[from_header..];
        if rest.is_empty() {
            return from_header;
        }
        let in_chunk = stream_offset.saturating_sub(DELIVERY_HEADER as u64);
        let asked = rest.len();
        from_header + read(self.offset + in_chunk, rest).min(asked)
    }

    /// The receiver's number of the transfer.
    pub const fn transfer(&self) -> u32 {
        self.header.transfer
    }

    /// The content that the chunk belongs to.
    pub const fn content(&self) -> ContentKey {
        self.content
    }

    /// Number of the chunk.
    pub const fn chunk(&self) -> u64 {
        self.header.chunk
    }

    /// Where the chunk begins in the content, bytes.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Length of the chunk, bytes.
    pub const fn len(&self) -> u32 {
        self.header.len
    }

    /// Whether the chunk has no bytes: never, as no content has an empty chunk.
    pub const fn is_empty(&self) -> bool {
        self.header.len == 0
    }

    /// The bytes in front of the chunk.
    pub fn header(&self) -> [u8; DELIVERY_HEADER] {
        self.header.encode()
    }

    /// Length of the whole stream, bytes.
    pub const fn stream_len(&self) -> u64 {
        DELIVERY_HEADER as u64 + self.header.len as u64
    }
}
