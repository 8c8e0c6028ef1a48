//! Memory for sending: the queue owns it, the core fills it one datagram at a time.

use crate::meta::TxMeta;
use crate::{SessionHandle, StreamId};

/// Memory for outgoing datagrams, owned by whoever sends them.
///
/// ```text
/// reserve(meta, 1200) -> &mut [u8]     the core builds and seals here
/// commit(1187)                         the first 1187 bytes are one datagram
/// ```
///
/// A reservation that is not committed is reused by the next `reserve`: nothing leaks.
pub trait TxQueue {
    /// Lends at least `len` writable bytes for a datagram to `meta`, or `None` if there is no room now.
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]>;

    /// Makes the first `len` bytes of the last reservation one datagram.
    ///
    /// `len` never exceeds the reserved length. Without a reservation nothing happens.
    fn commit(&mut self, len: usize);
}

impl<Q: TxQueue + ?Sized> TxQueue for &mut Q {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        (**self).reserve(meta, len)
    }

    fn commit(&mut self, len: usize) {
        (**self).commit(len);
    }
}

/// One caller's buffer, one datagram: the simplest [`TxQueue`].
#[derive(Debug)]
pub struct OneShot<'b> {
    buffer: &'b mut [u8],
    reserved: Option<TxMeta>,
    committed: Option<(TxMeta, usize)>,
}

impl<'b> OneShot<'b> {
    /// A queue of one datagram in `buffer`.
    pub fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, reserved: None, committed: None }
    }

    /// The datagram, if one was committed.
    pub fn take(self) -> Option<(TxMeta, &'b [u8])> {
        let (meta, len) = self.committed?;
        Some((meta, &self.buffer[..len]))
    }
}

impl TxQueue for OneShot<'_> {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        if self.committed.is_some() {
            return None;
        }
        let buffer = self.buffer.get_mut(..len)?;
        self.reserved = Some(*meta);
        Some(buffer)
    }

    fn commit(&mut self, len: usize) {
        if let Some(meta) = self.reserved.take() {
            self.committed = Some((meta, len.min(self.buffer.len())));
        }
    }
}

/// Bytes of attached streams, asked for while a packet is built and again after a loss.
///
/// The source is its own retransmit buffer: it must give the same bytes for the same offset.
pub trait Source {
    /// Copies the stream's bytes from `offset` into `buf` and returns how many there were.
    ///
    /// A short answer means that the data ended early; the stream is reset.
    fn fill(&mut self, session: SessionHandle, stream: StreamId, offset: u64, buf: &mut [u8]) -> usize;

    /// Lends bytes that are already in memory, to be sealed from there; `None` leads to [`Source::fill`].
    ///
    /// A lent slice has exactly `len` bytes.
    fn lend(&mut self, session: SessionHandle, stream: StreamId, offset: u64, len: usize) -> Option<&[u8]> {
        let _ = (session, stream, offset, len);
        None
    }
}

impl<S: Source + ?Sized> Source for &mut S {
    fn fill(&mut self, session: SessionHandle, stream: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        (**self).fill(session, stream, offset, buf)
    }

    fn lend(&mut self, session: SessionHandle, stream: StreamId, offset: u64, len: usize) -> Option<&[u8]> {
        (**self).lend(session, stream, offset, len)
    }
}

/// The source of sessions that attach no stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSource;

impl Source for NoSource {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::{Ecn, Via};

    const META: TxMeta = TxMeta {
        to: core::net::SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST), 9),
        from: None,
        via: Via(7),
        ecn: Ecn::NotEct,
    };

    #[test]
    fn a_one_shot_holds_exactly_one_datagram() {
        let mut buffer = [0u8; 8];
        let mut queue = OneShot::new(&mut buffer);
        assert!(queue.reserve(&META, 9).is_none(), "more than the buffer holds");
        queue.reserve(&META, 8).unwrap()[0] = 1;
        queue.reserve(&META, 4).unwrap()[1] = 2;
        queue.commit(2);
        assert!(queue.reserve(&META, 1).is_none());
        assert_eq!(queue.take(), Some((META, &[1u8, 2][..])));
    }

    #[test]
    fn a_one_shot_without_commit_is_empty() {
        let mut buffer = [0u8; 8];
        let mut queue = OneShot::new(&mut buffer);
        queue.commit(3);
        assert!(queue.reserve(&META, 8).is_some());
        assert_eq!(queue.take(), None);
    }
}
