//! The driver on `io_uring`, where this build has it.

use std::net::SocketAddr;

use wraith_drivers_uring::{BindError, Options, Refusal, UringDriver};

use super::bind_failure;
use crate::failure::{Failure, Result, failed};

/// Its name.
pub(super) const NAME: &str = "uring";

pub(super) fn bind(addr: SocketAddr) -> Result<UringDriver> {
    try_bind(addr).map_err(|error| failure(addr, &error))
}

pub(super) fn try_bind(addr: SocketAddr) -> std::result::Result<UringDriver, BindError> {
    UringDriver::bind(addr, &Options::default())
}

/// Why `auto` passes `io_uring` over, of which this is what a trial has given.
pub(crate) fn passed_over(trial: std::result::Result<(), Refusal>) -> String {
    match trial {
        Ok(()) => format!("{NAME} works here and is no faster by measurement, see docs/CHOOSING.md"),
        Err(refusal) => format!("{NAME} is refused: {refusal}; {}", refusal.remedy()),
    }
}

fn failure(addr: SocketAddr, error: &BindError) -> Failure {
    match error {
        BindError::Socket(error) => bind_failure(addr, error),
        error => failed(format!("cannot use the driver {NAME}: {error}, or use --driver mio")),
    }
}
