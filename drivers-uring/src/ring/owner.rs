//! How a ring gets to another thread: the kernel lets one alone use it, so that the next one gets a new ring.

use std::io;
use std::mem::{self, ManuallyDrop};

use super::end::CLOSING;
use super::{Completion, Ring, Sending, setup, tolerate};

impl Ring {
    /// Passes over what `entered` reports that is no failure. If the ring belongs to another thread, the calling one gets
    /// it: what was submitted and has not ended is reported as cancelled.
    pub(super) fn own(&mut self, entered: io::Result<usize>) -> io::Result<()> {
        match tolerate(entered) {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => self.replace(),
            entered => entered,
        }
    }

    fn replace(&mut self) -> io::Result<()> {
        let (io, life) = setup::build(&self.setup, &self.files).map_err(io::Error::other)?;
        // Whatever the thread before has done stands there. It does nothing more: that would take a call of its own.
        while let Some(completion) = self.seen() {
            self.left.push_back(completion);
        }
        drop(ManuallyDrop::into_inner(mem::replace(&mut self.io, ManuallyDrop::new(io))));
        self.before = Some(mem::replace(&mut self.life, life));
        self.started = false;
        self.receiving = false;
        self.waking = false;
        self.finish_replacing()
    }

    /// Goes on when the kernel has ended the ring before: only then the memory is free for another.
    ///
    /// # Errors
    /// It takes too long. What is tried next goes on from here.
    pub(super) fn finish_replacing(&mut self) -> io::Result<()> {
        if self.before.as_ref().is_some_and(|before| !before.has_ended(CLOSING)) {
            let what = "the kernel has not ended the ring of the thread that used the driver before";
            return Err(io::Error::new(io::ErrorKind::TimedOut, what));
        }
        self.equip().map_err(io::Error::other)?;
        if self.sending != Sending::Copy {
            self.sending = self.register_transmit();
        }
        self.before = None;
        self.chain.clear();
        self.running = 0;
        self.holding = 0;
        // A send that has not ended was not begun: it waited for room or for another.
        while let Some(index) = self.messages.busy() {
            self.messages.free(index);
            self.left.push_back(Completion::Sent { index, result: -libc::ECANCELED, holds: false });
        }
        self.left.push_back(Completion::Replaced);
        Ok(())
    }
}
