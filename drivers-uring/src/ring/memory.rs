//! Memory that the kernel reads and writes while operations run.

use std::alloc::{self, Layout};
use std::ptr::NonNull;

/// Bytes of a page, to which rings and registered memory are aligned.
const PAGE: usize = 4096;
/// What the allocator gives without touching the memory first: pages that nothing uses cost nothing.
const CHEAP_ALIGN: usize = 16;

/// Zeroed memory on page boundaries, reached by pointer alone: the kernel may use a part of it at any time.
#[derive(Debug)]
pub(super) struct Region {
    /// What was allocated.
    base: NonNull<u8>,
    layout: Layout,
    /// The first page within.
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a region owns its memory and has no tie to a thread.
unsafe impl Send for Region {}
// SAFETY: through a shared region nothing can be reached but the address.
unsafe impl Sync for Region {}

impl Region {
    /// Memory of `bytes` bytes, at least one page.
    pub(super) fn new(bytes: usize) -> Self {
        let len = bytes.max(1).next_multiple_of(PAGE);
        let Ok(layout) = Layout::from_size_align(len + PAGE, CHEAP_ALIGN) else {
            // More than the address space holds: what the allocator says about that is right here, too.
            alloc::handle_alloc_error(Layout::new::<u8>());
        };
        // SAFETY: the size is more than a page.
        let base = unsafe { alloc::alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { alloc::handle_alloc_error(layout) };
        // SAFETY: the allocation has a page more than `len`, so that a boundary and `len` bytes from there lie in it.
        let start = unsafe { base.add(base.as_ptr().align_offset(PAGE)) };
        Self { base, layout, start, len }
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
        self.len
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and the ring keeps regions that the kernel may still use
        // from being dropped.
        unsafe { alloc::dealloc(self.base.as_ptr(), self.layout) };
    }
}
