use std::net::SocketAddr;

use wraith_drivers::TooLong;
use wraith_proto::{Ecn, Via};

use super::*;

/// A socket that answers as told and remembers what went out: (bytes, segment size).
#[derive(Default)]
struct Wire {
    answers: Vec<Option<i32>>,
    calls: Vec<(Vec<u8>, Option<usize>)>,
    taken: Vec<Vec<u8>>,
}

impl Wire {
    fn answering(answers: &[Option<i32>]) -> Self {
        Self { answers: answers.iter().rev().copied().collect(), ..Self::default() }
    }

    fn send(&mut self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.calls.push((transmit.contents.to_vec(), transmit.segment_size));
        if let Some(code) = self.answers.pop().flatten() {
            return Err(io::Error::from_raw_os_error(code));
        }
        let stride = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        if transmit.contents.is_empty() {
            self.taken.push(Vec::new());
        }
        self.taken.extend(transmit.contents.chunks(stride).map(<[u8]>::to_vec));
        Ok(())
    }

    /// The first byte of every datagram that was taken.
    fn tags(&self) -> Vec<u8> {
        self.taken.iter().map(|datagram| datagram[0]).collect()
    }
}

fn to(port: u16) -> TxMeta {
    TxMeta { to: SocketAddr::from(([127, 0, 0, 1], port)), from: None, via: Via(0), ecn: Ecn::NotEct }
}

/// Commits a datagram of `len` bytes, all of them `tag`.
fn commit(tx: &mut Tx, port: u16, tag: u8, len: usize) -> bool {
    let Some(room) = tx.reserve(&to(port), len) else { return false };
    room.fill(tag);
    tx.commit(len);
    true
}

fn flush(tx: &mut Tx, wire: &mut Wire) -> TxReport {
    tx.flush(Family::V4, |transmit| wire.send(transmit))
}

fn report(sent: usize, dropped: usize, in_flight: usize, syscalls: usize) -> TxReport {
    TxReport { sent, dropped, in_flight, syscalls, ..TxReport::default() }
}

/// `DRV §3.9, §4.5`
#[test]
fn equal_datagrams_leave_in_one_call_and_come_apart_at_the_segment_size() {
    let mut tx = Tx::new(1 << 16, 64);
    let mut wire = Wire::default();
    for (tag, len) in [(0, 100), (1, 100), (2, 60), (3, 100)] {
        assert!(commit(&mut tx, 1, tag, len));
    }
    assert_eq!(flush(&mut tx, &mut wire), report(4, 0, 0, 2));
    assert_eq!(wire.calls[0].1, Some(100));
    assert_eq!(wire.calls[1].1, None);
    assert_eq!(wire.tags(), [0, 1, 2, 3]);
    assert_eq!(wire.taken[2].len(), 60);
}

/// `DRV §3.13, §4.1`
#[test]
fn a_full_socket_keeps_the_tail_for_the_next_flush() {
    let mut tx = Tx::new(1 << 16, 64);
    let mut wire = Wire::answering(&[None, Some(libc::EAGAIN), Some(libc::EAGAIN)]);
    for port in 1..=4 {
        assert!(commit(&mut tx, port, port as u8, 100));
        assert!(commit(&mut tx, port, port as u8, 100));
    }
    assert_eq!(flush(&mut tx, &mut wire), report(2, 0, 6, 2));
    assert_eq!(tx.hold(), Hold::Writable);
    assert!(commit(&mut tx, 5, 5, 100), "there is room behind the tail");
    assert_eq!(flush(&mut tx, &mut wire), report(0, 0, 7, 1));
    assert_eq!(flush(&mut tx, &mut wire), report(7, 0, 0, 4));
    assert_eq!(tx.hold(), Hold::Nothing);
    assert_eq!(wire.tags(), [1, 1, 2, 2, 3, 3, 4, 4, 5]);
}

/// `DRV §3.6`
#[test]
fn a_full_arena_lends_nothing_until_the_tail_is_gone() {
    let mut tx = Tx::new(250, 64);
    let mut wire = Wire::answering(&[Some(libc::EAGAIN)]);
    assert!(commit(&mut tx, 1, 1, 100));
    assert!(commit(&mut tx, 2, 2, 100));
    assert!(tx.reserve(&to(2), 51).is_none());
    assert!(tx.reserve(&to(2), 50).is_some());
    assert_eq!(flush(&mut tx, &mut wire), report(0, 0, 2, 1));
    assert!(!commit(&mut tx, 3, 3, 100));
    assert_eq!(flush(&mut tx, &mut wire), report(2, 0, 0, 2));
    assert!(commit(&mut tx, 3, 3, 250));
    assert_eq!(flush(&mut tx, &mut wire), report(1, 0, 0, 1));
    assert_eq!(wire.tags(), [1, 2, 3]);
}

/// `DRV §3.5, §3.6`
#[test]
fn a_queue_of_single_datagrams_is_full_at_its_slots() {
    let mut tx = Tx::new(1 << 16, 1);
    let mut wire = Wire::default();
    let committed = (0..1000).filter(|tag| commit(&mut tx, 1, *tag as u8, 10)).count();
    assert_eq!(committed, Segments::BATCHES);
    assert_eq!(flush(&mut tx, &mut wire), report(committed, 0, 0, committed));
    assert!(commit(&mut tx, 1, 0, 10));
}

/// `DRV §3.13`
#[test]
fn memory_that_is_missing_for_a_moment_keeps_everything() {
    for code in [libc::ENOBUFS, libc::ENOMEM] {
        let mut tx = Tx::new(1 << 16, 64);
        let mut wire = Wire::answering(&[Some(code)]);
        assert!(commit(&mut tx, 1, 1, 100));
        assert_eq!(flush(&mut tx, &mut wire), report(0, 0, 1, 1));
        assert_eq!(tx.hold(), Hold::Retry);
        assert_eq!(flush(&mut tx, &mut wire), report(1, 0, 0, 1));
        assert_eq!(tx.hold(), Hold::Nothing);
    }
}

/// `DRV §1.2`
#[test]
fn refused_segmentation_sends_every_datagram_alone_and_is_remembered() {
    for code in [libc::EIO, libc::EINVAL] {
        let mut tx = Tx::new(1 << 16, 64);
        let mut wire = Wire::answering(&[Some(code)]);
        for tag in 0..3 {
            assert!(commit(&mut tx, 1, tag, 100));
        }
        for tag in 3..5 {
            assert!(commit(&mut tx, 2, tag, 100));
        }
        assert_eq!(flush(&mut tx, &mut wire), report(5, 0, 0, 6));
        assert_eq!(wire.tags(), [0, 1, 2, 3, 4]);
        assert_eq!(tx.max_segments(), 1);
        assert!(tx.take_refused());
        assert!(!tx.take_refused());
        assert!(commit(&mut tx, 1, 5, 100));
        assert!(commit(&mut tx, 1, 6, 100));
        assert_eq!(flush(&mut tx, &mut wire), report(2, 0, 0, 2));
        assert!(wire.calls[1..].iter().all(|(_, segment)| segment.is_none()));
    }
}

#[test]
fn a_refusal_that_a_single_datagram_meets_too_is_not_blamed_on_segmentation() {
    let mut tx = Tx::new(1 << 16, 64);
    let bad = Some(libc::EINVAL);
    let mut wire = Wire::answering(&[bad, bad, bad]);
    assert!(commit(&mut tx, 1, 0, 100));
    assert!(commit(&mut tx, 1, 1, 100));
    assert!(commit(&mut tx, 2, 2, 100));
    assert_eq!(flush(&mut tx, &mut wire), report(1, 2, 0, 4));
    assert_eq!(wire.tags(), [2]);
    assert_eq!(tx.max_segments(), 64);
    assert!(tx.take_refused());
}

/// `DRV §3.8, §4.1`
#[test]
fn a_full_socket_in_the_middle_of_a_split_batch_loses_and_repeats_nothing() {
    let mut tx = Tx::new(1 << 16, 64);
    let mut wire = Wire::answering(&[Some(libc::EIO), Some(libc::EAGAIN), None, Some(libc::EAGAIN), None]);
    for tag in 0..3 {
        assert!(commit(&mut tx, 1, tag, 100));
    }
    assert_eq!(flush(&mut tx, &mut wire), report(0, 0, 3, 2));
    assert_eq!(tx.max_segments(), 64, "nothing is proven yet");
    assert_eq!(flush(&mut tx, &mut wire), report(1, 0, 2, 2));
    assert_eq!(tx.max_segments(), 1);
    assert_eq!(flush(&mut tx, &mut wire), report(2, 0, 0, 2));
    assert_eq!(wire.tags(), [0, 1, 2]);
}

/// `DRV §3.12, §4.2, §4.6`
#[test]
fn only_the_datagram_that_is_too_long_is_dropped() {
    let mut tx = Tx::new(1 << 16, 64);
    let long = Some(libc::EMSGSIZE);
    let mut wire = Wire::answering(&[None, long, long, long, None]);
    assert!(commit(&mut tx, 1, 0, 100));
    for (tag, len) in [(1, 900), (2, 900), (3, 100)] {
        assert!(commit(&mut tx, 1, tag, len));
    }
    let too_long = Some(TooLong { to: to(1).to, len: 900 });
    assert_eq!(flush(&mut tx, &mut wire), TxReport { too_long, ..report(2, 2, 0, 5) });
    assert_eq!(wire.tags(), [0, 3]);
    assert_eq!(tx.max_segments(), 64, "length is no reason to stop segmentation");
    assert!(!tx.take_refused());
}

/// `DRV §2.11, §4.2`
#[test]
fn an_earlier_datagrams_error_costs_a_call_and_no_datagram() {
    let mut tx = Tx::new(1 << 16, 64);
    let refused = Some(libc::ECONNREFUSED);
    let mut wire = Wire::answering(&[refused, refused, None]);
    assert!(commit(&mut tx, 1, 0, 100));
    assert!(commit(&mut tx, 1, 1, 100));
    assert_eq!(flush(&mut tx, &mut wire), report(2, 0, 0, 3));

    let mut wire = Wire::answering(&[refused; EARLIER_ERRORS + 1]);
    assert!(commit(&mut tx, 1, 0, 100));
    assert!(commit(&mut tx, 2, 1, 100));
    assert_eq!(flush(&mut tx, &mut wire), report(1, 1, 0, EARLIER_ERRORS + 2));
    assert_eq!(wire.tags(), [1]);
}

/// `DRV §3.12`
#[test]
fn what_has_no_route_is_dropped_as_a_whole_and_counted() {
    for code in [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EPERM, libc::EAFNOSUPPORT] {
        let mut tx = Tx::new(1 << 16, 64);
        let mut wire = Wire::answering(&[Some(code)]);
        for tag in 0..3 {
            assert!(commit(&mut tx, 1, tag, 100));
        }
        assert!(commit(&mut tx, 2, 3, 100));
        assert_eq!(flush(&mut tx, &mut wire), report(1, 3, 0, 2));
        assert_eq!(wire.tags(), [3]);
    }
}

#[test]
fn an_empty_datagram_is_sent_or_counted() {
    let mut tx = Tx::new(1 << 16, 64);
    let mut wire = Wire::default();
    assert!(commit(&mut tx, 1, 0, 0));
    assert_eq!(flush(&mut tx, &mut wire), report(1, 0, 0, 1));
    for index in 0..Segments::BATCHES {
        assert!(commit(&mut tx, 1 + (index % 2) as u16, 0, 5));
    }
    let last = 1 + ((Segments::BATCHES - 1) % 2) as u16;
    assert!(tx.reserve(&to(last), 5).is_some(), "it would join");
    tx.commit(0);
    assert_eq!(flush(&mut tx, &mut wire), report(Segments::BATCHES, 1, 0, Segments::BATCHES));
}

/// `DRV §3.3, §3.4`
#[test]
fn a_reservation_is_reused_until_it_is_committed_and_ends_with_a_flush() {
    let mut tx = Tx::new(1 << 16, 64);
    let mut wire = Wire::default();
    let address = tx.reserve(&to(1), 1200).unwrap().as_ptr();
    for _ in 0..100_000 {
        assert_eq!(tx.reserve(&to(1), 1200).unwrap().as_ptr(), address);
    }
    assert_eq!(flush(&mut tx, &mut wire), report(0, 0, 0, 0));
    tx.commit(1200);
    assert_eq!(flush(&mut tx, &mut wire), report(0, 0, 0, 0));
    assert!(wire.calls.is_empty());
}
