//! Waiting, and wake-ups from other threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
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
    /// Readable while one of the sockets is, once somebody has asked for it.
    sockets: Epoll,
    /// How it went to put the sockets there. Before that they cost nothing: a watched socket calls its watcher for each
    /// packet.
    watched: OnceLock<Result<(), Errno>>,
}

/// What has something to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ready {
    pub(crate) first: bool,
    pub(crate) second: bool,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let counter = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let sockets = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self { counter: Arc::new(counter), sockets, watched: OnceLock::new() })
    }

    /// Waits for a socket or an unparker, for at most `limit`, and returns which sockets are readable; none if it does not
    /// know.
    pub(crate) fn wait(
        &self,
        sockets: [BorrowedFd<'_>; 2],
        limit: Option<Duration>,
    ) -> io::Result<Option<Ready>> {
        let [first, second] = sockets;
        let mut fds = [first, second, self.counter.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match ppoll(&mut fds, limit.map(Into::into), None) {
            Ok(_) => {}
            // A signal: the caller looks at its deadline and comes back.
            Err(Errno::EINTR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
        let some = |fd: &PollFd<'_>| fd.revents().is_none_or(|events| !events.is_empty());
        Ok(Some(Ready { first: some(&fds[0]), second: some(&fds[1]) }))
    }

    /// Whether an unparker was used since the last time.
    pub(crate) fn take(&self) -> bool {
        self.counter.read().is_ok()
    }

    pub(crate) fn unparker(&self) -> XdpUnparker {
        XdpUnparker { counter: Arc::clone(&self.counter) }
    }

    /// What an outer loop watches, from its first call on with these sockets.
    pub(crate) fn watch(&self, sockets: [BorrowedFd<'_>; 2]) -> BorrowedFd<'_> {
        self.watched.get_or_init(|| {
            sockets
                .into_iter()
                .try_for_each(|fd| self.sockets.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, 0)))
        });
        self.sockets.0.as_fd()
    }

    /// Whether an outer loop watches.
    ///
    /// # Errors
    /// One wants to, and the system refused.
    pub(crate) fn is_watched(&self) -> io::Result<bool> {
        match self.watched.get() {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(errno)) => Err((*errno).into()),
        }
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
