//! Receiving: four buffers a call, joined datagrams taken apart before they are lent.

use std::array;
use std::io::{self, IoSliceMut};

use quinn_udp::RecvMeta;
use wraith_drivers::RxReport;
use wraith_proto::{Ecn, RxMeta, Via};

use crate::verdict;

/// Buffers filled by one system call.
pub(crate) const SLOTS: usize = 4;
/// Other hosts' errors that one call swallows before it returns to its caller.
const REMOTE_ERRORS: usize = 16;
/// One system call fills all slots it can, so that a free one means that the socket is empty.
const FILLS_ALL: bool = cfg!(any(target_os = "linux", target_os = "android"));

pub(crate) struct Rx {
    memory: Box<[u8]>,
    /// Bytes of a slot; one more stands behind them and is touched only by what is too long.
    slot_bytes: usize,
    metas: [RecvMeta; SLOTS],
    filled: usize,
    /// The slot that is lent next, and the position in it.
    next: usize,
    offset: usize,
}

impl Rx {
    pub(crate) fn new(slot_bytes: usize) -> Self {
        Self {
            memory: vec![0; SLOTS * (slot_bytes + 1)].into(),
            slot_bytes,
            metas: [RecvMeta::default(); SLOTS],
            filled: 0,
            next: 0,
            offset: 0,
        }
    }

    /// Lends up to `budget` datagrams: kept ones first, then what `fill` brings until it would block.
    pub(crate) fn recv(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
        mut on_datagram: impl FnMut(&RxMeta, &mut [u8]),
    ) -> io::Result<RxReport> {
        let mut report = RxReport::default();
        let mut drained = false;
        let mut errors = 0;
        loop {
            self.lend(budget, &mut report, &mut on_datagram);
            let spent = report.datagrams >= budget || errors >= REMOTE_ERRORS;
            if self.has_kept() || (spent && !drained) {
                report.budget_hit = true;
                return Ok(report);
            }
            if drained {
                return Ok(report);
            }
            match self.fill(&mut fill) {
                Ok(filled) => drained = filled == 0 || (FILLS_ALL && filled < SLOTS),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => drained = true,
                // Some systems report what a buffer cannot hold in place of delivering its beginning.
                Err(error) if quinn_udp::is_msg_size_err(&error) => report.truncated += 1,
                Err(error) if verdict::is_remote(&error) => errors += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether datagrams stand in the slots that a budget left there.
    pub(crate) fn has_kept(&self) -> bool {
        self.next < self.filled
    }

    fn fill(
        &mut self,
        fill: &mut impl FnMut(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        (self.filled, self.next, self.offset) = (0, 0, 0);
        let mut slots = self.memory.chunks_exact_mut(self.slot_bytes + 1);
        let mut slots: [_; SLOTS] = array::from_fn(|_| IoSliceMut::new(slots.next().unwrap_or_default()));
        self.filled = fill(&mut slots, &mut self.metas)?;
        Ok(self.filled)
    }

    fn lend(
        &mut self,
        budget: usize,
        report: &mut RxReport,
        on_datagram: &mut impl FnMut(&RxMeta, &mut [u8]),
    ) {
        while self.next < self.filled && report.datagrams < budget {
            let slot = &self.metas[self.next];
            let stride = if slot.stride == 0 { slot.len.max(1) } else { slot.stride };
            if slot.len > self.slot_bytes {
                report.truncated += slot.len.div_ceil(stride);
                self.next += 1;
                continue;
            }
            let meta = RxMeta {
                from: wraith_drivers::canonical(slot.addr),
                to: slot.dst_ip.map(|ip| ip.to_canonical()),
                via: Via::default(),
                ecn: Ecn::from_bits(slot.ecn.map_or(0, |mark| mark as u8)),
            };
            let end = slot.len.min(self.offset + stride);
            let base = self.next * (self.slot_bytes + 1);
            let range = base + self.offset..base + end;
            if end == slot.len {
                (self.next, self.offset) = (self.next + 1, 0);
            } else {
                self.offset = end;
            }
            report.datagrams += 1;
            on_datagram(&meta, &mut self.memory[range]);
        }
    }
}

#[cfg(test)]
mod tests;
