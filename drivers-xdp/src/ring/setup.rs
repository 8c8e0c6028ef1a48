//! Opening a socket on a queue of a device.

use std::ffi::CString;
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use xdpilone::{Errno, IfInfo, Socket, SocketConfig, Umem, UmemConfig};

use super::memory::Memory;
use super::receive::Receive;
use super::transmit::Transmit;
use crate::refusal::{Reason, Refusal, Step};

/// `XDP_USE_SG` (`linux/if_xdp.h`): packets may lie in several chunks.
const USE_SEVERAL_CHUNKS: u16 = 1 << 4;
/// A queue whose last socket was closed is given back by a task of the kernel, after up to 50 ms as measured: so long it
/// is busy, and its memory counts against the limit on locked memory.
const BUSY_FOR: Duration = Duration::from_millis(500);
const BUSY_STEP: Duration = Duration::from_millis(1);

/// What to open.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The device's name.
    pub(crate) interface: String,
    /// One of its queues.
    pub(crate) queue: u32,
    /// Bytes of a chunk: a power of two from 2,048 to the size of a page.
    pub(crate) chunk_bytes: u32,
    /// Chunks to receive into, a power of two.
    pub(crate) receive_chunks: u32,
    /// Slots to send from, a power of two.
    pub(crate) slots: u32,
    /// Chunks of a slot, side by side: what a datagram needs.
    pub(crate) slot_chunks: u32,
    /// The device reads and writes the memory itself.
    pub(crate) zero_copy: bool,
    /// A packet may be longer than a chunk.
    pub(crate) several_chunks: bool,
}

impl Setup {
    fn transmit_chunks(&self) -> u32 {
        self.slots * self.slot_chunks
    }

    fn bytes(&self) -> usize {
        (self.receive_chunks as usize + self.transmit_chunks() as usize) * self.chunk_bytes as usize
    }

    fn bind_flags(&self) -> u16 {
        let copies =
            if self.zero_copy { SocketConfig::XDP_BIND_ZEROCOPY } else { SocketConfig::XDP_BIND_COPY };
        let several = if self.several_chunks { USE_SEVERAL_CHUNKS } else { 0 };
        copies | SocketConfig::XDP_BIND_NEED_WAKEUP | several
    }
}

/// Opens a socket on a queue, with its fill ring full, and waits for a queue and for memory that have just been given up.
///
/// # Errors
/// The step that was refused.
pub(crate) fn open(setup: &Setup) -> Result<(Transmit, Receive), Refusal> {
    let give_up = Instant::now() + BUSY_FOR;
    loop {
        match try_open(setup) {
            Err(
                Refusal { step: Step::Bind, reason: Reason::Busy }
                | Refusal { step: Step::Memory, reason: Reason::Memory },
            ) if Instant::now() < give_up => thread::sleep(BUSY_STEP),
            result => return result,
        }
    }
}

fn try_open(setup: &Setup) -> Result<(Transmit, Receive), Refusal> {
    let memory = Memory::new(setup.bytes()).map_err(|error| Refusal::new(Step::Memory, &error))?;
    let memory = Arc::new(memory);
    let interface = interface(setup)?;
    // Rings that hold all there is never overflow: neither a full transmit ring nor a lost completion can occur.
    let config = UmemConfig {
        fill_size: setup.receive_chunks,
        complete_size: ring_size(setup.transmit_chunks()),
        frame_size: setup.chunk_bytes,
        headroom: 0,
        flags: 0,
    };
    // `Umem::new` opens a socket as well, and does not tell whether that or the memory was refused.
    drop(Socket::new(&interface).map_err(refused(Step::Socket))?);
    // SAFETY: the area is a mapping of its own on page boundaries, and both halves keep it as long as their rings, by
    // which alone the kernel learns of parts to use. Pages that it still uses afterwards are pinned by itself.
    let umem = unsafe { Umem::new(config, memory.whole()) }.map_err(refused(Step::Memory))?;
    let socket = Socket::with_shared(&interface, &umem).map_err(refused(Step::Socket))?;
    let device = umem.fq_cq(&socket).map_err(refused(Step::Bind))?;
    let rings = SocketConfig {
        rx_size: NonZeroU32::new(setup.receive_chunks),
        tx_size: NonZeroU32::new(ring_size(setup.transmit_chunks())),
        bind_flags: setup.bind_flags(),
    };
    let user = umem.rx_tx(&socket, &rings).map_err(refused(Step::Bind))?;
    let received = user.map_rx().map_err(refused(Step::Bind))?;
    let transmit = user.map_tx().map_err(refused(Step::Bind))?;
    let (fill, completions) = device.into_parts();
    let mut receive = Receive::new(received, fill, Arc::clone(&memory), setup);
    receive.refill();
    umem.bind(&user).map_err(refused(Step::Bind))?;
    let transmit = Transmit::new(transmit, completions, user, memory, setup);
    // A child process would keep the queue, and the right to its packets.
    fcntl(&transmit, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))
        .map_err(|errno| Refusal::new(Step::Socket, &errno.into()))?;
    Ok((transmit, receive))
}

fn interface(setup: &Setup) -> Result<IfInfo, Refusal> {
    let missing = Refusal { step: Step::Interface, reason: Reason::Missing };
    let name = CString::new(setup.interface.as_str()).map_err(|_| missing)?;
    let mut interface = IfInfo::invalid();
    interface.from_name(&name).map_err(refused(Step::Interface))?;
    interface.set_queue(setup.queue);
    Ok(interface)
}

fn ring_size(descriptors: u32) -> u32 {
    descriptors.next_power_of_two()
}

fn refused(step: Step) -> impl Fn(Errno) -> Refusal {
    move |errno| Refusal::new(step, &io::Error::from_raw_os_error(errno.get_raw()))
}
