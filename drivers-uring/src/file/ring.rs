//! A ring for one file: it owns every buffer for as long as the kernel reads or writes there.
//!
//! Nothing is registered. Data is copied to and from the page cache either way, and pinned buffers would count against the
//! limit on locked memory; a registered file, and the lock on it, would outlive a process that is killed by some 30 ms.

use std::io;
use std::mem::{self, ManuallyDrop};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, opcode, squeue};

use crate::refusal::{Reason, Refusal, Step};
use crate::ring::tolerate;

/// User data of the operation that cancels all others, and of the one that is tried first.
const CANCEL: u64 = u64::MAX;
const TRIAL: u64 = u64::MAX - 1;
/// How long the end of a ring may take; the memory of what runs longer stays.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long one wait within that may take.
const PAUSE: Duration = Duration::from_millis(10);

/// What to do between a buffer and the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// From the file.
    In,
    /// To the file.
    Out,
}

/// Bytes `done..end` of `buffer`, which still have to move. Nothing looks at them meanwhile, not even `Debug`.
struct Operation {
    way: Way,
    buffer: Vec<u8>,
    done: usize,
    end: usize,
    /// Where `buffer` begins in the file.
    offset: u64,
}

enum Place {
    Free,
    Running(Operation),
    Done(io::Result<Vec<u8>>),
}

/// A ring with one file, and places for operations on it.
pub(super) struct Ring {
    /// Dropped by hand, before the buffers.
    io: ManuallyDrop<IoUring>,
    file: OwnedFd,
    places: Box<[Place]>,
    running: usize,
}

impl Ring {
    /// A ring for `file` with so many places. Any thread may use it, one at a time.
    ///
    /// # Errors
    /// What the system refused, and why.
    pub(super) fn new(file: impl AsFd, places: u16) -> Result<Self, Refusal> {
        let refused = |step| move |error: io::Error| Refusal::new(step, &error);
        let file = file.as_fd().try_clone_to_owned().map_err(refused(Step::Files))?;
        // One entry more, for the cancellation.
        let entries = (u32::from(places) + 1).next_power_of_two();
        let mut builder = IoUring::builder();
        let io = builder.dontfork().setup_coop_taskrun().build(entries).map_err(refused(Step::Setup))?;
        let mut known = Probe::new();
        io.submitter().register_probe(&mut known).map_err(refused(Step::Operations))?;
        let needed = [opcode::Read::CODE, opcode::Write::CODE, opcode::AsyncCancel2::CODE];
        if !needed.iter().all(|code| known.is_supported(*code)) {
            return Err(Refusal { step: Step::Operations, reason: Reason::TooOld });
        }
        let places = (0..places).map(|_| Place::Free).collect();
        let mut ring = Self { io: ManuallyDrop::new(io), file, places, running: 0 };
        ring.try_out().map_err(refused(Step::Trial))?;
        Ok(ring)
    }

    /// Lets something pass through the ring: a filter may let it be made and not be used.
    fn try_out(&mut self) -> io::Result<()> {
        // SAFETY: the operation uses no memory.
        unsafe { self.push(&opcode::Nop::new().build().user_data(TRIAL)) };
        while self.io.completion().next().is_none() {
            self.enter(1)?;
        }
        Ok(())
    }

    /// A place where nothing is.
    pub(super) fn free(&self) -> Option<usize> {
        self.places.iter().position(|place| matches!(place, Place::Free))
    }

    /// Begins to move `len` bytes between the start of `buffer`, at most all of it, and the file from `offset` on. Nothing
    /// happens if the place is not free. It leaves with the next [`Ring::submit`] or [`Ring::wait`].
    pub(super) fn begin(&mut self, place: usize, way: Way, buffer: Vec<u8>, len: usize, offset: u64) {
        let Some(Place::Free) = self.places.get(place) else { return };
        let end = len.min(buffer.len());
        if end == 0 {
            self.places[place] = Place::Done(Ok(buffer));
            return;
        }
        self.running += 1;
        self.go_on(place, Operation { way, buffer, done: 0, end, offset });
    }

    /// What became of the operation at `place`, if it has ended; the place is free again.
    pub(super) fn take(&mut self, place: usize) -> Option<io::Result<Vec<u8>>> {
        let place = self.places.get_mut(place)?;
        if !matches!(place, Place::Done(_)) {
            return None;
        }
        match mem::replace(place, Place::Free) {
            Place::Done(result) => Some(result),
            Place::Free | Place::Running(_) => None,
        }
    }

    /// Lets the kernel begin, and looks at what has ended.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        if !self.io.submission().is_empty() {
            self.enter(0)?;
        }
        self.reap();
        Ok(())
    }

    /// Lets the kernel begin, and waits until something ends, if anything runs.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        if self.running > 0 {
            self.enter(1)?;
        }
        self.reap();
        Ok(())
    }

    /// Enters the kernel. A signal is no failure.
    fn enter(&self, completions: usize) -> io::Result<()> {
        match self.io.submitter().submit_and_wait(completions) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Looks at what has ended; what has moved in part goes on.
    fn reap(&mut self) {
        loop {
            let Some(entry) = self.io.completion().next() else { return };
            let place = entry.user_data() as usize;
            let Some(here @ Place::Running(_)) = self.places.get_mut(place) else { continue };
            // The kernel has no use for the buffer any more.
            let Place::Running(mut operation) = mem::replace(here, Place::Free) else { continue };
            match operation.settle(entry.result()) {
                Some(result) => {
                    self.running -= 1;
                    self.places[place] = Place::Done(result.map(|()| operation.buffer));
                }
                None => self.go_on(place, operation),
            }
        }
    }

    /// Asks for what has not moved yet.
    fn go_on(&mut self, place: usize, mut operation: Operation) {
        let entry = operation.entry(Fd(self.file.as_raw_fd())).user_data(place as u64);
        self.places[place] = Place::Running(operation);
        // SAFETY: the buffer belongs to the place until its completion is seen. Moving the operation there has not moved
        // the buffer's memory, which nothing touches meanwhile; `drop` leaks it if it cannot wait for the completion.
        unsafe { self.push(&entry) };
    }

    /// # Safety
    /// All that `entry` points to must stay valid until the operation has ended.
    unsafe fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the caller's promise.
        let pushed = unsafe { self.io.submission().push(entry) };
        // There are more entries than places, and each place has at most one that the kernel has not taken.
        debug_assert!(pushed.is_ok());
    }

    /// Cancels what runs and waits for its end, for a moment. Returns whether nothing runs any more.
    fn quiesce(&mut self) -> bool {
        if self.running == 0 {
            return true;
        }
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any()).build().user_data(CANCEL);
        // SAFETY: the operation uses no memory.
        unsafe { self.push(&cancel) };
        let until = Instant::now() + PATIENCE;
        let pause = Timespec::from(PAUSE);
        while self.running > 0 && Instant::now() < until {
            let waited = self.io.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&pause));
            if tolerate(waited).is_err() {
                return false;
            }
            while let Some(entry) = self.io.completion().next() {
                if let Some(here @ Place::Running(_)) = self.places.get_mut(entry.user_data() as usize) {
                    *here = Place::Free;
                    self.running -= 1;
                }
            }
        }
        self.running == 0
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let quiet = self.quiesce();
        // SAFETY: it is dropped nowhere else, and not used behind this.
        unsafe { ManuallyDrop::drop(&mut self.io) };
        if !quiet {
            mem::forget(mem::take(&mut self.places));
        }
    }
}

impl Operation {
    fn entry(&mut self, file: Fd) -> squeue::Entry {
        let rest = &mut self.buffer[self.done..self.end];
        let len = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let offset = self.offset + self.done as u64;
        match self.way {
            Way::In => opcode::Read::new(file, rest.as_mut_ptr(), len).offset(offset).build(),
            Way::Out => opcode::Write::new(file, rest.as_ptr(), len).offset(offset).build(),
        }
    }

    /// Draws the conclusion from a completion; none if there is more to do.
    fn settle(&mut self, result: i32) -> Option<io::Result<()>> {
        match (usize::try_from(result), -result) {
            (Ok(0), _) => {
                let kind = match self.way {
                    Way::In => io::ErrorKind::UnexpectedEof,
                    Way::Out => io::ErrorKind::WriteZero,
                };
                return Some(Err(kind.into()));
            }
            (Ok(moved), _) => self.done += moved.min(self.end - self.done),
            // A signal, or the thread that submitted it is gone.
            (Err(_), libc::EINTR | libc::ECANCELED) => {}
            (Err(_), code) => return Some(Err(io::Error::from_raw_os_error(code))),
        }
        (self.done == self.end).then_some(Ok(()))
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("fd", &self.io.as_raw_fd())
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
