//! The driver on `AF_XDP`, where this build has it.

use std::fs;
use std::io;
use std::net::SocketAddr;

use wraith_drivers::Driver;
use wraith_drivers_xdp::{BindError, Options, Refusal, XdpDriver};

use super::{DriverRow, available, bind_failure, unavailable};
use crate::address::any;
use crate::device::Host;
use crate::failure::{Failure, Result, failed};

/// Its name.
pub(super) const NAME: &str = "xdp";

/// The privileges that it takes, and their bits (`linux/capability.h`).
const PRIVILEGES: [(&str, u32); 3] = [("cap_net_raw", 13), ("cap_net_admin", 12), ("cap_bpf", 39)];

/// The driver on the device of `host`.
pub(super) fn bind(host: &Host, addr: SocketAddr) -> Result<XdpDriver> {
    let Some(interface) = host.interface() else {
        return Err(failed("the driver xdp needs a network device: add --interface IF, or use --driver mio"));
    };
    try_bind(host, interface, addr).map_err(|error| failure(interface, addr, &error))
}

fn try_bind(host: &Host, interface: &str, addr: SocketAddr) -> std::result::Result<XdpDriver, BindError> {
    let mut options = Options::new(interface);
    options.attach = host.attach();
    host.run(move || XdpDriver::bind(addr, &options))
}

fn failure(interface: &str, addr: SocketAddr, error: &BindError) -> Failure {
    match error {
        BindError::Refused(refusal) => failed(format!(
            "cannot use the driver {NAME} on {interface}: {refusal}; {}, or use --driver mio",
            remedy(interface, refusal)
        )),
        BindError::Socket(error) if error.kind() == io::ErrorKind::AddrNotAvailable => failed(format!(
            "cannot use the driver {NAME} on {interface}: {}; give it one with `ip address add`, or choose another with --interface",
            lacks(addr)
        )),
        BindError::Socket(error) => bind_failure(addr, error),
        error => failed(format!("cannot use the driver {NAME} on {interface}: {error}, or use --driver mio")),
    }
}

/// What a device lacks that cannot be bound to `addr`.
fn lacks(addr: SocketAddr) -> String {
    match addr {
        _ if !addr.ip().is_unspecified() => format!("it does not have the address {}", addr.ip()),
        SocketAddr::V4(_) => "it has no IPv4 address".to_owned(),
        SocketAddr::V6(_) => "it has no address".to_owned(),
    }
}

/// What to do, with the names that the driver does not know.
fn remedy(interface: &str, refusal: &Refusal) -> String {
    let program =
        std::env::current_exe().map_or_else(|_| "PROGRAM".to_owned(), |path| quoted(&path.to_string_lossy()));
    refusal.remedy().replace("PROGRAM", &program).replace("DEVICE", interface)
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%,:".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// The row of `drivers`: opened for a moment on the device, or on one of its own.
pub(super) fn row(device: &Host) -> DriverRow {
    let Some(interface) = device.interface() else { return row_alone() };
    match try_bind(device, interface, any(super::has_ipv6())) {
        Ok(driver) => available(NAME, &driver.caps()),
        Err(BindError::Refused(refusal)) => {
            unavailable(NAME, format!("{refusal}; {}", remedy(interface, &refusal)))
        }
        Err(error) => unavailable(NAME, failure(interface, any(super::has_ipv6()), &error).to_string()),
    }
}

/// The same without a device to try.
fn row_alone() -> DriverRow {
    let host = match Host::alone() {
        Ok(host) => host,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return unavailable(NAME, untried(&missing(&status())));
        }
        Err(error) => return unavailable(NAME, format!("no pair of virtual devices to try it on: {error}")),
    };
    let mut row = row(&host);
    let held_back = row.reason.take().map(|reason| format!("{reason}; ")).unwrap_or_default();
    row.reason = Some(format!(
        "{held_back}tried on a pair of virtual devices of its own: name a device with --interface"
    ));
    row
}

/// Why it was not tried, and what it would take.
fn untried(missing: &[&str]) -> String {
    const WHY: &str = "not tried: virtual devices take root; name a device with --interface";
    if missing.is_empty() {
        WHY.to_owned()
    } else {
        format!("{WHY}; privileges that are missing: {}", missing.join(", "))
    }
}

fn status() -> String {
    // Without it every privilege counts as missing.
    fs::read_to_string("/proc/self/status").unwrap_or_default()
}

/// The privileges that a process lacks, by its `/proc/…/status`.
fn missing(status: &str) -> Vec<&'static str> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let has = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    PRIVILEGES.iter().filter(|(_, bit)| has >> bit & 1 == 0).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_privileges_are_named() {
        assert_eq!(missing("Name:\tx\nCapEff:\t000001ffffffffff\n"), Vec::<&str>::new());
        assert_eq!(missing("CapEff:\t0000000000003000\n"), ["cap_bpf"]);
        assert_eq!(missing(""), ["cap_net_raw", "cap_net_admin", "cap_bpf"]);
        assert!(untried(&["cap_bpf"]).ends_with("privileges that are missing: cap_bpf"));
    }

    #[test]
    fn a_path_can_be_pasted_into_a_shell() {
        assert_eq!(quoted("/usr/local/bin/wraith-cli"), "/usr/local/bin/wraith-cli");
        assert_eq!(quoted("/home/a b/it's"), r"'/home/a b/it'\''s'");
    }
}
