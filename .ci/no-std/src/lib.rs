//! The core in a program without std. It is built, never run.

#![no_std]

#[cfg(feature = "prove")]
extern crate std;

use core::alloc::{GlobalAlloc, Layout};
use core::net::{Ipv4Addr, SocketAddr};
use core::panic::PanicInfo;
use core::ptr::null_mut;

use wraith_proto::{Ecn, OneShot, TxMeta, TxQueue, Via};

/// Exported, so that nothing below it is left out of the library.
#[unsafe(no_mangle)]
pub extern "C" fn commit_one_datagram(port: u16, len: usize) -> usize {
    let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    let meta = TxMeta { to, from: None, via: Via::default(), ecn: Ecn::NotEct };
    let mut buffer = [0; 1200];
    let mut queue = OneShot::new(&mut buffer);
    if queue.reserve(&meta, len).is_some() {
        queue.commit(len);
    }
    queue.take().map_or(0, |(_, datagram)| datagram.len())
}

/// An allocator with nothing to give.
struct Empty;

// SAFETY: a null pointer is the answer of an allocator that has no memory, so `dealloc` has nothing to free.
unsafe impl GlobalAlloc for Empty {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Empty = Empty;

#[panic_handler]
fn halt(_: &PanicInfo<'_>) -> ! {
    loop {}
}
