//! How a ring is set up, step by step, each of which the system may refuse.

use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use io_uring::types::Napi;
use io_uring::{IoUring, Probe, opcode};

use super::buffers::Buffers;
use super::life::Life;
use super::messages::Messages;
use super::slots::SlotMemory;
use super::{CHAIN, GROUP, Ring, Sending};
use crate::refusal::{Reason, Refusal, Step};
use crate::wire::RX_PAYLOAD;

/// A whole chain, a receive, a wake-up and a cancellation.
const SUBMISSIONS: u32 = 256;
/// Least completions that the ring has room for: two for each of many zero-copy sends, and what else ends meanwhile.
const COMPLETIONS: u32 = 2048;
/// Most completions that Linux makes room for.
const MAX_COMPLETIONS: u32 = 1 << 16;

/// What a ring is made of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setup {
    /// Receive buffers.
    pub(crate) buffers: u16,
    /// Bytes of payload that each holds.
    pub(crate) buffer_bytes: usize,
    /// Bytes of transmit memory.
    pub(crate) transmit_bytes: usize,
    /// A thread of the kernel submits, and goes to sleep after so much idle time.
    pub(crate) poll_thread: Option<Duration>,
    /// A wait polls the network device for so long before it sleeps.
    pub(crate) busy_poll: Option<Duration>,
    /// Sends leave the copying to the device, if they can.
    pub(crate) zero_copy: bool,
}

impl Ring {
    /// Sets up a ring that no thread owns yet, and the memory to send from.
    pub(crate) fn new(
        setup: &Setup,
        socket: BorrowedFd<'_>,
        waker: BorrowedFd<'_>,
    ) -> Result<(Self, SlotMemory), Refusal> {
        let files = [socket.try_clone_to_owned(), waker.try_clone_to_owned()];
        let [socket, waker] = files.map(|file| file.map_err(|error| Refusal::new(Step::Files, &error)));
        let files = [socket?, waker?];
        let (io, life) = build(setup, &files)?;
        let (memory, transmit) = SlotMemory::new(setup.transmit_bytes);
        let mut ring = Self {
            io: ManuallyDrop::new(io),
            life,
            before: None,
            left: VecDeque::new(),
            setup: *setup,
            files,
            buffers: Buffers::new(setup.buffers, RX_PAYLOAD + setup.buffer_bytes),
            messages: Messages::new(CHAIN),
            transmit,
            chain: Vec::with_capacity(CHAIN.into()),
            running: 0,
            holding: 0,
            receiving: false,
            waking: false,
            started: false,
            sending: Sending::Copy,
        };
        ring.equip()?;
        if setup.zero_copy {
            ring.sending = ring.register_transmit();
        }
        Ok((ring, memory))
    }

    /// Gives a new ring the memory to receive in, and what was asked for.
    pub(super) fn equip(&mut self) -> Result<(), Refusal> {
        self.register_buffers().map_err(|error| Refusal::new(Step::Buffers, &error))?;
        if let Some(time) = self.setup.busy_poll {
            let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
            let mut polling = Napi::new().set_busy_poll_timeout(micros);
            let registered = self.io.submitter().register_napi(&mut polling);
            registered.map_err(|error| Refusal::new(Step::BusyPoll, &error))?;
        }
        Ok(())
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
        self.buffers.start_anew();
        Ok(())
    }

    /// Finds out which way of sending without a copy there is, short of trying it on a real device.
    pub(super) fn register_transmit(&mut self) -> Sending {
        let mut known = Probe::new();
        let asked = self.io.submitter().register_probe(&mut known);
        if asked.is_err() || !known.is_supported(opcode::SendMsgZc::CODE) {
            return Sending::Copy;
        }
        let all = libc::iovec { iov_base: self.transmit.start().cast(), iov_len: self.transmit.len() };
        // SAFETY: the region is initialised, and `self` keeps a share of it until the ring has ended.
        match unsafe { self.io.submitter().register_buffers(&[all]) } {
            Ok(()) => Sending::ZeroCopyFixed,
            Err(_) => Sending::ZeroCopy,
        }
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
}

/// A ring that knows the files, and what tells its end.
pub(super) fn build(setup: &Setup, files: &[OwnedFd; 2]) -> Result<(IoUring, Life), Refusal> {
    let io = empty(setup).map_err(|error| Refusal::new(Step::Setup, &error))?;
    let registered = Life::new().and_then(|(life, signs)| {
        let [socket, waker] = files.each_ref().map(AsRawFd::as_raw_fd);
        let [first, last] = signs.each_ref().map(AsRawFd::as_raw_fd);
        io.submitter().register_files(&[first, socket, waker, last])?;
        Ok(life)
    });
    let life = registered.map_err(|error| Refusal::new(Step::Files, &error))?;
    Ok((io, life))
}

fn empty(setup: &Setup) -> io::Result<IoUring> {
    // What does not fit waits in the kernel, where it would be lost with a ring that another thread takes over.
    let completions = (2 * u32::from(setup.buffers)).next_power_of_two().clamp(COMPLETIONS, MAX_COMPLETIONS);
    let mut builder = IoUring::builder();
    // The thread that uses the ring first enables it, and becomes its only one.
    builder.dontfork().setup_r_disabled().setup_submit_all().setup_cqsize(completions);
    match setup.poll_thread {
        Some(idle) => builder.setup_sqpoll(u32::try_from(idle.as_millis()).unwrap_or(u32::MAX).max(1)),
        None => builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag(),
    };
    builder.build(SUBMISSIONS)
}
