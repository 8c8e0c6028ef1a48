//! A ring on pipes, which move as much as there is room for, and wait as long as somebody likes.

use std::io::{Read as _, Write as _};
use std::thread;

use super::*;

/// Waits for what becomes of a place.
fn end(ring: &mut Ring, place: usize) -> io::Result<Vec<u8>> {
    loop {
        if let Some(result) = ring.take(place) {
            return result;
        }
        ring.wait().unwrap();
    }
}

fn numbers(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

#[test]
fn what_arrives_in_pieces_is_read_whole_and_an_end_before_that_is_told() {
    let (reader, mut writer) = io::pipe().unwrap();
    let mut ring = Ring::new(&reader, 1).unwrap();
    ring.begin(0, Way::In, vec![0; 1000], 1000, 0);
    for piece in numbers(1000).chunks(90) {
        assert!(ring.take(0).is_none(), "it is not whole");
        writer.write_all(piece).unwrap();
        ring.submit().unwrap();
    }
    assert_eq!(end(&mut ring, 0).unwrap(), numbers(1000));
    ring.begin(0, Way::In, vec![0; 1000], 1000, 0);
    writer.write_all(b"not enough").unwrap();
    drop(writer);
    assert_eq!(end(&mut ring, 0).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn what_leaves_in_pieces_is_written_whole_and_up_to_its_length() {
    let (mut reader, writer) = io::pipe().unwrap();
    let mut ring = Ring::new(&writer, 1).unwrap();
    drop(writer);
    ring.begin(0, Way::Out, numbers(1_000_000), 900_000, 0);
    ring.submit().unwrap();
    let other = thread::spawn(move || {
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        read
    });
    assert_eq!(end(&mut ring, 0).unwrap(), numbers(1_000_000), "the buffer comes back");
    drop(ring);
    assert!(other.join().unwrap() == numbers(900_000));
}

#[test]
fn a_place_has_one_operation_at_a_time_and_its_result_is_told_once() {
    let (reader, mut writer) = io::pipe().unwrap();
    let mut ring = Ring::new(&reader, 2).unwrap();
    assert_eq!(ring.free(), Some(0));
    ring.begin(0, Way::In, vec![0; 2], 2, 0);
    ring.begin(0, Way::In, vec![0; 9], 9, 0);
    ring.begin(2, Way::In, vec![0; 9], 9, 0);
    assert_eq!((ring.free(), ring.running), (Some(1), 1));
    writer.write_all(b"ab").unwrap();
    assert_eq!(end(&mut ring, 0).unwrap(), b"ab");
    assert!(ring.take(0).is_none() && ring.take(2).is_none());
    ring.begin(0, Way::In, Vec::new(), 5, 0);
    assert_eq!((ring.take(0).unwrap().unwrap(), ring.running), (Vec::new(), 0), "there is nothing to move");
}

#[test]
fn the_end_of_a_ring_ends_what_runs_and_does_not_wait_for_it() {
    let (mut reader, mut writer) = io::pipe().unwrap();
    let mut ring = Ring::new(&reader, 3).unwrap();
    for place in 0..3 {
        ring.begin(place, Way::In, vec![0; 9], 9, 0);
    }
    ring.submit().unwrap();
    let began = Instant::now();
    assert!(ring.quiesce() && ring.running == 0);
    drop(ring);
    assert!(began.elapsed() < PATIENCE);
    // Nothing takes what arrives now.
    writer.write_all(&numbers(27)).unwrap();
    drop(writer);
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    assert_eq!(read, numbers(27));
}

#[test]
fn what_a_thread_has_begun_goes_on_when_it_is_gone() {
    let (reader, mut writer) = io::pipe().unwrap();
    let mut ring = thread::spawn(move || {
        let mut ring = Ring::new(&reader, 1).unwrap();
        ring.begin(0, Way::In, vec![0; 4], 4, 0);
        ring.submit().unwrap();
        ring
    })
    .join()
    .unwrap();
    writer.write_all(b"late").unwrap();
    assert_eq!(end(&mut ring, 0).unwrap(), b"late");
}
