//! Stopping loops that wait for the network.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wraith_drivers::Unpark;

use crate::failure::{Result, failed};

/// Exit code of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// A wish to stop, from Ctrl-C or from another thread.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    wanted: AtomicBool,
    wake: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Stop {
    /// Stops on Ctrl-C. Where no loop could say goodbye to anybody, and on the second time, the process ends
    /// at once.
    pub(crate) fn on_ctrl_c() -> Result<Self> {
        let stop = Self::default();
        let handler = stop.clone();
        ctrlc::set_handler(move || {
            if handler.is_wanted() || !handler.want() {
                std::process::exit(INTERRUPTED);
            }
        })
        .map_err(|error| failed(format!("cannot watch for Ctrl-C: {error}")))?;
        Ok(stop)
    }

    /// Asks to stop; returns whether somebody was woken by it.
    pub(crate) fn want(&self) -> bool {
        self.shared.wanted.store(true, Ordering::SeqCst);
        let wake = self.shared.wake.lock().unwrap_or_else(PoisonError::into_inner);
        wake.as_ref().map(|wake| wake()).is_some()
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.shared.wanted.load(Ordering::SeqCst)
    }

    /// Ends parks of this driver from now on, and no longer those of the one before.
    pub(crate) fn wakes(&self, unparker: impl Unpark) {
        let wake = Box::new(move || {
            // A loop that cannot be woken ends with its next deadline.
            let _ = unparker.unpark();
        });
        *self.shared.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(wake);
    }
}
