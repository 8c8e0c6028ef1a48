//! Messages from stdin to stdout.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::thread;

use serde_json::Value;

use crate::support::{Folder, program, run};

/// Two identities in a folder, and what they are called.
struct Two {
    folder: Folder,
    peers: [String; 2],
}

/// What came out of a process that was fed.
struct Out {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

impl Two {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let peers = ["one", "two"].map(|file| {
            let path = folder.path(file);
            run(["keygen", "-q", "--output", path.to_str().unwrap()]).stdout.remove(0)
        });
        Self { folder, peers }
    }

    fn identity(&self, who: usize) -> PathBuf {
        self.folder.path(["one", "two"][who])
    }

    /// Seals by the first to the second.
    fn seal(&self, args: &[&str], body: &[u8]) -> Vec<u8> {
        let out = self.run(0, &[&["seal", "--to", &self.peers[1]], args].concat(), body);
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        out.stdout
    }

    /// Opens by the second.
    fn open(&self, args: &[&str], message: &[u8]) -> Out {
        self.run(1, &[&["open"], args].concat(), message)
    }

    fn run(&self, who: usize, args: &[&str], stdin: &[u8]) -> Out {
        feed(start(&self.identity(who), args), stdin)
    }
}

impl Out {
    /// Asserts that it failed with one line on stderr, without anything on stdout but `written`.
    fn error(&self, written: &[u8]) -> &str {
        assert_eq!(self.code, Some(1), "{}", self.stderr);
        assert!(self.stdout == written, "{} bytes", self.stdout.len());
        let mut lines = self.stderr.lines();
        let line = lines.next().unwrap();
        assert_eq!(lines.next(), None, "{}", self.stderr);
        line.strip_prefix("error: ").unwrap()
    }
}

fn start(identity: &Path, args: &[&str]) -> Child {
    program(args).arg("--identity").arg(identity).stdin(Stdio::piped()).spawn().unwrap()
}

fn feed(mut child: Child, bytes: &[u8]) -> Out {
    let mut stdin = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // One that fails early does not read all.
        scope.spawn(move || stdin.write_all(bytes));
        let out = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(out.stderr).unwrap();
        Out { code: out.status.code(), stdout: out.stdout, stderr }
    })
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at ^ at >> 8 ^ at >> 16) as u8).collect()
}

#[test]
fn what_is_sealed_opens_and_names_its_sender() {
    let two = Two::new("sealed-round");
    for len in [0, 5, 65_536, 200_000] {
        let body = bytes(len);
        let message = two.seal(&[], &body);
        assert_eq!(message.len(), 161 + len + 20 * len.div_ceil(65_536).max(1));
        let out = two.open(&[], &message);
        assert!(out.code == Some(0) && out.stdout == body, "{len}: {}", out.stderr);
        let start = format!("from {}, 20", two.peers[0]);
        assert!(
            out.stderr.starts_with(&start) && out.stderr.contains("Z, not signed, message "),
            "{}",
            out.stderr
        );
        let signed = two.open(&["--from", &two.peers[0]], &two.seal(&["--sign"], &body));
        assert!(signed.code == Some(0) && signed.stdout == body, "{len}: {}", signed.stderr);
        assert!(signed.stderr.contains("Z, signed, message "), "{}", signed.stderr);
        assert_eq!(two.open(&["-q"], &message).stderr, "");
    }
}

#[test]
fn with_json_stdout_is_the_body_and_stderr_lines_of_json() {
    let two = Two::new("sealed-json");
    let sealed = two.run(0, &["seal", "--json", "--sign", "--to", &two.peers[1]], b"hello");
    let event: Value = serde_json::from_str(&sealed.stderr).unwrap();
    assert_eq!((&event["event"], &event["from"]), (&"sealed".into(), &two.peers[0].clone().into()));
    assert_eq!((&event["to"], &event["bytes"]), (&two.peers[1].clone().into(), &5.into()));
    let out = two.open(&["--json", "-v"], &sealed.stdout);
    assert_eq!(out.stdout, b"hello");
    let opened: Value = serde_json::from_str(&out.stderr).unwrap();
    assert_eq!((&opened["event"], &opened["from"]), (&"opened".into(), &two.peers[0].clone().into()));
    assert_eq!((&opened["signed"], &opened["bytes"]), (&true.into(), &5.into()));
    assert_eq!((&opened["id"], &opened["time"]), (&event["id"], &event["time"]));
    assert_eq!(opened["id"].as_str().unwrap().len(), 32);
    assert!(opened["time"].as_u64().unwrap() > 1_764_547_200_000);
    let again: Value = serde_json::from_str(&two.open(&["--json"], &two.seal(&[], b"")).stderr).unwrap();
    assert_ne!(again["id"], opened["id"]);

    let failed = two.open(&["--json"], b"garbage");
    assert_eq!((failed.code, failed.stdout.len()), (Some(1), 0));
    let error: Value = serde_json::from_str(&failed.stderr).unwrap();
    assert_eq!(error["event"], "error");
    assert!(error["message"].as_str().unwrap().contains("no sealed message"), "{error}");
}

#[test]
fn what_does_not_open_is_an_error_and_only_what_was_verified_is_written() {
    let two = Two::new("sealed-bad");
    let body = bytes(200_000);
    let message = two.seal(&["--sign"], &body);
    let nothing = "nothing of it was written; ";
    for garbage in [&b""[..], b"hello", &bytes(1000), b"WRAITHT\x01"] {
        let out = two.open(&[], garbage);
        let expected =
            "it is no sealed message; nothing of it was written; give what `wraith-cli seal` wrote";
        assert_eq!(out.error(b""), format!("cannot open the message: {expected}"));
    }
    let mut newer = message.clone();
    newer[7] = 2;
    assert!(two.open(&[], &newer).error(b"").contains("a newer wraith-cli"));
    // The sender itself, and an altered head.
    let out = two.run(0, &["open"], &message);
    assert!(out.error(b"").contains("another identity, or it was altered; nothing of it was written"));
    let mut bad = message.clone();
    bad[160] ^= 1;
    assert!(two.open(&[], &bad).error(b"").contains(nothing));
    // An altered segment, and every kind of end that is too early.
    let segment = 4 + 65_536 + 16;
    let mut bad = message.clone();
    bad[161 + 2 * segment + 9] ^= 1;
    let out = two.open(&[], &bad);
    let written = "a part of it was altered; the 131072 bytes that were written are its beginning";
    assert!(out.error(&body[..131_072]).contains(written), "{}", out.stderr);
    for (len, whole) in [
        (8, 0),
        (160, 0),
        (161, 0),
        (164, 0),
        (161 + segment - 1, 0),
        (161 + segment, 1),
        (message.len() - 1, 3),
    ] {
        let out = two.open(&[], &message[..len]);
        assert!(out.error(&body[..whole * 65_536]).contains("it ends before its last part; "), "{len}");
    }
    let out = two.open(&[], &[&message[..], &message].concat());
    assert!(out.error(&body[..3 * 65_536]).contains("something behind its end; "), "{}", out.stderr);
}

#[test]
fn a_message_from_somebody_else_than_expected_is_not_written() {
    let two = Two::new("sealed-from");
    let out = two.open(&["--from", &two.peers[1]], &two.seal(&[], b"hello"));
    let [one, other] = &two.peers;
    let expected = format!("the message is from {one}, not from {other}; nothing of it was written");
    assert_eq!(out.error(b""), expected);
}

#[test]
fn both_commands_want_an_identity_that_lasts() {
    let folder = Folder::new("sealed-none");
    let config = folder.path("config");
    let peer = wraith_proto::Identity::from_seed([1; 32]).peer_id().to_string();
    for args in [&["seal", "--to", &peer][..], &["open"]] {
        let child = program(args).env("XDG_CONFIG_HOME", &config).stdin(Stdio::piped()).spawn().unwrap();
        let out = feed(child, b"hello");
        let path = config.join("wraith").join("identity");
        let expected =
            format!("there is no identity at {}: make one with `wraith-cli keygen`", path.display());
        assert_eq!(out.error(b""), expected);
    }
    let none = folder.path("none");
    let out = feed(start(&none, &["open"]), b"hello");
    assert!(out.error(b"").ends_with("make one with `wraith-cli keygen --output FILE`"), "{}", out.stderr);
    assert!(!none.exists());
    // To seal, it is made.
    let out = feed(start(&none, &["seal", "--to", &peer]), b"hello");
    assert_eq!((out.code, out.stdout.len()), (Some(0), 161 + 20 + 5), "{}", out.stderr);
    assert!(none.exists() && out.stderr.contains("keep it secret"), "{}", out.stderr);
    for args in [&["seal"][..], &["seal", "--to", "nobody"], &["open", "--from", "x"]] {
        assert_eq!(run(args).code, Some(2), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let two = Two::new("sealed-full");
    let message = two.seal(&[], b"hello");
    for (who, args, stdin) in
        [(0, vec!["seal", "--to", &two.peers[1]], &b"hello"[..]), (1, vec!["open"], &message)]
    {
        let mut command = program(&args);
        command.arg("--identity").arg(two.identity(who)).stdin(Stdio::piped());
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let out = feed(command.stdout(full).spawn().unwrap(), stdin);
        let error = out.error(b"");
        assert!(error.starts_with("cannot write to stdout: ") && error.contains("No space left"), "{error}");
        // A reader that has gone.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let out = feed(command.stdout(writer).spawn().unwrap(), stdin);
        assert!(out.error(b"").contains("cannot write to stdout: Broken pipe"), "{}", out.stderr);
    }
}

/// Most memory that a process had so far, in KiB.
#[cfg(target_os = "linux")]
fn peak(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// 64 MiB, or 1 GiB with `WRAITH_BUDGET=full`, through both commands.
#[cfg(target_os = "linux")]
#[test]
fn a_long_message_takes_no_more_memory_than_a_short_one() {
    let full = std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full");
    let blocks = if full { 1024 } else { 64 };
    let two = Two::new("sealed-memory");
    let mut seal = start(&two.identity(0), &["seal", "--sign", "--to", &two.peers[1]]);
    let mut open = program(["open", "--identity"]);
    open.arg(two.identity(1)).stdin(seal.stdout.take().unwrap());
    let mut open = open.spawn().unwrap();
    let block = bytes(1 << 20);
    let feeder = {
        let (block, mut stdin) = (block.clone(), seal.stdin.take().unwrap());
        thread::spawn(move || -> ChildStdin {
            (0..blocks).for_each(|_| stdin.write_all(&block).unwrap());
            stdin
        })
    };
    let mut body = open.stdout.take().unwrap();
    // The last segments wait for the end.
    const WAITING: usize = 2 * 65_536;
    let mut found = vec![0; block.len()];
    for _ in 1..blocks {
        body.read_exact(&mut found).unwrap();
        assert!(found == block);
    }
    body.read_exact(&mut found[WAITING..]).unwrap();
    assert!(found[WAITING..] == block[..block.len() - WAITING]);
    let stdin = feeder.join().unwrap();
    let peaks = [peak(&seal), peak(&open)];
    assert!(peaks.iter().all(|peak| (1..16 << 10).contains(peak)), "{peaks:?} KiB");
    drop(stdin);
    found.clear();
    body.read_to_end(&mut found).unwrap();
    assert!(found == block[block.len() - WAITING..]);
    assert!(seal.wait().unwrap().success());
    let out = open.wait_with_output().unwrap();
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success() && text.contains(&format!("{} bytes", (blocks as u64) << 20)), "{text}");
}
