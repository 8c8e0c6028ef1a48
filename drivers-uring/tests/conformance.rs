//! The driver keeps the contract, over both versions of IP and in every way that it can be asked for.
#![cfg(target_os = "linux")]

wraith_conformance::counting_allocator!();

mod ipv4 {
    wraith_conformance::suite!(wraith_conformance::Uring: Park + Pollable);
}

mod ipv6 {
    wraith_conformance::suite!(wraith_conformance::UringIpv6: Park + Pollable);
}

mod one_buffer {
    wraith_conformance::suite!(wraith_conformance::UringOneBuffer: Park + Pollable);
}

mod zero_copy {
    wraith_conformance::suite!(wraith_conformance::UringZeroCopy: Park + Pollable);
}

mod poll_thread {
    wraith_conformance::suite!(wraith_conformance::UringPollThread: Park + Pollable);
}

mod busy_poll {
    wraith_conformance::suite!(wraith_conformance::UringBusyPoll: Park + Pollable);
}
