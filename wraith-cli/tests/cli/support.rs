//! Processes with deadlines, and folders that go away.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Nothing here takes as long, and a process that is at work is not silent for as long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The program, ready to be given arguments.
pub(crate) fn program<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wraith-cli"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // No test may find the DHT that whoever runs it is part of.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-state"));
    command
}

/// Runs the program to its end.
pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Done {
    Running::start(&mut program(args)).finish()
}

/// A process that runs; it is killed when the value goes away.
pub(crate) struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    started: Instant,
}

/// How a process ended, and what it still had to say on stdout.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let started = Instant::now();
        let (line, stdout) = mpsc::channel();
        let pipe = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || pipe.lines().map_while(Result::ok).try_for_each(|text| line.send(text)));
        let mut pipe = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).unwrap();
            text
        });
        Self { child, stdout, stderr: Some(stderr), started }
    }

    /// The next line of stdout.
    pub(crate) fn line(&self) -> String {
        self.stdout.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("no line: {error}"))
    }

    /// The next line of stdout as JSON, which is of this event.
    pub(crate) fn event(&self, name: &str) -> Value {
        let event: Value = serde_json::from_str(&self.line()).unwrap();
        assert_eq!(event["event"], name, "{event}");
        event
    }

    /// Presses Ctrl-C.
    #[cfg(unix)]
    pub(crate) fn interrupt(&self) {
        self.signal(nix::sys::signal::Signal::SIGINT);
    }

    /// Sends it a signal.
    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().try_into().unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// Waits for the end, as long as the process gets on: how fast it does depends on what else the machine has to do.
    pub(crate) fn finish(self) -> Done {
        self.end(PATIENCE, true)
    }

    /// Waits for the end, as long as `limit`; from each line on that says something new, if that counts as `life`.
    pub(crate) fn end(mut self, limit: Duration, life: bool) -> Done {
        let mut stdout = Vec::new();
        let mut until = Instant::now() + limit;
        let status = loop {
            match self.stdout.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if life && stdout.last() != Some(&line) {
                        until = Instant::now() + limit;
                    }
                    stdout.push(line);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break self.wait(),
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("still running; it said {stdout:?}"),
            }
        };
        let took = self.started.elapsed();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        Done { code: status.code(), stdout, stderr, took }
    }

    /// Stdout has ended, and with it the process.
    fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Done {
    /// The lines of stdout as JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.stdout.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Asserts that it failed with this code and one line on stderr; returns the line.
    pub(crate) fn error(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        let mut lines = self.stderr.lines();
        let line = lines.next().unwrap_or_default();
        assert_eq!(lines.next(), None, "{}", self.stderr);
        line.strip_prefix("error: ").unwrap()
    }
}

/// A listener and how to reach it.
pub(crate) struct Listener {
    pub(crate) process: Running,
    pub(crate) peer: String,
    pub(crate) port: u16,
}

impl Listener {
    /// Starts `listen --json` on `bind`.
    pub(crate) fn start(bind: &str) -> Self {
        Self::start_with(bind, &[])
    }

    /// Starts it with more arguments.
    pub(crate) fn start_with(bind: &str, args: &[&str]) -> Self {
        let process = Running::start(program(["listen", "--json", "--bind", bind]).args(args));
        let event = process.event("listening");
        let peer = event["peer"].as_str().unwrap().to_owned();
        let port = event["address"].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
        Self { process, peer, port }
    }

    /// `PEER@ip:port`; the address of an IPv6 one is given in brackets.
    pub(crate) fn at(&self, ip: &str) -> String {
        format!("{}@{ip}:{}", self.peer, self.port)
    }
}

/// A folder that goes away with the value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
