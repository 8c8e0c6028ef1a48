//! Files through the ring, as a user of the crate sees it.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::thread;

use wraith_drivers_uring::file::{Reader, Writer, probe};

/// A file that goes away with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that has failed may not have made it.
        let _ = fs::remove_file(&self.0);
    }
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 3 % 251) as u8).collect()
}

#[test]
fn every_depth_reads_every_block_once_and_in_order() {
    assert_eq!(probe(), Ok(()));
    let (scratch, expected) = (Scratch::new("depths"), content(100_001));
    fs::write(&scratch.0, &expected).unwrap();
    let file = File::open(&scratch.0).unwrap();
    for depth in [0, 1, 2, 7, 200, u16::MAX] {
        let mut reader = Reader::new(&file, 100_001, 1000, depth).unwrap();
        let mut read = Vec::new();
        while read.len() < expected.len() {
            read.extend(reader.read(Vec::new(), read.len() as u64).unwrap());
        }
        assert!(read == expected, "depth {depth}");
    }
}

#[test]
fn every_depth_writes_every_buffer_and_gives_it_back() {
    let (scratch, expected) = (Scratch::new("writes"), content(100_000));
    for depth in [0, 1, 3, u16::MAX] {
        let mut writer = Writer::new(&File::create(&scratch.0).unwrap(), depth).unwrap();
        for (at, piece) in expected.chunks(1000).enumerate() {
            writer.write(piece.to_vec(), 1000, at as u64 * 1000).unwrap();
        }
        let mut back = Vec::new();
        while writer.is_busy() {
            writer.wait().unwrap();
            back.extend(std::iter::from_fn(|| writer.written().unwrap()));
        }
        back.sort();
        let pieces = expected.chunks(1000).enumerate().map(|(at, piece)| (at as u64 * 1000, piece.to_vec()));
        assert!(back.into_iter().eq(pieces), "depth {depth}");
        assert!(fs::read(&scratch.0).unwrap() == expected, "depth {depth}");
    }
}

#[test]
fn a_buffer_that_is_written_before_an_earlier_one_comes_back_first() {
    let (mut reader, pipe) = io::pipe().unwrap();
    let file = File::from(OwnedFd::from(pipe));
    let mut writer = Writer::new(&file, 2).unwrap();
    // More than a pipe holds, and nothing.
    writer.write(content(1_000_000), 1_000_000, 0).unwrap();
    writer.write(vec![7], 0, 5).unwrap();
    assert_eq!(writer.written().unwrap(), Some((5, vec![7])));
    assert_eq!(writer.written().unwrap(), None);
    assert!(writer.is_busy());
    let other = thread::spawn(move || {
        let mut read = vec![0; 1_000_000];
        reader.read_exact(&mut read).unwrap();
        read
    });
    let back = (0..100).find_map(|_| {
        writer.wait().unwrap();
        writer.written().unwrap()
    });
    assert!(back == Some((0, content(1_000_000))) && !writer.is_busy());
    assert!(other.join().unwrap() == content(1_000_000));
}
