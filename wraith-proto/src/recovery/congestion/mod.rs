//! Congestion control of one path: how many bytes may be in flight.
//!
//! Everything is integer arithmetic, so that equal inputs give equal windows on every machine. Recovery periods and
//! rounds are told apart by packet number rather than by time: packets sent at the very instant of a loss would
//! otherwise count as sent before it.

mod bbr;
mod cubic;
mod hystart;
mod queue_watch;
mod rate;

use crate::config::Congestion;
use crate::recovery::rtt::Rtt;
use crate::time::Instant;

pub(crate) use bbr::Bbr;
pub(crate) use cubic::Cubic;
pub(crate) use rate::Delivery;

/// A newly acknowledged packet that was in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    /// Its number.
    pub(crate) packet_number: u64,
    /// Its size, in bytes of UDP payload.
    pub(crate) bytes: u16,
    /// When it left.
    pub(crate) sent_at: Instant,
    /// What `on_sent` returned for it.
    pub(crate) delivery: Delivery,
}

/// A packet declared lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostPacket {
    /// Its number.
    pub(crate) packet_number: u64,
    /// Its size, in bytes of UDP payload.
    pub(crate) bytes: u16,
    /// What `on_sent` returned for it.
    pub(crate) delivery: Delivery,
}

/// Packets declared lost at one time, or a report of marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// The largest of their numbers; of a report of marks, the largest number acknowledged with it.
    pub(crate) largest: u64,
    /// Their bytes, 0 for marks.
    pub(crate) bytes: u64,
    /// Nothing got through for several probe timeouts (RFC 9002 §7.6).
    pub(crate) persistent: bool,
    /// An ACK reported marks; nothing need be lost.
    pub(crate) ecn: bool,
}

/// What loss detection tells a congestion controller and asks of it.
///
/// In flight are packets that ask for an acknowledgement, MTU probes excepted: they are reported to none of these.
pub(crate) trait CongestionController {
    /// A packet that counts as in flight leaves, which makes it `in_flight`; numbers grow from call to call. What is
    /// returned comes back with the packet's acknowledgement or loss.
    fn on_sent(&mut self, now: Instant, bytes: u16, packet_number: u64, in_flight: u64) -> Delivery;

    /// Called once per newly acknowledged packet.
    fn on_ack(&mut self, ack: &Acked);

    /// Called once per ACK frame, after its packets and after the losses that it revealed.
    ///
    /// `in_flight` is what remains. `app_limited` says that at the last opportunity there was less to send than window
    /// and pacer allowed: the window does not grow then (RFC 9002 §7.8). A wait for the pacer is no such limit.
    fn on_ack_frame_end(
        &mut self,
        now: Instant,
        largest_acked: u64,
        in_flight: u64,
        app_limited: bool,
        rtt: &Rtt,
    );

    /// Called once per lost packet, oldest first, before `on_loss` for all that were found together.
    fn on_packet_lost(&mut self, _now: Instant, _lost: &LostPacket) {}

    /// There was less to send than window and pacer allowed.
    fn on_app_limited(&mut self) {}

    /// Packets were lost, or marked. Congestion reduces the window at most once per round trip (RFC 9002 §7.3.1).
    fn on_loss(&mut self, now: Instant, lost: &Lost);

    /// All losses of the latest congestion event turned out spurious: what they changed is undone.
    fn on_spurious(&mut self);

    /// Datagrams are of another size from now on.
    fn on_mtu(&mut self, mtu: u16);

    /// Bytes that may be in flight.
    fn window(&self) -> u64;

    /// Bytes per second that packets leave at; `None` spreads a window over a round trip.
    fn pacing_rate(&self, _rtt: &Rtt) -> Option<u64> {
        None
    }

    /// Window at which slow start ends, `u64::MAX` before the first congestion.
    fn ssthresh(&self) -> u64;

    /// Whether the window doubles per round trip: the pacer then leaves it room to.
    fn in_slow_start(&self) -> bool {
        self.window() < self.ssthresh()
    }

    /// Congestion events so far, undone ones included.
    fn events(&self) -> u64;
}

/// The controller of a path; an enum, so that sessions hold it without allocation.
#[derive(Debug)]
pub(crate) enum Controller {
    /// CUBIC with `HyStart++`.
    Cubic(Cubic),
    /// `BBRv3`.
    Bbr(Bbr),
}

impl Controller {
    /// The controller for a new path.
    pub(crate) const fn new(congestion: Congestion, mtu: u16) -> Self {
        match congestion {
            Congestion::Cubic => Self::Cubic(Cubic::new(mtu)),
            Congestion::Bbr => Self::Bbr(Bbr::new(mtu)),
        }
    }
}

/// Calls the controller that there is.
macro_rules! dispatch {
    ($controller:expr, $inner:ident => $call:expr) => {
        match $controller {
            Controller::Cubic($inner) => $call,
            Controller::Bbr($inner) => $call,
        }
    };
}

impl CongestionController for Controller {
    fn on_sent(&mut self, now: Instant, bytes: u16, packet_number: u64, in_flight: u64) -> Delivery {
        dispatch!(self, inner => inner.on_sent(now, bytes, packet_number, in_flight))
    }

    fn on_ack(&mut self, ack: &Acked) {
        dispatch!(self, inner => inner.on_ack(ack));
    }

    fn on_ack_frame_end(
        &mut self,
        now: Instant,
        largest_acked: u64,
        in_flight: u64,
        app_limited: bool,
        rtt: &Rtt,
    ) {
        dispatch!(self, inner => inner.on_ack_frame_end(now, largest_acked, in_flight, app_limited, rtt));
    }

    fn on_packet_lost(&mut self, now: Instant, lost: &LostPacket) {
        dispatch!(self, inner => inner.on_packet_lost(now, lost));
    }

    fn on_app_limited(&mut self) {
        dispatch!(self, inner => inner.on_app_limited());
    }

    fn on_loss(&mut self, now: Instant, lost: &Lost) {
        dispatch!(self, inner => inner.on_loss(now, lost));
    }

    fn on_spurious(&mut self) {
        dispatch!(self, inner => inner.on_spurious());
    }

    fn on_mtu(&mut self, mtu: u16) {
        dispatch!(self, inner => inner.on_mtu(mtu));
    }

    fn window(&self) -> u64 {
        dispatch!(self, inner => inner.window())
    }

    fn pacing_rate(&self, rtt: &Rtt) -> Option<u64> {
        dispatch!(self, inner => inner.pacing_rate(rtt))
    }

    fn ssthresh(&self) -> u64 {
        dispatch!(self, inner => inner.ssthresh())
    }

    fn events(&self) -> u64 {
        dispatch!(self, inner => inner.events())
    }
}

/// Window of a new path (RFC 9002 §7.2).
const fn initial_window(mtu: u16) -> u64 {
    let ten = 10 * mtu as u64;
    let bound = if minimum_window(mtu) > 14_720 { minimum_window(mtu) } else { 14_720 };
    if ten < bound { ten } else { bound }
}

/// Window that nothing reduces further (RFC 9002 §7.2).
const fn minimum_window(mtu: u16) -> u64 {
    2 * mtu as u64
}

/// No window grows further, 1 TiB: arithmetic stays far from overflow.
const MAXIMUM_WINDOW: u64 = 1 << 40;
