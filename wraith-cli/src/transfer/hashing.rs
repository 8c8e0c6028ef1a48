//! Content ids of files.

use std::fs::File;
use std::io::{self, Read};

use wraith_transfer_proto::{CHUNK, Hash, Tree, TreeBuilder};

use super::progress::Progress;

/// Bytes read at a time.
const READ: usize = CHUNK;

/// Reads `file` from where it stands to its end, which should come after `len` bytes.
pub(super) fn tree(mut file: &File, len: u64, progress: &mut Progress) -> io::Result<Tree> {
    let mut builder = TreeBuilder::new();
    let mut buffer = vec![0; READ];
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => return Ok(builder.finish()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        builder.push(&buffer[..read]).map_err(io::Error::other)?;
        progress.set(builder.size(), Some(len));
    }
}

/// The plain BLAKE3 hash of the rest of `file`, by another way than [`tree`].
pub(super) fn plain(file: &File) -> io::Result<Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(*hasher.finalize().as_bytes())
}
