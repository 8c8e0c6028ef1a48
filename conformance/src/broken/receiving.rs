//! Faults of receiving.

use std::io;
use std::net::{IpAddr, SocketAddr};

use wraith_drivers::{Caps, Driver, RxReport};
use wraith_proto::{Ecn, RxMeta};

use super::{Fault, Lend};

/// Lends everything there is.
#[derive(Debug, Default)]
pub struct IgnoresBudget;

impl<D: Driver> Fault<D> for IgnoresBudget {
    fn recv(&mut self, inner: &mut D, _: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        inner.recv(usize::MAX, lend)
    }
}

/// Never says that there may be more.
#[derive(Debug, Default)]
pub struct HidesSpentBudget;

impl<D: Driver> Fault<D> for HidesSpentBudget {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        let report = inner.recv(budget, lend)?;
        Ok(RxReport { budget_hit: false, ..report })
    }
}

/// Always says that there may be more.
#[derive(Debug, Default)]
pub struct AlwaysHasMore;

impl<D: Driver> Fault<D> for AlwaysHasMore {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        let report = inner.recv(budget, lend)?;
        Ok(RxReport { budget_hit: true, ..report })
    }
}

/// Reports every datagram once more than it lends it.
#[derive(Debug, Default)]
pub struct Miscounts;

impl<D: Driver> Fault<D> for Miscounts {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        let report = inner.recv(budget, lend)?;
        Ok(RxReport { datagrams: 2 * report.datagrams, ..report })
    }
}

/// Claims that the system joins datagrams, and lends two equal ones as one.
#[derive(Debug, Default)]
pub struct LendsJoined {
    held: Option<(RxMeta, Vec<u8>)>,
}

impl<D: Driver> Fault<D> for LendsJoined {
    fn caps(&self, mut caps: Caps) -> Caps {
        caps.rx_segments = 16;
        caps
    }

    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        let held = &mut self.held;
        let mut lent = 0;
        let mut report = inner.recv(budget, |meta, data| {
            let Some((first, mut joined)) = held.take() else {
                *held = Some((*meta, data.to_vec()));
                return;
            };
            if joined.len() == data.len() {
                joined.extend_from_slice(data);
            } else {
                lend(&first, &mut joined);
                lent += 1;
                joined = data.to_vec();
            }
            lend(meta, &mut joined);
            lent += 1;
        })?;
        if let Some((meta, mut data)) = held.take() {
            lend(&meta, &mut data);
            lent += 1;
        }
        report.datagrams = lent;
        Ok(report)
    }
}

/// Lends slices that share their first and last byte.
#[derive(Debug, Default)]
pub struct OverlapsSlices {
    last: Option<(u8, u8)>,
}

impl<D: Driver> Fault<D> for OverlapsSlices {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        let last = &mut self.last;
        inner.recv(budget, |meta, data| {
            // What the caller wrote into the byte shows in the next datagram.
            if let (Some((before, after)), Some(first)) = (last.take(), data.first_mut())
                && before != after
            {
                *first = after;
            }
            let before = data.last().copied();
            lend(meta, data);
            *last = before.zip(data.last().copied());
        })
    }
}

/// Counts no truncated datagram.
#[derive(Debug, Default)]
pub struct HidesTruncation;

impl<D: Driver> Fault<D> for HidesTruncation {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        let report = inner.recv(budget, lend)?;
        Ok(RxReport { truncated: 0, ..report })
    }
}

/// Gives IPv4 addresses as IPv6 ones.
#[derive(Debug, Default)]
pub struct MapsSource;

impl<D: Driver> Fault<D> for MapsSource {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        inner.recv(budget, |meta, data| {
            let ip = match meta.from.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            lend(&RxMeta { from: SocketAddr::new(ip.into(), meta.from.port()), ..*meta }, data);
        })
    }
}

/// Gives a wrong port with every IPv6 address.
#[derive(Debug, Default)]
pub struct GarblesIpv6;

impl<D: Driver> Fault<D> for GarblesIpv6 {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        inner.recv(budget, |meta, data| {
            let mut from = meta.from;
            if from.is_ipv6() {
                from.set_port(0);
            }
            lend(&RxMeta { from, ..*meta }, data);
        })
    }
}

/// Claims local addresses and gives none.
#[derive(Debug, Default)]
pub struct ForgetsDestination;

impl<D: Driver> Fault<D> for ForgetsDestination {
    fn caps(&self, mut caps: Caps) -> Caps {
        caps.local_ip = true;
        caps
    }

    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        inner.recv(budget, |meta, data| lend(&RxMeta { to: None, ..*meta }, data))
    }
}

/// Claims ECN and gives no mark.
#[derive(Debug, Default)]
pub struct ForgetsMarks;

impl<D: Driver> Fault<D> for ForgetsMarks {
    fn caps(&self, mut caps: Caps) -> Caps {
        caps.ecn = true;
        caps
    }

    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        inner.recv(budget, |meta, data| lend(&RxMeta { ecn: Ecn::NotEct, ..*meta }, data))
    }
}

/// Waits 20 ms for what is not there.
#[derive(Debug, Default)]
pub struct BlocksOnEmpty;

impl<D: Driver> Fault<D> for BlocksOnEmpty {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        let report = inner.recv(budget, lend)?;
        if report.datagrams == 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(report)
    }
}

/// Passes over empty datagrams.
#[derive(Debug, Default)]
pub struct SkipsEmpty;

impl<D: Driver> Fault<D> for SkipsEmpty {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        let mut skipped = 0;
        let mut report = inner.recv(budget, |meta, data| {
            if data.is_empty() {
                skipped += 1;
            } else {
                lend(meta, data);
            }
        })?;
        report.datagrams -= skipped;
        Ok(report)
    }
}

/// Fails where there was nothing for ten calls, as a socket does whose peer refuses.
#[derive(Debug, Default)]
pub struct FailsOnSilence {
    silent: u32,
}

impl<D: Driver> Fault<D> for FailsOnSilence {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        let report = inner.recv(budget, lend)?;
        self.silent = if report.datagrams == 0 { self.silent + 1 } else { 0 };
        if self.silent >= 10 { Err(io::ErrorKind::ConnectionRefused.into()) } else { Ok(report) }
    }
}

/// Changes the last byte of every hundredth datagram.
#[derive(Debug, Default)]
pub struct Corrupts {
    received: u32,
}

impl<D: Driver> Fault<D> for Corrupts {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        let received = &mut self.received;
        inner.recv(budget, |meta, data| {
            *received += 1;
            if received.is_multiple_of(100)
                && let Some(byte) = data.last_mut()
            {
                *byte ^= 1;
            }
            lend(meta, data);
        })
    }
}

/// Allocates for every datagram.
#[derive(Debug, Default)]
pub struct Allocates;

impl<D: Driver> Fault<D> for Allocates {
    fn recv(&mut self, inner: &mut D, budget: usize, lend: &mut Lend<'_>) -> io::Result<RxReport> {
        inner.recv(budget, |meta, data| lend(meta, &mut data.to_vec()))
    }
}
