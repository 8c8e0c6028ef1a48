//! Pairs of the driver on `AF_XDP`, on two hosts of their own with a line between them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use wraith_drivers_xdp::veth::{self, Side, Veth};
use wraith_drivers_xdp::{Attach, BindError, Options, XdpDriver};

use super::{Harness, Link, Pair, Setup};

/// What IP and UDP take of a packet: over IPv4, and over IPv6.
const HEADERS: [usize; 2] = [28, 48];

/// Lines that no case uses now, and their MTU. To make and to remove one takes the kernel several rounds of waiting for
/// all processors.
static IDLE: Mutex<Vec<(u32, Veth)>> = Mutex::new(Vec::new());

/// A line in use: another case may have it afterwards.
struct Line(Option<(u32, Veth)>);

impl Line {
    fn of(mtu: u32) -> io::Result<Self> {
        let idle = {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            let at = idle.iter().position(|&(other, _)| other == mtu);
            at.map(|at| idle.swap_remove(at))
        };
        if idle.is_some() {
            return Ok(Self(idle));
        }
        let mut options = veth::Options::default();
        options.mtu = mtu;
        Ok(Self(Some((mtu, Veth::new(&options)?))))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).extend(self.0.take());
    }
}

/// Two drivers on the two ends of a line of this MTU.
fn pair(link: &Link, ipv6: bool, mtu: u32, attach: Attach) -> Result<Pair<XdpDriver>, Setup> {
    let line = Line::of(mtu).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Setup::Unavailable(format!("no hosts of its own: {error}")),
        _ => error.into(),
    })?;
    let slots = link.tx_slots as u32;
    let Some((_, hosts)) = &line.0 else { return Err(Setup::Failed("no line".into())) };
    let left = bind(hosts.left(), ipv6, attach, slots)?;
    let right = bind(hosts.right(), ipv6, attach, slots)?;
    Ok(Pair { left, right, guard: Box::new(line) })
}

fn bind(side: &Side, ipv6: bool, attach: Attach, slots: u32) -> Result<XdpDriver, Setup> {
    let ip = if ipv6 { IpAddr::V6(side.ipv6()) } else { IpAddr::V4(side.ipv4()) };
    let mut options = Options::new(side.interface());
    options.attach = attach;
    options.slots = slots;
    options.receive_frames = 512;
    let bound = side.run(move || XdpDriver::bind(SocketAddr::new(ip, 0), &options));
    bound.map_err(|error| match error {
        BindError::Refused(refusal) => Setup::Unavailable(refusal.to_string()),
        error => Setup::Failed(error.to_string()),
    })
}

/// Writes a harness: what it is, its name, whether it insists on IPv6, the line's MTU, and where the filter stands.
macro_rules! harness {
    ($(#[$doc:meta])* $type:ident, $name:literal, $ipv6:literal, $mtu:literal, $attach:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $type;

        impl Harness for $type {
            type Driver = XdpDriver;

            const NAME: &'static str = $name;

            fn pair(link: &Link) -> Result<Pair<Self::Driver>, Setup> {
                pair(link, link.ipv6 || $ipv6, $mtu, Attach::$attach)
            }

            fn path_limit(link: &Link) -> Option<usize> {
                Some($mtu - HEADERS[usize::from(link.ipv6 || $ipv6)])
            }
        }
    };
}

harness!(
    /// The filter in the device's driver, over IPv4.
    Xdp, "xdp", false, 1500, Native
);
harness!(
    /// The filter in the device's driver, over IPv6.
    XdpIpv6, "xdp-ipv6", true, 1500, Native
);
harness!(
    /// The longest packets that one page holds.
    Xdp3498, "xdp-3498", false, 3498, Native
);
harness!(
    /// The longest packets that one page holds, over IPv6.
    Xdp3498Ipv6, "xdp-3498-ipv6", true, 3498, Native
);
harness!(
    /// Packets that take several frames.
    Xdp9000, "xdp-9000", false, 9000, Native
);
harness!(
    /// Packets that take several frames, over IPv6.
    Xdp9000Ipv6, "xdp-9000-ipv6", true, 9000, Native
);
harness!(
    /// The filter behind the device's driver.
    XdpGeneric, "xdp-generic", false, 1500, Generic
);
harness!(
    /// The filter behind the device's driver, over IPv6.
    XdpGenericIpv6, "xdp-generic-ipv6", true, 1500, Generic
);
harness!(
    /// The filter behind the device's driver, and the longest packets that one page holds.
    XdpGeneric3498, "xdp-generic-3498", false, 3498, Generic
);
harness!(
    /// The filter behind the device's driver, and the longest packets that one page holds, over IPv6.
    XdpGeneric3498Ipv6, "xdp-generic-3498-ipv6", true, 3498, Generic
);
harness!(
    /// The filter behind the device's driver, and packets that take several frames.
    XdpGeneric9000, "xdp-generic-9000", false, 9000, Generic
);
harness!(
    /// The filter behind the device's driver, and packets that take several frames, over IPv6.
    XdpGeneric9000Ipv6, "xdp-generic-9000-ipv6", true, 9000, Generic
);
