//! The bare socket: the same driver, datagram size, batches and waits, without protocol or cipher.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use wraith_drivers::{Park, Unpark};
use wraith_proto::{Ecn, Instant, TxMeta, TxQueue, Via};

use super::row::Run;
use crate::cpu;
use crate::device::End;
use crate::driver_pick::{Choice, Job, Picked, with_driver};
use crate::failure::{Result, failed};
use crate::output::Output;
use crate::stop::Stop;

/// As in `Runner`: datagrams received between two looks at what there is to send.
const RX_BUDGET: usize = 256;
/// As in `Runner`: flushes before it is time to receive again.
const FLUSHES: usize = 8;
/// As in `Runner`: when to look again at datagrams that nothing reports to move on.
const STALL: Duration = Duration::from_millis(1);
/// After this much silence nothing is on its way any more.
const QUIET: Duration = Duration::from_millis(200);
/// The sender has not finished.
const RUNNING: u64 = u64::MAX;

type Wake = Box<dyn Fn() + Send>;

/// Sends datagrams of `packet_size` bytes for `duration` to another thread and counts them there.
pub(super) fn run(
    choice: Choice,
    [there, here]: &[End; 2],
    packet_size: u16,
    duration: Duration,
    stop: &Stop,
) -> Result<Run> {
    let sent = AtomicU64::new(RUNNING);
    thread::scope(|scope| {
        let (ready, receiver_ready) = mpsc::channel();
        let receive = ReceiveJob { sent: &sent, ready };
        let receiver =
            scope.spawn(move || with_driver(Output::SILENT, choice, &there.host, there.addr, receive));
        let Ok((to, wake)) = receiver_ready.recv() else {
            return receiver.join().unwrap_or_else(|_| Err(failed("the receiver of the bare row failed")));
        };
        let send = SendJob { to, packet_size, duration, stop };
        let sender = with_driver(Output::SILENT, choice, &here.host, here.addr, send);
        sent.store(sender.as_ref().map_or(0, |sender| sender.packets), Ordering::SeqCst);
        wake();
        let received =
            receiver.join().unwrap_or_else(|_| Err(failed("the receiver of the bare row failed")))?;
        let sender = sender?;
        Ok(Run {
            lost: sender.packets.saturating_sub(received.packets),
            tx_time: sender.tx_time,
            tx_cpu: sender.tx_cpu,
            ..received
        })
    })
}

struct SendJob<'a> {
    to: SocketAddr,
    packet_size: u16,
    duration: Duration,
    stop: &'a Stop,
}

/// What the sender did.
struct Sent {
    packets: u64,
    tx_time: Duration,
    tx_cpu: Option<Duration>,
}

impl Job for SendJob<'_> {
    type Output = Sent;

    fn run<D: Park>(self, mut driver: D, _: Picked) -> Result<Sent> {
        let (began, cpu) = (driver.now(), cpu::of_thread());
        let packets =
            self.send(&mut driver, began.saturating_add(self.duration)).map_err(|error| network(&error))?;
        Ok(Sent { packets, tx_time: driver.now().saturating_since(began), tx_cpu: cpu::since(cpu) })
    }
}

impl SendJob<'_> {
    fn send<D: Park>(&self, driver: &mut D, until: Instant) -> io::Result<u64> {
        let meta = TxMeta { to: self.to, from: None, via: Via(0), ecn: Ecn::NotEct };
        let len = usize::from(self.packet_size);
        let mut sent = 0;
        while driver.now() < until && !self.stop.is_wanted() {
            driver.recv(RX_BUDGET, |_, _| {})?;
            for _ in 0..FLUSHES {
                while let Some(room) = driver.tx().reserve(&meta, len) {
                    room[..len].fill(0x5a);
                    driver.tx().commit(len);
                }
                let report = driver.flush()?;
                sent += report.sent as u64;
                if report.sent == 0 && report.dropped == 0 {
                    let retry = driver.now().saturating_add(STALL);
                    driver.park(Some(retry))?;
                    break;
                }
            }
        }
        Ok(sent)
    }
}

struct ReceiveJob<'a> {
    sent: &'a AtomicU64,
    ready: mpsc::Sender<(SocketAddr, Wake)>,
}

impl Job for ReceiveJob<'_> {
    type Output = Run;

    fn run<D: Park>(self, mut driver: D, picked: Picked) -> Result<Run> {
        let unparker = driver.unparker();
        let wake = Box::new(move || {
            let _ = unparker.unpark();
        });
        let _ = self.ready.send((driver.local_addr(), wake));
        let run = self.receive(&mut driver).map_err(|error| network(&error))?;
        Ok(Run { picked: Some(picked), ..run })
    }
}

impl ReceiveJob<'_> {
    fn receive<D: Park>(&self, driver: &mut D) -> io::Result<Run> {
        let mut run = Run::default();
        let mut first: Option<(Instant, Option<Duration>)> = None;
        let mut last = driver.now();
        loop {
            let now = driver.now();
            let report = driver.recv(RX_BUDGET, |_, data| {
                run.packets += 1;
                run.bytes += data.len() as u64;
            })?;
            if report.datagrams > 0 {
                let (began, _) = *first.get_or_insert_with(|| (now, cpu::of_thread()));
                last = now;
                run.rx_time = now.saturating_since(began);
                continue;
            }
            let sent = self.sent.load(Ordering::SeqCst);
            let quiet_at = last.saturating_add(QUIET);
            if sent != RUNNING && (run.packets >= sent || now >= quiet_at) {
                break;
            }
            driver.park((sent != RUNNING).then_some(quiet_at))?;
        }
        run.rx_cpu = cpu::since(first.and_then(|(_, cpu)| cpu));
        Ok(run)
    }
}

fn network(error: &io::Error) -> crate::failure::Failure {
    failed(format!("the bare socket failed: {error}"))
}
