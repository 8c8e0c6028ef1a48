//! A process whose messages are listened to while it runs.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde_json::Value;

use crate::support::{PATIENCE, program};

/// It is killed when the value goes away.
pub(crate) struct Heard {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Heard {
    /// Starts the command, without `-q`.
    pub(crate) fn start(command: &Command) -> Self {
        let mut child = program(command.get_args().filter(|arg| *arg != "-q")).spawn().unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// Waits until it has said this on stderr.
    pub(crate) fn hear(&self, text: &str) {
        let mut said = Vec::new();
        while !said.last().is_some_and(|line: &String| line.contains(text)) {
            said.push(self.stderr.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error}: {said:?}")));
        }
    }

    /// Waits until it has printed a line of JSON that `is` the one.
    pub(crate) fn wait(&self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.stdout.recv_timeout(PATIENCE).unwrap();
            let event = serde_json::from_str(&line).unwrap();
            if is(&event) {
                return event;
            }
        }
    }

    /// Waits for the end; the exit code, and what else it has said on stderr.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        // Its output ends with it.
        while self.stdout.recv_timeout(PATIENCE).is_ok() {}
        let said: Vec<_> = std::iter::from_fn(|| self.stderr.recv_timeout(PATIENCE).ok()).collect();
        (self.child.wait().unwrap().code(), said.join("\n"))
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (line, lines) = mpsc::channel();
    let pipe = BufReader::new(pipe);
    thread::spawn(move || pipe.lines().map_while(Result::ok).try_for_each(|text| line.send(text)));
    lines
}
