//! The same drivers, batches and waits, without protocol and cipher.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use wraith_drivers::Park;
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};

use super::meter::{Meter, Watch};
use super::{DRAIN, Job, LOOK, Measured, Result, WARM_UP};

/// As in `Runner`: datagrams received between two looks at what there is to send.
const RX_BUDGET: usize = 256;
/// As in `Runner`: flushes before it is time to receive again.
const FLUSHES: usize = 8;
/// As in `Runner`: when to look again at datagrams that nothing reports to move on.
const STALL: Duration = Duration::from_millis(1);

pub(super) struct Send {
    pub(super) meter: Arc<Meter>,
    pub(super) to: SocketAddr,
    pub(super) size: u16,
    pub(super) duration: Duration,
}

pub(super) struct Receive {
    pub(super) meter: Arc<Meter>,
    pub(super) ready: mpsc::Sender<SocketAddr>,
}

impl Job for Send {
    type Output = Measured;

    fn run<D: Park>(self, mut driver: D) -> Result<Measured> {
        let meta = TxMeta { to: self.to, from: None, via: Via(0), ecn: Ecn::NotEct };
        let len = usize::from(self.size);
        let start = driver.now().saturating_add(WARM_UP);
        let end = start.saturating_add(self.duration);
        let (mut watch, mut sent) = (Watch::default(), 0);
        loop {
            let now = driver.now();
            if now >= start {
                self.meter.start();
            }
            watch.look(&self.meter, sent)?;
            if now >= end {
                break;
            }
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
        self.meter.stop();
        watch.look(&self.meter, sent)?;
        let over = driver.now().saturating_add(DRAIN);
        while driver.now() < over {
            sent += driver.flush()?.sent as u64;
            driver.park(Some(over))?;
        }
        Ok((watch.seen(sent)?, driver.caps().mode))
    }
}

impl Job for Receive {
    type Output = Measured;

    fn run<D: Park>(self, mut driver: D) -> Result<Measured> {
        self.ready.send(driver.local_addr())?;
        let (mut watch, mut received) = (Watch::default(), 0);
        while !self.meter.is_finished() {
            let report = driver.recv(RX_BUDGET, |_, _| received += 1)?;
            watch.look(&self.meter, received)?;
            if report.datagrams == 0 {
                let look = driver.now().saturating_add(LOOK);
                driver.park(Some(look))?;
            }
        }
        watch.look(&self.meter, received)?;
        Ok((watch.seen(received)?, driver.caps().mode))
    }
}
