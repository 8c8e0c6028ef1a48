//! A packet under construction.

use crate::crypto::TAG_LEN;
use crate::recovery::SentFrames;
use crate::stream::{Piece, StreamId};
use crate::wire::{ConnectionId, Frame, PACKET_HEADER_LEN, Writer, varint};

/// Room for frames in one packet. An ACK takes at most 300 bytes of it.
pub(super) const FRAMES_LEN: usize = 512;

/// The length of the frames behind them (`PROTO §5.4`).
pub(super) const TRAILER_LEN: usize = 2;

/// A packet under construction: payload from the front of the room, frames beside it until it is sealed.
pub(super) struct Draft<'a> {
    pub(super) room: &'a mut [u8],
    pub(super) payload: usize,
    pub(super) frames: [u8; FRAMES_LEN],
    pub(super) frames_len: usize,
    /// Bytes of PADDING behind the frames.
    pub(super) padding: usize,
    pub(super) sent: SentFrames,
    /// A frame asks for an acknowledgement.
    pub(super) asks: bool,
    pub(super) reported: u64,
    /// There is no record to remember the packet by.
    pub(super) unrecorded: bool,
    /// The id of the peer that it goes to, if that is not the one in use.
    pub(super) destination: Option<ConnectionId>,
    /// Only streams that the peer is known to have room for: this packet has to arrive (`PROTO §7.7`).
    pub(super) known_only: bool,
    /// An attached stream's piece that fills the rest of the packet: it may be sealed from where it lies.
    pub(super) tail: Option<Tail>,
}

/// What is remembered of a draft.
pub(super) struct Memo {
    pub(super) asks: bool,
    pub(super) reported: u64,
    pub(super) ect: bool,
    pub(super) unrecorded: bool,
    pub(super) frames: SentFrames,
}

impl Memo {
    pub(super) fn take(draft: &mut Draft<'_>, ect: bool) -> Self {
        let frames = core::mem::take(&mut draft.sent);
        Self { asks: draft.asks, reported: draft.reported, ect, unrecorded: draft.unrecorded, frames }
    }
}

/// See `Draft::tail`.
#[derive(Clone, Copy)]
pub(super) struct Tail {
    pub(super) slot: u32,
    pub(super) id: StreamId,
    pub(super) piece: Piece,
}

impl<'a> Draft<'a> {
    pub(super) fn new(room: &'a mut [u8]) -> Self {
        Self {
            room,
            payload: 0,
            frames: [0; FRAMES_LEN],
            frames_len: 0,
            padding: 0,
            sent: SentFrames::new(),
            asks: false,
            reported: 0,
            unrecorded: false,
            destination: None,
            known_only: false,
            tail: None,
        }
    }

    /// Whether nothing was put in yet.
    pub(super) fn is_empty(&self) -> bool {
        self.payload == 0 && self.frames_len == 0
    }

    /// Bytes left for payload and frames.
    pub(super) fn left(&self) -> usize {
        let fixed = PACKET_HEADER_LEN + TRAILER_LEN + TAG_LEN;
        self.room.len().saturating_sub(fixed + self.payload + self.frames_len)
    }

    pub(super) fn writer(&mut self) -> Writer<'_> {
        let end = (self.frames_len + self.left()).min(FRAMES_LEN);
        Writer::new(&mut self.frames[self.frames_len..end])
    }

    /// Adds a frame without payload; `false` if it does not fit.
    pub(super) fn push(&mut self, frame: &Frame<'_>) -> bool {
        let mut writer = self.writer();
        if frame.emit(&mut writer).is_err() {
            return false;
        }
        self.frames_len += writer.len();
        self.asks |= frame.is_ack_eliciting();
        true
    }

    /// Bytes of stream data that fit beside their frame.
    pub(super) fn stream_room(&self, id: StreamId, offset: u64) -> Option<usize> {
        let header = 1 + varint::size(u64::from(id.0)) + varint::size(offset) + 2;
        if self.sent.is_full() || self.frames_len + header > FRAMES_LEN || self.tail.is_some() {
            return None;
        }
        self.left().checked_sub(header)
    }

    /// Where the next payload of `len` bytes goes.
    pub(super) fn payload_room(&mut self, len: usize) -> &mut [u8] {
        let at = PACKET_HEADER_LEN + self.payload;
        &mut self.room[at..at + len]
    }

    /// Adds a STREAM frame; its room was reserved by `stream_room`, its payload may count already.
    pub(super) fn push_stream(&mut self, id: StreamId, piece: Piece) {
        let Piece { offset, len, fin } = piece;
        let mut writer = Writer::new(&mut self.frames[self.frames_len..]);
        if (Frame::Stream { stream: id.0, offset, len, fin }).emit(&mut writer).is_ok() {
            self.frames_len += writer.len();
            self.asks = true;
        }
    }
}
