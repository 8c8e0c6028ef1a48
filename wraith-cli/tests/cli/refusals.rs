//! A system that refuses `io_uring`, for real: a child refuses it to itself and becomes the program.

use std::collections::BTreeMap;
use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use crate::support::{Done, Folder, Running, program};

/// The error number that the child has to answer itself, and the arguments of the program.
const CODE: &str = "WRAITH_CLI_REFUSE";
const ARGUMENTS: &str = "WRAITH_CLI_ARGUMENTS";

/// Runs the program where setting up a ring fails with this error number.
fn run_refused(code: i32, arguments: &[&str]) -> Done {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "refusals::the_child", "--nocapture", "--test-threads", "1"]);
    child.env(CODE, code.to_string()).env(ARGUMENTS, arguments.join(" "));
    child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(&mut child).finish()
}

#[test]
fn the_child() {
    let (Ok(code), Ok(arguments)) = (env::var(CODE), env::var(ARGUMENTS)) else { return };
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_io_uring_setup, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::Errno(code.parse().unwrap()),
        env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    apply_filter(&program).unwrap();
    let error = Command::new(env!("CARGO_BIN_EXE_wraith-cli")).args(arguments.split(' ')).exec();
    panic!("{error}");
}

#[test]
fn the_driver_that_was_asked_for_fails_with_the_cause_and_the_remedy() {
    for (code, cause, remedy) in [
        (
            libc::EPERM,
            "io_uring: not permitted (EPERM)",
            "set the sysctl kernel.io_uring_disabled to 0 and let the container's seccomp filter pass io_uring",
        ),
        (
            libc::ENOSYS,
            "io_uring: not there (ENOSYS)",
            "use a kernel built with CONFIG_IO_URING, and let the container's seccomp filter pass io_uring",
        ),
        (
            libc::ENOMEM,
            "io_uring: too little memory may be locked (ENOMEM)",
            "raise the limit on locked memory: ulimit -l, LimitMEMLOCK",
        ),
        (libc::EOPNOTSUPP, "io_uring: not supported (EOPNOTSUPP)", "use Linux 6.1 or later"),
        (libc::EINVAL, "io_uring: this kernel is too old (EINVAL)", "use Linux 6.1 or later"),
    ] {
        let done = run_refused(code, &["listen", "--driver", "uring"]);
        let error = format!("cannot use the driver uring: {cause}; {remedy}, or use --driver mio");
        assert_eq!(done.error(1), error);
    }
}

#[test]
fn files_through_the_ring_that_were_asked_for_fail_with_the_cause_and_the_remedy() {
    let done = run_refused(libc::EPERM, &["send", "--files", "uring", env!("CARGO_BIN_EXE_wraith-cli")]);
    assert_eq!(
        done.error(1),
        "cannot use io_uring for files: io_uring: not permitted (EPERM); set the sysctl kernel.io_uring_disabled to 0 \
         and let the container's seccomp filter pass io_uring, or use --files std"
    );
    let folder = Folder::new("refused-files");
    let sender = Running::start(&mut program([
        "send",
        "--json",
        "--bind",
        "127.0.0.1:0",
        env!("CARGO_BIN_EXE_wraith-cli"),
    ]));
    let ticket = sender.event("ticket")["ticket"].as_str().unwrap().to_owned();
    let target = folder.path("");
    let done = run_refused(
        libc::ENOMEM,
        &["receive", &ticket, "-q", "--files", "uring", "-o", target.to_str().unwrap()],
    );
    assert_eq!(
        done.error(1),
        "cannot use io_uring for files: io_uring: too little memory may be locked (ENOMEM); raise the limit on locked \
         memory: ulimit -l, LimitMEMLOCK, or use --files std"
    );
    assert_eq!(std::fs::read_dir(target).unwrap().count(), 0, "nothing stays");
}

#[test]
fn files_go_the_plain_way_where_the_ring_is_refused_and_it_is_said_why() {
    let done = run_refused(libc::ENOSYS, &["demo", "--json", "--size", "2MiB"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.iter().any(|line| line.contains(r#""files":"std""#)), "{:?}", done.stdout);
    let done = run_refused(libc::ENOSYS, &["send", "-v", "/no/such/file"]);
    let why =
        "files std: uring is refused: io_uring: not there (ENOSYS); use a kernel built with CONFIG_IO_URING";
    assert!(done.stderr.starts_with(why), "{}", done.stderr);
}

#[test]
fn the_list_says_that_it_is_refused_and_why() {
    let done = run_refused(libc::EPERM, &["drivers", "--json"]);
    // The harness of the child has said something on the first line before.
    let objects = done.stdout.iter().filter_map(|line| line.find('{').map(|start| &line[start..]));
    let rows: Vec<serde_json::Value> = objects.map(|object| serde_json::from_str(object).unwrap()).collect();
    assert_eq!(rows.len(), if cfg!(feature = "af-xdp") { 3 } else { 2 }, "{:?}", done.stdout);
    assert_eq!((&rows[0]["driver"], &rows[0]["available"]), (&"mio".into(), &true.into()));
    assert_eq!((&rows[1]["driver"], &rows[1]["available"]), (&"uring".into(), &false.into()));
    let reason = rows[1]["reason"].as_str().unwrap();
    assert!(reason.starts_with("io_uring: not permitted (EPERM); set the sysctl"), "{reason}");
    assert!(rows[1]["mode"].is_null());
}

#[test]
fn auto_goes_on_to_the_portable_driver_and_says_why() {
    let arguments = ["bench", "--json", "--verbose", "--duration", "100ms"];
    for (code, refusal) in [
        (libc::EPERM, "io_uring: not permitted (EPERM); set the sysctl kernel.io_uring_disabled to 0"),
        (libc::ENOSYS, "io_uring: not there (ENOSYS); use a kernel built with CONFIG_IO_URING"),
    ] {
        let done = run_refused(code, &arguments);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert!(done.stdout.iter().any(|line| line.contains(r#""driver":"mio""#)), "{:?}", done.stdout);
        let line = done.stderr.lines().find(|line| line.starts_with("driver mio")).unwrap();
        assert!(line.contains(&format!(": uring is refused: {refusal}")), "{line}");
    }
}

#[test]
fn auto_says_that_it_passes_a_ring_over_that_works() {
    let done = crate::support::run(["bench", "--json", "--verbose", "--duration", "100ms"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let line = done.stderr.lines().find(|line| line.starts_with("driver mio")).unwrap();
    let why = "uring works here and is no faster by measurement, see docs/CHOOSING.md; bound to";
    assert!(line.contains(why), "{line}");
}
