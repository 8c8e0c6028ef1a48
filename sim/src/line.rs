//! Flows that share a line, as congestion control is judged by: how much of it each gets, and how long the queue is.

use std::time::Duration;

use wraith_proto::{
    Config, Congestion, Dir, Endpoint, Event, Identity, Instant, Payload, SessionHandle, Source, StreamId,
};

use crate::{Host, LinkConfig, Network, Transparent};

/// A line, and how its flows are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// Bits per second.
    pub rate: u64,
    /// Round trip of an empty line.
    pub rtt: Duration,
    /// Bytes that wait at most, in percent of what the line holds in a round trip; never fewer than three packets.
    pub buffer: u64,
    /// Datagrams lost at random, of a million, in each direction.
    pub loss: u32,
    /// Seed of everything random.
    pub seed: u64,
}

/// What flows made of a line.
#[derive(Clone, PartialEq, Debug)]
pub struct Usage {
    /// Stream data of each flow, in bits per second.
    pub goodput: Vec<u64>,
    /// Mean of the first flow's smoothed round trip beyond the empty line's.
    pub queueing: Duration,
}

impl Line {
    /// Lets one flow for each of `flows` send without end, and measures once they had time to settle.
    ///
    /// A single flow has 5 s and 20 round trips, then 10 s and 20 round trips are measured. Several begin two seconds
    /// apart, have a minute and 200 round trips, and are measured for a minute: from one probe to the next shares
    /// change.
    ///
    /// # Panics
    /// If a flow does not connect within 30 seconds.
    pub fn run(&self, flows: &[Congestion]) -> Usage {
        let mut race = Race::new(self, flows.len());
        let mut sessions = Vec::new();
        for (number, &congestion) in (1..).zip(flows) {
            if number > 1 {
                race.network.run_for(Duration::from_secs(2));
            }
            let sender = race.add(self, number, congestion);
            sessions.push((sender, race.start(sender)));
        }
        let (settle, measure) = match flows {
            [_] => (Duration::from_secs(5) + 20 * self.rtt, Duration::from_secs(10) + 20 * self.rtt),
            _ => (Duration::from_mins(1) + 200 * self.rtt, Duration::from_mins(1)),
        };
        race.network.run_for(settle);
        let before = race.received(&sessions);
        let mut queueing = Duration::ZERO;
        for _ in 0..SAMPLES {
            race.network.run_for(measure / SAMPLES);
            queueing += race.round_trip(sessions[0]).saturating_sub(self.rtt);
        }
        let after = race.received(&sessions);
        let rate = |(after, before): (u64, u64)| {
            (u128::from(after - before) * 8_000_000_000 / measure.as_nanos()) as u64
        };
        Usage { goodput: after.into_iter().zip(before).map(rate).collect(), queueing: queueing / SAMPLES }
    }
}

/// Times that the round trip is looked at.
const SAMPLES: u32 = 200;

/// The receiver is node 0; its link is the line.
struct Race {
    network: Network<Flow>,
}

impl Race {
    fn new(line: &Line, flows: usize) -> Self {
        let bytes = u128::from(line.rate) * line.rtt.as_nanos() / 8_000_000_000;
        let queue = (bytes as u64 * line.buffer / 100).max(3_600) as usize;
        let link = LinkConfig::perfect()
            .with_latency(line.rtt / 4)
            .with_rate(Some(line.rate))
            .with_queue_bytes(queue)
            .with_loss(line.loss);
        let mut network = Network::new(line.seed);
        network.add(config(0, Congestion::default()), link, Flow { number: 0, received: vec![0; flows + 1] });
        Self { network }
    }

    fn add(&mut self, line: &Line, number: u8, congestion: Congestion) -> u32 {
        let link = LinkConfig::perfect().with_latency(line.rtt / 4);
        self.network.add(config(number, congestion), link, Flow { number, received: Vec::new() })
    }

    /// Connects, and offers more data than will ever be sent.
    fn start(&mut self, sender: u32) -> SessionHandle {
        let session = self.network.dial(sender, 0).expect("a free session");
        let connected = |network: &Network<Flow>| network.node(sender).last_connected() == Some(session);
        assert!(self.network.run_until(connected, Duration::from_secs(30)), "it did not connect");
        let mut opened = self.network.node_mut(sender).endpoint.session(session).expect("it is connected");
        let stream = opened.open(Dir::Uni).expect("the first stream");
        opened.attach(stream, 1 << 50).expect("the stream is new");
        session
    }

    fn round_trip(&mut self, (sender, session): (u32, SessionHandle)) -> Duration {
        let session = self.network.node_mut(sender).endpoint.session(session).expect("it is connected");
        session.stats().rtt
    }

    fn received(&self, sessions: &[(u32, SessionHandle)]) -> Vec<u64> {
        let received = &self.network.node(0).host.received;
        sessions.iter().map(|&(sender, _)| received[sender as usize]).collect()
    }
}

fn config(number: u8, congestion: Congestion) -> Config {
    let mut config = Config::new(Identity::from_seed([number + 1; 32]), b"wraith-sim");
    config.crypto = Transparent::CHECKED;
    config.limits.sent_packets = 1 << 18;
    config.transport = config.transport.with_congestion(congestion);
    config
}

/// Sends its own number without end, and counts by the first byte what arrives.
#[derive(Debug, Default)]
struct Flow {
    number: u8,
    /// Bytes by the number of their sender.
    received: Vec<u64>,
}

impl Source for Flow {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, buf: &mut [u8]) -> usize {
        buf.fill(self.number);
        buf.len()
    }
}

impl Host for Flow {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        if let Payload::Stream { data, .. } = payload
            && let Some(&number) = data.first()
        {
            self.received[usize::from(number)] += data.len() as u64;
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, _: SessionHandle, _: Event) {}
}

/// A cell of the table of congestion control: flows on a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    flows: Vec<Congestion>,
    line: Line,
}

impl Cell {
    /// The columns of [`row`](Self::row).
    pub const HEADER: &'static str =
        "flows,mbit,rtt_ms,buffer_percent,loss_ppm,share,second_share,queueing_ms";

    /// The cell of `flows` (`cubic`, `bbr`, joined by `+`) at `mbit` Mbit/s and `rtt` ms, with `buffer` percent of what
    /// the line holds and `loss` of a million datagrams lost.
    ///
    /// # Panics
    /// If there is no such algorithm.
    pub fn new(flows: &str, mbit: u64, rtt: u64, buffer: u64, loss: u32) -> Self {
        let flows = flows.split('+').map(|name| match name {
            "cubic" => Congestion::Cubic,
            "bbr" => Congestion::Bbr,
            _ => panic!("there is no {name}"),
        });
        let line = Line { rate: mbit * 1_000_000, rtt: Duration::from_millis(rtt), buffer, loss, seed: 1 };
        Self { flows: flows.collect(), line }
    }

    /// The cell of a row of the table, or of its first five columns.
    pub fn parse(row: &str) -> Option<Self> {
        let mut columns = row.split(',');
        let flows = columns.next()?;
        let mut number = || columns.next()?.parse::<u64>().ok();
        Some(Self::new(flows, number()?, number()?, number()?, u32::try_from(number()?).ok()?))
    }

    /// Lets the flows run.
    pub fn run(&self) -> Usage {
        self.line.run(&self.flows)
    }

    /// The row of the table: shares are stream data in percent of the line.
    pub fn row(&self, usage: &Usage) -> String {
        let name = |flow: &Congestion| if *flow == Congestion::Bbr { "bbr" } else { "cubic" };
        let flows: Vec<&str> = self.flows.iter().map(name).collect();
        let Line { rate, rtt, buffer, loss, .. } = self.line;
        let share = |flow: usize| {
            usage
                .goodput
                .get(flow)
                .map_or(String::new(), |&bits| format!("{:.1}", bits as f64 * 100.0 / rate as f64))
        };
        format!(
            "{},{},{},{buffer},{loss},{},{},{:.1}",
            flows.join("+"),
            rate / 1_000_000,
            rtt.as_millis(),
            share(0),
            share(1),
            usage.queueing.as_secs_f64() * 1e3
        )
    }
}
