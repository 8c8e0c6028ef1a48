//! One port, several threads: each has a socket of that port and an endpoint of its own, a shard.
//!
//! `cargo run -p wraith-drivers-mio --example shards` runs two shards and 32 peers, each with 1 MiB to
//! deliver, half of it from another port, and prints what each shard took.
//!
//! The system spreads peers over the sockets by their addresses. A handshake stays with the shard whose socket it came
//! to, and that shard's connection ids lead back to it: `Endpoint::shard_of` reads the shard from any later datagram.
//! A peer whose address changes may come in at another socket; its datagrams are handed over to where they belong.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use bytes::Bytes;
use wraith_drivers::{App, Driver, Park, Runner, Turn, Unpark};
use wraith_drivers_mio::{MioDriver, MioUnparker, Options};
use wraith_proto::crypto::PeerId;
use wraith_proto::{
    Budget, CloseReason, Config, Dir, Endpoint, Event, Identity, Instant, Limits, NoSource, Payload, Peer,
    Progress, RxMeta, Session, SessionHandle, Shard, Source, StreamId, TxStatus, Via,
};

type Failure = Box<dyn Error + Send + Sync>;

const SHARDS: u8 = 2;
const PEERS: u8 = 32;
const BYTES: usize = 1 << 20;

/// Datagrams that wait to be handed over to a shard; those beyond are dropped, as a full socket would.
const STRAYS: usize = 1024;

/// A datagram that came in at another shard's socket.
struct Stray {
    meta: RxMeta,
    datagram: Box<[u8]>,
}

/// How to reach a shard.
#[derive(Clone)]
struct Door {
    strays: SyncSender<Stray>,
    unparker: MioUnparker,
}

/// A socket, an endpoint, and what they have done.
struct Worker {
    shard: Shard,
    driver: MioDriver,
    endpoint: Endpoint,
    strays: Receiver<Stray>,
    took: Took,
}

#[derive(Clone, Copy, Default)]
struct Took {
    sessions: usize,
    moves: usize,
    bytes: usize,
    handed_over: usize,
}

fn main() -> Result<(), Failure> {
    let (mut workers, mut doors, mut port) = (Vec::new(), Vec::new(), 0);
    for index in 0..SHARDS {
        let (worker, door) = Worker::new(Shard { index, count: SHARDS }, port)?;
        port = worker.driver.local_addr().port();
        workers.push(worker);
        doors.push(door);
    }
    let id = workers[0].endpoint.config().identity.peer_id();
    let (doors, stop): (Arc<[Door]>, _) = (doors.into(), Arc::new(AtomicBool::new(false)));
    let threads: Vec<_> = workers
        .into_iter()
        .map(|worker| {
            let (doors, stop) = (doors.clone(), stop.clone());
            thread::spawn(move || worker.run(&doors, &stop))
        })
        .collect();
    for number in 0..PEERS {
        deliver(number, (Ipv4Addr::LOCALHOST, port).into(), id)?;
    }
    stop.store(true, Ordering::Release);
    for door in &*doors {
        door.unparker.unpark()?;
    }
    let mut all = Took::default();
    for (index, thread) in threads.into_iter().enumerate() {
        let Took { sessions, moves, bytes, handed_over } =
            thread.join().map_err(|_| "a shard panicked")??;
        println!(
            "shard {index}: {sessions} sessions, {moves} moves, {bytes} bytes, {handed_over} datagrams handed over"
        );
        all.sessions += sessions;
        all.moves += moves;
        all.bytes += bytes;
        all.handed_over += handed_over;
    }
    let peers = usize::from(PEERS);
    assert_eq!((all.sessions, all.moves, all.bytes), (peers, peers, peers * BYTES));
    // Each other port leads to another socket by chance: one time in 2^32 none does.
    assert_ne!(all.handed_over, 0);
    Ok(())
}

impl Worker {
    /// A shard that listens on `port`; 0 lets the system choose one.
    fn new(shard: Shard, port: u16) -> Result<(Self, Door), Failure> {
        let options = Options { reuse_port: true, ..Options::default() };
        let driver = MioDriver::bind((Ipv4Addr::LOCALHOST, port).into(), &options)?;
        // One identity. The seed has to be 32 fresh bytes from the operating system; shards may share them, for each
        // adds its number.
        let mut config = Config::new(Identity::from_seed([1; 32]), b"shards");
        (config.shard, config.limits) = (shard, Limits::server(PEERS.into()));
        let endpoint = Endpoint::new(config, [1; 32], driver.now())?;
        let (sender, strays) = sync_channel(STRAYS);
        let door = Door { strays: sender, unparker: driver.unparker() };
        Ok((Self { shard, driver, endpoint, strays, took: Took::default() }, door))
    }

    /// Serves until it is to stop; returns what it took.
    fn run(mut self, doors: &[Door], stop: &AtomicBool) -> Result<Took, Failure> {
        while !stop.load(Ordering::Acquire) {
            self.receive(doors)?;
            let again = self.endpoint.handle_timeout(self.driver.now(), Budget(1024)) == Progress::More;
            while let Some((_, event)) = self.endpoint.poll_event() {
                match event {
                    Event::Connected => self.took.sessions += 1,
                    Event::PathChanged => self.took.moves += 1,
                    _ => {}
                }
            }
            let again = self.transmit()? || again;
            let next = self.endpoint.poll_timeout().map(|deadline| deadline.at);
            if !again {
                self.driver.park(next)?;
            }
        }
        Ok(self.took)
    }

    /// Takes what came in here and what others handed over; hands over what is others'.
    fn receive(&mut self, doors: &[Door]) -> Result<(), Failure> {
        let Self { shard, driver, endpoint, strays, took } = self;
        let now = driver.now();
        for mut stray in strays.try_iter() {
            took.bytes += take(endpoint, now, &stray.meta, &mut stray.datagram);
        }
        driver.recv(256, |meta, datagram| match Endpoint::shard_of(datagram, SHARDS) {
            Some(index) if index != shard.index => {
                let door = &doors[usize::from(index)];
                // It answers through a socket of its own, to which this one's token means nothing.
                let meta = RxMeta { via: Via::default(), ..*meta };
                let handed = door.strays.try_send(Stray { meta, datagram: (&*datagram).into() }).is_ok();
                took.handed_over += usize::from(handed && door.unparker.unpark().is_ok());
            }
            _ => took.bytes += take(endpoint, now, meta, datagram),
        })?;
        Ok(())
    }

    /// Sends what there is; returns whether there may be more.
    fn transmit(&mut self) -> Result<bool, Failure> {
        let now = self.driver.now();
        let status = self.endpoint.poll_transmit(now, self.driver.tx(), &mut NoSource, Budget(256));
        let report = self.driver.flush()?;
        Ok(status != TxStatus::Idle && report.sent > 0)
    }
}

/// Takes a datagram; returns how many bytes of streams it carried.
fn take(endpoint: &mut Endpoint, now: Instant, meta: &RxMeta, datagram: &mut [u8]) -> usize {
    let (mut received, mut bytes) = (endpoint.handle(now, meta, datagram), 0);
    while let Some(payload) = received.next() {
        if let Payload::Stream { data, .. } = payload {
            bytes += data.len();
        }
    }
    bytes
}

/// A peer: delivers its bytes in two streams, the second one from another port, and leaves.
struct Sender {
    half: Bytes,
    session: Option<SessionHandle>,
    delivered: usize,
    moved: bool,
}

fn deliver(number: u8, addr: SocketAddr, id: PeerId) -> Result<(), Failure> {
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let driver = MioDriver::bind(any, &Options::default())?;
    let config = Config::new(Identity::from_seed([100 + number; 32]), b"shards");
    let mut endpoint = Endpoint::new(config, [number; 32], driver.now())?;
    endpoint.connect(driver.now(), Peer { addr, id: Some(id) }, Via::default())?;
    let half = vec![number; BYTES / 2].into();
    let mut runner =
        Runner::new(driver, endpoint, Sender { half, session: None, delivered: 0, moved: false });
    runner.run()?;

    let (former, mut endpoint, mut sender) = runner.into_parts();
    let driver = MioDriver::bind(any, &Options::default())?.with_clock(former.clock());
    let handle = sender.session.ok_or("it was connected")?;
    let mut session = endpoint.session(handle).ok_or("it is connected")?;
    // Every second one says that it moves and takes another connection id; the others do as if a router had moved them.
    if number.is_multiple_of(2) {
        session.migrate(driver.now(), None, Via::default())?;
    }
    sender.moved = true;
    sender.write(&mut session);
    drop(former);
    Runner::new(driver, endpoint, sender).run()?;
    Ok(())
}

impl Sender {
    /// Gives half of the content to a stream.
    fn write(&self, session: &mut Session<'_>) {
        let stream = session.open(Dir::Uni).expect("the peer allows streams");
        session.write(stream, self.half.clone()).expect("one chunk fits");
        session.finish(stream).expect("it is open");
    }
}

impl App for Sender {
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn {
        match (self.delivered, self.moved) {
            (1, false) => Turn::Stop,
            (2, _) => {
                if let Some(mut session) = self.session.and_then(|session| endpoint.session(session)) {
                    session.close(now, 0);
                }
                Turn::Stop
            }
            _ => Turn::Continue,
        }
    }

    fn on_payload(&mut self, _: Payload<'_>) {}

    fn on_event(&mut self, _: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        match event {
            Event::Connected => {
                self.session = Some(session);
                self.write(&mut endpoint.session(session).expect("it is connected"));
            }
            Event::Delivered(_) => self.delivered += 1,
            Event::Closed(CloseReason::Local) if self.delivered == 2 => {}
            Event::Closed(reason) => panic!("closed: {reason:?}"),
            _ => {}
        }
    }
}

impl Source for Sender {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}
