//! A host: a thread in a network namespace of its own, and what runs on it.

use std::fs::File;
use std::io::{self, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;

use crate::support::Running;

type Job = Box<dyn FnOnce() + Send>;

/// Nothing is left of it when it is dropped: a namespace ends with its last thread and process, and its devices with it.
pub(crate) struct Host {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// By which devices are moved to it.
    id: i32,
}

impl Host {
    /// A host with loopback alone.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_SYS_ADMIN`.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let (jobs, to_do) = mpsc::channel::<Job>();
        let (give, take) = mpsc::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let made = unshare(CloneFlags::CLONE_NEWNET).map(|()| gettid().as_raw());
            give.send(made).expect("it is waited for");
            if made.is_ok() {
                for job in to_do {
                    job();
                }
            }
        })?;
        let id = take.recv().expect("the thread says how it went")?;
        let host = Self { jobs: Some(jobs), thread: Some(thread), id };
        host.set("net/ipv6/conf/all/disable_ipv6", "1");
        host.sh("ip link set lo up");
        Ok(host)
    }

    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    /// Runs commands there, one a line, each of which has to succeed.
    pub(crate) fn sh(&self, commands: &str) {
        let script = format!("set -e\n{commands}\n");
        self.feed("sh", &["-s"], &script);
    }

    /// Gives nftables these lines.
    pub(crate) fn nft(&self, rules: &str) {
        self.feed("nft", &["-f", "-"], rules);
    }

    /// Sets a kernel parameter of the network.
    pub(crate) fn set(&self, name: &str, value: &'static str) {
        let path = format!("/proc/sys/{name}");
        self.run(move || {
            let written =
                File::options().write(true).open(&path).and_then(|mut file| file.write_all(value.as_bytes()));
            // A kernel without IPv6 has nothing to switch off.
            assert!(written.is_ok() || path.contains("ipv6"), "{path}: {written:?}");
        });
    }

    /// Starts a program there.
    pub(crate) fn start(&self, mut command: Command) -> Running {
        self.run(move || Running::start(&mut command))
    }

    /// Runs `work` on the host's thread: sockets and processes that it makes belong to the host.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (give, take) = mpsc::channel();
        let job: Job = Box::new(move || {
            // Whoever waits for it is in `take.recv()`.
            let _ = give.send(panic::catch_unwind(AssertUnwindSafe(work)));
        });
        self.jobs
            .as_ref()
            .expect("it takes work until it is dropped")
            .send(job)
            .expect("no work ends its thread");
        match take.recv().expect("a host outlives its work") {
            Ok(result) => result,
            Err(payload) => panic::resume_unwind(payload),
        }
    }

    fn feed(&self, program: &'static str, args: &'static [&str], text: &str) {
        let text = text.to_owned();
        self.run(move || {
            let mut command = Command::new(program);
            command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
            child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let done = child.wait_with_output().unwrap();
            assert!(done.status.success(), "{text}: {}", String::from_utf8_lossy(&done.stderr));
        });
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.jobs = None;
        // It caught what its work threw.
        self.thread.take().map(JoinHandle::join);
    }
}
