//! Addresses that nodes of the DHT name: which of them are worth a datagram, and in which order.

use std::net::{Ipv4Addr, SocketAddrV4};

use wraith_dht_proto::is_public;

/// Addresses handed out for one question.
pub const MAX_CANDIDATES: usize = 8;

/// Of one IP address: whoever names many ports of a third party aims no more than this at it.
const MAX_PER_IP: usize = 2;

/// Addresses of one answer that count.
const MAX_PER_ANSWER: usize = 100;

/// Addresses that are remembered for one question.
const MAX_REMEMBERED: usize = 1_000;

/// What the nodes that were asked have said.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Whether addresses of private networks may be right.
    private: bool,
    /// In the order in which they came, and by how many nodes each was named.
    named: Vec<(SocketAddrV4, u32)>,
}

impl Tally {
    pub(crate) fn new(private: bool) -> Self {
        Self { private, named: Vec::new() }
    }

    /// One node's answer.
    pub(crate) fn count(&mut self, answer: &[SocketAddrV4]) {
        let answer = &answer[..answer.len().min(MAX_PER_ANSWER)];
        for (at, &addr) in answer.iter().enumerate() {
            if answer[..at].contains(&addr) || !is_dialable(addr, self.private) {
                continue;
            }
            if let Some((_, times)) = self.named.iter_mut().find(|(known, _)| *known == addr) {
                *times += 1;
            } else if self.named.len() < MAX_REMEMBERED {
                self.named.push((addr, 1));
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// The best ones. An announcement is stored on all nodes near the key, so an address that many name comes before one
    /// that a few made up.
    pub(crate) fn best(mut self) -> Vec<SocketAddrV4> {
        self.named.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let mut best: Vec<SocketAddrV4> = Vec::with_capacity(MAX_CANDIDATES);
        for (addr, _) in self.named {
            let of_ip = best.iter().filter(|known| known.ip() == addr.ip()).count();
            if best.len() < MAX_CANDIDATES && of_ip < MAX_PER_IP {
                best.push(addr);
            }
        }
        best
    }
}

/// Whether a peer can be there: anywhere on the internet, or also on a private network.
fn is_dialable(addr: SocketAddrV4, private: bool) -> bool {
    let ip = addr.ip();
    let nowhere = addr.port() == 0 || ip.octets()[0] == 0 || ip.octets()[0] >= 224;
    !nowhere && (private || !is_private(*ip))
}

/// Whether an address means something in one network alone, or nothing: RFC 1918, 3927, 5737, 6598, loopback.
pub(crate) fn is_private(ip: Ipv4Addr) -> bool {
    !is_public(ip.into()) || ip.is_documentation()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> SocketAddrV4 {
        text.parse().unwrap()
    }

    fn best(private: bool, answers: &[&[&str]]) -> Vec<String> {
        let mut tally = Tally::new(private);
        for answer in answers {
            tally.count(&answer.iter().map(|text| addr(text)).collect::<Vec<_>>());
        }
        tally.best().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_more_nodes_name_comes_first_and_a_node_counts_once() {
        let liar = ["8.8.8.8:1", "8.8.8.8:1", "8.8.8.8:1"];
        let answers: [&[&str]; 3] = [&liar, &["1.1.1.1:5", "9.9.9.9:2"], &["1.1.1.1:5"]];
        assert_eq!(best(false, &answers), ["1.1.1.1:5", "8.8.8.8:1", "9.9.9.9:2"]);
    }

    #[test]
    fn there_are_eight_candidates_at_most_and_two_of_an_ip_address() {
        let many: Vec<_> = (0..20).map(|at| format!("8.8.{}.8:{}", at / 3, at + 1)).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let best = best(false, &[&many]);
        assert_eq!(best.len(), MAX_CANDIDATES);
        assert_eq!(best[..4], ["8.8.0.8:1", "8.8.0.8:2", "8.8.1.8:4", "8.8.1.8:5"]);
    }

    #[test]
    fn no_more_is_remembered_than_a_thousand_addresses_and_a_hundred_of_an_answer() {
        let mut tally = Tally::new(false);
        for answer in 0..11_u8 {
            let addrs: Vec<_> =
                (1..=101).map(|port| SocketAddrV4::new([8, 8, 8, answer].into(), port)).collect();
            tally.count(&addrs);
            assert_eq!(tally.named.len(), (100 * (usize::from(answer) + 1)).min(MAX_REMEMBERED));
        }
    }

    #[test]
    fn addresses_that_no_peer_on_the_internet_has_are_left_out() {
        let local =
            ["10.0.0.1:1", "172.16.0.1:1", "192.168.1.1:1", "127.0.0.1:1", "169.254.0.1:1", "100.64.0.1:1"];
        let never =
            ["1.1.1.1:0", "0.0.0.0:1", "224.0.0.1:1", "255.255.255.255:1", "240.0.0.1:1", "0.1.2.3:4"];
        assert_eq!(best(false, &[&local, &never, &["100.128.0.1:1"]]), ["100.128.0.1:1"]);
        assert_eq!(best(true, &[&local, &never]), local);
    }
}
