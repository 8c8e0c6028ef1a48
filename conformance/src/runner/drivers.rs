//! The drivers by name.

use clap::ValueEnum;
use wraith_conformance::{Harness, Memory, Mio, MioIpv6, Options, Report, Suite};
#[cfg(target_os = "linux")]
use wraith_conformance::{Uring, UringBusyPoll, UringIpv6, UringOneBuffer, UringPollThread, UringZeroCopy};

/// A driver of WRAITH.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Name {
    /// In memory.
    Memory,
    /// UDP sockets through mio, over IPv4 and over IPv6.
    Mio,
    /// UDP sockets behind an `io_uring`, in every way that it can be asked for.
    #[cfg(target_os = "linux")]
    Uring,
    /// `AF_XDP` between two hosts inside the process: with the filter in the device's driver and behind it, over IPv4 and
    /// IPv6, with packets of 1,500, 3,498 and 9,000 bytes; two of these twelve ways in the short form.
    #[cfg(all(feature = "xdp", target_os = "linux"))]
    Xdp,
}

/// Those of this build, separated by commas.
pub(crate) const ALL: &str = match (cfg!(target_os = "linux"), cfg!(feature = "xdp")) {
    (true, true) => "memory,mio,uring,xdp",
    (true, false) => "memory,mio,uring",
    (false, _) => "memory,mio",
};

impl Name {
    /// Runs the cases; a driver may have a report for each way to use it.
    pub(crate) fn run(self, options: &Options) -> Vec<Report> {
        match self {
            Self::Memory => vec![Suite::of::<Memory>().park().run(options)],
            Self::Mio => vec![suite_of_mio::<Mio>().run(options), suite_of_mio::<MioIpv6>().run(options)],
            #[cfg(target_os = "linux")]
            Self::Uring => vec![
                suite_of_uring::<Uring>().run(options),
                suite_of_uring::<UringIpv6>().run(options),
                suite_of_uring::<UringOneBuffer>().run(options),
                suite_of_uring::<UringZeroCopy>().run(options),
                suite_of_uring::<UringPollThread>().run(options),
                suite_of_uring::<UringBusyPoll>().run(options),
            ],
            #[cfg(all(feature = "xdp", target_os = "linux"))]
            Self::Xdp => xdp::run(options),
        }
    }
}

type MioDriver = <Mio as Harness>::Driver;

fn suite_of_mio<H: Harness<Driver = MioDriver>>() -> Suite<MioDriver> {
    let suite = Suite::of::<H>().park();
    #[cfg(unix)]
    let suite = suite.pollable();
    suite
}

#[cfg(target_os = "linux")]
fn suite_of_uring<H: Harness<Driver = <Uring as Harness>::Driver>>() -> Suite<H::Driver> {
    Suite::of::<H>().park().pollable()
}

#[cfg(all(feature = "xdp", target_os = "linux"))]
mod xdp {
    use wraith_conformance::{
        Budget, Xdp, Xdp3498, Xdp3498Ipv6, Xdp9000, Xdp9000Ipv6, XdpGeneric, XdpGeneric3498,
        XdpGeneric3498Ipv6, XdpGeneric9000, XdpGeneric9000Ipv6, XdpGenericIpv6, XdpIpv6,
    };

    use super::{Harness, Options, Report, Suite};

    pub(super) fn run(options: &Options) -> Vec<Report> {
        // Each setting of one differs from that of the other.
        if options.budget == Budget::Short {
            return vec![one::<Xdp>(options), one::<XdpGeneric9000Ipv6>(options)];
        }
        vec![
            one::<Xdp>(options),
            one::<XdpIpv6>(options),
            one::<Xdp3498>(options),
            one::<Xdp3498Ipv6>(options),
            one::<Xdp9000>(options),
            one::<Xdp9000Ipv6>(options),
            one::<XdpGeneric>(options),
            one::<XdpGenericIpv6>(options),
            one::<XdpGeneric3498>(options),
            one::<XdpGeneric3498Ipv6>(options),
            one::<XdpGeneric9000>(options),
            one::<XdpGeneric9000Ipv6>(options),
        ]
    }

    fn one<H: Harness<Driver = <Xdp as Harness>::Driver>>(options: &Options) -> Report {
        Suite::of::<H>().park().pollable().run(options)
    }
}
