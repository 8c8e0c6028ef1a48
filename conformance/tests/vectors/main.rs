//! The test vectors: both implementations keep to them, and they keep to the version of the protocol.

#![forbid(unsafe_code)]

mod core_endpoint;
mod core_parts;
mod core_sealed;
mod published;

use std::fs;
use std::path::Path;

use serde_json::Value;
use wraith_conformance::vectors::{File, files, lock_line};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors");

/// The vectors of a file.
fn vectors(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(Path::new(FOLDER).join(name)).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let vectors = file["vectors"].as_array().unwrap().clone();
    assert!(!vectors.is_empty(), "{name}");
    vectors
}

/// A number that stands as decimal text.
fn number(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The second implementation, asked again for what the files have.
#[test]
fn the_files_are_what_the_second_implementation_computes() {
    for File { name, text } in files() {
        let found = fs::read_to_string(Path::new(FOLDER).join(name)).unwrap();
        assert!(
            found == text,
            "{name}: `cargo run -p wraith-conformance --example vectors` makes another one"
        );
    }
}

/// A vector changes only with the version of the protocol: `LOCK` has a line for each version and file.
#[test]
fn the_lock_names_every_file_and_its_hash() {
    let lock = fs::read_to_string(Path::new(FOLDER).join("LOCK")).unwrap();
    let mut expected: Vec<String> = files().iter().map(lock_line).collect();
    expected.sort_unstable();
    let version = format!("{} ", wraith_proto::wire::VERSION);
    let present: Vec<&str> = lock.lines().filter(|line| line.starts_with(&version)).collect();
    assert_eq!(present, expected, "a vector may change only with a new version of the protocol");
    let mut names: Vec<String> = fs::read_dir(FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "LOCK")
        .collect();
    names.sort_unstable();
    let known: Vec<&str> = files().iter().map(|file| file.name).collect();
    assert_eq!(names, known, "files that nobody computes");
}
