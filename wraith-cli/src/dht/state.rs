//! The file in which a node keeps its contacts from one run to the next.
//!
//! A line `wraith-dht-1`, a line `PEER@ADDR` for each contact, and a line `end N` with their number, so that a file that
//! was cut is noticed.

use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use wraith_dht_proto::{Dht, NodeRef};
use wraith_proto::PeerId;

use crate::address::Target;
use crate::failure::{Failure, Result, failed};
use crate::output::escape;

/// The first line; the number is the version of the format.
const MAGIC: &str = "wraith-dht-1";

/// Contacts in a file at most.
const MAX_CONTACTS: usize = 512;

/// Bytes of a file at most: so many of the longest lines, and what is around them.
const MAX_FILE: u64 = 64 << 10;

/// `$XDG_STATE_HOME/wraith/dht`, or `~/.local/state/wraith/dht`.
pub(crate) fn default_path() -> Option<PathBuf> {
    // The XDG base directory specification ignores relative paths.
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| std::env::home_dir().map(|home| home.join(".local").join("state")));
    Some(state?.join("wraith").join("dht"))
}

/// Where `path` leads to. A link stays one when the file is replaced, and two links to one file are one.
pub(crate) fn resolve(path: PathBuf) -> PathBuf {
    if path.is_symlink() { path.canonicalize().unwrap_or(path) } else { path }
}

/// The contacts in `path`; [`None`] if there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<Target>>> {
    let fail = |error: io::Error| {
        failed(format!(
            "cannot read the contacts {}: {error}; name a file that you may read with --state",
            shown(path)
        ))
    };
    // A pipe that nobody writes to would never be open.
    let is_file = match fs::metadata(path) {
        Ok(metadata) => metadata.is_file(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    if !is_file {
        return Err(fail(io::Error::other("it is no file")));
    }
    let file = File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(fail)?;
    let text = std::str::from_utf8(&bytes).ok().filter(|_| bytes.len() as u64 <= MAX_FILE);
    let contacts = text.and_then(parse).ok_or_else(|| damaged(path))?;
    Ok(Some(contacts))
}

/// Keeps `path` for one node as long as the value lives: two would write over each other, and have one identity at two
/// addresses if both are a user's own.
pub(crate) fn lock(path: &Path) -> Result<File> {
    let locked = make_folder(path)
        .and_then(|()| File::options().create(true).write(true).truncate(false).open(beside(path, ".lock")));
    let file = locked.map_err(|error| unwritable(path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(failed(format!(
            "another node keeps its contacts in {}: end it, or give this one an --identity and a --state of its own",
            shown(path)
        ))),
        Err(TryLockError::Error(error)) => Err(unwritable(path, &error)),
    }
}

/// Puts the contacts of `dht` into `path` in place of what is there, which stays until all of them are on the disk.
pub(crate) fn write(path: &Path, dht: &Dht) -> Result<()> {
    let text = text(dht.contacts());
    put(path, text.as_bytes()).map_err(|error| unwritable(path, &error))
}

fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    make_folder(path)?;
    let new = beside(path, ".new");
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&new, path)
    });
    if written.is_err() {
        // On a full disk it is in the way of others.
        let _ = fs::remove_file(&new);
    }
    written
}

fn make_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), fs::create_dir_all)
}

/// The file of this name with something behind it.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    failed(format!(
        "cannot write the contacts to {}: {error}; name a file in a folder of yours with --state",
        shown(path)
    ))
}

fn text(contacts: impl Iterator<Item = NodeRef>) -> String {
    let mut text = format!("{MAGIC}\n");
    let mut count = 0;
    for NodeRef { key, address } in contacts.take(MAX_CONTACTS) {
        // Who answered has a valid key.
        let Ok(id) = PeerId::from_bytes(key) else { continue };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", Target { id, addr: address });
        count += 1;
    }
    let _ = writeln!(text, "end {count}");
    text
}

fn parse(text: &str) -> Option<Vec<Target>> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    if lines.next()? != MAGIC {
        return None;
    }
    let end = lines.next_back()?.strip_prefix("end ")?.parse::<usize>().ok()?;
    let contacts = lines.map(|line| line.parse().ok()).collect::<Option<Vec<Target>>>()?;
    (contacts.len() == end && end <= MAX_CONTACTS).then_some(contacts)
}

fn damaged(path: &Path) -> Failure {
    let path = shown(path);
    failed(format!(
        "{path} is no list of contacts, or it is damaged: name another file with --state, or, if nothing else is in it, \
         remove it and join with --bootstrap PEER@ADDR"
    ))
}

pub(crate) fn shown(path: &Path) -> String {
    escape(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use wraith_proto::Identity;

    use super::*;

    fn contact(at: u16) -> NodeRef {
        let mut seed = [7; 32];
        seed[..2].copy_from_slice(&at.to_be_bytes());
        let address = if at.is_multiple_of(2) {
            SocketAddr::from(([192, 0, 2, 1], 1 + at))
        } else {
            SocketAddr::from(([0x2001, 0xdb8, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff], 60_000 + at))
        };
        NodeRef::new(&Identity::from_seed(seed).peer_id(), address)
    }

    #[test]
    fn contacts_are_read_as_they_were_written_and_the_most_of_them_fit() {
        let contacts: Vec<_> = (0..600).map(contact).collect();
        for count in [0, 1, 3, 512] {
            let read = parse(&text(contacts[..count].iter().copied())).unwrap();
            let read: Vec<_> = read.iter().map(|target| NodeRef::new(&target.id, target.addr)).collect();
            assert_eq!(read, contacts[..count]);
        }
        let most = text(contacts.iter().copied());
        assert_eq!(parse(&most).unwrap().len(), MAX_CONTACTS);
        let longest = MAGIC.len() + 1 + MAX_CONTACTS * (52 + 1 + 47 + 1) + "end 512\n".len();
        assert!(most.len() <= longest && longest as u64 <= MAX_FILE, "{}, {longest}", most.len());
    }

    #[test]
    fn a_file_that_was_cut_or_altered_is_refused() {
        let good = text((0..3).map(contact));
        for cut in 0..good.len() {
            assert!(parse(&good[..cut]).is_none(), "{cut}");
        }
        for bad in [
            good.replacen("dht-1", "dht-2", 1),
            good.replacen("end 3", "end 2", 1),
            good.replacen("192.0.2.1:1", "0.0.0.0:1", 1),
            good.replacen("192.0.2.1:1\n", "192.0.2.1:1\n\n", 1),
            format!("{good}\n"),
            format!("{good}end 3\n"),
        ] {
            assert!(parse(&bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_one_that_is_too_long_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new folder").join("dht");
        assert_eq!(read(&path), Ok(None));
        for count in [3, 1] {
            put(&path, text((0..count).map(contact)).as_bytes()).unwrap();
            assert_eq!(read(&path).unwrap().unwrap().len(), usize::from(count));
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        put(&path, "x".repeat(MAX_FILE as usize + 1).as_bytes()).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(
            message.starts_with(&*path.display().to_string()) && message.contains("damaged"),
            "{message}"
        );
    }
}
