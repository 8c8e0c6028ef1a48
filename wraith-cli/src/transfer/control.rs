//! The stream of messages beside the deliveries: bytes in order on their way in, kept on their way out.

use bytes::Bytes;
use wraith_proto::{Assembler, Session, StreamId, WriteError};
use wraith_transfer_proto::Violation;

/// Bytes that may wait for one that is missing; both machines ask for far less at a time.
const CAPACITY: usize = 512 << 10;

/// Bytes handed to the session at a time.
const PIECE: usize = 16 << 10;

/// One end of a control stream.
#[derive(Debug)]
pub(super) struct Control {
    stream: StreamId,
    incoming: Assembler,
    /// Did not fit in the session's queue.
    waiting: Option<Bytes>,
    finished: bool,
}

impl Control {
    pub(super) fn new(stream: StreamId) -> Self {
        Self { stream, incoming: Assembler::new(CAPACITY), waiting: None, finished: false }
    }

    pub(super) const fn stream(&self) -> StreamId {
        self.stream
    }

    /// Takes a piece of the stream and hands to `handle` what is now in order.
    ///
    /// # Errors
    /// Those of `handle`, and `TooMany` for a peer that sends more than is ever asked for.
    pub(super) fn receive(
        &mut self,
        offset: u64,
        data: &[u8],
        mut handle: impl FnMut(&[u8]) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        if !self.incoming.insert(offset, data) {
            return Err(Violation::TooMany);
        }
        loop {
            let ready = self.incoming.readable();
            if ready.is_empty() {
                return Ok(());
            }
            let len = ready.len();
            handle(ready)?;
            self.incoming.consume(len);
        }
    }

    /// Writes what `poll` gives, as much as the session takes now.
    pub(super) fn send(&mut self, session: &mut Session<'_>, mut poll: impl FnMut(&mut [u8]) -> usize) {
        let mut buffer = [0; PIECE];
        while !self.finished {
            let piece = match self.waiting.take() {
                Some(piece) => piece,
                None => match poll(&mut buffer) {
                    0 => return,
                    len => Bytes::copy_from_slice(&buffer[..len]),
                },
            };
            match session.write(self.stream, piece.clone()) {
                Ok(()) => {}
                Err(WriteError::Blocked) => {
                    self.waiting = Some(piece);
                    return;
                }
                // The session is over, or the peer reads no more: its end is told elsewhere.
                Err(_) => return,
            }
        }
    }

    /// Ends the stream behind what was written; `Event::Delivered` follows when the peer has it all.
    pub(super) fn finish(&mut self, session: &mut Session<'_>) {
        if !self.finished && self.waiting.is_none() {
            self.finished = true;
            // As above.
            let _ = session.finish(self.stream);
        }
    }
}
