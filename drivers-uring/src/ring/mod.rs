//! The ring: the one place that knows `io_uring`, and with its submodules the only one with `unsafe`.
//!
//! All memory that the kernel reads or writes belongs to the ring, or is shared with it, and outlives every
//! operation: a ring that cannot prove at its end that all operations have ended leaks that memory.
//!
//! The kernel lets one thread alone use a ring (`IORING_SETUP_SINGLE_ISSUER`). When another one comes, it gets a ring of
//! its own with the same memory, and the one before is ended.

mod buffers;
mod end;
mod life;
mod memory;
mod messages;
mod owner;
mod setup;
mod slots;

use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::wire::{Control, Name};

pub(crate) use buffers::Buffers;
pub(crate) use setup::Setup;
pub(crate) use slots::SlotMemory;

use life::Life;
use memory::Region;
use messages::Messages;

/// Sends that may enter together.
pub(crate) const CHAIN: u16 = 128;
/// The group that receive buffers belong to.
const GROUP: u16 = 0;
/// Registered files, between two that are there for [`Life`].
const SOCKET: Fixed = Fixed(1);
const WAKER: Fixed = Fixed(2);
/// `IORING_SEND_ZC_REPORT_USAGE`, and what is reported then: `IORING_NOTIF_USAGE_ZC_COPIED`.
const REPORT_USAGE: u16 = 1 << 3;
const USAGE_COPIED: u32 = 1 << 31;

/// An operation that has ended, or a step of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Completion {
    /// A buffer was filled with `len` bytes; it is ours until it is given back.
    Received { buffer: u16, len: usize },
    /// The receive has ended with this error number.
    ReceiveFailed { error: i32 },
    /// Something may have arrived, and [`Ring::receive`] brings it.
    Arrived,
    /// A send has ended, with 0 or a negative error number. If it `holds` its slot, the network still reads there.
    Sent { index: u16, result: i32, holds: bool },
    /// The network reads no more for one of the sends that held this slot; it may have `copied` instead.
    Released { slot: u16, copied: bool },
    /// An unparker was used, perhaps before the counter was read last.
    Woken,
    /// The ring is another one, with another descriptor. No send that has ended holds its slot any more.
    Replaced,
}

/// A send: which message header it takes, what it sends and with what.
#[derive(Debug)]
pub(crate) struct Send<'a> {
    /// Names it in its completion.
    pub(crate) index: u16,
    /// Slot of the data.
    pub(crate) slot: u16,
    /// Within the transmit memory.
    pub(crate) data: Range<usize>,
    pub(crate) name: &'a Name,
    pub(crate) control: &'a Control,
    /// The next send waits for this one, and is cancelled if it fails.
    pub(crate) linked: bool,
}

/// What a completion belongs to: the upper half of its user data. The lower half has a slot and an index.
mod kind {
    pub(super) const RECEIVE: u32 = 1;
    pub(super) const WAKE: u32 = 2;
    pub(super) const SEND: u32 = 3;
    pub(super) const CANCEL: u32 = 4;
}

/// A ring with one socket and one event counter.
pub(crate) struct Ring {
    /// Dropped by hand, because the rest has to wait for its end.
    io: ManuallyDrop<IoUring>,
    life: Life,
    /// The ring of the thread before, as long as the kernel has not ended it.
    before: Option<Life>,
    /// What a ring of another thread has left, to be reported first.
    left: VecDeque<Completion>,
    /// What the ring was made of, to make another.
    setup: Setup,
    files: [OwnedFd; 2],
    buffers: Buffers,
    messages: Messages,
    transmit: Arc<Region>,
    /// Sends that wait until their chain is whole: a thread of the kernel would take the first ones for all.
    chain: Vec<squeue::Entry>,
    /// Operations of which a completion is still to come.
    running: usize,
    /// Of these, sends that have ended and hold their slots.
    holding: usize,
    receiving: bool,
    waking: bool,
    /// The thread that uses the ring is known to the kernel.
    started: bool,
    sending: Sending,
}

/// How data gets from the slots to the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sending {
    /// Copied by each send.
    Copy,
    /// Read where it is, if the device can.
    ZeroCopy,
    /// Read where it is, from registered memory.
    ZeroCopyFixed,
}

impl Ring {
    /// Makes the calling thread the owner, if there is none yet, and asks for datagrams and wake-ups if that
    /// has ended. The requests leave with the next entry.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        if self.before.is_some() {
            self.finish_replacing()?;
        }
        if !self.started {
            self.io.submitter().register_enable_rings()?;
            self.started = true;
        }
        // Without a buffer it would end at once.
        if !self.receiving && !self.is_polled() && self.buffers.available() > 0 {
            let receive = opcode::RecvMsgMulti::new(SOCKET, self.messages.receive(), GROUP)
                .flags(libc::MSG_TRUNC as u32)
                .build();
            // SAFETY: the header belongs to `self.messages`, the buffers to `self.buffers`: both outlive the
            // operation.
            self.receiving = unsafe { self.push(&receive, kind::RECEIVE, 0) };
        }
        if !self.waking {
            let poll = opcode::PollAdd::new(WAKER, libc::POLLIN as u32).build();
            // SAFETY: the operation uses no memory.
            self.waking = unsafe { self.push(&poll, kind::WAKE, 0) };
        }
        Ok(())
    }

    /// Adds a send to the chain; false if there is no room for more or the memory does not exist.
    pub(crate) fn send(&mut self, send: &Send<'_>) -> bool {
        let Range { start, end } = send.data;
        if start > end || end > self.transmit.len() || self.chain.len() >= self.room() {
            return false;
        }
        // SAFETY: the range lies within the region.
        let data = unsafe { self.transmit.start().add(start) };
        let Some(header) = self.messages.fill(send.index, data, end - start, send.name, send.control) else {
            return false;
        };
        let fixed = (self.sending == Sending::ZeroCopyFixed).then_some(0);
        let mut entry = match self.sending {
            // Linux finds no zero bytes in registered memory: EFAULT.
            _ if start == end => opcode::SendMsg::new(SOCKET, header).build(),
            Sending::Copy => opcode::SendMsg::new(SOCKET, header).build(),
            Sending::ZeroCopy | Sending::ZeroCopyFixed => {
                opcode::SendMsgZc::new(SOCKET, header).ioprio(REPORT_USAGE).buf_index(fixed).build()
            }
        };
        if send.linked {
            entry = entry.flags(squeue::Flags::IO_LINK);
        }
        let index = u32::from(send.slot) << 16 | u32::from(send.index);
        self.chain.push(tagged(&entry, kind::SEND, index));
        true
    }

    /// Submissions that can be added.
    pub(crate) fn room(&mut self) -> usize {
        let queue = self.io.submission();
        queue.capacity() - queue.len()
    }

    /// Submits what was added, and does what the kernel has put off. Returns whether that took a system call.
    pub(crate) fn submit(&mut self) -> io::Result<bool> {
        let polled = self.is_polled();
        let queue = self.io.submission();
        let awake = polled && !queue.need_wakeup() && !queue.cq_overflow();
        drop(queue);
        let entered = self.io.submit();
        self.own(entered)?;
        Ok(!awake)
    }

    /// Submits the chain and what was added, and goes on with the chain as far as it comes without waiting. Returns
    /// whether that took a system call.
    pub(crate) fn submit_chain(&mut self) -> io::Result<bool> {
        let sends = self.chain.len();
        // SAFETY: headers, names and control messages belong to `self.messages`, whose entries stay busy until their
        // operations have ended. The data belongs to a region that `self` shares and keeps as long.
        if unsafe { self.io.submission().push_multiple(&self.chain) }.is_ok() {
            self.running += sends;
            self.chain.clear();
        }
        let releases = if self.sending == Sending::Copy { 0 } else { sends };
        // A single one is done by the submission, and a thread of the kernel needs no help.
        if sends + releases <= 1 || self.is_polled() {
            return self.submit();
        }
        let entered = self.enter(sends + releases, Some(Duration::ZERO));
        self.own(entered)?;
        Ok(true)
    }

    /// Submits what was added, and waits for a completion, at most for `limit`.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        if self.is_polled() && !self.receiving {
            let poll = opcode::PollAdd::new(SOCKET, libc::POLLIN as u32).build();
            // SAFETY: the operation uses no memory.
            self.receiving = unsafe { self.push(&poll, kind::RECEIVE, 0) };
        }
        let entered = self.enter(1, limit);
        self.own(entered)
    }

    fn enter(&mut self, completions: usize, limit: Option<Duration>) -> io::Result<usize> {
        let submitter = self.io.submitter();
        match limit {
            None => submitter.submit_and_wait(completions),
            Some(limit) => {
                let limit = Timespec::from(limit);
                submitter.submit_with_args(completions, &SubmitArgs::new().timespec(&limit))
            }
        }
    }

    /// The next completion that has been seen, or can be without entering the kernel.
    pub(crate) fn next(&mut self) -> Option<Completion> {
        self.left.pop_front().or_else(|| self.seen())
    }

    /// The next completion in the queue that the kernel shares.
    fn seen(&mut self) -> Option<Completion> {
        loop {
            let entry = self.io.completion().next()?;
            let (flags, result) = (entry.flags(), entry.result());
            let (kind, slot) = ((entry.user_data() >> 32) as u32, (entry.user_data() >> 16) as u16);
            let released = cqueue::notif(flags);
            // Cancelled behind a link, a zero-copy send is released although it did not say that it holds.
            if released && self.holding == 0 {
                continue;
            }
            let ends = !cqueue::more(flags);
            self.running = self.running.saturating_sub(ends.into());
            match kind {
                kind::RECEIVE if self.is_polled() => {
                    self.receiving = false;
                    return Some(Completion::Arrived);
                }
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
                kind::SEND if released => {
                    self.holding -= 1;
                    let copied = result.cast_unsigned() & USAGE_COPIED != 0;
                    return Some(Completion::Released { slot, copied });
                }
                kind::SEND => {
                    let index = entry.user_data() as u16;
                    self.messages.free(index);
                    self.holding += usize::from(!ends);
                    return Some(Completion::Sent { index, result: result.min(0), holds: !ends });
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
        // No buffer was left, or its thread has ended, for which EFAULT stands, too: it is armed again, which is no
        // failure.
        let harmless = result >= 0 || [-libc::ENOBUFS, -libc::ECANCELED, -libc::EFAULT].contains(&result);
        (!harmless).then_some(Completion::ReceiveFailed { error: -result })
    }

    /// Whether entering the kernel or another look at completions may bring something.
    pub(crate) fn has_work(&mut self) -> bool {
        if !self.left.is_empty() || !self.io.completion().is_empty() {
            return true;
        }
        let polled = self.is_polled();
        let queue = self.io.submission();
        let waits = !queue.is_empty() && (!polled || queue.need_wakeup());
        waits || queue.taskrun() || queue.cq_overflow()
    }

    /// How later sends get to the network.
    pub(crate) fn sending(&self) -> Sending {
        self.sending
    }

    /// Gives up the last step of [`Sending`] that was gained.
    pub(crate) fn send_plainer(&mut self) {
        self.sending = match self.sending {
            Sending::ZeroCopyFixed => Sending::ZeroCopy,
            Sending::ZeroCopy | Sending::Copy => Sending::Copy,
        };
    }

    /// Copies from now on.
    pub(crate) fn send_copies(&mut self) {
        self.sending = Sending::Copy;
    }

    /// Whether a thread of the kernel submits.
    pub(crate) fn is_polled(&self) -> bool {
        self.io.params().is_setup_sqpoll()
    }

    /// Whether datagrams are asked for.
    pub(crate) fn is_receiving(&self) -> bool {
        self.receiving
    }

    /// Receives without the ring, if a thread of the kernel submits: it would have datagrams in hand that neither the
    /// socket nor the ring shows.
    pub(crate) fn receive(&mut self) -> Option<Completion> {
        if !self.is_polled() {
            return None;
        }
        let [socket, _] = &self.files;
        match self.buffers.receive(socket.as_fd())? {
            Ok((buffer, len)) => Some(Completion::Received { buffer, len }),
            Err(error) if error == libc::EAGAIN => None,
            Err(error) => Some(Completion::ReceiveFailed { error }),
        }
    }

    pub(crate) fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    /// # Safety
    /// All that `entry` points to must stay valid until the operation has ended, or as long as `self` has memory
    /// that the kernel may use.
    unsafe fn push(&mut self, entry: &squeue::Entry, kind: u32, index: u32) -> bool {
        // SAFETY: the caller's promise.
        let pushed = unsafe { self.io.submission().push(&tagged(entry, kind, index)) }.is_ok();
        self.running += usize::from(pushed);
        pushed
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

/// The entry with the name of what it belongs to.
fn tagged(entry: &squeue::Entry, kind: u32, index: u32) -> squeue::Entry {
    entry.clone().user_data(u64::from(kind) << 32 | u64::from(index))
}

/// Passes over what an entry reports that is no failure.
pub(crate) fn tolerate(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            // The time is over, a signal came, completions must be looked at first, memory is short for a moment.
            Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests;
