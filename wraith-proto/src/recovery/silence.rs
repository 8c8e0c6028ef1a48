//! What probe timeouts without an answer change.

use core::time::Duration;

use super::Recovery;

/// Probe timeouts in a row whose probes take new data along whatever the window says (RFC 9002 §6.2.4): after more of
/// them only what is in flight is repeated, or hours of silence would put everything there is in flight.
const GENEROUS_TIMEOUTS: u32 = 2;

impl Recovery {
    /// Whether the next packet may carry what was not sent before.
    pub(crate) fn admits_new(&self) -> bool {
        self.probes == 0 || self.pto_count <= GENEROUS_TIMEOUTS || self.window_admits(self.path_mtu.size())
    }

    /// How much time goes by until `count` probe timeouts in a row have passed, as long as they back off.
    pub(crate) fn after_timeouts(&self, count: u32) -> Duration {
        self.pto_base().saturating_mul((1 << count.min(10)) - 1)
    }
}
