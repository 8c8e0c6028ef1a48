//! `--interface` and `--veth`: which network device a driver is opened on, and hosts of this process that have one each.
//! Without the feature `af-xdp`, `no_device.rs` stands in its place.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use clap::Args;
use wraith_drivers_xdp::Attach;
use wraith_drivers_xdp::veth::{Options, Side, Veth};

use crate::args::{Command, Common};
use crate::driver_pick::Choice;
use crate::failure::{Failure, Result, failed};

/// Options of every command that uses a driver.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Device {
    /// Network device of the driver xdp
    #[arg(long, global = true, display_order = 101, value_name = "IF")]
    interface: Option<String>,
    /// Filter of the driver xdp behind the device's own: slower, but every Ethernet device can
    #[arg(long, global = true, display_order = 101)]
    xdp_generic: bool,
}

/// Options of the commands whose two ends are on this machine.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Over a pair of virtual devices, in namespaces of their own (root); xdp always does
    #[arg(long)]
    veth: bool,
}

/// The left side or the right one.
type Which = fn(&Veth) -> &Side;

/// Where a driver is opened: in which network namespace, on which device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    side: Option<(Arc<Veth>, Which)>,
    device: Device,
}

/// One of two ends on this machine.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) host: Host,
    pub(crate) addr: SocketAddr,
}

impl Device {
    /// Whether these options suit the driver and the command.
    ///
    /// # Errors
    /// Usage: they do not.
    pub(crate) fn check(&self, choice: Choice, command: &Command) -> Result<()> {
        let refuse = |why: &str| Err(Failure::Usage(why.to_owned()));
        let both_ends = match command {
            Command::Demo(_) => true,
            Command::Bench(args) => args.connect.is_none(),
            _ => false,
        };
        let no_end = command.has_no_session();
        let given = self.interface.is_some() || self.xdp_generic;
        if given && choice != Choice::Xdp && !matches!(command, Command::Drivers) {
            return refuse(
                "--interface and --xdp-generic are for the driver xdp: add --driver xdp, or leave them out",
            );
        }
        if both_ends && self.interface.is_some() {
            return refuse(
                "both ends on this machine cannot share a device: leave --interface out, and they get a pair of virtual ones",
            );
        }
        if choice == Choice::Xdp && self.interface.is_none() && !both_ends && !no_end {
            return refuse("--driver xdp needs a network device: add --interface IF; `ip link` lists them");
        }
        Ok(())
    }

    /// This machine with the device that was asked for.
    pub(crate) fn host(&self) -> Host {
        Host { side: None, device: self.clone() }
    }
}

impl Line {
    /// Both ends on a pair of virtual devices of their own, if that is asked for or the driver takes it. The hosts last as
    /// long as the ends.
    ///
    /// # Errors
    /// The system refuses to make them; an address is asked for that they do not have.
    pub(crate) fn ends(self, common: &Common) -> Result<Option<[End; 2]>> {
        if !self.veth && common.driver != Choice::Xdp {
            return Ok(None);
        }
        let (ipv6, port) = match common.bind {
            None => (false, 0),
            Some(bind) if bind.ip().is_unspecified() => (bind.is_ipv6(), bind.port()),
            Some(bind) => {
                return Err(Failure::Usage(format!(
                    "the virtual devices do not have {}: give --bind 0.0.0.0 or --bind :: for the IP version alone",
                    bind.ip()
                )));
            }
        };
        let hosts = Arc::new(pair()?);
        let end = |side: Which| {
            let here = side(&hosts);
            let ip = if ipv6 { IpAddr::V6(here.ipv6()) } else { IpAddr::V4(here.ipv4()) };
            let device = Device { interface: Some(here.interface().to_owned()), ..common.device.clone() };
            End {
                host: Host { side: Some((Arc::clone(&hosts), side)), device },
                addr: SocketAddr::new(ip, port),
            }
        };
        Ok(Some([end(Veth::left), end(Veth::right)]))
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
    /// One of a pair of virtual devices that nobody else has.
    ///
    /// # Errors
    /// The system refuses to make them.
    pub(crate) fn alone() -> io::Result<Self> {
        let hosts = Veth::new(&Options::default())?;
        let device = Device { interface: Some(hosts.left().interface().to_owned()), xdp_generic: false };
        Ok(Self { side: Some((Arc::new(hosts), Veth::left)), device })
    }

    /// Does something there: sockets that it opens and processes that it starts belong to the host.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        match &self.side {
            Some((hosts, side)) => side(hosts).run(work),
            None => work(),
        }
    }

    /// The device by its name, if one is chosen.
    pub(crate) fn interface(&self) -> Option<&str> {
        self.device.interface.as_deref()
    }

    /// Where the filter may stand.
    pub(crate) fn attach(&self) -> Attach {
        if self.device.xdp_generic { Attach::Generic } else { Attach::Best }
    }

    /// What another process of this program is given to use the same device.
    pub(crate) fn forwarded(&self, choice: Choice) -> Vec<OsString> {
        let mut options = Vec::new();
        if let (Choice::Xdp, Some(interface)) = (choice, &self.device.interface) {
            options.extend(["--interface".into(), interface.into()]);
            options.extend(self.device.xdp_generic.then(|| "--xdp-generic".into()));
        }
        options
    }
}

/// Two hosts inside this process.
fn pair() -> Result<Veth> {
    Veth::new(&Options::default()).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::PermissionDenied => "run this as root, or use --driver mio without --veth",
            _ => "use --driver mio without --veth",
        };
        failed(format!("cannot make a pair of virtual devices: {error}; {remedy}"))
    })
}
