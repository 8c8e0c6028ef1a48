//! The core in a program without std. It is built, never run.

#![no_std]

extern crate alloc;
#[cfg(feature = "prove")]
extern crate std;

use alloc::boxed::Box;
use core::alloc::{GlobalAlloc, Layout};
use core::net::{Ipv4Addr, SocketAddr};
use core::panic::PanicInfo;
use core::ptr::null_mut;

use wraith_proto::{
    Budget, Config, Dir, Ecn, Endpoint, Event, Identity, Instant, Limits, NoSource, OneShot, Payload, Peer,
    Policy, Progress, RxMeta, Via,
};

/// Makes an endpoint. Exported, like the verbs below, so that nothing beneath them is left out of the library.
#[unsafe(no_mangle)]
pub extern "C" fn endpoint(seed: &[u8; 32], now: u64) -> Option<Box<Endpoint>> {
    let mut config = Config::new(Identity::from_seed(*seed), b"no-std");
    config.limits = Limits::embedded();
    config.policy = Policy::Ask;
    Endpoint::new(config, *seed, Instant::from_nanos(now)).ok().map(Box::new)
}

/// Dials.
#[unsafe(no_mangle)]
pub extern "C" fn connect(endpoint: &mut Endpoint, now: u64, port: u16) -> bool {
    let peer = Peer { addr: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port), id: None };
    endpoint.connect(Instant::from_nanos(now), peer, Via::default()).is_ok()
}

/// Takes a datagram and returns how many bytes of application data were in it.
#[unsafe(no_mangle)]
pub extern "C" fn handle(
    endpoint: &mut Endpoint,
    now: u64,
    port: u16,
    datagram: &mut [u8; 1200],
    len: usize,
) -> usize {
    let from = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    let meta = RxMeta { from, to: None, via: Via::default(), ecn: Ecn::NotEct };
    let Some(datagram) = datagram.get_mut(..len) else { return 0 };
    let mut received = endpoint.handle(Instant::from_nanos(now), &meta, datagram);
    let mut taken = 0;
    while let Some(payload) = received.next() {
        if let Payload::Stream { data, .. } | Payload::Datagram { data, .. } = payload {
            taken += data.len();
        }
    }
    taken
}

/// Serves timers and news, answering each peer in every way there is; returns whether to call again at once.
#[unsafe(no_mangle)]
pub extern "C" fn turn(endpoint: &mut Endpoint, now: u64) -> bool {
    let now = Instant::from_nanos(now);
    let progress = endpoint.handle_timeout(now, Budget(16));
    while let Some((handle, event)) = endpoint.poll_event() {
        let Some(mut session) = endpoint.session(handle) else { continue };
        let done = match event {
            Event::Authorize => session.authorize(now).is_ok(),
            Event::Connected => session.open(Dir::Bi).is_ok_and(|stream| {
                session.write(stream, (&b"hello"[..]).into()).is_ok() && session.finish(stream).is_ok()
            }),
            Event::StreamOpened(stream) => session.grant(stream, 1 << 16).is_ok(),
            Event::DatagramsUnblocked => session.send_datagram((&b"hello"[..]).into()).is_ok(),
            _ => true,
        };
        if !done {
            session.close(now, 1);
        }
    }
    progress == Progress::More
}

/// Writes a datagram and returns its length, 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn transmit(endpoint: &mut Endpoint, now: u64, room: &mut [u8; 1200]) -> usize {
    let mut queue = OneShot::new(room);
    let _ = endpoint.poll_transmit(Instant::from_nanos(now), &mut queue, &mut NoSource, Budget(1));
    queue.take().map_or(0, |(_, datagram)| datagram.len())
}

/// When to come back, 0 for never.
#[unsafe(no_mangle)]
pub extern "C" fn timeout(endpoint: &Endpoint) -> u64 {
    endpoint.poll_timeout().map_or(0, |deadline| deadline.at.as_nanos())
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
