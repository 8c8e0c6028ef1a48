//! Writing behind.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;

use super::MAX_DEPTH;
use super::ring::{Ring, Way};
use crate::refusal::Refusal;

/// Writes buffers to a file while the caller goes on; each comes back when it is written.
pub struct Writer {
    ring: Ring,
    /// Not begun, in order.
    waiting: VecDeque<Job>,
    /// Begun and not given back, in order: their places, and where they are written to.
    running: VecDeque<(usize, u64)>,
}

struct Job {
    buffer: Vec<u8>,
    len: usize,
    offset: u64,
}

impl Writer {
    /// Writes to `file`, up to `depth` buffers (1 to 1,024) at the same time.
    ///
    /// # Errors
    /// What the system refused of `io_uring`, and why.
    pub fn new(file: &File, depth: u16) -> Result<Self, Refusal> {
        let depth = depth.clamp(1, MAX_DEPTH);
        let ring = Ring::new(file, depth)?;
        Ok(Self { ring, waiting: VecDeque::new(), running: VecDeque::with_capacity(depth.into()) })
    }

    /// Begins to write the first `len` bytes of `buffer`, at most all of it, at `offset`; or lets them wait for their turn.
    ///
    /// # Errors
    /// The ring cannot be used any more.
    pub fn write(&mut self, buffer: Vec<u8>, len: usize, offset: u64) -> io::Result<()> {
        self.waiting.push_back(Job { buffer, len, offset });
        self.go_on()
    }

    /// A buffer that was written, and the offset that was given with it; none if none is yet. One that was begun earlier
    /// may come later.
    ///
    /// # Errors
    /// A buffer could not be written, because the disk is full for instance: it is gone, and the file is not whole.
    pub fn written(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        self.go_on()?;
        for at in 0..self.running.len() {
            let (place, offset) = self.running[at];
            if let Some(result) = self.ring.take(place) {
                self.running.remove(at);
                return result.map(|buffer| Some((offset, buffer)));
            }
        }
        Ok(None)
    }

    /// Whether buffers were not given back.
    pub fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || !self.running.is_empty()
    }

    /// Waits until something is written, if anything is being written.
    ///
    /// # Errors
    /// The ring cannot be used any more.
    pub fn wait(&mut self) -> io::Result<()> {
        self.go_on()?;
        self.ring.wait()
    }

    /// Begins what there is a place for, and looks at what has ended.
    fn go_on(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty()
            && let Some(place) = self.ring.free()
            && let Some(Job { buffer, len, offset }) = self.waiting.pop_front()
        {
            self.ring.begin(place, Way::Out, buffer, len, offset);
            self.running.push_back((place, offset));
        }
        self.ring.submit()
    }
}

/// Without the bytes of the file.
impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}
