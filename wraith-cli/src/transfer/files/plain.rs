//! System calls that wait for the file.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;

use super::{BLOCK, Blocks, Pieces};

#[derive(Debug)]
pub(super) struct Reader {
    file: Arc<File>,
    len: u64,
}

impl Reader {
    pub(super) fn new(file: &Arc<File>, len: u64) -> Self {
        Self { file: Arc::clone(file), len }
    }
}

impl Blocks for Reader {
    fn read(&mut self, mut buffer: Vec<u8>, offset: u64) -> io::Result<Vec<u8>> {
        buffer.resize(self.len.saturating_sub(offset).min(BLOCK as u64) as usize, 0);
        read_exact_at(&self.file, &mut buffer, offset)?;
        Ok(buffer)
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    file: Arc<File>,
    written: VecDeque<(u64, Box<[u8]>)>,
}

impl Writer {
    pub(super) fn new(file: &Arc<File>) -> Self {
        Self { file: Arc::clone(file), written: VecDeque::new() }
    }
}

impl Pieces for Writer {
    fn write(&mut self, buffer: Box<[u8]>, len: usize, offset: u64) -> io::Result<()> {
        write_all_at(&self.file, &buffer[..len], offset)?;
        self.written.push_back((offset, buffer));
        Ok(())
    }

    fn written(&mut self) -> io::Result<Option<(u64, Box<[u8]>)>> {
        Ok(self.written.pop_front())
    }

    fn is_busy(&self) -> bool {
        false
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, buffer, offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer = &mut buffer[read..];
        offset += read as u64;
    }
    Ok(())
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}
