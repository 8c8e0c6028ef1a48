//! A ring of the kernel: blocks are read before they are asked for, and pieces written while the transfer goes on.

use std::fs::File;
use std::io;

use wraith_drivers_uring::Refusal;
use wraith_drivers_uring::file::{Reader, Writer};

use super::{BLOCK, Blocks, Pieces};
use crate::failure::{Failure, Result, failed};

/// Blocks read ahead, and pieces written at the same time.
const AHEAD: u16 = 8;
const BEHIND: u16 = 8;

pub(super) fn reader(file: &File, len: u64) -> Result<Box<dyn Blocks>> {
    Ok(Box::new(Reader::new(file, len, BLOCK, AHEAD).map_err(failure)?))
}

pub(super) fn writer(file: &File) -> Result<Box<dyn Pieces>> {
    Ok(Box::new(Writer::new(file, BEHIND).map_err(failure)?))
}

fn failure(refusal: Refusal) -> Failure {
    failed(format!("cannot use io_uring for files: {refusal}; {}, or use --files std", refusal.remedy()))
}

impl Blocks for Reader {
    fn read(&mut self, buffer: Vec<u8>, offset: u64) -> io::Result<Vec<u8>> {
        Self::read(self, buffer, offset)
    }
}

impl Pieces for Writer {
    fn write(&mut self, buffer: Box<[u8]>, len: usize, offset: u64) -> io::Result<()> {
        Self::write(self, buffer.into_vec(), len, offset)
    }

    fn written(&mut self) -> io::Result<Option<(u64, Box<[u8]>)>> {
        Ok(Self::written(self)?.map(|(offset, buffer)| (offset, buffer.into_boxed_slice())))
    }

    fn is_busy(&self) -> bool {
        Self::is_busy(self)
    }
}
