//! Traces and key logs as files: what an [`Endpoint`](wraith_proto::Endpoint) tells a [`Tracer`], written down.
//!
//! `docs/TRACING.md` says how to read them.

mod events;
mod frames;
mod key_log;
mod qlog;

use wraith_proto::trace::{TraceEvent, Tracer};
use wraith_proto::{Instant, SessionHandle};

pub use key_log::KeyLog;
pub use qlog::Qlog;

/// Tells several tracers, and secrets only to those that want them.
#[derive(Default)]
pub struct Tee(Vec<Box<dyn Tracer>>);

impl Tee {
    /// Tells these, in order.
    pub fn new(tracers: Vec<Box<dyn Tracer>>) -> Self {
        Self(tracers)
    }
}

impl Tracer for Tee {
    fn event(&mut self, now: Instant, session: Option<SessionHandle>, event: &TraceEvent<'_>) {
        for tracer in self.0.iter_mut().filter(|tracer| !event.is_secret() || tracer.wants_secrets()) {
            tracer.event(now, session, event);
        }
    }

    fn wants_secrets(&self) -> bool {
        self.0.iter().any(|tracer| tracer.wants_secrets())
    }
}

impl std::fmt::Debug for Tee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tee").field("tracers", &self.0.len()).finish_non_exhaustive()
    }
}
