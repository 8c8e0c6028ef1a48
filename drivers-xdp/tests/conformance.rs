//! The driver keeps the contract. The runner tries it in more ways: other MTUs, and each with both versions of IP.
#![cfg(target_os = "linux")]

wraith_conformance::counting_allocator!();

mod native {
    wraith_conformance::suite!(wraith_conformance::Xdp: Park + Pollable);
}

mod generic_ipv6_9000 {
    wraith_conformance::suite!(wraith_conformance::XdpGeneric9000Ipv6: Park + Pollable);
}
