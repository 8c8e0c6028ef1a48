//! Ethernet, IP and UDP, as they stand in front of a datagram. Pure: bytes in, values out.

use std::fmt;

/// The address of a network device on its link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
