//! `PEER@ADDR`, addresses to dial and to bind, and addresses that others may reach this machine at.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use wraith_proto::PeerId;

use crate::driver_pick::has_ipv6;
use crate::failure::{Failure, Result, failed};

/// A peer and where it is: `PEER@ip:port`, `PEER@[v6]:port`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub(crate) id: PeerId,
    pub(crate) addr: SocketAddr,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.id, self.addr)
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (id, addr) =
            text.split_once('@').ok_or("expected PEER@ip:port, as `wraith-cli listen` prints it")?;
        let id: PeerId = id.parse().map_err(|error| format!("{error}: copy it again from the peer"))?;
        let addr: SocketAddr = addr
            .parse()
            .map_err(|_| format!("'{addr}' is not an address: write ip:port, or [ip]:port for IPv6"))?;
        let addr = match addr.ip().to_canonical() {
            IpAddr::V4(ip) => SocketAddr::new(ip.into(), addr.port()),
            // As it is: a link-local address has an interface.
            IpAddr::V6(_) => addr,
        };
        if addr.port() == 0 || !is_of_one_machine(addr.ip()) {
            return Err(format!(
                "{addr} is no peer's address: give the one that the peer's `wraith-cli` prints"
            ));
        }
        Ok(Self { id, addr })
    }
}

/// Where a source of a content may be, and who must answer there, if that is known. If it is not, the bytes alone show
/// whether it is one (`PROTO §10.2`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: Option<PeerId>,
    pub(crate) addr: SocketAddr,
}

impl Candidate {
    /// Whether it may be `target`.
    pub(crate) fn may_be(&self, target: &Target) -> bool {
        self.addr == target.addr && self.id.is_none_or(|id| id == target.id)
    }
}

impl From<Target> for Candidate {
    fn from(target: Target) -> Self {
        Self { id: Some(target.id), addr: target.addr }
    }
}

/// Reads a node of the DHT to begin with.
///
/// # Errors
/// It is no [`Target`], or its address means something on one link alone: nodes keep and tell addresses without interfaces.
pub(crate) fn parse_node(text: &str) -> std::result::Result<Target, String> {
    let target: Target = text.parse()?;
    match target.addr.ip() {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => Err(format!(
            "{} is an address on one link alone, which the DHT cannot use: give another one of that node",
            target.addr
        )),
        _ => Ok(target),
    }
}

/// Whether a machine may have `ip`, here or elsewhere: it is no group, and neither this network (RFC 1122 §3.2.1.3) nor any
/// address at all.
const fn is_of_one_machine(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.octets()[0] != 0 && !ip.is_multicast() && !ip.is_broadcast(),
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast(),
    }
}

/// The address to bind for talking to `target`: any of its IP version, or the one that was asked for.
///
/// # Errors
/// That one has the other version.
pub(crate) fn bind_for(target: &Target, asked: Option<SocketAddr>) -> Result<SocketAddr> {
    match asked {
        None => Ok(any(target.addr.is_ipv6())),
        Some(bind) if reaches(bind, target.addr) => Ok(bind),
        Some(bind) => Err(out_of_reach(bind, target.addr)),
    }
}

/// Those of `peers` that can be written to from the address that was asked for, or from any of this machine, by their IP
/// version.
///
/// # Errors
/// There are some, and they all have the other version.
pub(crate) fn within_reach<T: Into<Candidate> + Copy>(
    asked: Option<SocketAddr>,
    peers: Vec<T>,
) -> Result<Vec<T>> {
    let bind = asked.unwrap_or_else(|| any(has_ipv6()));
    let (near, far): (Vec<T>, Vec<T>) = peers.into_iter().partition(|&peer| reaches(bind, peer.into().addr));
    match far.first() {
        Some(&first) if near.is_empty() => Err(match asked {
            Some(bind) => out_of_reach(bind, first.into().addr),
            None => failed(format!(
                "{} cannot be reached, for this machine has no IPv6: give an IPv4 address of the peer",
                first.into().addr
            )),
        }),
        _ => Ok(near),
    }
}

/// Whether a socket at `local` can write to `addr`, as far as their IP versions say.
pub(crate) const fn reaches(local: SocketAddr, addr: SocketAddr) -> bool {
    let is_dual = local.is_ipv6() && local.ip().is_unspecified();
    local.is_ipv4() == addr.is_ipv4() || is_dual
}

fn out_of_reach(bind: SocketAddr, addr: SocketAddr) -> Failure {
    let family = if addr.is_ipv4() { "IPv4" } else { "IPv6" };
    Failure::Usage(format!(
        "{addr} cannot be reached from {bind}: bind an {family} address, or leave --bind out"
    ))
}

/// Reads an address to bind: `ip:port`, `ip` or `:port`.
pub(crate) fn parse_bind(text: &str) -> std::result::Result<SocketAddr, String> {
    let addr = parse_any_bind(text)?;
    // As it is: a link-local address has an interface.
    let addr = if let ip @ IpAddr::V4(_) = addr.ip().to_canonical() {
        SocketAddr::new(ip, addr.port())
    } else {
        addr
    };
    if !addr.ip().is_unspecified() && !is_of_one_machine(addr.ip()) {
        return Err(format!(
            "{} is no address of one machine: write one of this machine, or :port for all",
            addr.ip()
        ));
    }
    Ok(addr)
}

fn parse_any_bind(text: &str) -> std::result::Result<SocketAddr, String> {
    if let Ok(addr) = text.parse() {
        return Ok(addr);
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = bare.parse() {
        return Ok(SocketAddr::new(ip, 0));
    }
    match text.strip_prefix(':').map(str::parse) {
        Some(Ok(port)) => Ok(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)),
        _ => Err("write ip:port, [ip]:port, ip or :port".to_owned()),
    }
}

/// The address that lets the system choose everything.
pub(crate) fn any(ipv6: bool) -> SocketAddr {
    let ip = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, 0)
}

/// Where a socket bound to `local` can be reached, on one interface or on all; the most useful first, loopback last.
pub(crate) fn reachable(local: SocketAddr, interface: Option<&str>) -> Vec<SocketAddr> {
    if !local.ip().is_unspecified() {
        return vec![local];
    }
    let mut ips = interface_ips(interface);
    if interface.is_none() {
        ips.extend([IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]);
    }
    ips.retain(|ip| local.is_ipv6() || ip.is_ipv4());
    let mut seen = Vec::with_capacity(ips.len());
    for ip in ips {
        if !seen.contains(&ip) {
            seen.push(ip);
        }
    }
    seen.sort_by_key(|ip| (ip.is_loopback(), ip.is_ipv6()));
    seen.into_iter().map(|ip| SocketAddr::new(ip, local.port())).collect()
}

/// Addresses of interfaces that are up, or of this one. Link-local ones are left out: they mean nothing without an interface.
#[cfg(unix)]
fn interface_ips(only: Option<&str>) -> Vec<IpAddr> {
    use nix::ifaddrs::getifaddrs;
    use nix::net::if_::InterfaceFlags;

    let Ok(interfaces) = getifaddrs() else { return Vec::new() };
    interfaces
        .filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP))
        .filter(|interface| only.is_none_or(|name| interface.interface_name == name))
        .filter_map(|interface| interface.address.and_then(ip_of))
        .filter(|ip| match ip {
            IpAddr::V4(ip) => !ip.is_link_local(),
            IpAddr::V6(ip) => !ip.is_unicast_link_local(),
        })
        .collect()
}

/// The IP address in a socket address of the system.
#[cfg(unix)]
pub(crate) fn ip_of(address: nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// Addresses that the system would send from to hosts far away; nothing is sent.
#[cfg(not(unix))]
fn interface_ips(_: Option<&str>) -> Vec<IpAddr> {
    // Documentation prefixes (RFC 5737, RFC 3849) go by the default route.
    let far = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    let ask = |(bind, far)| {
        let socket = std::net::UdpSocket::bind(bind).ok()?;
        socket.connect(far).ok()?;
        socket.local_addr().ok().map(|addr| addr.ip())
    };
    far.into_iter().filter_map(ask).collect()
}

#[cfg(test)]
mod tests {
    use wraith_proto::Identity;

    use super::*;

    fn id() -> PeerId {
        Identity::from_seed([7; 32]).peer_id()
    }

    fn addr(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_target_is_read_as_it_is_written() {
        for text in ["192.0.2.1:5", "[2001:db8::1]:65535", "[fe80::1%3]:5"] {
            let target: Target = format!("{}@{text}", id()).parse().unwrap();
            assert_eq!(target, Target { id: id(), addr: addr(text) });
            assert_eq!(target.to_string(), format!("{}@{text}", id()));
        }
        let mapped: Target = format!("{}@[::ffff:192.0.2.1]:5", id()).parse().unwrap();
        assert_eq!(mapped.addr, addr("192.0.2.1:5"));
    }

    #[test]
    fn a_wrong_target_is_refused_with_the_remedy() {
        let refusal = |text: &str| text.parse::<Target>().unwrap_err();
        assert_eq!(refusal("abc"), "expected PEER@ip:port, as `wraith-cli listen` prints it");
        assert_eq!(refusal("abc@127.0.0.1:1"), "a peer id has 52 characters: copy it again from the peer");
        let zero = "a".repeat(52);
        assert!(
            refusal(&format!("{zero}@127.0.0.1:1"))
                .starts_with("the peer id is not an acceptable public key")
        );
        assert!(refusal(&format!("{}@localhost:1", id())).starts_with("'localhost:1' is not an address"));
    }

    #[test]
    fn a_node_of_the_dht_is_at_an_address_that_means_the_same_everywhere() {
        for address in ["127.0.0.1:1", "169.254.1.1:1", "[::1]:1", "[fd00::1]:1", "[2001:db8::1]:1"] {
            assert_eq!(parse_node(&format!("{}@{address}", id())).unwrap().addr, addr(address));
        }
        for address in ["[fe80::1]:1", "[fe80::1%3]:1"] {
            let refusal = parse_node(&format!("{}@{address}", id())).unwrap_err();
            assert!(refusal.starts_with(address) && refusal.contains("on one link alone"), "{refusal}");
        }
        assert!(parse_node("nobody").is_err());
    }

    #[test]
    fn an_address_that_nobody_can_be_at_is_refused_and_any_other_is_not() {
        for nowhere in [
            "127.0.0.1:0",
            "[::1]:0",
            "0.0.0.0:1",
            "0.1.2.3:1",
            "224.0.0.1:1",
            "239.255.255.255:1",
            "255.255.255.255:1",
            "[::]:1",
            "[ff02::1]:1",
            "[::ffff:255.255.255.255]:1",
            "[::ffff:0.0.0.1]:1",
        ] {
            let refusal = format!("{}@{nowhere}", id()).parse::<Target>().unwrap_err();
            assert!(refusal.contains(" is no peer's address: give the one that"), "{nowhere}: {refusal}");
        }
        for somewhere in ["127.255.255.255:1", "[::1]:1", "169.254.1.1:1", "[fe80::1%3]:1", "1.0.0.0:1"] {
            let target: Target = format!("{}@{somewhere}", id()).parse().unwrap();
            assert_eq!(target.addr, addr(somewhere));
        }
    }

    #[test]
    fn an_address_to_bind_may_be_short() {
        assert_eq!(parse_bind("127.0.0.1:5"), Ok(addr("127.0.0.1:5")));
        assert_eq!(parse_bind("::1"), Ok(addr("[::1]:0")));
        assert_eq!(parse_bind("[::1]"), Ok(addr("[::1]:0")));
        assert_eq!(parse_bind("10.0.0.1"), Ok(addr("10.0.0.1:0")));
        assert_eq!(parse_bind(":4433"), Ok(addr("[::]:4433")));
        assert_eq!(parse_bind("0.0.0.0"), Ok(addr("0.0.0.0:0")));
        assert_eq!(parse_bind("[::ffff:127.0.0.1]:5"), Ok(addr("127.0.0.1:5")));
        assert_eq!(parse_bind("[fe80::1%3]:5"), Ok(addr("[fe80::1%3]:5")));
        assert!(parse_bind("4433").is_err());
        for group in ["255.255.255.255:5", "224.0.0.1", "[ff02::1]:5", "[::ffff:224.0.0.1]:5", "0.1.2.3"] {
            assert!(parse_bind(group).unwrap_err().contains("is no address of one machine"), "{group}");
        }
    }

    #[test]
    fn the_local_address_fits_the_target() {
        let v4 = Target { id: id(), addr: addr("192.0.2.1:5") };
        assert_eq!(bind_for(&v4, None), Ok(addr("0.0.0.0:0")));
        assert_eq!(bind_for(&v4, Some(addr("[::]:7"))), Ok(addr("[::]:7")));
        assert!(matches!(bind_for(&v4, Some(addr("[::1]:7"))), Err(Failure::Usage(_))));
        let v6 = Target { id: id(), addr: addr("[2001:db8::1]:5") };
        assert_eq!(bind_for(&v6, None), Ok(addr("[::]:0")));
        assert!(matches!(bind_for(&v6, Some(addr("0.0.0.0:7"))), Err(Failure::Usage(_))));
    }

    #[test]
    fn of_several_peers_those_are_left_that_can_be_written_to_and_none_is_wrong_usage() {
        let [v4, v6] = ["192.0.2.1:5", "[2001:db8::1]:5"].map(|text| Target { id: id(), addr: addr(text) });
        let from = |bind: &str, peers: &[Target]| within_reach(Some(addr(bind)), peers.to_vec());
        assert_eq!(from("127.0.0.1:0", &[v6, v4]), Ok(vec![v4]));
        assert_eq!(from("[::1]:0", &[v6, v4]), Ok(vec![v6]));
        assert_eq!(from("[::]:0", &[v6, v4]), Ok(vec![v6, v4]));
        assert_eq!(from("127.0.0.1:0", &[]), Ok(Vec::new()));
        let Err(Failure::Usage(message)) = from("127.0.0.1:0", &[v6]) else { panic!("it can be reached") };
        assert_eq!(
            message,
            "[2001:db8::1]:5 cannot be reached from 127.0.0.1:0: bind an IPv6 address, or leave --bind out"
        );
        assert_eq!(within_reach(None, vec![v4]), Ok(vec![v4]));
    }

    #[test]
    fn a_socket_on_every_address_is_reachable_at_each_and_loopback_comes_last() {
        let all = reachable(addr("[::]:9"), None);
        assert_eq!(all.last(), Some(&addr("[::1]:9")));
        assert!(all.contains(&addr("127.0.0.1:9")));
        assert!(reachable(addr("0.0.0.0:9"), None).iter().all(SocketAddr::is_ipv4));
        assert_eq!(reachable(addr("127.0.0.1:9"), None), [addr("127.0.0.1:9")]);
    }
}
