//! Links that carry less, that break, that lose; and processes that stand still.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::host::Host;
use crate::topology::{Network, repeats};

const MIB: usize = 1 << 20;

/// Longer than a change and its repair take on a busy machine, and shorter than a session without packets lives.
const SOON: Duration = Duration::from_secs(14);

/// Whatever the router has to say of packets that it does not forward, nobody hears it.
fn hush(network: &Network) {
    network.router.nft(
        "add table ip quiet
         add chain ip quiet out { type filter hook output priority 0; policy accept; }
         add rule ip quiet out ip protocol icmp drop",
    );
}

/// Packets that a host did not forward because they are too large, and must not be cut.
fn refusals(host: &Host) -> u64 {
    let counters = host.run(|| fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let fails = names.split(' ').zip(values.split(' ')).find(|(name, _)| *name == "FragFails");
    fails.unwrap().1.parse().unwrap()
}

/// `PROTO §8.14`
#[test]
fn a_link_that_comes_to_carry_less_is_noticed_without_a_word_from_the_router() {
    let Some(network) = Network::new() else { return };
    hush(&network);
    network
        .transfer("mtu-middle", 8 * MIB, SOON, |network, _| network.router.sh("ip link set east mtu 1280"));
    assert!(refusals(&network.router) >= 8, "too few packets were too large to tell it by");
}

/// `PROTO §8.16`
#[test]
fn an_interface_of_the_sender_that_comes_to_carry_less_is_followed() {
    let Some(network) = Network::new() else { return };
    network.transfer("mtu-own", 8 * MIB, SOON, |network, _| network.sender.sh("ip link set out mtu 1280"));
}

#[test]
fn a_transfer_outlives_a_link_that_is_down_for_seconds() {
    let Some(network) = Network::new() else { return };
    let away = Duration::from_secs(3);
    network.transfer("down-middle", 8 * MIB, away * repeats(1, 3) + SOON, |network, _| {
        for _ in 0..repeats(1, 3) {
            network.router.sh("ip link set east down");
            sleep(away);
            network.router.sh("ip link set east up");
            sleep(Duration::from_secs(1));
        }
    });
}

/// The system refuses each datagram while the route is gone.
#[test]
fn a_transfer_outlives_an_own_interface_that_is_down_for_seconds() {
    let Some(network) = Network::new() else { return };
    let away = Duration::from_secs(3);
    network.transfer("down-own", 8 * MIB, away + SOON, |network, _| {
        network.sender.sh("ip link set out down");
        sleep(away);
        network.sender.sh("ip link set out up\nip route add default via 10.1.0.1");
    });
}

/// In the full form for longer than sessions live, so that the receiver has to find its sender again.
#[test]
fn a_transfer_goes_on_when_its_sender_stood_still() {
    let Some(network) = Network::new() else { return };
    let away = Duration::from_secs(u64::from(repeats(4, 20)));
    let arrived = network.transfer("still", 8 * MIB, away + SOON, |_, transfer| {
        transfer.sender.signal(Signal::SIGSTOP);
        sleep(away);
        transfer.sender.signal(Signal::SIGCONT);
    });
    assert!(away < Duration::from_secs(20) || arrived.searches == 1, "{} searches", arrived.searches);
}

/// Three packets of ten get lost, either way.
fn lose(network: &Network) {
    network.router.nft(
        "add table ip lossy
         add chain ip lossy forwarded { type filter hook forward priority 0; policy accept; }
         add rule ip lossy forwarded numgen random mod 100 < 30 drop",
    );
}

/// From the middle of a transfer on.
#[test]
fn a_file_arrives_where_three_packets_of_ten_do_not() {
    let Some(network) = Network::new() else { return };
    let len = repeats(2, 3) as usize * MIB;
    network.transfer("lossy", len, Duration::from_secs(30), |network, _| lose(network));
}

/// Of the dials some 13 in a hundred fail in the first three datagrams; six rounds fit into the patience of a receiver.
///
/// `PROTO §11.7`, `PROTO §10.12`
#[test]
fn dials_get_through_and_confirmations_arrive_where_three_packets_of_ten_do_not() {
    let Some(network) = Network::new() else { return };
    lose(&network);
    let count = repeats(2, 30);
    let silent = (0..count).filter(|_| network.fetch("lossy-dial", 7, Duration::from_secs(90)) > 0).count();
    println!("lossy-dial: {silent} of {count} dials were not answered at first");
}
