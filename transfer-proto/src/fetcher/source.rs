//! What a fetcher knows of one session.

use super::FetchId;
use crate::code::Violation;
use crate::control::{ControlReader, ControlWriter};
use alloc::vec::Vec;

#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) reader: ControlReader,
    pub(super) writer: ControlWriter,
    /// Numbers below it were used.
    pub(super) next_transfer: u64,
    pub(super) asks: Vec<Ask>,
}

/// One content asked of one source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) transfer: u32,
    pub(super) fetch: FetchId,
    pub(super) state: State,
    /// Bad or short chunks; the second ends it.
    pub(super) strikes: u8,
    /// Deliveries that it reset; a Cancel that says why is on its way.
    pub(super) resets: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Asked,
    Offered { size: u64 },
    Confirming,
}

impl Source {
    /// The running transfer of this number; `None` if it has ended, whose late messages are no fault.
    pub(super) fn running(&self, transfer: u32) -> Result<Option<&Ask>, Violation> {
        if u64::from(transfer) >= self.next_transfer {
            return Err(Violation::TransferNumber);
        }
        Ok(self.asks.iter().find(|ask| ask.transfer == transfer))
    }

    pub(super) fn ask_mut(&mut self, transfer: u32) -> Option<&mut Ask> {
        self.asks.iter_mut().find(|ask| ask.transfer == transfer)
    }
}
