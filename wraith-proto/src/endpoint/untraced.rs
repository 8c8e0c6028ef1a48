//! What `traced.rs` does, without the feature `trace`: nothing, at no cost.

#![expect(clippy::unused_self, reason = "the signatures are those of `traced.rs`")]

use super::Endpoint;
use super::scope::Scope;
use crate::error::{CloseReason, DropReason};
use crate::session::SessionState;
use crate::time::Instant;
use crate::util::Slab;

pub(super) struct Hook;

impl Hook {
    pub(super) const NONE: Self = Self;

    pub(super) fn watch<'a>(&mut self, _: Instant, _: u32, scope: Scope<'a>) -> Scope<'a> {
        scope
    }

    pub(super) fn handshake_sent(&mut self, _: Instant, _: &Slab<SessionState>, _: Option<u32>, _: &[u8]) {}
}

impl Endpoint {
    pub(super) fn trace_handshake_received(&mut self, _: &[u8]) {}

    pub(super) fn trace_established(&mut self, _: u32) {}

    pub(super) fn trace_keys(&mut self, _: u32) {}

    pub(super) fn trace_epoch(&mut self, _: u32, _: u64) {}

    pub(super) fn trace_sent(&mut self, _: u32, _: u64, _: usize, _: usize, _: &[u8]) {}

    pub(super) fn trace_received(&mut self, _: u32, _: u64, _: u8, _: usize, _: &[u8]) {}

    pub(super) fn trace_dropped(&mut self, _: DropReason, _: &[u8]) {}

    pub(super) fn trace_metrics(&mut self, _: u32) {}

    pub(super) fn trace_mtu(&mut self, _: u32) {}

    pub(super) fn trace_closed(&mut self, _: u32, _: CloseReason) {}
}

const _: () = assert!(size_of::<Hook>() == 0);
