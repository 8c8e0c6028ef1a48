//! Waiting: readiness edges, wake-ups from other threads, deadlines in nanoseconds.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token, Waker};
use wraith_drivers::Unpark;

use crate::socket::Socket;

const SOCKET: Token = Token(0);
const WAKER: Token = Token(1);

#[derive(Debug)]
pub(crate) struct Parker {
    poll: Poll,
    events: Events,
    waker: Arc<Waker>,
    unparked: bool,
    /// There may be something to receive: set by an edge, cleared when the socket was found empty.
    pub(crate) readable: bool,
    /// There may be room to send: set by an edge, cleared when the socket was found full.
    pub(crate) writable: bool,
    /// Which edges are asked for.
    interest: Interest,
}

impl Parker {
    pub(crate) fn new(socket: &mut Socket) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let interest = Interest::READABLE;
        poll.registry().register(socket.source(), SOCKET, interest)?;
        Ok(Self {
            poll,
            events: Events::with_capacity(4),
            waker,
            unparked: false,
            readable: false,
            writable: false,
            interest,
        })
    }

    /// Asks for edges of room to send, or for none.
    ///
    /// Every packet that leaves makes such an edge, so they are asked for only while one is waited for.
    /// Asking counts the present state as an edge: none is lost.
    pub(crate) fn watch_room(&mut self, socket: &mut Socket, watch: bool) -> io::Result<()> {
        let interest = if watch { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        if interest != self.interest {
            self.poll.registry().reregister(socket.source(), SOCKET, interest)?;
            self.interest = interest;
        }
        Ok(())
    }

    /// Waits for an event for at most `limit`, or about a millisecond less, and notes what came.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        match self.wait_coarse_or_fine(limit) {
            // A signal: the caller looks at its deadline and comes back.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &self.events {
            if event.token() == WAKER {
                self.unparked = true;
            } else {
                self.readable |= event.is_readable() || event.is_error() || event.is_read_closed();
                self.writable |= event.is_writable() || event.is_error();
            }
        }
        Ok(())
    }

    pub(crate) fn take_unparked(&mut self) -> bool {
        std::mem::take(&mut self.unparked)
    }

    pub(crate) fn unparker(&self) -> MioUnparker {
        MioUnparker { waker: Arc::clone(&self.waker) }
    }

    /// Waits whole milliseconds first, then the rest: epoll counts milliseconds, a pacer does not.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn wait_coarse_or_fine(&mut self, limit: Option<Duration>) -> io::Result<()> {
        use nix::poll::{PollFd, PollFlags, ppoll};
        use std::os::fd::AsFd;

        let Some(limit) = limit else { return self.poll.poll(&mut self.events, None) };
        let whole = Duration::from_millis(limit.as_millis().min(u128::from(u32::MAX)) as u64);
        if whole.is_zero() && !limit.is_zero() {
            let mut fds = [PollFd::new(self.poll.registry().as_fd(), PollFlags::POLLIN)];
            ppoll(&mut fds, Some(limit.into()), None)?;
        }
        self.poll.poll(&mut self.events, Some(whole))
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn wait_coarse_or_fine(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.poll.poll(&mut self.events, limit)
    }
}

/// Ends the park of a [`MioDriver`](crate::MioDriver).
#[derive(Clone, Debug)]
pub struct MioUnparker {
    waker: Arc<Waker>,
}

impl Unpark for MioUnparker {
    fn unpark(&self) -> io::Result<()> {
        self.waker.wake()
    }
}
