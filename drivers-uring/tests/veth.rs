//! Two hosts on a veth pair: what loopback never does, a socket that is full above all. Only root can make them.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, gettid};
use wraith_drivers::{Driver, Park, TooLong, TxReport, Wake};
use wraith_drivers_uring::{Options, UringDriver};
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};

const LEFT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
const RIGHT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
const RIGHT_LINK: &str = "02:00:0a:4d:00:02";
const PORT: u16 = 4433;
const PATIENCE: Duration = Duration::from_secs(20);

/// Held while a process comes into being: until it is another program it has all descriptors of this one, and a socket that
/// is closed meanwhile keeps its port.
static SPAWNING: Mutex<()> = Mutex::new(());

/// Runs a command with its arguments in one string, and returns what it printed.
fn run(command: &str) -> String {
    let mut words = command.split(' ');
    let mut program = Command::new(words.next().unwrap());
    program.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    let spawning = SPAWNING.lock().unwrap();
    let child = program.spawn().unwrap();
    drop(spawning);
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Waits until `left` has noticed that the other end is up: before that it throws away what it is to send.
fn await_link() {
    let until = Instant::now() + PATIENCE;
    while !run("ip -oneline link show dev left").contains("state UP") {
        assert!(Instant::now() < until, "the link stays down");
    }
}

/// Whether hosts can be made here; says why not.
fn can_make_hosts() -> bool {
    let able = Uid::effective().is_root() && Command::new("tc").arg("-V").output().is_ok();
    if !able {
        println!("not run: it takes root, and ip and tc of iproute2");
    }
    able
}

/// Lets one processor take all that comes to `right` of this thread's network namespace. By default each takes what its
/// own sender left behind, and one that is busy is overtaken: hosts on a veth pair do not keep the order by themselves.
fn keep_order() {
    // A sysfs shows the devices of the namespace that it was mounted in.
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let nothing = None::<&str>;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing).unwrap();
    mount(nothing, "/sys", Some("sysfs"), MsFlags::empty(), nothing).unwrap();
    fs::write("/sys/class/net/right/queues/rx-0/rps_cpus", "1").unwrap();
}

/// Runs `left` and `right` on hosts of their own; `left` sends through a queue of `rate` to the driver of `right`.
fn on_two_hosts(rate: &'static str, left: impl FnOnce() + Send, right: impl FnOnce(UringDriver) + Send) {
    let (mut here, mut there) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            there.write_all(&gettid().as_raw().to_ne_bytes()).unwrap();
            there.read_exact(&mut [0]).unwrap();
            keep_order();
            run("ip addr add 10.77.0.2/24 dev right");
            run("ip link set right up");
            let driver = UringDriver::bind(SocketAddr::new(RIGHT, PORT), &Options::default()).unwrap();
            there.write_all(&[0]).unwrap();
            right(driver);
            // The pair is gone with the first of its hosts.
            let _ = there.read(&mut [0]);
        });
        scope.spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let mut thread = [0; 4];
            here.read_exact(&mut thread).unwrap();
            let thread = i32::from_ne_bytes(thread);
            run(&format!("ip link add left type veth peer name right address {RIGHT_LINK} netns {thread}"));
            run("ip addr add 10.77.0.1/24 dev left");
            run(&format!("tc qdisc add dev left root tbf rate {rate} burst 64k limit 64m"));
            run("ip link set left up");
            // Datagrams that wait for an answer of ARP are overtaken by those that come with it.
            run(&format!("ip neigh add 10.77.0.2 lladdr {RIGHT_LINK} dev left"));
            here.write_all(&[0]).unwrap();
            here.read_exact(&mut [0]).unwrap();
            await_link();
            left();
        });
    });
}

fn number(data: &[u8]) -> u32 {
    u32::from_be_bytes(data[..4].try_into().unwrap())
}

#[test]
fn a_full_socket_keeps_the_order_and_its_room_ends_a_park() {
    const DATAGRAMS: u32 = 3000;
    if !can_make_hosts() {
        return;
    }
    let left = || {
        let options = Options { send_buffer_bytes: 64 << 10, ..Options::default() };
        let mut driver = UringDriver::bind(SocketAddr::new(LEFT, 0), &options).unwrap();
        let to = SocketAddr::new(RIGHT, PORT);
        let (mut committed, mut total, mut parked) = (0, TxReport::default(), 0);
        while total.sent + total.dropped < DATAGRAMS as usize {
            // Lengths go up and down: several sends a flush, all to one destination.
            while committed < DATAGRAMS {
                let len = 200 + (committed as usize * 97) % 1200;
                let meta = TxMeta { to, from: None, via: Via(0), ecn: Ecn::Ect0 };
                let Some(room) = driver.tx().reserve(&meta, len) else { break };
                room[..4].copy_from_slice(&committed.to_be_bytes());
                driver.tx().commit(len);
                committed += 1;
            }
            let report = driver.flush().unwrap();
            total.sent += report.sent;
            total.dropped += report.dropped;
            assert_eq!(total.sent + total.dropped + report.in_flight, committed as usize);
            if report.in_flight > 0 {
                let until = driver.now().saturating_add(PATIENCE);
                assert_eq!(driver.park(Some(until)).unwrap(), Wake::Traffic, "{report:?}");
                parked += 1;
            }
        }
        assert_eq!(total.dropped, 0);
        assert!(parked > 10, "the socket was full {parked} times");
    };
    let right = |mut driver: UringDriver| {
        let mut expected = 0;
        while expected < DATAGRAMS {
            let report = driver
                .recv(64, |meta, data| {
                    assert_eq!((number(data), meta.ecn, meta.to), (expected, Ecn::Ect0, Some(RIGHT)));
                    expected += 1;
                })
                .unwrap();
            if report.datagrams == 0 {
                let until = driver.now().saturating_add(PATIENCE);
                assert_eq!(driver.park(Some(until)).unwrap(), Wake::Traffic, "{expected} came");
            }
        }
    };
    on_two_hosts("100mbit", left, right);
}

#[test]
fn a_driver_ends_at_once_although_its_socket_is_full() {
    if !can_make_hosts() {
        return;
    }
    let left = || {
        let options = Options { send_buffer_bytes: 16 << 10, ..Options::default() };
        let to = SocketAddr::new(RIGHT, PORT);
        let mut addr = SocketAddr::new(LEFT, 0);
        let _no_copies = SPAWNING.lock().unwrap();
        for round in 0..3 {
            let mut driver = UringDriver::bind(addr, &options).unwrap();
            addr = driver.local_addr();
            let meta = TxMeta { to, from: None, via: Via(0), ecn: Ecn::NotEct };
            let mut in_flight = 0;
            while in_flight == 0 {
                while driver.tx().reserve(&meta, 1000).is_some() {
                    driver.tx().commit(1000);
                }
                in_flight = driver.flush().unwrap().in_flight;
            }
            assert!(in_flight > 0, "round {round}");
        }
    };
    on_two_hosts("1mbit", left, drop);
}

#[test]
fn what_the_path_cannot_carry_whole_is_dropped_and_told() {
    if !can_make_hosts() {
        return;
    }
    let left = || {
        let mut driver = UringDriver::bind(SocketAddr::new(LEFT, 0), &Options::default()).unwrap();
        let meta = |ip| TxMeta { to: SocketAddr::new(ip, PORT), from: None, via: Via(0), ecn: Ecn::NotEct };
        let nowhere = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        // Longer than the interface's packets, a host without a route, and one that is there.
        for (ip, len) in [(RIGHT, 1473), (nowhere, 100), (RIGHT, 1472)] {
            driver.tx().reserve(&meta(ip), len).unwrap().fill(1);
            driver.tx().commit(len);
        }
        let report = driver.flush().unwrap();
        assert_eq!((report.sent, report.dropped, report.in_flight), (1, 2, 0));
        let told = |len| Some(TooLong { to: SocketAddr::new(RIGHT, PORT), len });
        assert_eq!(report.too_long, told(1473));
        // The interface comes to carry less. Of a batch in one call each datagram is refused by itself.
        run("ip link set left mtu 1280");
        for len in [1472, 1472, 1253, 1252] {
            driver.tx().reserve(&meta(RIGHT), len).unwrap().fill(2);
            driver.tx().commit(len);
        }
        let report = driver.flush().unwrap();
        assert_eq!((report.sent, report.dropped, report.in_flight), (1, 3, 0));
        assert_eq!(report.too_long, told(1253));
    };
    let right = |mut driver: UringDriver| {
        let until = driver.now().saturating_add(PATIENCE);
        assert_eq!(driver.park(Some(until)).unwrap(), Wake::Traffic);
        let mut lens = Vec::new();
        while lens.len() < 2 {
            let received: io::Result<_> = driver.recv(9, |_, data| lens.push(data.len()));
            if received.unwrap().datagrams == 0 {
                assert_eq!(driver.park(Some(until)).unwrap(), Wake::Traffic, "{lens:?}");
            }
        }
        assert_eq!(lens, [1472, 1252]);
    };
    on_two_hosts("100mbit", left, right);
}
