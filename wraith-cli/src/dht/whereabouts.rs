//! What a node says of its own addresses in a signed record, so that it is found after it has moved.
//!
//! The value is text: an address a line, `ip:port` or `[ip]:port`, the best first.

use std::fmt::Write as _;
use std::net::SocketAddr;

use wraith_dht_proto::{MAX_SIGNED_VALUE, is_public};

/// Which of a peer's records that is.
pub(super) const SALT: u64 = 1;

/// Addresses in a record at most.
const MAX_ADDRESSES: usize = 8;

/// What to publish of `reachable`. Where strangers read along, addresses that mean something on one network alone would
/// tell them of it and lead nobody here.
pub(super) fn published(reachable: &[SocketAddr], among_strangers: bool) -> Vec<SocketAddr> {
    let loopback_alone = reachable.iter().all(|addr| addr.ip().is_loopback());
    let of_use = |addr: &&SocketAddr| {
        if among_strangers { is_public(addr.ip()) } else { loopback_alone || !addr.ip().is_loopback() }
    };
    reachable.iter().filter(of_use).take(MAX_ADDRESSES).copied().collect()
}

/// The value of the record.
pub(super) fn text(addresses: &[SocketAddr]) -> String {
    let mut text = String::new();
    for address in addresses {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{address}");
    }
    debug_assert!(text.len() <= MAX_SIGNED_VALUE, "8 addresses have less than 400 bytes");
    text
}

/// The addresses in a record; what is none is left out.
pub(super) fn parse(value: &[u8]) -> Vec<SocketAddr> {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let usable = |addr: &SocketAddr| {
        addr.port() != 0 && !addr.ip().is_unspecified() && !addr.ip().to_canonical().is_multicast()
    };
    text.lines().filter_map(|line| line.parse().ok()).filter(usable).take(MAX_ADDRESSES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn addresses_are_read_as_they_were_written_and_nonsense_is_left_out() {
        let all = addresses(&["192.0.2.1:5", "[2001:db8::1]:65535"]);
        assert_eq!(parse(text(&all).as_bytes()), all);
        let odd =
            b"nonsense\n0.0.0.0:5\n192.0.2.1:0\n224.0.0.1:9\n[ff02::1]:9\n192.0.2.1:5\n\n[2001:db8::1]:65535";
        assert_eq!(parse(odd), all);
        assert_eq!(parse(b"192.0.2.1:5\n\xff"), []);
        assert_eq!(parse("192.0.2.1:5\n".repeat(100).as_bytes()).len(), MAX_ADDRESSES);
        let longest = addresses(&["[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"; MAX_ADDRESSES]);
        assert!(text(&longest).len() <= MAX_SIGNED_VALUE);
    }

    #[test]
    fn strangers_get_public_addresses_alone_and_loopback_is_for_who_has_nothing_else() {
        let all = addresses(&["8.8.8.8:5", "192.168.1.2:5", "[fd00::1]:5", "127.0.0.1:5", "[::1]:5"]);
        assert_eq!(published(&all, true), all[..1]);
        assert_eq!(published(&all, false), all[..3]);
        assert_eq!(published(&all[1..], true), []);
        assert_eq!(published(&all[3..], false), all[3..]);
        assert_eq!(published(&all[3..], true), []);
    }
}
