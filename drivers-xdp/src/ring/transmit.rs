//! The sending half: slots, the transmit ring and the completion ring.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, send};
use xdpilone::xdp::XdpDesc;
use xdpilone::{CompletionQueue, RingTx, User};

use super::CONTINUED;
use super::memory::Memory;
use super::setup::Setup;

/// `SOL_XDP` and `XDP_MAX_TX_SKB_BUDGET` (`linux/socket.h`, `linux/if_xdp.h`; Linux 6.17).
const SOL_XDP: libc::c_int = 283;
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// A part of the memory that the kernel does not have: whoever owns the value may write there.
#[derive(Debug)]
pub(crate) struct Slot(u32);

/// Slots on their way to the kernel and back.
pub(crate) struct Transmit {
    ring: RingTx,
    completions: CompletionQueue,
    user: User,
    memory: Arc<Memory>,
    /// Where the first slot begins: behind the chunks to receive into.
    start: usize,
    slot_bytes: usize,
    chunk_bytes: usize,
    /// Slots that nobody has taken yet.
    fresh: Vec<Slot>,
    /// For each slot, its descriptors that the kernel has.
    out: Box<[u8]>,
    /// Descriptors of each packet that stands in the ring, oldest first.
    packets: VecDeque<u8>,
    /// Descriptors in the ring, as `packets` counts them.
    queued: u32,
}

/// What became of a kick.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Kicked {
    /// Packets that the kernel took since the last report.
    pub(crate) taken: usize,
    /// System calls.
    pub(crate) syscalls: usize,
    /// The device is down: what stands in the ring waits for it.
    pub(crate) down: bool,
}

impl Transmit {
    pub(super) fn new(
        ring: RingTx,
        completions: CompletionQueue,
        user: User,
        memory: Arc<Memory>,
        setup: &Setup,
    ) -> Self {
        let chunk_bytes = setup.chunk_bytes as usize;
        Self {
            ring,
            completions,
            user,
            memory,
            start: setup.receive_chunks as usize * chunk_bytes,
            slot_bytes: setup.slot_chunks as usize * chunk_bytes,
            chunk_bytes,
            fresh: (0..setup.slots).map(Slot).collect(),
            out: vec![0; setup.slots as usize].into(),
            packets: VecDeque::with_capacity(setup.slots as usize),
            queued: 0,
        }
    }

    /// All slots, at the first call.
    pub(crate) fn take_slots(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.fresh)
    }

    /// The memory of a slot.
    pub(crate) fn bytes<'a>(&'a mut self, slot: &'a mut Slot) -> &'a mut [u8] {
        // SAFETY: there is one value for each slot, and slots do not overlap each other or chunks to receive into. It
        // exists only while no ring refers to the slot, and both borrows last as long as the slice.
        let bytes = unsafe { self.memory.slice(self.at(slot), self.slot_bytes) };
        bytes.unwrap_or_default()
    }

    /// Puts the packet that lies in `range` of a slot into the ring. It leaves by a [`Transmit::kick`].
    ///
    /// # Panics
    /// If the range is empty or not within a slot.
    #[expect(clippy::needless_pass_by_value, reason = "the right to the memory goes to the kernel")]
    pub(crate) fn push(&mut self, slot: Slot, range: Range<usize>) {
        assert!(!range.is_empty() && range.end <= self.slot_bytes, "{range:?} of {}", self.slot_bytes);
        let base = self.at(&slot);
        let (mut at, end) = (base + range.start, base + range.end);
        let mut pieces = 0;
        while at < end {
            // A descriptor stays within a chunk.
            let stop = end.min((at / self.chunk_bytes + 1) * self.chunk_bytes);
            let options = if stop < end { CONTINUED } else { 0 };
            self.insert(XdpDesc { addr: at as u64, len: (stop - at) as u32, options });
            (at, pieces) = (stop, pieces + 1);
        }
        self.out[slot.0 as usize] = pieces;
        self.packets.push_back(pieces);
        self.queued += u32::from(pieces);
    }

    /// Has the kernel take what stands in the ring, as much as it takes now.
    ///
    /// # Errors
    /// The device is gone.
    pub(crate) fn kick(&mut self, zero_copy: bool) -> io::Result<Kicked> {
        let mut kicked = Kicked::default();
        while self.ring.pending() > 0 {
            let before = self.ring.pending();
            // With copies the kernel sends in this call alone. A device that reads the memory itself says when it
            // has stopped to look.
            if zero_copy && !self.ring.needs_wakeup() {
                break;
            }
            kicked.syscalls += 1;
            // EAGAIN says that the kernel has done its share, or that something is full; ENETDOWN may pass.
            match send(self.ring.as_raw_fd(), &[], MsgFlags::MSG_DONTWAIT) {
                Err(errno @ (Errno::ENXIO | Errno::ENODEV | Errno::EBADF)) => return Err(errno.into()),
                result => kicked.down = result == Err(Errno::ENETDOWN),
            }
            if zero_copy || self.ring.pending() == before {
                break;
            }
        }
        kicked.taken = self.taken();
        Ok(kicked)
    }

    /// Packets that the kernel has not taken yet.
    pub(crate) fn waiting(&self) -> usize {
        self.packets.len()
    }

    /// A slot that the kernel has given back, if there is one.
    pub(crate) fn reclaim(&mut self) -> Option<Slot> {
        let mut completed = self.completions.complete(1);
        while let Some(address) = completed.read() {
            completed.release();
            let index = (address as usize).checked_sub(self.start)? / self.slot_bytes;
            let out = self.out.get_mut(index)?;
            if *out == 1 {
                *out = 0;
                return Some(Slot(index as u32));
            }
            *out = out.saturating_sub(1);
            drop(completed);
            completed = self.completions.complete(1);
        }
        None
    }

    /// Asks the kernel to take up to `packets` packets in one system call, in place of 32. Older systems refuse.
    pub(crate) fn set_budget(&self, packets: u32) -> io::Result<()> {
        let (value, len) = (&raw const packets, size_of::<u32>() as libc::socklen_t);
        // SAFETY: the option takes an int, which lives through the call.
        let result = unsafe {
            libc::setsockopt(self.ring.as_raw_fd(), SOL_XDP, XDP_MAX_TX_SKB_BUDGET, value.cast(), len)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// What the kernel counted: packets that it dropped for want of room.
    pub(crate) fn dropped(&self) -> u64 {
        let counts = self.user.statistics_v2().unwrap_or_default();
        counts.rx_dropped + counts.rx_ring_full
    }

    fn at(&self, slot: &Slot) -> usize {
        self.start + slot.0 as usize * self.slot_bytes
    }

    fn insert(&mut self, descriptor: XdpDesc) {
        // Twice at most: a guard grants what it knows to be free, and looks again when that is nothing. The ring has
        // room for the descriptors of all slots.
        loop {
            let mut room = self.ring.transmit(1);
            if room.insert_once(descriptor) {
                return room.commit();
            }
        }
    }

    /// Counts the packets that the kernel has taken since the last time.
    fn taken(&mut self) -> usize {
        let mut done = self.queued - self.ring.pending().min(self.queued);
        let mut packets = 0;
        while let Some(&pieces) = self.packets.front()
            && u32::from(pieces) <= done
        {
            self.packets.pop_front();
            done -= u32::from(pieces);
            self.queued -= u32::from(pieces);
            packets += 1;
        }
        packets
    }
}

impl AsFd for Transmit {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring keeps the socket open as long as it lives.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }
}

impl std::fmt::Debug for Transmit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transmit")
            .field("slots", &self.out.len())
            .field("queued", &self.queued)
            .finish_non_exhaustive()
    }
}
