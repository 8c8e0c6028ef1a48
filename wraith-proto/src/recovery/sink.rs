//! Who is told what became of packets.

use super::SentFrame;

/// Told what became of frames that were sent.
pub(crate) trait AckSink {
    /// The frame reached the peer.
    fn acked(&mut self, frame: &SentFrame);
    /// The frame did not, and is not stream data: it has to be made anew.
    fn lost(&mut self, frame: &SentFrame);
    /// The peer saw our acknowledgement of numbers below this one.
    fn ack_seen(&mut self, below: u64);

    /// The packet was acknowledged. This and the following are for whoever traces packets.
    fn packet_acked(&mut self, _number: u64) {}
    /// The packet is lost: `overtaken` by enough later ones, or too old.
    fn packet_lost(&mut self, _number: u64, _overtaken: bool, _largest_acked: u64) {}
    /// A probe carries what the packet carried.
    fn packet_probed(&mut self, _number: u64, _largest_acked: Option<u64>) {}
    /// These packets had been given up.
    fn lost_packets_arrived(&mut self, _first: u64, _last: u64) {}
}
