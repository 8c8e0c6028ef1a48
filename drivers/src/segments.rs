//! The segmentation rule, in one place: which committed datagrams may travel as one batch.

use std::collections::VecDeque;

use wraith_proto::TxMeta;

/// Datagrams that lie end to end in one arena, grouped into batches for segmentation offload (GSO).
///
/// A batch has one meta and one segment size; only its last datagram may be shorter, and none is empty.
/// Whether a datagram joins is decided at commit, by its committed length: what was reserved is only an
/// upper bound. Batches come out in the order of commits, so that the caller finds each one in its arena
/// by adding up lengths.
///
/// The number of batches is fixed; nothing allocates after construction.
#[derive(Debug)]
pub struct Segments {
    batches: VecDeque<Batch>,
    capacity: usize,
    max_count: usize,
    max_bytes: usize,
    datagrams: usize,
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    meta: TxMeta,
    bytes: usize,
    segment: usize,
    count: usize,
    closed: bool,
}

impl Segments {
    /// Batches that [`Segments::new`] has room for.
    pub const BATCHES: usize = 256;

    /// Batches of at most `max_segments` datagrams (at least 1) and `max_bytes` bytes.
    ///
    /// `max_bytes` bounds what joins; a single datagram may be longer. The kernel's limits are 64 or 128
    /// segments and one IP packet: 65,507 bytes fit both IP versions.
    pub fn new(max_segments: usize, max_bytes: usize) -> Self {
        Self::with_capacity(max_segments, max_bytes, Self::BATCHES)
    }

    /// Like [`Segments::new`], with room for `batches` batches (at least 1).
    pub fn with_capacity(max_segments: usize, max_bytes: usize, batches: usize) -> Self {
        let capacity = batches.max(1);
        Self {
            batches: VecDeque::with_capacity(capacity),
            capacity,
            max_count: max_segments.max(1),
            max_bytes,
            datagrams: 0,
        }
    }

    /// Records a committed datagram of `len` bytes, in the last batch if the rule allows it.
    ///
    /// Returns false, and records nothing, if it needs another batch and there is no room for one; never
    /// after [`Segments::has_room`] agreed to the same meta and at least this length, unless the datagram is empty.
    #[must_use = "a datagram that was not recorded will never leave"]
    pub fn push(&mut self, meta: &TxMeta, len: usize) -> bool {
        if self.joins(meta, len) {
            if let Some(last) = self.batches.back_mut() {
                last.bytes += len;
                last.count += 1;
                last.closed = len < last.segment;
            }
        } else if self.batches.len() < self.capacity {
            self.batches.push_back(Batch { meta: *meta, bytes: len, segment: len, count: 1, closed: false });
        } else {
            return false;
        }
        self.datagrams += 1;
        true
    }

    /// Takes the oldest batch: its meta, all its bytes, and the size of its segments.
    ///
    /// The segment size equals the total for a single datagram. A batch that was taken grows no more.
    pub fn take(&mut self) -> Option<(TxMeta, usize, usize)> {
        let batch = self.batches.pop_front()?;
        self.datagrams -= batch.count;
        Some((batch.meta, batch.bytes, batch.segment))
    }

    /// Changes how many datagrams later batches and commits may hold; batches that stand are kept.
    pub fn set_max_segments(&mut self, max_segments: usize) {
        self.max_count = max_segments.max(1);
    }

    /// Whether a datagram to `meta` of at most `len` bytes can be recorded for certain.
    pub fn has_room(&self, meta: &TxMeta, len: usize) -> bool {
        // A shorter datagram joins wherever a longer one does, unless it is empty.
        self.batches.len() < self.capacity || (len > 0 && self.joins(meta, len))
    }

    /// Datagrams that were recorded and not taken.
    pub fn datagrams(&self) -> usize {
        self.datagrams
    }

    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    fn joins(&self, meta: &TxMeta, len: usize) -> bool {
        self.batches.back().is_some_and(|last| {
            !last.closed
                && len > 0
                && len <= last.segment
                && last.count < self.max_count
                && last.bytes + len <= self.max_bytes
                && last.meta == *meta
        })
    }
}
