//! Verified chunks to stdout, in order, on a thread that may wait for its reader.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};

use wraith_transfer_proto::ReadyChunk;

use super::sink::Wake;
use crate::failure::Result;
use crate::foreign::{Foreign, unwritten};

/// Chunks on their way to stdout.
#[derive(Debug)]
pub(super) struct StreamOut {
    to_writer: Sender<ReadyChunk>,
    from_writer: Receiver<io::Result<ReadyChunk>>,
    /// Came before their turn.
    early: BTreeMap<u64, ReadyChunk>,
    next: u64,
    /// Handed over and not given back.
    held: usize,
}

impl StreamOut {
    pub(super) fn new(wake: Wake) -> Self {
        let (to_writer, chunks) = mpsc::channel::<ReadyChunk>();
        let (done, from_writer) = mpsc::channel();
        std::thread::spawn(move || {
            let mut stdout = Foreign::stdout();
            for chunk in chunks {
                let written = stdout.write(chunk.data());
                let failed = written.is_err();
                // Nobody waits for it when the transfer has failed.
                let _ = done.send(written.map(|()| chunk));
                wake();
                if failed {
                    return;
                }
            }
        });
        Self { to_writer, from_writer, early: BTreeMap::new(), next: 0, held: 0 }
    }

    /// Takes a verified chunk.
    pub(super) fn write(&mut self, chunk: ReadyChunk) {
        self.early.insert(chunk.chunk(), chunk);
        while let Some(chunk) = self.early.remove(&self.next) {
            self.next += 1;
            self.held += 1;
            // A writer that has failed says so by itself.
            let _ = self.to_writer.send(chunk);
        }
    }

    /// A chunk that stdout has taken.
    pub(super) fn written(&mut self) -> Result<Option<ReadyChunk>> {
        match self.from_writer.try_recv() {
            Ok(Ok(chunk)) => {
                self.held -= 1;
                Ok(Some(chunk))
            }
            Ok(Err(error)) => Err(unwritten(&error)),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Ok(None),
        }
    }

    /// Whether stdout has something that it has not taken.
    pub(super) const fn is_busy(&self) -> bool {
        self.held > 0
    }
}
