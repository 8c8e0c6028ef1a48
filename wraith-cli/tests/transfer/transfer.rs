//! A sender, a receiver, and what they leave behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use wraith_transfer_proto::Ticket;

use crate::support::{Done, Folder, Running, program};

/// The ways to read and write files.
pub(crate) const WAYS: &[&str] =
    if cfg!(all(feature = "io-uring", target_os = "linux")) { &["std", "uring"] } else { &["std"] };

/// Bytes that differ from place to place.
pub(crate) fn content(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&(len as u64).to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// A folder with a file to send, and one to receive in.
pub(crate) struct Scene {
    folder: Folder,
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
}

impl Scene {
    /// With a file `file.bin` of these bytes.
    pub(crate) fn new(name: &str, bytes: &[u8]) -> Self {
        let scene = Self::empty(name);
        fs::write(&scene.source, bytes).unwrap();
        scene
    }

    /// With a file `file.bin` of `len` zeros that take no room.
    pub(crate) fn sparse(name: &str, len: u64) -> Self {
        let scene = Self::empty(name);
        fs::File::create(&scene.source).unwrap().set_len(len).unwrap();
        scene
    }

    pub(crate) fn empty(name: &str) -> Self {
        let folder = Folder::new(name);
        let (source, target) = (folder.path("file.bin"), folder.path("target"));
        fs::create_dir(&target).unwrap();
        Self { folder, source, target }
    }

    /// Where the file is received by default.
    pub(crate) fn received(&self) -> PathBuf {
        self.target.join("file.bin")
    }

    /// A path beside the source.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// The names in the target folder, and that nothing else came into being.
    pub(crate) fn names(&self) -> Vec<String> {
        let list = |path: &Path| {
            let mut names: Vec<_> = fs::read_dir(path)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let around = list(self.target.parent().unwrap());
        assert!(around.iter().all(|name| name == "file.bin" || name == "target"), "{around:?}");
        list(&self.target)
    }

    /// Starts `send --json` on IPv4 loopback.
    pub(crate) fn send(&self, more: &[&str]) -> Sender {
        self.send_from("127.0.0.1:0", more)
    }

    pub(crate) fn send_from(&self, bind: &str, more: &[&str]) -> Sender {
        let process = Running::start(&mut self.send_command(bind, more));
        let event = process.event("ticket");
        Sender { process, event }
    }

    /// `send --json`, not started.
    pub(crate) fn send_command(&self, bind: &str, more: &[&str]) -> Command {
        let mut command = program(["send", "--json", "-q", "--bind", bind]);
        command.args(more).arg(&self.source);
        command
    }

    /// `receive --json` of a ticket into the target folder.
    pub(crate) fn receive(&self, ticket: &str, more: &[&str]) -> Command {
        let mut command = program(["receive", "--json", "-q", ticket, "--output"]);
        command.arg(&self.target).args(more);
        command
    }
}

/// A process that serves a file.
pub(crate) struct Sender {
    pub(crate) process: Running,
    pub(crate) event: Value,
}

impl Sender {
    pub(crate) fn ticket(&self) -> String {
        self.event["ticket"].as_str().unwrap().to_owned()
    }

    /// The ticket with one thing changed, and a checksum that fits again.
    pub(crate) fn changed(&self, change: impl FnOnce(&mut Ticket)) -> String {
        let mut ticket: Ticket = self.ticket().parse().unwrap();
        change(&mut ticket);
        ticket.encode().unwrap()
    }
}

/// Runs a receiver to its end.
pub(crate) fn finish(command: &mut Command) -> Done {
    Running::start(command).finish()
}

/// Waits until a receiver is in the middle of a transfer.
pub(crate) fn wait_for_middle(receiver: &Running) {
    loop {
        let event = receiver.event("progress");
        if event["bytes"].as_u64().unwrap() > 0 {
            return;
        }
    }
}

/// The last line of a receiver that succeeded.
pub(crate) fn done(end: &Done) -> Value {
    assert_eq!(end.code, Some(0), "{} {:?}", end.stderr, end.stdout);
    let done = end.json().pop().unwrap();
    assert_eq!(done["event"], "done");
    done
}

/// Asserts exit code 1 and one line, on stderr and as JSON; returns it.
pub(crate) fn error(end: &Done) -> &str {
    let line = end.error(1);
    let event = end.json().pop().unwrap();
    assert_eq!((event["event"].as_str(), event["message"].as_str()), (Some("error"), Some(line)));
    line
}
