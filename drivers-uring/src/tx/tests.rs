use std::net::SocketAddr;

use wraith_drivers::TooLong;
use wraith_proto::{Ecn, Via};

use super::*;

/// A ring that answers as told, cancels what follows a failure, and remembers what went out.
#[derive(Default)]
struct Wire {
    answers: Vec<i32>,
    /// Sends that were answered: where to, how many bytes, the segment size.
    calls: Vec<(u16, usize, Option<u16>)>,
    taken: Vec<Vec<u8>>,
}

impl Wire {
    /// Answers with these error numbers; 0 is a success, and so is what comes after them.
    fn answering(answers: &[i32]) -> Self {
        Self { answers: answers.iter().rev().copied().collect(), ..Self::default() }
    }

    /// What a flush of the driver does.
    fn flush(&mut self, tx: &mut Tx) -> TxReport {
        self.flush_in_chains_of(tx, 128)
    }

    fn flush_in_chains_of(&mut self, tx: &mut Tx, room: usize) -> TxReport {
        tx.seal();
        let mut syscalls = 0;
        loop {
            let plan = tx.plan(room, true);
            if plan.sends == 0 {
                return tx.report(syscalls);
            }
            let pieces: Vec<_> = (0..plan.sends).map(|index| tx.piece(index, plan).unwrap()).collect();
            tx.note_running(plan.sends);
            syscalls += 1;
            let mut broken = false;
            for (index, piece) in pieces.iter().enumerate() {
                let result = if broken { -libc::ECANCELED } else { self.answer(tx, piece) };
                broken = piece.linked && result < 0;
                tx.settle(index, result, false);
            }
        }
    }

    fn answer(&mut self, tx: &mut Tx, piece: &Piece) -> i32 {
        self.calls.push((piece.meta.to.port(), piece.data().len(), piece.segment()));
        let code = self.answers.pop().unwrap_or(0);
        if code == 0 {
            let bytes = tx.memory.bytes(piece.data()).unwrap().to_vec();
            let stride = piece.segment().map_or(bytes.len(), usize::from).max(1);
            if bytes.is_empty() {
                self.taken.push(Vec::new());
            }
            self.taken.extend(bytes.chunks(stride).map(<[u8]>::to_vec));
        }
        -code
    }

    /// The first byte of every datagram that was taken.
    fn tags(&self) -> Vec<u8> {
        self.taken.iter().map(|datagram| datagram[0]).collect()
    }
}

fn queue(slot_bytes: usize, slots: usize, max_segments: usize) -> Tx {
    Tx::new(SlotMemory::alone(slot_bytes * slots), slots, slot_bytes, max_segments)
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

fn report(sent: usize, dropped: usize, in_flight: usize, syscalls: usize) -> TxReport {
    TxReport { sent, dropped, in_flight, syscalls, ..TxReport::default() }
}

#[test]
fn equal_datagrams_leave_in_one_send_and_all_sends_of_a_flush_in_one_chain() {
    let mut tx = queue(1 << 16, 2, 64);
    let mut wire = Wire::default();
    for (tag, len) in [(0, 100), (1, 100), (2, 60), (3, 100)] {
        assert!(commit(&mut tx, 1, tag, len));
    }
    assert_eq!(wire.flush(&mut tx), report(4, 0, 0, 1));
    assert_eq!(wire.calls, [(1, 260, Some(100)), (1, 100, None)]);
    assert_eq!(wire.tags(), [0, 1, 2, 3]);
}

#[test]
fn a_chain_that_does_not_fit_goes_in_parts_and_in_order() {
    let mut tx = queue(1 << 16, 1, 64);
    let mut wire = Wire::default();
    for tag in 0..10 {
        assert!(commit(&mut tx, u16::from(tag % 2), tag, 10));
    }
    assert_eq!(wire.flush_in_chains_of(&mut tx, 4), report(10, 0, 0, 3));
    assert_eq!(wire.tags(), (0..10).collect::<Vec<_>>());
}

#[test]
fn sends_to_one_host_are_linked_and_all_of_them_if_a_host_comes_back() {
    let linked = |ports: &[u16]| {
        let mut tx = queue(1 << 16, 1, 1);
        for port in ports {
            assert!(commit(&mut tx, *port, 0, 10));
        }
        tx.seal();
        let plan = tx.plan(128, true);
        (0..plan.sends).map(|index| tx.piece(index, plan).unwrap().linked).collect::<Vec<_>>()
    };
    assert_eq!(linked(&[1]), [false]);
    assert_eq!(linked(&[1, 2, 3]), [false; 3]);
    assert_eq!(linked(&[1, 1, 2, 2, 2]), [true, false, true, true, false]);
    assert_eq!(linked(&[1, 2, 1]), [true, true, false]);
    // Far more hosts than places differ in: each is told from the others.
    let hosts: Vec<u16> = (1..=128).map(|host| host * 256).collect();
    assert_eq!(linked(&hosts), [false; 128]);
    let back: Vec<u16> = hosts[..127].iter().copied().chain([hosts[0]]).collect();
    assert_eq!(linked(&back).iter().filter(|linked| **linked).count(), 127);
}

#[test]
fn without_links_a_host_that_comes_back_waits_for_the_next_time() {
    let planned = |ports: &[u16]| {
        let mut tx = queue(1 << 16, 1, 1);
        for port in ports {
            assert!(commit(&mut tx, *port, 0, 10));
        }
        tx.seal();
        let plan = tx.plan(128, false);
        assert!((0..plan.sends).all(|index| !tx.piece(index, plan).unwrap().linked));
        plan.sends
    };
    assert_eq!(planned(&[1]), 1);
    assert_eq!(planned(&[1, 2, 3]), 3);
    assert_eq!(planned(&[1, 1, 2]), 1);
    assert_eq!(planned(&[1, 2, 3, 2, 1]), 3);
}

#[test]
fn while_a_chain_runs_its_slot_is_kept_and_another_is_filled() {
    let mut tx = queue(200, 2, 64);
    assert!(commit(&mut tx, 1, 1, 100));
    assert!(commit(&mut tx, 2, 2, 100));
    tx.seal();
    let plan = tx.plan(9, true);
    assert!(!tx.piece(0, plan).unwrap().linked, "they go to different hosts");
    tx.note_running(plan.sends);
    assert_eq!(tx.report(1), report(0, 0, 2, 1));
    assert!(!tx.take_moved());
    // The first slot is on its way, the second one free, and then nothing.
    assert!(commit(&mut tx, 3, 3, 200));
    assert!(!commit(&mut tx, 3, 4, 1));
    tx.seal();
    assert_eq!(tx.plan(9, true).sends, 0, "order would be lost");
    assert!(tx.reserve(&to(4), 1).is_none());
    tx.settle(1, 0, false);
    assert!(tx.take_moved());
    assert!(!tx.take_moved(), "it is said once");
    assert_eq!(tx.report(0), report(1, 0, 2, 0));
    assert!(tx.reserve(&to(4), 1).is_none(), "the slot still holds the first one");
    tx.settle(0, 0, false);
    assert!(!tx.is_running());
    let mut wire = Wire::default();
    assert!(commit(&mut tx, 4, 5, 200));
    assert_eq!(wire.flush(&mut tx), report(3, 0, 0, 1));
    assert_eq!(wire.tags(), [3, 5]);
}

#[test]
fn a_full_slot_lends_nothing_until_the_flush_and_a_tail_keeps_it() {
    let mut tx = queue(250, 1, 64);
    let mut wire = Wire::answering(&[libc::ENOBUFS]);
    assert!(commit(&mut tx, 1, 1, 100));
    assert!(commit(&mut tx, 2, 2, 100));
    assert!(tx.reserve(&to(2), 51).is_none());
    assert!(tx.reserve(&to(2), 50).is_some());
    assert_eq!(wire.flush(&mut tx), report(1, 0, 1, 1));
    assert!(!commit(&mut tx, 3, 3, 51));
    assert_eq!(wire.flush(&mut tx), report(1, 0, 0, 1));
    assert!(commit(&mut tx, 3, 3, 250));
    assert_eq!(wire.flush(&mut tx), report(1, 0, 0, 1));
    assert_eq!(wire.tags(), [2, 1, 3]);
}

#[test]
fn a_queue_of_single_datagrams_is_full_at_its_slots() {
    let mut tx = queue(1 << 16, 2, 1);
    let mut wire = Wire::default();
    let committed = (0..1000).filter(|tag| commit(&mut tx, 1, *tag as u8, 10)).count();
    assert_eq!(committed, Segments::BATCHES);
    assert_eq!(wire.flush(&mut tx), report(committed, 0, 0, 2));
    assert!(commit(&mut tx, 1, 0, 10));
}

#[test]
fn memory_that_is_missing_for_a_moment_keeps_everything_in_order() {
    for code in [libc::ENOBUFS, libc::ENOMEM, libc::EAGAIN] {
        let mut tx = queue(1 << 16, 2, 64);
        let mut wire = Wire::answering(&[0, code]);
        for (port, tag) in [(1, 1), (1, 2), (1, 3), (2, 4)] {
            assert!(commit(&mut tx, port, tag, 100 * usize::from(tag)));
        }
        // What follows to the same host is not tried; another host is none of its business.
        assert_eq!(wire.flush(&mut tx), report(2, 0, 2, 1));
        assert!(tx.must_retry());
        assert!(commit(&mut tx, 1, 5, 100), "there is room in another slot");
        assert_eq!(wire.flush(&mut tx), report(3, 0, 0, 1));
        assert!(!tx.must_retry());
        assert_eq!(wire.tags(), [1, 4, 2, 3, 5]);
    }
}

#[test]
fn refused_segmentation_sends_every_datagram_alone_and_is_remembered() {
    for code in [libc::EIO, libc::EINVAL] {
        let mut tx = queue(1 << 16, 2, 64);
        let mut wire = Wire::answering(&[code, code]);
        for tag in 0..5 {
            assert!(commit(&mut tx, if tag < 3 { 1 } else { 2 }, tag, 100));
        }
        let sent = wire.flush(&mut tx);
        assert_eq!((sent.sent, sent.dropped, sent.in_flight), (5, 0, 0));
        assert_eq!(wire.tags(), [0, 1, 2, 3, 4]);
        assert_eq!(tx.max_segments(), 1);
        assert!(commit(&mut tx, 1, 5, 100));
        assert!(commit(&mut tx, 1, 6, 100));
        assert_eq!(wire.flush(&mut tx), report(2, 0, 0, 1));
        assert_eq!(wire.calls[0], (1, 300, Some(100)));
        assert!(wire.calls[2..].iter().all(|(_, _, segment)| segment.is_none()), "{:?}", wire.calls);
    }
}

#[test]
fn a_refusal_that_a_single_datagram_meets_too_is_not_blamed_on_segmentation() {
    let mut tx = queue(1 << 16, 2, 64);
    let mut wire = Wire::answering(&[libc::EINVAL, 0, libc::EINVAL, libc::EINVAL]);
    assert!(commit(&mut tx, 1, 0, 100));
    assert!(commit(&mut tx, 1, 1, 100));
    assert!(commit(&mut tx, 2, 2, 100));
    let sent = wire.flush(&mut tx);
    assert_eq!((sent.sent, sent.dropped, sent.in_flight), (1, 2, 0));
    assert_eq!(wire.tags(), [2]);
    assert_eq!(tx.max_segments(), 64);
}

#[test]
fn only_the_datagram_that_is_too_long_is_dropped() {
    let mut tx = queue(1 << 16, 2, 64);
    let mut wire = Wire::answering(&[0, libc::EMSGSIZE, libc::EMSGSIZE, libc::EMSGSIZE]);
    assert!(commit(&mut tx, 1, 0, 100));
    for (tag, len) in [(1, 900), (2, 900), (3, 100)] {
        assert!(commit(&mut tx, 1, tag, len));
    }
    let sent = wire.flush(&mut tx);
    assert_eq!((sent.sent, sent.dropped, sent.in_flight), (2, 2, 0));
    assert_eq!(sent.too_long, Some(TooLong { to: to(1).to, len: 900 }));
    assert_eq!(wire.tags(), [0, 3]);
    assert_eq!(wire.flush(&mut tx).too_long, None, "told once");
    assert_eq!(tx.max_segments(), 64, "length is no reason to stop segmentation");
}

#[test]
fn an_earlier_datagrams_error_costs_a_send_and_no_datagram() {
    let mut tx = queue(1 << 16, 2, 64);
    let mut wire = Wire::answering(&[libc::ECONNREFUSED; 2]);
    assert!(commit(&mut tx, 1, 0, 100));
    assert!(commit(&mut tx, 1, 1, 100));
    assert_eq!(wire.flush(&mut tx), report(2, 0, 0, 3));

    let mut wire = Wire::answering(&[libc::ECONNREFUSED; EARLIER_ERRORS + 1]);
    assert!(commit(&mut tx, 1, 0, 100));
    assert!(commit(&mut tx, 1, 1, 200));
    assert_eq!(wire.flush(&mut tx), report(1, 1, 0, EARLIER_ERRORS + 2));
    assert_eq!(wire.tags(), [1]);
}

#[test]
fn what_has_no_route_is_dropped_as_a_whole_and_the_rest_leaves() {
    for code in [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EPERM, libc::EAFNOSUPPORT] {
        let mut tx = queue(1 << 16, 2, 64);
        let mut wire = Wire::answering(&[0, code]);
        assert!(commit(&mut tx, 9, 9, 100));
        for tag in 0..3 {
            assert!(commit(&mut tx, 1, tag, 100));
        }
        for tag in 3..5 {
            assert!(commit(&mut tx, tag.into(), tag, 100));
        }
        assert_eq!(wire.flush(&mut tx), report(3, 3, 0, 1));
        assert_eq!(wire.tags(), [9, 3, 4]);
    }
}

#[test]
fn an_empty_datagram_is_sent_or_counted() {
    let mut tx = queue(1 << 16, 2, 64);
    let mut wire = Wire::default();
    assert!(commit(&mut tx, 1, 0, 0));
    assert_eq!(wire.flush(&mut tx), report(1, 0, 0, 1));
    for index in 0..Segments::BATCHES {
        assert!(commit(&mut tx, 1 + (index % 2) as u16, 0, 5));
    }
    let last = 1 + ((Segments::BATCHES - 1) % 2) as u16;
    assert!(tx.reserve(&to(last), 5).is_some(), "it would join");
    tx.commit(0);
    assert_eq!(wire.flush(&mut tx), report(Segments::BATCHES, 1, 0, 2));
}

#[test]
fn a_reservation_is_reused_until_it_is_committed_and_ends_with_a_flush() {
    let mut tx = queue(1 << 16, 2, 64);
    let mut wire = Wire::default();
    let address = tx.reserve(&to(1), 1200).unwrap().as_ptr();
    for _ in 0..100_000 {
        assert_eq!(tx.reserve(&to(1), 1200).unwrap().as_ptr(), address);
    }
    assert_eq!(wire.flush(&mut tx), report(0, 0, 0, 0));
    tx.commit(1200);
    assert_eq!(wire.flush(&mut tx), report(0, 0, 0, 0));
    assert!(wire.calls.is_empty());
    assert!(tx.reserve(&to(1), 1 << 17).is_none(), "no slot is so large");
}

#[test]
fn a_slot_has_room_behind_datagrams_that_wait_and_begins_anew_when_all_are_gone() {
    let mut tx = queue(100, 2, 64);
    // Flush by flush, while the first send runs.
    for tag in 0..20 {
        assert!(commit(&mut tx, 1, tag, 10), "{tag}");
        tx.seal();
        tx.note_running(usize::from(tag == 0));
        assert_eq!(tx.report(0), report(0, 0, usize::from(tag) + 1, 0));
    }
    assert!(!commit(&mut tx, 1, 20, 1), "both slots are full");
    tx.settle(0, 0, false);
    let mut wire = Wire::default();
    assert_eq!(wire.flush(&mut tx), report(20, 0, 0, 1));
    assert_eq!(wire.tags(), (1..20).collect::<Vec<_>>());
    assert!(commit(&mut tx, 1, 0, 100));
    assert_eq!(wire.flush(&mut tx), report(1, 0, 0, 1));
}

#[test]
fn a_queue_that_moves_on_holds_no_more_than_its_batches() {
    let mut tx = queue(1 << 16, 2, 1);
    let mut committed = 0;
    while commit(&mut tx, 1, committed as u8, 1) {
        committed += 1;
        tx.seal();
        tx.note_running(usize::from(committed == 1));
    }
    assert_eq!(committed, 2 * Segments::BATCHES + 1);
    assert_eq!(tx.report(0), report(0, 0, committed, 0));
    tx.settle(0, 0, false);
    assert!(commit(&mut tx, 1, 0, 1));
}

#[test]
fn what_the_network_still_reads_is_in_flight_and_its_slot_is_kept() {
    let mut tx = queue(100, 2, 64);
    let hold = |tx: &mut Tx, bytes: usize| {
        assert!(commit(tx, 1, 0, bytes));
        tx.seal();
        tx.note_running(1);
        tx.settle(0, 0, true);
    };
    hold(&mut tx, 60);
    assert_eq!(tx.report(1), report(0, 0, 1, 1));
    hold(&mut tx, 10);
    assert_eq!(tx.report(1), report(0, 0, 2, 1));
    assert!(tx.is_held());
    // Nobody says which one this is for.
    tx.release(0);
    assert!(tx.take_moved());
    assert_eq!(tx.report(0), report(0, 0, 2, 0));
    tx.release(0);
    assert_eq!(tx.report(0), report(2, 0, 0, 0));
    hold(&mut tx, 60);
    hold(&mut tx, 60);
    tx.release_all();
    assert!(!tx.is_held());
    assert_eq!(tx.report(0), report(2, 0, 0, 0));
}

#[test]
fn what_finds_no_room_in_a_slot_goes_to_the_next_and_order_stays() {
    let mut tx = queue(100, 3, 64);
    assert!(commit(&mut tx, 1, 0, 80));
    tx.seal();
    tx.note_running(1);
    for tag in 1..5 {
        assert!(commit(&mut tx, 1, tag, 15), "{tag}");
    }
    assert!(commit(&mut tx, 1, 5, 40));
    assert!(!commit(&mut tx, 1, 6, 1), "a flush takes no more than a slot holds");
    tx.settle(0, 0, false);
    let mut wire = Wire::default();
    assert_eq!(wire.flush(&mut tx), report(6, 0, 0, 1));
    assert_eq!(wire.tags(), [1, 2, 3, 4, 5]);
}
