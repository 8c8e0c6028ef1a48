//! Nodes as processes, and clients that ask through them.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Done, Folder, Running, program, run};

/// A node with files of its own.
pub(crate) struct Node {
    process: Running,
    /// `PEER@ADDR`.
    pub(crate) target: String,
    pub(crate) peer: String,
    pub(crate) state: PathBuf,
}

impl Node {
    /// Starts the node of this name, which joins through `bootstrap` or else through what it knows from the last time.
    pub(crate) fn start(folder: &Folder, name: &str, bootstrap: &[&Self]) -> Self {
        let targets: Vec<_> = bootstrap.iter().map(|node| &*node.target).collect();
        Self::start_with(folder, name, &targets, &[])
    }

    /// Starts it with more arguments.
    pub(crate) fn start_with(folder: &Folder, name: &str, bootstrap: &[&str], args: &[&str]) -> Self {
        let (identity, state) = (folder.path(&format!("{name}.id")), folder.path(&format!("{name}.state")));
        let mut command = program(["dht", "node", "--json", "-q", "--bind", "127.0.0.1", "--identity"]);
        command.arg(identity).arg("--state").arg(&state).args(args);
        for target in bootstrap {
            command.args(["--bootstrap", target]);
        }
        let process = Running::start(&mut command);
        let event = process.event("node");
        let peer = event["peer"].as_str().unwrap().to_owned();
        let target = format!("{peer}@{}", event["addresses"][0].as_str().unwrap());
        Self { process, target, peer, state }
    }

    /// Waits until it has joined, and says how many nodes answered.
    pub(crate) fn joined(&self) -> u64 {
        self.process.event("joined")["contacts"].as_u64().unwrap()
    }

    /// Waits until it has told others where it is, and says how many keep that.
    pub(crate) fn published(&self) -> u64 {
        self.process.event("published")["nodes"].as_u64().unwrap()
    }

    /// Ctrl-C, and the end.
    pub(crate) fn end(self) -> Done {
        self.process.interrupt();
        self.process.finish()
    }

    /// The end that it comes to by itself.
    pub(crate) fn finish(self) -> Done {
        self.process.finish()
    }

    /// `kill -9`, as when the machine fails.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

/// `dht VERB ARGS --json` through `node`, not finished.
pub(crate) fn asking(verb: &str, args: &[&str], node: &Node) -> Running {
    Running::start(program(["dht", verb, "--json"]).args(args).args(["--bootstrap", &node.target]))
}

/// Stores a value through `node`; its key, and how many nodes keep it.
pub(crate) fn put(value: &str, node: &Node) -> (String, u64) {
    stored(asking("put", &[value], node))
}

/// What a `put` says.
pub(crate) fn stored(put: Running) -> (String, u64) {
    let end = put.finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let event = end.json().pop().unwrap();
    assert_eq!(event["event"], "stored");
    (event["key"].as_str().unwrap().to_owned(), event["nodes"].as_u64().unwrap())
}

/// Asserts that a `get` brought this value and nothing else.
pub(crate) fn brought(get: Running, value: &str) {
    let end = get.finish();
    assert_eq!((end.code, end.stdout.join("\n").as_str()), (Some(0), value), "{}", end.stderr);
    let event: Value = serde_json::from_str(end.stderr.trim()).unwrap();
    assert_eq!((&event["event"], &event["bytes"]), (&"value".into(), &value.len().into()));
}

/// What `dht find` prints: `PEER@ADDR`, and whether it has just answered there.
pub(crate) fn found(args: &[&str], node: &Node) -> Vec<(String, bool)> {
    let end = asking("find", args, node).finish();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let found = |event: &Value| {
        assert_eq!(event["event"], "found");
        (event["target"].as_str().unwrap().to_owned(), event["answered"].as_bool().unwrap())
    };
    end.json().iter().map(found).collect()
}

/// The program's one line of error; it has failed with code 1.
pub(crate) fn error<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> (String, Done) {
    let end = run(args);
    (end.error(1).to_owned(), end)
}
