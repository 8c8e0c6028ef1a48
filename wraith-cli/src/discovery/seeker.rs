//! A thread that asks a network who has a content, each time it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, Thread};

use crate::address::Candidate;
use crate::failure::Result;

/// Asks once, unless what it is given says that nobody wants it any more; waits by parking its thread.
pub(super) type Find = Box<dyn FnMut(&dyn Fn() -> bool) -> Result<Vec<Candidate>> + Send>;

/// Asks as long as it lives.
#[derive(Debug)]
pub(crate) struct Seeker {
    questions: Sender<()>,
    answers: Receiver<Result<Vec<Candidate>>>,
    ended: Arc<AtomicBool>,
    thread: Thread,
}

impl Seeker {
    /// `wake` is called when an answer is there.
    pub(super) fn start(mut find: Find, wake: impl Fn() + Send + 'static) -> Self {
        let (questions, asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            while let Ok(()) = asked.recv() {
                if answer.send(find(&|| flag.load(Ordering::SeqCst))).is_err() {
                    return;
                }
                wake();
            }
        });
        Self { questions, answers, ended, thread: thread.thread().clone() }
    }

    /// Asks.
    pub(crate) fn ask(&self) {
        // The thread lives as long as this.
        let _ = self.questions.send(());
    }

    /// The next answer, once it is there.
    pub(crate) fn answer(&self) -> Option<Result<Vec<Candidate>>> {
        self.answers.try_recv().ok()
    }
}

impl Drop for Seeker {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::failure::failed;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn each_question_is_answered_and_wakes_who_waits() {
        let mut number = 0;
        let find: Find = Box::new(move |_| {
            number += 1;
            if number == 1 { Err(failed("nobody")) } else { Ok(Vec::new()) }
        });
        let (wake, woken) = mpsc::channel();
        let seeker = Seeker::start(find, move || wake.send(()).unwrap_or_default());
        assert_eq!(seeker.answer(), None);
        for expected in [Err(failed("nobody")), Ok(Vec::new())] {
            seeker.ask();
            woken.recv_timeout(PATIENCE).unwrap();
            assert_eq!((seeker.answer(), seeker.answer()), (Some(expected), None));
        }
    }

    #[test]
    fn a_question_on_its_way_hears_that_it_is_over() {
        let (tell, told) = mpsc::channel();
        let find: Find = Box::new(move |is_ended| {
            tell.send(false).unwrap();
            while !is_ended() {
                thread::park();
            }
            tell.send(true).unwrap();
            Ok(Vec::new())
        });
        let seeker = Seeker::start(find, || {});
        seeker.ask();
        assert_eq!(told.recv_timeout(PATIENCE), Ok(false));
        drop(seeker);
        assert_eq!(told.recv_timeout(PATIENCE), Ok(true));
    }
}
