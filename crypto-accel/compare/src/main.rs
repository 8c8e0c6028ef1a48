//! Compares the pure-Rust provider, ring and AWS-LC behind the same interface: time for packets, keys and X25519, and
//! memory of keys.

#![forbid(unsafe_code)]

mod libraries;
mod memory;
mod timing;

use std::hint::black_box;

use libraries::{LIBRARIES, Library};
use timing::{Task, nanoseconds};
use wraith_proto::crypto::{KeyMaterial, PacketKey, Suite, TAG_LEN};

const SUITES: [Suite; 2] = [Suite::Aes256Gcm, Suite::XChaCha20Poly1305];
const SIZES: [usize; 4] = [1200, 1472, 8192, 65_507];
const MATERIAL: KeyMaterial = KeyMaterial { key: [7; 32], prefix: [8; 16] };
const HEADER: [u8; 13] = [3; 13];

/// Frames behind a payload that is sealed from elsewhere, in bytes.
const FRAMES: usize = 24;

/// A source of which a task reads all before it reads anything again, in bytes. Each task has its own.
const FAR: usize = 64 << 20;

/// A transmit arena: packets go to where earlier ones were, in bytes.
const ARENA: usize = 1 << 16;

fn main() {
    packets();
    keys();
    memory::print();
}

fn packets() {
    let sources: &'static [u8] = (0..2 * LIBRARIES.len() * FAR).map(|at| at as u8).collect::<Vec<_>>().leak();
    let sources: Vec<_> = sources.chunks_exact(2 * FAR).collect();
    println!(
        "Packets, ns: in place, with the payload elsewhere, in the cache or far away, and copied from there first"
    );
    print!("{:18} {:10} {:>6} {:>8} {:>8}", "", "", "bytes", "seal", "open");
    println!(" {:>8} {:>8} {:>8}", "from", "from far", "copied");
    for suite in SUITES {
        for size in SIZES {
            let tasks = LIBRARIES.iter().zip(&sources).flat_map(|(library, source)| {
                let key = || library.key(suite, &MATERIAL);
                let (lent, copied) = source.split_at(FAR);
                let lent = seal_from_far(key(), size, lent, false);
                let copied = seal_from_far(key(), size, copied, true);
                [seal(key(), size), open(key(), size), seal_from(key(), size), lent, copied]
            });
            for (library, times) in LIBRARIES.iter().zip(nanoseconds(tasks.collect()).chunks(5)) {
                print!("{:18} {:10} {size:6}", suite.name(), library.name());
                times.iter().for_each(|time| print!(" {time:8.0}"));
                println!();
            }
        }
    }
}

fn seal(key: Box<dyn PacketKey>, size: usize) -> Task {
    let (mut packet, mut number) = (vec![1; size], 0);
    Box::new(move || {
        number += 1;
        key.seal_in_place(number, &HEADER, &mut packet);
    })
}

/// Opening writes over the packet, so each turn copies a sealed one first: some 20 ns for 1,472 bytes.
fn open(key: Box<dyn PacketKey>, size: usize) -> Task {
    let mut sealed = vec![1; size];
    key.seal_in_place(1, &HEADER, &mut sealed);
    let mut packet = sealed.clone();
    Box::new(move || {
        packet.copy_from_slice(&sealed);
        key.open_in_place(1, &HEADER, &mut packet).expect("it is genuine");
    })
}

fn seal_from(key: Box<dyn PacketKey>, size: usize) -> Task {
    let (source, mut packet, mut number) = (vec![9; size - FRAMES - TAG_LEN], vec![1; size], 0);
    Box::new(move || {
        number += 1;
        key.seal_from(number, &HEADER, &source, &mut packet);
    })
}

fn seal_from_far(key: Box<dyn PacketKey>, size: usize, source: &'static [u8], copied: bool) -> Task {
    let len = size - FRAMES - TAG_LEN;
    let (mut arena, mut number) = (vec![1; ARENA], 0);
    let (mut payloads, mut places) = (source.chunks_exact(len).cycle(), (0..ARENA / size).cycle());
    Box::new(move || {
        number += 1;
        let place = places.next().expect("it has no end") * size;
        let payload = payloads.next().expect("it has no end");
        let packet = &mut arena[place..place + size];
        if copied {
            packet[..len].copy_from_slice(payload);
            key.seal_in_place(number, &HEADER, packet);
        } else {
            key.seal_from(number, &HEADER, payload, packet);
        }
    })
}

fn keys() {
    println!("\nKeys, ns");
    println!(
        "{:10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "AES key", "AES hdr", "AES mask", "ChaCha", "C. hdr", "C. mask", "X25519"
    );
    let tasks = LIBRARIES.iter().flat_map(|library| key_tasks(*library));
    for (library, times) in LIBRARIES.iter().zip(nanoseconds(tasks.collect()).chunks(9)) {
        print!("{:10}", library.name());
        for time in &times[..6] {
            print!(" {time:9.0}");
        }
        println!(" of fresh bytes {:.0}, prepared {:.0}, public key {:.0}", times[6], times[7], times[8]);
    }
}

fn key_tasks(library: Library) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    for suite in SUITES {
        tasks.push(Box::new(move || keep(library.key(suite, black_box(&MATERIAL)))));
        tasks.push(Box::new(move || keep(library.header_key(suite, black_box(&[5; 32])))));
        let (key, mut sample) = (library.header_key(suite, &[5; 32]), [6; 16]);
        tasks.push(Box::new(move || {
            let mask = key.mask(&sample);
            sample[..5].copy_from_slice(&mask);
        }));
    }
    let Some(provider) = library.x25519() else {
        // ring has agreement for secrets of its own making alone.
        tasks.push(Box::new(libraries::ring_generates_and_agrees));
        tasks.extend([(); 2].map(|()| -> Task { Box::new(|| {}) }));
        return tasks;
    };
    let public = provider.x25519_base(&[4; 32]);
    let key = provider.x25519_key(&[3; 32]);
    tasks.push(Box::new(move || keep(provider.x25519(black_box(&[3; 32]), &public))));
    tasks.push(Box::new(move || keep(key.agree(black_box(&public)))));
    tasks.push(Box::new(move || keep(provider.x25519_base(black_box(&[3; 32])))));
    tasks
}

/// Makes the compiler believe that a result is of use.
fn keep<T>(result: T) {
    black_box(result);
}
