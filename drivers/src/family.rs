//! Addresses as the core sees them, and as a dual-stack socket wants them: for drivers on UDP sockets.

use std::net::{IpAddr, SocketAddr};

/// What a UDP socket speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// IPv6, and IPv4 as `::ffff:a.b.c.d`.
    Dual,
}

impl Family {
    /// What a socket for `addr` will speak. For `[::]` it is asked to take IPv4 as well, before it is bound: `dual` says
    /// whether it does, since systems differ in their default, and some have no choice.
    pub fn of(addr: SocketAddr, dual: impl FnOnce() -> bool) -> Self {
        match addr {
            SocketAddr::V4(_) => Self::V4,
            SocketAddr::V6(addr) if addr.ip().is_unspecified() && dual() => Self::Dual,
            SocketAddr::V6(_) => Self::V6,
        }
    }

    /// The address to hand to the socket for `addr`.
    pub fn outgoing(self, addr: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.outgoing_ip(addr.ip()), addr.port()).with_scope_of(addr)
    }

    /// The source address to hand to the socket for `ip`.
    pub fn outgoing_ip(self, ip: IpAddr) -> IpAddr {
        match (self, ip) {
            (Self::Dual, IpAddr::V4(v4)) => IpAddr::V6(v4.to_ipv6_mapped()),
            _ => ip,
        }
    }
}

/// `addr` with a mapped IPv4 address made plain, so that one peer has one address.
pub fn canonical(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip().to_canonical(), addr.port()).with_scope_of(addr)
}

trait WithScope {
    /// Keeps the interface of a link-local address.
    fn with_scope_of(self, other: SocketAddr) -> Self;
}

impl WithScope for SocketAddr {
    fn with_scope_of(mut self, other: SocketAddr) -> Self {
        if let (Self::V6(addr), Self::V6(other)) = (&mut self, other) {
            addr.set_scope_id(other.scope_id());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_dual_stack_socket_maps_ipv4_both_ways() {
        let (plain, mapped) = (addr("192.0.2.1:5"), addr("[::ffff:192.0.2.1]:5"));
        assert_eq!(Family::Dual.outgoing(plain), mapped);
        assert_eq!(Family::Dual.outgoing_ip(plain.ip()), mapped.ip());
        assert_eq!(canonical(mapped), plain);
        assert_eq!(Family::V4.outgoing(plain), plain);
        assert_eq!(Family::V6.outgoing(plain), plain);
    }

    #[test]
    fn a_socket_for_every_address_is_asked_for_both_families_and_no_other_is() {
        let unasked = || -> bool { panic!("not for every address") };
        assert_eq!(Family::of(addr("0.0.0.0:5"), unasked), Family::V4);
        assert_eq!(Family::of(addr("[::1]:5"), unasked), Family::V6);
        assert_eq!(Family::of(addr("[::]:5"), || true), Family::Dual);
        assert_eq!(Family::of(addr("[::]:5"), || false), Family::V6);
    }

    #[test]
    fn a_link_local_address_keeps_its_interface() {
        let local = addr("[fe80::1%3]:5");
        assert_eq!(canonical(local), local);
        assert_eq!(Family::Dual.outgoing(local), local);
        assert_eq!(Family::V6.outgoing(local), local);
    }
}
