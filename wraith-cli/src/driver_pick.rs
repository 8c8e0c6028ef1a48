//! Which driver to use, said aloud; and the command `drivers`.

#[cfg(all(feature = "io-uring", target_os = "linux"))]
pub(crate) mod uring;
#[cfg(all(feature = "af-xdp", target_os = "linux"))]
mod xdp;

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use serde::Serialize;
use wraith_drivers::{Caps, Driver, Mode, Park};
use wraith_drivers_mio::{MioDriver, Options};

use crate::device::Host;
use crate::failure::{Failure, Result, failed};
use crate::output::Output;

/// What `--driver` asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// The best one that works.
    Auto,
    /// Sockets through mio.
    Mio,
    /// A socket behind an `io_uring`.
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    Uring,
    /// The rings of a network device.
    #[cfg(all(feature = "af-xdp", target_os = "linux"))]
    Xdp,
    /// A driver of WRAITH that this build does not have.
    #[cfg_attr(
        all(not(test), feature = "af-xdp", feature = "io-uring", target_os = "linux"),
        expect(dead_code, reason = "this build has all of them")
    )]
    NotBuilt(&'static str),
}

/// Why `auto` takes the portable driver: what became of the others that it may take.
fn auto() -> String {
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    return uring::passed_over(wraith_drivers_uring::probe());
    #[cfg(not(all(feature = "io-uring", target_os = "linux")))]
    return "the only one that auto may take in this build".to_owned();
}

/// What `--driver` takes in this build.
const DRIVERS: &[&str] = &[
    "auto",
    "mio",
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    uring::NAME,
    #[cfg(all(feature = "af-xdp", target_os = "linux"))]
    xdp::NAME,
];

/// What the help says about `--driver`.
pub(crate) fn help() -> String {
    format!("How packets travel: {}", DRIVERS.join(", "))
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Mio => "mio",
            #[cfg(all(feature = "io-uring", target_os = "linux"))]
            Self::Uring => uring::NAME,
            #[cfg(all(feature = "af-xdp", target_os = "linux"))]
            Self::Xdp => xdp::NAME,
            Self::NotBuilt(name) => name,
        })
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "mio" => Ok(Self::Mio),
            #[cfg(all(feature = "io-uring", target_os = "linux"))]
            uring::NAME => Ok(Self::Uring),
            #[cfg(not(all(feature = "io-uring", target_os = "linux")))]
            "uring" => Ok(Self::NotBuilt("uring")),
            #[cfg(all(feature = "af-xdp", target_os = "linux"))]
            xdp::NAME => Ok(Self::Xdp),
            #[cfg(not(all(feature = "af-xdp", target_os = "linux")))]
            "xdp" => Ok(Self::NotBuilt("xdp")),
            _ => Err(format!("the drivers are {}", DRIVERS.join(", "))),
        }
    }
}

/// The driver that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Picked {
    /// Its name.
    pub(crate) name: &'static str,
    /// How it works here, in the words of the JSON field `mode`.
    pub(crate) mode: &'static str,
}

impl Picked {
    fn new(name: &'static str, caps: &Caps) -> Self {
        Self { name, mode: mode_name(caps.mode) }
    }

    /// The same after a run: the system may have withdrawn something since.
    pub(crate) fn after(self, caps: &Caps) -> Self {
        Self::new(self.name, caps)
    }
}

/// Work for whichever driver is taken.
pub(crate) trait Job {
    type Output;

    fn run<D: Park>(self, driver: D, picked: Picked) -> Result<Self::Output>;
}

/// Binds the chosen driver to `bind` on `host` and does the job with it.
pub(crate) fn with_driver<J: Job>(
    output: Output,
    choice: Choice,
    host: &Host,
    bind: SocketAddr,
    job: J,
) -> Result<J::Output> {
    match choice {
        Choice::NotBuilt(name) => Err(not_built(name)),
        #[cfg(all(feature = "io-uring", target_os = "linux"))]
        Choice::Uring => {
            say_and_run(output, uring::NAME, "asked for", host.run(move || uring::bind(bind))?, job)
        }
        #[cfg(all(feature = "af-xdp", target_os = "linux"))]
        Choice::Xdp => say_and_run(output, xdp::NAME, "asked for", xdp::bind(host, bind)?, job),
        Choice::Auto | Choice::Mio => {
            // Nobody else is told.
            let auto = (choice == Choice::Auto && output.verbose).then(auto);
            let why = auto.as_deref().unwrap_or("asked for");
            let driver = host
                .run(move || MioDriver::bind(bind, &Options::default()))
                .map_err(|error| bind_failure(bind, &error))?;
            say_and_run(output, "mio", why, driver, job)
        }
    }
}

/// Says what was taken, and does the job with it.
fn say_and_run<D: Park, J: Job>(
    output: Output,
    name: &'static str,
    why: &str,
    driver: D,
    job: J,
) -> Result<J::Output> {
    let caps = driver.caps();
    output.detail(format_args!("driver {name}, {}: {why}; bound to {}", caps.mode, driver.local_addr()));
    if let Some(limit) = caps.limited_by {
        output.detail(format_args!("driver {name} is held back: {limit}"));
    }
    job.run(driver, Picked::new(name, &caps))
}

/// Whether a socket for both IP versions can be had.
pub(crate) fn has_ipv6() -> bool {
    std::net::UdpSocket::bind("[::]:0").is_ok()
}

/// The name of a mode in JSON.
fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Syscall => "syscall",
        Mode::SyscallGso => "syscall-gso",
        Mode::Uring => "uring",
        Mode::UringFixed => "uring-fixed",
        Mode::UringZeroCopy => "uring-zc",
        Mode::Xdp { native: true, zero_copy: true } => "xdp-native-zc",
        Mode::Xdp { native: true, zero_copy: false } => "xdp-native-copy",
        Mode::Xdp { native: false, .. } => "xdp-generic-copy",
        Mode::Memory => "memory",
        Mode::Other(name) => name,
        _ => "unknown",
    }
}

fn not_built(name: &str) -> Failure {
    let feature = if name == "xdp" { "af-xdp" } else { "io-uring" };
    let remedy = if cfg!(target_os = "linux") {
        format!("install it with `cargo install --path wraith-cli --features {feature}`, or use --driver mio")
    } else {
        "it is for Linux alone, use --driver mio".to_owned()
    };
    failed(format!("the driver {name} is not part of this build: {remedy}"))
}

fn bind_failure(addr: SocketAddr, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => "another program uses it: choose another port with --bind",
        io::ErrorKind::AddrNotAvailable => "no interface of this machine has it: choose another with --bind",
        io::ErrorKind::PermissionDenied => "take a port above 1023, or run with more privileges",
        io::ErrorKind::Unsupported => {
            "this system lacks that IP version: choose an address of the other with --bind"
        }
        _ => "choose another address with --bind",
    };
    failed(format!("cannot bind {addr}: {error}; {remedy}"))
}

#[derive(Serialize)]
struct DriverRow {
    driver: &'static str,
    available: bool,
    mode: Option<&'static str>,
    reason: Option<String>,
    max_datagram: Option<usize>,
    tx_segments: Option<usize>,
    rx_segments: Option<usize>,
    ecn: Option<bool>,
    local_ip: Option<bool>,
    dont_fragment: Option<bool>,
}

/// `drivers`: what each driver of this build can do here, and on the device of `host` if it has one.
pub(crate) fn list(output: Output, host: &Host) {
    let loopback = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    if !output.json {
        output.result(&(), format_args!("{:8} {:10} {:16} details", "driver", "available", "mode"));
    }
    let mio = match host.run(move || MioDriver::bind(loopback, &Options::default())) {
        Ok(driver) => available("mio", &driver.caps()),
        Err(error) => unavailable("mio", error.to_string()),
    };
    output.result(&mio, mio.text());
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    {
        let row = match uring::try_bind(loopback) {
            Ok(driver) => available(uring::NAME, &driver.caps()),
            Err(error) => unavailable(uring::NAME, error.to_string()),
        };
        output.result(&row, row.text());
    }
    #[cfg(all(feature = "af-xdp", target_os = "linux"))]
    {
        let row = xdp::row(host);
        output.result(&row, row.text());
    }
}

fn available(driver: &'static str, caps: &Caps) -> DriverRow {
    DriverRow {
        driver,
        available: true,
        mode: Some(mode_name(caps.mode)),
        reason: caps.limited_by.map(|limit| limit.to_string()),
        max_datagram: Some(caps.max_datagram),
        tx_segments: Some(caps.tx_segments),
        rx_segments: Some(caps.rx_segments),
        ecn: Some(caps.ecn),
        local_ip: Some(caps.local_ip),
        dont_fragment: Some(caps.dont_fragment),
    }
}

fn unavailable(driver: &'static str, reason: String) -> DriverRow {
    DriverRow {
        driver,
        available: false,
        mode: None,
        reason: Some(reason),
        max_datagram: None,
        tx_segments: None,
        rx_segments: None,
        ecn: None,
        local_ip: None,
        dont_fragment: None,
    }
}

impl DriverRow {
    fn text(&self) -> String {
        let mut details = Vec::new();
        if let (Some(max), Some(tx), Some(rx)) = (self.max_datagram, self.tx_segments, self.rx_segments) {
            details.push(format!("datagrams up to {max} bytes, {tx} in a send, {rx} in a receive"));
        }
        let flags =
            [("ECN", self.ecn), ("local addresses", self.local_ip), ("don't fragment", self.dont_fragment)];
        details
            .extend(flags.iter().filter(|(_, flag)| *flag == Some(true)).map(|(name, _)| (*name).to_owned()));
        let (available, why) = if self.available { ("yes", "held back") } else { ("no", "refused") };
        details.extend(self.reason.as_ref().map(|reason| format!("{why}: {reason}")));
        format!("{:8} {available:10} {:16} {}", self.driver, self.mode.unwrap_or("-"), details.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_not_built_in_is_named_with_the_remedy() {
        struct Never;
        impl Job for Never {
            type Output = ();
            fn run<D: Park>(self, _: D, _: Picked) -> Result<()> {
                Err(failed("ran"))
            }
        }
        let (here, bind) = (Host::default(), "127.0.0.1:0".parse().unwrap());
        let result = with_driver(Output::SILENT, Choice::NotBuilt("xdp"), &here, bind, Never);
        let Err(Failure::Failed(message)) = result else { panic!("{result:?}") };
        assert!(message.starts_with("the driver xdp is not part of this build: "), "{message}");
        let on_linux = message.contains("`cargo install --path wraith-cli --features af-xdp`");
        assert!(on_linux == cfg!(target_os = "linux") && message.ends_with("use --driver mio"), "{message}");
        assert!("quick".parse::<Choice>().is_err());
    }

    #[test]
    fn modes_have_the_names_that_scripts_know() {
        assert_eq!(mode_name(Mode::SyscallGso), "syscall-gso");
        assert_eq!(mode_name(Mode::Xdp { zero_copy: true, native: true }), "xdp-native-zc");
        assert_eq!(mode_name(Mode::Other("dpdk")), "dpdk");
    }
}
