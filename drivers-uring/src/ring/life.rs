//! Whether the kernel has ended a ring, which takes it a while after the last descriptor is closed.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// The read ends of two pipes whose write ends are registered files of the ring, and of nobody else: the kernel closes them
/// when every operation has ended. It lets go of files in one order or the other, and closes those that it has let go of in
/// one order or the other: only when the first and the last are closed, those between them are as well.
#[derive(Debug)]
pub(super) struct Life([PipeReader; 2]);

impl Life {
    /// What waits for the end, and the write ends.
    pub(super) fn new() -> io::Result<(Self, [PipeWriter; 2])> {
        let [(first, first_sign), (last, last_sign)] = [io::pipe()?, io::pipe()?];
        Ok((Self([first, last]), [first_sign, last_sign]))
    }

    /// Waits for the end, at most for `limit`; returns whether it has come.
    pub(super) fn has_ended(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        self.0.iter().all(|sign| is_closed(sign, until))
    }
}

fn is_closed(sign: &PipeReader, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(sign.as_fd(), PollFlags::empty())];
        // A signal may come first. Hanging up is told unasked.
        if poll(&mut fds, timeout).is_ok_and(|ready| ready > 0) {
            return true;
        }
        if left.is_zero() {
            return false;
        }
    }
}
