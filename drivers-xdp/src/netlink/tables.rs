//! What a driver asks of the tables.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType, RouteVia};
use nix::sys::socket::SockProtocol;

use super::family;
use super::socket::Socket;
use crate::refusal::{Reason, Refusal, Step};
use crate::wire::Mac;

/// Names of devices are shorter (`IFNAMSIZ`).
const MAX_NAME_BYTES: usize = 15;

/// How often the table of addresses is read, if it changes each time.
const MAX_TRIES: u32 = 4;

/// A network device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) mac: Mac,
    /// The longest IP packet, in bytes.
    pub(crate) mtu: u32,
    /// Whether it was brought up; its line may be dead all the same.
    pub(crate) up: bool,
    /// Queues that it was made with. Fewer may be in use.
    pub(crate) rx_queues: u32,
    /// The host's addresses on it that may be used, with their prefix lengths. One that is still tried for duplicates is not.
    pub(crate) addresses: Vec<(IpAddr, u8)>,
}

/// How the kernel would send a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    /// The index of the device that it leaves by.
    pub(crate) interface: u32,
    /// The next hop: the gateway, or the destination itself. A gateway may be of the other family (RFC 5549).
    pub(crate) next: IpAddr,
    /// The source address that it would carry.
    pub(crate) source: Option<IpAddr>,
    /// Whether the packet leaves as it is for one neighbour. Not so: the host itself, broadcast, multicast, a tunnel of the
    /// route's, a black hole.
    pub(crate) direct: bool,
}

/// A neighbour whose link address the kernel would use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Neighbour {
    pub(crate) mac: Mac,
    /// Nothing was heard of it for long. When the kernel sends to it next, it asks whether it is still there.
    pub(crate) stale: bool,
}

/// The kernel's tables, of the network namespace of the thread that opened them.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(super) socket: Socket,
}

impl Tables {
    pub(crate) fn open() -> Result<Self, Refusal> {
        match Socket::open(SockProtocol::NetlinkRoute, 0) {
            Ok(socket) => Ok(Self { socket }),
            Err(error) => Err(Refusal::new(Step::Tables, &error)),
        }
    }

    /// The device of that name, as it is now. Reads the table of addresses as well: not for the path of packets.
    pub(crate) fn interface(&mut self, name: &str) -> Result<Interface, Refusal> {
        let refusal = |error: &io::Error| Refusal::new(Step::Interface, error);
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains('\0') {
            return Err(Refusal { step: Step::Interface, reason: Reason::Missing });
        }
        let mut request = LinkMessage::default();
        request.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let answer =
            self.socket.ask(RouteNetlinkMessage::GetLink(request)).map_err(|error| refusal(&error))?;
        let RouteNetlinkMessage::NewLink(link) = answer else { return Err(refusal(&not_asked_for())) };
        let mut interface = interface(&link)?;
        interface.addresses = self.addresses(interface.index).map_err(|error| refusal(&error))?;
        Ok(interface)
    }

    /// How the kernel would send a packet to `to`, with the source `from` if there is one already. A link-local `to` means
    /// nothing without the index of its `interface`.
    ///
    /// # Errors
    /// ENETUNREACH and the like: there is no route, or `from` is no IPv4 address of this host. EINVAL: a black hole.
    pub(crate) fn route(
        &mut self,
        to: IpAddr,
        from: Option<IpAddr>,
        interface: Option<u32>,
    ) -> io::Result<Route> {
        let mut request = RouteMessage::default();
        request.header.address_family = family(to);
        request.header.destination_prefix_length = bits(to);
        request.attributes.push(RouteAttribute::Destination(to.into()));
        if let Some(from) = from {
            request.header.source_prefix_length = bits(from);
            request.attributes.push(RouteAttribute::Source(from.into()));
        }
        request.attributes.extend(interface.map(RouteAttribute::Oif));
        match self.socket.ask(RouteNetlinkMessage::GetRoute(request))? {
            RouteNetlinkMessage::NewRoute(answer) => route(&answer, to, from),
            _ => Err(not_asked_for()),
        }
    }

    /// A neighbour on a device, if the kernel has a link address that it would use itself. Needs Linux 5.0.
    pub(crate) fn neighbour(&mut self, interface: u32, ip: IpAddr) -> io::Result<Option<Neighbour>> {
        let mut request = NeighbourMessage::default();
        request.header.family = family(ip);
        request.header.ifindex = interface;
        request.attributes.push(NeighbourAttribute::Destination(ip.into()));
        match self.socket.ask(RouteNetlinkMessage::GetNeighbour(request)) {
            Ok(RouteNetlinkMessage::NewNeighbour(answer)) => Ok(neighbour(&answer)),
            Ok(_) => Err(not_asked_for()),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn addresses(&mut self, interface: u32) -> io::Result<Vec<(IpAddr, u8)>> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut addresses = Vec::new();
            let read =
                self.socket.ask_all(RouteNetlinkMessage::GetAddress(AddressMessage::default()), |message| {
                    if let RouteNetlinkMessage::NewAddress(message) = message {
                        addresses.extend(own_address(&message, interface));
                    }
                });
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted && tries < MAX_TRIES => {}
                read => return read.map(|()| addresses),
            }
        }
    }
}

fn interface(link: &LinkMessage) -> Result<Interface, Refusal> {
    let mut interface = Interface {
        index: link.header.index,
        name: String::new(),
        mac: Mac([0; 6]),
        mtu: 0,
        up: link.header.flags.contains(LinkFlags::Up),
        rx_queues: 1,
        addresses: Vec::new(),
    };
    let mut mac = None;
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => interface.name.clone_from(name),
            LinkAttribute::Address(address) => mac = address.as_slice().try_into().ok(),
            LinkAttribute::Mtu(mtu) => interface.mtu = *mtu,
            LinkAttribute::NumRxQueues(queues) => interface.rx_queues = *queues,
            _ => {}
        }
    }
    // Loopback and tunnels have no Ethernet header that a frame could begin with.
    match mac {
        Some(mac) if link.header.link_layer_type == LinkLayerType::Ether => interface.mac = Mac(mac),
        _ => return Err(Refusal { step: Step::Interface, reason: Reason::Unsupported }),
    }
    Ok(interface)
}

/// The host's own address in an entry, if it is the device's and may be used, with its prefix length. On a line from point to
/// point the other one is the far end's.
fn own_address(entry: &AddressMessage, interface: u32) -> Option<(IpAddr, u8)> {
    let unusable = AddressHeaderFlags::Tentative | AddressHeaderFlags::Dadfailed;
    if entry.header.index != interface || entry.header.flags.intersects(unusable) {
        return None;
    }
    let mut own = None;
    for attribute in &entry.attributes {
        match attribute {
            AddressAttribute::Local(ip) => own = Some(*ip),
            AddressAttribute::Address(ip) => own = own.or(Some(*ip)),
            _ => {}
        }
    }
    own.map(|ip| (ip, entry.header.prefix_len))
}

fn route(answer: &RouteMessage, to: IpAddr, from: Option<IpAddr>) -> io::Result<Route> {
    let mut interface = None;
    let mut route =
        Route { interface: 0, next: to, source: from, direct: answer.header.kind == RouteType::Unicast };
    for attribute in &answer.attributes {
        match attribute {
            RouteAttribute::Oif(index) => interface = Some(*index),
            RouteAttribute::Gateway(RouteAddress::Inet(ip)) | RouteAttribute::Via(RouteVia::Inet(ip)) => {
                route.next = IpAddr::V4(*ip);
            }
            RouteAttribute::Gateway(RouteAddress::Inet6(ip)) | RouteAttribute::Via(RouteVia::Inet6(ip)) => {
                route.next = IpAddr::V6(*ip);
            }
            RouteAttribute::PrefSource(RouteAddress::Inet(ip)) => route.source = Some(IpAddr::V4(*ip)),
            RouteAttribute::PrefSource(RouteAddress::Inet6(ip)) => route.source = Some(IpAddr::V6(*ip)),
            // The packet would be wrapped, or go to something that is no IP host.
            RouteAttribute::EncapType(_) | RouteAttribute::Gateway(_) | RouteAttribute::Via(_) => {
                route.direct = false;
            }
            _ => {}
        }
    }
    route.interface = interface.ok_or_else(not_asked_for)?;
    Ok(route)
}

fn neighbour(answer: &NeighbourMessage) -> Option<Neighbour> {
    let stale = match answer.header.state {
        NeighbourState::Stale => true,
        NeighbourState::Reachable
        | NeighbourState::Delay
        | NeighbourState::Probe
        | NeighbourState::Noarp
        | NeighbourState::Permanent => false,
        _ => return None,
    };
    let address = answer.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(address) => address.as_slice().try_into().ok(),
        _ => None,
    });
    address.map(|mac| Neighbour { mac: Mac(mac), stale })
}

fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn not_asked_for() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an answer to another question")
}
