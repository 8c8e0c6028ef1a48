//! The driver keeps the contract, over both versions of IP.

wraith_conformance::counting_allocator!();

mod ipv4 {
    wraith_conformance::suite!(wraith_conformance::Mio: Park + Pollable);
}

mod ipv6 {
    wraith_conformance::suite!(wraith_conformance::MioIpv6: Park + Pollable);
}
