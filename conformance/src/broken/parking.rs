//! Faults of parking and nesting.

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

#[cfg(unix)]
use wraith_drivers::Interest;
use wraith_drivers::{Driver, Park, Wake};
use wraith_proto::Instant;

use super::Fault;

/// Reports a deadline a third of a millisecond early.
#[derive(Debug, Default)]
pub struct WakesEarly;

impl<D: Driver> Fault<D> for WakesEarly {
    fn park(&mut self, inner: &mut D, until: Option<Instant>) -> io::Result<Wake>
    where
        D: Park,
    {
        let early = |at: Instant| Instant::from_nanos(at.as_nanos().saturating_sub(300_000));
        inner.park(until.map(early))
    }
}

/// Wakes 10 ms late.
#[derive(Debug, Default)]
pub struct WakesLate;

impl<D: Driver> Fault<D> for WakesLate {
    fn park(&mut self, inner: &mut D, until: Option<Instant>) -> io::Result<Wake>
    where
        D: Park,
    {
        inner.park(until.map(|at| at.saturating_add(Duration::from_millis(10))))
    }
}

/// Sleeps over what arrives.
#[derive(Debug, Default)]
pub struct SleepsOverTraffic;

impl<D: Driver> Fault<D> for SleepsOverTraffic {
    fn park(&mut self, inner: &mut D, until: Option<Instant>) -> io::Result<Wake>
    where
        D: Park,
    {
        loop {
            let wake = inner.park(until)?;
            if wake != Wake::Traffic || until.is_some_and(|until| inner.now() >= until) {
                return Ok(if wake == Wake::Traffic { Wake::Deadline } else { wake });
            }
            std::thread::yield_now();
        }
    }
}

/// Notices what arrives only at the deadline.
#[derive(Debug, Default)]
pub struct NoticesLate;

impl<D: Driver> Fault<D> for NoticesLate {
    fn park(&mut self, inner: &mut D, until: Option<Instant>) -> io::Result<Wake>
    where
        D: Park,
    {
        loop {
            let wake = inner.park(until)?;
            if wake != Wake::Traffic || until.is_none_or(|until| inner.now() >= until) {
                return Ok(wake);
            }
            std::thread::yield_now();
        }
    }
}

/// Sleeps over unparks.
#[derive(Debug, Default)]
pub struct LosesUnparks;

impl<D: Driver> Fault<D> for LosesUnparks {
    fn park(&mut self, inner: &mut D, until: Option<Instant>) -> io::Result<Wake>
    where
        D: Park,
    {
        loop {
            let wake = inner.park(until)?;
            if wake != Wake::Unparked {
                return Ok(wake);
            }
        }
    }
}

/// Reports every unpark twice.
#[derive(Debug, Default)]
pub struct RepeatsUnparks {
    again: bool,
}

impl<D: Driver> Fault<D> for RepeatsUnparks {
    fn park(&mut self, inner: &mut D, until: Option<Instant>) -> io::Result<Wake>
    where
        D: Park,
    {
        if std::mem::take(&mut self.again) {
            return Ok(Wake::Unparked);
        }
        let wake = inner.park(until)?;
        self.again = wake == Wake::Unparked;
        Ok(wake)
    }
}

/// Does not park.
#[derive(Debug, Default)]
pub struct Spins;

impl<D: Driver> Fault<D> for Spins {
    fn park(&mut self, inner: &mut D, _: Option<Instant>) -> io::Result<Wake>
    where
        D: Park,
    {
        let now = inner.now();
        Ok(match inner.park(Some(now))? {
            Wake::Deadline => Wake::Traffic,
            wake => wake,
        })
    }
}

/// Allocates in every park.
#[derive(Debug, Default)]
pub struct AllocatesInPark;

impl<D: Driver> Fault<D> for AllocatesInPark {
    fn park(&mut self, inner: &mut D, until: Option<Instant>) -> io::Result<Wake>
    where
        D: Park,
    {
        let until = std::hint::black_box(Box::new(until));
        inner.park(*until)
    }
}

/// Asks to be woken by room all the time.
#[derive(Debug, Default)]
pub struct WantsRoomAlways;

impl<D: Driver> Fault<D> for WantsRoomAlways {
    #[cfg(unix)]
    fn interest(&self, interest: Interest) -> Interest {
        Interest { writable: true, ..interest }
    }
}

/// Gives out a descriptor that is always readable.
#[derive(Debug)]
pub struct AlwaysReadable {
    null: File,
}

impl Default for AlwaysReadable {
    fn default() -> Self {
        Self { null: File::open("/dev/null").expect("every system has it") }
    }
}

impl<D: Driver> Fault<D> for AlwaysReadable {
    #[cfg(unix)]
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.null.as_fd())
    }
}

/// Gives out a descriptor on which nothing ever happens.
#[cfg(unix)]
#[derive(Debug)]
pub struct NeverReadable {
    socket: std::os::unix::net::UnixDatagram,
}

#[cfg(unix)]
impl Default for NeverReadable {
    fn default() -> Self {
        Self { socket: std::os::unix::net::UnixDatagram::unbound().expect("a socket") }
    }
}

#[cfg(unix)]
impl<D: Driver> Fault<D> for NeverReadable {
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

/// Leaks a descriptor with every driver.
#[derive(Debug)]
pub struct LeaksDescriptors;

impl Default for LeaksDescriptors {
    fn default() -> Self {
        std::mem::forget(File::open("/dev/null"));
        Self
    }
}

impl<D: Driver> Fault<D> for LeaksDescriptors {}

/// Leaks a kilobyte with every driver.
#[derive(Debug)]
pub struct LeaksMemory;

impl Default for LeaksMemory {
    fn default() -> Self {
        std::mem::forget(std::hint::black_box(vec![0_u8; 1024]));
        Self
    }
}

impl<D: Driver> Fault<D> for LeaksMemory {}

/// Waits in its destructor.
#[derive(Debug, Default)]
pub struct LingersInDrop;

impl Drop for LingersInDrop {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(300));
    }
}

impl<D: Driver> Fault<D> for LingersInDrop {}

/// Reports an unpark only when there is no traffic, and forgets it if there is.
#[derive(Debug, Default)]
pub struct ForgetsUnparkBesideTraffic;

impl<D: Driver> Fault<D> for ForgetsUnparkBesideTraffic {
    fn park(&mut self, inner: &mut D, until: Option<Instant>) -> io::Result<Wake>
    where
        D: Park,
    {
        let wake = inner.park(until)?;
        let now = inner.now();
        if wake == Wake::Unparked && traffic(inner, now)? { Ok(Wake::Traffic) } else { Ok(wake) }
    }
}

fn traffic<D: Driver + Park>(inner: &mut D, now: Instant) -> io::Result<bool> {
    Ok(inner.park(Some(now))? == Wake::Traffic)
}
