//! Two hosts inside this process: network namespaces of two threads, joined by a pair of devices.
//!
//! Nothing outside sees them, and nothing is left of them: a namespace ends with its last thread and socket, however the
//! process ends, and its devices with it.

mod threaded;

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};

use crate::netlink::generic::turn_on;
use crate::netlink::make::{End, Maker};
use crate::wire::Mac;

/// The index of a namespace's loopback device.
const LOOPBACK: u32 = 1;

/// The kernel needs some milliseconds; a machine under load needs longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the pair shall be like.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The longest IP packet, in bytes; 1,500 by default, up to 65,535.
    pub mtu: u32,
    /// Queues of each device in each direction; 1 by default.
    pub queues: u32,
    /// Whether each side knows the other's link addresses from the start, so that no packet waits for them; so by default.
    pub neighbours: bool,
    /// Whether the devices join received segments (GRO); not by default, as the kernel's are made.
    pub gro: bool,
    /// Whether each queue is worked on by a thread of the kernel's own, on any processor, instead of where its packets were
    /// sent; not by default. It takes GRO, and turns it on.
    pub threaded_napi: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { mtu: 1500, queues: 1, neighbours: true, gro: false, threaded_napi: false }
    }
}

/// Two hosts on one line. They and their devices are gone when it is dropped; what runs on them is waited for.
#[derive(Debug)]
pub struct Veth {
    left: Side,
    right: Side,
}

/// One of the two hosts.
#[derive(Debug)]
pub struct Side {
    interface: &'static str,
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
    mac: Mac,
    host: Host,
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread in a network namespace of its own, and the work that it is given.
#[derive(Debug)]
struct Host {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    namespace: File,
}

impl Veth {
    /// Makes both hosts, and waits until packets go between them.
    ///
    /// # Errors
    /// `PermissionDenied` without `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`; what else the system refuses, such as an MTU.
    pub fn new(options: &Options) -> io::Result<Self> {
        let veth = Self { left: Side::new(1)?, right: Side::new(2)? };
        let (left, right) = (veth.left.end(options), veth.right.end(options));
        let there = veth.right.host.namespace.try_clone()?;
        veth.left.run(move || Maker::open()?.veth(left, right, &there))?;
        veth.left.bring_up(&veth.right, options)?;
        veth.right.bring_up(&veth.left, options)?;
        veth.left.await_readiness()?;
        veth.right.await_readiness()?;
        Ok(veth)
    }

    /// The host `10.77.0.1`, `fd77::1`, on `wraith0`.
    pub fn left(&self) -> &Side {
        &self.left
    }

    /// The host `10.77.0.2`, `fd77::2`, on `wraith1`.
    pub fn right(&self) -> &Side {
        &self.right
    }
}

impl Drop for Veth {
    /// Takes the devices away at once, even if a socket that left its thread keeps a namespace.
    fn drop(&mut self) {
        let name = self.left.interface;
        // An error: they were not made, or somebody removed them.
        let _: io::Result<()> = self.left.run(move || {
            let mut maker = Maker::open()?;
            let index = maker.index(name)?;
            maker.remove(index)
        });
    }
}

impl Side {
    fn new(number: u8) -> io::Result<Self> {
        let interface = if number == 1 { "wraith0" } else { "wraith1" };
        Ok(Self {
            interface,
            ipv4: Ipv4Addr::new(10, 77, 0, number),
            ipv6: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, number.into()),
            // Locally administered (IEEE 802).
            mac: Mac([0x02, 0x77, 0, 0, 0, number]),
            host: Host::new(interface)?,
        })
    }

    /// The name of its device.
    pub fn interface(&self) -> &str {
        self.interface
    }

    /// Its IPv4 address, in a network of 24 bits.
    pub fn ipv4(&self) -> Ipv4Addr {
        self.ipv4
    }

    /// Its IPv6 address, in a network of 64 bits.
    pub fn ipv6(&self) -> Ipv6Addr {
        self.ipv6
    }

    /// The link address of its device.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Its network namespace, for `setns` and `nsenter`. A child process is in it already if `run` starts it.
    pub fn namespace(&self) -> &File {
        &self.host.namespace
    }

    /// Runs `work` on the thread of this host, after what was given to it before, and gives its result. Sockets that it opens
    /// belong to the host for good, threads and processes that it starts as well.
    ///
    /// # Panics
    /// As `work` does.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (give, take) = mpsc::channel();
        self.host.give(Box::new(move || {
            // Whoever waits for it is in `take.recv()`.
            let _ = give.send(panic::catch_unwind(AssertUnwindSafe(work)));
        }));
        match take.recv().expect("a host outlives its work") {
            Ok(result) => result,
            Err(payload) => panic::resume_unwind(payload),
        }
    }

    fn end(&self, options: &Options) -> End {
        End { name: self.interface, mac: self.mac, mtu: options.mtu, queues: options.queues }
    }

    fn bring_up(&self, other: &Side, options: &Options) -> io::Result<()> {
        let own = [(IpAddr::V4(self.ipv4), 24), (IpAddr::V6(self.ipv6), 64)];
        let (name, mac, options) = (self.interface, other.mac, options.clone());
        let others = [IpAddr::V4(other.ipv4), IpAddr::V6(other.ipv6)];
        self.run(move || {
            let mut maker = Maker::open()?;
            let index = maker.index(name)?;
            maker.no_own_addresses(index)?;
            maker.up(LOOPBACK)?;
            maker.up(index)?;
            for (ip, prefix_len) in own {
                maker.address(index, ip, prefix_len)?;
            }
            for ip in others.into_iter().filter(|_| options.neighbours) {
                maker.neighbour(index, ip, mac)?;
            }
            if options.gro || options.threaded_napi {
                turn_on(name, "rx-gro")?;
            }
            if options.threaded_napi {
                threaded::turn_on(name)?;
            }
            Ok(())
        })
    }

    fn await_readiness(&self) -> io::Result<()> {
        let (name, own) = (self.interface, [IpAddr::V4(self.ipv4), IpAddr::V6(self.ipv6)]);
        self.run(move || {
            let mut maker = Maker::open()?;
            let index = maker.index(name)?;
            maker.await_readiness(index, &own, PATIENCE)
        })
    }
}

impl Host {
    fn new(name: &str) -> io::Result<Self> {
        let (jobs, to_do) = mpsc::channel::<Job>();
        let (give, take) = mpsc::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let namespace = own_namespace();
            let there = namespace.is_ok();
            if give.send(namespace).is_ok() && there {
                for job in to_do {
                    job();
                }
            }
        })?;
        let namespace = take.recv().expect("the thread says how it went")?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), namespace })
    }

    fn give(&self, job: Job) {
        let jobs = self.jobs.as_ref().expect("a host takes work until it is dropped");
        jobs.send(job).expect("its thread lives as long, for no work ends it");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.jobs = None;
        // It caught what its work threw.
        self.thread.take().map(JoinHandle::join);
    }
}

/// Moves this thread, and it alone, into a network namespace of its own.
fn own_namespace() -> io::Result<File> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    File::open("/proc/thread-self/ns/net")
}

#[cfg(test)]
pub(crate) mod tests;
