//! Two hosts inside the process, and programs on them.

use std::ffi::OsStr;
use std::io;
use std::process::Command;

use wraith_drivers_xdp::veth::{Options, Side, Veth};

use crate::support::{Done, Running, program};

/// Two hosts, or `None` if this user may not make them, which is said aloud.
pub(crate) fn hosts(options: &Options) -> Option<Veth> {
    match Veth::new(options) {
        Ok(veth) => Some(veth),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            wraith_conformance::not_tested(format_args!("hosts of its own take root: {error}"));
            None
        }
        Err(error) => panic!("no hosts: {error}"),
    }
}

/// Hosts as they are by default.
pub(crate) fn plain_hosts() -> Option<Veth> {
    hosts(&Options::default())
}

/// Starts a program on one of them.
pub(crate) fn start_on(side: &Side, mut command: Command) -> Running {
    side.run(move || Running::start(&mut command))
}

/// Runs the program there to its end.
pub(crate) fn run_on<S: AsRef<OsStr>>(side: &Side, args: impl IntoIterator<Item = S>) -> Done {
    start_on(side, program(args)).finish()
}

/// The arguments that choose the driver on the device of this side.
pub(crate) fn xdp(side: &Side) -> [&str; 4] {
    ["--driver", "xdp", "--interface", side.interface()]
}
