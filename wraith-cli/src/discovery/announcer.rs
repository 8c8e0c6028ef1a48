//! A thread that announces something again and again, since networks forget.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::failure::Result;

/// Announces once, unless what it is given says that nobody wants it any more; waits by parking its thread.
pub(super) type Publish = Box<dyn FnMut(&dyn Fn() -> bool) -> Result<()> + Send>;

/// After an announcement that succeeded: nodes of the BEP 5 network forget after half an hour or so.
pub(crate) const AGAIN: Duration = Duration::from_mins(15);

/// How often to look whether this machine has moved, and so between two announcements on account of that.
const LOOK: Duration = Duration::from_mins(1);

/// Between two announcements.
#[derive(Clone, Debug)]
pub(super) struct Pauses {
    pub(super) again: Duration,
    pub(super) retry: Backoff,
    pub(super) look: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { again: AGAIN, retry: Backoff::of_network(), look: LOOK }
    }
}

/// Announces as long as it lives.
#[derive(Debug)]
pub(crate) struct Announcer {
    news: Receiver<Result<()>>,
    ended: Arc<AtomicBool>,
    thread: Thread,
}

impl Announcer {
    /// `has_moved` says whether it is somewhere else than when it was asked before.
    pub(super) fn start(
        mut publish: Publish,
        mut has_moved: impl FnMut() -> bool + Send + 'static,
        mut pauses: Pauses,
        wake: impl Fn() + Send + 'static,
    ) -> Self {
        let (report, news) = mpsc::channel();
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            let is_ended = || flag.load(Ordering::SeqCst);
            while !is_ended() {
                let outcome = publish(&is_ended);
                let pause = if outcome.is_ok() { pauses.again } else { pauses.retry.pause() };
                if outcome.is_ok() {
                    pauses.retry.reset();
                }
                if report.send(outcome).is_err() {
                    return;
                }
                wake();
                wait(pause, pauses.look, &is_ended, &mut has_moved);
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

/// Waits for `pause`, or until this machine has moved, at which it looks every now and then.
fn wait(pause: Duration, look: Duration, is_ended: &dyn Fn() -> bool, has_moved: &mut dyn FnMut() -> bool) {
    let until = Instant::now() + pause;
    let mut look_at = Instant::now() + look;
    while !is_ended() && Instant::now() < until {
        if Instant::now() >= look_at {
            if has_moved() {
                return;
            }
            look_at = Instant::now() + look;
        }
        thread::park_timeout(until.min(look_at).saturating_duration_since(Instant::now()));
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
        let pauses = Pauses { again: millisecond, retry: Backoff::new(millisecond, millisecond), look: LOOK };
        let announcer =
            Announcer::start(publish, || false, pauses, move || wake.send(()).unwrap_or_default());
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
        let announcer = Announcer::start(publish, || false, Pauses::default(), || {});
        assert_eq!(told.recv_timeout(PATIENCE), Ok(false));
        drop(announcer);
        assert_eq!(told.recv_timeout(PATIENCE), Ok(true));
    }

    #[test]
    fn a_machine_that_has_moved_announces_at_once() {
        let publish: Publish = Box::new(|_| Ok(()));
        let (look, looks) = mpsc::channel();
        let mut looked = 0;
        let has_moved = move || {
            looked += 1;
            look.send(()).unwrap_or_default();
            looked == 3
        };
        let (wake, woken) = mpsc::channel();
        let pauses = Pauses { look: Duration::from_millis(1), ..Pauses::default() };
        let announcer =
            Announcer::start(publish, has_moved, pauses, move || wake.send(()).unwrap_or_default());
        for _ in 0..2 {
            woken.recv_timeout(PATIENCE).unwrap();
            assert_eq!(announcer.news(), Some(Ok(())));
        }
        assert!(looks.try_iter().count() >= 3, "it was announced again before it had moved");
    }
}
