//! How far a transfer is: a bar on terminals, a few JSON lines for programs, nothing in pipes.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::output::Output;

/// Shortest time between two JSON lines, and between two drawings of the bar.
const INTERVAL: Duration = Duration::from_millis(200);

#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
#[serde(tag = "event", rename = "progress")]
struct ProgressEvent {
    bytes: u64,
    total: Option<u64>,
}

/// Shows progress in the way that fits who watches.
#[derive(Debug)]
pub(super) struct Progress {
    output: Output,
    /// Whether programs are told.
    events: bool,
    /// What they were told last.
    told: Option<ProgressEvent>,
    bar: Option<ProgressBar>,
    last: Option<Instant>,
}

impl Progress {
    /// Of a transfer; `verb` says what happens.
    pub(super) fn new(output: Output, verb: &'static str) -> Self {
        Self { output, events: output.json, told: None, bar: bar(output, verb), last: None }
    }

    /// Of work before a transfer, which only people care for.
    pub(super) fn of_preparation(output: Output, verb: &'static str) -> Self {
        Self { output, events: false, told: None, bar: bar(output, verb), last: None }
    }

    /// `bytes` of `total` are done, which is unknown before it is proven.
    pub(super) fn set(&mut self, bytes: u64, total: Option<u64>) {
        if self.bar.is_none() && !self.events {
            return;
        }
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < INTERVAL) {
            return;
        }
        self.last = Some(now);
        if let Some(bar) = &self.bar {
            if let Some(total) = total {
                bar.set_length(total);
            }
            bar.set_position(bytes);
        }
        let event = ProgressEvent { bytes, total };
        // While somebody is waited for, there is none.
        if self.events && self.told.replace(event) != Some(event) {
            self.output.event(&event);
        }
    }

    /// Takes the bar away, so that a line can be printed.
    pub(super) fn clear(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn bar(output: Output, verb: &'static str) -> Option<ProgressBar> {
    if output.json || output.quiet || !std::io::stderr().is_terminal() {
        return None;
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    let template = "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("=> "));
    bar.set_message(verb);
    Some(bar)
}
