//! `--qlog` and `--keylog`: what the sessions of this program do, and their secrets, as files. Without the feature
//! `trace`, `untraced.rs` stands in its place.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use wraith_drivers::trace::{KeyLog, Qlog, Tee};
use wraith_proto::Endpoint;
use wraith_proto::trace::Tracer;

use crate::args::Command;
use crate::failure::{Result, failed};
use crate::output::escape;

/// Options of every command that opens sessions.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Write a trace of the sessions, in qlog
    #[arg(long, global = true, display_order = 108, value_name = "FILE")]
    qlog: Option<PathBuf>,
    /// Write the secrets of the sessions: whoever has the file can read them
    #[arg(long, global = true, display_order = 109, value_name = "FILE")]
    keylog: Option<PathBuf>,
}

thread_local! {
    /// Where the endpoints that this thread makes are traced to. The receiving end of `bench` has a thread of its own
    /// and is not traced: two ends of one session in one file could not be told apart.
    static FILES: RefCell<Files> = RefCell::default();
}

#[derive(Default)]
struct Files {
    qlog: Option<Log>,
    /// The qlog file has its header.
    begun: bool,
    key_log: Option<Log>,
}

impl Options {
    /// Opens the files that were asked for, and warns of what they hold.
    pub(crate) fn open(&self, command: &Command) -> Result<()> {
        if command.has_no_session() {
            return Ok(());
        }
        if let (Some(trace), Some(key_log)) = (&self.qlog, &self.keylog)
            && trace == key_log
        {
            let name = escape(&trace.display().to_string());
            return Err(failed(format!("trace and key log cannot both be {name}: name two files")));
        }
        let mut files = Files::default();
        if let Some(path) = &self.qlog {
            files.qlog = Some(Log::open(path, "trace", OpenOptions::new().truncate(true))?);
        }
        if let Some(path) = &self.keylog {
            let log = Log::open(path, "key log", OpenOptions::new().append(true))?;
            check_mode(path, &log.file)?;
            warn(format_args!(
                "whoever has {} can read the sessions of this run: delete it when done",
                log.name
            ));
            files.key_log = Some(log);
        }
        FILES.set(files);
        Ok(())
    }

    /// What to give another process of this program that sends, or receives: both write their own trace, and one
    /// the secrets, since the other knows the same ones.
    pub(crate) fn forwarded(&self, sends: bool) -> Vec<OsString> {
        let qlog = self.qlog.as_ref().map(|path| if sends { path.clone() } else { of_receiver(path) });
        let keylog = self.keylog.clone().filter(|_| sends);
        let options = [("--qlog", qlog), ("--keylog", keylog)];
        let given =
            options.into_iter().filter_map(|(name, path)| Some([name.into(), path?.into_os_string()]));
        given.flatten().collect()
    }
}

/// Traces what `endpoint` does to the files that were asked for.
pub(crate) fn attach(endpoint: &mut Endpoint) {
    FILES.with_borrow_mut(|files| {
        let mut tracers: Vec<Box<dyn Tracer>> = Vec::new();
        if let Some(log) = &files.qlog {
            let out = BufWriter::new(log.clone());
            tracers.push(Box::new(if files.begun { Qlog::resumed(out) } else { Qlog::new(out) }));
            files.begun = true;
        }
        if let Some(log) = &files.key_log {
            tracers.push(Box::new(KeyLog::new(log.clone())));
        }
        if !tracers.is_empty() {
            endpoint.set_tracer(Box::new(Tee::new(tracers)));
        }
    });
}

/// A file that says once why it cannot be written any more: whoever writes stops then.
#[derive(Clone)]
struct Log {
    file: Arc<File>,
    name: Arc<str>,
    lost: bool,
}

impl Log {
    /// A file that nobody else can read.
    fn open(path: &Path, what: &str, options: &mut OpenOptions) -> Result<Self> {
        let name = escape(&path.display().to_string());
        options.write(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
        let file = options.open(path).map_err(|error| {
            failed(format!("cannot write the {what} {name}: {error}; name a file in a folder of yours"))
        })?;
        Ok(Self { file: Arc::new(file), name: name.into(), lost: false })
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.file).write(bytes).inspect_err(|error| {
            // A buffer tries again when it goes away.
            if !std::mem::replace(&mut self.lost, true) {
                warn(format_args!("cannot write {}: {error}; it ends here", self.name));
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `name.sqlog` as `name.receiver.sqlog`.
fn of_receiver(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(".receiver");
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Secrets that others can read are none.
#[cfg(unix)]
fn check_mode(path: &Path, file: &File) -> Result<()> {
    let shown = escape(&path.display().to_string());
    let metadata =
        file.metadata().map_err(|error| failed(format!("cannot look at the key log {shown}: {error}")))?;
    let mode = std::os::unix::fs::MetadataExt::mode(&metadata) & 0o777;
    if metadata.is_file() && mode & 0o077 != 0 {
        return Err(failed(format!(
            "others may read the key log {shown} (mode {mode:03o}): name another file, or run `chmod 600 {shown}`"
        )));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &File) -> Result<()> {
    Ok(())
}

/// Warns, even those who want no messages.
fn warn(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "warning: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_s_trace_keeps_the_ending_of_the_name() {
        for (name, receiver) in [
            ("a.sqlog", "a.receiver.sqlog"),
            ("/tmp/a.b.sqlog", "/tmp/a.b.receiver.sqlog"),
            ("x/trace", "x/trace.receiver"),
        ] {
            assert_eq!(of_receiver(Path::new(name)), Path::new(receiver));
        }
    }

    #[test]
    fn the_two_processes_of_a_demo_write_two_traces_and_one_key_log() {
        let options = Options { qlog: Some("a.sqlog".into()), keylog: Some("keys".into()) };
        assert_eq!(options.forwarded(true), ["--qlog", "a.sqlog", "--keylog", "keys"]);
        assert_eq!(options.forwarded(false), ["--qlog", "a.receiver.sqlog"]);
        assert!(Options { qlog: None, keylog: None }.forwarded(true).is_empty());
    }
}
