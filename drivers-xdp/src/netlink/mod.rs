//! The kernel's tables of devices, addresses, routes and neighbours, asked over netlink (rtnetlink(7)).
//!
//! One request, one answer, in the calling thread: the kernel has the answer ready when the request has been sent.

#[cfg(any(test, feature = "veth"))]
pub(crate) mod generic;
#[cfg(any(test, feature = "veth"))]
pub(crate) mod make;
mod socket;
mod tables;

use std::net::IpAddr;

use netlink_packet_route::AddressFamily;

pub(crate) use tables::{Interface, Neighbour, Route, Tables};

fn family(ip: IpAddr) -> AddressFamily {
    if ip.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

#[cfg(test)]
mod tests;
