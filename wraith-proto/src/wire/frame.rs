//! Frames: what a protected packet says (`PROTO §6`).

use core::fmt;
use core::iter::FusedIterator;

use super::{Ack, ConnectionId, Full, KeyShare, Malformed, Reader, Writer, varint};

/// Frame types (`PROTO §6.1`).
pub mod kind {
    /// Nothing, one byte long.
    pub const PADDING: u64 = 0x00;
    /// Asks for an acknowledgement.
    pub const PING: u64 = 0x01;
    /// Packets that were received.
    pub const ACK: u64 = 0x02;
    /// ACK with ECN counters.
    pub const ACK_ECN: u64 = 0x03;
    /// The protocol ends the session.
    pub const CLOSE: u64 = 0x04;
    /// The application ends the session.
    pub const CLOSE_APP: u64 = 0x05;
    /// An unreliable datagram.
    pub const DATAGRAM: u64 = 0x06;
    /// Bytes of a stream.
    pub const STREAM: u64 = 0x08;
    /// Bytes of a stream and its end behind them.
    pub const STREAM_FIN: u64 = 0x09;
    /// The sender gives up a stream.
    pub const RESET_STREAM: u64 = 0x0a;
    /// The receiver wants no more of a stream.
    pub const STOP_SENDING: u64 = 0x0b;
    /// Credit of a stream.
    pub const MAX_STREAM_DATA: u64 = 0x0c;
    /// Bytes that were received and not kept.
    pub const STREAM_HOLES: u64 = 0x0d;
    /// The sender of a stream waits for credit.
    pub const STREAM_BLOCKED: u64 = 0x0e;
    /// `HOLES_TAKEN`
    pub const HOLES_TAKEN: u64 = 0x0f;
    /// Credit of bidirectional streams.
    pub const MAX_STREAMS_BI: u64 = 0x10;
    /// Credit of unidirectional streams.
    pub const MAX_STREAMS_UNI: u64 = 0x11;
    /// Another connection id of the sender.
    pub const NEW_CONNECTION_ID: u64 = 0x12;
    /// A connection id that is used no more.
    pub const RETIRE_CONNECTION_ID: u64 = 0x13;
    /// The end of the wait for authorisation.
    pub const AUTHORIZED: u64 = 0x14;
    /// A share of a key exchange.
    pub const KEY_SHARE: u64 = 0x15;
    /// Asks whether the receiver is where the datagram goes.
    pub const PATH_CHALLENGE: u64 = 0x16;
    /// The answer to `PATH_CHALLENGE`.
    pub const PATH_RESPONSE: u64 = 0x17;
    /// The first type of the extension range (`PROTO §6.2`).
    pub const EXTENSION_FIRST: u64 = 0x40;
    /// The last type of the extension range (`PROTO §6.2`).
    pub const EXTENSION_LAST: u64 = 0x3fff;
}

/// A frame. Data of STREAM and DATAGRAM stand apart, before all frames (`PROTO §5.4`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// Nothing, as a run of one-byte frames.
    Padding {
        /// How many; a longer run is read as several.
        len: u16,
    },
    /// Asks for an acknowledgement.
    Ping,
    /// Packets that were received; `ACK_ECN` if it has ECN counters. See [`AckRepr`](super::AckRepr) to build one.
    Ack(Ack<'a>),
    /// The protocol ends the session.
    Close {
        /// Why.
        code: u32,
    },
    /// The application ends the session.
    CloseApp {
        /// The application's code.
        code: u32,
    },
    /// An unreliable datagram.
    Datagram {
        /// Bytes of data.
        len: u16,
    },
    /// Bytes of a stream; `STREAM_FIN` with `fin`. `offset + len` is at most 2^62 − 1.
    Stream {
        /// The stream.
        stream: u32,
        /// Where in the stream the bytes begin.
        offset: u64,
        /// Bytes of data.
        len: u16,
        /// Whether the stream ends behind them.
        fin: bool,
    },
    /// The sender gives up a stream.
    ResetStream {
        /// The stream.
        stream: u32,
        /// The application's code.
        code: u32,
        /// Bytes of the stream in all.
        final_size: u64,
    },
    /// The receiver wants no more of a stream.
    StopSending {
        /// The stream.
        stream: u32,
        /// The application's code.
        code: u32,
    },
    /// Credit of a stream.
    MaxStreamData {
        /// The stream.
        stream: u32,
        /// The offset up to which the peer may send.
        credit: u64,
    },
    /// Bytes that were received and not kept (`PROTO §7.5`). `offset + len` is at most 2^62 − 1.
    StreamHoles {
        /// The stream.
        stream: u32,
        /// Number of the report, counted from 1 in each stream.
        report: u64,
        /// Where the bytes begin.
        offset: u64,
        /// How many; 0 names the end of the stream alone.
        len: u64,
    },
    /// The sender of a stream waits for credit.
    StreamBlocked {
        /// The stream.
        stream: u32,
        /// The credit at which it is blocked.
        credit: u64,
    },
    /// The sender of a stream knows of refused bytes (`PROTO §7.5`).
    HolesTaken {
        /// The stream.
        stream: u32,
        /// Number of the report that it took.
        report: u64,
    },
    /// How many bidirectional streams the peer may open in all.
    MaxStreamsBi {
        /// Their number.
        count: u64,
    },
    /// How many unidirectional streams the peer may open in all.
    MaxStreamsUni {
        /// Their number.
        count: u64,
    },
    /// Another connection id of the sender (`PROTO §6.6`).
    NewConnectionId {
        /// Number of the id.
        sequence: u64,
        /// Ids with smaller numbers are to be retired; at most `sequence`.
        retire_prior_to: u64,
        /// The id.
        id: ConnectionId,
    },
    /// A connection id of the receiver that the sender uses no more.
    RetireConnectionId {
        /// Number of the id.
        sequence: u64,
    },
    /// The end of the wait for authorisation (`PROTO §6.7`).
    Authorized,
    /// A share of the key exchange for the next epoch (`PROTO §6.8`).
    KeyShare(KeyShare<'a>),
    /// Asks whether the receiver is where the datagram goes (`PROTO §13.2`).
    PathChallenge {
        /// What the answer repeats.
        token: [u8; 8],
    },
    /// The answer to a challenge, sent to where that came from (`PROTO §13.2`).
    PathResponse {
        /// The challenge's bytes.
        token: [u8; 8],
    },
    /// A frame of the extension range, to be ignored and acknowledged when unknown (`PROTO §6.2`).
    Extension {
        /// The type, 0x40 to 0x3fff.
        kind: u16,
        /// Its bytes.
        body: &'a [u8],
    },
}

impl<'a> Frame<'a> {
    /// Reads one frame.
    ///
    /// # Errors
    /// [`FrameError`]; each is a violation (`PROTO §6.2`, `§6.3`).
    #[inline]
    pub fn parse(reader: &mut Reader<'a>) -> Result<Self, FrameError> {
        match reader.varint()? {
            kind @ (kind::STREAM | kind::STREAM_FIN) => Ok(parse_stream(reader, kind == kind::STREAM_FIN)?),
            kind @ (kind::ACK | kind::ACK_ECN) => Ok(Self::Ack(Ack::parse(reader, kind == kind::ACK_ECN)?)),
            kind => parse_other(reader, kind),
        }
    }

    /// Writes the frame with its type.
    ///
    /// # Errors
    /// [`Full`] if it does not fit, a number has no encoding, or an extension's type is outside
    /// its range; then nothing is written.
    #[inline]
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.all_or_nothing(|w| self.emit_fields(w))
    }

    /// Bytes of the frame with its type, without data.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        use varint::size;
        let small = |value: u32| size(u64::from(value));
        match *self {
            Self::Padding { len } => usize::from(len),
            Self::Ping | Self::Authorized => 1,
            Self::Ack(ref ack) => ack.encoded_len(),
            Self::Close { code } | Self::CloseApp { code } => 1 + small(code),
            Self::Datagram { .. } => 3,
            Self::Stream { stream, offset, .. } => 3 + small(stream) + size(offset),
            Self::ResetStream { stream, code, final_size } => {
                1 + small(stream) + small(code) + size(final_size)
            }
            Self::StopSending { stream, code } => 1 + small(stream) + small(code),
            Self::MaxStreamData { stream, credit: number }
            | Self::StreamBlocked { stream, credit: number }
            | Self::HolesTaken { stream, report: number } => 1 + small(stream) + size(number),
            Self::StreamHoles { stream, report, offset, len } => {
                1 + small(stream) + size(report) + size(offset) + size(len)
            }
            Self::MaxStreamsBi { count } | Self::MaxStreamsUni { count } => 1 + size(count),
            Self::NewConnectionId { sequence, retire_prior_to, .. } => {
                9 + size(sequence) + size(retire_prior_to)
            }
            Self::RetireConnectionId { sequence } => 1 + size(sequence),
            Self::KeyShare(ref share) => 1 + share.encoded_len(),
            Self::PathChallenge { .. } | Self::PathResponse { .. } => 9,
            Self::Extension { body, .. } => 2 + size(body.len() as u64) + body.len(),
        }
    }

    /// Bytes of data that stand for this frame before all frames: STREAM and DATAGRAM, else 0 (`PROTO §5.4`).
    #[inline]
    pub const fn data_len(&self) -> usize {
        match *self {
            Self::Stream { len, .. } | Self::Datagram { len } => len as usize,
            _ => 0,
        }
    }

    /// Whether the frame asks for an acknowledgement (`PROTO §6.1`).
    #[inline]
    pub const fn is_ack_eliciting(&self) -> bool {
        !matches!(self, Self::Padding { .. } | Self::Ack(_) | Self::Close { .. } | Self::CloseApp { .. })
    }

    /// The type as on the wire.
    #[inline]
    pub const fn kind(&self) -> u64 {
        match *self {
            Self::Padding { .. } => kind::PADDING,
            Self::Ping => kind::PING,
            Self::Ack(ref ack) if ack.ecn().is_some() => kind::ACK_ECN,
            Self::Ack(_) => kind::ACK,
            Self::Close { .. } => kind::CLOSE,
            Self::CloseApp { .. } => kind::CLOSE_APP,
            Self::Datagram { .. } => kind::DATAGRAM,
            Self::Stream { fin: false, .. } => kind::STREAM,
            Self::Stream { fin: true, .. } => kind::STREAM_FIN,
            Self::ResetStream { .. } => kind::RESET_STREAM,
            Self::StopSending { .. } => kind::STOP_SENDING,
            Self::MaxStreamData { .. } => kind::MAX_STREAM_DATA,
            Self::StreamHoles { .. } => kind::STREAM_HOLES,
            Self::StreamBlocked { .. } => kind::STREAM_BLOCKED,
            Self::HolesTaken { .. } => kind::HOLES_TAKEN,
            Self::MaxStreamsBi { .. } => kind::MAX_STREAMS_BI,
            Self::MaxStreamsUni { .. } => kind::MAX_STREAMS_UNI,
            Self::NewConnectionId { .. } => kind::NEW_CONNECTION_ID,
            Self::RetireConnectionId { .. } => kind::RETIRE_CONNECTION_ID,
            Self::Authorized => kind::AUTHORIZED,
            Self::KeyShare(_) => kind::KEY_SHARE,
            Self::PathChallenge { .. } => kind::PATH_CHALLENGE,
            Self::PathResponse { .. } => kind::PATH_RESPONSE,
            Self::Extension { kind, .. } => kind as u64,
        }
    }

    #[inline]
    fn emit_fields(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        match *self {
            // These write their type themselves, or have it once per byte.
            Self::Padding { len } => return w.zeros(usize::from(len)),
            Self::Ack(ref ack) => return ack.emit(w),
            _ => w.varint(self.kind())?,
        }
        match *self {
            Self::Padding { .. } | Self::Ping | Self::Ack(_) | Self::Authorized => Ok(()),
            Self::Close { code } | Self::CloseApp { code } => w.varint(u64::from(code)),
            Self::Datagram { len } => w.u16(len),
            Self::Stream { stream, offset, len, .. } => {
                w.varint(u64::from(stream))?;
                w.varint(offset)?;
                w.u16(len)?;
                ends_in_range(offset, len).map_err(|Malformed| Full)
            }
            Self::ResetStream { stream, code, final_size } => {
                w.varint(u64::from(stream))?;
                w.varint(u64::from(code))?;
                w.varint(final_size)
            }
            Self::StopSending { stream, code } => {
                w.varint(u64::from(stream))?;
                w.varint(u64::from(code))
            }
            Self::MaxStreamData { stream, credit: number }
            | Self::StreamBlocked { stream, credit: number }
            | Self::HolesTaken { stream, report: number } => {
                w.varint(u64::from(stream))?;
                w.varint(number)
            }
            Self::StreamHoles { stream, report, offset, len } => {
                w.varint(u64::from(stream))?;
                w.varint(report)?;
                w.varint(offset)?;
                w.varint(len)?;
                hole_in_range(offset, len).map_err(|Malformed| Full)
            }
            Self::MaxStreamsBi { count } | Self::MaxStreamsUni { count } => w.varint(count),
            Self::NewConnectionId { sequence, retire_prior_to, id } => {
                w.varint(sequence)?;
                w.varint(retire_prior_to)?;
                w.array(&id.0)
            }
            Self::RetireConnectionId { sequence } => w.varint(sequence),
            Self::KeyShare(ref share) => share.emit(w),
            Self::PathChallenge { ref token } | Self::PathResponse { ref token } => w.array(token),
            Self::Extension { kind, body } => {
                if !(kind::EXTENSION_FIRST..=kind::EXTENSION_LAST).contains(&u64::from(kind)) {
                    return Err(Full);
                }
                w.varint(body.len() as u64)?;
                w.bytes(body)
            }
        }
    }
}

/// The frames of a packet, in order. After an error it ends.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// Reads the frames' part of a packet's body; see [`split_body`](super::split_body).
    #[inline]
    pub const fn new(frames: &'a [u8]) -> Self {
        Self { reader: Reader::new(frames) }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, FrameError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = Frame::parse(&mut self.reader);
        if frame.is_err() {
            self.reader = Reader::default();
        }
        Some(frame)
    }
}

impl FusedIterator for Frames<'_> {}

/// Why a frame was not read. Either is a violation of the protocol by an authenticated peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FrameError {
    /// It is cut off or has a value that is not allowed.
    Malformed,
    /// This type is neither known nor in the extension range (`PROTO §6.2`).
    UnknownType(u64),
}

impl From<Malformed> for FrameError {
    #[inline]
    fn from(Malformed: Malformed) -> Self {
        Self::Malformed
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("malformed frame"),
            Self::UnknownType(kind) => write!(f, "unknown frame type {kind:#x}"),
        }
    }
}

impl core::error::Error for FrameError {}

#[inline]
fn parse_stream<'a>(reader: &mut Reader<'a>, fin: bool) -> Result<Frame<'a>, Malformed> {
    let stream = reader.varint32()?;
    let offset = reader.varint()?;
    let len = reader.u16()?;
    ends_in_range(offset, len)?;
    Ok(Frame::Stream { stream, offset, len, fin })
}

fn parse_other<'a>(r: &mut Reader<'a>, kind: u64) -> Result<Frame<'a>, FrameError> {
    Ok(match kind {
        kind::PADDING => {
            let more = r.rest().iter().take(usize::from(u16::MAX) - 1).take_while(|byte| **byte == 0).count();
            r.take(more)?;
            Frame::Padding { len: more as u16 + 1 }
        }
        kind::PING => Frame::Ping,
        kind::CLOSE => Frame::Close { code: r.varint32()? },
        kind::CLOSE_APP => Frame::CloseApp { code: r.varint32()? },
        kind::DATAGRAM => Frame::Datagram { len: r.u16()? },
        kind::RESET_STREAM => {
            Frame::ResetStream { stream: r.varint32()?, code: r.varint32()?, final_size: r.varint()? }
        }
        kind::STOP_SENDING => Frame::StopSending { stream: r.varint32()?, code: r.varint32()? },
        kind::MAX_STREAM_DATA => Frame::MaxStreamData { stream: r.varint32()?, credit: r.varint()? },
        kind::STREAM_HOLES => {
            let (stream, report) = (r.varint32()?, r.varint()?);
            let (offset, len) = (r.varint()?, r.varint()?);
            hole_in_range(offset, len)?;
            Frame::StreamHoles { stream, report, offset, len }
        }
        kind::STREAM_BLOCKED => Frame::StreamBlocked { stream: r.varint32()?, credit: r.varint()? },
        kind::HOLES_TAKEN => Frame::HolesTaken { stream: r.varint32()?, report: r.varint()? },
        kind::MAX_STREAMS_BI => Frame::MaxStreamsBi { count: r.varint()? },
        kind::MAX_STREAMS_UNI => Frame::MaxStreamsUni { count: r.varint()? },
        kind::NEW_CONNECTION_ID => {
            let (sequence, retire_prior_to) = (r.varint()?, r.varint()?);
            if retire_prior_to > sequence {
                return Err(FrameError::Malformed);
            }
            Frame::NewConnectionId { sequence, retire_prior_to, id: ConnectionId(*r.array()?) }
        }
        kind::RETIRE_CONNECTION_ID => Frame::RetireConnectionId { sequence: r.varint()? },
        kind::AUTHORIZED => Frame::Authorized,
        kind::KEY_SHARE => Frame::KeyShare(KeyShare::parse(r)?),
        kind::PATH_CHALLENGE => Frame::PathChallenge { token: *r.array()? },
        kind::PATH_RESPONSE => Frame::PathResponse { token: *r.array()? },
        kind::EXTENSION_FIRST..=kind::EXTENSION_LAST => {
            let len = usize::try_from(r.varint()?).map_err(|_| FrameError::Malformed)?;
            Frame::Extension { kind: kind as u16, body: r.take(len)? }
        }
        unknown => return Err(FrameError::UnknownType(unknown)),
    })
}

/// Refuses stream bytes past offset 2^62 − 1.
#[inline]
fn ends_in_range(offset: u64, len: u16) -> Result<(), Malformed> {
    hole_in_range(offset, u64::from(len))
}

fn hole_in_range(offset: u64, len: u64) -> Result<(), Malformed> {
    if len <= varint::MAX && offset <= varint::MAX - len { Ok(()) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests;
