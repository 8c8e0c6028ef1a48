//! When to count, and what that costs.

use std::fs;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use super::Result;

/// Units of /proc/stat in a second (`USER_HZ`).
const TICKS: u64 = 100;

/// Phases, after a first one of 0 in which nothing is counted.
const COUNTING: u8 = 1;
const COUNTED: u8 = 2;
const FINISHED: u8 = 3;

/// Tells both ends when to count.
#[derive(Debug, Default)]
pub(super) struct Meter {
    phase: AtomicU8,
}

/// What one end has seen between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Packets within the time.
    pub(super) packets: u64,
    pub(super) time: Duration,
    /// Processor time of the thread, user and system.
    pub(super) cpu: Duration,
    /// Processor time of the whole machine, all its cores together, interrupts and the kernel's threads included.
    pub(super) machine: Duration,
    /// Packets from the first to the last, before and behind the time too.
    pub(super) total: u64,
}

/// An end's look at the meter.
#[derive(Debug, Default)]
pub(super) struct Watch {
    began: Option<Sample>,
    ended: Option<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    cpu: Duration,
    machine: Duration,
    packets: u64,
}

impl Meter {
    pub(super) fn start(&self) {
        self.phase.fetch_max(COUNTING, Ordering::SeqCst);
    }

    pub(super) fn stop(&self) {
        self.phase.fetch_max(COUNTED, Ordering::SeqCst);
    }

    /// Nothing comes any more.
    pub(super) fn finish(&self) {
        self.phase.store(FINISHED, Ordering::SeqCst);
    }

    pub(super) fn is_finished(&self) -> bool {
        self.phase.load(Ordering::SeqCst) == FINISHED
    }
}

impl Watch {
    /// Samples at the beginning and at the end of the time; `packets` have passed so far.
    pub(super) fn look(&mut self, meter: &Meter, packets: u64) -> Result<()> {
        let phase = meter.phase.load(Ordering::Relaxed);
        if phase == COUNTING && self.began.is_none() {
            self.began = Some(Sample::take(packets)?);
        }
        if phase >= COUNTED && self.ended.is_none() {
            self.ended = Some(Sample::take(packets)?);
        }
        Ok(())
    }

    /// What was seen, with `total` packets in all.
    pub(super) fn seen(&self, total: u64) -> Result<Seen> {
        let (Some(began), Some(ended)) = (self.began, self.ended) else {
            return Err("an end was asleep all the time: nothing arrived".into());
        };
        Ok(Seen {
            packets: ended.packets - began.packets,
            time: ended.at - began.at,
            cpu: ended.cpu.saturating_sub(began.cpu),
            machine: ended.machine.saturating_sub(began.machine),
            total,
        })
    }
}

impl Sample {
    fn take(packets: u64) -> Result<Self> {
        let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into();
        Ok(Self { at: Instant::now(), cpu, machine: busy(&fs::read_to_string("/proc/stat")?)?, packets })
    }
}

/// Time that all cores were busy for this machine, of what /proc/stat says (`proc_stat(5)`).
fn busy(stat: &str) -> Result<Duration> {
    let line = stat.lines().next().ok_or("/proc/stat is empty")?;
    let fields: Vec<u64> =
        line.split_whitespace().skip(1).map(str::parse).collect::<std::result::Result<_, _>>()?;
    // user, nice, system, then idle and waiting, then interrupts, hard and soft.
    let [user, nice, system, _, _, hard, soft, ..] = fields[..] else {
        return Err("/proc/stat is short".into());
    };
    Ok(Duration::from_millis((user + nice + system + hard + soft) * (1000 / TICKS)))
}
