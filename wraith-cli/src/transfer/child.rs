//! This program as a process of its own, read by its JSON lines.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use serde_json::Value;
use wraith_drivers::Unpark;

use crate::device::Host;
use crate::failure::{Result, failed};

/// Which of the two processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Sender,
    Receiver,
}

/// What happened to a process.
#[derive(Debug)]
pub(super) enum News {
    /// It printed a line.
    Line(End, Value),
    /// It prints no more.
    Silent(End),
    /// Ctrl-C.
    Interrupted,
}

/// A process that is ended with its owner.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
}

impl Process {
    /// Starts this program on `host` with `args`; its lines go to `news`.
    pub(super) fn start<S: AsRef<OsStr>>(
        host: &Host,
        end: End,
        args: impl IntoIterator<Item = S>,
        news: Sender<News>,
    ) -> Result<Self> {
        let fail = |error: std::io::Error| {
            failed(format!("cannot start this program again: {error}; install it anew"))
        };
        let program = std::env::current_exe().map_err(fail)?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = host.run(move || command.spawn()).map_err(fail)?;
        let stdout = child.stdout.take();
        std::thread::spawn(move || {
            let lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
            for line in lines.map_while(std::result::Result::ok) {
                if let Ok(value) = serde_json::from_str(&line)
                    && news.send(News::Line(end, value)).is_err()
                {
                    return;
                }
            }
            // Nobody listens any more when the owner has ended.
            let _ = news.send(News::Silent(end));
        });
        Ok(Self { child })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended, at most for `limit`.
    pub(super) fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Turns Ctrl-C into news.
#[derive(Clone, Debug)]
pub(super) struct Bell(pub(super) Sender<News>);

impl Unpark for Bell {
    fn unpark(&self) -> std::io::Result<()> {
        self.0.send(News::Interrupted).map_err(std::io::Error::other)
    }
}
