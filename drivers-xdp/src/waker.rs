//! Waiting, and wake-ups from other threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use wraith_drivers::Unpark;

/// What a park waits for, and an outer loop watches.
#[derive(Debug)]
pub(crate) struct Waker {
    counter: Arc<EventFd>,
    /// Readable while one of the sockets is.
    sockets: Epoll,
}

impl Waker {
    pub(crate) fn new(sockets: [BorrowedFd<'_>; 2]) -> io::Result<Self> {
        let counter = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let all = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for fd in sockets {
            all.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        }
        Ok(Self { counter: Arc::new(counter), sockets: all })
    }

    /// Waits for a socket or an unparker, for at most `limit`, and returns whether a socket is readable.
    pub(crate) fn wait(&self, sockets: [BorrowedFd<'_>; 2], limit: Option<Duration>) -> io::Result<bool> {
        let [first, second] = sockets;
        let mut fds = [first, second, self.counter.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match ppoll(&mut fds, limit.map(Into::into), None) {
            Ok(_) => {}
            // A signal: the caller looks at its deadline and comes back.
            Err(Errno::EINTR) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        }
        let some = |fd: &PollFd<'_>| fd.revents().is_none_or(|events| !events.is_empty());
        Ok(some(&fds[0]) || some(&fds[1]))
    }

    /// Whether an unparker was used since the last time.
    pub(crate) fn take(&self) -> bool {
        self.counter.read().is_ok()
    }

    pub(crate) fn unparker(&self) -> XdpUnparker {
        XdpUnparker { counter: Arc::clone(&self.counter) }
    }

    /// What an outer loop watches.
    pub(crate) fn sockets(&self) -> BorrowedFd<'_> {
        self.sockets.0.as_fd()
    }
}

/// Ends the park of an [`XdpDriver`](crate::XdpDriver).
#[derive(Clone, Debug)]
pub struct XdpUnparker {
    counter: Arc<EventFd>,
}

impl Unpark for XdpUnparker {
    fn unpark(&self) -> io::Result<()> {
        self.counter.write(1)?;
        Ok(())
    }
}
