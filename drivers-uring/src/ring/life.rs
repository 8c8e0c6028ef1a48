//! Whether the kernel has ended a ring, which takes it a while after the last descriptor is closed.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// The read end of a pipe whose write end is a registered file of the ring, and of nobody else: the kernel closes it when
/// every operation has ended.
#[derive(Debug)]
pub(super) struct Life(PipeReader);

impl Life {
    /// What waits for the end, and the write end.
    pub(super) fn new() -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self(reader), writer))
    }

    /// Waits for the end, at most for `limit`; returns whether it has come.
    pub(super) fn has_ended(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::empty())];
            // A signal may come first. Hanging up is told unasked.
            if poll(&mut fds, timeout).is_ok_and(|ready| ready > 0) {
                return true;
            }
            if left.is_zero() {
                return false;
            }
        }
    }
}
