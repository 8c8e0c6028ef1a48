//! Time that the processor spent on this thread.

use std::time::Duration;

/// CPU time of the calling thread, user and system; `None` where the system does not tell.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn of_thread() -> Option<Duration> {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok().map(Duration::from)
}

/// CPU time of the calling thread: this system does not tell.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn of_thread() -> Option<Duration> {
    None
}

/// CPU time of the calling thread since `start`.
pub(crate) fn since(start: Option<Duration>) -> Option<Duration> {
    Some(of_thread()?.saturating_sub(start?))
}
