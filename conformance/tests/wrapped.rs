//! A driver keeps the contract in a wrapper, too.

use std::io::{self, Sink};

use wraith_conformance::{Harness, Link, Memory, Pair, Setup};
use wraith_drivers::{MemoryDriver, Pcap, Trace};

wraith_conformance::counting_allocator!();

struct Captured;

impl Harness for Captured {
    type Driver = Pcap<MemoryDriver, Sink>;
    const NAME: &'static str = "pcap";

    fn pair(link: &Link) -> Result<Pair<Self::Driver>, Setup> {
        let Pair { left, right, guard } = Memory::pair(link)?;
        Ok(Pair { left: Pcap::new(left, io::sink()), right: Pcap::new(right, io::sink()), guard })
    }
}

struct Traced;

impl Harness for Traced {
    type Driver = Trace<MemoryDriver>;
    const NAME: &'static str = "trace";

    fn pair(link: &Link) -> Result<Pair<Self::Driver>, Setup> {
        let Pair { left, right, guard } = Memory::pair(link)?;
        Ok(Pair { left: Trace::new(left), right: Trace::new(right), guard })
    }
}

mod captured {
    wraith_conformance::suite!(super::Captured: Park);
}

mod traced {
    wraith_conformance::suite!(super::Traced: Park);
}
