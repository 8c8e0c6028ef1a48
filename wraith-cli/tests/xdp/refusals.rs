//! Refusals for real: without privileges, without the device, and where somebody else has it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use wraith_drivers_xdp::veth::Side;

use crate::hosts::{plain_hosts, run_on, start_on, xdp};
use crate::support::{Done, program};

/// Whoever has no privileges.
const NOBODY: u32 = 65_534;
const PRIVILEGES: &str = "cap_net_raw,cap_net_admin,cap_bpf";

/// The program where everybody may run it, and may be given privileges.
struct Copy {
    _folder: TempDir,
    path: PathBuf,
}

impl Copy {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("wraith-cli");
        fs::copy(env!("CARGO_BIN_EXE_wraith-cli"), &path).unwrap();
        for path in [folder.path(), &path] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { _folder: folder, path }
    }

    /// Runs the program as nobody.
    fn run_as_nobody(&self, side: &Side, args: &[&str]) -> Done {
        let mut command = Command::new(&self.path);
        command.args(args).uid(NOBODY).gid(NOBODY);
        finish_on(side, command)
    }

    /// The same, with `limit` bytes of locked memory.
    fn run_limited(&self, side: &Side, limit: u32, args: &[&str]) -> Done {
        let mut command = Command::new("prlimit");
        command.arg(format!("--memlock={limit}")).arg(&self.path).args(args).uid(NOBODY).gid(NOBODY);
        finish_on(side, command)
    }

    /// The command that gives the program privileges.
    fn setcap(&self, privileges: &str) -> String {
        format!("setcap {privileges}+ep {}", self.path.display())
    }
}

fn finish_on(side: &Side, mut command: Command) -> Done {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    start_on(side, command).finish()
}

/// Runs a command as it was printed.
fn run_line(line: &str) {
    let mut words = line.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status();
    assert!(status.unwrap().success(), "{line}");
}

fn listen(side: &Side) -> Vec<&str> {
    [&["listen"][..], &xdp(side)].concat()
}

fn refused(interface: &str, cause: &str, remedy: &str) -> String {
    format!("cannot use the driver xdp on {interface}: {cause}; {remedy}, or use --driver mio")
}

#[test]
fn who_lacks_privileges_is_told_the_command_that_gives_them() {
    let Some(veth) = plain_hosts() else { return };
    let (copy, side) = (Copy::new(), veth.left());
    let remedy = format!("run as root, or give the program its privileges: {}", copy.setcap(PRIVILEGES));
    let done = copy.run_as_nobody(side, &listen(side));
    assert_eq!(
        done.error(1),
        refused(side.interface(), "loading the filter: not permitted (EPERM)", &remedy)
    );
    let drivers = copy.run_as_nobody(side, &["drivers", "--json", "--interface", side.interface()]);
    let reason = format!("loading the filter: not permitted (EPERM); {remedy}");
    assert_eq!(drivers.json().last().unwrap()["reason"], reason);
    let untried = copy.run_as_nobody(side, &["drivers", "--json"]).json();
    let untried = untried.last().unwrap()["reason"].as_str().unwrap();
    assert!(untried.starts_with("not tried: virtual devices take root; name a device"), "{untried}");
    assert!(untried.ends_with("are missing: cap_net_raw, cap_net_admin, cap_bpf"), "{untried}");
    for command in ["demo", "bench"] {
        let done = copy.run_as_nobody(side, &[command, "-q", "--driver", "xdp"]);
        let message = done.error(1);
        assert!(message.starts_with("cannot make a pair of virtual devices: "), "{message}");
        assert!(message.ends_with("run this as root, or use --driver mio without --veth"), "{message}");
    }
}

/// What is printed is true: these privileges are enough within the usual limit on locked memory, and one more without it.
#[test]
fn the_commands_that_are_printed_give_the_privileges_that_it_takes() {
    let Some(veth) = plain_hosts() else { return };
    let (copy, side) = (Copy::new(), veth.left());
    run_line(&copy.setcap(PRIVILEGES));
    let modes = [("xdp-native-copy", &[][..]), ("xdp-generic-copy", &["--xdp-generic"])];
    let works = |limit| {
        for (mode, extra) in modes {
            let args = [&["drivers", "--json", "--interface", side.interface()], extra].concat();
            let row = copy.run_limited(side, limit, &args).json().pop().unwrap();
            assert_eq!((&row["available"], &row["mode"]), (&true.into(), &mode.into()), "{row}");
        }
    };
    // What Linux has by default since 5.16.
    works(8 << 20);
    let done = copy.run_limited(side, 0, &listen(side));
    let cause = "memory shared with the kernel: too little memory may be locked (ENOMEM)";
    let line = copy.setcap(&format!("{PRIVILEGES},cap_ipc_lock"));
    let remedy = format!(
        "raise the limit on locked memory (ulimit -l, LimitMEMLOCK), or lift it for the program: {line}"
    );
    assert_eq!(done.error(1), refused(side.interface(), cause, &remedy));
    run_line(&line);
    works(0);
}

#[test]
fn a_device_that_cannot_be_used_is_named_with_the_remedy() {
    let Some(veth) = plain_hosts() else { return };
    let side = veth.left();
    let down = || Command::new("ip").args(["link", "set", "wraith0", "down"]).status();
    assert!(side.run(down).unwrap().success());
    for (interface, cause, remedy) in [
        (
            "wraith9",
            "no such device or queue (ENODEV)",
            "name a device and a queue that exist: ip link, ethtool -l",
        ),
        ("wraith0", "the device is down (ENETDOWN)", "bring the device up: ip link set wraith0 up"),
        // It has no Ethernet.
        ("lo", "not supported (EOPNOTSUPP)", "allow copies and the generic mode, or choose another device"),
    ] {
        let done = run_on(side, ["listen", "--driver", "xdp", "--interface", interface]);
        assert_eq!(done.error(1), refused(interface, &format!("the network device: {cause}"), remedy));
    }
}

#[test]
fn a_device_without_the_address_is_named_with_the_remedy() {
    let Some(veth) = plain_hosts() else { return };
    let side = veth.left();
    let interface = side.interface();
    // The first is for documentation only (RFC 5737), the other of another device of this host.
    for ip in ["198.51.100.1", "127.0.0.1"] {
        let done = run_on(side, ["listen", "--driver", "xdp", "--interface", interface, "--bind", ip]);
        let message = format!(
            "cannot use the driver xdp on {interface}: it does not have the address {ip}; \
             give it one with `ip address add`, or choose another with --interface"
        );
        assert_eq!(done.error(1), message);
    }
}

#[test]
fn a_device_whose_filter_is_another_programs_is_free_when_that_ends() {
    let Some(veth) = plain_hosts() else { return };
    let side = veth.left();
    let start = || {
        let listener = start_on(side, program(listen(side).into_iter().chain(["--json"])));
        listener.event("listening");
        listener
    };
    let first = start();
    let second = run_on(side, listen(side));
    let (cause, remedy) = (
        "attaching the filter to the device: somebody else has it (EBUSY)",
        "end the program that holds the queue or the device's filter: ip link show lists it",
    );
    assert_eq!(second.error(1), refused(side.interface(), cause, remedy));
    first.interrupt();
    assert_eq!(first.finish().code, Some(130));
    drop(start());
}
