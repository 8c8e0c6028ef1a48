//! Headers of messages, at addresses that hold as long as the kernel needs them.

use std::ptr;

use super::memory::Region;
use crate::wire::{Control, NAME_BYTES, Name, RX_CONTROL_BYTES, RX_NAME_BYTES};

/// What stands at one place of the table.
#[repr(C)]
struct Message {
    header: libc::msghdr,
    data: libc::iovec,
    control: [u64; Control::WORDS],
    name: [u8; NAME_BYTES],
}

/// Headers of sends, one for each that may run at once, and the header of the receive.
#[derive(Debug)]
pub(super) struct Messages {
    table: Region,
    receive: Region,
    busy: Box<[bool]>,
}

impl Messages {
    pub(super) fn new(count: u16) -> Self {
        let table = Region::new(usize::from(count) * size_of::<Message>());
        let receive = Region::new(size_of::<libc::msghdr>());
        let messages = Self { table, receive, busy: vec![false; usize::from(count)].into() };
        // SAFETY: the region is aligned to a page and holds one header, for which zeroes are valid.
        unsafe {
            let receive = &mut *messages.receive.cast::<libc::msghdr>();
            receive.msg_namelen = RX_NAME_BYTES as u32;
            receive.msg_controllen = RX_CONTROL_BYTES as _;
        }
        messages
    }

    /// Only lengths count in it.
    pub(super) fn receive(&self) -> *const libc::msghdr {
        self.receive.cast()
    }

    /// Writes a header and keeps it until [`Messages::free`]; none if it is not free.
    ///
    /// The address of `data` is only noted.
    pub(super) fn fill(
        &mut self,
        index: u16,
        data: *const u8,
        len: usize,
        name: &Name,
        control: &Control,
    ) -> Option<*const libc::msghdr> {
        let busy = self.busy.get_mut(usize::from(index)).filter(|busy| !**busy)?;
        *busy = true;
        let name_len = name.bytes().len();
        let control_len = control.bytes().len();
        // SAFETY: the index is below the number of entries, and zeroes are a valid `Message`. The kernel has no use
        // for the entry, and no other reference into the region exists. Lengths of names and control messages are
        // bounded by their types to what the fields hold.
        unsafe {
            let message = self.table.cast::<Message>().add(usize::from(index));
            ptr::copy_nonoverlapping(name.bytes().as_ptr(), (&raw mut (*message).name).cast(), name_len);
            ptr::copy_nonoverlapping(
                control.bytes().as_ptr(),
                (&raw mut (*message).control).cast(),
                control_len,
            );
            (*message).data = libc::iovec { iov_base: data.cast_mut().cast(), iov_len: len };
            let header = &mut (*message).header;
            header.msg_name = if name_len == 0 { ptr::null_mut() } else { (&raw mut (*message).name).cast() };
            header.msg_namelen = name_len as u32;
            header.msg_iov = &raw mut (*message).data;
            header.msg_iovlen = 1;
            header.msg_control =
                if control_len == 0 { ptr::null_mut() } else { (&raw mut (*message).control).cast() };
            header.msg_controllen = control_len as _;
            Some(&raw const (*message).header)
        }
    }

    /// The kernel has no use for the header any more.
    pub(super) fn free(&mut self, index: u16) {
        if let Some(busy) = self.busy.get_mut(usize::from(index)) {
            *busy = false;
        }
    }

    /// A header that the kernel may still have a use for.
    pub(super) fn busy(&self) -> Option<u16> {
        self.busy.iter().position(|busy| *busy).map(|index| index as u16)
    }
}
