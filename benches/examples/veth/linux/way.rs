//! Ways to carry datagrams.

use std::net::SocketAddr;

use wraith_drivers_mio::MioDriver;
use wraith_drivers_uring::UringDriver;
use wraith_drivers_xdp::veth::{self, Side};
use wraith_drivers_xdp::{Attach, XdpDriver};

use super::{Job, Result};

/// A driver, what it is asked for, and the line beneath.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Way {
    pub(super) name: &'static str,
    driver: Driver,
    threaded_napi: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Driver {
    Mio { offload: bool },
    Uring,
    Xdp(Attach),
}

/// What the others are compared with.
pub(super) const BASE: &str = "mio-plain";

pub(super) const WAYS: [Way; 6] = [
    Way { name: BASE, driver: Driver::Mio { offload: false }, threaded_napi: false },
    Way { name: "mio-gso", driver: Driver::Mio { offload: true }, threaded_napi: false },
    Way { name: "uring", driver: Driver::Uring, threaded_napi: false },
    Way { name: "xdp", driver: Driver::Xdp(Attach::Native), threaded_napi: false },
    Way { name: "xdp-napi", driver: Driver::Xdp(Attach::Native), threaded_napi: true },
    Way { name: "xdp-generic", driver: Driver::Xdp(Attach::Generic), threaded_napi: false },
];

impl Way {
    /// The line.
    pub(super) fn veth(self) -> veth::Options {
        let mut options = veth::Options::default();
        options.threaded_napi = self.threaded_napi;
        options
    }

    /// Does `job` with a driver on a host, in the thread of the host.
    pub(super) fn run<J: Job>(self, side: &Side, job: J) -> Result<J::Output> {
        let (interface, addr) = (side.interface().to_owned(), SocketAddr::new(side.ipv4().into(), 0));
        side.run(move || match self.driver {
            Driver::Mio { offload } => {
                let options =
                    wraith_drivers_mio::Options { gso: offload, gro: offload, ..Default::default() };
                job.run(MioDriver::bind(addr, &options)?)
            }
            Driver::Uring => job.run(UringDriver::bind(addr, &wraith_drivers_uring::Options::default())?),
            Driver::Xdp(attach) => {
                let options =
                    wraith_drivers_xdp::Options { attach, ..wraith_drivers_xdp::Options::new(&interface) };
                job.run(XdpDriver::bind(addr, &options)?)
            }
        })
    }
}
