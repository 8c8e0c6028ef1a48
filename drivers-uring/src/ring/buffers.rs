//! Buffers that the kernel takes one by one and fills with what arrives.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use super::memory::Region;
use crate::wire::{self, RX_CONTROL_BYTES, RX_NAME_BYTES, RX_PAYLOAD};

/// A ring of provided buffers: each is at any time either the kernel's or ours.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// The ring: one entry a buffer, the tail within the first one.
    entries: Region,
    memory: Region,
    /// Bytes of a buffer.
    size: usize,
    /// From one buffer to the next, in bytes.
    stride: usize,
    count: u16,
    /// Buffers ever given to the kernel, modulo 2¹⁶.
    tail: u16,
    ours: Box<[bool]>,
    /// Buffers that the kernel can fill.
    available: u16,
}

impl Buffers {
    /// `count` buffers (at least one, at most 2¹⁵; rounded up to a power of two) of `size` bytes, none of them ours.
    pub(super) fn new(count: u16, size: usize) -> Self {
        let count = count.clamp(1, 1 << 15).next_power_of_two();
        // A cache line of distance keeps neighbours apart.
        let stride = size.next_multiple_of(64);
        Self {
            entries: Region::new(usize::from(count) * size_of::<BufRingEntry>()),
            memory: Region::new(usize::from(count) * stride),
            size,
            stride,
            count,
            tail: 0,
            ours: vec![false; usize::from(count)].into(),
            available: 0,
        }
    }

    /// Address of the ring, for its registration.
    pub(super) fn address(&self) -> u64 {
        self.entries.start() as u64
    }

    pub(crate) fn count(&self) -> u16 {
        self.count
    }

    /// Buffers that the kernel has and can fill.
    pub(super) fn available(&self) -> u16 {
        self.available
    }

    /// Notes that the kernel has filled a buffer; false if it had no such buffer.
    pub(super) fn take(&mut self, id: u16) -> bool {
        match self.ours.get_mut(usize::from(id)) {
            Some(ours @ false) => {
                *ours = true;
                self.available -= 1;
                true
            }
            _ => false,
        }
    }

    /// A buffer that is ours.
    pub(crate) fn get_mut(&mut self, id: u16) -> Option<&mut [u8]> {
        if !self.ours.get(usize::from(id)).is_some_and(|ours| *ours) {
            return None;
        }
        // SAFETY: the buffer lies within the region, whose bytes are initialised. The kernel has handed it over and
        // writes to it only after `give`, for which this borrow must have ended.
        let buffer = unsafe {
            let start = self.memory.start().add(usize::from(id) * self.stride);
            std::slice::from_raw_parts_mut(start, self.size)
        };
        Some(buffer)
    }

    /// Gives a buffer of ours back; the kernel sees it with the next [`Buffers::publish`].
    pub(crate) fn give(&mut self, id: u16) {
        let Some(ours @ true) = self.ours.get_mut(usize::from(id)) else { return };
        *ours = false;
        let at = self.tail & (self.count - 1);
        // SAFETY: the index is below the number of entries, and the region is aligned and large enough for all of
        // them. The kernel does not look at this entry before the tail has passed it; the tail's place within the
        // first entry is not written here.
        unsafe {
            let entry = &mut *self.entries.cast::<BufRingEntry>().add(usize::from(at));
            entry.set_addr(self.memory.start().add(usize::from(id) * self.stride) as u64);
            entry.set_len(self.size as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
        self.available += 1;
    }

    /// Gives every buffer that is not ours to a kernel's ring that has just begun.
    pub(super) fn start_anew(&mut self) {
        self.tail = 0;
        self.available = 0;
        for id in 0..self.count {
            if !std::mem::replace(&mut self.ours[usize::from(id)], true) {
                self.give(id);
            }
        }
        self.publish();
    }

    /// Receives from `socket` itself into a buffer that the kernel has and never uses, laid out as the ring's operation
    /// does; gives the buffer and the bytes in it, or an error number. None without a buffer.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>) -> Option<Result<(u16, usize), i32>> {
        let id = self.ours.iter().position(|ours| !ours)? as u16;
        self.take(id);
        let received = self.get_mut(id).map(|bytes| receive(socket, bytes));
        if !matches!(received, Some(Ok(_))) {
            self.give(id);
        }
        received.map(|received| received.map(|len| (id, len)))
    }

    /// Lets the kernel see what was given.
    pub(crate) fn publish(&mut self) {
        // SAFETY: the pointer is the first entry of the ring, on a page boundary; its tail is aligned for 16 bits
        // and shared with the kernel, which only reads it, atomically.
        let tail = unsafe {
            let tail = BufRingEntry::tail(self.entries.cast::<BufRingEntry>());
            AtomicU16::from_ptr(tail.cast_mut())
        };
        tail.store(self.tail, Ordering::Release);
    }
}

/// Receives what has arrived into a buffer: what stands before the payload, too. Gives the bytes in it.
fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize, i32> {
    let (head, payload) = bytes.split_at_mut(RX_PAYLOAD);
    let (name, control) = head[RX_PAYLOAD - RX_CONTROL_BYTES - RX_NAME_BYTES..].split_at_mut(RX_NAME_BYTES);
    let mut data = libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() };
    // SAFETY: zeroes are a valid header.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = name.as_mut_ptr().cast();
    header.msg_namelen = RX_NAME_BYTES as u32;
    header.msg_iov = &raw mut data;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = RX_CONTROL_BYTES as _;
    // SAFETY: the header points to three parts of `bytes`, borrowed mutably, with their lengths.
    let arrived =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT | libc::MSG_TRUNC) };
    let Ok(arrived) = u32::try_from(arrived) else {
        return Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
    };
    let len = payload.len().min(arrived as usize);
    wire::write_header(head, header.msg_namelen, header.msg_controllen as u32, arrived);
    Ok(RX_PAYLOAD + len)
}
