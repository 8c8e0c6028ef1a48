//! News and payloads that the core hands out.

use crate::error::{CloseReason, DropReason};
use crate::{SessionHandle, StreamId};

/// What happened to a session. Carries no payload and no address: ask the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The peer is known (`Session::peer`) and waits for `Session::authorize` or `close`.
    Authorize,
    /// Application data may be sent.
    Connected,
    /// The session ended; its handle is valid until the next call of `poll_event` at least.
    Closed(CloseReason),
    /// The peer opened a stream.
    StreamOpened(StreamId),
    /// A write that was `Blocked` may be tried again.
    Writable(StreamId),
    /// Every byte and the end of the stream reached the peer's application.
    Delivered(StreamId),
    /// The peer gave up sending on a stream.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The peer's code.
        code: u32,
    },
    /// The peer asked to stop sending on a stream.
    Stopped {
        /// The stream.
        stream: StreamId,
        /// The peer's code.
        code: u32,
    },
    /// A datagram that was `Blocked` may be tried again.
    DatagramsUnblocked,
    /// `Session::max_datagram` is another now: the path proved to carry more, or less. Datagrams that were queued before
    /// and no longer fit are dropped, and counted in `Stats::datagrams_unfit`.
    MaxDatagramChanged,
    /// `Session::remote` is another now: the peer, or a NAT before it, has moved.
    PathChanged,
    /// A stream could not be opened before; the peer now allows more.
    StreamsUnblocked,
}

const _: () = assert!(size_of::<Event>() <= 16);

/// Decrypted application data, lent from the caller's buffer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Payload<'a> {
    /// A piece of a stream. Pieces come in the order of arrival, each byte once.
    Stream {
        /// The session.
        session: SessionHandle,
        /// The stream.
        stream: StreamId,
        /// Position of `data` in the stream, in bytes.
        offset: u64,
        /// The bytes; empty only with `fin`.
        data: &'a mut [u8],
        /// The stream ends behind `data`.
        fin: bool,
    },
    /// An unreliable datagram.
    Datagram {
        /// The session.
        session: SessionHandle,
        /// The bytes.
        data: &'a mut [u8],
    },
}

/// What became of a received datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// An authentic packet of this session.
    Authenticated(SessionHandle),
    /// A handshake message that was taken.
    Handshaking,
    /// It had no effect.
    Dropped(DropReason),
}
