//! The seeds of a fuzz target, for the tests that replay them. They take this file by its path.

use std::fs;
use std::path::PathBuf;

/// Name and bytes of each seed of a target, in the order of the names.
pub(crate) fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

/// Where they are.
pub(crate) fn folder(target: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/seeds")).join(target)
}
