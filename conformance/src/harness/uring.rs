//! Pairs of the driver on `io_uring` over loopback, in every way that it can be asked for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use wraith_drivers_uring::{BindError, Options, UringDriver, ZeroCopy};

use super::{Harness, Link, Pair, Setup};

/// Longest payload over IPv6 on loopback, whose MTU is 65,536: 40 bytes less for IP, 8 for UDP.
const LOOPBACK_V6: usize = 65_488;

/// Two drivers on loopback, over IPv6 if asked to, that start from `whole`.
fn pair(link: &Link, ipv6: bool, whole: Options) -> Result<Pair<UringDriver>, Setup> {
    let ip = if ipv6 { IpAddr::V6(Ipv6Addr::LOCALHOST) } else { IpAddr::V4(Ipv4Addr::LOCALHOST) };
    let bind = |options: &Options| {
        UringDriver::bind(SocketAddr::new(ip, 0), options).map_err(|error| match error {
            BindError::Refused(refusal) => Setup::Unavailable(refusal.to_string()),
            error => Setup::Failed(error.to_string()),
        })
    };
    // Little memory, so that cases meet its end; the longest datagram must fit all the same.
    let small = Options { slot_bytes: link.tx_slots * usize::from(link.mtu), ..whole };
    let left = if link.tx_slots < Link::default().tx_slots { small } else { whole };
    let right = Options { buffer_bytes: link.right_slot.unwrap_or(left.buffer_bytes), ..left };
    Ok(Pair::new(bind(&left)?, bind(&right)?))
}

/// Writes a harness: what it is, its name, whether it insists on IPv6, and its options.
macro_rules! harness {
    ($(#[$doc:meta])* $type:ident, $name:literal, $ipv6:literal, $options:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $type;

        impl Harness for $type {
            type Driver = UringDriver;

            const NAME: &'static str = $name;

            fn pair(link: &Link) -> Result<Pair<Self::Driver>, Setup> {
                pair(link, link.ipv6 || $ipv6, $options)
            }

            fn path_limit(link: &Link) -> Option<usize> {
                (link.ipv6 || $ipv6).then_some(LOOPBACK_V6)
            }
        }
    };
}

harness!(
    /// Pairs of [`UringDriver`] on 127.0.0.1, or on `::1` where a case asks for IPv6.
    Uring, "uring", false, Options::default()
);
harness!(
    /// Pairs of [`UringDriver`] on `::1`.
    UringIpv6, "uring-ipv6", true, Options::default()
);
harness!(
    /// Pairs of [`UringDriver`] with a single slot and a single receive buffer, which run out all the time.
    UringOneBuffer, "uring-one-buffer", false, Options { buffers: 1, slots: 1, ..Options::default() }
);
harness!(
    /// Pairs of [`UringDriver`] whose sends leave the copying to the device.
    UringZeroCopy, "uring-zero-copy", false,
    Options { zero_copy: ZeroCopy::Always, slots: 8, ..Options::default() }
);
harness!(
    /// Pairs of [`UringDriver`] for which a thread of the kernel submits.
    UringPollThread, "uring-poll-thread", false,
    Options { poll_thread: Some(Duration::from_millis(1)), ..Options::default() }
);
harness!(
    /// Pairs of [`UringDriver`] whose parks poll the device before they sleep.
    UringBusyPoll, "uring-busy-poll", false,
    Options { busy_poll: Some(Duration::from_micros(20)), ..Options::default() }
);
