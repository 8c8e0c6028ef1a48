//! What the commands print at their ends.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::size;

/// The end of a transfer as the receiver sees it.
#[derive(Serialize)]
#[serde(tag = "event", rename = "done")]
pub(super) struct Done<'a> {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) gbps: f64,
    pub(super) hash: &'a str,
    pub(super) driver: &'a str,
    pub(super) verified: bool,
    /// `None` for stdout.
    pub(super) path: Option<Cow<'a, str>>,
    pub(super) fsync_seconds: f64,
    pub(super) peer: &'a str,
    pub(super) address: &'a str,
    pub(super) peak_rss: Option<u64>,
    pub(super) suite: &'a str,
    pub(super) crypto: &'a str,
    /// How the file was written; `None` for stdout.
    pub(super) files: Option<&'a str>,
}

/// The end of a transfer as the sender sees it.
#[derive(Serialize)]
#[serde(tag = "event", rename = "confirmed")]
pub(super) struct Confirmed<'a> {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) hash: &'a str,
    pub(super) driver: &'a str,
    pub(super) peer: &'a str,
    pub(super) address: &'a str,
    pub(super) peak_rss: Option<u64>,
    /// How the file was read.
    pub(super) files: &'a str,
}

/// A network was told who has the content.
#[derive(Serialize)]
#[serde(tag = "event", rename = "announced")]
pub(super) struct Announced<'a> {
    pub(super) hash: &'a str,
}

/// How long a transfer took, and how fast it was.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Speed {
    pub(super) seconds: f64,
    pub(super) fsync_seconds: f64,
    pub(super) gbps: f64,
}

impl Speed {
    /// From the first `Get` to the confirmation; waiting for the disk does not count as transfer.
    pub(super) fn new(bytes: u64, took: Duration, fsync: Duration) -> Self {
        let moving = took.saturating_sub(fsync).as_secs_f64();
        let gbps = if moving > 0.0 { bytes as f64 * 8.0 / moving / 1e9 } else { 0.0 };
        Self { seconds: took.as_secs_f64(), fsync_seconds: fsync.as_secs_f64(), gbps }
    }

    /// `256.0 MiB in 0.94 s, 2.31 Gbit/s`, and what the disk took if that is worth a word.
    pub(super) fn text(&self, bytes: u64) -> String {
        let mut text = format!("{} in {:.2} s, {:.2} Gbit/s", size::shown(bytes), self.seconds, self.gbps);
        if self.fsync_seconds >= 0.01 {
            // Writing to a string does not fail.
            let _ = write!(text, " without {:.2} s until the disk had it", self.fsync_seconds);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_the_disk_counts_as_time_and_not_as_transfer() {
        let speed = Speed::new(250_000_000, Duration::from_millis(1_500), Duration::from_millis(500));
        assert_eq!(speed, Speed { seconds: 1.5, fsync_seconds: 0.5, gbps: 2.0 });
        assert_eq!(
            speed.text(250_000_000),
            "238.4 MiB in 1.50 s, 2.00 Gbit/s without 0.50 s until the disk had it"
        );
        assert!(Speed::new(0, Duration::ZERO, Duration::ZERO).gbps.abs() < f64::EPSILON);
    }
}
