//! The ring: the one place that knows `io_uring`, and with its submodules the only one with `unsafe`.
//!
//! All memory that the kernel reads or writes belongs to the ring, or is shared with it, and outlives every
//! operation: a ring that cannot prove at its end that all operations have ended leaks that memory.

mod buffers;
mod memory;
mod messages;
mod slots;

use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};

use crate::refusal::{Reason, Refusal, Step};
use crate::wire::{Control, Name, RX_PAYLOAD};

pub(crate) use buffers::Buffers;
pub(crate) use slots::SlotMemory;

use memory::Region;
use messages::Messages;

/// Sends that one chain may hold.
pub(crate) const CHAIN: u16 = 128;
/// A whole chain, a receive, a wake-up and a cancellation.
const SUBMISSIONS: u32 = 256;
/// Two for each of many zero-copy sends, and what arrives meanwhile.
const COMPLETIONS: u32 = 2048;
/// The group that receive buffers belong to.
const GROUP: u16 = 0;
/// Registered files.
const SOCKET: Fixed = Fixed(0);
const WAKER: Fixed = Fixed(1);
/// How long the end of a ring may take.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long one wait within that may take.
const PAUSE: Duration = Duration::from_millis(10);

/// What a ring is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Receive buffers.
    pub(crate) buffers: u16,
    /// Bytes of payload that each holds.
    pub(crate) buffer_bytes: usize,
    /// Bytes of transmit memory.
    pub(crate) transmit_bytes: usize,
}

/// An operation that has ended, or a step of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Completion {
    /// A buffer was filled with `len` bytes; it is ours until it is given back.
    Received { buffer: u16, len: usize },
    /// The receive has ended with this error number.
    ReceiveFailed { error: i32 },
    /// The oldest send of the chain has ended, with 0 or a negative error number.
    Sent { result: i32 },
    /// An unparker was used.
    Woken,
}

/// A send: which message header it takes, what it sends and with what.
#[derive(Debug)]
pub(crate) struct Send<'a> {
    /// Place in the chain.
    pub(crate) index: u16,
    /// Within the transmit memory.
    pub(crate) data: Range<usize>,
    pub(crate) name: &'a Name,
    pub(crate) control: &'a Control,
    /// The next send waits for this one, and is cancelled if it fails.
    pub(crate) linked: bool,
}

/// What a completion belongs to: the upper half of its user data. The lower half is an index.
mod kind {
    pub(super) const RECEIVE: u32 = 1;
    pub(super) const WAKE: u32 = 2;
    pub(super) const SEND: u32 = 3;
    pub(super) const CANCEL: u32 = 4;
}

/// A ring with one socket and one event counter.
pub(crate) struct Ring {
    io: IoUring,
    buffers: Buffers,
    messages: Messages,
    transmit: Arc<Region>,
    /// Operations of which a completion is still to come.
    running: usize,
    receiving: bool,
    waking: bool,
    /// The thread that uses the ring is known to the kernel.
    started: bool,
}

impl Ring {
    /// Sets up a ring that no thread owns yet, and the memory to send from.
    pub(crate) fn new(
        setup: &Setup,
        socket: BorrowedFd<'_>,
        waker: BorrowedFd<'_>,
    ) -> Result<(Self, SlotMemory), Refusal> {
        let io = IoUring::builder()
            .dontfork()
            .setup_r_disabled()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)
            .map_err(|error| Refusal::new(Step::Setup, &error))?;
        io.submitter()
            .register_files(&[socket.as_raw_fd(), waker.as_raw_fd()])
            .map_err(|error| Refusal::new(Step::Files, &error))?;
        let (memory, transmit) = SlotMemory::new(setup.transmit_bytes);
        let mut ring = Self {
            io,
            buffers: Buffers::new(setup.buffers, RX_PAYLOAD + setup.buffer_bytes),
            messages: Messages::new(CHAIN),
            transmit,
            running: 0,
            receiving: false,
            waking: false,
            started: false,
        };
        ring.register_buffers().map_err(|error| Refusal::new(Step::Buffers, &error))?;
        Ok((ring, memory))
    }

    fn register_buffers(&mut self) -> io::Result<()> {
        // SAFETY: the ring of buffers has as many entries as it says, and stays where it is until the ring has
        // ended: `self` owns it and leaks it if operations may still run by then.
        unsafe {
            self.io.submitter().register_buf_ring_with_flags(
                self.buffers.address(),
                self.buffers.count(),
                GROUP,
                0,
            )?;
        }
        self.buffers.give_all();
        Ok(())
    }

    /// Whether the kernel knows every operation that a ring of ours runs.
    pub(crate) fn check_operations(&self) -> Result<(), Refusal> {
        let mut known = Probe::new();
        let failed = |error: io::Error| Refusal::new(Step::Operations, &error);
        self.io.submitter().register_probe(&mut known).map_err(failed)?;
        let needed = [
            opcode::SendMsg::CODE,
            opcode::RecvMsgMulti::CODE,
            opcode::Read::CODE,
            opcode::AsyncCancel2::CODE,
        ];
        if needed.iter().all(|code| known.is_supported(*code)) {
            return Ok(());
        }
        Err(Refusal { step: Step::Operations, reason: Reason::TooOld })
    }

    /// Makes the calling thread the owner, if there is none yet, and asks for datagrams and wake-ups if that
    /// has ended. The requests leave with the next entry.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        if !self.started {
            self.io.submitter().register_enable_rings()?;
            self.started = true;
        }
        // Without a buffer it would end at once.
        if !self.receiving && self.buffers.available() > 0 {
            let receive = opcode::RecvMsgMulti::new(SOCKET, self.messages.receive(), GROUP)
                .flags(libc::MSG_TRUNC as u32)
                .build();
            // SAFETY: the header belongs to `self.messages`, the buffers to `self.buffers`: both outlive the
            // operation.
            self.receiving = unsafe { self.push(&receive, kind::RECEIVE, 0) };
        }
        if !self.waking {
            let read = opcode::Read::new(WAKER, self.messages.wakes(), size_of::<u64>() as u32).build();
            // SAFETY: the number belongs to `self.messages`, which outlives the operation, and nothing else uses it.
            self.waking = unsafe { self.push(&read, kind::WAKE, 0) };
        }
        Ok(())
    }

    /// Adds a send to the chain; false if there is no room or the memory does not exist.
    pub(crate) fn send(&mut self, send: &Send<'_>) -> bool {
        let Range { start, end } = send.data;
        if start > end || end > self.transmit.len() || self.room() == 0 {
            return false;
        }
        // SAFETY: the range lies within the region.
        let data = unsafe { self.transmit.start().add(start) };
        let Some(header) = self.messages.fill(send.index, data, end - start, send.name, send.control) else {
            return false;
        };
        let mut entry = opcode::SendMsg::new(SOCKET, header).build();
        if send.linked {
            entry = entry.flags(squeue::Flags::IO_LINK);
        }
        // SAFETY: header, name and control messages belong to `self.messages`, whose entry stays busy until the
        // operation has ended. The data belongs to a region that `self` shares and keeps as long.
        let pushed = unsafe { self.push(&entry, kind::SEND, u32::from(send.index)) };
        if !pushed {
            self.messages.free(send.index);
        }
        pushed
    }

    /// Submissions that can be added.
    pub(crate) fn room(&mut self) -> usize {
        let queue = self.io.submission();
        queue.capacity() - queue.len()
    }

    /// Submits what was added, and does what the kernel has put off.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        tolerate(self.io.submit())
    }

    /// Like [`Ring::submit`], and goes on with chains as far as they come without waiting.
    pub(crate) fn submit_chain(&mut self, sends: usize) -> io::Result<()> {
        self.enter(sends, Some(Duration::ZERO))
    }

    /// Submits what was added, and waits for a completion, at most for `limit`.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.enter(1, limit)
    }

    fn enter(&mut self, completions: usize, limit: Option<Duration>) -> io::Result<()> {
        let submitter = self.io.submitter();
        tolerate(match limit {
            None => submitter.submit_and_wait(completions),
            Some(limit) => {
                let limit = Timespec::from(limit);
                submitter.submit_with_args(completions, &SubmitArgs::new().timespec(&limit))
            }
        })
    }

    /// The next completion that has been seen, or can be without entering the kernel.
    pub(crate) fn next(&mut self) -> Option<Completion> {
        loop {
            let entry = self.io.completion().next()?;
            let (flags, result) = (entry.flags(), entry.result());
            let ends = !cqueue::more(flags);
            if ends {
                self.running = self.running.saturating_sub(1);
            }
            let (kind, index) = ((entry.user_data() >> 32) as u32, entry.user_data() as u16);
            match kind {
                kind::RECEIVE => {
                    if let Some(completion) = self.received(result, cqueue::buffer_select(flags), ends) {
                        return Some(completion);
                    }
                }
                kind::WAKE => {
                    self.waking = false;
                    if result > 0 {
                        return Some(Completion::Woken);
                    }
                }
                kind::SEND => {
                    self.messages.free(index);
                    return Some(Completion::Sent { result: result.min(0) });
                }
                _ => {}
            }
        }
    }

    fn received(&mut self, result: i32, buffer: Option<u16>, ends: bool) -> Option<Completion> {
        self.receiving &= !ends;
        let taken = buffer.filter(|buffer| self.buffers.take(*buffer));
        match (usize::try_from(result), taken) {
            (Ok(len), Some(buffer)) => return Some(Completion::Received { buffer, len }),
            (Err(_), Some(buffer)) => self.buffers.give(buffer),
            (_, None) => {}
        }
        // No buffer was left, or its thread has ended: it is armed again, which is no failure.
        let harmless = result >= 0 || [-libc::ENOBUFS, -libc::ECANCELED].contains(&result);
        (!harmless).then_some(Completion::ReceiveFailed { error: -result })
    }

    /// Whether entering the kernel or another look at completions may bring something.
    pub(crate) fn has_work(&mut self) -> bool {
        if !self.io.completion().is_empty() {
            return true;
        }
        let queue = self.io.submission();
        queue.taskrun() || queue.cq_overflow() || !queue.is_empty()
    }

    /// Whether datagrams are asked for.
    pub(crate) fn is_receiving(&self) -> bool {
        self.receiving
    }

    pub(crate) fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    /// # Safety
    /// All that `entry` points to must stay valid until the operation has ended, or as long as `self` has memory
    /// that the kernel may use.
    unsafe fn push(&mut self, entry: &squeue::Entry, kind: u32, index: u32) -> bool {
        let entry = entry.clone().user_data(u64::from(kind) << 32 | u64::from(index));
        // SAFETY: the caller's promise.
        let pushed = unsafe { self.io.submission().push(&entry) }.is_ok();
        self.running += usize::from(pushed);
        pushed
    }

    /// Cancels what runs and waits for its end, for a moment. Returns whether nothing runs any more.
    fn quiesce(&mut self) -> bool {
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

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("fd", &self.io.as_raw_fd())
            .field("running", &self.running)
            .field("receiving", &self.receiving)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}

/// Passes over what an entry reports that is no failure.
fn tolerate(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            // The time is over, a signal came, completions must be looked at first, memory is short for a moment.
            Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
            Some(libc::EEXIST) => Err(io::Error::other(
                "the ring belongs to the thread that used the driver first, and this is another",
            )),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests;
