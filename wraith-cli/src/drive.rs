//! The loop around a session's application: steps, waits, and says goodbye.

use std::io;
use std::time::Duration;

use wraith_drivers::{App, Park, Runner};
use wraith_proto::Instant;

use crate::failure::{Result, failed};
use crate::stop::Stop;

/// How long the last messages may take to leave.
const GOODBYE: Duration = Duration::from_secs(1);

/// An application that can be asked to stop.
pub(crate) trait Task: App {
    /// Ends its sessions in the next turn; may be called again.
    fn stop(&mut self);
}

/// Runs until the application stops, then until its goodbyes have left.
pub(crate) fn drive<D: Park, T: Task>(runner: &mut Runner<D, T>, stop: &Stop) -> Result<()> {
    run(runner, stop).map_err(|error| failed(format!("the network failed: {error}")))
}

fn run<D: Park, T: Task>(runner: &mut Runner<D, T>, stop: &Stop) -> io::Result<()> {
    stop.wakes(runner.driver().unparker());
    loop {
        let wanted = stop.is_wanted();
        if wanted {
            runner.app_mut().stop();
        }
        let next = runner.step()?;
        if runner.is_stopped() {
            break;
        }
        // A wish that came up within the step is not waited on.
        if wanted == stop.is_wanted() {
            wait(runner, next)?;
        }
    }
    let until = runner.driver().now().saturating_add(GOODBYE);
    while !runner.endpoint_mut().is_drained() && runner.driver().now() < until {
        let next = runner.step()?;
        wait(runner, Some(next.map_or(until, |next| next.min(until))))?;
    }
    Ok(())
}

fn wait<D: Park, T: Task>(runner: &mut Runner<D, T>, until: Option<Instant>) -> io::Result<()> {
    if until.is_none_or(|until| until > runner.driver().now()) {
        runner.driver_mut().park(until)?;
    }
    Ok(())
}
