//! Running cases, and what came out.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

#[cfg(unix)]
use wraith_drivers::Pollable;
use wraith_drivers::{Caps, Driver, Park};

use crate::case::{Case, Outcome, Verdict};
use crate::cases;
use crate::context::Context;
use crate::harness::{Harness, Link};
use crate::options::Options;

/// A case that takes longer hangs. The longest ones take a fraction on a slow machine.
const HANG: Duration = Duration::from_mins(3);

/// The cases that a driver claims by its traits.
#[derive(Debug)]
pub struct Suite<H> {
    runnable: Vec<Runnable>,
    harness: PhantomData<fn() -> H>,
}

/// A case made for one driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runnable {
    pub(crate) case: Case,
    pub(crate) body: fn(&mut Context) -> Outcome,
}

/// What came out of a suite.
#[derive(Clone, Debug)]
pub struct Report {
    /// [`Harness::NAME`].
    pub driver: &'static str,
    /// What the driver says of itself, if there was a pair to ask.
    pub caps: Option<Caps>,
    /// Each case and its verdict.
    pub results: Vec<(Case, Verdict)>,
    /// The options that repeat the run.
    pub options: Options,
}

impl<H: Harness> Suite<H> {
    /// The cases of every driver.
    pub fn new() -> Self {
        Self { runnable: cases::driver::<H>(), harness: PhantomData }
    }

    /// Adds the cases of drivers that park a thread; some move one end to another thread.
    #[must_use]
    pub fn park(mut self) -> Self
    where
        H::Driver: Park + Send,
    {
        self.runnable.extend(cases::park::<H>());
        self
    }

    /// Adds the cases of drivers that nest in another loop.
    #[cfg(unix)]
    #[must_use]
    pub fn pollable(mut self) -> Self
    where
        H::Driver: Pollable,
    {
        self.runnable.extend(cases::pollable::<H>());
        self
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
        let caps = catch_unwind(|| H::pair(&Link::default()).ok().map(|pair| pair.left.caps()));
        Report { driver: H::NAME, caps: caps.ok().flatten(), results, options: options.clone() }
    }

    fn verdict(&self, case: &Case, options: &Options) -> Verdict {
        match self.runnable.iter().find(|runnable| runnable.case.id == case.id) {
            Some(runnable) => runnable.run(options),
            None => Verdict::NotClaimed("the harness does not claim the trait".to_owned()),
        }
    }
}

impl<H: Harness> Default for Suite<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl Runnable {
    /// Runs the case on a thread of its own: a driver that hangs is reported, and allocations are counted apart.
    fn run(self, options: &Options) -> Verdict {
        let mut context = Context::new(options);
        let (result, outcome) = mpsc::channel();
        let work = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| (self.body)(&mut context)));
            // The other end is gone only if this took too long.
            let _ = result.send(outcome);
        };
        let name = self.case.id.to_owned();
        if let Err(error) = thread::Builder::new().name(name).spawn(work) {
            return Verdict::Unavailable(format!("no thread: {error}"));
        }
        match outcome.recv_timeout(HANG) {
            Ok(Ok(outcome)) => outcome.into(),
            Ok(Err(panic)) => Verdict::Fail(format!("it panicked: {}", message(&*panic))),
            Err(RecvTimeoutError::Timeout) => Verdict::Fail(format!("it hangs: no end after {HANG:?}")),
            Err(RecvTimeoutError::Disconnected) => Verdict::Fail("its thread ended".to_owned()),
        }
    }
}

impl Report {
    /// Whether the driver keeps the contract.
    pub fn conforms(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The cases that keep the driver from conforming.
    pub fn failures(&self) -> impl Iterator<Item = &(Case, Verdict)> {
        self.results.iter().filter(|(case, verdict)| verdict.is_failure(case, &self.options))
    }
}

/// Runs the cases of every driver; those of `Park` and `Pollable` need a [`Suite`] that claims them.
pub fn run<H: Harness>(options: &Options) -> Report {
    Suite::<H>::new().run(options)
}

/// Runs one case of every driver.
///
/// # Panics
/// If there is no case of that name.
pub fn run_case<H: Harness>(id: &str, options: &Options) -> Verdict {
    Suite::<H>::new().run_case(id, options)
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
