//! A receiver behind a router that gives it another address, and then yet another.

use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

use crate::topology::{Network, repeats};

const MIB: usize = 1 << 20;

/// A receiver behind the router says nothing for up to two seconds; the rest is for a busy machine.
const SOON: Duration = Duration::from_secs(14);

/// Has the router translate what it forwards to the sender, to its address there and a port of these.
fn translate(network: &Network, ports: &str) {
    network.router.nft(&format!(
        "add table ip nat
         add chain ip nat post {{ type nat hook postrouting priority 100; policy accept; }}
         flush chain ip nat post
         add rule ip nat post oifname west meta l4proto udp masquerade to :{ports}"
    ));
}

/// Forgets every flow of this namespace (`IPCTNL_MSG_CT_DELETE` without a filter, `linux/netfilter/nfnetlink_conntrack.h`).
fn forget_flows(network: &Network) {
    network.router.run(|| {
        let sock = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkNetFilter,
        )
        .unwrap();
        let mut request = Vec::new();
        request.extend(20u32.to_ne_bytes());
        request.extend((1u16 << 8 | 2).to_ne_bytes());
        // NLM_F_REQUEST and NLM_F_ACK.
        request.extend(5u16.to_ne_bytes());
        request.extend([0; 12]);
        sendto(sock.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty()).unwrap();
        let mut answer = [0; 256];
        let len = recv(sock.as_raw_fd(), &mut answer, MsgFlags::empty()).unwrap();
        let error = i32::from_ne_bytes(answer[..len][16..20].try_into().unwrap());
        assert_eq!(error, 0, "the kernel did not forget its flows");
    });
}

/// The port is another each time, although the receiver knows nothing of it.
#[test]
fn a_transfer_outlives_a_router_that_gives_it_another_port() {
    let Some(network) = Network::new() else { return };
    let ports = |round: u32| format!("2{round}000-2{round}999");
    translate(&network, &ports(0));
    let rounds = repeats(1, 5);
    let arrived = network.transfer("nat-port", 8 * MIB * rounds as usize, SOON * rounds, |network, _| {
        for round in 1..=rounds {
            translate(network, &ports(round));
            forget_flows(network);
            sleep(Duration::from_millis(1500));
        }
    });
    let port = u32::from(arrived.from.port());
    assert_eq!(port / 1000, 20 + rounds, "{}", arrived.from);
}

#[test]
fn a_transfer_outlives_a_router_that_gets_another_address() {
    let Some(network) = Network::new() else { return };
    translate(&network, "20000-20999");
    let arrived = network.transfer("nat-address", 8 * MIB, SOON, |network, _| {
        // Flows with the old address end with it.
        network.router.sh("ip addr del 10.1.0.1/24 dev west\nip addr add 10.1.0.3/24 dev west");
    });
    assert_eq!(arrived.from.ip().to_string(), "10.1.0.3");
}
