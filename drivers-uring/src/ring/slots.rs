//! Memory of datagrams on their way out.

use std::ops::Range;
use std::sync::Arc;

use super::memory::Region;

/// The one handle that writes to transmit memory; the ring only reads it.
#[derive(Debug)]
pub(crate) struct SlotMemory {
    region: Arc<Region>,
    len: usize,
}

impl SlotMemory {
    /// Memory of `bytes` bytes, and the share that the ring keeps.
    pub(super) fn new(bytes: usize) -> (Self, Arc<Region>) {
        let region = Arc::new(Region::new(bytes));
        (Self { region: Arc::clone(&region), len: bytes }, region)
    }

    /// Memory that no ring has a share of.
    #[cfg(test)]
    pub(crate) fn alone(bytes: usize) -> Self {
        Self::new(bytes).0
    }

    /// Lends a part for writing, if all of it exists.
    ///
    /// What the kernel still has to send from there is the caller's business: it would send the new bytes.
    pub(crate) fn bytes(&mut self, range: Range<usize>) -> Option<&mut [u8]> {
        if range.start > range.end || range.end > self.len {
            return None;
        }
        // SAFETY: the range lies within the region, which is initialised and lives as long as `self`. This handle
        // is the only one in Rust that reads or writes there, and it is borrowed mutably; the kernel only reads.
        let part = unsafe {
            let start = self.region.start().add(range.start);
            std::slice::from_raw_parts_mut(start, range.len())
        };
        Some(part)
    }
}
