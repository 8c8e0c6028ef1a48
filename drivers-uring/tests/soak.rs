//! Everything at once, at random: sizes, drops, full rings, truncation, ends at any moment.
//!
//! 100,000 datagrams; with `WRAITH_BUDGET=full` 10 million. Under `AddressSanitizer`:
//! `RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address cargo test -p wraith-drivers-uring --target x86_64-unknown-linux-gnu --test soak`
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use wraith_drivers::{Driver, Park, TxReport, Unpark};
use wraith_drivers_uring::{Options, UringDriver, ZeroCopy};
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};
use wraith_sim::Rng;

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SEED: u64 = 0x5eed_0f51_0ada_7a00;
/// Bytes in front of a datagram's pattern: its number, and its length.
const HEADER: usize = 8;

fn datagrams() -> u64 {
    let full = std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full");
    if full { 10_000_000 } else { 100_000 }
}

/// One end and what it has been through.
struct End {
    driver: UringDriver,
    committed: usize,
    settled: TxReport,
}

/// What the ends have carried.
#[derive(Default, Debug)]
struct Carried {
    committed: u64,
    received: u64,
    truncated: u64,
    dropped: u64,
    ends: u64,
}

fn options(rng: &mut Rng) -> Options {
    Options {
        recv_buffer_bytes: 1 << (14 + rng.below(9)),
        send_buffer_bytes: 1 << (14 + rng.below(9)),
        gso: rng.chance(800_000),
        gro: rng.chance(700_000),
        slot_bytes: [2000, 20_000, 64 << 10][rng.below(3) as usize],
        slots: 1 + rng.below(4) as usize,
        buffer_bytes: [600, 3000, 64 << 10, 64 << 10][rng.below(4) as usize],
        buffers: 1 << rng.below(5),
        zero_copy: [ZeroCopy::Never, ZeroCopy::UntilCopied, ZeroCopy::Always][rng.below(3) as usize],
        // A thread of the kernel competes with us for the processor, so it is not the rule.
        poll_thread: rng.chance(10_000).then_some(Duration::from_millis(1)),
        busy_poll: None,
    }
}

impl End {
    fn bind(rng: &mut Rng, addr: SocketAddr) -> Self {
        let driver = UringDriver::bind(addr, &options(rng)).unwrap();
        Self { driver, committed: 0, settled: TxReport::default() }
    }

    /// Commits a few datagrams, some of which can never arrive, and flushes now and then.
    fn send(&mut self, rng: &mut Rng, to: SocketAddr) {
        for _ in 0..rng.below(60) {
            let to = match rng.below(40) {
                0 => SocketAddr::new(V4, 9),
                1 => SocketAddr::new(IpAddr::V4(Ipv4Addr::new(240, 0, 0, 1)), 9),
                _ => to,
            };
            let ecn = if rng.chance(100_000) { Ecn::Ce } else { Ecn::Ect0 };
            let from = rng.chance(50_000).then_some(V4);
            let len = match rng.below(20) {
                0 => 0,
                1 => rng.below(65_536) as usize,
                2..8 => rng.below(3000) as usize,
                _ => 1200,
            };
            let meta = TxMeta { to, from, via: Via(0), ecn };
            let Some(room) = self.driver.tx().reserve(&meta, len) else { break };
            assert_eq!(room.len(), len);
            // A reservation may be left, or shrink.
            if rng.chance(20_000) {
                continue;
            }
            let len = if rng.chance(50_000) { len / 2 } else { len };
            write(&mut room[..len], self.committed as u32);
            self.driver.tx().commit(len);
            self.committed += 1;
        }
        if rng.chance(900_000) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let report = self.driver.flush().unwrap();
        self.settled.sent += report.sent;
        self.settled.dropped += report.dropped;
        assert_eq!(self.settled.sent + self.settled.dropped + report.in_flight, self.committed);
    }

    /// Receives a few datagrams and looks at every byte.
    fn receive(&mut self, rng: &mut Rng, carried: &mut Carried) {
        let budget = rng.below(200) as usize;
        let mut lent = 0;
        let report = self
            .driver
            .recv(budget, |meta, data| {
                lent += 1;
                assert!(meta.from.ip().is_loopback() && meta.to == Some(V4), "{meta:?}");
                check(data);
                // The buffer is ours for the call.
                data.fill(0xee);
            })
            .unwrap();
        assert_eq!(report.datagrams, lent);
        assert!(lent <= budget);
        carried.received += lent as u64;
        carried.truncated += report.truncated as u64;
    }

    fn wait(&mut self, rng: &mut Rng) {
        if rng.chance(300_000) {
            self.driver.unparker().unpark().unwrap();
        }
        let until = self.driver.now().saturating_add(rng.up_to(Duration::from_micros(300)));
        self.driver.park(Some(until)).unwrap();
    }
}

/// Fills a datagram with what its number and length say.
fn write(bytes: &mut [u8], number: u32) {
    let len = bytes.len() as u32;
    let Some((header, rest)) = bytes.split_at_mut_checked(HEADER) else { return bytes.fill(0x77) };
    header[..4].copy_from_slice(&number.to_be_bytes());
    header[4..].copy_from_slice(&len.to_be_bytes());
    rest.fill(number as u8);
}

fn check(bytes: &[u8]) {
    let Some((header, rest)) = bytes.split_at_checked(HEADER) else {
        return assert!(bytes.iter().all(|byte| *byte == 0x77));
    };
    let number = u32::from_be_bytes(header[..4].try_into().unwrap());
    assert_eq!(header[4..], (bytes.len() as u32).to_be_bytes(), "datagram {number}");
    assert!(rest.iter().all(|byte| *byte == number as u8), "datagram {number} of {} bytes", bytes.len());
}

/// Runs two ends against each other, and ends one of them now and then, whatever it is at.
fn run(seed: u64, datagrams: u64) -> Carried {
    let mut rng = Rng::new(seed);
    let mut carried = Carried::default();
    let mut ends = [0, 0].map(|_| End::bind(&mut rng, SocketAddr::new(V4, 0)));
    while carried.committed < datagrams {
        let addrs = ends.each_ref().map(|end| end.driver.local_addr());
        for (end, peer) in [(0, 1), (1, 0)] {
            ends[end].send(&mut rng, addrs[peer]);
            if rng.chance(700_000) {
                ends[end].receive(&mut rng, &mut carried);
            }
            if rng.chance(50_000) {
                ends[end].wait(&mut rng);
            }
            if rng.chance(2000) {
                let [committed, dropped] = [ends[end].committed, ends[end].settled.dropped];
                carried.committed += committed as u64;
                carried.dropped += dropped as u64;
                carried.ends += 1;
                let addr = ends[end].driver.local_addr();
                // The old one goes first, and its port is free at once.
                let [first, second] = ends;
                let (old, kept) = if end == 0 { (first, second) } else { (second, first) };
                drop(old);
                let new = End::bind(&mut rng, addr);
                ends = if end == 0 { [new, kept] } else { [kept, new] };
            }
        }
    }
    carried
}

#[test]
fn whatever_happens_every_datagram_is_whole_and_accounted_for() {
    println!("seed {SEED:#x}");
    let threads: Vec<_> = [SEED, SEED + 1]
        .map(|seed| std::thread::spawn(move || run(seed, datagrams() / 2)))
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    for carried in threads {
        println!("{carried:?}");
        assert!(carried.received > carried.committed / 10, "most of the time somebody listens");
        assert!(carried.truncated > 0 && carried.dropped > 0 && carried.ends > 1, "{carried:?}");
    }
}
