//! What `device.rs` does, without the feature `af-xdp`: everything is on this machine, and no device is chosen.

#![expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the signatures are those of `device.rs`")]

use std::ffi::OsString;
use std::net::SocketAddr;

use clap::Args;

use crate::args::{Command, Common};
use crate::driver_pick::Choice;
use crate::failure::Result;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Device {}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Line {}

#[derive(Clone, Debug, Default)]
pub(crate) struct Host {}

#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) host: Host,
    pub(crate) addr: SocketAddr,
}

impl Device {
    pub(crate) fn check(&self, _: Choice, _: &Command) -> Result<()> {
        Ok(())
    }

    pub(crate) fn host(&self) -> Host {
        Host {}
    }
}

impl Line {
    pub(crate) fn ends(self, _: &Common) -> Result<Option<[End; 2]>> {
        Ok(None)
    }
}

impl End {
    /// The same end, with a port that the system chooses.
    pub(crate) fn with_any_port(mut self) -> Self {
        self.addr.set_port(0);
        self
    }
}

impl Host {
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    pub(crate) fn interface(&self) -> Option<&str> {
        None
    }

    pub(crate) fn forwarded(&self, _: Choice) -> [OsString; 0] {
        []
    }
}
