//! Memory of keys, on whichever heap: what the process grows by.

use std::fs;
use std::hint::black_box;

use crate::libraries::LIBRARIES;
use crate::{MATERIAL, SUITES};

const KEYS: usize = 20_000;

/// Bytes of a page; larger ones would only make the result coarser.
const PAGE: usize = 4096;

pub(crate) fn print() {
    println!("\nMemory, bytes: a packet key, a header key, all four of a session");
    for suite in SUITES {
        for library in LIBRARIES {
            let key = grown_by(|| library.key(suite, &MATERIAL));
            let header_key = grown_by(|| library.header_key(suite, &[5; 32]));
            let (name, suite) = (library.name(), suite.name());
            println!("{suite:18} {name:10} {key:6} {header_key:6} {:6}", 2 * (key + header_key));
        }
    }
}

/// Bytes that the process grows by for each of many values.
fn grown_by<T>(mut make: impl FnMut() -> T) -> usize {
    let mut kept = Vec::with_capacity(KEYS);
    kept.push(make());
    let before = resident();
    kept.extend((1..KEYS).map(|_| make()));
    let after = resident();
    let list = black_box(&kept).capacity() * size_of::<T>();
    // Not given back, or the next ones would go to where these were.
    std::mem::forget(kept);
    (after.saturating_sub(before).saturating_sub(list) + KEYS / 2) / KEYS
}

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * PAGE
}
