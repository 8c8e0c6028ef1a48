//! A packet's way through both endpoints, step by step.

use std::time::{Duration, Instant};

use wraith_proto::Congestion;
use wraith_proto::crypto::{CryptoProvider, Suite};

use crate::Duo;

/// Packets that leave in one turn and are acknowledged together.
pub const BATCH: usize = 32;

/// What happens to a packet, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The application queues a datagram. Nothing for streams.
    Queue,
    /// The sender makes packets of it, and seals them.
    Build,
    /// The receiver opens the packets and lends what they carry.
    Receive,
    /// The receiver builds its acknowledgement.
    BuildAck,
    /// The sender takes the acknowledgement.
    TakeAck,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Queue, Self::Build, Self::Receive, Self::BuildAck, Self::TakeAck];

    /// What its benchmark is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "1_queue",
            Self::Build => "2_build",
            Self::Receive => "3_receive",
            Self::BuildAck => "4_build_ack",
            Self::TakeAck => "5_take_ack",
        }
    }
}

/// A session with data to the right and acknowledgements to the left.
#[derive(Debug)]
pub struct Lane {
    duo: Duo,
    streams: bool,
}

impl Lane {
    /// Unreliable datagrams in packets of `packet` bytes, protected by one of these suites.
    ///
    /// # Panics
    /// If the provider has none of them.
    pub fn datagrams(crypto: &'static dyn CryptoProvider, suites: &'static [Suite], packet: u16) -> Self {
        let mut duo = Duo::new(
            |config| {
                config.crypto = crypto;
                config.transport.suites = suites;
                config.transport = config.transport.with_min_datagram(packet).with_max_datagram(packet);
                // A window, and no rate that time has to pass for.
                config.transport.congestion = Congestion::Cubic;
            },
            BATCH,
        );
        duo.connect();
        let mut lane = Self { duo, streams: false };
        // The congestion window starts with less than a batch.
        while lane.round(|_| {}) < BATCH {}
        lane
    }

    /// A stream without end in packets of `packet` bytes, its data lent from where they lie or copied.
    ///
    /// # Panics
    /// As [`datagrams`](Self::datagrams).
    pub fn stream(
        crypto: &'static dyn CryptoProvider,
        suites: &'static [Suite],
        packet: u16,
        lends: bool,
    ) -> Self {
        let mut lane = Self::datagrams(crypto, suites, packet);
        lane.duo.left.open_endless_stream(lends);
        lane.streams = true;
        lane
    }

    /// Sends as many packets as leave in one turn, and has them acknowledged; calls `done` behind each step.
    /// Returns how many there were.
    fn round(&mut self, mut done: impl FnMut(Step)) -> usize {
        self.duo.pass(Duration::from_micros(500));
        let now = self.duo.now();
        let Duo { left, right, .. } = &mut self.duo;
        if !self.streams {
            left.queue_datagrams(BATCH);
        }
        done(Step::Queue);
        left.turn(now);
        done(Step::Build);
        let packets = right.take_all(now, left);
        done(Step::Receive);
        right.turn(now);
        done(Step::BuildAck);
        left.take_all(now, right);
        done(Step::TakeAck);
        packets
    }

    /// The time of `packets` packets, all steps.
    ///
    /// # Panics
    /// If anything but the queue limits how many leave in a turn.
    pub fn whole(&mut self, packets: u64) -> Duration {
        let mut sent = 0;
        let start = Instant::now();
        while sent < packets {
            sent += self.full_round(|_| {});
        }
        start.elapsed().mul_f64(packets as f64 / sent as f64)
    }

    /// The time of one step of `packets` packets.
    ///
    /// # Panics
    /// As [`whole`](Self::whole).
    pub fn only(&mut self, step: Step, packets: u64) -> Duration {
        let (mut time, mut sent) = (Duration::ZERO, 0);
        while sent < packets {
            let mut last = Instant::now();
            sent += self.full_round(|done| {
                let now = Instant::now();
                if done == step {
                    time += now - last;
                }
                last = now;
            });
        }
        time.mul_f64(packets as f64 / sent as f64)
    }

    fn full_round(&mut self, done: impl FnMut(Step)) -> u64 {
        let packets = self.round(done);
        assert_eq!(packets, BATCH, "nothing but the queue limits a turn");
        packets as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers;

    const PACKET: u16 = 1364;

    #[test]
    fn a_round_of_datagrams_arrives_whole_and_is_acknowledged() {
        for (_, provider) in providers() {
            for suites in provider.suites().chunks(1) {
                let mut lane = Lane::datagrams(provider, suites, PACKET);
                let session = lane.duo.left.session.expect("it is connected");
                let received = lane.duo.right.received;
                assert_eq!(lane.round(|_| {}), BATCH);
                let left = lane.duo.left.endpoint.session(session).expect("it is not over");
                assert_eq!(left.suite(), Some(suites[0]));
                assert_eq!(lane.duo.right.received - received, (BATCH * left.max_datagram()) as u64);
                assert_eq!(left.stats().bytes_in_flight, 0);
            }
        }
    }

    #[test]
    fn a_stream_fills_its_packets() {
        for lends in [false, true] {
            let mut lane = Lane::stream(providers()[0].1, &[], PACKET, lends);
            let received = lane.duo.right.received;
            assert_eq!(lane.round(|_| {}), BATCH);
            let stream = lane.duo.right.received - received;
            // Header, tag, frame and length take up to 50 bytes of each.
            let most = BATCH as u64 * u64::from(PACKET);
            assert!((most - BATCH as u64 * 50..most).contains(&stream), "{stream} of {most} bytes");
        }
    }

    #[test]
    fn the_steps_of_a_round_come_in_order() {
        let mut lane = Lane::datagrams(providers()[0].1, &[], PACKET);
        let mut steps = Vec::new();
        lane.round(|step| steps.push(step));
        assert_eq!(steps, Step::ALL);
    }
}
