//! An allocator that counts, for tests that promise to allocate nothing.
//!
//! ```
//! # use wraith_sim::alloc::{Counting, measure};
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting::new();
//!
//! let (sum, counts) = measure(|| 1 + 1);
//! assert_eq!((sum, counts.allocations), (2, 0));
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator with counters; install it with `#[global_allocator]`.
#[derive(Debug, Default)]
pub struct Counting;

impl Counting {
    /// The allocator.
    pub const fn new() -> Self {
        Self
    }
}

/// Calls of the allocator. A reallocation counts as one allocation and one deallocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Blocks asked for.
    pub allocations: u64,
    /// Blocks given back.
    pub deallocations: u64,
    /// Bytes asked for; a reallocation counts its new size.
    pub bytes: u64,
}

impl Counts {
    const ZERO: Self = Self { allocations: 0, deallocations: 0, bytes: 0 };

    /// What happened from `earlier` to `self`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            allocations: self.allocations.wrapping_sub(earlier.allocations),
            deallocations: self.deallocations.wrapping_sub(earlier.deallocations),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
        }
    }
}

/// Counts of this thread since it began.
pub fn counts() -> Counts {
    LOCAL.try_with(Cell::get).unwrap_or(Counts::ZERO)
}

/// Counts of all threads since the program began.
pub fn global_counts() -> Counts {
    Counts {
        allocations: ALLOCATIONS.load(Ordering::Relaxed),
        deallocations: DEALLOCATIONS.load(Ordering::Relaxed),
        bytes: BYTES.load(Ordering::Relaxed),
    }
}

/// Bytes that this thread has asked for and not given back since it began; negative if it freed others' blocks.
pub fn live_bytes() -> i64 {
    LIVE.try_with(Cell::get).unwrap_or(0)
}

/// Bytes in use on the C heap, the blocks of [`System`] among them, of all threads; `None` where the C library does not
/// tell (it is not glibc).
pub fn c_heap_bytes() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the function has no arguments, and glibc takes the locks of its arenas.
        let info = unsafe { libc::mallinfo2() };
        Some((info.uordblks + info.hblkhd) as u64)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// Runs `work` and says what this thread allocated meanwhile.
///
/// # Panics
/// If [`Counting`] is not the global allocator: every count would be zero.
pub fn measure<R>(work: impl FnOnce() -> R) -> (R, Counts) {
    let before = counts();
    drop(std::hint::black_box(Box::new(0_u64)));
    assert_ne!(counts(), before, "Counting is not the global allocator");
    let before = counts();
    let result = work();
    (result, counts().since(before))
}

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static DEALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    // Constant and without a destructor, so that using it cannot allocate.
    static LOCAL: Cell<Counts> = const { Cell::new(Counts::ZERO) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

fn note(allocations: u64, deallocations: u64, bytes: u64, freed: u64) {
    ALLOCATIONS.fetch_add(allocations, Ordering::Relaxed);
    DEALLOCATIONS.fetch_add(deallocations, Ordering::Relaxed);
    BYTES.fetch_add(bytes, Ordering::Relaxed);
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes.cast_signed() - freed.cast_signed()));
    // A thread that is ending has no cell any more; the global counters still see it.
    let _ = LOCAL.try_with(|cell| {
        let old = cell.get();
        cell.set(Counts {
            allocations: old.allocations.wrapping_add(allocations),
            deallocations: old.deallocations.wrapping_add(deallocations),
            bytes: old.bytes.wrapping_add(bytes),
        });
    });
}

// SAFETY: every call is passed on unchanged to `System`, whose contract this type therefore keeps;
// counting touches no memory of the blocks and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, 0, layout.size() as u64, 0);
        // SAFETY: the caller promises a layout of nonzero size, as `System` asks.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, 0, layout.size() as u64, 0);
        // SAFETY: the caller promises a layout of nonzero size, as `System` asks.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(0, 1, 0, layout.size() as u64);
        // SAFETY: the caller promises that `block` came from this allocator, so from `System`, with `layout`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(1, 1, new_size as u64, layout.size() as u64);
        // SAFETY: the caller promises that `block` came from `System` with `layout`, and a valid new size.
        unsafe { System.realloc(block, layout, new_size) }
    }
}
