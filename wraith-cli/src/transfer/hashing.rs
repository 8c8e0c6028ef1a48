//! Content ids of files.

use std::fs::File;
use std::io;

use wraith_transfer_proto::Hash;

/// The plain BLAKE3 hash of the rest of `file`: not by the tree of a transfer.
pub(super) fn plain(file: &File) -> io::Result<Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(*hasher.finalize().as_bytes())
}
