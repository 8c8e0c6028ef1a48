//! What a system refuses, refused for real: each case runs in a child of its own, behind a filter or a limit.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::env;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};
use wraith_drivers::{Driver, Limit};
use wraith_drivers_uring::{BindError, Options, Reason, Refusal, Step, UringDriver, probe};

/// What the child has to refuse itself.
const CASE: &str = "WRAITH_URING_REFUSE";

const SETUP: i64 = libc::SYS_io_uring_setup;
const ENTER: i64 = libc::SYS_io_uring_enter;
const REGISTER: i64 = libc::SYS_io_uring_register;
/// Operations of `io_uring_register`, from `linux/io_uring.h`.
const REGISTER_FILES: u64 = 2;
const REGISTER_PROBE: u64 = 8;
const REGISTER_PBUF_RING: u64 = 22;

/// System calls that answer an error number; of `io_uring_register`, one operation.
const FILTERS: [(&str, i64, Option<u64>, i32); 8] = [
    ("setup-eperm", SETUP, None, libc::EPERM),
    ("setup-enosys", SETUP, None, libc::ENOSYS),
    ("setup-einval", SETUP, None, libc::EINVAL),
    ("setup-enomem", SETUP, None, libc::ENOMEM),
    ("files-eopnotsupp", REGISTER, Some(REGISTER_FILES), libc::EOPNOTSUPP),
    ("buffers-einval", REGISTER, Some(REGISTER_PBUF_RING), libc::EINVAL),
    ("probe-einval", REGISTER, Some(REGISTER_PROBE), libc::EINVAL),
    ("enter-eperm", ENTER, None, libc::EPERM),
];

/// Runs the case in a child and returns what it says about binding a driver.
fn refused(case: &str) -> String {
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "the_child", "--nocapture", "--test-threads", "1"])
        .env(CASE, case)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    let answer = text.lines().find_map(|line| line.split_once("refusal: ")).map(|(_, text)| text.to_owned());
    answer.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&child.stderr)))
}

#[test]
fn the_child() {
    let Ok(case) = env::var(CASE) else { return };
    if case == "memlock" {
        // Root is not bound by the limit.
        setrlimit(Resource::RLIMIT_MEMLOCK, 0, 0).unwrap();
        setgroups(&[]).unwrap();
        let (group, user) = (Gid::from_raw(65_534), Uid::from_raw(65_534));
        setresgid(group, group, group).unwrap();
        setresuid(user, user, user).unwrap();
    } else {
        let (_, call, operation, code) = FILTERS.into_iter().find(|filter| filter.0 == case).unwrap();
        filter(call, operation, code);
    }
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let answer = match UringDriver::bind(local, &Options::default()) {
        Ok(driver) => format!("none, {:?}", driver.caps()),
        Err(BindError::Refused(refusal)) => {
            assert_eq!(probe(), Err(refusal), "a probe alone says the same");
            format!("{refusal:?}, {:?}; {}", refusal.limit(), BindError::Refused(refusal))
        }
        Err(other) => format!("of something else: {other}"),
    };
    println!("\nrefusal: {answer}");
}

fn filter(call: i64, operation: Option<u64>, code: i32) {
    let rules = operation.map(|operation| {
        let is = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, operation).unwrap();
        SeccompRule::new(vec![is]).unwrap()
    });
    let filter = SeccompFilter::new(
        BTreeMap::from([(call, rules.into_iter().collect())]),
        SeccompAction::Allow,
        SeccompAction::Errno(code as u32),
        env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    apply_filter(&program).unwrap();
}

/// What the child says about `step` and `reason`.
fn expected(step: Step, reason: Reason, limit: Limit) -> String {
    let refusal = Refusal { step, reason };
    format!("{refusal:?}, {limit:?}; {}", BindError::Refused(refusal))
}

#[test]
fn every_refusal_is_named_with_its_step_and_reason() {
    for (case, step, reason, limit) in [
        ("setup-eperm", Step::Setup, Reason::Forbidden, Limit::Permission),
        ("setup-enosys", Step::Setup, Reason::Absent, Limit::System),
        ("setup-einval", Step::Setup, Reason::TooOld, Limit::System),
        ("setup-enomem", Step::Setup, Reason::Memory, Limit::Memory),
        ("files-eopnotsupp", Step::Files, Reason::Unsupported, Limit::System),
        ("buffers-einval", Step::Buffers, Reason::TooOld, Limit::System),
        ("probe-einval", Step::Operations, Reason::TooOld, Limit::System),
        ("enter-eperm", Step::Trial, Reason::Forbidden, Limit::Permission),
    ] {
        assert_eq!(refused(case), expected(step, reason, limit), "{case}");
    }
}

#[test]
fn a_user_who_may_lock_no_memory_is_told_so() {
    if !Uid::effective().is_root() {
        println!("not run: only root can become a user whose locked memory is counted anew");
        return;
    }
    let answer = refused("memlock");
    assert!(answer.contains("reason: Memory }, Memory;"), "{answer}");
    assert!(answer.ends_with("raise the limit on locked memory: ulimit -l, LimitMEMLOCK"), "{answer}");
}

#[test]
fn a_refusal_says_what_to_do() {
    let permission = refused("setup-eperm");
    assert!(permission.contains("kernel.io_uring_disabled to 0"), "{permission}");
    let absent = refused("setup-enosys");
    assert!(absent.contains("CONFIG_IO_URING"), "{absent}");
}
