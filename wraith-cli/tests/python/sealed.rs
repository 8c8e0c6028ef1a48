//! Sealed messages from the core to Python and back.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;

use wraith_proto::Identity;
use wraith_proto::crypto::RustCrypto;
use wraith_proto::sealed::{DATAGRAM_OVERHEAD, Letter, Mailbox, MessageId, SIGNATURE_LEN};

use crate::support::{Folder, program};
use crate::{CLIENT, python};

const SEED: [u8; 32] = [0xa1; 32];
const PYTHON_SEED: [u8; 32] = [0xb2; 32];
const TIME: u64 = 1_764_547_200_000;

/// The Python of one identity.
struct Other {
    python: std::ffi::OsString,
    identity: PathBuf,
    folder: Folder,
}

impl Other {
    fn new(name: &str) -> Option<Self> {
        let python = python()?;
        let folder = Folder::new(name);
        let identity = identity_file(&folder, PYTHON_SEED);
        Some(Self { python, identity, folder })
    }

    /// Runs `seal.py` with this input.
    fn run(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = Command::new(&self.python);
        command.arg("-B").arg(format!("{CLIENT}/seal.py")).args(args).arg("--identity").arg(&self.identity);
        fed(&mut command, input)
    }
}

/// An identity file.
fn identity_file(folder: &Folder, seed: [u8; 32]) -> PathBuf {
    let path = folder.path(&format!("identity-{}", seed[0]));
    let secret = format!("{:02x}", seed[0]).repeat(32);
    let peer = Identity::from_seed(seed).peer_id();
    fs::write(&path, format!("wraith-identity-1 {secret} {peer}\n")).unwrap();
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    path
}

/// Runs a program with this input.
fn fed(command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // It may stop reading what is no message.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn mailbox() -> Mailbox {
    Mailbox::new(Identity::from_seed(SEED), &RustCrypto, 4)
}

fn letter(sign: bool) -> Letter {
    Letter { to: Identity::from_seed(PYTHON_SEED).peer_id(), id: MessageId([7; 16]), time: TIME, sign }
}

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

fn flags<'a>(sign: bool, datagram: bool) -> Vec<&'a str> {
    let flag = |wanted: bool, name: &'a str| wanted.then_some(name);
    [flag(sign, "--sign"), flag(datagram, "--datagram")].into_iter().flatten().collect()
}

/// `PROTO §12.2, §12.3, §12.5, §12.7, §12.8, §12.9`
#[test]
fn python_opens_what_the_core_sealed() {
    let Some(other) = Other::new("python-opens") else { return };
    let from = Identity::from_seed(SEED).peer_id();
    for (len, sign, datagram) in
        [(5, false, true), (900, true, true), (0, true, false), (200_000, true, false)]
    {
        let body = body(len);
        let mut sealed = Vec::new();
        if datagram {
            sealed.resize(len + DATAGRAM_OVERHEAD + if sign { SIGNATURE_LEN } else { 0 }, 0);
            mailbox().seal_datagram(&letter(sign), &[9; 32], &body, &mut sealed).unwrap();
        } else {
            mailbox().seal(&letter(sign), &[9; 32], &body, &mut sealed).unwrap();
        }
        let args = [vec!["open"], flags(false, datagram)].concat();
        let output = other.run(&args, &sealed);
        let said = String::from_utf8(output.stderr).unwrap();
        let id = "07".repeat(16);
        assert_eq!(said.trim(), format!("{from} {id} {TIME} {}", u8::from(sign)));
        assert!(output.status.success() && output.stdout == body, "{len}");
        // In a message the tag of the last segment, in a datagram that of all.
        *sealed.last_mut().unwrap() ^= 1;
        let output = other.run(&args, &sealed);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(output.stdout, body[..if datagram { 0 } else { len / 65_536 * 65_536 }]);
    }
}

/// `PROTO §12.2, §12.3, §12.5, §12.7, §12.8, §12.9`
#[test]
fn the_core_opens_what_python_sealed() {
    let Some(other) = Other::new("python-seals") else { return };
    let (from, to) = (Identity::from_seed(PYTHON_SEED).peer_id(), Identity::from_seed(SEED).peer_id());
    for (len, sign, datagram) in
        [(5, true, true), (0, false, false), (65_536, false, false), (200_000, true, false)]
    {
        let body = body(len);
        let to = to.to_string();
        let args = [vec!["seal", "--to", &to], flags(sign, datagram)].concat();
        let output = other.run(&args, &body);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (mut sealed, mut opened) = (output.stdout, Vec::new());
        let envelope = if datagram {
            let (envelope, body) = mailbox()
                .open_datagram(&mut sealed)
                .map(|(envelope, body)| (envelope, body.to_vec()))
                .unwrap();
            opened = body;
            envelope
        } else {
            mailbox().open(&sealed, &mut opened).unwrap()
        };
        assert_eq!((envelope.from, envelope.signed), (from, sign));
        assert!(envelope.time > TIME, "{}", envelope.time);
        assert_eq!(opened, body);
    }
}

#[test]
fn python_and_the_tool_open_what_the_other_sealed() {
    let Some(other) = Other::new("python-tool") else { return };
    let mine = identity_file(&other.folder, SEED);
    let tool = |args: &[&str], input: &[u8]| fed(program(args).arg("--identity").arg(&mine), input);
    let [me, python] = [SEED, PYTHON_SEED].map(|seed| Identity::from_seed(seed).peer_id().to_string());
    let body = body(100_000);
    let sealed = tool(&["seal", "--to", &python, "--sign"], &body);
    let opened = other.run(&["open"], &sealed.stdout);
    assert!(opened.status.success() && opened.stdout == body, "{}", String::from_utf8_lossy(&opened.stderr));
    assert!(opened.stderr.starts_with(me.as_bytes()));
    let sealed = other.run(&["seal", "--to", &me, "--sign"], &body);
    let opened = tool(&["open", "--from", &python], &sealed.stdout);
    assert!(opened.status.success() && opened.stdout == body, "{}", String::from_utf8_lossy(&opened.stderr));
}
