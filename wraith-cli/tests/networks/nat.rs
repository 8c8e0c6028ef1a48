//! A receiver behind a router that gives it another address, and then yet another.

use std::fs;
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

/// Address and port that the router gives, by flow.
fn flows(network: &Network) -> Vec<(String, u32)> {
    let table = network.router.run(|| fs::read_to_string("/proc/thread-self/net/nf_conntrack").unwrap());
    let last = |line: &str, name: &str| {
        let mut words = line.split(' ').filter_map(|word| word.strip_prefix(name));
        words.next_back().unwrap_or_default().to_owned()
    };
    let flows = table.lines().filter(|line| line.contains(" udp "));
    flows.map(|line| (last(line, "dst="), last(line, "dport=").parse().unwrap())).collect()
}

/// `PROTO §13.1`: the port is another each time, although the receiver knows nothing of it.
#[test]
fn a_session_outlives_a_router_that_gives_it_another_port() {
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
    assert_eq!(arrived.searches, 0, "the session lived on");
    let flows = flows(&network);
    let is_last = |(_, port): &(String, u32)| port / 1000 == 20 + rounds;
    assert!(flows.iter().any(is_last), "{flows:?}");
}

/// `PROTO §13.1`
#[test]
fn a_session_outlives_a_router_that_gets_another_address() {
    let Some(network) = Network::new() else { return };
    translate(&network, "20000-20999");
    let arrived = network.transfer("nat-address", 8 * MIB, SOON, |network, _| {
        // Flows with the old address end with it.
        network.router.sh("ip addr del 10.1.0.1/24 dev west\nip addr add 10.1.0.3/24 dev west");
    });
    assert_eq!(arrived.searches, 0, "the session lived on");
    let flows = flows(&network);
    assert!(flows.iter().any(|(address, _)| address == "10.1.0.3"), "{flows:?}");
}
