//! Rings on socket pairs, which fill up as soon as nobody reads.

use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::thread;
use std::time::Instant;

use super::end::{CLOSING, PATIENCE};
use super::*;
use crate::verdict::Verdict;
use crate::waker::Waker;
use crate::wire::RX_PAYLOAD;

const LOOK: Option<Duration> = Some(Duration::from_secs(10));

struct Bench {
    ring: Ring,
    memory: SlotMemory,
    outer: UnixDatagram,
    waker: Waker,
}

/// A ring with `buffers` buffers of 8 bytes and a page to send from.
fn bench(buffers: u16) -> Bench {
    let (inner, outer) = UnixDatagram::pair().unwrap();
    let waker = Waker::new().unwrap();
    let setup = Setup { buffers, buffer_bytes: 8, transmit_bytes: 4096, ..Setup::default() };
    let (mut ring, memory) = Ring::new(&setup, inner.as_fd(), waker.as_fd()).unwrap();
    ring.start().unwrap();
    Bench { ring, memory, outer, waker }
}

impl Bench {
    /// Sends `count` datagrams in one chain, each of them its index as four bytes, counted from `first`.
    fn send(&mut self, first: u32, count: u16) {
        for index in 0..count {
            let data = 4 * usize::from(index)..4 * usize::from(index) + 4;
            let bytes = (first + u32::from(index)).to_be_bytes();
            self.memory.bytes(data.clone()).unwrap().copy_from_slice(&bytes);
            let (name, control) = (&Name::NONE, &Control::NONE);
            let linked = index + 1 < count;
            assert!(self.ring.send(&Send { index, slot: 0, data, name, control, linked }));
        }
        self.ring.submit_chain().unwrap();
    }

    /// Sends that have ended, all of them well.
    fn ended(&mut self) -> usize {
        let mut ended = 0;
        while let Some(completion) = self.ring.next() {
            assert!(matches!(completion, Completion::Sent { result: 0, holds: false, .. }), "{completion:?}");
            ended += 1;
        }
        ended
    }

    fn next_number(&self) -> Option<u32> {
        let mut bytes = [0; 4];
        match self.outer.recv(&mut bytes) {
            Ok(len) => {
                assert_eq!(len, 4);
                Some(u32::from_be_bytes(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Fills `bench` until a chain stays behind; returns how many were sent in all and how many have ended.
fn fill(bench: &mut Bench) -> (u32, usize) {
    let (mut sent, mut ended) = (0, 0);
    while ended == sent as usize {
        bench.send(sent, 50);
        sent += 50;
        ended += bench.ended();
        assert!(sent < 1_000_000);
    }
    (sent, ended)
}

#[test]
fn sends_behind_a_full_socket_leave_by_themselves_and_in_order() {
    let mut bench = bench(2);
    let (sent, mut ended) = fill(&mut bench);
    assert!(ended > 0 && ended < sent as usize);
    bench.outer.set_nonblocking(true).unwrap();
    for expected in 0..sent {
        let mut number = bench.next_number();
        while number.is_none() {
            // Everything was read, so that there is room for those that wait.
            bench.ring.wait(LOOK).unwrap();
            ended += bench.ended();
            number = bench.next_number();
        }
        assert_eq!(number, Some(expected));
    }
    ended += bench.ended();
    assert_eq!(ended, sent as usize);
}

#[test]
fn a_failed_send_cancels_what_follows_in_its_chain() {
    let mut bench = bench(2);
    drop(std::mem::replace(&mut bench.outer, UnixDatagram::unbound().unwrap()));
    bench.send(0, 3);
    let results: Vec<_> = std::iter::from_fn(|| bench.ring.next())
        .filter_map(|completion| match completion {
            Completion::Sent { result, .. } => Some(-result),
            _ => None,
        })
        .collect();
    assert_eq!(results, [libc::ECONNREFUSED, libc::ECANCELED, libc::ECANCELED]);
}

#[test]
fn a_receive_that_ran_out_of_buffers_goes_on_when_there_are_some_again() {
    let mut bench = bench(2);
    for number in 0..5u8 {
        bench.outer.send(&[number]).unwrap();
    }
    let mut received = Vec::new();
    while received.len() < 5 {
        assert!(bench.ring.buffers().available() > 0);
        bench.ring.start().unwrap();
        bench.ring.submit().unwrap();
        let mut filled = Vec::new();
        while let Some(completion) = bench.ring.next() {
            let Completion::Received { buffer, len } = completion else { panic!("{completion:?}") };
            assert_eq!(len, RX_PAYLOAD + 1);
            received.push(bench.ring.buffers().get_mut(buffer).unwrap()[RX_PAYLOAD]);
            filled.push(buffer);
        }
        assert!(!filled.is_empty());
        if filled.len() == 2 {
            // Asking without a buffer would be answered at once, again and again.
            bench.ring.submit().unwrap();
            assert_eq!(bench.ring.next(), None);
            assert!(!bench.ring.is_receiving());
            bench.ring.start().unwrap();
            assert!(!bench.ring.is_receiving());
        }
        for buffer in filled {
            bench.ring.buffers().give(buffer);
            assert_eq!(bench.ring.buffers().get_mut(buffer), None, "the kernel may write to it");
        }
        bench.ring.buffers().publish();
    }
    assert_eq!(received, [0, 1, 2, 3, 4]);
}

#[test]
fn a_message_header_is_used_once_at_a_time_and_memory_ends_where_it_ends() {
    let mut bench = bench(2);
    let (name, control) = (&Name::NONE, &Control::NONE);
    let send = |index, data| Send { index, slot: 0, data, name, control, linked: false };
    assert!(bench.ring.send(&send(0, 0..4)));
    assert!(!bench.ring.send(&send(0, 0..4)), "its header is not free");
    assert!(!bench.ring.send(&send(CHAIN, 0..4)), "there is no such header");
    assert!(!bench.ring.send(&send(1, 0..4097)), "there is no such memory");
    assert_eq!(bench.memory.bytes(4000..4097), None);
    bench.ring.submit_chain().unwrap();
    assert_eq!(bench.ended(), 1);
    assert!(bench.ring.send(&send(0, 0..4)));
}

#[test]
fn wake_ups_are_counted_together_and_reported_once() {
    use wraith_drivers::Unpark;

    let mut bench = bench(2);
    let unparker = bench.waker.unparker();
    for _ in 0..3 {
        unparker.unpark().unwrap();
    }
    bench.ring.wait(LOOK).unwrap();
    assert_eq!(bench.ring.next(), Some(Completion::Woken));
    assert!(bench.waker.take());
    assert!(!bench.waker.take());
    bench.ring.start().unwrap();
    bench.ring.wait(Some(Duration::ZERO)).unwrap();
    assert_eq!(bench.ring.next(), None);
    let other = thread::spawn(move || unparker.unpark().unwrap());
    bench.ring.wait(LOOK).unwrap();
    assert_eq!(bench.ring.next(), Some(Completion::Woken));
    other.join().unwrap();
}

#[test]
fn the_end_of_a_ring_waits_for_what_runs_and_not_for_long() {
    let mut bench = bench(2);
    fill(&mut bench);
    assert!(bench.ring.running > 2);
    let began = Instant::now();
    assert!(bench.ring.quiesce());
    assert_eq!(bench.ring.running, 0);
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn a_ring_goes_on_in_another_thread_and_nothing_is_sent_twice_or_lost() {
    for owner_lives in [false, true] {
        let filled = || {
            let mut bench = bench(2);
            let (sent, ended) = fill(&mut bench);
            (sent, ended, bench)
        };
        let of_the_owner = if owner_lives { filled() } else { thread::spawn(filled).join().unwrap() };
        let (sent, mut ended, mut bench) = of_the_owner;
        bench.outer.set_nonblocking(true).unwrap();
        let go_on = move || {
            bench.ring.wait(Some(Duration::ZERO)).unwrap();
            let (mut cancelled, mut replaced) = (0, false);
            while let Some(completion) = bench.ring.next() {
                match completion {
                    Completion::Sent { result: 0, .. } => ended += 1,
                    Completion::Sent { result, .. } => {
                        assert!([Verdict::Cancelled, Verdict::Earlier].contains(&Verdict::of_send(-result)));
                        cancelled += 1;
                    }
                    other => {
                        assert_eq!(other, Completion::Replaced);
                        replaced = true;
                    }
                }
            }
            assert!(replaced);
            assert_eq!(ended + cancelled, sent as usize);
            let numbers = std::iter::from_fn(|| bench.next_number());
            assert!(numbers.eq(0..ended as u32), "what went out is what was said to have gone");
            bench.ring.start().unwrap();
            bench.send(0, 3);
            assert_eq!(bench.ended(), 3);
            assert!((0..3).map(Some).eq((0..3).map(|_| bench.next_number())));
            bench.outer.send(b"back").unwrap();
            bench.ring.wait(LOOK).unwrap();
            let completion = bench.ring.next();
            assert!(matches!(completion, Some(Completion::Received { .. })), "{completion:?}");
        };
        thread::spawn(go_on).join().unwrap();
    }
}

#[test]
fn the_end_of_a_ring_on_another_thread_is_waited_for() {
    let mut bench = bench(2);
    fill(&mut bench);
    let (life, _signs) = Life::new().unwrap();
    assert!(!life.has_ended(Duration::ZERO), "the signs are held here");
    let life = std::mem::replace(&mut bench.ring.life, life);
    // It lives while its descriptor is open, and the end that is waited for here never comes.
    thread::spawn(move || drop(bench)).join().unwrap();
    assert!(life.has_ended(CLOSING));
}

#[test]
fn a_ring_has_ended_when_the_first_and_the_last_of_its_files_are_closed() {
    for first in [0, 1] {
        let (life, signs) = Life::new().unwrap();
        let mut signs = signs.map(Some);
        signs[first] = None;
        assert!(!life.has_ended(Duration::ZERO), "the other one is open");
        signs[1 - first] = None;
        assert!(life.has_ended(Duration::ZERO));
    }
}
