//! The filter in the kernel: assembled here, loaded, attached to a device, and told of sockets.

mod asm;
mod elf;
mod filter;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use aya::maps::{MapError, XskMap};
use aya::programs::ProgramError;
use aya::programs::xdp::{Xdp, XdpError, XdpMode};
use aya::{Ebpf, EbpfError, EbpfLoader};

use filter::Action;
pub(crate) use filter::Filter;

use crate::refusal::{Refusal, Step};

/// A filter that the kernel has accepted. Dropping it takes it off its device, as the end of the process does.
#[derive(Debug)]
pub(crate) struct Program {
    ebpf: Ebpf,
}

impl Program {
    /// Has the kernel check and take the filter, for a device of `queues` queues.
    ///
    /// # Errors
    ///
    /// [`Step::Load`] and the kernel's answer.
    pub(crate) fn load(filter: &Filter, queues: u32) -> Result<Self, Refusal> {
        Self::load_with(filter, queues, Action::Pass).map_err(|error| refusal(Step::Load, &error))
    }

    fn load_with(filter: &Filter, queues: u32, no_socket: Action) -> Result<Self, EbpfError> {
        let object = elf::object(&filter.assemble(no_socket), queues);
        let mut program = Self { ebpf: EbpfLoader::new().load(&object)? };
        program.xdp().load()?;
        Ok(program)
    }

    /// Puts the filter on the device with the number `interface`: into its driver if `native`, else into the stack behind
    /// it.
    ///
    /// # Errors
    ///
    /// [`Step::Attach`] and the kernel's answer. Another device or mode may be tried then.
    pub(crate) fn attach(&mut self, interface: u32, native: bool) -> Result<(), Refusal> {
        let mode = if native { XdpMode::Driver } else { XdpMode::Skb };
        // A BPF link, in this process alone. aya asks again through netlink if that is refused as invalid, and has a
        // clearer answer then: a kernel that has no links has not the rest either.
        self.xdp().attach_to_if_index(interface, mode).map_err(|error| refusal(Step::Attach, &error))?;
        Ok(())
    }

    /// Gives `socket`, of `AF_XDP`, the datagrams that arrive at `queue`.
    ///
    /// # Errors
    ///
    /// [`Step::Steer`] and the kernel's answer.
    pub(crate) fn steer(&mut self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Refusal> {
        let map = self.ebpf.map_mut(elf::SOCKETS).expect("the map of the object file");
        let mut sockets = XskMap::try_from(map).expect("a map of sockets");
        sockets.set(queue, socket.as_raw_fd(), 0).map_err(|error| refusal(Step::Steer, &error))
    }

    fn xdp(&mut self) -> &mut Xdp {
        let program = self.ebpf.program_mut(elf::PROGRAM).expect("the program of the object file");
        program.try_into().expect("a program for XDP")
    }
}

fn refusal(step: Step, error: &(dyn Error + 'static)) -> Refusal {
    // What never reached the kernel was not accepted either.
    let number = error_number(error).unwrap_or(libc::EINVAL);
    Refusal::new(step, &io::Error::from_raw_os_error(number))
}

/// The kernel's answer, which the loader wraps several times. Where it does so transparently, the source of an error is
/// that of the one within, so that these are looked into by name.
fn error_number(error: &(dyn Error + 'static)) -> Option<i32> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return error.raw_os_error();
    }
    match error.downcast_ref::<ProgramError>() {
        Some(ProgramError::IOError(error)) => return error.raw_os_error(),
        Some(ProgramError::XdpError(XdpError::NetlinkError(error))) => return error.raw_os_error(),
        Some(ProgramError::MapError(error)) => return error_number(error),
        _ => {}
    }
    match error.downcast_ref::<MapError>() {
        Some(MapError::IoError(error)) => return error.raw_os_error(),
        Some(MapError::OutOfBounds { .. }) => return Some(libc::ENXIO),
        _ => {}
    }
    error_number(error.source()?)
}
