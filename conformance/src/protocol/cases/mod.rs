//! The cases: one function each, in a module for each group.

mod dialled;
mod finish;
mod frames;
pub(crate) mod hello;
mod init;
mod life;
mod list;
mod packets;
mod paths;

mod rekey;
mod response;
mod streams;
mod violations;

use std::sync::LazyLock;

use super::bench::Bench;
use super::run::Case;
use super::subject::{Side, Variant};
use crate::case::{Outcome, Verdict};

macro_rules! list {
    ($($group:ident { $($case:ident: $clause:literal, $side:ident, $variant:ident;)* })*) => {
        vec![$($(Case {
            id: concat!(stringify!($group), "/", stringify!($case)),
            clause: $clause,
            side: Side::$side,
            variant: Variant::$variant,
            body: $group::$case,
        },)*)*]
    };
}

/// Every case, in the order of running.
pub fn cases() -> &'static [Case] {
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| crate::__protocol_cases! { list });
    &CASES
}

/// Runs a case whose steps a subject gives little time for. One that runs by itself, or this end, may be held up for
/// longer, and gets two more attempts; where time is virtual there is one.
fn in_time(bench: &mut Bench<'_>, body: fn(&mut Bench<'_>) -> Outcome) -> Outcome {
    for _ in 1..if bench.is_exact() { 1 } else { 3 } {
        match body(bench) {
            Err(Verdict::Fail(_)) => bench.renew()?,
            other => return other,
        }
    }
    body(bench)
}
