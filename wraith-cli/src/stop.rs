//! Stopping loops that wait for the network.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wraith_drivers::Unpark;

use crate::failure::{Result, failed};
use crate::output;

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
    /// Stops on Ctrl-C, and on SIGTERM where there is one. Where no loop could say goodbye to anybody, and on the second time, the process ends
    /// at once.
    pub(crate) fn on_ctrl_c() -> Result<Self> {
        let stop = Self::default();
        let handler = stop.clone();
        on_signal(move || {
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

    /// Whether to stop: somebody asked for it, or nobody reads the results any more.
    pub(crate) fn is_wanted(&self) -> bool {
        output::stdout_is_lost() || self.shared.wanted.load(Ordering::SeqCst)
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

/// Calls `handler` for each signal to stop, on a thread of its own. SIGHUP is left as it is, for `nohup`, and a file
/// beyond `ulimit -f` is to be an error of writing instead of the end of the process.
#[cfg(unix)]
fn on_signal(handler: impl Fn() + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};

    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGXFSZ])?;
    let watch = move || signals.forever().filter(|signal| *signal != SIGXFSZ).for_each(|_| handler());
    std::thread::Builder::new().spawn(watch)?;
    Ok(())
}

/// Calls `handler` for each Ctrl-C, on a thread of its own.
#[cfg(not(unix))]
fn on_signal(handler: impl Fn() + Send + 'static) -> std::result::Result<(), ctrlc::Error> {
    ctrlc::set_handler(handler)
}
