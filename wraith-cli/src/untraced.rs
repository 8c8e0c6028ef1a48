//! What `trace.rs` does, without the feature `trace`: nothing.

#![expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the signatures are those of `trace.rs`")]

use std::ffi::OsString;

use clap::Args;
use wraith_proto::Endpoint;

use crate::args::Command;
use crate::failure::Result;

#[derive(Args, Debug)]
pub(crate) struct Options {}

impl Options {
    pub(crate) fn open(&self, _: &Command) -> Result<()> {
        Ok(())
    }

    pub(crate) fn forwarded(&self, _: bool) -> [OsString; 0] {
        []
    }
}

pub(crate) fn attach(_: &mut Endpoint) {}
