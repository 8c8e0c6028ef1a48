//! A thread that announces something again and again, since networks forget.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::failure::Result;

/// Announces once, unless what it is given says that nobody wants it any more; waits by parking its thread.
pub(super) type Publish = Box<dyn FnMut(&dyn Fn() -> bool) -> Result<()> + Send>;

/// Between two announcements: after one that succeeded, and after one that did not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauses {
    pub(super) again: Duration,
    pub(super) retry: Duration,
}

/// Nodes of the BEP 5 network forget after half an hour or so.
pub(super) const PAUSES: Pauses = Pauses { again: Duration::from_mins(15), retry: Duration::from_mins(1) };

/// Announces as long as it lives.
#[derive(Debug)]
pub(crate) struct Announcer {
    news: Receiver<Result<()>>,
    ended: Arc<AtomicBool>,
    thread: Thread,
}

impl Announcer {
    pub(super) fn start(mut publish: Publish, pauses: Pauses, wake: impl Fn() + Send + 'static) -> Self {
        let (report, news) = mpsc::channel();
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            let is_ended = || flag.load(Ordering::SeqCst);
            while !is_ended() {
                let outcome = publish(&is_ended);
                let pause = if outcome.is_ok() { pauses.again } else { pauses.retry };
                if report.send(outcome).is_err() {
                    return;
                }
                wake();
                let until = Instant::now() + pause;
                while !is_ended() && Instant::now() < until {
                    thread::park_timeout(until.saturating_duration_since(Instant::now()));
                }
            }
        });
        Self { news, ended, thread: thread.thread().clone() }
    }

    /// What became of the next announcement, once that is known.
    pub(crate) fn news(&self) -> Option<Result<()>> {
        self.news.try_recv().ok()
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::failed;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn it_announces_again_after_success_and_after_failure_until_it_goes_away() {
        let (call, calls) = mpsc::channel();
        let mut number = 0;
        let publish: Publish = Box::new(move |_| {
            number += 1;
            call.send(number).unwrap();
            if number == 2 { Err(failed("no")) } else { Ok(()) }
        });
        let (wake, woken) = mpsc::channel();
        let millisecond = Duration::from_millis(1);
        let pauses = Pauses { again: millisecond, retry: millisecond };
        let announcer = Announcer::start(publish, pauses, move || wake.send(()).unwrap_or_default());
        let mut news = Vec::new();
        while news.len() < 3 {
            woken.recv_timeout(PATIENCE).unwrap();
            news.extend(announcer.news());
        }
        assert_eq!(news, [Ok(()), Err(failed("no")), Ok(())]);
        drop(announcer);
        // It ends with its thread, whose closure held the other end.
        while calls.recv_timeout(PATIENCE).is_ok() {}
        assert_eq!(calls.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }

    #[test]
    fn an_announcement_on_its_way_hears_that_it_is_over() {
        let (tell, told) = mpsc::channel();
        let publish: Publish = Box::new(move |is_ended| {
            tell.send(false).unwrap();
            while !is_ended() {
                thread::park();
            }
            tell.send(true).unwrap();
            Ok(())
        });
        let announcer = Announcer::start(publish, PAUSES, || {});
        assert_eq!(told.recv_timeout(PATIENCE), Ok(false));
        drop(announcer);
        assert_eq!(told.recv_timeout(PATIENCE), Ok(true));
    }
}
