//! What a driver asks of the tables.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use nix::sys::socket::SockProtocol;

use super::lookups::not_asked_for;
use super::socket::Socket;
use crate::refusal::{Reason, Refusal, Step};
use crate::wire::Mac;

/// Names of devices are shorter (`IFNAMSIZ`).
const MAX_NAME_BYTES: usize = 15;

/// The longest packet of IPv4. IPv6's may be 40 bytes longer, and devices without a line claim more than either.
const IP_MOST: u32 = 65_535;

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
            LinkAttribute::Mtu(mtu) => interface.mtu = (*mtu).min(IP_MOST),
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
