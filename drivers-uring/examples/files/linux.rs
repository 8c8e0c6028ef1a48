//! The comparison itself.

use std::fs::{self, File};
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::time::{ClockId, clock_gettime};
use wraith_drivers_uring::file::{Reader, Writer};

/// What the tool reads at a time, and how far ahead.
const BLOCK: usize = 64 << 10;
const AHEAD: u16 = 8;
/// What the tool writes at a time, and from how many buffers.
const CHUNK: usize = 1 << 20;
const BUFFERS: u16 = 8;

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Load {
    /// Into the page cache.
    Write,
    /// Onto the disk.
    WriteAndSync,
    /// Out of the page cache.
    Read,
    /// From the disk.
    ReadCold,
}

/// What a run took.
#[derive(Clone, Copy)]
struct Taken {
    time: f64,
    cpu: f64,
}

pub(super) fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (mut folder, mut pairs, mut mib) = (None, 7, 1024);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).ok_or_else(usage);
        match argument.as_str() {
            "--pairs" => pairs = number()?,
            "--mib" => mib = number()?,
            _ => folder = Some(argument),
        }
    }
    let path = Path::new(&folder.ok_or_else(usage)?).join("wraith-files-example");
    println!("{:14} {:>8} {:>8} {:>8} {:>8}", "", "calls", "ring", "time", "cpu");
    let outcome = [Load::Write, Load::WriteAndSync, Load::Read, Load::ReadCold]
        .into_iter()
        .try_for_each(|load| compare(load, &path, pairs, mib));
    fs::remove_file(&path)?;
    outcome
}

fn usage() -> io::Error {
    io::Error::other("usage: files DIR [--pairs N] [--mib N]")
}

fn compare(load: Load, path: &Path, pairs: usize, mib: usize) -> io::Result<()> {
    run(load, path, false, mib)?; // warms up
    let mut taken = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        for turn in 0..2 {
            let ring = (pair + turn) % 2 == 1;
            taken[usize::from(ring)].push(run(load, path, ring, mib)?);
        }
    }
    let [calls, ring] = &taken;
    let rate = |taken: &[Taken]| (mib << 20) as f64 / 1e9 / median(taken.iter().map(|taken| taken.time));
    let ratio =
        |of: fn(&Taken) -> f64| median(calls.iter().zip(ring).map(|(calls, ring)| of(ring) / of(calls)));
    println!(
        "{:14} {:8.2} {:8.2} {:8.2} {:8.2}",
        format!("{load:?}"),
        rate(calls),
        rate(ring),
        ratio(|taken| taken.time),
        ratio(|taken| taken.cpu),
    );
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn run(load: Load, path: &Path, ring: bool, mib: usize) -> io::Result<Taken> {
    let writes = matches!(load, Load::Write | Load::WriteAndSync);
    let file = if writes {
        let file = File::create(path)?;
        file.set_len((mib << 20) as u64)?;
        file
    } else {
        let file = File::open(path)?;
        file.sync_all()?;
        if load == Load::ReadCold {
            posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
        }
        file
    };
    let (began, cpu) = (Instant::now(), processor());
    match (writes, ring) {
        (true, false) => write_by_calls(&file, mib)?,
        (true, true) => write_by_ring(&file, mib)?,
        (false, false) => read_by_calls(&file, mib)?,
        (false, true) => read_by_ring(&file, mib)?,
    }
    if load == Load::WriteAndSync {
        file.sync_all()?;
    }
    Ok(Taken { time: began.elapsed().as_secs_f64(), cpu: processor().saturating_sub(cpu).as_secs_f64() })
}

/// Processor time of this process, with the threads that the kernel has in it.
fn processor() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

fn write_by_calls(file: &File, mib: usize) -> io::Result<()> {
    let buffers: Vec<_> = (0..BUFFERS).map(|_| vec![7; CHUNK]).collect();
    (0..mib).try_for_each(|at| file.write_all_at(&buffers[at % buffers.len()], (at * CHUNK) as u64))
}

fn write_by_ring(file: &File, mib: usize) -> io::Result<()> {
    let mut writer = Writer::new(file, BUFFERS).map_err(io::Error::other)?;
    let mut buffers: Vec<_> = (0..BUFFERS).map(|_| vec![7; CHUNK]).collect();
    let mut at = 0;
    while at < mib || writer.is_busy() {
        match buffers.pop().filter(|_| at < mib) {
            Some(buffer) => {
                writer.write(buffer, CHUNK, (at * CHUNK) as u64)?;
                at += 1;
            }
            None => writer.wait()?,
        }
        while let Some((_, buffer)) = writer.written()? {
            buffers.push(buffer);
        }
    }
    Ok(())
}

fn read_by_calls(file: &File, mib: usize) -> io::Result<()> {
    let mut buffer = vec![0; BLOCK];
    for at in 0..(mib << 20) / BLOCK {
        file.read_exact_at(&mut buffer, (at * BLOCK) as u64)?;
        consume(&buffer);
    }
    Ok(())
}

fn read_by_ring(file: &File, mib: usize) -> io::Result<()> {
    let mut reader = Reader::new(file, (mib << 20) as u64, BLOCK, AHEAD).map_err(io::Error::other)?;
    let mut buffer = Vec::new();
    for at in 0..(mib << 20) / BLOCK {
        buffer = reader.read(buffer, (at * BLOCK) as u64)?;
        consume(&buffer);
    }
    Ok(())
}

/// Reads every cache line, as a cipher does.
fn consume(bytes: &[u8]) {
    black_box(bytes.iter().step_by(64).fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
}
