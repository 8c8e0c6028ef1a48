//! The receiving half: the fill ring and the receive ring.

use std::sync::Arc;

use xdpilone::{FillQueue, RingRx};

use super::CONTINUED;
use super::memory::Memory;
use super::setup::Setup;

/// Longest packet that is put together from several chunks: what IP can carry, and its Ethernet header.
const LONGEST: usize = 65_535 + 14;

/// Chunks on their way to the kernel and back.
pub(crate) struct Receive {
    ring: RingRx,
    fill: FillQueue,
    memory: Arc<Memory>,
    chunk_bytes: u64,
    /// Chunks that neither ring refers to.
    spare: Vec<u64>,
    /// A packet of several chunks, and how much of it is there: more than it can hold marks one that is too long.
    joined: Box<[u8]>,
    joined_len: usize,
}

/// What came.
pub(crate) enum Frame<R> {
    /// A frame, and what the caller made of it.
    Whole(R),
    /// A frame that is too long to be lent.
    TooLong,
}

impl Receive {
    pub(super) fn new(ring: RingRx, fill: FillQueue, memory: Arc<Memory>, setup: &Setup) -> Self {
        let chunk_bytes = u64::from(setup.chunk_bytes);
        let joined = if setup.several_chunks { LONGEST } else { 0 };
        Self {
            ring,
            fill,
            memory,
            chunk_bytes,
            spare: (0..u64::from(setup.receive_chunks)).map(|chunk| chunk * chunk_bytes).collect(),
            joined: vec![0; joined].into(),
            joined_len: 0,
        }
    }

    /// Lends the next frame for a call, if there is one.
    pub(crate) fn next<R>(&mut self, mut lend: impl FnMut(&mut [u8]) -> R) -> Option<Frame<R>> {
        loop {
            let mut received = self.ring.receive(1);
            let descriptor = received.read()?;
            let (at, len) = (descriptor.addr as usize, descriptor.len as usize);
            let more = descriptor.options & CONTINUED != 0;
            let frame = if !more && self.joined_len == 0 {
                // SAFETY: the descriptor has come out of the receive ring and its chunk has not gone back into the
                // fill ring, so that nobody else has these bytes. The slice ends before the chunk is spare.
                let bytes = unsafe { self.memory.slice(at, len) };
                Some(Frame::Whole(lend(bytes.unwrap_or_default())))
            } else {
                let end = self.joined_len + len;
                let room = self.joined.get_mut(self.joined_len..end);
                // SAFETY: as above.
                let whole = room.is_some_and(|room| unsafe { self.memory.copy(at, room) });
                self.joined_len = if whole { end } else { self.joined.len() + 1 };
                None
            };
            received.release();
            drop(received);
            self.spare.push(descriptor.addr & !(self.chunk_bytes - 1));
            match frame {
                Some(frame) => return Some(frame),
                None if more => {}
                None => {
                    let len = std::mem::take(&mut self.joined_len);
                    return Some(
                        self.joined.get_mut(..len).map_or(Frame::TooLong, |frame| Frame::Whole(lend(frame))),
                    );
                }
            }
        }
    }

    /// Whether something waits in the ring.
    pub(crate) fn has_more(&self) -> bool {
        self.ring.available() > 0
    }

    /// Gives spare chunks back to the kernel.
    pub(crate) fn refill(&mut self) {
        while !self.spare.is_empty() {
            // It may grant fewer than there are; the ring has room for all.
            let mut room = self.fill.fill(self.spare.len() as u32);
            let granted = (room.capacity() as usize).min(self.spare.len());
            room.insert(self.spare.drain(self.spare.len() - granted..));
            room.commit();
        }
        if self.fill.needs_wakeup() {
            self.fill.wake();
        }
    }
}

impl std::fmt::Debug for Receive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receive").field("chunk_bytes", &self.chunk_bytes).finish_non_exhaustive()
    }
}
