//! `bench`: encrypted packets counted at the receiver, beside the bare socket.

mod bare;
pub(crate) mod counts;
mod load;
mod row;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use wraith_drivers::Park;
use wraith_proto::{Identity, PeerId};

use crate::address::{Target, bind_for};
use crate::args::{self, Common};
use crate::cipher::{self, Offer};
use crate::device::End;
use crate::drive::drive;
use crate::driver_pick::{Job, Picked, with_driver};
use crate::failure::{Failure, Result, failed};
use crate::identity;
use crate::listen::listener;
use crate::output::Output;
use crate::stop::Stop;

use load::LoadJob;
use row::{BenchEvent, Run, heading};

/// Smallest packet: 34 bytes of it are the protocol's.
pub(crate) const MIN_PACKET: i64 = 64;
/// Largest packet: the UDP payload that IPv4 has room for.
pub(crate) const MAX_PACKET: i64 = 65_507;

/// Least time for one bare run, and about the time after which ours and the bare one alternate.
const SLICE: Duration = Duration::from_secs(2);
/// Most alternations.
const ROUNDS: u32 = 5;

/// What carries the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Datagram,
    Stream,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Datagram => "datagram",
            Self::Stream => "stream",
        }
    }
}

/// Measures within this machine, or to a listener elsewhere.
pub(crate) fn run(common: &Common, args: &args::Bench, stop: &Stop) -> Result<()> {
    let addr = args.connect.map(|target| bind_for(&target, common.bind)).transpose()?;
    let identity = identity::for_run(common.output(), common.identity.as_deref())?;
    let Some((target, addr)) = args.connect.zip(addr) else { return within(common, args, stop, identity) };
    common.output().note("the bare socket is measured only within one machine");
    let here = End { host: common.device.host(), addr };
    Bench { common, args, stop, identity, target, here, bare: None }.run()
}

/// Measures between two threads of this process.
fn within(common: &Common, args: &args::Bench, stop: &Stop, identity: Identity) -> Result<()> {
    let [there, here] = ends(common, args)?;
    // Of its own where there are devices: the receiver of the sessions has one of the others all the time.
    let bare = ends(common, args)?.map(End::with_any_port);
    let done = Stop::default();
    let (ready, server_ready) = mpsc::channel();
    let serve = ServeJob { ready, done: done.clone() };
    let (output, choice) = (common.output(), common.driver);
    let server = thread::spawn(move || with_driver(output, choice, &there.host, there.addr, serve));
    let join = || server.join().unwrap_or_else(|_| Err(failed("the receiver failed")));
    let Ok((id, addr)) = server_ready.recv() else { return join() };
    let target = Target { id, addr };
    let here = here.with_any_port();
    let result = Bench { common, args, stop, identity, target, here, bare: Some(bare) }.run();
    done.want();
    result.and(join())
}

/// The receiving end and the sending one: on virtual devices, or on loopback.
fn ends(common: &Common, args: &args::Bench) -> Result<[End; 2]> {
    if let Some(ends) = args.line.ends(common)? {
        return Ok(ends);
    }
    let end = End { host: common.device.host(), addr: local_addr(common.bind) };
    Ok([end.clone(), end])
}

/// The local address of both ends: loopback, or what `--bind` says.
fn local_addr(bind: Option<SocketAddr>) -> SocketAddr {
    match bind {
        None => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
        Some(addr) if addr.ip().is_unspecified() => {
            let ip: IpAddr =
                if addr.is_ipv6() { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
            SocketAddr::new(ip, addr.port())
        }
        Some(addr) => addr,
    }
}

/// The receiving end of a measurement within this machine.
struct ServeJob {
    ready: mpsc::Sender<(PeerId, SocketAddr)>,
    done: Stop,
}

impl Job for ServeJob {
    type Output = ();

    fn run<D: Park>(self, driver: D, _: Picked) -> Result<()> {
        let identity = identity::for_run(Output::SILENT, None)?;
        let (id, addr) = (identity.peer_id(), driver.local_addr());
        let mut runner = listener(driver, identity, Offer::ALL, Output::SILENT)?;
        let _ = self.ready.send((id, addr));
        drive(&mut runner, &self.done)
    }
}

/// A measurement: whom to, from where, and whether beside the bare socket.
struct Bench<'a> {
    common: &'a Common,
    args: &'a args::Bench,
    stop: &'a Stop,
    identity: Identity,
    target: Target,
    here: End,
    /// The ends of the bare row: the receiving one first.
    bare: Option<[End; 2]>,
}

impl Bench<'_> {
    fn run(&self) -> Result<()> {
        let output = self.common.output();
        let kinds: &[Kind] =
            if self.args.stream { &[Kind::Datagram, Kind::Stream] } else { &[Kind::Datagram] };
        let rounds = (self.args.duration.as_secs() / SLICE.as_secs()).clamp(1, u64::from(ROUNDS)) as u32;
        let slice = self.args.duration / rounds;
        let mut sums = [Run::default(), Run::default()];
        let mut bare: Option<Run> = None;
        for round in 1..=rounds {
            output.note(format_args!("round {round} of {rounds}"));
            for (&kind, sum) in kinds.iter().zip(&mut sums) {
                sum.add(&self.load(kind, slice)?);
            }
            if let Some(ends) = &self.bare {
                let duration = self.args.duration.min(SLICE);
                let run = bare::run(self.common.driver, ends, self.args.packet_size, duration, self.stop)?;
                bare.get_or_insert_default().add(&run);
            }
            if self.stop.is_wanted() {
                return Err(Failure::Interrupted);
            }
        }
        self.print(kinds, &sums, bare.as_ref());
        Ok(())
    }

    /// Sends for `duration`.
    fn load(&self, kind: Kind, duration: Duration) -> Result<Run> {
        let packet_size = self.args.packet_size;
        let (target, identity, offer) = (self.target, self.identity.clone(), self.common.suite);
        let job = LoadJob { target, kind, packet_size, duration, identity, offer, stop: self.stop };
        with_driver(self.common.output(), self.common.driver, &self.here.host, self.here.addr, job)
    }

    fn print(&self, kinds: &[Kind], sums: &[Run], bare: Option<&Run>) {
        let output = self.common.output();
        let size = self.args.packet_size;
        let events: Vec<_> =
            kinds.iter().zip(sums).map(|(&kind, run)| BenchEvent::new(kind, size, run, bare)).collect();
        if output.json {
            for event in &events {
                output.event(event);
            }
            return;
        }
        let mut lines = vec![self.title(&sums[0]), heading()];
        lines.extend(kinds.iter().zip(sums).map(|(kind, run)| run.text(kind.name())));
        lines.extend(bare.map(|bare| bare.text("bare")));
        lines.extend(events.iter().filter_map(BenchEvent::ratio_text));
        output.result(&(), lines.join("\n"));
    }

    fn title(&self, run: &Run) -> String {
        let Picked { name, mode } = run.picked.unwrap_or(Picked { name: "none", mode: "none" });
        let cipher = cipher::described(run.suite.unwrap_or("no suite"));
        format!(
            "driver {name} ({mode}), packets of {} bytes, {cipher}, counted at the receiver",
            self.args.packet_size
        )
    }
}
