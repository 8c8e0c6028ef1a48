//! `demo`: a file from one process of this machine to another, over a real socket.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use wraith_transfer_proto::{CHUNK, Hash};

use super::child::{Bell, End, News, Process};
use super::progress::Progress;
use super::report::Speed;
use super::source::shown;
use super::{files, hashing, hex};
use crate::args::{self, Common};
use crate::cipher;
use crate::device;
use crate::failure::{Failure, Result, failed};
use crate::identity;
use crate::output::{self, Output};
use crate::stop::Stop;

/// Name of the file that is sent.
const NAME: &str = "wraith-demo.bin";

/// How long a process may take to end when its work is done.
const EXIT: Duration = Duration::from_secs(10);

#[derive(Serialize)]
#[serde(tag = "event", rename = "done")]
struct Done<'a> {
    bytes: u64,
    seconds: f64,
    gbps: f64,
    hash: &'a str,
    driver: &'a str,
    verified: bool,
    path: Cow<'a, str>,
    fsync_seconds: f64,
    peak_rss_sender: Option<u64>,
    peak_rss_receiver: Option<u64>,
    pids: [u32; 2],
    source: Cow<'a, str>,
    suite: &'a str,
    crypto: &'a str,
    files: &'a str,
}

/// Makes a file, has it sent and received, and compares.
pub(crate) fn run(common: &Common, args: &args::Demo, stop: &Stop) -> Result<()> {
    let output = common.output();
    let ends = args.line.ends(common)?;
    let (sender, news) = mpsc::channel();
    stop.wakes(Bell(sender.clone()));
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let mut folder = Folder::make(&parent)?;
    let source = folder.path.join(NAME);
    write_random(output, &source, args.size, stop)?;
    let target = folder.path.join("received");
    fs::create_dir(&target).map_err(|error| cannot("make", &target, &error))?;
    let (files, packet_size) = (args.files, args.packet_size);
    let early = Vec::new();
    let mut demo = Demo { common, ends, files, packet_size, output, source, target, sender, news, early };
    let outcome = demo.transfer()?;
    let verified = compare(&outcome.hash, [&demo.source, &outcome.path], stop)?;
    if !verified {
        return Err(failed(
            "the received file is not the sent one: report this, with the output of `--json`",
        ));
    }
    report(output, &demo.source, &outcome);
    if args.keep {
        folder.keep = true;
        output.note(format_args!("kept {} and {}", shown(&demo.source), shown(&outcome.path)));
    }
    Ok(())
}

struct Demo<'a> {
    common: &'a Common,
    /// The hosts of the sender and the receiver, if they are not this machine.
    ends: Option<[device::End; 2]>,
    files: files::Choice,
    packet_size: Option<u16>,
    output: Output,
    source: PathBuf,
    target: PathBuf,
    sender: Sender<News>,
    news: Receiver<News>,
    /// Lines that came before they were waited for.
    early: Vec<(End, Value)>,
}

/// What the two processes said.
struct Outcome {
    bytes: u64,
    seconds: f64,
    gbps: f64,
    fsync_seconds: f64,
    hash: String,
    driver: String,
    suite: String,
    crypto: String,
    files: String,
    path: PathBuf,
    peaks: [Option<u64>; 2],
    pids: [u32; 2],
}

impl Demo<'_> {
    fn transfer(&mut self) -> Result<Outcome> {
        let bind = match (&self.ends, self.common.bind) {
            (Some([sender, _]), _) => sender.addr.to_string(),
            (None, Some(bind)) => bind.to_string(),
            (None, None) => "127.0.0.1:0".to_owned(),
        };
        let source = self.source.clone().into_os_string();
        let args = ["send".into(), "--bind".into(), bind.into(), source];
        let mut sender = self.start(End::Sender, args)?;
        let ticket = self.line(End::Sender, "ticket", Duration::MAX)?;
        let ticket = ticket["ticket"].as_str().unwrap_or_default();
        let target = self.target.clone().into_os_string();
        // Of two processes on one machine none comes back.
        let args =
            ["receive".into(), ticket.into(), "--output".into(), target, "--patience".into(), "0".into()];
        let mut receiver = self.start(End::Receiver, args)?;
        let done = self.line(End::Receiver, "done", Duration::MAX)?;
        // A sender that was not told serves on.
        let confirmed = self.line(End::Sender, "confirmed", EXIT)?;
        let pids = [sender.id(), receiver.id()];
        for process in [&mut sender, &mut receiver] {
            if !process.wait(EXIT).is_some_and(|status| status.success()) {
                return Err(failed("a process did not end well after the transfer: run the demo again"));
            }
        }
        let number = |name: &str| done[name].as_f64().unwrap_or(0.0);
        let text = |name: &str| done[name].as_str().unwrap_or_default().to_owned();
        Ok(Outcome {
            bytes: done["bytes"].as_u64().unwrap_or(0),
            seconds: number("seconds"),
            gbps: number("gbps"),
            fsync_seconds: number("fsync_seconds"),
            hash: text("hash"),
            driver: text("driver"),
            suite: text("suite"),
            crypto: text("crypto"),
            files: text("files"),
            path: self.target.join(NAME),
            peaks: [confirmed["peak_rss"].as_u64(), done["peak_rss"].as_u64()],
            pids,
        })
    }

    fn start<const N: usize>(&self, end: End, args: [OsString; N]) -> Result<Process> {
        let (driver, suite) = (self.common.driver.to_string(), self.common.suite.to_string());
        let common = ["--json", "--driver", &driver, "--suite", &suite].map(OsString::from);
        let host = match &self.ends {
            Some(ends) => ends[usize::from(end == End::Receiver)].host.clone(),
            None => self.common.device.host(),
        };
        let device = host.forwarded(self.common.driver);
        let trace = self.common.trace.forwarded(end == End::Sender);
        let files = ["--files".into(), self.files.to_string().into()];
        let size = self.packet_size.map(|size| format!("--packet-size={size}").into());
        let args = common.into_iter().chain(device).chain(trace).chain(args).chain(files).chain(size);
        Process::start(&host, end, args, self.sender.clone())
    }

    /// The next line of `end` about `event`; progress is shown meanwhile. Between two news there may be `limit`.
    fn line(&mut self, end: End, event: &str, limit: Duration) -> Result<Value> {
        let is_it = |from: End, line: &Value| from == end && line["event"] == event;
        if let Some(at) = self.early.iter().position(|(from, line)| is_it(*from, line)) {
            return Ok(self.early.swap_remove(at).1);
        }
        let mut progress = Progress::new(self.output, "transferring");
        while !output::stdout_is_lost() {
            match self.news.recv_timeout(limit) {
                Ok(News::Line(from, line)) => {
                    if is_it(from, &line) {
                        return Ok(line);
                    }
                    match line["event"].as_str().unwrap_or_default() {
                        "error" => return Err(failed(line["message"].as_str().unwrap_or_default())),
                        "progress" if from == End::Receiver => {
                            progress.set(line["bytes"].as_u64().unwrap_or(0), line["total"].as_u64());
                        }
                        "progress" => {}
                        _ => self.early.push((from, line)),
                    }
                }
                Ok(News::Silent(from)) if from == end => {
                    return Err(failed("a process ended without a word: run the demo again"));
                }
                Ok(News::Silent(_)) => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(failed("a process did not say how it ended: run the demo again"));
                }
                Ok(News::Interrupted) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Err(Failure::Interrupted)
    }
}

fn report(output: Output, source: &Path, outcome: &Outcome) {
    let Outcome {
        bytes,
        seconds,
        gbps,
        fsync_seconds,
        hash,
        driver,
        suite,
        crypto,
        files,
        path,
        peaks,
        pids,
    } = outcome;
    let [peak_rss_sender, peak_rss_receiver] = *peaks;
    let done = Done {
        bytes: *bytes,
        seconds: *seconds,
        gbps: *gbps,
        hash,
        driver,
        verified: true,
        path: path.to_string_lossy(),
        fsync_seconds: *fsync_seconds,
        peak_rss_sender,
        peak_rss_receiver,
        pids: *pids,
        source: source.to_string_lossy(),
        suite,
        crypto,
        files,
    };
    let speed = Speed { seconds: *seconds, fsync_seconds: *fsync_seconds, gbps: *gbps };
    output.result(
        &done,
        format_args!(
            "{}, driver {driver}, {}, verified: BLAKE3 {hash}",
            speed.text(*bytes),
            cipher::described(suite)
        ),
    );
}

/// Whether both files have the hash.
fn compare(hash: &str, files: [&Path; 2], stop: &Stop) -> Result<bool> {
    for path in files {
        if stop.is_wanted() {
            return Err(Failure::Interrupted);
        }
        let read = || -> io::Result<Hash> { hashing::plain(&File::open(path)?) };
        let found = read().map_err(|error| cannot("read", path, &error))?;
        if hex(&found) != hash {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes `size` bytes that nothing can compress.
fn write_random(output: Output, path: &Path, size: u64, stop: &Stop) -> Result<()> {
    let fail = |error: io::Error| cannot("write", path, &error);
    let mut file = File::create_new(path).map_err(fail)?;
    let mut bytes = blake3::Hasher::new_keyed(&identity::random_seed()?).finalize_xof();
    let mut buffer = vec![0; CHUNK];
    let mut progress = Progress::of_preparation(output, "making a file");
    let mut written = 0;
    while written < size {
        if stop.is_wanted() {
            return Err(Failure::Interrupted);
        }
        let piece = &mut buffer[..(size - written).min(CHUNK as u64) as usize];
        bytes.fill(piece);
        file.write_all(piece).map_err(fail)?;
        written += piece.len() as u64;
        progress.set(written, Some(size));
    }
    Ok(())
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    failed(format!("cannot {what} {}: {error}; name another folder with --dir", shown(path)))
}

/// A fresh folder that nobody else can look into, removed at the end.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    fn make(parent: &Path) -> Result<Self> {
        let mut suffix: Hash = identity::random_seed()?;
        suffix[8..].fill(0);
        let path = parent.join(format!("wraith-demo-{}", &hex(&suffix)[..16]));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(|error| cannot("make", &path, &error))?;
        Ok(Self { path, keep: false })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed lies in the system's temporary folder.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
