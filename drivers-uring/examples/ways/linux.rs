//! The comparison itself.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;
use wraith_drivers::{Driver, Mode, Park};
use wraith_drivers_mio::MioDriver;
use wraith_drivers_uring::{Options, UringDriver, ZeroCopy};
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};

const PORT: u16 = 4433;
/// How long one run sends.
const RUN: Duration = Duration::from_millis(700);
/// After this much silence nothing is on its way any more.
const QUIET: Duration = Duration::from_millis(100);
/// How soon to look again at what another thread sends.
const SOON: Duration = Duration::from_micros(50);
/// Addresses that the receiver answers to.
const PEERS: u8 = 64;

/// A way to carry datagrams: its name, and the options of this driver; none is the portable driver.
type Way = (&'static str, Option<Options>);

fn ways() -> Vec<Way> {
    let plain = Options::default();
    vec![
        ("mio", None),
        ("uring", Some(plain)),
        ("buffers-1", Some(Options { buffers: 1, ..plain })),
        ("buffers-2", Some(Options { buffers: 2, ..plain })),
        ("buffers-4", Some(Options { buffers: 4, ..plain })),
        ("buffers-16", Some(Options { buffers: 16, ..plain })),
        ("buffers-64", Some(Options { buffers: 64, ..plain })),
        ("zero-copy", Some(Options { zero_copy: ZeroCopy::Always, slots: 16, ..plain })),
        ("poll-thread", Some(Options { poll_thread: Some(Duration::from_millis(20)), ..plain })),
        ("busy-poll", Some(Options { busy_poll: Some(Duration::from_micros(50)), ..plain })),
    ]
}

/// What is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Load {
    /// In one thread: a flush of datagrams of 1,472 bytes to one peer, joined by segmentation offload, is received
    /// before the next.
    Bulk,
    /// In one thread: a flush of one datagram of 100 bytes to each of 64 peers is received before the next.
    Singles,
    /// Between two threads: one datagram of 100 bytes there and back.
    Rounds,
}

impl Load {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// Datagrams that arrived, or round trips.
    count: u64,
    /// Processor time of the whole process, the kernel's threads included.
    cpu: Duration,
    time: Duration,
    mode: Option<Mode>,
}

pub(super) fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let veth = take(&mut arguments, "--veth").is_some();
    let pairs = take(&mut arguments, "--pairs")
        .map_or(7, |at| arguments.remove(at).parse().unwrap_or_else(|_| usage("--pairs takes a number")));
    let only = take(&mut arguments, "--load").map(|at| arguments.remove(at));
    let known = ways();
    if let Some(unknown) = arguments.iter().find(|name| !known.iter().any(|way| way.0 == **name)) {
        usage(&format!("no way is called {unknown}"));
    }
    let wanted =
        |way: &&Way| way.0 != "mio" && (arguments.is_empty() || arguments.iter().any(|name| name == way.0));
    println!(
        "{:12} {:8} {:>6} {:>12} {:>10} {:>10}",
        "way", "load", "mode", "per second", "cpu ratio", "time ratio"
    );
    for way in known.iter().filter(wanted) {
        for load in [Load::Bulk, Load::Singles, Load::Rounds] {
            if only.as_ref().is_some_and(|only| *only != load.name()) {
                continue;
            }
            compare(&known[0], way, load, pairs, veth);
        }
    }
}

/// Removes an option, and tells where its value stands.
fn take(arguments: &mut Vec<String>, name: &str) -> Option<usize> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.remove(at);
    Some(at)
}

fn usage(message: &str) -> ! {
    let names: Vec<_> = ways().iter().skip(1).map(|way| way.0).collect();
    eprintln!("{message}; options: --veth, --pairs N, --load NAME; ways: {}", names.join(", "));
    std::process::exit(2);
}

/// Runs the portable driver and a way in turn and prints the medians.
fn compare(base: &Way, way: &Way, load: Load, pairs: usize, veth: bool) {
    let (mut cpu, mut time, mut rate) = (Vec::new(), Vec::new(), Vec::new());
    let mut mode = None;
    for _ in 0..pairs {
        let [ours, theirs] = [base, way].map(|way| run(way, load, veth));
        cpu.push(theirs.each(theirs.cpu) / ours.each(ours.cpu));
        time.push(theirs.each(theirs.time) / ours.each(ours.time));
        rate.push(1.0 / theirs.each(theirs.time));
        mode = theirs.mode;
    }
    let mode = if mode == Some(Mode::UringZeroCopy) { "zc" } else { "copy" };
    println!(
        "{:12} {:8} {mode:>6} {:>12.0} {:>10.3} {:>10.3}",
        way.0,
        load.name(),
        median(&mut rate),
        median(&mut cpu),
        median(&mut time)
    );
}

impl Taken {
    /// Seconds for each datagram.
    fn each(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.count.max(1) as f64
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One run: a thread that sends and one that receives.
fn run(way: &Way, load: Load, veth: bool) -> Taken {
    let options = way.1;
    match options {
        None => two_ends(load, veth, |addr| MioDriver::bind(addr, &wraith_drivers_mio::Options::default())),
        Some(options) => two_ends(load, veth, move |addr| Ok(UringDriver::bind(addr, &options)?)),
    }
}

fn two_ends<D: Park + Send>(
    load: Load,
    veth: bool,
    bind: impl Fn(SocketAddr) -> std::io::Result<D> + Send + Copy,
) -> Taken {
    let (mut here, mut there) = UnixStream::pair().expect("a socket pair");
    let peer = if veth { Ipv4Addr::new(10, 78, 0, 2) } else { Ipv4Addr::new(127, 0, 0, 2) };
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            if veth {
                make_right_host(&mut there);
            }
            let mut driver =
                bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT))).expect("the receiver's driver");
            there.write_all(&[0]).expect("the sender waits");
            if load == Load::Rounds {
                answer(&mut driver);
                return None;
            }
            Some(driver)
        });
        if veth {
            make_left_host(&mut here);
        }
        here.read_exact(&mut [0]).expect("the receiver is ready");
        let mut driver = bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).expect("the sender's driver");
        let to = SocketAddr::from((peer, PORT));
        let mut receiver = Some(receiver)
            .filter(|_| load != Load::Rounds)
            .map(|thread| thread.join().expect("the receiver ends well").expect("its driver"));
        let (began, cpu) = (driver.now(), processor_time());
        let count = match &mut receiver {
            Some(receiver) if load == Load::Bulk => carry(&mut driver, receiver, &[to], 1472),
            Some(receiver) => carry(&mut driver, receiver, &peers(peer), 100),
            None => ask(&mut driver, to),
        };
        let (time, cpu) = (driver.now().saturating_since(began), processor_time().saturating_sub(cpu));
        Taken { count, cpu, time, mode: Some(driver.caps().mode) }
    })
}

fn peers(first: Ipv4Addr) -> Vec<SocketAddr> {
    let [a, b, c, d] = first.octets();
    (0..PEERS).map(|peer| SocketAddr::from((Ipv4Addr::new(a, b, c, d + peer), PORT))).collect()
}

/// Sends rounds of datagrams to all of `to`, a full slot to a single one and else one to each, and receives each
/// round before the next. Returns how many were received.
fn carry<D: Park>(driver: &mut D, receiver: &mut D, to: &[SocketAddr], len: usize) -> u64 {
    let until = driver.now().saturating_add(RUN);
    let (mut sent, mut received) = (0, 0);
    while driver.now() < until {
        for next in 0..if to.len() == 1 { usize::MAX } else { to.len() } {
            let meta = TxMeta { to: to[next % to.len()], from: None, via: Via(0), ecn: Ecn::NotEct };
            let Some(room) = driver.tx().reserve(&meta, len) else { break };
            room[..len].fill(1);
            driver.tx().commit(len);
            sent += 1;
        }
        let report = driver.flush().expect("a flush");
        assert_eq!(report.dropped, 0, "nothing is lost on the way");
        let mut waiting = report.in_flight;
        let late = receiver.now().saturating_add(50 * QUIET);
        while received < sent {
            let report = receiver.recv(256, |_, _| received += 1).expect("a receive");
            if report.datagrams == 0 {
                assert!(receiver.now() < late, "{received} of {sent} came");
                // What another thread sends moves on with the next flush.
                let soon = if waiting > 0 { receiver.now().saturating_add(SOON) } else { late };
                receiver.park(Some(soon)).expect("a park");
                waiting = driver.flush().expect("a flush").in_flight;
            }
        }
    }
    received
}

/// Asks and waits for the answer, again and again.
fn ask<D: Park>(driver: &mut D, to: SocketAddr) -> u64 {
    let meta = TxMeta { to, from: None, via: Via(0), ecn: Ecn::NotEct };
    let until = driver.now().saturating_add(RUN);
    let mut rounds = 0;
    while driver.now() < until {
        one(driver, &meta);
        let mut answered = false;
        while !answered {
            driver.recv(16, |_, _| answered = true).expect("a receive");
            if !answered {
                driver.park(Some(until.saturating_add(QUIET))).expect("a park");
                answered = driver.now() > until;
            }
        }
        rounds += 1;
    }
    rounds
}

/// Sends back what arrives until nothing does.
fn answer<D: Park>(driver: &mut D) {
    let mut answered = 0;
    loop {
        let mut from = None;
        driver.recv(16, |meta, _| from = Some(meta.from)).expect("a receive");
        if let Some(to) = from {
            one(driver, &TxMeta { to, from: None, via: Via(0), ecn: Ecn::NotEct });
            answered += 1;
            continue;
        }
        let until = driver.now().saturating_add(if answered == 0 { 50 * QUIET } else { QUIET });
        driver.park(Some(until)).expect("a park");
        if driver.now() >= until {
            return;
        }
    }
}

fn one<D: Driver>(driver: &mut D, meta: &TxMeta) {
    if let Some(room) = driver.tx().reserve(meta, 100) {
        room[..100].fill(1);
        driver.tx().commit(100);
    }
    driver.flush().expect("a flush");
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a clock").into()
}

/// Makes the calling thread a host with one end of a pair of interfaces, which the other host lays.
fn make_right_host(left: &mut UnixStream) {
    unshare(CloneFlags::CLONE_NEWNET).expect("root");
    left.write_all(&gettid().as_raw().to_ne_bytes()).expect("the other host");
    left.read_exact(&mut [0]).expect("the other host");
    for peer in peers(Ipv4Addr::new(10, 78, 0, 2)) {
        ip(&format!("addr add {}/24 dev right", peer.ip()));
    }
    ip("link set right up");
}

/// Makes the calling thread the other host.
fn make_left_host(right: &mut UnixStream) {
    unshare(CloneFlags::CLONE_NEWNET).expect("root");
    let mut thread = [0; 4];
    right.read_exact(&mut thread).expect("the other host");
    ip(&format!("link add left type veth peer name right netns {}", i32::from_ne_bytes(thread)));
    ip(&format!("addr add {}/24 dev left", IpAddr::V4(Ipv4Addr::new(10, 78, 0, 1))));
    ip("link set left up");
    right.write_all(&[0]).expect("the other host");
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status().expect("ip of iproute2");
    assert!(done.success(), "ip {arguments}");
}
