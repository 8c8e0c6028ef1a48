//! Names of received files: the temporary one, the final one, and what to do if that is taken.

use std::path::{Path, PathBuf};

use wraith_transfer_proto::{Hash, MAX_NAME, NameError, check_name};

use super::hex;
use super::source::shown;
use crate::failure::{Failure, Result, failed};
use crate::output::escape;

/// What to do if there is a file of the name already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Existing {
    /// End with an error, before anything is fetched.
    Refuse,
    /// Replace it.
    Overwrite,
    /// Take another name.
    Rename,
}

/// Where a received file goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) name: String,
    pub(super) existing: Existing,
}

/// Names tried with `--rename`.
const TRIES: u32 = 10_000;

impl Place {
    /// Checks the name, the folder and what is there.
    pub(super) fn new(folder: &Path, name: &str, existing: Existing) -> Result<Self> {
        let name = check_name(name).map_err(|error| bad_name(name, error))?;
        let metadata = folder.metadata().map_err(|error| {
            failed(format!(
                "cannot use the folder {}: {error}; make it, or name another with --output",
                shown(folder)
            ))
        })?;
        if !metadata.is_dir() {
            return Err(failed(format!("{} is no folder: name one with --output", shown(folder))));
        }
        let place = Self { folder: folder.to_owned(), name: name.to_owned(), existing };
        let path = place.path(0);
        // Not followed: a link of that name is in the way, wherever it leads.
        match path.symlink_metadata() {
            Ok(_) if existing == Existing::Refuse => Err(taken(&path)),
            Ok(metadata) if existing == Existing::Overwrite && metadata.is_dir() => {
                Err(failed(format!("{} is a folder, which no file replaces: use --rename", shown(&path))))
            }
            _ => Ok(place),
        }
    }

    /// The final path; from the second try on with a number before the extension.
    pub(super) fn path(&self, number: u32) -> PathBuf {
        if number == 0 {
            self.folder.join(&self.name)
        } else {
            self.folder.join(numbered(&self.name, number))
        }
    }

    /// The final paths to try, in their order.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let last = if self.existing == Existing::Rename { TRIES } else { 0 };
        (0..=last).map(|number| self.path(number))
    }

    /// Where the bytes go until they are all there: hidden, in the same folder, and the same for each run.
    pub(super) fn temporary(&self, hash: &Hash) -> PathBuf {
        const AROUND: usize = ".".len() + ".01234567.wraith".len();
        let name = cut(&self.name, MAX_NAME - AROUND);
        self.folder.join(format!(".{name}.{}.wraith", &hex(hash)[..8]))
    }
}

/// The failure of a name that exists.
pub(super) fn taken(path: &Path) -> Failure {
    failed(format!("{} exists: use --overwrite, --rename or another --output", shown(path)))
}

fn bad_name(name: &str, error: NameError) -> Failure {
    failed(format!(
        "cannot create a file named '{}': {error}; use --stdout and name it yourself",
        escape(name)
    ))
}

/// `NAME (1).ext` for `NAME.ext`.
fn numbered(name: &str, number: u32) -> String {
    // A leading dot begins a name, not an extension; and an extension is short.
    let dot = name.rfind('.').filter(|dot| *dot > 0 && name.len() - dot <= 16);
    let (stem, extension) = name.split_at(dot.unwrap_or(name.len()));
    let number = format!(" ({number})");
    let stem = cut(stem, MAX_NAME - number.len() - extension.len());
    format!("{stem}{number}{extension}")
}

/// The longest beginning of `name` of at most `len` bytes.
fn cut(name: &str, len: usize) -> &str {
    &name[..name.floor_char_boundary(len)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, existing: Existing) -> Place {
        Place { folder: PathBuf::from("/d"), name: name.to_owned(), existing }
    }

    #[test]
    fn a_number_goes_before_the_extension_and_the_name_stays_short_enough() {
        for (name, second) in [
            ("a.txt", "a (1).txt"),
            ("a", "a (1)"),
            (".profile", ".profile (1)"),
            ("a.tar.gz", "a.tar (1).gz"),
            ("a.not an extension at all", "a.not an extension at all (1)"),
        ] {
            assert_eq!(numbered(name, 1), second);
        }
        let long = format!("{}.txt", "é".repeat(125));
        let second = numbered(&long, 12);
        assert!(second.len() <= MAX_NAME && second.ends_with("é (12).txt"));
        assert_eq!(check_name(&second), Ok(&*second));
    }

    #[test]
    fn only_with_rename_there_is_a_second_try() {
        assert_eq!(place("a", Existing::Refuse).paths().count(), 1);
        assert_eq!(place("a", Existing::Overwrite).paths().count(), 1);
        assert_eq!(place("a", Existing::Rename).paths().nth(2), Some(PathBuf::from("/d/a (2)")));
    }

    #[test]
    fn the_temporary_name_is_hidden_valid_and_told_apart_by_the_content() {
        let place = place(&"ü".repeat(127), Existing::Refuse);
        let path = place.temporary(&[0xab; 32]);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with('.') && name.ends_with(".abababab.wraith"));
        assert!(name.len() <= MAX_NAME && check_name(name).is_ok());
        assert_ne!(place.temporary(&[0; 32]), path);
    }

    #[test]
    fn a_name_that_is_taken_is_refused_before_anything_else() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), b"x").unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        let refusal = |name, existing| Place::new(folder.path(), name, existing).unwrap_err().to_string();
        assert!(refusal("file", Existing::Refuse).contains("exists: use --overwrite"));
        assert!(refusal("folder", Existing::Overwrite).contains("is a folder, which no file replaces"));
        assert!(refusal("../file", Existing::Rename).contains("path separator"));
        assert!(refusal("a\x1b[2J", Existing::Rename).contains("'a\\u{1b}[2J'"));
        for existing in [Existing::Overwrite, Existing::Rename] {
            assert!(Place::new(folder.path(), "file", existing).is_ok());
        }
        assert!(Place::new(&folder.path().join("none"), "a", Existing::Refuse).is_err());
        assert!(Place::new(&folder.path().join("file"), "a", Existing::Refuse).is_err());
    }
}
