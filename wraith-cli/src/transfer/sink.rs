//! Where verified chunks go.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use wraith_transfer_proto::ReadyChunk;

use super::store::{Store, Stored};
use super::stream_out::StreamOut;
use crate::failure::{Result, failed};

/// Ends the wait of the network's thread.
pub(super) type Wake = Arc<dyn Fn() + Send + Sync>;

/// A file or stdout.
pub(super) enum Sink {
    File(FileOut),
    Stdout(StreamOut),
    /// On its way to the disk, which may take long.
    Storing(Storing),
    /// Stored, or given up.
    Closed,
}

/// A file, and chunks on their way to it.
pub(super) struct FileOut {
    store: Store,
    /// Without their buffers.
    writing: Vec<ReadyChunk>,
}

/// A thread that waits for the disk.
pub(super) struct Storing {
    result: Receiver<Result<Stored>>,
    cancelled: Arc<AtomicBool>,
}

/// What became of the bytes.
#[derive(Debug)]
pub(super) struct Kept {
    /// `None` for stdout.
    pub(super) path: Option<PathBuf>,
    pub(super) fsync: Duration,
}

impl FileOut {
    fn write(&mut self, mut chunk: ReadyChunk) -> Result<()> {
        let len = chunk.data().len();
        self.store.write(chunk.take_buffer(), len, chunk.offset())?;
        self.writing.push(chunk);
        Ok(())
    }

    fn written(&mut self) -> Result<Option<ReadyChunk>> {
        let Some((offset, buffer)) = self.store.written()? else { return Ok(None) };
        let at = self.writing.iter().position(|chunk| chunk.offset() == offset);
        Ok(at.map(|at| {
            let mut chunk = self.writing.swap_remove(at);
            chunk.put_buffer(buffer);
            chunk
        }))
    }
}

impl Sink {
    /// Writes to a file.
    pub(super) const fn file(store: Store) -> Self {
        Self::File(FileOut { store, writing: Vec::new() })
    }

    /// The size is proven.
    pub(super) fn set_len(&self, len: u64) -> Result<()> {
        match self {
            Self::File(out) => out.store.set_len(len),
            _ => Ok(()),
        }
    }

    /// Takes a verified chunk, which comes out of [`Sink::written`].
    pub(super) fn write(&mut self, chunk: ReadyChunk) -> Result<()> {
        match self {
            Self::File(out) => out.write(chunk),
            Self::Stdout(out) => {
                out.write(chunk);
                Ok(())
            }
            // Nothing of it is to stay.
            Self::Storing(_) | Self::Closed => Ok(()),
        }
    }

    /// A chunk that is written.
    pub(super) fn written(&mut self) -> Result<Option<ReadyChunk>> {
        match self {
            Self::File(out) => out.written(),
            Self::Stdout(out) => out.written(),
            Self::Storing(_) | Self::Closed => Ok(None),
        }
    }

    /// Whether chunks wait for somebody outside.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Stdout(out) if out.is_busy()) || self.is_writing()
    }

    /// Whether a file is being written, of which nobody announces the end.
    pub(super) fn is_writing(&self) -> bool {
        matches!(self, Self::File(out) if out.store.is_busy())
    }

    /// Every chunk is written: begins to make that last.
    pub(super) fn finish(&mut self, wake: Wake) {
        let store = match std::mem::replace(self, Self::Closed) {
            Self::File(out) => out.store,
            other => {
                *self = other;
                return;
            }
        };
        let (report, result) = mpsc::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancelled);
        std::thread::spawn(move || {
            // Nobody listens when the process is about to end.
            let _ = report.send(store.finish(&flag));
            wake();
        });
        *self = Self::Storing(Storing { result, cancelled });
    }

    /// What became of it, once that is known.
    pub(super) fn finished(&mut self) -> Option<Result<Kept>> {
        let kept = match self {
            Self::Stdout(_) => Ok(Kept { path: None, fsync: Duration::ZERO }),
            Self::Storing(storing) => match storing.result.try_recv() {
                Ok(stored) => stored.map(|Stored { path, fsync }| Kept { path: Some(path), fsync }),
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => Err(failed("storing the file failed: retry")),
            },
            Self::File(_) | Self::Closed => return None,
        };
        *self = Self::Closed;
        Some(kept)
    }

    /// Nothing of it is to stay. Returns whether that is certain now; a file that is just being stored ends as it
    /// ends, which [`Sink::finished`] tells.
    pub(super) fn give_up(&mut self) -> bool {
        if let Self::Storing(storing) = self {
            storing.cancelled.store(true, Ordering::SeqCst);
            return false;
        }
        *self = Self::Closed;
        true
    }
}
