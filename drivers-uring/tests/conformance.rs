//! The driver keeps the contract, over both versions of IP and in every way that it can be asked for.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use wraith_conformance::{Harness, Link, Pair, Setup};
use wraith_drivers_uring::{BindError, Options, UringDriver, ZeroCopy};

wraith_conformance::counting_allocator!();

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

/// Writes a harness: its name, whether it insists on IPv6, and its options.
macro_rules! harness {
    ($type:ident, $name:literal, $ipv6:literal, $options:expr) => {
        struct $type;

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

harness!(Uring, "uring", false, Options::default());
harness!(UringIpv6, "uring-ipv6", true, Options::default());
harness!(OneBuffer, "uring-one-buffer", false, Options { buffers: 1, slots: 1, ..Options::default() });
harness!(
    ZeroCopies,
    "uring-zero-copy",
    false,
    Options { zero_copy: ZeroCopy::Always, slots: 8, ..Options::default() }
);
harness!(
    PollThread,
    "uring-poll-thread",
    false,
    Options { poll_thread: Some(Duration::from_millis(10)), ..Options::default() }
);
harness!(
    BusyPoll,
    "uring-busy-poll",
    false,
    Options { busy_poll: Some(Duration::from_micros(20)), ..Options::default() }
);

mod ipv4 {
    wraith_conformance::suite!(super::Uring: Park + Pollable);
}

mod ipv6 {
    wraith_conformance::suite!(super::UringIpv6: Park + Pollable);
}

mod one_buffer {
    wraith_conformance::suite!(super::OneBuffer: Park + Pollable);
}

mod zero_copy {
    wraith_conformance::suite!(super::ZeroCopies: Park + Pollable);
}

mod poll_thread {
    wraith_conformance::suite!(super::PollThread: Park + Pollable);
}

mod busy_poll {
    wraith_conformance::suite!(super::BusyPoll: Park + Pollable);
}
