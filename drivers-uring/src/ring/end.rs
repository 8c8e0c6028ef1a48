//! The end of a ring: nothing runs any more, or its memory stays.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::opcode;
use io_uring::types::CancelBuilder;

use super::buffers::Buffers;
use super::messages::Messages;
use super::{GROUP, Ring, kind};

/// How long the end of a ring may take.
pub(super) const PATIENCE: Duration = Duration::from_millis(200);
/// How long one wait within that may take.
const PAUSE: Duration = Duration::from_millis(10);

impl Ring {
    /// Cancels what runs and waits for its end, for a moment. Returns whether nothing runs any more.
    pub(super) fn quiesce(&mut self) -> bool {
        if self.running == 0 {
            return true;
        }
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        // SAFETY: the operation uses no memory.
        while !unsafe { self.push(&cancel, kind::CANCEL, 0) } {
            if self.submit().is_err() {
                return false;
            }
        }
        let until = Instant::now() + PATIENCE;
        while self.running > 0 {
            // Another thread than the one that used the ring cannot do this.
            if self.wait(Some(PAUSE)).is_err() {
                return false;
            }
            while self.next().is_some() {}
            if Instant::now() >= until {
                return self.running == 0;
            }
        }
        true
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.quiesce() {
            // The kernel takes its time to end a ring; without files it holds no port meanwhile.
            let submitter = self.io.submitter();
            let _ = submitter.unregister_files();
            let _ = submitter.unregister_buf_ring(GROUP);
            return;
        }
        mem::forget(mem::replace(&mut self.buffers, Buffers::new(1, 1)));
        mem::forget(mem::replace(&mut self.messages, Messages::new(1)));
        mem::forget(Arc::clone(&self.transmit));
    }
}
