//! Memory that the kernel reads and writes while operations run.

use std::alloc::{self, Layout};
use std::ptr::NonNull;

/// Bytes of a page, to which rings and registered memory are aligned.
const PAGE: usize = 4096;

/// Zeroed memory on page boundaries, reached by pointer alone: the kernel may use a part of it at any time.
#[derive(Debug)]
pub(super) struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a region owns its memory and has no tie to a thread.
unsafe impl Send for Region {}
// SAFETY: through a shared region nothing can be reached but the address.
unsafe impl Sync for Region {}

impl Region {
    /// Memory of `bytes` bytes, at least one page.
    pub(super) fn new(bytes: usize) -> Self {
        let size = bytes.max(1).next_multiple_of(PAGE);
        let Ok(layout) = Layout::from_size_align(size, PAGE) else {
            // More than the address space holds: what the allocator says about that is right here, too.
            alloc::handle_alloc_error(Layout::new::<u8>());
        };
        // SAFETY: the size is at least one page.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { alloc::handle_alloc_error(layout) };
        Self { start, layout }
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The start, as an address of `T`s.
    pub(super) fn cast<T>(&self) -> *mut T {
        const { assert!(align_of::<T>() <= PAGE) };
        self.start.cast().as_ptr()
    }

    pub(super) fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and the ring keeps regions that the kernel may still use
        // from being dropped.
        unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}
