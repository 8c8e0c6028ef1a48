//! The descriptor for outer loops.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// A descriptor that is readable while the socket or the ring has something, or the driver has kept something.
#[derive(Debug)]
pub(crate) struct Outer {
    all: Epoll,
    /// Readable while the driver keeps datagrams: neither the socket nor the ring shows them any more.
    kept: EventFd,
    shows_kept: AtomicBool,
    /// Somebody has asked for the descriptor; until then nothing is spent on it.
    watched: AtomicBool,
}

impl Outer {
    pub(crate) fn new(ring: BorrowedFd<'_>, socket: BorrowedFd<'_>) -> io::Result<Self> {
        let all = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let kept = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        for fd in [ring, socket, kept.as_fd()] {
            all.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        }
        Ok(Self { all, kept, shows_kept: false.into(), watched: false.into() })
    }

    /// Watches another ring: the one before has been closed, and with it went what watched it.
    pub(crate) fn watch(&self, ring: BorrowedFd<'_>) -> io::Result<()> {
        self.all.add(ring, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        Ok(())
    }

    /// The descriptor, which from now on shows whether the driver has `kept` something.
    pub(crate) fn fd(&self, kept: bool) -> BorrowedFd<'_> {
        self.watched.store(true, Ordering::Relaxed);
        // A counter far from its limit takes a number at any time.
        let _ = self.show(kept);
        self.all.0.as_fd()
    }

    /// Shows whether the driver has `kept` something, if anybody looks.
    pub(crate) fn show(&self, kept: bool) -> io::Result<()> {
        if !self.watched.load(Ordering::Relaxed) || self.shows_kept.swap(kept, Ordering::Relaxed) == kept {
            return Ok(());
        }
        if kept {
            self.kept.write(1)?;
        } else {
            self.kept.read()?;
        }
        Ok(())
    }
}
