//! Receiving: filled buffers in order, joined datagrams taken apart before they are lent.

use std::collections::VecDeque;
use std::io;

use wraith_drivers::RxReport;
use wraith_proto::{RxMeta, Via};

use crate::ring::Buffers;
use crate::verdict;
use crate::wire;

#[derive(Debug)]
pub(crate) struct Rx {
    /// Filled buffers that were not looked at, and how many bytes stand in each.
    filled: VecDeque<(u16, usize)>,
    /// The buffer whose datagrams are lent.
    open: Option<Open>,
    failed: Option<i32>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    buffer: u16,
    meta: RxMeta,
    /// What was not lent yet.
    start: usize,
    end: usize,
    segment: usize,
}

impl Rx {
    /// For at most `buffers` buffers.
    pub(crate) fn new(buffers: u16) -> Self {
        Self { filled: VecDeque::with_capacity(buffers.into()), open: None, failed: None }
    }

    /// Takes in a filled buffer.
    pub(crate) fn filled(&mut self, buffer: u16, len: usize) {
        self.filled.push_back((buffer, len));
    }

    /// Takes in that the receive has failed. What other hosts cause is passed over.
    pub(crate) fn failed(&mut self, code: i32) {
        if !verdict::is_remote(code) {
            self.failed = Some(code);
        }
    }

    /// Lends datagrams that have arrived until none is left or the budget is spent.
    pub(crate) fn lend(
        &mut self,
        buffers: &mut Buffers,
        budget: usize,
        report: &mut RxReport,
        on_datagram: &mut impl FnMut(&RxMeta, &mut [u8]),
    ) {
        while report.datagrams < budget {
            let Some(mut open) = self.open.take().or_else(|| self.open_next(buffers, report)) else { break };
            let spent = open.lend(buffers, budget, report, on_datagram);
            if spent {
                self.open = Some(open);
            } else {
                buffers.give(open.buffer);
            }
        }
        buffers.publish();
    }

    /// Whether datagrams have arrived that were not lent.
    pub(crate) fn has_kept(&self) -> bool {
        self.open.is_some() || !self.filled.is_empty()
    }

    /// # Errors
    /// What has made the socket unusable.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)))
    }

    /// Looks at the next buffer with something to lend.
    fn open_next(&mut self, buffers: &mut Buffers, report: &mut RxReport) -> Option<Open> {
        while let Some((buffer, len)) = self.filled.pop_front() {
            let received = buffers.get_mut(buffer).and_then(|bytes| wire::received(bytes, len));
            // Without an address there is nobody to answer.
            let Some((received, from)) = received.and_then(|it| it.from.map(|from| (it, from))) else {
                buffers.give(buffer);
                continue;
            };
            let fits = received.payload.len();
            let segment = received.segment.unwrap_or(received.arrived).max(1);
            if received.arrived > fits {
                report.truncated += received.arrived.div_ceil(segment);
                buffers.give(buffer);
                continue;
            }
            let meta = RxMeta {
                from: wraith_drivers::canonical(from),
                to: received.to.map(|ip| ip.to_canonical()),
                via: Via::default(),
                ecn: received.ecn,
            };
            return Some(Open {
                buffer,
                meta,
                start: received.payload.start,
                end: received.payload.end,
                segment,
            });
        }
        None
    }
}

impl Open {
    /// Lends what stands in the buffer, or as much as the budget allows; returns whether something is left.
    fn lend(
        &mut self,
        buffers: &mut Buffers,
        budget: usize,
        report: &mut RxReport,
        on_datagram: &mut impl FnMut(&RxMeta, &mut [u8]),
    ) -> bool {
        let Some(bytes) = buffers.get_mut(self.buffer) else { return false };
        let Some(mut rest) = bytes.get_mut(self.start..self.end) else { return false };
        let mut left = budget.saturating_sub(report.datagrams);
        loop {
            let (datagram, others) = rest.split_at_mut(self.segment.min(rest.len()));
            rest = others;
            self.start += datagram.len();
            report.datagrams += 1;
            left = left.saturating_sub(1);
            on_datagram(&self.meta, datagram);
            // An empty datagram stands alone, and is lent once.
            if rest.is_empty() || left == 0 {
                return !rest.is_empty();
            }
        }
    }
}
