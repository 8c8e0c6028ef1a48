//! Medians of interleaved runs, so that what slows the machine down slows all of them down.

use std::time::{Duration, Instant};

/// Something to be timed.
pub(crate) type Task = Box<dyn FnMut()>;

const ROUNDS: usize = 101;
const LEAST: Duration = Duration::from_micros(300);

/// Nanoseconds that one call of each task takes.
pub(crate) fn nanoseconds(mut tasks: Vec<Task>) -> Vec<f64> {
    let calls: Vec<u32> = tasks.iter_mut().map(calls_to_measure).collect();
    let mut times = vec![Vec::with_capacity(ROUNDS); tasks.len()];
    for _ in 0..ROUNDS {
        for ((task, times), calls) in tasks.iter_mut().zip(&mut times).zip(&calls) {
            times.push(time(task, *calls).as_nanos() as f64 / f64::from(*calls));
        }
    }
    times.into_iter().map(median).collect()
}

fn calls_to_measure(task: &mut Task) -> u32 {
    let mut calls = 1;
    while time(task, calls) < LEAST && calls < 1 << 16 {
        calls *= 2;
    }
    calls
}

fn time(task: &mut Task, calls: u32) -> Duration {
    let begun = Instant::now();
    for _ in 0..calls {
        task();
    }
    begun.elapsed()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
