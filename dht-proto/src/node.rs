//! Nodes as messages name them: a public key at an address.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use wraith_proto::PeerId;

use crate::id::Id;

/// A node: its public key and where it was seen.
///
/// The key came from a message, unless it is the sender's: whether it is a [`PeerId`] at all turns out when
/// something is sealed to it, so that strangers cannot make a node check curve points.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeRef {
    /// The bytes of its [`PeerId`].
    pub key: [u8; 32],
    /// Its UDP address.
    pub address: SocketAddr,
}

impl NodeRef {
    /// The node `peer` at `address`.
    pub const fn new(peer: &PeerId, address: SocketAddr) -> Self {
        Self { key: *peer.as_bytes(), address }
    }
}

/// A [`NodeRef`] in 50 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    pub(crate) key: [u8; 32],
    pub(crate) address: Address,
}

impl Node {
    pub(crate) fn id(&self) -> Id {
        Id::of_node(&self.key)
    }
}

impl From<NodeRef> for Node {
    fn from(node: NodeRef) -> Self {
        Self { key: node.key, address: node.address.into() }
    }
}

impl From<Node> for NodeRef {
    fn from(node: Node) -> Self {
        Self { key: node.key, address: node.address.into() }
    }
}

/// A UDP address in 18 bytes; IPv4 in its mapped form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    ip: [u8; 16],
    port: [u8; 2],
}

/// Nodes of the two families do not reach each other, so tables and answers keep them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Address {
    pub(crate) const fn v4(ip: [u8; 4], port: [u8; 2]) -> Self {
        let [a, b, c, d] = ip;
        Self { ip: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d], port }
    }

    pub(crate) const fn v6(ip: [u8; 16], port: [u8; 2]) -> Self {
        Self { ip, port }
    }

    /// The address of these [`bytes`](Self::bytes).
    pub(crate) fn from_bytes(bytes: [u8; 18]) -> Self {
        let [ip @ .., high, low] = bytes;
        Self { ip, port: [high, low] }
    }

    pub(crate) const fn family(&self) -> Family {
        match self.ip() {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    pub(crate) const fn ip(&self) -> IpAddr {
        Ipv6Addr::from_octets(self.ip).to_canonical()
    }

    pub(crate) const fn port(&self) -> [u8; 2] {
        self.port
    }

    /// All 18 bytes, to be hashed.
    pub(crate) fn bytes(&self) -> [u8; 18] {
        let mut bytes = [0; 18];
        bytes[..16].copy_from_slice(&self.ip);
        bytes[16..].copy_from_slice(&self.port);
        bytes
    }

    /// The bytes that the hosts of one site share: /24 of IPv4, /48 of IPv6.
    pub(crate) const fn site(&self) -> &[u8] {
        self.prefix(15, 6)
    }

    /// The bytes that the hosts of one region share: /16 of IPv4, /32 of IPv6.
    pub(crate) const fn region(&self) -> &[u8] {
        self.prefix(14, 4)
    }

    /// Whether a datagram may be sent there.
    pub(crate) const fn is_usable(&self) -> bool {
        let somewhere = match self.ip() {
            IpAddr::V4(ip) => {
                !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast() && ip.octets()[0] != 0
            }
            IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast(),
        };
        somewhere && u16::from_be_bytes(self.port) != 0
    }

    /// Whether it means the same host everywhere.
    pub(crate) const fn is_public(&self) -> bool {
        is_public(self.ip())
    }

    const fn prefix(&self, mapped: usize, v6: usize) -> &[u8] {
        let len = match self.family() {
            Family::V4 => mapped,
            Family::V6 => v6,
        };
        self.ip.split_at(len).0
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        let port = address.port().to_be_bytes();
        match address.ip().to_canonical() {
            IpAddr::V4(ip) => Self::v4(ip.octets(), port),
            IpAddr::V6(ip) => Self::v6(ip.octets(), port),
        }
    }
}

impl From<Address> for SocketAddr {
    fn from(address: Address) -> Self {
        Self::new(address.ip(), u16::from_be_bytes(address.port))
    }
}

/// Whether an address means the same host everywhere; only such ones are told to strangers (`PROTO §14.10`).
pub const fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            let carrier = a == 100 && b & 0xc0 == 64;
            !(ip.is_private() || ip.is_loopback() || ip.is_link_local() || carrier)
        }
        IpAddr::V6(ip) => ip.octets()[0] & 0xe0 == 0x20,
    }
}

/// Nodes of one site that a table, a shortlist or a store set holds at most.
pub(crate) const PER_SITE: usize = 2;

/// Nodes of one region that they hold at most.
pub(crate) const PER_REGION: usize = 4;

/// Whether `new` may stand beside `others`: addresses are dearer than ids, of which anybody makes a million.
///
/// Hosts of private networks all share a prefix, and are no strangers; they are not counted.
pub(crate) fn has_room_for<'a>(others: impl Iterator<Item = &'a Address>, new: &Address) -> bool {
    if !new.is_public() {
        return true;
    }
    // Compared as numbers, since lookups do this for every node that they hear of.
    let own = u128::from_be_bytes(new.ip);
    let mask = |prefix: &[u8]| u128::MAX << (128 - 8 * prefix.len());
    let (site_mask, region_mask) = (mask(new.site()), mask(new.region()));
    let (mut site, mut region) = (0, 0);
    for other in others {
        let differing = own ^ u128::from_be_bytes(other.ip);
        region += usize::from(differing & region_mask == 0);
        site += usize::from(differing & site_mask == 0);
    }
    site < PER_SITE && region < PER_REGION
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse::<SocketAddr>().unwrap().into()
    }

    #[test]
    fn an_address_survives_its_short_form() {
        for text in ["192.0.2.1:9", "[2001:db8::1]:65535"] {
            let parsed: SocketAddr = text.parse().unwrap();
            assert_eq!(SocketAddr::from(Address::from(parsed)), parsed);
        }
        assert_eq!(address("[::ffff:192.0.2.1]:9"), address("192.0.2.1:9"));
        assert_eq!((address("1.2.3.4:1").family(), address("[::1]:1").family()), (Family::V4, Family::V6));
        assert_eq!(size_of::<Node>(), 50);
    }

    #[test]
    fn only_addresses_of_hosts_are_usable() {
        for text in [
            "0.0.0.0:1",
            "0.1.2.3:1",
            "224.0.0.1:1",
            "255.255.255.255:1",
            "1.2.3.4:0",
            "[::]:1",
            "[ff02::1]:1",
        ] {
            assert!(!address(text).is_usable(), "{text}");
        }
        for text in ["1.2.3.4:1", "10.0.0.1:1", "127.0.0.1:1", "[fe80::1]:1", "[2001:db8::1]:1"] {
            assert!(address(text).is_usable(), "{text}");
        }
    }

    #[test]
    fn addresses_with_a_local_meaning_are_not_public() {
        for text in
            ["10.0.0.1:1", "172.16.0.1:1", "192.168.9.9:1", "127.0.0.1:1", "169.254.1.1:1", "100.64.0.1:1"]
        {
            assert!(!address(text).is_public(), "{text}");
        }
        for text in ["[::1]:1", "[fe80::1]:1", "[fd00::1]:1"] {
            assert!(!address(text).is_public(), "{text}");
        }
        for text in ["8.8.8.8:1", "100.128.0.1:1", "172.32.0.1:1", "[2a00::1]:1"] {
            assert!(address(text).is_public(), "{text}");
        }
    }

    #[test]
    fn two_of_a_site_and_four_of_a_region_find_room() {
        // PROTO §14.9
        let v4 = ["9.8.7.1:1", "9.8.7.2:1", "9.8.6.1:1", "9.8.5.1:1"].map(address);
        assert!(has_room_for(v4[..1].iter(), &v4[1]));
        assert!(!has_room_for(v4[..2].iter(), &address("9.8.7.3:1")));
        assert!(has_room_for(v4[..3].iter(), &v4[3]));
        assert!(!has_room_for(v4.iter(), &address("9.8.4.1:1")));
        assert!(has_room_for(v4.iter(), &address("9.9.7.1:1")));
        let v6 = ["[2001:db8:1::1]:1", "[2001:db8:1:200::1]:1", "[2001:db8:200::1]:1", "[2001:db8:300::1]:1"]
            .map(address);
        assert!(!has_room_for(v6[..2].iter(), &address("[2001:db8:1:300::1]:1")));
        assert!(has_room_for(v6[..3].iter(), &v6[3]));
        assert!(!has_room_for(v6.iter(), &address("[2001:db8:400::1]:1")));
        assert!(has_room_for(v6.iter(), &address("[2001:db9:1::1]:1")));
    }

    #[test]
    fn private_networks_are_not_capped() {
        let lan = ["192.168.1.1:1", "192.168.1.2:1", "192.168.1.3:1"].map(address);
        assert!(has_room_for(lan.iter(), &address("192.168.1.4:1")));
    }
}
