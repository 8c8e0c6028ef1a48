//! Waiting for a future on the calling thread, and no longer than is wanted.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How often to look whether to stop, when nobody unparks the thread.
const LOOK: Duration = Duration::from_millis(50);

/// Until when to wait, and whether to go on.
#[derive(Clone, Copy)]
pub struct Limit<'a> {
    /// Nothing takes longer than until then.
    pub deadline: Instant,
    /// Asked at least every 50 ms, and when the waiting thread is unparked.
    pub is_stopped: &'a dyn Fn() -> bool,
}

impl fmt::Debug for Limit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limit").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// Why a wait ended before the future did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    Deadline,
    Stopped,
}

/// Ends a park of the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Limit<'_> {
    /// What comes out of `future`, unless the time is over first or nobody wants it any more.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Cut> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            if (self.is_stopped)() {
                return Err(Cut::Stopped);
            }
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Ok(output);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Cut::Deadline);
            }
            thread::park_timeout(left.min(LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, poll_fn, ready};

    use super::*;

    fn limit(deadline: Instant, is_stopped: &dyn Fn() -> bool) -> Limit<'_> {
        Limit { deadline, is_stopped }
    }

    #[test]
    fn a_future_that_is_ready_is_taken_even_at_the_deadline() {
        assert_eq!(limit(Instant::now(), &|| false).wait(ready(7)), Ok(7));
    }

    #[test]
    fn a_future_that_never_comes_ends_with_the_deadline_or_the_wish_to_stop() {
        let soon = Instant::now() + Duration::from_millis(20);
        assert_eq!(limit(soon, &|| false).wait(pending::<()>()), Err(Cut::Deadline));
        assert!(Instant::now() >= soon);
        let asked = Cell::new(0);
        let is_stopped = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        let late = Instant::now() + Duration::from_mins(10);
        assert_eq!(limit(late, &is_stopped).wait(pending::<()>()), Err(Cut::Stopped));
    }

    #[test]
    fn a_waker_on_another_thread_ends_the_park() {
        let mut polled = false;
        let future = poll_fn(|context| {
            if polled {
                return Poll::Ready(());
            }
            polled = true;
            let waker = context.waker().clone();
            thread::spawn(move || waker.wake());
            Poll::Pending
        });
        let late = Instant::now() + Duration::from_mins(10);
        assert_eq!(limit(late, &|| false).wait(future), Ok(()));
    }
}
