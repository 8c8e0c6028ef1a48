//! Running cases, and what came out.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
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
const HANG: Duration = Duration::from_mins(3);

/// The cases that a driver claims by its traits, and where its pairs come from.
pub struct Suite<D> {
    workshop: Arc<dyn Workshop<D>>,
    runnable: Vec<Runnable<D>>,
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
        Self { workshop, runnable: cases::driver() }
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
        self.verdict(case.unwrap_or_else(|| panic!("there is no case {id}")), options)
    }

    /// Runs the cases that `options` ask for.
    pub fn run(&self, options: &Options) -> Report {
        let wanted = |case: &&Case| options.only.as_ref().is_none_or(|part| case.id.contains(part));
        let results =
            cases::cases().iter().filter(wanted).map(|case| (*case, self.verdict(case, options))).collect();
        let pair = || self.workshop.pair(&Link::default()).ok().map(|pair| pair.left.caps());
        let caps = catch_unwind(AssertUnwindSafe(pair)).ok().flatten();
        Report { driver: self.name(), caps, results, options: options.clone() }
    }

    fn verdict(&self, case: &Case, options: &Options) -> Verdict {
        match self.runnable.iter().find(|runnable| runnable.case.id == case.id) {
            Some(runnable) => runnable.run(options, Arc::clone(&self.workshop)),
            None => Verdict::NotClaimed("the harness does not claim the trait".to_owned()),
        }
    }
}

impl<D> fmt::Debug for Suite<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cases = self.runnable.len();
        f.debug_struct("Suite").field("name", &self.workshop.name()).field("cases", &cases).finish()
    }
}

impl<D: Driver + 'static> Runnable<D> {
    /// Runs the case on a thread of its own: a driver that hangs is reported, and allocations are counted apart.
    fn run(&self, options: &Options, workshop: Arc<dyn Workshop<D>>) -> Verdict {
        let mut context = Context::new(options, workshop);
        let (result, outcome) = mpsc::channel();
        let body = self.body;
        let work = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| body(&mut context)));
            // The other end is gone only if this took too long.
            let _ = result.send(outcome);
        };
        let name = self.case.id.to_owned();
        if let Err(error) = thread::Builder::new().name(name).spawn(work) {
            return Verdict::Unavailable(format!("no thread: {error}"));
        }
        match outcome.recv_timeout(HANG) {
            Ok(Ok(outcome)) => outcome.into(),
            Ok(Err(panic)) => Verdict::Fail(format!("it panicked: {}", panic_message(&*panic))),
            Err(RecvTimeoutError::Timeout) => Verdict::Fail(format!("it hangs: no end after {HANG:?}")),
            Err(RecvTimeoutError::Disconnected) => Verdict::Fail("its thread ended".to_owned()),
        }
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
