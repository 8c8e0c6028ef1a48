//! The kernel's tables of devices, addresses, routes and neighbours, asked over netlink (rtnetlink(7)).
//!
//! One request, one answer, in the calling thread: the kernel has the answer ready when the request has been sent.

#[cfg(any(test, feature = "veth"))]
pub(crate) mod generic;
mod lookups;
#[cfg(any(test, feature = "veth"))]
pub(crate) mod make;
mod socket;
mod tables;

pub(crate) use lookups::{Neighbour, Route};
pub(crate) use tables::{Interface, Tables};

#[cfg(any(test, feature = "veth"))]
fn family(ip: std::net::IpAddr) -> netlink_packet_route::AddressFamily {
    use netlink_packet_route::AddressFamily;
    if ip.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

#[cfg(test)]
mod tests;
