//! How bytes get from files and to them: the seam between transfers and the system.

mod plain;
#[cfg(all(feature = "io-uring", target_os = "linux"))]
mod uring;

use std::fmt;
use std::fs::File;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use crate::failure::Result;
use crate::output::Output;

/// Bytes read at a time.
pub(super) const BLOCK: usize = 64 << 10;

/// What `--files` asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// The better one by measurement.
    Auto,
    /// System calls that wait.
    Std,
    /// A ring of the kernel that reads ahead and writes behind.
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    Uring,
}

/// What the help says about `--files`.
pub(crate) fn help() -> String {
    let ways =
        if cfg!(all(feature = "io-uring", target_os = "linux")) { "auto, std, uring" } else { "auto, std" };
    format!("How files are read and written: {ways}")
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Std => "std",
            #[cfg(all(feature = "io-uring", target_os = "linux"))]
            Self::Uring => "uring",
        })
    }
}

impl FromStr for Choice {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "std" => Ok(Self::Std),
            #[cfg(all(feature = "io-uring", target_os = "linux"))]
            "uring" => Ok(Self::Uring),
            #[cfg(not(all(feature = "io-uring", target_os = "linux")))]
            "uring" => Err("io_uring is not part of this build: use std"),
            _ => Err("the ways are auto, std and uring"),
        }
    }
}

/// A file that is read in blocks of [`BLOCK`] bytes.
pub(super) trait Blocks: fmt::Debug + Send {
    /// The block that begins at `offset`, a multiple of [`BLOCK`]: whole, or up to the length that was given. Takes a buffer
    /// and gives one, perhaps another.
    fn read(&mut self, buffer: Vec<u8>, offset: u64) -> io::Result<Vec<u8>>;
}

/// A file that is written in pieces.
pub(super) trait Pieces: fmt::Debug + Send {
    /// Writes the first `len` bytes of a buffer at `offset`, now or later; it comes out of [`Pieces::written`].
    fn write(&mut self, buffer: Box<[u8]>, len: usize, offset: u64) -> io::Result<()>;

    /// Where a buffer was written to, and the buffer. An error is that of any buffer.
    fn written(&mut self) -> io::Result<Option<(u64, Box<[u8]>)>>;

    /// Whether a buffer is being written.
    fn is_busy(&self) -> bool;
}

/// The way that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Files {
    Std,
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    Uring,
}

impl Choice {
    /// The way that is taken, said aloud.
    pub(super) fn take(self, output: Output) -> Files {
        let files = match self {
            Self::Auto | Self::Std => Files::Std,
            #[cfg(all(feature = "io-uring", target_os = "linux"))]
            Self::Uring => Files::Uring,
        };
        if output.verbose {
            let why = if self == Self::Auto { auto() } else { "asked for".to_owned() };
            output.detail(format_args!("files {}: {why}", files.name()));
        }
        files
    }
}

/// Why `auto` takes the plain way.
fn auto() -> String {
    #[cfg(all(feature = "io-uring", target_os = "linux"))]
    return crate::driver_pick::uring::passed_over(wraith_drivers_uring::file::probe());
    #[cfg(not(all(feature = "io-uring", target_os = "linux")))]
    return "the only way in this build".to_owned();
}

impl Files {
    /// Its name, for people and programs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Std => "std",
            #[cfg(all(feature = "io-uring", target_os = "linux"))]
            Self::Uring => "uring",
        }
    }

    /// Reads the first `len` bytes of `file`.
    #[cfg_attr(
        not(all(feature = "io-uring", target_os = "linux")),
        expect(clippy::unnecessary_wraps, reason = "only a ring is refused")
    )]
    pub(super) fn reader(self, file: &Arc<File>, len: u64) -> Result<Box<dyn Blocks>> {
        match self {
            Self::Std => Ok(Box::new(plain::Reader::new(file, len))),
            #[cfg(all(feature = "io-uring", target_os = "linux"))]
            Self::Uring => uring::reader(file, len),
        }
    }

    /// Writes to `file`.
    #[cfg_attr(
        not(all(feature = "io-uring", target_os = "linux")),
        expect(clippy::unnecessary_wraps, reason = "only a ring is refused")
    )]
    pub(super) fn writer(self, file: &Arc<File>) -> Result<Box<dyn Pieces>> {
        match self {
            Self::Std => Ok(Box::new(plain::Writer::new(file))),
            #[cfg(all(feature = "io-uring", target_os = "linux"))]
            Self::Uring => uring::writer(file),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
