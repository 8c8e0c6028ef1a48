//! Nesting in another loop by the descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Poll, Token};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use wraith_drivers::{Driver, Interest, Pollable};

use crate::case::{Outcome, ensure, ensure_eq};
use crate::context::Context;
use crate::harness::Link;
use crate::wire::{Wire, rest};

pub(super) fn a_level_stands_while_there_is_something<D: Pollable>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let patience = context.options.patience;
    for _ in 0..20 {
        ensure!(!is_readable(wire.right.driver.poll_fd(), Duration::ZERO)?, "an idle descriptor is readable");
        wire.commit_all(&context.datagrams([100]))?;
        wire.left.settle()?;
        for _ in 0..3 {
            let ready = is_readable(wire.right.driver.poll_fd(), patience)?;
            ensure!(ready, "a descriptor is not readable with a datagram waiting");
        }
        drained(&mut wire, 1)?;
    }
    Ok(())
}

pub(super) fn an_edge_comes_with_every_arrival<D: Pollable>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let mut outer = Outer::new(context.options.patience)?;
    outer.watch(wire.right.driver.poll_fd().as_raw_fd())?;
    outer.events(Duration::ZERO)?;
    for count in (1..=40).chain([1, 1, 1]) {
        wire.commit_all(&context.datagrams(std::iter::repeat_n(100, count)))?;
        wire.left.settle()?;
        let mut received = 0;
        while received < count {
            ensure!(outer.wakes()?, "no edge with {received} of {count} datagrams received");
            // Until the budget is not hit: the contract of an edge.
            loop {
                let report = wire.right.driver.recv(3, |_, _| {})?;
                received += report.datagrams;
                if !report.budget_hit {
                    break;
                }
            }
        }
        ensure_eq!(received, count, "datagrams received");
    }
    Ok(())
}

pub(super) fn room_is_asked_for_only_when_it_is_missing<D: Pollable>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link { tx_slots: 16, ..Link::default() })?;
    let meta = wire.to_right();
    let quiet = Interest { readable: true, writable: false };
    ensure_eq!(wire.left.driver.interest(), quiet, "interest of a new driver");
    for _ in 0..Link::WINDOW - 1 {
        wire.left.must_commit(&meta, &context.datagram(500))?;
        let in_flight = wire.left.flush()?.in_flight;
        let interest = wire.left.driver.interest();
        ensure!(interest.readable, "nobody is to look for datagrams");
        ensure!(in_flight > 0 || !interest.writable, "a loop is to wait for room with nothing in flight");
        if in_flight > 0 {
            break;
        }
    }
    wire.drain()?;
    ensure_eq!(wire.left.driver.interest(), quiet, "interest with nothing in flight");
    Ok(())
}

pub(super) fn the_descriptor_stays_and_nests<D: Pollable>(context: &mut Context<D>) -> Outcome {
    let mut wire = context.wire(Link::default())?;
    let descriptor = wire.right.driver.poll_fd().as_raw_fd();
    let patience = context.options.patience;
    let (mut inner, mut outer) = (Outer::new(patience)?, Outer::new(patience)?);
    inner.watch(descriptor)?;
    outer.watch(inner.poll.as_raw_fd())?;
    for _ in 0..20 {
        wire.commit_all(&context.datagrams([100, 100]))?;
        wire.left.settle()?;
        ensure!(outer.wakes()?, "an epoll around an epoll around the descriptor sleeps over a datagram");
        ensure!(inner.wakes()?, "an epoll around the descriptor sleeps over a datagram");
        drained(&mut wire, 2)?;
        // The inner one is idle only once it has told its last news.
        inner.events(Duration::ZERO)?;
        ensure_eq!(wire.right.driver.poll_fd().as_raw_fd(), descriptor, "the descriptor");
    }
    Ok(())
}

/// An edge-triggered loop around descriptors.
struct Outer {
    poll: Poll,
    events: Events,
    patience: Duration,
}

impl Outer {
    fn new(patience: Duration) -> io::Result<Self> {
        Ok(Self { poll: Poll::new()?, events: Events::with_capacity(8), patience })
    }

    fn watch(&self, descriptor: RawFd) -> io::Result<()> {
        self.poll.registry().register(&mut SourceFd(&descriptor), Token(0), mio::Interest::READABLE)
    }

    /// Whether something becomes readable before the patience is at its end.
    fn wakes(&mut self) -> io::Result<bool> {
        Ok(self.events(self.patience)? > 0)
    }

    /// Readable events within `limit`.
    fn events(&mut self, limit: Duration) -> io::Result<usize> {
        self.poll.poll(&mut self.events, Some(limit))?;
        Ok(self.events.iter().filter(|event| event.is_readable()).count())
    }
}

fn is_readable(descriptor: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let timeout = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    let mut fds = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    Ok(poll(&mut fds, timeout)? > 0)
}

/// Receives `count` datagrams and until no budget is hit.
fn drained<D: Driver>(wire: &mut Wire<D>, count: usize) -> Outcome {
    let mut waiting = wire.waiting();
    let mut received = 0;
    loop {
        let report = wire.right.driver.recv(1, |_, _| {})?;
        received += report.datagrams;
        if received >= count && !report.budget_hit {
            rest();
            return Ok(());
        }
        waiting.check(|| format!("{received} of {count} datagrams"))?;
    }
}
