//! Wake-ups from other threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::sys::eventfd::{EfdFlags, EventFd};
use wraith_drivers::Unpark;

/// An event counter that the ring polls: it tells early that there is something, and reading it what.
#[derive(Debug)]
pub(crate) struct Waker {
    counter: Arc<EventFd>,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let counter = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self { counter: Arc::new(counter) })
    }

    /// Whether an unparker was used since the last time.
    pub(crate) fn take(&self) -> bool {
        self.counter.read().is_ok()
    }

    pub(crate) fn unparker(&self) -> UringUnparker {
        UringUnparker { counter: Arc::clone(&self.counter) }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.counter.as_fd()
    }
}

/// Ends the park of a [`UringDriver`](crate::UringDriver).
#[derive(Clone, Debug)]
pub struct UringUnparker {
    counter: Arc<EventFd>,
}

impl Unpark for UringUnparker {
    fn unpark(&self) -> io::Result<()> {
        self.counter.write(1)?;
        Ok(())
    }
}
