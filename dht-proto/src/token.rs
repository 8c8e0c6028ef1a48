//! Tokens: what only the owner of an address can show, without a state for each.

use core::time::Duration;

use subtle::ConstantTimeEq;
use wraith_proto::Instant;
use zeroize::Zeroizing;

use crate::id::Id;
use crate::node::{Address, Node};

/// Shows that its bearer received something at its address.
pub type Token = [u8; 16];

/// Lets a node store under one key.
pub type WriteToken = [u8; 8];

/// How long the token of one period is given out; it is accepted as long again.
const PERIOD: Duration = Duration::from_mins(5);

/// Makes and checks tokens: keyed BLAKE3 over who it is for and the period, as the cookies of handshakes (`PROTO §4.14`).
pub(crate) struct Tokens {
    root: Zeroizing<[u8; 32]>,
}

impl Tokens {
    pub(crate) fn new(root: [u8; 32]) -> Self {
        Self { root: Zeroizing::new(root) }
    }

    /// The address token of `address`: who has it received something there. It is for whoever asks from there, since
    /// it is checked before the sender's key is known.
    pub(crate) fn address(&self, now: Instant, address: &Address) -> Token {
        self.token(period(now), address, &[])
    }

    /// The write token of `node` for records under `key`: it asked for them first.
    pub(crate) fn write(&self, now: Instant, node: &Node, key: &Id) -> WriteToken {
        self.token(period(now), &node.address, &[&node.key, key.as_bytes()])
    }

    pub(crate) fn is_address(&self, now: Instant, address: &Address, token: &Token) -> bool {
        is_current(now, token, |period| self.token(period, address, &[]))
    }

    pub(crate) fn is_write(&self, now: Instant, node: &Node, key: &Id, token: WriteToken) -> bool {
        is_current(now, &token, |period| self.token(period, &node.address, &[&node.key, key.as_bytes()]))
    }

    fn token<const N: usize>(&self, period: u64, address: &Address, of: &[&[u8; 32]]) -> [u8; N] {
        let mut hasher = blake3::Hasher::new_keyed(&self.root);
        hasher.update(&period.to_be_bytes()).update(&address.bytes());
        for part in of {
            hasher.update(*part);
        }
        let mut token = [0; N];
        hasher.finalize_xof().fill(&mut token);
        token
    }
}

/// Whether it is of this period or the one before. All zeros is how a message says that it has none.
fn is_current<const N: usize>(now: Instant, token: &[u8; N], make: impl Fn(u64) -> [u8; N]) -> bool {
    let period = period(now);
    let periods = [Some(period), period.checked_sub(1)].into_iter().flatten();
    *token != [0; N] && periods.map(make).any(|right| bool::from(right[..].ct_eq(&token[..])))
}

const fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use super::*;
    use crate::node::NodeRef;

    fn node(key: u8, address: &str) -> Node {
        NodeRef { key: [key; 32], address: address.parse::<SocketAddr>().unwrap() }.into()
    }

    fn at(period: u32) -> Instant {
        Instant::MIN.saturating_add(Duration::from_mins(5) * period)
    }

    #[test]
    fn a_token_serves_whom_it_was_made_for_and_nobody_else() {
        // PROTO §14.5, §14.12
        let tokens = Tokens::new([1; 32]);
        let (node, key) = (node(1, "9.8.7.6:5"), Id::from_bytes([3; 32]));
        let (address, write) = (tokens.address(at(4), &node.address), tokens.write(at(4), &node, &key));
        assert!(
            tokens.is_address(at(4), &node.address, &address) && tokens.is_write(at(4), &node, &key, write)
        );
        let beginning = address.first_chunk().unwrap();
        assert!(!tokens.is_write(at(4), &node, &key, *beginning));
        assert!(!tokens.is_write(at(4), &node, &Id::from_bytes([4; 32]), write));
        for other in [self::node(2, "9.8.7.6:5"), self::node(1, "9.8.7.6:6"), self::node(1, "9.8.7.5:5")] {
            assert_eq!(tokens.is_address(at(4), &other.address, &address), other.address == node.address);
            assert!(!tokens.is_write(at(4), &other, &key, write));
        }
        assert!(!Tokens::new([2; 32]).is_address(at(4), &node.address, &address));
    }

    #[test]
    fn a_token_lasts_for_its_period_and_the_next() {
        // PROTO §14.5, §14.12
        let tokens = Tokens::new([1; 32]);
        let node = node(1, "9.8.7.6:5").address;
        for made in 4..8 {
            let token = tokens.address(at(made), &node);
            let last = at(made + 1).saturating_add(Duration::from_secs(299));
            assert!(tokens.is_address(last, &node, &token));
            assert!(!tokens.is_address(at(made + 2), &node, &token));
            assert!(!tokens.is_address(at(made - 1), &node, &token));
        }
        assert!(!tokens.is_address(Instant::MIN, &node, &[0; 16]));
    }
}
