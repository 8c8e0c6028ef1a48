//! Making a pair of devices, for hosts inside this process.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags,
    LinkInfo, LinkMessage, State,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use nix::sys::socket::SockProtocol;

use super::socket::Socket;
use super::{Tables, family};
use crate::wire::Mac;

/// Announcements about devices and IPv6 routes (`RTMGRP_LINK`, `RTMGRP_IPV6_ROUTE`).
const GROUPS: u32 = 0x001 | 0x400;

/// One end of a pair to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) name: &'static str,
    pub(crate) mac: Mac,
    pub(crate) mtu: u32,
    pub(crate) queues: u32,
}

/// Changes the tables, of the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Maker {
    tables: Tables,
    announcements: Socket,
}

impl Maker {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            tables: Tables { socket: Socket::open(SockProtocol::NetlinkRoute, 0)? },
            announcements: Socket::open(SockProtocol::NetlinkRoute, GROUPS)?,
        })
    }

    /// Makes a pair of devices, `here` in this namespace and `there` in another one.
    pub(crate) fn veth(&mut self, here: End, there: End, namespace: &File) -> io::Result<()> {
        let mut peer = end(there);
        peer.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        let mut link = end(here);
        let data = InfoData::Veth(InfoVeth::Peer(peer));
        link.attributes
            .push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(data)]));
        self.tables.socket.change(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// The index of a device.
    pub(crate) fn index(&mut self, name: &str) -> io::Result<u32> {
        let mut request = LinkMessage::default();
        request.attributes.push(LinkAttribute::IfName(name.to_owned()));
        Ok(self.link(request)?.header.index)
    }

    /// Removes a device, and the other end of its pair with it.
    pub(crate) fn remove(&mut self, index: u32) -> io::Result<()> {
        self.tables.socket.change(RouteNetlinkMessage::DelLink(device(index)), 0)
    }

    /// Brings a device up.
    pub(crate) fn up(&mut self, index: u32) -> io::Result<()> {
        let mut request = device(index);
        request.header.flags = LinkFlags::Up;
        request.header.change_mask = LinkFlags::Up;
        self.tables.socket.change(RouteNetlinkMessage::SetLink(request), 0)
    }

    /// Keeps the kernel from giving a device an IPv6 address of its own and announcing it: what is on the line is the tests'.
    pub(crate) fn no_own_addresses(&mut self, index: u32) -> io::Result<()> {
        let mut request = device(index);
        let mode = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        request.attributes.push(LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![mode])]));
        self.tables.socket.change(RouteNetlinkMessage::SetLink(request), 0)
    }

    /// Gives a device an address that holds at once: nobody is asked whether it is a duplicate.
    pub(crate) fn address(&mut self, index: u32, ip: IpAddr, prefix_len: u8) -> io::Result<()> {
        let mut request = AddressMessage::default();
        request.header.family = family(ip);
        request.header.prefix_len = prefix_len;
        request.header.flags = AddressHeaderFlags::Nodad;
        request.header.index = index;
        request.attributes.push(AddressAttribute::Local(ip));
        request.attributes.push(AddressAttribute::Address(ip));
        self.tables.socket.change(RouteNetlinkMessage::NewAddress(request), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Says for good which link address a neighbour has.
    pub(crate) fn neighbour(&mut self, index: u32, ip: IpAddr, mac: Mac) -> io::Result<()> {
        let mut request = NeighbourMessage::default();
        request.header.family = family(ip);
        request.header.ifindex = index;
        request.header.state = NeighbourState::Permanent;
        request.attributes.push(NeighbourAttribute::Destination(ip.into()));
        request.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.0.to_vec()));
        self.tables.socket.change(RouteNetlinkMessage::NewNeighbour(request), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Waits until a device carries packets and the host takes those for its addresses `own`. Neither is so at once when it
    /// was brought up and given them, but a moment later: until then packets are dropped.
    pub(crate) fn await_readiness(
        &mut self,
        index: u32,
        own: &[IpAddr],
        patience: Duration,
    ) -> io::Result<()> {
        let deadline = Instant::now() + patience;
        while !self.is_ready(index, own)? {
            match self.announcements.await_announcement() {
                Err(error) if error.kind() != io::ErrorKind::TimedOut => return Err(error),
                _ if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn is_ready(&mut self, index: u32, own: &[IpAddr]) -> io::Result<bool> {
        if !self.link(device(index))?.attributes.contains(&LinkAttribute::OperState(State::Up)) {
            return Ok(false);
        }
        for ip in own {
            // The route to the host itself comes last.
            if self.tables.route(*ip, None, None)?.direct {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn link(&mut self, request: LinkMessage) -> io::Result<LinkMessage> {
        match self.tables.socket.ask(RouteNetlinkMessage::GetLink(request))? {
            RouteNetlinkMessage::NewLink(link) => Ok(link),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn end(end: End) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(end.name.to_owned()),
        LinkAttribute::Address(end.mac.0.to_vec()),
        LinkAttribute::Mtu(end.mtu),
        LinkAttribute::NumTxQueues(end.queues),
        LinkAttribute::NumRxQueues(end.queues),
    ];
    message
}

fn device(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}
