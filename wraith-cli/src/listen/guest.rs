//! One session of a listener: what arrived, and the peer's question how much that was.

use std::time::Duration;

use bytes::Bytes;
use wraith_proto::{Instant, StreamId};

use crate::bench::counts::{Counts, Message, QUESTION_LEN};
use crate::cpu;

/// After this much silence nothing is on its way any more.
const QUIET: Duration = Duration::from_millis(200);

/// A session as its listener sees it.
#[derive(Debug, Default)]
pub(super) struct Guest {
    pub(super) peer: String,
    pub(super) address: String,
    /// Whether it wants echoes, once its protocol is known.
    pub(super) pings: Option<bool>,
    bytes: u64,
    packets: u64,
    /// When the first packets arrived, and the CPU time of this thread then.
    first: Option<(Instant, Option<Duration>)>,
    last: Option<Instant>,
    question: Option<(StreamId, Message<QUESTION_LEN>)>,
}

impl Guest {
    /// A payload of `len` bytes arrived.
    pub(super) fn count(&mut self, len: usize) {
        self.bytes += len as u64;
        self.packets += 1;
    }

    /// A piece of a question arrived. There is one at a time.
    pub(super) fn ask(&mut self, stream: StreamId, offset: u64, data: &[u8]) {
        let (open, message) = self.question.get_or_insert_with(|| (stream, Message::default()));
        if *open == stream {
            message.take(offset, data);
        }
    }

    /// Everything counted so far arrived until `now`.
    pub(super) fn arrived_until(&mut self, now: Instant) {
        if self.packets == 0 || self.asks() {
            return;
        }
        self.first.get_or_insert_with(|| (now, cpu::of_thread()));
        self.last = Some(now);
    }

    /// The answer, once everything that was sent is here or nothing comes any more.
    pub(super) fn answer(&mut self, now: Instant) -> Option<(StreamId, Bytes)> {
        if self.answer_at()? > now {
            return None;
        }
        let (stream, _) = self.question.take()?;
        let (first, cpu) = self.first.unwrap_or((now, None));
        let counts = Counts {
            bytes: self.bytes,
            packets: self.packets,
            time: self.last.unwrap_or(now).saturating_since(first),
            cpu: cpu::since(cpu),
        };
        Some((stream, Bytes::copy_from_slice(&counts.to_bytes())))
    }

    /// Whether a whole question waits for its answer.
    pub(super) fn asks(&self) -> bool {
        self.question.as_ref().is_some_and(|(_, message)| message.bytes().is_some())
    }

    /// When to answer, if it asked.
    pub(super) fn answer_at(&self) -> Option<Instant> {
        let (_, message) = self.question.as_ref()?;
        let sent = u64::from_be_bytes(*message.bytes()?);
        let last = self.last.unwrap_or(Instant::MIN);
        Some(if self.packets >= sent { last } else { last.saturating_add(QUIET) })
    }
}
