//! Drivers around drivers.

#[cfg(feature = "netem")]
mod netem;
#[cfg(feature = "pcap")]
mod pcap;
#[cfg(feature = "tracing")]
mod trace;

#[cfg(feature = "netem")]
pub use netem::Netem;
#[cfg(feature = "pcap")]
pub use pcap::Pcap;
#[cfg(feature = "tracing")]
pub use trace::Trace;

#[cfg(any(feature = "pcap", feature = "tracing"))]
use {
    crate::{Driver, Slots, TxReport},
    std::io,
    wraith_proto::{TxMeta, TxQueue},
};

/// Shows what is committed to `seen` and hands it to `inner`, in order, as far as that has room; the rest stays.
#[cfg(any(feature = "pcap", feature = "tracing"))]
fn pass_on<D: Driver>(
    slots: &mut Slots,
    inner: &mut D,
    mut seen: impl FnMut(&TxMeta, &[u8]),
) -> io::Result<TxReport> {
    let mut total = TxReport::default();
    loop {
        let mut passed = 0;
        for (meta, datagram) in slots.committed() {
            let Some(room) = inner.tx().reserve(meta, datagram.len()) else { break };
            room[..datagram.len()].copy_from_slice(datagram);
            inner.tx().commit(datagram.len());
            seen(meta, datagram);
            passed += 1;
        }
        slots.retire(passed);
        let report = inner.flush()?;
        total.sent += report.sent;
        total.dropped += report.dropped;
        total.syscalls += report.syscalls;
        total.join_too_long(&report);
        total.in_flight = report.in_flight + slots.committed().len();
        // Again while there is more and the network takes some.
        if slots.committed().len() == 0 || report.sent + report.dropped == 0 {
            return Ok(total);
        }
    }
}
