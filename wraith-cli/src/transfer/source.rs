//! A file on its way out: read in blocks, and watched for changes since it was hashed.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use wraith_transfer_proto::{Tree, TreeBuilder};

use super::files::{self, Blocks, Files};
use super::progress::Progress;
use crate::failure::{Failure, Result, failed};
use crate::output::escape;

/// Bytes of a block.
const BLOCK: u64 = files::BLOCK as u64;

/// Blocks kept: two deliveries at a time, and what was lost of them.
const BLOCKS: usize = 4;

/// A file that stays as it was, or is noticed not to.
#[derive(Debug)]
pub(super) struct FileSource {
    file: Arc<File>,
    reader: Box<dyn Blocks>,
    path: PathBuf,
    stamp: Stamp,
    blocks: [Block; BLOCKS],
    /// The block to be replaced next.
    oldest: usize,
}

/// What changes when a file is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { len: metadata.len(), modified: metadata.modified().ok() }
    }
}

#[derive(Debug, Default)]
struct Block {
    /// Where it begins in the file; a multiple of [`BLOCK`], or out of reach.
    offset: Option<u64>,
    bytes: Vec<u8>,
}

impl FileSource {
    /// Opens a regular file.
    pub(super) fn open(path: &Path, files: Files) -> Result<Self> {
        let fail = |error: io::Error| {
            failed(format!("cannot read {}: {error}; name a file that you may read", shown(path)))
        };
        // Before opening, which would wait for the other end of a pipe.
        check_kind(path, &path.metadata().map_err(fail)?)?;
        let file = Arc::new(File::open(path).map_err(fail)?);
        let metadata = file.metadata().map_err(fail)?;
        check_kind(path, &metadata)?;
        let stamp = Stamp::of(&metadata);
        let reader = files.reader(&file, stamp.len)?;
        Ok(Self { file, reader, path: path.to_owned(), stamp, blocks: Default::default(), oldest: 0 })
    }

    /// Hashes the whole file.
    pub(super) fn hash(&mut self, progress: &mut Progress) -> Result<Tree> {
        let mut builder = TreeBuilder::new();
        let mut buffer = Vec::new();
        while builder.size() < self.stamp.len {
            buffer = match self.reader.read(buffer, builder.size()) {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(self.changed()),
                Err(error) => return Err(self.cannot_read(&error)),
            };
            builder.push(&buffer).map_err(|error| self.cannot_read(&io::Error::other(error)))?;
            progress.set(builder.size(), Some(self.stamp.len));
        }
        // What says that it is empty may not be.
        let more = self.has_more().map_err(|error| self.cannot_read(&error))?;
        if more || self.has_changed() { Err(self.changed()) } else { Ok(builder.finish()) }
    }

    /// Copies bytes from `offset` on; fewer than asked for if the file is no more what was hashed.
    pub(super) fn read(&mut self, offset: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            let Some(block) = self.block(at) else { break };
            let Some(rest) = block.bytes.get((at % BLOCK) as usize..).filter(|rest| !rest.is_empty()) else {
                break;
            };
            let take = rest.len().min(buffer.len() - filled);
            buffer[filled..filled + take].copy_from_slice(&rest[..take]);
            filled += take;
        }
        filled
    }

    /// Lends `len` bytes from `offset` on, if they lie in one block.
    pub(super) fn lend(&mut self, offset: u64, len: usize) -> Option<&[u8]> {
        let at = (offset % BLOCK) as usize;
        if at + len > BLOCK as usize {
            return None;
        }
        self.block(offset)?.bytes.get(at..at + len)
    }

    /// The failure of a file that is no more what was hashed.
    pub(super) fn changed(&self) -> Failure {
        failed(format!(
            "{} changed while it was sent: run `wraith-cli send` again when nobody writes to it",
            shown(&self.path)
        ))
    }

    /// The block over `offset`, from memory or from the file.
    fn block(&mut self, offset: u64) -> Option<&Block> {
        let start = offset - offset % BLOCK;
        let at = match self.blocks.iter().position(|block| block.offset == Some(start)) {
            Some(at) => at,
            None => self.load(start)?,
        };
        Some(&self.blocks[at])
    }

    fn load(&mut self, start: u64) -> Option<usize> {
        let at = self.oldest;
        self.oldest = (at + 1) % BLOCKS;
        let block = &mut self.blocks[at];
        block.offset = None;
        block.bytes = self.reader.read(std::mem::take(&mut block.bytes), start).ok()?;
        // After reading: what was read before a change is still what was hashed.
        if self.has_changed() {
            return None;
        }
        self.blocks[at].offset = Some(start);
        Some(at)
    }

    /// Whether something stands behind the length of the file.
    fn has_more(&self) -> io::Result<bool> {
        let mut file = &*self.file;
        file.seek(io::SeekFrom::Start(self.stamp.len))?;
        Ok(file.take(1).read_to_end(&mut Vec::new())? > 0)
    }

    fn cannot_read(&self, error: &io::Error) -> Failure {
        failed(format!("cannot read {}: {error}; check the disk", shown(&self.path)))
    }

    fn has_changed(&self) -> bool {
        self.file.metadata().map(|metadata| Stamp::of(&metadata)).ok() != Some(self.stamp)
    }
}

fn check_kind(path: &Path, metadata: &Metadata) -> Result<()> {
    if metadata.is_dir() {
        return Err(failed(format!("{} is a folder: only one file can be sent; pack it first", shown(path))));
    }
    if !metadata.is_file() {
        return Err(failed(format!("{} is no regular file: copy what it gives to one first", shown(path))));
    }
    Ok(())
}

/// A path for people.
pub(super) fn shown(path: &Path) -> String {
    escape(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::output::Output;
    use crate::transfer::files::tests::ways;

    fn file_of(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 7 % 251) as u8).collect()
    }

    #[test]
    fn any_range_is_read_across_blocks_and_lent_within_one() {
        for files in ways() {
            let content = bytes(3 * BLOCK as usize + 5);
            let (_folder, path) = file_of(&content);
            let mut source = FileSource::open(&path, files).unwrap();
            let mut buffer = vec![0; content.len()];
            assert_eq!(source.read(0, &mut buffer), content.len());
            assert!(buffer == content);
            let mut part = [0; 20];
            assert_eq!(source.read(BLOCK - 10, &mut part), 20);
            assert_eq!(part, content[BLOCK as usize - 10..][..20]);
            assert_eq!(source.lend(BLOCK - 20, 20), Some(&content[BLOCK as usize - 20..BLOCK as usize]));
            assert_eq!(source.lend(BLOCK - 10, 20), None);
            assert_eq!(source.read(content.len() as u64 - 3, &mut part), 3, "the end");
            assert_eq!(source.lend(content.len() as u64 - 3, 4), None);
        }
    }

    #[test]
    fn the_whole_file_is_hashed() {
        for (files, len) in ways().into_iter().flat_map(|files| [0, 1, 3 << 20].map(|len| (files, len))) {
            let content = bytes(len);
            let (_folder, path) = file_of(&content);
            let mut progress = Progress::new(Output::SILENT, "hashing");
            let tree = FileSource::open(&path, files).unwrap().hash(&mut progress).unwrap();
            assert_eq!((tree.size(), tree.hash()), (len as u64, *blake3::hash(&content).as_bytes()));
        }
    }

    #[test]
    fn a_file_that_was_cut_or_grew_gives_no_more_bytes() {
        for (files, grow) in ways().into_iter().flat_map(|files| [false, true].map(|grow| (files, grow))) {
            let (_folder, path) = file_of(&bytes(2 * BLOCK as usize));
            let mut source = FileSource::open(&path, files).unwrap();
            let mut buffer = [0; 10];
            assert_eq!(source.read(0, &mut buffer), 10);
            let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
            if grow {
                file.write_all(b"more").unwrap();
            } else {
                file.set_len(BLOCK + 1).unwrap();
            }
            assert_eq!(source.read(BLOCK, &mut buffer), 0);
            let failure = source.hash(&mut Progress::new(Output::SILENT, "hashing")).unwrap_err().to_string();
            assert!(failure.contains("changed while it was sent"), "{failure}");
        }
    }

    #[test]
    fn what_is_no_file_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |path: &Path| FileSource::open(path, Files::Std).unwrap_err().to_string();
        assert!(refusal(folder.path()).contains("is a folder: only one file can be sent"));
        assert!(refusal(&folder.path().join("none")).contains("cannot read"));
        if cfg!(target_os = "linux") {
            let mut progress = Progress::new(Output::SILENT, "hashing");
            let mut version = FileSource::open(Path::new("/proc/version"), Files::Std).unwrap();
            assert_eq!(
                version.hash(&mut progress),
                Err(version.changed()),
                "it says that it is empty, and is not"
            );
        }
        if cfg!(unix) {
            assert!(refusal(Path::new("/dev/null")).contains("is no regular file"));
        }
    }
}
