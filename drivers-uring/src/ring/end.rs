//! The end of a ring: nothing runs any more, or its memory stays.

use std::mem::{self, ManuallyDrop};
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::opcode;
use io_uring::types::CancelBuilder;

use super::buffers::Buffers;
use super::life::Life;
use super::messages::Messages;
use super::{GROUP, Ring, kind, tolerate};

/// How long the end of what runs may take. It is a matter of microseconds, but for a processor that others use: who gives up
/// waits for the kernel instead, which is later still.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How long one wait within that may take.
const PAUSE: Duration = Duration::from_millis(10);
/// How long the kernel may take to end a closed ring: some 30 ms, and seconds where other programs want the processor. Who
/// does not wait so long leaves its memory behind, and a port in use.
pub(super) const CLOSING: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 10 });

impl Ring {
    /// Cancels what runs and waits for its end, for a moment. Returns whether nothing runs any more.
    pub(super) fn quiesce(&mut self) -> bool {
        if self.running == 0 {
            return true;
        }
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        // SAFETY: the operation uses no memory.
        while !unsafe { self.push(&cancel, kind::CANCEL, 0) } {
            if tolerate(self.io.submit()).is_err() {
                return false;
            }
        }
        let until = Instant::now() + PATIENCE;
        while self.running > 0 {
            // Another thread than the one that used the ring cannot do this.
            if tolerate(self.enter(1, Some(PAUSE))).is_err() {
                return false;
            }
            while self.seen().is_some() {}
            if Instant::now() >= until {
                return self.running == 0;
            }
        }
        true
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel takes its time to end a ring; without files it holds no port meanwhile. It takes them from the ring of
        // another thread only then.
        let quiet = self.before.is_none() && self.quiesce() && self.io.submitter().unregister_files().is_ok();
        if quiet {
            let _ = self.io.submitter().unregister_buf_ring(GROUP);
        }
        // SAFETY: it is dropped nowhere else, and not used behind this.
        unsafe { ManuallyDrop::drop(&mut self.io) };
        let over = |life: &Life| life.has_ended(CLOSING);
        if quiet || over(&self.life) && self.before.as_ref().is_none_or(over) {
            return;
        }
        mem::forget(mem::replace(&mut self.buffers, Buffers::new(1, 1)));
        mem::forget(mem::replace(&mut self.messages, Messages::new(1)));
        mem::forget(Arc::clone(&self.transmit));
    }
}
