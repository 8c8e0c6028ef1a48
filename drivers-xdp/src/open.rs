//! Opening a driver: what is tried, in which order, and what held it back.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use wraith_drivers::{Caps, Family, Limit, Mode};
use wraith_proto::MIN_DATAGRAM;

use crate::companion::Companion;
use crate::driver::Link;
use crate::hops::Hops;
use crate::netlink::{Interface, Tables};
use crate::options::{Attach, Copies, Options};
use crate::program::{Filter, Program};
use crate::refusal::{BindError, Reason, Refusal, Step};
use crate::ring::{self, Receive, Setup, Transmit};
use crate::tx::{PAYLOAD_AT, Tx};
use crate::waker::Waker;
use crate::wire::{self, Checksums};

/// What the kernel keeps free in front of a received frame (`XDP_PACKET_HEADROOM`, `linux/bpf.h`).
const HEADROOM: u32 = 256;
/// The sizes that a chunk may have: from the smallest to a page.
const SMALL_CHUNK: u32 = 2048;
const LARGE_CHUNK: u32 = 4096;
/// Most frames to receive into, and most to send from.
const MOST: u32 = 1 << 16;
/// Packets that the kernel takes in one call. It counts 32 if nobody asks for more.
const KICK_BUDGET: u32 = 256;

/// The parts of a driver.
pub(crate) struct Opened {
    pub(crate) tx: Tx,
    pub(crate) receive: Receive,
    pub(crate) companion: Companion,
    pub(crate) hops: Hops,
    pub(crate) link: Link,
    pub(crate) waker: Waker,
    pub(crate) caps: Caps,
    pub(crate) zero_copy: bool,
    pub(crate) checksums: Checksums,
    pub(crate) steering: Steering,
}

/// The filter of all queues of a driver.
pub(crate) type Steering = Arc<Mutex<Program>>;

/// Opens `queues` queues.
pub(crate) fn open(addr: SocketAddr, options: &Options, queues: u32) -> Result<Vec<Opened>, BindError> {
    let interface = Tables::open()?.interface(&options.interface)?;
    if !interface.up {
        return Err(Refusal { step: Step::Interface, reason: Reason::Down }.into());
    }
    let mut companions = Vec::new();
    let mut addr = addr;
    for _ in 0..queues {
        let companion = Companion::bind(addr, queues > 1)?;
        addr.set_port(companion.local_addr().port());
        companions.push(companion);
    }
    let Some(first) = companions.first() else { return Ok(Vec::new()) };
    if max_datagram(first, &interface) < usize::from(MIN_DATAGRAM) {
        return Err(Refusal { step: Step::Interface, reason: Reason::Invalid }.into());
    }
    let filter = filter(first, &interface)?;
    let (program, native) = attach(&filter, &interface, options.attach)?;
    let steering = Arc::new(Mutex::new(program));
    let queues = (options.queue..).zip(companions);
    queues
        .map(|(queue, companion)| open_queue(queue, companion, &interface, options, native, &steering))
        .collect()
}

/// What the filter takes: datagrams to the port, at the address or at all of the device's.
fn filter(companion: &Companion, interface: &Interface) -> Result<Filter, BindError> {
    let local = companion.local_addr();
    let owned = interface.addresses.iter().map(|&(ip, _)| ip);
    let addresses: Vec<IpAddr> = if local.ip().is_unspecified() {
        owned.filter(|ip| companion.family() == Family::Dual || ip.is_ipv4() == local.is_ipv4()).collect()
    } else {
        owned.filter(|&ip| ip == local.ip()).collect()
    };
    if addresses.is_empty() {
        return Err(io::Error::from(io::ErrorKind::AddrNotAvailable).into());
    }
    let longest = interface.mtu as usize + wire::ETHERNET_HEADER + 8 - wire::IPV4_HEADERS;
    Ok(Filter { mac: interface.mac, port: local.port(), addresses, longest: longest as u16 })
}

/// Loads the filter and attaches it, and says whether it stands in the device's driver.
fn attach(filter: &Filter, interface: &Interface, wish: Attach) -> Result<(Program, bool), Refusal> {
    let mut program = Program::load(filter, interface.rx_queues.max(1))?;
    match wish {
        Attach::Native => program.attach(interface.index, true).map(|()| true),
        Attach::Generic => program.attach(interface.index, false).map(|()| false),
        Attach::Best => match program.attach(interface.index, true) {
            Ok(()) => Ok(true),
            // Neither would be any better behind the driver.
            Err(refusal) if matches!(refusal.reason, Reason::Forbidden | Reason::Busy) => Err(refusal),
            Err(_) => program.attach(interface.index, false).map(|()| false),
        },
    }
    .map(|native| (program, native))
}

fn open_queue(
    queue: u32,
    companion: Companion,
    interface: &Interface,
    options: &Options,
    native: bool,
    steering: &Steering,
) -> Result<Opened, BindError> {
    let setup = setup(queue, interface, options);
    let (transmit, receive, zero_copy) = open_rings(&setup, options.copies, native)?;
    // Older systems take 32 packets a call and no more.
    let _ = transmit.set_budget(KICK_BUDGET);
    let mut program = steering.lock().unwrap_or_else(PoisonError::into_inner);
    program.steer(queue, transmit.as_fd())?;
    drop(program);
    let local = companion.local_addr();
    let ip = Some(local.ip()).filter(|ip| !ip.is_unspecified());
    let link = Link { mac: interface.mac, index: interface.index, port: local.port(), ip };
    let mtu = interface.mtu as usize;
    Ok(Opened {
        waker: Waker::new()?,
        tx: Tx::new(transmit, mtu),
        receive,
        hops: Hops::new(interface, Tables::open()?),
        caps: caps(&setup, &companion, interface, options, native, zero_copy),
        companion,
        link,
        zero_copy,
        checksums: options.checksums,
        steering: Arc::clone(steering),
    })
}

/// How the memory is cut for packets of the device's MTU.
fn setup(queue: u32, interface: &Interface, options: &Options) -> Setup {
    let frame = interface.mtu + wire::ETHERNET_HEADER as u32;
    let slot = interface.mtu + PAYLOAD_AT as u32;
    let chunk_bytes = if frame.max(slot) + HEADROOM <= SMALL_CHUNK { SMALL_CHUNK } else { LARGE_CHUNK };
    let slot_chunks = slot.div_ceil(chunk_bytes);
    Setup {
        interface: interface.name.clone(),
        queue,
        chunk_bytes,
        receive_chunks: options.receive_frames.clamp(1, MOST).next_power_of_two(),
        slots: options.slots.clamp(1, MOST).next_power_of_two(),
        slot_chunks,
        zero_copy: false,
        several_chunks: slot_chunks > 1 || frame + HEADROOM > chunk_bytes,
    }
}

/// Opens the rings, without copies where that is wished and can be.
fn open_rings(setup: &Setup, wish: Copies, native: bool) -> Result<(Transmit, Receive, bool), Refusal> {
    let with = |zero_copy| {
        let setup = Setup { zero_copy, ..setup.clone() };
        ring::open(&setup).map(|(transmit, receive)| (transmit, receive, zero_copy))
    };
    match wish {
        Copies::Never => with(true),
        Copies::Always => with(false),
        // The generic hook has copies alone.
        Copies::Best if !native => with(false),
        Copies::Best => match with(true) {
            Err(refusal) if matches!(refusal.reason, Reason::Forbidden | Reason::Memory | Reason::Down) => {
                Err(refusal)
            }
            Err(_) => with(false),
            opened => opened,
        },
    }
}

/// The longest datagram that a frame of the device carries.
fn max_datagram(companion: &Companion, interface: &Interface) -> usize {
    let headers = if companion.family() == Family::V6 { wire::IPV6_HEADERS } else { wire::IPV4_HEADERS };
    (interface.mtu as usize).saturating_sub(headers - wire::ETHERNET_HEADER)
}

fn caps(
    setup: &Setup,
    companion: &Companion,
    interface: &Interface,
    options: &Options,
    native: bool,
    zero_copy: bool,
) -> Caps {
    let max_datagram = max_datagram(companion, interface);
    let mut caps = Caps::new(Mode::Xdp { zero_copy, native }, max_datagram, setup.slots as usize);
    let asked = (!native && options.attach == Attach::Generic) || options.copies == Copies::Always;
    caps.limited_by = match (native, zero_copy) {
        (true, true) => None,
        _ if asked => Some(Limit::Options),
        _ => Some(Limit::Device),
    };
    caps.ecn = true;
    caps.local_ip = true;
    caps.dont_fragment = true;
    caps
}
