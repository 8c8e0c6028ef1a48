//! The drivers by name.

use clap::ValueEnum;
use wraith_conformance::{Memory, Mio, MioIpv6, Options, Report, Suite};

/// A driver of WRAITH.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Name {
    /// In memory.
    Memory,
    /// UDP sockets through mio, over IPv4 and over IPv6.
    Mio,
}

impl Name {
    /// Runs the cases; a driver may have a report for each way to use it.
    pub(crate) fn run(self, options: &Options) -> Vec<Report> {
        match self {
            Self::Memory => vec![Suite::of::<Memory>().park().run(options)],
            Self::Mio => vec![suite_of_mio::<Mio>().run(options), suite_of_mio::<MioIpv6>().run(options)],
        }
    }
}

type MioDriver = <Mio as wraith_conformance::Harness>::Driver;

fn suite_of_mio<H: wraith_conformance::Harness<Driver = MioDriver>>() -> Suite<MioDriver> {
    let suite = Suite::of::<H>().park();
    #[cfg(unix)]
    let suite = suite.pollable();
    suite
}
