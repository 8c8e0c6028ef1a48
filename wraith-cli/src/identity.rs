//! Identity files, and the commands `keygen` and `id`.
//!
//! The file is one line of text: `wraith-identity-1`, the 32-byte seed as 64 lower-case hex digits, and the
//! `PeerId` that follows from it, so that a damaged file is noticed and never taken for another identity.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use wraith_proto::Identity;
use zeroize::Zeroizing;

use crate::failure::{Result, failed};
use crate::output::{Output, escape};

/// First word of the file; the number is the version of the format.
const MAGIC: &str = "wraith-identity-1";

/// More than a good file has, in bytes.
const MAX_FILE: u64 = 1024;

#[derive(Serialize)]
#[serde(tag = "event", rename = "identity")]
struct IdentityEvent<'a> {
    peer: String,
    path: Cow<'a, str>,
}

/// `keygen`: makes an identity file and prints its `PeerId`.
pub(crate) fn keygen(output: Output, path: Option<PathBuf>, force: bool) -> Result<()> {
    let path = path.map_or_else(default_path, Ok)?;
    let identity = fresh()?;
    write(&path, &identity, force)?;
    output.note(format_args!("wrote a new identity to {}: keep it secret", shown(&path)));
    print(output, &path, &identity);
    Ok(())
}

/// `id`: prints the `PeerId` of an identity file.
pub(crate) fn id(output: Output, path: Option<PathBuf>) -> Result<()> {
    let identity = lasting(output, path.as_deref())?;
    let path = path.map_or_else(default_path, Ok)?;
    print(output, &path, &identity);
    Ok(())
}

/// The identity in `path`, made now if there is none; without a path, the one in the configuration folder.
pub(crate) fn lasting(output: Output, path: Option<&Path>) -> Result<Identity> {
    path.map_or_else(|| existing(None), |path| load_or_create(output, path))
}

/// The identity in `path`, or in the configuration folder.
pub(crate) fn existing(path: Option<&Path>) -> Result<Identity> {
    let (path, option) = match path {
        Some(path) => (Cow::Borrowed(path), " --output FILE"),
        None => (Cow::Owned(default_path()?), ""),
    };
    read(&path)?.ok_or_else(|| {
        failed(format!("there is no identity at {}: make one with `wraith-cli keygen{option}`", shown(&path)))
    })
}

/// The identity in `path`, made now if there is none; without a path, a fresh one for this run.
pub(crate) fn for_run(output: Output, path: Option<&Path>) -> Result<Identity> {
    match path {
        Some(path) => load_or_create(output, path),
        None => fresh(),
    }
}

/// 32 bytes of the operating system's randomness.
pub(crate) fn random_seed() -> Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| {
        failed(format!("the system gives no random bytes: {error}; nothing can be done safely"))
    })?;
    Ok(seed)
}

fn fresh() -> Result<Identity> {
    let seed = Zeroizing::new(random_seed()?);
    Ok(Identity::from_seed(*seed))
}

fn load_or_create(output: Output, path: &Path) -> Result<Identity> {
    if let Some(identity) = read(path)? {
        return Ok(identity);
    }
    let identity = fresh()?;
    write(path, &identity, false)?;
    output.note(format_args!("wrote a new identity to {}: keep it secret", shown(path)));
    Ok(identity)
}

fn print(output: Output, path: &Path, identity: &Identity) {
    let peer = identity.peer_id().to_string();
    output.result(&IdentityEvent { peer: peer.clone(), path: path.to_string_lossy() }, &peer);
}

/// `$XDG_CONFIG_HOME/wraith/identity`, or `~/.config/wraith/identity`.
fn default_path() -> Result<PathBuf> {
    // The XDG base directory specification ignores relative paths.
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
    let config = config.ok_or_else(|| failed("there is no home folder: name a file with --identity"))?;
    Ok(config.join("wraith").join("identity"))
}

/// The identity in `path`; `None` if there is no such file.
fn read(path: &Path) -> Result<Option<Identity>> {
    let fail = |error: io::Error| {
        failed(format!("cannot read the identity {}: {error}; name a file that you may read", shown(path)))
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    check_mode(path, &file.metadata().map_err(fail)?)?;
    let mut text = Zeroizing::new(Vec::with_capacity(MAX_FILE as usize));
    file.take(MAX_FILE).read_to_end(&mut text).map_err(fail)?;
    let identity = std::str::from_utf8(&text).ok().and_then(parse).ok_or_else(|| {
        failed(format!(
            "{} is not an identity, or it is damaged: restore it from a copy, or make a new one with \
             `wraith-cli keygen --force --output FILE`",
            shown(path)
        ))
    })?;
    Ok(Some(identity))
}

fn parse(text: &str) -> Option<Identity> {
    let mut words = text.split_ascii_whitespace();
    let (magic, seed, peer) = (words.next()?, words.next()?.as_bytes(), words.next()?);
    if magic != MAGIC || seed.len() != 64 || words.next().is_some() {
        return None;
    }
    let mut bytes = Zeroizing::new([0; 32]);
    for (byte, digits) in bytes.iter_mut().zip(seed.chunks_exact(2)) {
        *byte = hex_digit(digits[0])? << 4 | hex_digit(digits[1])?;
    }
    let identity = Identity::from_seed(*bytes);
    (peer.parse() == Ok(identity.peer_id())).then_some(identity)
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// Writes `identity` to `path`; only with `force` in the place of another file, which stays until then.
fn write(path: &Path, identity: &Identity, force: bool) -> Result<()> {
    let fail = |error: io::Error| {
        failed(format!(
            "cannot write the identity {}: {error}; name a file in a folder of yours",
            shown(path)
        ))
    };
    let mut line = Zeroizing::new(String::with_capacity(MAX_FILE as usize));
    let _ = write!(line, "{MAGIC} ");
    for byte in identity.seed() {
        let _ = write!(line, "{byte:02x}");
    }
    let _ = writeln!(line, " {}", identity.peer_id());

    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_private_folder(folder).map_err(fail)?;
    }
    if !force {
        return create_private(path, line.as_bytes()).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => failed(format!(
                "{} exists: name another file with --output, or replace it for ever with --force",
                shown(path)
            )),
            _ => fail(error),
        });
    }
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(new);
    create_private(&new, line.as_bytes()).map_err(fail)?;
    fs::rename(&new, path).map_err(|error| {
        let _ = fs::remove_file(&new);
        fail(error)
    })
}

/// Creates a file that nobody else can read at any moment, and writes it to the disk.
fn create_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(content).and_then(|()| file.sync_all()).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// A secret that others can read is none.
#[cfg(unix)]
fn check_mode(path: &Path, metadata: &fs::Metadata) -> Result<()> {
    let mode = std::os::unix::fs::MetadataExt::mode(metadata) & 0o777;
    if metadata.is_file() && mode & 0o077 != 0 {
        let path = shown(path);
        return Err(failed(format!(
            "others may read the identity {path} (mode {mode:03o}): make a new one, or run `chmod 600 {path}` if \
             nobody has"
        )));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &fs::Metadata) -> Result<()> {
    Ok(())
}

fn shown(path: &Path) -> String {
    escape(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seed: &str, peer: &str) -> String {
        format!("{MAGIC} {seed} {peer}\n")
    }

    #[test]
    fn an_identity_line_is_read_only_if_every_part_fits() {
        let peer = Identity::from_seed([0xab; 32]).peer_id().to_string();
        let seed = "ab".repeat(32);
        let good = line(&seed, &peer);
        assert_eq!(parse(&good).unwrap().seed(), &[0xab; 32]);
        let other = Identity::from_seed([1; 32]).peer_id().to_string();
        for bad in [
            String::new(),
            seed.clone(),
            line(&seed.replacen('a', "b", 1), &peer),
            line(&seed.to_uppercase(), &peer),
            line(&seed[2..], &peer),
            line(&seed, &other),
            good.replacen('1', "2", 1),
            format!("{} more", good.trim()),
        ] {
            assert!(parse(&bad).is_none(), "{bad}");
        }
    }
}
