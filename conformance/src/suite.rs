//! Running cases, and what came out.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

#[cfg(unix)]
use wraith_drivers::Pollable;
use wraith_drivers::{Driver, Park};

use crate::case::{Case, Outcome, Verdict};
use crate::cases;
use crate::context::Context;
use crate::harness::{Harness, Link, Of, Workshop};
use crate::options::Options;
use crate::report::Report;

/// A case that takes longer hangs. The longest ones take a fraction on a slow machine.
const HANG: Duration = Duration::from_mins(2);

/// So many cases of a run may hang: each takes its time, and its thread cannot be stopped.
const MOST_HANGS: usize = 2;

/// Cases that look at the whole process, where others that run beside them would show.
const ALONE: [&str; 1] = ["soak/descriptors_come_back"];

/// Held by every case while it runs; for itself by one that runs alone.
static RUNNING: RwLock<()> = RwLock::new(());

/// The cases that a driver claims by its traits, and where its pairs come from.
pub struct Suite<D> {
    workshop: Arc<dyn Workshop<D>>,
    runnable: Vec<Runnable<D>>,
    hang: Duration,
}

/// A case made for one driver.
#[derive(Debug)]
pub(crate) struct Runnable<D> {
    pub(crate) case: Case,
    pub(crate) body: fn(&mut Context<D>) -> Outcome,
}

impl<D: Driver + 'static> Suite<D> {
    /// The cases of every driver, for that of `H`.
    pub fn of<H: Harness<Driver = D>>() -> Self {
        Self::from_workshop(Arc::new(Of::<H>(PhantomData)))
    }

    pub(crate) fn from_workshop(workshop: Arc<dyn Workshop<D>>) -> Self {
        Self { workshop, runnable: cases::driver(), hang: HANG }
    }

    /// Adds the cases of drivers that park a thread; some move one end to another thread.
    #[must_use]
    pub fn park(mut self) -> Self
    where
        D: Park + Send,
    {
        self.runnable.extend(cases::park());
        self
    }

    /// Adds the cases of drivers that nest in another loop.
    #[cfg(unix)]
    #[must_use]
    pub fn pollable(mut self) -> Self
    where
        D: Pollable,
    {
        self.runnable.extend(cases::pollable());
        self
    }

    /// [`Harness::NAME`].
    pub fn name(&self) -> &'static str {
        self.workshop.name()
    }

    /// Runs the case named `id`.
    ///
    /// # Panics
    /// If there is no case of that name.
    pub fn run_case(&self, id: &str, options: &Options) -> Verdict {
        let case = cases::cases().iter().find(|case| case.id == id);
        let case = case.unwrap_or_else(|| panic!("there is no case {id}"));
        self.verdict(case, options).unwrap_or_else(|| self.hangs())
    }

    /// Runs the cases that `options` ask for. When two hang, those behind them are [`Verdict::Unavailable`].
    pub fn run(&self, options: &Options) -> Report {
        let wanted = |case: &&Case| options.only.as_ref().is_none_or(|part| case.id.contains(part));
        let mut hung = 0;
        let mut verdict = |case: &Case| {
            if hung == MOST_HANGS {
                return Verdict::Unavailable(format!("not run: {hung} cases hang, and their threads go on"));
            }
            self.verdict(case, options).unwrap_or_else(|| {
                hung += 1;
                self.hangs()
            })
        };
        let results = cases::cases().iter().filter(wanted).map(|case| (*case, verdict(case))).collect();
        let workshop = Arc::clone(&self.workshop);
        let caps = move || workshop.pair(&Link::default()).ok().map(|pair| pair.left.caps());
        let caps = (hung < MOST_HANGS).then(|| apart("caps", self.hang, caps)).flatten();
        Report {
            driver: self.name(),
            caps: caps.and_then(Result::ok).flatten(),
            results,
            options: options.clone(),
        }
    }

    /// What comes out of a case, unless it hangs.
    fn verdict(&self, case: &Case, options: &Options) -> Option<Verdict> {
        match self.runnable.iter().find(|runnable| runnable.case.id == case.id) {
            Some(runnable) => {
                // Before it is given its time.
                let alone = ALONE.contains(&case.id);
                let _alone = alone.then(|| RUNNING.write().unwrap_or_else(PoisonError::into_inner));
                let _beside = (!alone).then(|| RUNNING.read().unwrap_or_else(PoisonError::into_inner));
                runnable.run(options, Arc::clone(&self.workshop), self.hang)
            }
            None => Some(Verdict::NotClaimed("the harness does not claim the trait".to_owned())),
        }
    }

    fn hangs(&self) -> Verdict {
        Verdict::Fail(format!("it hangs: no end after {:?}", self.hang))
    }
}

impl<D> fmt::Debug for Suite<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cases = self.runnable.len();
        f.debug_struct("Suite")
            .field("name", &self.workshop.name())
            .field("cases", &cases)
            .field("hang", &self.hang)
            .finish()
    }
}

impl<D: Driver + 'static> Runnable<D> {
    /// Runs the case; `None` if it hangs.
    fn run(&self, options: &Options, workshop: Arc<dyn Workshop<D>>, hang: Duration) -> Option<Verdict> {
        let mut context = Context::new(options, workshop);
        let body = self.body;
        let outcome = apart(self.case.id, hang, move || body(&mut context))?;
        Some(outcome.and_then(|outcome| outcome).into())
    }
}

/// Does work on a thread of its own: a driver that hangs is noticed, by `None`, and allocations are counted apart.
fn apart<T: Send + 'static>(
    name: &str,
    hang: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<Outcome<T>> {
    let (sender, result) = mpsc::channel();
    // The other end is gone only if this took too long.
    let work = move || drop(sender.send(catch_unwind(AssertUnwindSafe(work))));
    if let Err(error) = thread::Builder::new().name(name.to_owned()).spawn(work) {
        return Some(Err(Verdict::Unavailable(format!("no thread: {error}"))));
    }
    match result.recv_timeout(hang) {
        Ok(Ok(done)) => Some(Ok(done)),
        Ok(Err(panic)) => Some(Err(Verdict::Fail(format!("it panicked: {}", panic_message(&*panic))))),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Err(Verdict::Fail("its thread ended".to_owned()))),
    }
}

/// Runs the cases of every driver; those of `Park` and `Pollable` need a [`Suite`] that claims them.
pub fn run<H: Harness>(options: &Options) -> Report {
    Suite::of::<H>().run(options)
}

/// Runs one case of every driver.
///
/// # Panics
/// If there is no case of that name.
pub fn run_case<H: Harness>(id: &str, options: &Options) -> Verdict {
    Suite::of::<H>().run_case(id, options)
}

pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use wraith_drivers::{MemoryDriver, RxReport, Slots, TxReport};
    use wraith_proto::{Instant, RxMeta};

    use super::*;
    use crate::harness::{Memory, Pair, Setup};

    /// Does not come back from `recv`.
    struct Stuck(MemoryDriver);

    impl Driver for Stuck {
        type Tx = Slots;

        fn caps(&self) -> wraith_drivers::Caps {
            self.0.caps()
        }

        fn local_addr(&self) -> std::net::SocketAddr {
            self.0.local_addr()
        }

        fn now(&self) -> Instant {
            self.0.now()
        }

        fn recv(&mut self, _: usize, _: impl FnMut(&RxMeta, &mut [u8])) -> std::io::Result<RxReport> {
            loop {
                thread::park();
            }
        }

        fn tx(&mut self) -> &mut Slots {
            self.0.tx()
        }

        fn flush(&mut self) -> std::io::Result<TxReport> {
            self.0.flush()
        }
    }

    struct Hangs;

    impl Harness for Hangs {
        type Driver = Stuck;
        const NAME: &'static str = "stuck";

        fn pair(link: &Link) -> Result<Pair<Stuck>, Setup> {
            let Pair { left, right, guard } = Memory::pair(link)?;
            Ok(Pair { left: Stuck(left), right: Stuck(right), guard })
        }
    }

    #[test]
    fn a_driver_that_hangs_is_reported_and_the_run_ends() {
        let mut suite = Suite::of::<Hangs>();
        suite.hang = Duration::from_millis(50);
        let report = suite.run(&Options { only: Some("rx/".to_owned()), ..Options::default() });
        assert!(!report.conforms());
        let verdicts: Vec<&Verdict> = report.results.iter().map(|(_, verdict)| verdict).collect();
        let hangs = Verdict::Fail("it hangs: no end after 50ms".to_owned());
        let skipped = Verdict::Unavailable("not run: 2 cases hang, and their threads go on".to_owned());
        assert_eq!(verdicts[..2], [&hangs; 2]);
        assert_eq!(verdicts.len(), 13);
        assert!(verdicts[3..].iter().all(|verdict| **verdict == skipped), "{verdicts:?}");
    }
}
