//! Memory that the kernel reads and writes while rings refer to it.

use std::io;
use std::ptr::{self, NonNull};
use std::slice;

use memmap2::MmapMut;

/// Zeroed memory on page boundaries, reached by pointer alone.
#[derive(Debug)]
pub(super) struct Memory {
    /// Keeps the mapping; nobody makes a slice of the whole.
    _map: MmapMut,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory has no tie to a thread, and who may touch which part of it is a matter of the rings.
unsafe impl Send for Memory {}
// SAFETY: through a shared reference only `slice` reaches the bytes, and its callers own the part that they name.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory of `bytes` bytes, more than none.
    pub(super) fn new(bytes: usize) -> io::Result<Self> {
        let mut map = MmapMut::map_anon(bytes)?;
        let Some(start) = NonNull::new(map.as_mut_ptr()) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        Ok(Self { _map: map, start, len: bytes })
    }

    /// All of it, to be registered.
    pub(super) fn whole(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.start, self.len)
    }

    /// The `len` bytes from `at`, or `None` if they do not lie within.
    ///
    /// # Safety
    /// As long as the slice lives, neither the kernel nor another slice has any of these bytes.
    #[expect(clippy::mut_from_ref, reason = "the caller owns the part that it names")]
    pub(super) unsafe fn slice(&self, at: usize, len: usize) -> Option<&mut [u8]> {
        if at.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: both ends lie in the mapping, which is zeroed memory and lives as long as `self`; the caller vouches
        // for nobody else having the bytes.
        Some(unsafe { slice::from_raw_parts_mut(self.start.as_ptr().add(at), len) })
    }

    /// Copies `from` into `to`: the kernel's part of a packet into memory of ours.
    ///
    /// # Safety
    /// The kernel does not have the bytes at `at` meanwhile.
    pub(super) unsafe fn copy(&self, at: usize, to: &mut [u8]) -> bool {
        if at.checked_add(to.len()).is_none_or(|end| end > self.len) {
            return false;
        }
        // SAFETY: the source lies in the mapping, the target is a slice elsewhere.
        unsafe { ptr::copy_nonoverlapping(self.start.as_ptr().add(at), to.as_mut_ptr(), to.len()) };
        true
    }
}
