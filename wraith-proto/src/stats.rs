//! Plain counters.

use core::time::Duration;

use crate::error::DropReason;

/// Counters of an endpoint since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Datagrams given to `handle`.
    pub datagrams_received: u64,
    /// Bytes of these datagrams.
    pub bytes_received: u64,
    /// Datagrams committed by `poll_transmit`.
    pub datagrams_sent: u64,
    /// Bytes of these datagrams.
    pub bytes_sent: u64,
    /// Packets that authenticated.
    pub packets_opened: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets whose loss turned out to be none.
    pub spurious_losses: u64,
    /// Packets that carried an acknowledgement.
    pub acks_sent: u64,
    /// Times that a session wanted to send but had no record for the packet.
    pub records_exhausted: u64,
    /// Stream bytes that arrived but were not taken, and will be sent again.
    pub bytes_refused: u64,
    /// Packets sent to learn what a path carries.
    pub mtu_probes_sent: u64,
    /// Datagrams that the caller could not send because they were too large for its host, those of no session with them.
    pub datagrams_refused: u64,
    /// Addresses from which a session's peer began to send and that were asked whether it is there (`PROTO §13.1`).
    pub path_checks_begun: u64,
    /// Checks that the peer answered from there: it has moved.
    pub paths_validated: u64,
    /// Checks that ended otherwise: the peer is still where it was, or did not answer, or the session ended.
    pub path_checks_given_up: u64,
    /// Packets from another address that began no check: another one is pending, the peer has moved twice within a
    /// second, or there is no room for one.
    pub path_checks_refused: u64,
    /// Queued unreliable datagrams that were dropped because the path had come to carry less.
    pub datagrams_unfit: u64,
    /// Handshakes begun as the dialling side.
    pub handshakes_initiated: u64,
    /// Of these, dials of peers that had fallen silent, by themselves.
    pub redials: u64,
    /// First messages that were answered with a second.
    pub handshakes_answered: u64,
    /// Handshakes that became sessions.
    pub handshakes_completed: u64,
    /// First messages answered with a cookie.
    pub cookies_sent: u64,
    /// Datagrams answered with the list of versions.
    pub version_answers_sent: u64,
    /// X25519 operations.
    pub dh_operations: u64,
    /// Times that a session began to send with fresh keys.
    pub epochs_begun: u64,
    /// Packets, authentic or not, whose keys had to be expanded again, since they had made room for those of other sessions
    /// (`Limits::expanded_keys`).
    pub keys_missed: u64,
    /// Sessions looked at by `handle_timeout` and `poll_transmit`: never grows with idle sessions.
    pub sessions_visited: u64,
    /// Calls whose `now` was earlier than that of a call before.
    pub clock_regressions: u64,
    /// Datagrams without effect, by reason.
    drops: [u64; DropReason::COUNT],
}

impl Stats {
    /// Datagrams dropped for `reason`.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Datagrams dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }

    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }
}

/// Counters and estimates of one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SessionStats {
    /// Smoothed round-trip time (RFC 9002 §5.3), zero before the first sample.
    pub rtt: Duration,
    /// Latest round-trip sample.
    pub latest_rtt: Duration,
    /// Smallest round-trip sample.
    pub min_rtt: Duration,
    /// Congestion window, in bytes.
    pub congestion_window: u64,
    /// Bytes sent and neither acknowledged nor lost.
    pub bytes_in_flight: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Times that the congestion window was reduced since the peer is at its address.
    pub congestion_events: u64,
    /// The epoch whose keys protect what is sent (`PROTO §5.13`).
    pub epoch: u32,
    /// Largest datagram that the session sends, in bytes of UDP payload.
    pub datagram_size: u16,
}
