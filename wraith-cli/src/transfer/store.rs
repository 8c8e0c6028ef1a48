//! A received file on disk: a hidden temporary file until every byte is verified and safe, then its name.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wraith_transfer_proto::Hash;

use super::files::{Files, Pieces};
use super::naming::{Existing, Place, taken};
use super::source::shown;
use crate::failure::{Failure, Result, failed};

/// A temporary file, which is removed unless it gets its name.
#[derive(Debug)]
pub(super) struct Store {
    file: Arc<File>,
    writer: Box<dyn Pieces>,
    temporary: PathBuf,
    place: Place,
    named: bool,
}

/// A file that has got its name.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) path: PathBuf,
    /// Time until the disk had it.
    pub(super) fsync: Duration,
}

impl Store {
    /// Makes the temporary file, or takes over what a run before left behind.
    pub(super) fn create(place: Place, hash: &Hash, files: Files) -> Result<Self> {
        let temporary = place.temporary(hash);
        let file = open_temporary(&temporary).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => failed(format!(
                "another `wraith-cli receive` writes {}: wait for it, or name another folder with --output",
                shown(&place.path(0))
            )),
            _ => cannot("create a file in", &place.folder, &error),
        })?;
        let file = Arc::new(file);
        match files.writer(&file) {
            Ok(writer) => Ok(Self { file, writer, temporary, place, named: false }),
            Err(failure) => {
                // Whatever cannot be removed now is taken over by the next run.
                let _ = fs::remove_file(&temporary);
                Err(failure)
            }
        }
    }

    /// Gives the file its length, which must be proven.
    pub(super) fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|error| self.cannot_write(&error))
    }

    /// Writes the first `len` bytes of a buffer, which are verified; it comes out of [`Store::written`].
    pub(super) fn write(&mut self, buffer: Box<[u8]>, len: usize, offset: u64) -> Result<()> {
        self.writer.write(buffer, len, offset).map_err(|error| self.cannot_write(&error))
    }

    /// Where a buffer was written to, and the buffer.
    pub(super) fn written(&mut self) -> Result<Option<(u64, Box<[u8]>)>> {
        self.writer.written().map_err(|error| self.cannot_write(&error))
    }

    /// Whether a buffer is being written.
    pub(super) fn is_busy(&self) -> bool {
        self.writer.is_busy()
    }

    /// Brings everything to the disk and gives the file its name, unless `cancelled` is set until then.
    pub(super) fn finish(mut self, cancelled: &AtomicBool) -> Result<Stored> {
        let start = Instant::now();
        self.file.sync_all().map_err(|error| self.cannot_write(&error))?;
        let synced = start.elapsed();
        if cancelled.load(Ordering::SeqCst) {
            return Err(Failure::Interrupted);
        }
        let path = self.give_name()?;
        let start = Instant::now();
        sync_folder(&self.place.folder).map_err(|error| cannot("write", &self.place.folder, &error))?;
        Ok(Stored { path, fsync: synced + start.elapsed() })
    }

    fn give_name(&mut self) -> Result<PathBuf> {
        for path in self.place.paths() {
            let renamed = match self.place.existing {
                Existing::Overwrite => fs::rename(&self.temporary, &path),
                Existing::Refuse | Existing::Rename => rename_to_new(&self.temporary, &path),
            };
            match renamed {
                Ok(()) => {
                    self.named = true;
                    return Ok(path);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot("name the file", &path, &error)),
            }
        }
        Err(taken(&self.place.path(0)))
    }

    fn cannot_write(&self, error: &io::Error) -> Failure {
        cannot("write", &self.place.path(0), error)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if !self.named {
            // Whatever cannot be removed now is taken over by the next run.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room, or name another folder with --output"
        }
        io::ErrorKind::FileTooLarge => {
            "the file system or a limit (ulimit -f) allows no larger file: name another folder with --output"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "name a folder that you may write to with --output"
        }
        _ => "check the disk, or name another folder with --output",
    };
    failed(format!("cannot {what} {}: {error}; {remedy}", shown(path)))
}

/// A temporary file of this name for this process alone. `WouldBlock` says that another one has it.
fn open_temporary(path: &Path) -> io::Result<File> {
    match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
        Ok(file) => {
            lock(&file)?;
            return Ok(file);
        }
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    // Only a file that a run before left here: no link, nothing that blocks.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        (nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK).bits(),
    );
    let file = options.open(path)?;
    if !is_plain(&file.metadata()?) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} is in the way", shown(path))));
    }
    lock(&file)?;
    // Who had it may just have given it its name: then it is not the temporary file any more.
    if !is_at(&file, path) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    file.set_len(0)?;
    Ok(file)
}

fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        // The error is that of a file system without locks: then there is nothing to ask.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// A regular file under one name.
#[cfg(unix)]
fn is_plain(metadata: &fs::Metadata) -> bool {
    metadata.is_file() && std::os::unix::fs::MetadataExt::nlink(metadata) == 1
}

/// Whether `path` still names `file`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (own, there) = (file.metadata(), path.symlink_metadata());
    matches!((own, there), (Ok(own), Ok(there)) if (own.dev(), own.ino()) == (there.dev(), there.ino()))
}

/// Whether `path` still names something, as far as this system tells.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(not(unix))]
fn is_plain(metadata: &fs::Metadata) -> bool {
    metadata.is_file()
}

/// Renames without ever replacing anything.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
        // The file system, or the kernel, does not know the flag.
        Err(Errno::EINVAL | Errno::ENOSYS) => link_to_new(from, to),
        result => result.map_err(io::Error::from),
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    link_to_new(from, to)
}

/// A second name fails if there is one, on every system; then the first one goes.
fn link_to_new(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// Makes a name as durable as what it names.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Windows writes names through.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
