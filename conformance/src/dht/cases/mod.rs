//! The cases: one function each, in a module for each group.

mod contacts;
mod list;
mod records;
mod requests;

use std::sync::LazyLock;

use super::bench::Bench;
use super::run::Case;
use super::subject::Doors;
use crate::case::Outcome;
use crate::peer::dht::Ask;

macro_rules! list {
    ($($group:ident { $($case:ident: $clause:literal, $doors:ident;)* })*) => {
        vec![$($(Case {
            id: concat!(stringify!($group), "/", stringify!($case)),
            clause: $clause,
            doors: Doors::$doors,
            body: $group::$case,
        },)*)*]
    };
}

/// Every case, in the order of running.
pub fn cases() -> &'static [Case] {
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| crate::__dht_cases! { list });
    &CASES
}

/// Whether there is a node.
pub(super) fn answers_at_all(bench: &mut Bench) -> Outcome {
    bench.ask(bench.front, &Ask::Ping).map(drop)
}
